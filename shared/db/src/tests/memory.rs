//! What agents remember, and answers that are given again.

use lectern_shared::{
    ids::{AgentId, ApiTokenId, PublicationId, TraceId, UserId, WorkspaceId},
    model::{
        Json,
        publication::{Publication, PublicationAccess},
        workspace::{Role, RunOwner},
    },
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    Db, agents, api_tokens, cached_answers,
    memory::{self, ConversationTurn},
    on, publications,
    testing::{account_of, at, both, commit, made_in, run_in, user, workspace},
    tests::{
        accounts::new_token,
        agents::{agent, remember, turns},
    },
    traces::{self, StoredTrace},
    workspaces::members,
};

fn turn(number: u32) -> ConversationTurn {
    ConversationTurn {
        question: format!("question {number}"),
        answer: format!("answer\n{number}"),
        tokens: i64::from(number),
        trace: None,
    }
}

async fn say(db: &Db, workspace: WorkspaceId, agent: AgentId, session: &str, number: u32) {
    commit!(db, |tx| memory::add(tx, run_in(workspace), agent, session, &turn(number), at(1), 3));
}

#[tokio::test]
async fn the_turns_of_all_sessions_in_a_workspace_are_read_page_by_page() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (a, b) = (agent(&t.db, owner, at(0)).await, agent(&t.db, owner, at(0)).await);
        let theirs = agent(&t.db, other, at(0)).await;
        for (workspace, agent, session, number) in
            [(owner, a, "s", 1), (owner, b, "s", 2), (other, theirs, "s", 3), (owner, a, "S", 4)]
        {
            say(&t.db, workspace, agent, session, number).await;
        }
        // Another member's, and what was asked by a token that many hold, are not one's own.
        let own = run_in(owner);
        let stranger = RunOwner { user: UserId::generate(), ..own };
        let by_token = RunOwner { token: Some(ApiTokenId::generate()), ..own };
        for other in [stranger, by_token] {
            commit!(t.db, |tx| memory::add(tx, other, a, "s", &turn(5), at(1), 3));
        }
        let (mut before, mut read) = (Uuid::max(), Vec::new());
        loop {
            let page = memory::list(&t.db, own, before, 2).await.unwrap();
            let Some(last) = page.last() else { break };
            before = last.id;
            read.extend(page.into_iter().map(|turn| (turn.agent_id, turn.session, turn.question)));
        }
        let expected = [(a, "S", 4), (b, "s", 2), (a, "s", 1)];
        let expected =
            expected.map(|(agent, session, number)| (agent, session.to_owned(), turn(number).question));
        assert_eq!(read, expected, "{}", t.name);
    }
}

#[tokio::test]
async fn a_session_keeps_its_last_turns_and_no_other_sessions() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (a, b) = (agent(&t.db, owner, at(0)).await, agent(&t.db, owner, at(0)).await);
        for number in 1..=5 {
            say(&t.db, owner, a, "s", number).await;
        }
        say(&t.db, owner, a, "S", 6).await;
        say(&t.db, owner, b, "s", 7).await;
        let latest = async |workspace, agent, session, tokens| {
            memory::latest(&t.db, run_in(workspace), agent, session, tokens).await.unwrap()
        };
        assert_eq!(latest(owner, a, "s", 12).await, [turn(5), turn(4), turn(3)], "{}", t.name);
        assert_eq!(latest(owner, a, "s", 11).await, [turn(5), turn(4)], "{}", t.name);
        assert!(latest(owner, a, "s", 4).await.is_empty(), "{}", t.name);
        assert_eq!(latest(owner, b, "s", 10).await, [turn(7)], "{}", t.name);
        assert!(latest(other, a, "s", 10).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_session_is_forgotten_and_no_other() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, other) = (agent(&t.db, workspace, at(0)).await, agent(&t.db, workspace, at(0)).await);
        for (agent, session) in [(agent, "ä/1"), (agent, "ä/1"), (agent, "Ä/1"), (other, "ä/1")] {
            remember(&t.db, workspace, agent, session).await;
        }
        for session in ["ä/1", "ä/1", "never held"] {
            assert!(
                commit!(t.db, |tx| agents::erase_session(tx, run_in(workspace), agent, session, at(2))),
                "{}",
                t.name
            );
        }
        assert_eq!(turns(&t.db, agent, "ä/1").await, 0, "{}", t.name);
        assert_eq!(turns(&t.db, agent, "Ä/1").await, 1, "{}", t.name);
        assert_eq!(turns(&t.db, other, "ä/1").await, 1, "{}", t.name);
        assert!(
            !commit!(t.db, |tx| agents::erase_session(
                tx,
                run_in(workspace),
                AgentId::generate(),
                "ä/1",
                at(2)
            )),
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn whoever_began_before_a_session_was_erased_is_told_of_it_and_nobody_else() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (one, other) = (agent(&t.db, workspace, at(0)).await, agent(&t.db, workspace, at(0)).await);
        let owner = run_in(workspace);
        let last = async |session| memory::last_erasure(&t.db, owner, one, session).await.unwrap();
        let since = async |agent, session, last| {
            commit!(t.db, |tx| memory::was_erased_since(tx, owner, agent, session, last))
        };
        assert_eq!(last("s").await, None, "{}", t.name);
        assert!(!since(one, "s", None).await, "{}", t.name);
        // Nothing is remembered of it yet.
        assert!(commit!(t.db, |tx| agents::erase_session(tx, owner, one, "s", at(2))), "{}", t.name);
        let first = last("s").await;
        assert!(first.is_some() && since(one, "s", None).await, "{}", t.name);
        assert!(!since(one, "s", first).await, "it was erased before: {}", t.name);
        assert!(!since(one, "S", None).await && !since(other, "s", None).await, "{}", t.name);
        commit!(t.db, |tx| agents::erase_session(tx, owner, one, "s", at(3)));
        assert!(since(one, "s", first).await, "{}", t.name);
        assert!(since(AgentId::generate(), "s", None).await, "the agent is gone: {}", t.name);
        // The note goes when no run can be as old as it is.
        assert_eq!(commit!(t.db, |tx| memory::expire_erasures(tx, at(4), 10)), 0, "{}", t.name);
        let later = at(3).plus(std::time::Duration::from_hours(100));
        assert_eq!(commit!(t.db, |tx| memory::expire_erasures(tx, later, 10)), 1, "{}", t.name);
        assert!(last("s").await.is_none() && !since(one, "s", first).await, "{}", t.name);
    }
}

#[tokio::test]
async fn an_answer_is_found_while_it_is_young_and_its_trace_is_kept() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let agent = agent(&t.db, owner, at(0)).await;
        let mut ids = Vec::new();
        for created in [10, 20] {
            let trace = StoredTrace {
                id: TraceId::generate(),
                agent_id: agent,
                session: None,
                question: None,
                created_at: at(created),
                complete: true,
                body: Json(json!({})),
                rating: None,
                feedback: None,
                feedback_at: None,
                user_id: None,
                token_id: None,
            };
            let record = Json(json!({"version": 1}));
            commit!(t.db, |tx| traces::insert(tx, run_in(owner), &trace, Some(&record), at(100)));
            commit!(t.db, |tx| cached_answers::put(tx, owner, b"key", trace.id, at(created)));
            ids.push(trace.id);
        }
        let find = async |workspace, key: &[u8], since, now| {
            cached_answers::find(&t.db, workspace, key, at(since), at(now)).await.unwrap()
        };
        assert_eq!(find(owner, b"key", 20, 30).await, Some(ids[1]), "{}", t.name);
        assert_eq!(find(owner, b"key", 21, 30).await, None, "too old: {}", t.name);
        assert_eq!(find(owner, b"key", 0, 100).await, None, "the trace has gone: {}", t.name);
        assert_eq!(find(owner, b"yek", 0, 30).await, None, "{}", t.name);
        assert_eq!(find(other, b"key", 0, 30).await, None, "{}", t.name);
        let (_, record) =
            traces::find_with_record(&t.db, owner, None, ids[1], at(30)).await.unwrap().unwrap();
        assert_eq!(record.unwrap().0, json!({"version": 1}), "{}", t.name);
        assert!(
            traces::find_with_record(&t.db, other, None, ids[1], at(30)).await.unwrap().is_none(),
            "{}",
            t.name
        );
        while commit!(t.db, |tx| traces::expire(tx, at(100), 10)) > 0 {}
        assert_eq!(find(owner, b"key", 0, 30).await, None, "{}", t.name);
    }
}

/// Gives an agent a page that is asked by a token.
async fn publish(db: &Db, workspace: WorkspaceId, agent: AgentId, token: ApiTokenId) {
    let page = Publication {
        id: PublicationId::generate(),
        owner: made_in(workspace),
        agent_id: agent,
        slug: "page".to_owned(),
        access: PublicationAccess::Public,
        title: String::new(),
        greeting: String::new(),
        questions: Json(Vec::new()),
        accent: String::new(),
        origins: Json(Vec::new()),
        token_id: Some(token),
        created_at: at(0),
        updated_at: at(0),
    };
    assert!(commit!(db, |tx| publications::put(tx, &page)));
}

/// The sessions of which an agent remembers something, when what nobody can ask for any more was looked for.
async fn sessions_left(db: &Db, agent: AgentId, guests_before: u64) -> Vec<String> {
    let before = at(guests_before);
    assert!(!commit!(db, |tx| memory::forget_unreachable(tx, Uuid::nil(), Uuid::max(), before)), "few");
    on!(db, |c| sqlx::query_scalar("SELECT session FROM agent_memory WHERE agent_id = $1 ORDER BY session")
        .bind(agent)
        .fetch_all(c))
    .unwrap()
}

#[tokio::test]
async fn what_nobody_can_ask_for_any_more_is_forgotten_and_nothing_else() {
    for t in &both().await {
        let (home, member) = (workspace(&t.db, at(0)).await, user(&t.db, at(0)).await);
        commit!(t.db, |tx| members::put(tx, home, member, Role::Builder, at(0)));
        let agent = agent(&t.db, home, at(0)).await;
        let [page, bound] = [new_token(made_in(home), at(0)), new_token(made_in(home), at(0))];
        for token in [&page, &bound] {
            commit!(t.db, |tx| api_tokens::insert(tx, token, token.id.as_uuid().as_bytes()));
        }
        publish(&t.db, home, agent, page.id).await;
        for (user, token, session, said_at) in [
            (account_of(home), None, "a", 1),
            (member, None, "b", 1),
            (account_of(home), Some(bound.id), "c", 1),
            (account_of(home), Some(page.id), "d", 1),
            (account_of(home), Some(page.id), "e", 9),
        ] {
            let owner = RunOwner { workspace_id: home, user, token };
            commit!(t.db, |tx| memory::add(tx, owner, agent, session, &turn(1), at(said_at), 3));
        }
        remember(&t.db, home, agent, "f").await;
        assert_eq!(sessions_left(&t.db, agent, 1).await, ["a", "b", "c", "d", "e", "f"], "{}", t.name);
        assert_eq!(sessions_left(&t.db, agent, 5).await, ["a", "b", "c", "e", "f"], "{}", t.name);
        commit!(t.db, |tx| members::remove(tx, home, member, at(9)));
        assert_eq!(sessions_left(&t.db, agent, 5).await, ["a", "c", "e", "f"], "{}", t.name);
        commit!(t.db, |tx| api_tokens::delete(tx, home, bound.id));
        assert_eq!(sessions_left(&t.db, agent, 5).await, ["a", "e", "f"], "{}", t.name);
        commit!(t.db, |tx| publications::delete(tx, home, agent));
        commit!(t.db, |tx| api_tokens::delete(tx, home, page.id));
        assert_eq!(sessions_left(&t.db, agent, 5).await, ["a", "f"], "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_remembered_is_looked_through_part_by_part() {
    for t in &both().await {
        let (home, member) = (workspace(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let agent = agent(&t.db, home, at(0)).await;
        let gone = RunOwner { user: member, ..run_in(home) };
        for session in ["a", "b", "c", "d", "e"] {
            commit!(t.db, |tx| memory::add(tx, gone, agent, session, &turn(1), at(1), 3));
        }
        let (mut after, mut left) = (Uuid::nil(), Vec::new());
        while let Some(last) = memory::end_of_next(&t.db, after, 2).await.unwrap() {
            commit!(t.db, |tx| memory::forget_unreachable(tx, after, last, at(0)));
            let counted: i64 =
                on!(t.db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM agent_memory").fetch_one(c)).unwrap();
            left.push(counted);
            after = last;
        }
        assert_eq!(left, [3, 1], "{}", t.name);
        assert_eq!(sessions_left(&t.db, agent, 0).await, [""; 0], "{}", t.name);
    }
}
