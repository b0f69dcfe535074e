//! Sources, their runs, and what is known of their items.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::{SourceId, WorkspaceId},
    model::{
        sync::{SyncCounts, SyncOutcome, SyncRun, SyncRunState, SyncSource},
        workspace::RowOwner,
    },
};

use crate::{
    Db,
    documents::browse::{self, DocumentFilter, DocumentOrder},
    sync::{
        self,
        items::{self, SeenItem},
        runs::{self, RunRequest},
    },
    testing::{account_of, at, both, commit, document, workspace},
    tests::sealed::source,
};

async fn added(db: &Db, workspace: WorkspaceId) -> SourceId {
    let source = source(workspace, None);
    commit!(db, |tx| sync::insert(tx, &source));
    source.id
}

async fn queued(db: &Db, workspace: WorkspaceId, source: SourceId) -> Option<SyncRun> {
    commit!(db, |tx| runs::insert(tx, workspace, source, RunRequest::default(), at(1)))
}

async fn claimed(db: &Db, now: Timestamp, of_one: u32) -> Option<SyncRun> {
    let until = now.plus(Duration::from_mins(1));
    commit!(db, |tx| runs::claim(tx, now, until, of_one))
}

#[tokio::test]
async fn a_source_has_one_run_at_a_time_and_a_workspace_not_all_of_them() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (one, two, hers) = (added(&t.db, ada).await, added(&t.db, ada).await, added(&t.db, grace).await);
        for source in [one, two] {
            assert!(queued(&t.db, ada, source).await.is_some(), "{}", t.name);
            assert!(queued(&t.db, ada, source).await.is_none(), "{}: one is under way", t.name);
        }
        assert!(queued(&t.db, grace, hers).await.is_some(), "{}", t.name);
        let first = claimed(&t.db, at(10), 1).await.expect(t.name);
        assert_eq!((first.source_id, first.attempts), (one, 1), "{}", t.name);
        let second = claimed(&t.db, at(10), 1).await.expect(t.name);
        assert_eq!(second.source_id, hers, "{}: the workspace has its share", t.name);
        assert!(claimed(&t.db, at(10), 1).await.is_none(), "{}", t.name);
        // Its worker was silent for a lease: another takes over, and it may do nothing any more.
        let again = claimed(&t.db, at(80), 1).await.expect(t.name);
        assert_eq!((again.id, again.attempts), (first.id, 2), "{}", t.name);
        let more = SyncCounts { added: 1, ..SyncCounts::default() };
        let hold = async |run: &SyncRun| {
            let claim = run.claim_id.expect("it is claimed");
            commit!(t.db, |tx| runs::hold(tx, run.id, claim, at(200), &more))
        };
        assert!(!hold(&first).await && hold(&again).await, "{}", t.name);
        let told = runs::find(&t.db, ada, one, first.id).await.unwrap().unwrap();
        assert_eq!(told.counts, more, "{}: it counts once", t.name);
        let end = async |run: &SyncRun, state| commit!(t.db, |tx| runs::end(tx, run, state, None, at(90)));
        assert!(!end(&first, SyncRunState::Failed).await, "{}", t.name);
        assert!(end(&again, SyncRunState::Succeeded).await, "{}", t.name);
        assert!(queued(&t.db, ada, one).await.is_some(), "{}: it has ended", t.name);
    }
}

#[tokio::test]
async fn an_account_of_many_workspaces_has_no_more_of_the_runs_than_of_one() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let shared = workspace(&t.db, at(0)).await;
        let elsewhere = SyncSource { owner: RowOwner::new(shared, account_of(ada)), ..source(shared, None) };
        commit!(t.db, |tx| sync::insert(tx, &elsewhere));
        let (one, hers) = (added(&t.db, ada).await, added(&t.db, grace).await);
        for (workspace, source) in [(ada, one), (shared, elsewhere.id), (grace, hers)] {
            assert!(queued(&t.db, workspace, source).await.is_some(), "{}", t.name);
        }
        let first = claimed(&t.db, at(10), 1).await.expect(t.name);
        let second = claimed(&t.db, at(10), 1).await.expect(t.name);
        assert_eq!([first.source_id, second.source_id], [one, hers], "{}", t.name);
        assert!(claimed(&t.db, at(10), 1).await.is_none(), "{}: the account has its share", t.name);
        assert!(commit!(t.db, |tx| runs::end(tx, &first, SyncRunState::Succeeded, None, at(20))));
        let third = claimed(&t.db, at(30), 1).await.expect(t.name);
        assert_eq!(third.source_id, elsewhere.id, "{}", t.name);
    }
}

/// Else all that ever were would be read over and over, once for each that waits.
#[tokio::test]
async fn the_next_run_is_found_without_reading_those_that_have_ended() {
    let tests = both().await;
    for statement in [runs::CLAIM, runs::DUE] {
        let plan = tests[0].query_plan(statement).await;
        let reads_all = |step: &&String| step.starts_with("SCAN") && !step.contains("source_runs_due");
        assert_eq!(plan.iter().find(reads_all), None, "{plan:#?}");
    }
}

#[tokio::test]
async fn a_source_that_could_not_be_read_is_told_of_until_it_could() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let source = added(&t.db, ada).await;
        let begin = async |seconds| {
            queued(&t.db, ada, source).await.expect(t.name);
            claimed(&t.db, at(seconds), 1).await.expect(t.name)
        };
        let end = async |run: &SyncRun, state, why: Option<&str>| {
            assert!(commit!(t.db, |tx| runs::end(tx, run, state, why, at(90))), "{}", t.name);
        };
        let failing = async |workspace| runs::failing(&t.db, workspace, 5).await.unwrap();
        end(&begin(10).await, SyncRunState::Succeeded, None).await;
        assert!(failing(ada).await.is_empty(), "{}", t.name);
        end(&begin(20).await, SyncRunState::Failed, Some("It is away.")).await;
        let told = [(source, "folder".to_owned(), Some("It is away.".to_owned()))];
        assert_eq!(failing(ada).await, told, "{}", t.name);
        assert!(failing(grace).await.is_empty(), "{}: it is another workspace's", t.name);
        // One that is under way, or was stopped, has not shown that it can be read.
        let stopped = begin(30).await;
        assert_eq!(failing(ada).await, told, "{}", t.name);
        commit!(t.db, |tx| runs::cancel(tx, ada, stopped.id, "", at(31)));
        assert_eq!(failing(ada).await, told, "{}", t.name);
        end(&begin(40).await, SyncRunState::Succeeded, None).await;
        assert!(failing(ada).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_run_that_is_given_back_was_taken_up_only_where_that_counts() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let source = added(&t.db, owner).await;
        queued(&t.db, owner, source).await.expect(t.name);
        for (counts, attempts) in [(false, 1), (true, 1), (false, 2)] {
            let run = claimed(&t.db, at(10), 1).await.expect(t.name);
            assert_eq!(run.attempts, attempts, "{}", t.name);
            let claim = run.claim_id.expect(t.name);
            commit!(t.db, |tx| runs::release(tx, run.id, claim, counts));
        }
    }
}

#[tokio::test]
async fn what_a_run_has_not_seen_is_gone_once_somebody_says_so() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let source = added(&t.db, owner).await;
        queued(&t.db, owner, source).await.expect(t.name);
        let run = claimed(&t.db, at(10), 1).await.expect(t.name);
        let mut documents = Vec::new();
        for key in ["a", "b", "c"] {
            let document = document(&t.db, owner, key, at(0)).await;
            let item = SeenItem {
                key,
                document,
                name: Some(key),
                etag: Some("1"),
                last_modified: None,
                sha256: None,
                links: None,
                entry_id: None,
            };
            commit!(t.db, |tx| items::put(tx, &run, &item));
            let known = items::find(&t.db, source, key).await.unwrap().expect(t.name);
            assert_eq!(known.name.as_deref(), Some(key), "{}", t.name);
            documents.push(document);
        }
        // Each document says where it comes from, to its own workspace, and is found by that.
        let other = workspace(&t.db, at(0)).await;
        let of = items::sources_of(&t.db, owner, documents[0]).await.unwrap();
        assert_eq!(of, [(source, "folder".to_owned())], "{}", t.name);
        assert!(items::sources_of(&t.db, other, documents[0]).await.unwrap().is_empty(), "{}", t.name);
        document(&t.db, owner, "of no source", at(0)).await;
        let filter = DocumentFilter { source: Some(source), ..DocumentFilter::default() };
        assert_eq!(browse::count(&t.db, owner, &filter, 10).await.unwrap(), 3, "{}", t.name);
        assert_eq!(browse::count(&t.db, other, &filter, 10).await.unwrap(), 0, "{}", t.name);
        let found = browse::browse(&t.db, owner, &filter, DocumentOrder::Oldest, None, 10).await.unwrap();
        assert_eq!(found.iter().map(|document| document.id).collect::<Vec<_>>(), documents, "{}", t.name);
        commit!(t.db, |tx| runs::end(tx, &run, SyncRunState::Succeeded, None, at(20)));
        queued(&t.db, owner, source).await.expect(t.name);
        let run = claimed(&t.db, at(30), 1).await.expect(t.name);
        commit!(t.db, |tx| items::see(tx, &run, "a"));
        // Somebody deletes one of the others meanwhile.
        assert!(
            commit!(t.db, |tx| crate::documents::delete(tx, owner, documents[1], at(31), at(31))),
            "{}",
            t.name
        );
        assert_eq!(items::unseen(&t.db, &run, "", 10).await.unwrap(), ["b", "c"], "{}", t.name);
        assert_eq!(items::unseen(&t.db, &run, "b", 10).await.unwrap(), ["c"], "{}", t.name);
        commit!(t.db, |tx| items::note_unseen(tx, &run, "It is gone."));
        assert_eq!(commit!(t.db, |tx| items::share_gone(tx, &run)), (2, 1), "{}", t.name);
        assert!(items::find(&t.db, source, "b").await.unwrap().is_none(), "{}: it is forgotten", t.name);
        let why = Some("1 of 2 is gone.");
        commit!(t.db, |tx| runs::end(tx, &run, SyncRunState::Waiting, why, at(40)));
        assert!(claimed(&t.db, at(900), 1).await.is_none(), "{}: it waits", t.name);
        assert!(queued(&t.db, owner, source).await.is_none(), "{}: and no other begins", t.name);
        let asking = runs::waiting(&t.db, owner, 5).await.unwrap();
        assert_eq!(asking, [(source, "folder".to_owned())], "{}", t.name);
        let by = account_of(owner);
        assert!(commit!(t.db, |tx| runs::confirm(tx, owner, run.id, by)).is_some(), "{}", t.name);
        assert!(commit!(t.db, |tx| runs::confirm(tx, owner, run.id, by)).is_none(), "{}: once", t.name);
        let run = claimed(&t.db, at(50), 1).await.expect(t.name);
        assert_eq!(run.confirmed_by, Some(by), "{}", t.name);
        let gone = items::to_delete(&t.db, run.id, 10).await.unwrap();
        assert_eq!(gone, [("c".to_owned(), documents[2])], "{}", t.name);
        let outcome = items::outcome(&t.db, run.id, "c").await.unwrap();
        assert_eq!(outcome, Some(SyncOutcome::Gone), "{}", t.name);
        // Cut off in the middle of its deletions, it has as many documents as when it began them.
        assert!(
            commit!(t.db, |tx| crate::documents::delete(tx, owner, documents[2], at(51), at(51))),
            "{}",
            t.name
        );
        commit!(t.db, |tx| items::forget(tx, source, "c"));
        assert_eq!(commit!(t.db, |tx| items::share_gone(tx, &run)), (2, 1), "{}", t.name);
    }
}

#[tokio::test]
async fn whoever_is_to_delete_what_is_gone_may_not_once_the_source_is_another_one() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let source = added(&t.db, owner).await;
        let by = account_of(owner);
        let waiting = async || {
            queued(&t.db, owner, source).await.expect(t.name);
            let run = claimed(&t.db, at(10), 1).await.expect(t.name);
            commit!(t.db, |tx| runs::end(tx, &run, SyncRunState::Waiting, None, at(20)));
            run.id
        };
        let confirm = async |id| commit!(t.db, |tx| runs::confirm(tx, owner, id, by)).is_some();
        let state = async |id| runs::find(&t.db, owner, source, id).await.unwrap().expect(t.name).state;
        for (is_confirmed, is_claimed) in [(false, false), (true, false), (true, true)] {
            let what = format!("{}: {is_confirmed} {is_claimed}", t.name);
            let id = waiting().await;
            assert!(!is_confirmed || confirm(id).await, "{what}");
            let claim =
                if is_claimed { claimed(&t.db, at(30), 1).await.expect(&what).claim_id } else { None };
            commit!(t.db, |tx| runs::cancel_deletion(tx, owner, source, "It is another one.", at(40)));
            let run = runs::find(&t.db, owner, source, id).await.unwrap().expect(&what);
            assert_eq!((run.state, run.finished_at), (SyncRunState::Cancelled, Some(at(40))), "{what}");
            assert_eq!(run.error.as_deref(), Some("It is another one."), "{what}");
            assert!(!confirm(id).await && claimed(&t.db, at(900), 1).await.is_none(), "{what}");
            if let Some(claim) = claim {
                let nothing = SyncCounts::default();
                assert!(!commit!(t.db, |tx| runs::hold(tx, id, claim, at(100), &nothing)), "{what}");
            }
        }
        // What only looks sees for itself that the source is another one.
        let looking = queued(&t.db, owner, source).await.expect(t.name).id;
        commit!(t.db, |tx| runs::cancel_deletion(tx, owner, source, "It is another one.", at(50)));
        assert_eq!(state(looking).await, SyncRunState::Queued, "{}", t.name);
        let run = claimed(&t.db, at(60), 1).await.expect(t.name);
        for (key, outcome) in [("gone", SyncOutcome::Gone), ("failed", SyncOutcome::Failed)] {
            commit!(t.db, |tx| items::note(tx, &run, key, outcome, None, None));
        }
        commit!(t.db, |tx| runs::cancel_deletion(tx, owner, source, "It is another one.", at(70)));
        assert_eq!(state(looking).await, SyncRunState::Running, "{}", t.name);
        let outcome = async |key| items::outcome(&t.db, looking, key).await.unwrap();
        assert_eq!(outcome("gone").await, None, "{}: the other one may have it", t.name);
        assert_eq!(outcome("failed").await, Some(SyncOutcome::Failed), "{}", t.name);
    }
}

#[tokio::test]
async fn what_a_run_went_past_and_warns_of_is_told_with_it() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let source = added(&t.db, owner).await;
        queued(&t.db, owner, source).await.expect(t.name);
        let first = claimed(&t.db, at(10), 1).await.expect(t.name);
        for key in ["kept", "deleted", "gone"] {
            let document = document(&t.db, owner, key, at(0)).await;
            let item = SeenItem {
                key,
                document,
                name: None,
                etag: None,
                last_modified: None,
                sha256: None,
                links: None,
                entry_id: (key == "kept").then_some("its id"),
            };
            commit!(t.db, |tx| items::put(tx, &first, &item));
            if key == "deleted" {
                commit!(t.db, |tx| crate::documents::delete(tx, owner, document, at(11), at(11)));
            }
        }
        commit!(t.db, |tx| runs::end(tx, &first, SyncRunState::Succeeded, None, at(20)));
        let mut keys = items::keys(&t.db, source).await.unwrap();
        keys.sort_unstable();
        assert_eq!(keys, ["deleted", "gone", "kept"], "{}", t.name);
        let named = async || items::entries(&t.db, source).await.unwrap();
        assert_eq!(named().await, [("kept".to_owned(), "its id".to_owned())], "{}", t.name);
        commit!(t.db, |tx| items::name_entry(tx, source, "gone", "another id"));
        let known = items::find(&t.db, source, "gone").await.unwrap().expect(t.name);
        assert_eq!((named().await.len(), known.entry_id.as_deref()), (2, Some("another id")), "{}", t.name);

        queued(&t.db, owner, source).await.expect(t.name);
        let run = claimed(&t.db, at(30), 1).await.expect(t.name);
        for (key, outcome) in [("gone", SyncOutcome::Gone), ("link", SyncOutcome::Skipped)] {
            commit!(t.db, |tx| items::note(tx, &run, key, outcome, None, None));
        }
        assert_eq!(commit!(t.db, |tx| items::see_all(tx, &run)), (3, 1), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| items::gone(tx, run.id)), ["gone"], "{}", t.name);
        for key in ["gone", "link"] {
            commit!(t.db, |tx| items::take_back(tx, run.id, key));
        }
        assert!(commit!(t.db, |tx| items::gone(tx, run.id)).is_empty(), "{}", t.name);
        let claim = run.claim_id.expect(t.name);
        let more = SyncCounts { unchanged: 2, deleted_here: 1, moved: 3, ..SyncCounts::default() };
        assert!(commit!(t.db, |tx| runs::hold(tx, run.id, claim, at(200), &more)), "{}", t.name);
        commit!(t.db, |tx| runs::warn(tx, &run, Some("There is more.")));
        commit!(t.db, |tx| runs::end(tx, &run, SyncRunState::Succeeded, None, at(40)));
        let told = runs::find(&t.db, owner, source, run.id).await.unwrap().expect(t.name);
        assert_eq!((told.counts, told.skipped), (more, 1), "{}", t.name);
        assert_eq!(told.warning.as_deref(), Some("There is more."), "{}", t.name);
        commit!(t.db, |tx| runs::warn(tx, &run, None));
        let told = runs::find(&t.db, owner, source, run.id).await.unwrap().expect(t.name);
        assert!(told.warning.is_some(), "{}: it has ended", t.name);
    }
}
