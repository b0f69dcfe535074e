//! What agents remember, and answers that are given again.

use serde_json::json;

use crate::{
    db::{
        Db, Json, cached_answers,
        memory::{self, ConversationTurn},
        testing::{at, both, commit, user},
        tests::agents::agent,
        traces::{self, StoredTrace},
    },
    ids::{AgentId, TraceId, UserId},
};

fn turn(number: u32) -> ConversationTurn {
    ConversationTurn {
        question: format!("question {number}"),
        answer: format!("answer\n{number}"),
        tokens: i64::from(number),
    }
}

async fn say(db: &Db, user: UserId, agent: AgentId, session: &str, number: u32) {
    commit!(db, |tx| memory::add(tx, user, agent, session, &turn(number), at(1), 3));
}

#[tokio::test]
async fn a_session_keeps_its_last_turns_and_no_other_sessions() {
    for t in &both().await {
        let (owner, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let (a, b) = (agent(&t.db, owner, at(0)).await, agent(&t.db, owner, at(0)).await);
        for number in 1..=5 {
            say(&t.db, owner, a, "s", number).await;
        }
        say(&t.db, owner, a, "S", 6).await;
        say(&t.db, owner, b, "s", 7).await;
        let latest = async |user, agent, session, tokens| {
            memory::latest(&t.db, user, agent, session, tokens).await.unwrap()
        };
        assert_eq!(latest(owner, a, "s", 12).await, [turn(5), turn(4), turn(3)], "{}", t.name);
        assert_eq!(latest(owner, a, "s", 11).await, [turn(5), turn(4)], "{}", t.name);
        assert!(latest(owner, a, "s", 4).await.is_empty(), "{}", t.name);
        assert_eq!(latest(owner, b, "s", 10).await, [turn(7)], "{}", t.name);
        assert!(latest(other, a, "s", 10).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn an_answer_is_found_while_it_is_young_and_its_trace_is_kept() {
    for t in &both().await {
        let (owner, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let agent = agent(&t.db, owner, at(0)).await;
        let mut ids = Vec::new();
        for created in [10, 20] {
            let trace = StoredTrace {
                id: TraceId::generate(),
                agent_id: agent,
                session: None,
                created_at: at(created),
                complete: true,
                body: Json(json!({})),
            };
            let record = Json(json!({"version": 1}));
            commit!(t.db, |tx| traces::insert(tx, owner, &trace, Some(&record), at(100)));
            commit!(t.db, |tx| cached_answers::put(tx, owner, b"key", trace.id, at(created)));
            ids.push(trace.id);
        }
        let find = async |user, key: &[u8], since, now| {
            cached_answers::find(&t.db, user, key, at(since), at(now)).await.unwrap()
        };
        assert_eq!(find(owner, b"key", 20, 30).await, Some(ids[1]), "{}", t.name);
        assert_eq!(find(owner, b"key", 21, 30).await, None, "too old: {}", t.name);
        assert_eq!(find(owner, b"key", 0, 100).await, None, "the trace has gone: {}", t.name);
        assert_eq!(find(owner, b"yek", 0, 30).await, None, "{}", t.name);
        assert_eq!(find(other, b"key", 0, 30).await, None, "{}", t.name);
        let (_, record) = traces::find_with_record(&t.db, owner, ids[1], at(30)).await.unwrap().unwrap();
        assert_eq!(record.unwrap().0, json!({"version": 1}), "{}", t.name);
        assert!(
            traces::find_with_record(&t.db, other, ids[1], at(30)).await.unwrap().is_none(),
            "{}",
            t.name
        );
        while commit!(t.db, |tx| traces::expire(tx, at(100), 10)) > 0 {}
        assert_eq!(find(owner, b"key", 0, 30).await, None, "{}", t.name);
    }
}
