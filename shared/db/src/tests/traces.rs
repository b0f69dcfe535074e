//! Records of predict runs.

use lectern_shared::{
    ids::{AgentId, ApiTokenId, AskerId, DocumentId, TraceId, UserId, WorkspaceId},
    model::{Json, workspace::RunOwner},
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    Db, cached_answers,
    memory::{self, ConversationTurn},
    on,
    testing::{at, both, commit, run_in, workspace},
    tests::agents::agent,
    traces::{self, DELETED_TOGETHER, ErasedRuns, StoredTrace, TraceFilter},
};

pub(super) fn kept(agent: AgentId) -> StoredTrace {
    StoredTrace {
        id: TraceId::generate(),
        agent_id: agent,
        session: Some("Sitzung 1".to_owned()),
        question: None,
        created_at: at(1),
        complete: false,
        body: Json(json!({"output": "a\u{0}b", "steps": [1, 2.5, null]})),
        rating: None,
        feedback: None,
        feedback_at: None,
        user_id: None,
        token_id: None,
    }
}

/// What is remembered of a run.
fn turn_of(trace: TraceId) -> ConversationTurn {
    ConversationTurn { question: "Yes?".to_owned(), answer: "No.".to_owned(), tokens: 1, trace: Some(trace) }
}

async fn trace(db: &Db, workspace: WorkspaceId, agent: AgentId, expires_at: u64) -> StoredTrace {
    let trace = kept(agent);
    commit!(db, |tx| traces::insert(tx, run_in(workspace), &trace, None, at(expires_at)));
    trace
}

async fn list(
    db: &Db,
    workspace: WorkspaceId,
    agent: Option<AgentId>,
    now: u64,
    before: TraceId,
) -> Vec<TraceId> {
    let filter = TraceFilter { agent, ..TraceFilter::default() };
    traces::list(db, workspace, None, &filter, at(now), before, 2)
        .await
        .unwrap()
        .iter()
        .map(|trace| trace.id)
        .collect()
}

#[tokio::test]
async fn a_conversation_is_its_own_members_and_its_agents_the_latest_first() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (asked, other) = (agent(&t.db, owner, at(0)).await, agent(&t.db, owner, at(0)).await);
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(trace(&t.db, owner, asked, 100).await.id);
        }
        trace(&t.db, owner, other, 100).await;
        let (all, own) = (TraceId::from(Uuid::nil()), run_in(owner));
        let stranger = RunOwner { user: UserId::generate(), ..own };
        let by_token = RunOwner { token: Some(ApiTokenId::generate()), ..own };
        let nothing: &[TraceId] = &[];
        for (of, session, now, after, limit, found) in [
            (own, "Sitzung 1", 1, all, 9, &[ids[2], ids[1], ids[0]][..]),
            (own, "Sitzung 1", 1, all, 2, &[ids[2], ids[1]]),
            (own, "Sitzung 1", 1, ids[0], 9, &[ids[2], ids[1]]),
            (own, "Sitzung 2", 1, all, 9, nothing),
            (stranger, "Sitzung 1", 1, all, 9, nothing),
            (by_token, "Sitzung 1", 1, all, 9, nothing),
            (own, "Sitzung 1", 100, all, 9, nothing),
        ] {
            let listed = traces::of_session(&t.db, of, asked, session, at(now), after, limit).await.unwrap();
            assert_eq!(listed, found, "{}: {session} at {now}", t.name);
        }
    }
}

#[tokio::test]
async fn a_trace_is_read_as_it_was_written_by_its_owner_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let agent = agent(&t.db, owner, at(0)).await;
        let alone = kept(agent);
        traces::insert_relaxed(&t.db, run_in(owner), &alone, None, at(100)).await.unwrap();
        for written in [alone, trace(&t.db, owner, agent, 100).await] {
            let read = traces::find(&t.db, owner, None, written.id, at(1)).await.unwrap().unwrap();
            let written = StoredTrace { user_id: Some(run_in(owner).user), ..written };
            assert_eq!(format!("{read:?}"), format!("{written:?}"), "{}", t.name);
            let read = traces::find(&t.db, other, None, written.id, at(1)).await.unwrap();
            assert!(read.is_none(), "{}", t.name);
        }
        for of in [None, Some(agent)] {
            assert!(list(&t.db, other, of, 1, uuid::Uuid::max().into()).await.is_empty(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_trace_is_deleted_alone_and_its_workspaces_or_its_askers_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let agent = agent(&t.db, owner, at(0)).await;
        let (gone, kept) =
            (trace(&t.db, owner, agent, 100).await.id, trace(&t.db, owner, agent, 100).await.id);
        commit!(t.db, |tx| cached_answers::put(tx, owner, b"key", gone, at(1)));
        let own = run_in(owner);
        let stranger = RunOwner { user: UserId::generate(), ..own };
        let by_token = RunOwner { token: Some(ApiTokenId::generate()), ..own };
        for (workspace, of, now) in [
            (other, None, 1),
            (owner, Some(stranger), 1),
            (owner, Some(by_token), 1),
            // It has expired.
            (owner, None, 100),
        ] {
            let deleted = commit!(t.db, |tx| traces::delete(tx, workspace, of, gone, at(now)));
            assert_eq!(deleted, None, "{}: {of:?} at {now}", t.name);
        }
        let end: TraceId = uuid::Uuid::max().into();
        assert_eq!(list(&t.db, owner, None, 1, end).await, [kept, gone], "{}", t.name);
        assert_eq!(commit!(t.db, |tx| traces::delete(tx, owner, Some(own), gone, at(1))), Some(own));
        assert_eq!(list(&t.db, owner, None, 1, end).await, [kept], "{}", t.name);
        let again: i64 =
            on!(t.db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM cached_answers").fetch_one(c)).unwrap();
        assert_eq!(again, 0, "{}: it is not given again", t.name);
        assert_eq!(commit!(t.db, |tx| traces::delete(tx, owner, None, kept, at(1))), Some(own));
    }
}

#[tokio::test]
async fn traces_are_listed_by_who_asked_and_nobody_sees_more_by_asking_for_another() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let own = run_in(workspace);
        let other = RunOwner { user: UserId::generate(), ..own };
        let by_token = RunOwner { token: Some(ApiTokenId::generate()), ..own };
        let mut ids = Vec::new();
        for owner in [own, other, by_token, own] {
            let trace = kept(agent);
            commit!(t.db, |tx| traces::insert(tx, owner, &trace, None, at(100)));
            ids.push(trace.id);
        }
        let nobody = AskerId::generate();
        let nothing: &[TraceId] = &[];
        for (of, asker, found) in [
            (None, None, &[ids[3], ids[2], ids[1], ids[0]][..]),
            (None, Some(own.asker()), &[ids[3], ids[0]]),
            (None, Some(other.asker()), &[ids[1]]),
            (None, Some(by_token.asker()), &[ids[2]]),
            (None, Some(nobody), nothing),
            (Some(own), None, &[ids[3], ids[0]]),
            (Some(own), Some(own.asker()), &[ids[3], ids[0]]),
            (Some(own), Some(other.asker()), nothing),
            (Some(by_token), Some(own.asker()), nothing),
        ] {
            let filter = TraceFilter { asker, ..TraceFilter::default() };
            let end: TraceId = Uuid::max().into();
            let listed = traces::list(&t.db, workspace, of, &filter, at(1), end, 9).await.unwrap();
            let listed_ids: Vec<TraceId> = listed.iter().map(|trace| trace.id).collect();
            assert_eq!(listed_ids, found, "{}: {of:?} {asker:?}", t.name);
            let told = asker.or(of.map(|of| of.asker()));
            assert!(listed.iter().all(|trace| told.is_none() || trace.asker() == told), "{}", t.name);
        }
        let (found, _) =
            traces::find_with_record(&t.db, workspace, None, ids[2], at(1)).await.unwrap().unwrap();
        assert_eq!((found.user_id, found.token_id), (Some(by_token.user), by_token.token), "{}", t.name);
    }
}

#[tokio::test]
async fn what_one_asked_is_found_by_an_index() {
    let plan = both().await[0].query_plan(traces::SELECT_OF_ASKER).await;
    assert!(plan.iter().any(|step| step.contains("traces_by_asker")), "{plan:?}");
    assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
}

#[tokio::test]
async fn all_that_one_asked_is_deleted_part_by_part_and_nothing_of_others() {
    for t in &both().await {
        let (ours, theirs) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (agent, elsewhere) = (agent(&t.db, ours, at(0)).await, agent(&t.db, theirs, at(0)).await);
        let gone = RunOwner { user: UserId::generate(), ..run_in(ours) };
        let by_token = RunOwner { token: Some(ApiTokenId::generate()), ..gone };
        let abroad = RunOwner { workspace_id: theirs, ..gone };
        let turn = turn_of(TraceId::generate());
        for (owner, agent) in [(run_in(ours), agent), (by_token, agent), (abroad, elsewhere)] {
            commit!(t.db, |tx| traces::insert(tx, owner, &kept(agent), None, at(100)));
            commit!(t.db, |tx| memory::add(tx, owner, agent, "s", &turn, at(1), 9));
        }
        commit!(t.db, |tx| async {
            for expires_at in 0..=u64::from(DELETED_TOGETHER) {
                traces::insert(tx, gone, &kept(agent), None, at(expires_at)).await?;
            }
            memory::add(tx, gone, agent, "s", &turn, at(1), 9).await
        });
        let whole = u64::from(DELETED_TOGETHER);
        let erase =
            async |workspace, asker| commit!(t.db, |tx| traces::delete_some_of_asker(tx, workspace, asker));
        let first = ErasedRuns { traces: whole, turns: 1, has_more: true };
        assert_eq!(erase(ours, gone.asker()).await, first, "{}", t.name);
        let second = ErasedRuns { traces: 1, turns: 0, has_more: false };
        assert_eq!(erase(ours, gone.asker()).await, second, "{}", t.name);
        assert_eq!(erase(ours, gone.asker()).await, ErasedRuns::default(), "{}", t.name);
        let one = ErasedRuns { traces: 1, turns: 1, has_more: false };
        for (workspace, owner) in [(ours, run_in(ours)), (ours, by_token), (theirs, abroad)] {
            assert_eq!(erase(workspace, owner.asker()).await, one, "{}: {owner:?}", t.name);
        }
    }
}

#[tokio::test]
async fn of_two_turns_with_the_same_words_the_one_of_the_run_is_forgotten() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, owner) = (agent(&t.db, workspace, at(0)).await, run_in(workspace));
        let [first, second] = [TraceId::generate(), TraceId::generate()];
        let unknown = ConversationTurn { trace: None, ..turn_of(first) };
        let remembered = async || memory::latest(&t.db, owner, agent, "s", 99).await.unwrap().len();
        for turn in [&turn_of(first), &turn_of(second)] {
            commit!(t.db, |tx| memory::add(tx, owner, agent, "s", turn, at(1), 9));
        }
        commit!(t.db, |tx| memory::forget_turn(tx, owner, agent, "s", first, Some("Yes?")));
        assert_eq!(remembered().await, 1, "{}", t.name);
        // What was asked is not known any more, and need not be.
        commit!(t.db, |tx| memory::forget_turn(tx, owner, agent, "s", second, None));
        assert_eq!(remembered().await, 0, "{}", t.name);
        commit!(t.db, |tx| memory::add(tx, owner, agent, "s", &unknown, at(1), 9));
        for question in [None, Some("No?")] {
            commit!(t.db, |tx| memory::forget_turn(tx, owner, agent, "s", first, question));
            assert_eq!(remembered().await, 1, "{}: {question:?}", t.name);
        }
        commit!(t.db, |tx| memory::forget_turn(tx, owner, agent, "s", first, Some("Yes?")));
        assert_eq!(remembered().await, 0, "{}", t.name);
    }
}

#[tokio::test]
async fn traces_are_listed_newest_first_for_one_agent_or_all() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (a, b) = (agent(&t.db, workspace, at(0)).await, agent(&t.db, workspace, at(0)).await);
        let mut ids = Vec::new();
        for agent in [a, b, a, a] {
            ids.push(trace(&t.db, workspace, agent, 100).await.id);
        }
        let end: TraceId = uuid::Uuid::max().into();
        for (agent, before, expected) in [
            (None, end, vec![ids[3], ids[2]]),
            (None, ids[2], vec![ids[1], ids[0]]),
            (Some(a), end, vec![ids[3], ids[2]]),
            (Some(a), ids[2], vec![ids[0]]),
            (Some(b), end, vec![ids[1]]),
        ] {
            assert_eq!(list(&t.db, workspace, agent, 1, before).await, expected, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_trace_is_found_by_the_beginning_of_its_question_as_far_back_as_is_looked() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (ours, theirs) = (agent(&t.db, owner, at(0)).await, agent(&t.db, other, at(0)).await);
        let asked = async |workspace: WorkspaceId, agent: AgentId, question: &str| {
            let trace = StoredTrace { question: Some(question.to_owned()), ..kept(agent) };
            commit!(t.db, |tx| traces::insert(tx, run_in(workspace), &trace, None, at(100)));
            trace.id
        };
        let first = asked(owner, ours, "Wann \u{d6}FFNET\u{0} das Tor?").await;
        let second = asked(owner, ours, "Wer o\u{308}ffnet es?").await;
        // As long as any that is kept, in letters that take the most room.
        let long: String = ('\u{20000}'..='\u{20300}').collect();
        let third = asked(owner, ours, &format!("{long} \u{f6}ffnet")).await;
        trace(&t.db, owner, ours, 100).await;
        asked(other, theirs, "\u{f6}ffnet").await;

        let end: TraceId = Uuid::max().into();
        let found = async |question: &str, since: Option<TraceId>| {
            let question = question.to_owned();
            let filter = TraceFilter { question, since, ..TraceFilter::default() };
            let found = traces::list(&t.db, owner, None, &filter, at(1), end, 9).await.unwrap();
            found.iter().map(|trace| trace.id).collect::<Vec<_>>()
        };
        assert_eq!(found("\u{f6}FFNET", None).await, [second, first], "{}", t.name);
        assert_eq!(found("\u{f6}ffnet", Some(second)).await, [second], "{}", t.name);
        assert_eq!(found("das tor", None).await, [first], "{}", t.name);
        assert_eq!(found("\u{20000}", None).await, [third], "{}", t.name);
        let question = "\u{f6}ffnet".to_owned();
        for (asked, of, expected) in [
            (Some(ours), None, vec![second, first]),
            (Some(theirs), None, vec![]),
            (None, Some(run_in(owner)), vec![second, first]),
            (None, Some(run_in(other)), vec![]),
        ] {
            let filter = TraceFilter { agent: asked, question: question.clone(), ..TraceFilter::default() };
            let found = traces::list(&t.db, owner, of, &filter, at(1), end, 9).await.unwrap();
            let found: Vec<TraceId> = found.iter().map(|trace| trace.id).collect();
            assert_eq!(found, expected, "{}: {asked:?}, {of:?}", t.name);
        }

        for (before, most, last) in [
            (end, 2, Some(third)),
            (end, 3, Some(second)),
            (end, 4, None),
            (third, 1, Some(second)),
            (second, 1, None),
            (first, 1, None),
        ] {
            let found = traces::search_end(&t.db, owner, before, most).await.unwrap();
            assert_eq!(found, last, "{}: {most}", t.name);
        }
    }
}

#[tokio::test]
async fn traces_are_gone_through_from_the_newest_on_and_those_that_name_a_document_have_their_body() {
    for t in &both().await {
        let (ours, theirs) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (agent, other) = (agent(&t.db, ours, at(0)).await, agent(&t.db, theirs, at(0)).await);
        let (named, unnamed) = (DocumentId::generate(), DocumentId::generate());
        let naming = async |owner: RunOwner, agent, document: DocumentId, expires_at| {
            let body = json!({"citations": [{"documentId": document, "chunkId": "c"}]});
            let trace = StoredTrace { body: Json(body), ..kept(agent) };
            commit!(t.db, |tx| traces::insert(tx, owner, &trace, None, at(expires_at)));
            trace
        };
        let owner = run_in(ours);
        let by_token = RunOwner { token: Some(ApiTokenId::generate()), ..owner };
        let first = naming(owner, agent, named, 100).await;
        let between = naming(owner, agent, unnamed, 100).await;
        let of_token = naming(by_token, agent, named, 100).await;
        naming(owner, agent, named, 10).await;
        let of_others = naming(run_in(theirs), other, named, 100).await;
        let last = naming(owner, agent, named, 100).await;

        let found = async |owner: RunOwner, now: u64, before: TraceId, limit: u32| {
            let found = traces::naming(&t.db, owner, named, at(now), before, limit).await.unwrap();
            let body = |body: String| serde_json::from_str::<serde_json::Value>(&body).unwrap();
            found.into_iter().map(|(id, named)| (id, named.map(body))).collect::<Vec<_>>()
        };
        let end: TraceId = uuid::Uuid::max().into();
        let whole = |trace: &StoredTrace| (trace.id, Some(trace.body.0.clone()));
        let all = [whole(&last), (between.id, None), whole(&first)];
        assert_eq!(found(owner, 10, end, 100).await, all, "{}", t.name);
        // One that names something else counts as one that was looked at.
        assert_eq!(found(owner, 10, end, 2).await, all[..2], "{}", t.name);
        assert_eq!(found(owner, 10, between.id, 2).await, all[2..], "{}", t.name);
        assert_eq!(found(by_token, 10, end, 100).await, [whole(&of_token)], "{}", t.name);
        assert_eq!(found(run_in(theirs), 10, end, 100).await, [whole(&of_others)], "{}", t.name);
        assert!(found(owner, 100, end, 100).await.is_empty(), "{}: they have expired", t.name);
    }
}

#[tokio::test]
async fn an_expired_trace_is_gone_before_it_is_swept() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let mut ids = Vec::new();
        for expires_at in [10, 10, 10, 20] {
            ids.push(trace(&t.db, workspace, agent, expires_at).await.id);
        }
        let end: TraceId = uuid::Uuid::max().into();
        assert!(traces::find(&t.db, workspace, None, ids[0], at(9)).await.unwrap().is_some(), "{}", t.name);
        assert!(traces::find(&t.db, workspace, None, ids[0], at(10)).await.unwrap().is_none(), "{}", t.name);
        assert_eq!(list(&t.db, workspace, None, 10, end).await, [ids[3]], "{}", t.name);

        assert_eq!(commit!(t.db, |tx| traces::expire(tx, at(9), 10)), 0, "{}", t.name);
        for swept in [2, 1, 0] {
            assert_eq!(commit!(t.db, |tx| traces::expire(tx, at(10), 2)), swept, "{}", t.name);
        }
        // What was swept is gone whatever the time.
        assert_eq!(list(&t.db, workspace, None, 0, end).await, [ids[3]], "{}", t.name);
    }
}
