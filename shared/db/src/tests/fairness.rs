//! Whose job is taken next.

mod measured;

use std::collections::{BTreeMap, BTreeSet};

use lectern_shared::{
    ids::{DocumentId, JobId, WorkspaceId},
    model::job::{IngestionError, JobClaim, JobKind},
};

use crate::{
    Db, documents, execute,
    jobs::{self, JobProgress},
    locks, migrate, on,
    testing::{ATTEMPTS, LEASE, account_of, at, both, both_empty, claim, commit, document, plain, workspace},
};

/// Queues many documents of a workspace, in one transaction.
pub(super) async fn queue(db: &Db, workspace: WorkspaceId, count: usize, second: u64) -> Vec<DocumentId> {
    let mut tx = db.begin().await.unwrap();
    let mut queued = Vec::new();
    for _ in 0..count {
        let document = plain(workspace, "one of many");
        documents::insert(&mut tx, &document, at(second)).await.unwrap();
        jobs::enqueue(&mut tx, workspace, document.id, JobKind::Ingest, ATTEMPTS, at(second)).await.unwrap();
        queued.push(document.id);
    }
    tx.commit().await.unwrap();
    queued
}

async fn end(db: &Db, claim: &JobClaim, retry_at: Option<u64>, second: u64) {
    let error =
        IngestionError { code: "timeout".into(), message: "It did not work.".into(), retryable: true };
    let retry_at = retry_at.map(at);
    assert!(
        commit!(db, |tx| jobs::fail(tx, claim, &error, retry_at, &JobProgress::default(), at(second)))
            .is_some()
    );
}

#[tokio::test]
async fn a_workspace_that_was_locked_before_gets_the_places_that_it_gets_else() {
    for t in &both().await {
        let (locked, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        for second in 1..4 {
            let mut tx = t.db.begin().await.unwrap();
            locks::lock_workspace(&mut tx, locked).await.unwrap();
            let row = plain(locked, "one of many");
            documents::insert(&mut tx, &row, at(second)).await.unwrap();
            jobs::enqueue(&mut tx, locked, row.id, JobKind::Ingest, ATTEMPTS, at(second)).await.unwrap();
            tx.commit().await.unwrap();
            document(&t.db, other, "one of many", at(second)).await;
        }
        let select = "SELECT workspace_id, fair_at FROM jobs ORDER BY fair_at, id";
        let places: Vec<(WorkspaceId, i64)> = on!(t.db, |c| sqlx::query_as(select).fetch_all(c)).unwrap();
        let of = |whose: WorkspaceId| -> Vec<i64> {
            places.iter().filter(|(of, _)| *of == whose).map(|(_, place)| *place).collect()
        };
        assert_eq!((of(locked).len(), of(locked)), (3, of(other)), "{}", t.name);
    }
}

#[tokio::test]
async fn a_newcomers_document_is_the_next_one_however_slowly_anothers_many_are_worked_off() {
    for t in &both().await {
        let busy = workspace(&t.db, at(0)).await;
        queue(&t.db, busy, 60, 0).await;
        let mut now = 0;
        let mut running = claim(&t.db, at(now)).await.unwrap();
        for _ in 0..10 {
            assert_eq!(running.workspace_id, busy, "{}", t.name);
            // In the middle of a document that takes half a minute.
            now += 15;
            let newcomer = workspace(&t.db, at(now)).await;
            let only = document(&t.db, newcomer, "a line", at(now)).await;
            now += 15;
            end(&t.db, &running, None, now).await;
            let next = claim(&t.db, at(now)).await.unwrap();
            assert_eq!(next.document_id, only, "{}", t.name);
            end(&t.db, &next, None, now).await;
            running = claim(&t.db, at(now)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn whoever_was_served_before_is_next_too_and_nobody_who_comes_again_and_again_keeps_others_waiting() {
    for t in &both().await {
        let (busy, steady) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        for _ in 0..5 {
            document(&t.db, steady, "earlier", at(0)).await;
            let earlier = claim(&t.db, at(0)).await.unwrap();
            end(&t.db, &earlier, None, 0).await;
        }
        queue(&t.db, busy, 20, 1).await;
        // Each one is queued before the one before it is done, or after; some are given up while they run.
        let mut taken = Vec::new();
        for round in 0..10 {
            document(&t.db, steady, "one by one", at(2)).await;
            let running = claim(&t.db, at(2)).await.unwrap();
            taken.push(running.workspace_id);
            if round % 2 == 0 {
                commit!(t.db, |tx| documents::delete(
                    tx,
                    running.workspace_id,
                    running.document_id,
                    at(2),
                    at(3)
                ));
            } else {
                end(&t.db, &running, None, 2).await;
            }
        }
        assert!(taken[..2].contains(&steady), "{}: {taken:?}", t.name);
        let of_busy = taken.iter().filter(|workspace| **workspace == busy).count();
        assert!((4..=6).contains(&of_busy), "{}: each has every other turn: {taken:?}", t.name);
    }
}

#[tokio::test]
async fn no_workspace_gets_the_last_slot_while_another_waits() {
    for t in &both().await {
        let (slow, quick) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        queue(&t.db, slow, 200, 0).await;
        // Two of three slots, with documents that take for ever.
        for _ in 0..2 {
            assert_eq!(claim(&t.db, at(0)).await.unwrap().workspace_id, slow, "{}", t.name);
        }
        queue(&t.db, quick, 50, 1).await;
        for _ in 0..50 {
            let third = claim(&t.db, at(1)).await.unwrap();
            assert_eq!(third.workspace_id, quick, "{}", t.name);
            end(&t.db, &third, None, 1).await;
        }
        // When nobody else waits no slot stays empty, and whoever comes then is next.
        let third = claim(&t.db, at(2)).await.unwrap();
        assert_eq!(third.workspace_id, slow, "{}", t.name);
        let only = document(&t.db, quick, "once more", at(3)).await;
        end(&t.db, &third, None, 3).await;
        assert_eq!(claim(&t.db, at(3)).await.unwrap().document_id, only, "{}", t.name);
        // A newcomer does not wait until the workspace who was held up has been made up for it.
        let newcomer = workspace(&t.db, at(4)).await;
        let first = document(&t.db, newcomer, "first", at(4)).await;
        let next = [claim(&t.db, at(4)).await.unwrap(), claim(&t.db, at(4)).await.unwrap()];
        assert!(next.iter().any(|claim| claim.document_id == first), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_at_the_same_moment_do_not_give_one_workspace_all_slots() {
    for t in &both().await {
        for _ in 0..20 {
            let (slow, quick) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
            queue(&t.db, slow, 10, 0).await;
            // Both of the first two are the slow one's, by their places.
            for document in &queue(&t.db, quick, 6, 0).await[..4] {
                assert!(commit!(t.db, |tx| jobs::cancel(tx, quick, *document, at(0))), "{}", t.name);
            }
            let claims = (0..2).map(|_| {
                let db = t.db.clone();
                tokio::spawn(async move { claim(&db, at(0)).await.unwrap() })
            });
            let mut workspaces = Vec::new();
            for claim in claims.collect::<Vec<_>>() {
                workspaces.push(claim.await.unwrap().workspace_id);
            }
            assert_ne!(workspaces[0], workspaces[1], "{}", t.name);
            for workspace in [slow, quick] {
                commit!(t.db, |tx| crate::accounts::delete(tx, account_of(workspace), at(1)));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_that_claim_at_once_get_each_job_once_and_workspaces_have_turns_until_one_alone_waits() {
    const WORKERS: usize = 6;
    for t in &both().await {
        for _ in 0..5 {
            let (mut queued, mut turns) = (BTreeSet::new(), BTreeMap::new());
            for count in [30, 6, 3] {
                let owner = workspace(&t.db, at(0)).await;
                queued.extend(queue(&t.db, owner, count, 0).await);
                turns.insert(owner, (0, count));
            }
            while !queued.is_empty() {
                let expected = WORKERS.min(queued.len());
                let claims = (0..WORKERS).map(|_| {
                    let db = t.db.clone();
                    tokio::spawn(async move { claim(&db, at(0)).await })
                });
                let mut taken = Vec::new();
                for claim in claims.collect::<Vec<_>>() {
                    taken.extend(claim.await.unwrap());
                }
                assert_eq!(taken.len(), expected, "{}: nobody goes away without a job that is there", t.name);
                for claim in &taken {
                    assert!(queued.remove(&claim.document_id), "{}: a job was taken twice", t.name);
                    let (had, left) = turns.get_mut(&claim.workspace_id).unwrap();
                    (*had, *left) = (*had + 1, *left - 1);
                }
                let waits = turns.values().filter(|(_, left)| *left > 0);
                if let Some(fewest) = waits.map(|(had, _)| *had).min() {
                    let fair = turns.values().all(|(had, _)| *had <= fewest + 1);
                    assert!(
                        fair,
                        "{}: somebody who waits had two turns less than another: {turns:?}",
                        t.name
                    );
                }
                let db = &t.db;
                let (head, farthest): (i64, i64) = on!(db, |c| sqlx::query_as(
                    "SELECT fair_at, (SELECT MAX(fair_at) / 2 FROM jobs WHERE state = 'running') FROM queue_head"
                )
                .fetch_one(c))
                .unwrap();
                assert_eq!(head, farthest, "{}: whoever comes new would not be next", t.name);
                for claim in &taken {
                    end(&t.db, claim, None, 0).await;
                }
            }
            assert!(claim(&t.db, at(0)).await.is_none(), "{}", t.name);
        }
    }
}

/// Takes jobs together, tells them and where the head is then, and gives all of it up.
async fn try_together(db: &Db, most: usize) -> (Vec<JobClaim>, i64) {
    let mut tx = db.begin().await.unwrap();
    let taken = jobs::claim(&mut tx, "worker", at(1), at(1).plus(LEASE), most).await.unwrap();
    let head: i64 = on!(tx, |c| sqlx::query_scalar("SELECT fair_at FROM queue_head").fetch_one(c)).unwrap();
    tx.rollback().await.unwrap();
    (taken.claims, head)
}

#[tokio::test]
async fn jobs_that_are_taken_together_are_those_that_would_be_taken_one_by_one() {
    const TOGETHER: usize = 7;
    for t in &both().await {
        let (slow, gap) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        queue(&t.db, slow, 30, 0).await;
        for document in &queue(&t.db, gap, 20, 0).await[..9] {
            assert!(commit!(t.db, |tx| jobs::cancel(tx, gap, *document, at(0))), "{}", t.name);
        }
        for count in [6, 2] {
            let owner = workspace(&t.db, at(0)).await;
            queue(&t.db, owner, count, 0).await;
        }
        let (mut running, mut all) = (Vec::new(), 0);
        for round in 0.. {
            let (together, reached) = try_together(&t.db, TOGETHER).await;
            let claims: BTreeSet<_> = together.iter().map(|claim| *claim.claim_id.as_uuid()).collect();
            assert_eq!(claims.len(), together.len(), "{}: each has its own claim", t.name);
            let mut one_by_one = Vec::new();
            while one_by_one.len() < TOGETHER
                && let Some(next) = claim(&t.db, at(1)).await
            {
                one_by_one.push(next);
            }
            let taken =
                |claims: &[JobClaim]| claims.iter().map(|claim| claim.document_id).collect::<Vec<_>>();
            assert_eq!(taken(&together), taken(&one_by_one), "{}, round {round}", t.name);
            let head: i64 =
                on!(t.db, |c| sqlx::query_scalar("SELECT fair_at FROM queue_head").fetch_one(c)).unwrap();
            assert_eq!(reached, head, "{}, round {round}: whoever comes new is next", t.name);
            if one_by_one.is_empty() {
                break;
            }
            all += one_by_one.len();
            // Every other time the slow one's go on, and have all slots that are in use.
            running.extend(one_by_one);
            let (stay, done): (Vec<_>, Vec<_>) =
                running.into_iter().partition(|claim| round % 2 == 0 && claim.workspace_id == slow);
            for claim in &done {
                end(&t.db, claim, None, 1).await;
            }
            running = stay;
        }
        assert_eq!(all, 49, "{}: what was cancelled is left out, and nothing else", t.name);
    }
}

#[tokio::test]
async fn jobs_that_are_due_again_go_behind_what_was_queued_and_keep_nobody_waiting() {
    for t in &both().await {
        let (failing, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        queue(&t.db, failing, 30, 0).await;
        while let Some(tried) = claim(&t.db, at(0)).await {
            end(&t.db, &tried, Some(100), 0).await;
        }
        assert!(!jobs::due(&t.db, at(99)).await.unwrap().any(), "{}", t.name);
        let due = jobs::due(&t.db, at(100)).await.unwrap();
        assert!(due.waited && !due.in_line, "{}", t.name);
        queue(&t.db, other, 5, 99).await;
        assert_eq!(commit!(t.db, |tx| jobs::admit(tx, at(100))), 30, "{}: all have a place now", t.name);
        let newcomer = workspace(&t.db, at(100)).await;
        let only = document(&t.db, newcomer, "only", at(100)).await;
        let mut taken = Vec::new();
        while let Some(claim) = claim(&t.db, at(100)).await {
            end(&t.db, &claim, None, 100).await;
            taken.push((claim.workspace_id, claim.document_id));
        }
        assert_eq!(taken.len(), 36, "{}", t.name);
        let place = taken.iter().position(|(_, document)| *document == only).unwrap();
        assert!(place <= 1, "{}: {place}", t.name);
        let last = taken.iter().rposition(|(workspace, _)| *workspace == other).unwrap();
        assert!(last <= 12, "{}: the other one has every other turn: {last}", t.name);
    }
}

#[tokio::test]
async fn what_was_cancelled_does_not_keep_a_workspace_waiting() {
    for t in &both().await {
        let (hasty, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        for document in queue(&t.db, hasty, 100, 0).await {
            assert!(commit!(t.db, |tx| jobs::cancel(tx, hasty, document, at(0))), "{}", t.name);
        }
        queue(&t.db, other, 50, 1).await;
        claim(&t.db, at(1)).await.unwrap();
        let wanted = document(&t.db, hasty, "the right one", at(2)).await;
        let next = [claim(&t.db, at(2)).await.unwrap(), claim(&t.db, at(2)).await.unwrap()];
        assert!(next.iter().any(|claim| claim.document_id == wanted), "{}", t.name);
    }
}

#[tokio::test]
async fn what_left_the_front_of_a_workspaces_line_does_not_keep_the_rest_of_it_waiting() {
    for t in &both().await {
        for how in ["deleted", "cancelled", "queued again"] {
            let on = format!("{} {how}", t.name);
            let (hasty, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
            let mut gone = queue(&t.db, hasty, 103, 0).await;
            let kept = gone.split_off(100);
            queue(&t.db, other, 50, 0).await;
            let mut tx = t.db.begin().await.unwrap();
            for document in gone {
                let left = match how {
                    "deleted" => documents::delete(&mut tx, hasty, document, at(1), at(1)).await.unwrap(),
                    "cancelled" => jobs::cancel(&mut tx, hasty, document, at(1)).await.unwrap(),
                    _ => jobs::enqueue(&mut tx, hasty, document, JobKind::Ingest, ATTEMPTS, at(1))
                        .await
                        .unwrap()
                        .is_some(),
                };
                assert!(left, "{on}");
            }
            tx.commit().await.unwrap();

            let mut of_hasty = Vec::new();
            for _ in 0..8 {
                let next = claim(&t.db, at(1)).await.unwrap();
                end(&t.db, &next, None, 1).await;
                if next.workspace_id == hasty {
                    of_hasty.push(next.document_id);
                }
            }
            assert_eq!(of_hasty, kept, "{on}: one a turn, soon, and in their order");
            for workspace in [hasty, other] {
                commit!(t.db, |tx| crate::accounts::delete(tx, account_of(workspace), at(2)));
            }
        }
    }
}

#[tokio::test]
async fn a_queue_of_an_earlier_release_is_worked_off_in_turns() {
    for t in &both_empty().await {
        migrate::run_to(&t.db, 1).await.unwrap();
        let (many, few) = (WorkspaceId::generate(), WorkspaceId::generate());
        // As it was then: places were moments, a second apart from when a job was queued.
        let mut tx = t.db.begin().await.unwrap();
        for (owner, count, from) in [(many, 10, 0), (few, 3, 7)] {
            execute!(
                tx,
                sqlx::query(
                    "INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version,
                                        search_epoch, fair_at, created_at, updated_at)
                     VALUES ($1, $2, $2, '', '', FALSE, 0, 0, $3, $4, $4)"
                )
                .bind(owner)
                .bind(owner.to_string())
                .bind(at(1_000))
                .bind(at(from))
            )
            .unwrap();
            for number in 0..count {
                execute!(
                    tx,
                    sqlx::query(
                        "INSERT INTO jobs (id, kind, user_id, document_id, state, attempts, max_attempts, run_at,
                                           fair_at, warnings, queued_at, from_stored)
                         VALUES ($1, $2, $3, $4, 'queued', 0, 2, $5, $6, '[]', $5, FALSE)"
                    )
                    .bind(JobId::generate())
                    .bind(JobKind::Ingest)
                    .bind(owner)
                    .bind(DocumentId::generate())
                    .bind(at(from))
                    .bind(at(from + number))
                )
                .unwrap();
            }
        }
        tx.commit().await.unwrap();
        migrate::run(&t.db).await.unwrap();

        let mut taken = Vec::new();
        for _ in 0..4 {
            let running = claim(&t.db, at(8)).await.unwrap();
            end(&t.db, &running, None, 8).await;
            taken.push(running.workspace_id);
        }
        assert_eq!(taken.iter().filter(|workspace| **workspace == few).count(), 2, "{}: {taken:?}", t.name);
        let newcomer = workspace(&t.db, at(9)).await;
        let only = document(&t.db, newcomer, "new", at(9)).await;
        assert_eq!(claim(&t.db, at(9)).await.unwrap().document_id, only, "{}", t.name);
        // What is queued now goes behind what the workspace had queued then.
        let added = document(&t.db, many, "added", at(9)).await;
        let mut last = None;
        while let Some(claim) = claim(&t.db, at(9)).await {
            last = Some(claim.document_id);
            end(&t.db, &claim, None, 9).await;
        }
        assert_eq!(last, Some(added), "{}", t.name);
    }
}

/// A claim reads what it takes, and little more, however many jobs are queued or wait for a later moment.
#[tokio::test]
async fn the_next_job_is_found_by_indexes() {
    let tests = both().await;
    let [take_next, take, take_ones] = jobs::TAKE;
    for (statement, indexes) in [
        (take_next, &["jobs_queued", "jobs_held"][..]),
        (take, &["jobs_queued"]),
        (take_ones, &["jobs_line"]),
        (jobs::PASSED_OVER, &["jobs_queued", "jobs_held"]),
        (jobs::NEXT_BESIDES, &["jobs_line"]),
        (jobs::BEGINS_BEHIND, &["jobs_line"]),
        (jobs::DUE, &["jobs_queued", "jobs_waiting"]),
    ] {
        let plan = tests[0].query_plan(statement).await;
        for index in indexes {
            assert!(plan.iter().any(|step| step.contains(index)), "{index}: {plan:#?}");
        }
        // Workspaces may be sorted, of whom each is there once, and jobs may not.
        let sorts = statement != jobs::NEXT_BESIDES && plan.iter().any(|step| step.contains("TEMP B-TREE"));
        assert!(!sorts && !plan.iter().any(|step| step == "SCAN jobs"), "{plan:#?}");
    }
}
