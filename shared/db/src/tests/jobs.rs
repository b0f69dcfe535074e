//! The queue.

mod backlog;
mod outcome;
mod publication;

use std::collections::HashSet;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, GenerationId, UserId, WorkspaceId},
    model::job::{
        IngestionError, IngestionStage, IngestionSummary, JobClaim, JobKind, JobState, QueueDepth,
        StageProgress,
    },
};

use crate::{
    Db, documents,
    generations::{self, NewGeneration},
    jobs::{self, JobProgress, PublishOutcome},
    on,
    storage::StorageDemand,
    testing::{
        ATTEMPTS, LEASE, at, both, claim, claimed, commit, document, enqueue, plain, publish, published,
        staged, workspace,
    },
    tests::fairness::queue,
};

fn error(code: &str) -> IngestionError {
    IngestionError { code: code.to_owned(), message: "It did not work.".to_owned(), retryable: true }
}

async fn ingestion(db: &Db, workspace: WorkspaceId, document: DocumentId) -> IngestionSummary {
    documents::find(db, workspace, document).await.unwrap().unwrap().ingestion
}

async fn renew(db: &Db, claim: &JobClaim, now: Timestamp) -> bool {
    commit!(db, |tx| jobs::renew(tx, claim, now.plus(LEASE), &JobProgress::default()))
}

async fn fail(db: &Db, claim: &JobClaim, retry_at: Option<Timestamp>, now: Timestamp) -> Option<JobState> {
    commit!(db, |tx| jobs::fail(tx, claim, &error("timeout"), retry_at, &JobProgress::default(), now))
}

async fn cancel(db: &Db, workspace: WorkspaceId, document: DocumentId, now: Timestamp) -> bool {
    commit!(db, |tx| jobs::cancel(tx, workspace, document, now))
}

/// Expires every lease that ended before `now`.
async fn expire(db: &Db, now: Timestamp) -> Vec<JobState> {
    let expired = commit!(db, |tx| jobs::expire_leases(tx, now, now, &error("worker_lost")));
    expired.into_iter().map(|job| job.state).collect()
}

/// Everything that an owner can see of a document, to be compared.
async fn seen(db: &Db, workspace: WorkspaceId, document: DocumentId) -> String {
    let found = documents::find(db, workspace, document).await.unwrap();
    let active = documents::active(db, workspace).await.unwrap();
    let epoch = documents::search_epoch(db, workspace).await.unwrap();
    format!("{found:?} {active:?} {epoch}")
}

#[tokio::test]
async fn a_new_documents_job_waits_untried() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let document = document(&t.db, workspace, "one", at(5)).await;
        let job = ingestion(&t.db, workspace, document).await;
        assert_eq!((job.state, job.attempts, job.queued_at), (JobState::Queued, 0, at(5)), "{}", t.name);
        assert_eq!((job.stage, job.started_at, job.finished_at), (None, None, None), "{}", t.name);
        assert!(job.last_error.is_none() && job.source.is_none() && job.warnings.0.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_that_ended_starts_afresh_when_it_is_queued_again() {
    for t in &both().await {
        for ended in [JobState::Done, JobState::Dead, JobState::Cancelled] {
            let on = format!("{} {ended}", t.name);
            let workspace = workspace(&t.db, at(0)).await;
            let first = claimed(&t.db, workspace, "one", at(0)).await;
            match ended {
                JobState::Done => {
                    let generation = staged(&t.db, &first, &[], at(1)).await;
                    publish(&t.db, &first, generation, at(1)).await;
                }
                JobState::Dead => {
                    fail(&t.db, &first, None, at(1)).await;
                }
                _ => {
                    cancel(&t.db, workspace, first.document_id, at(1)).await;
                }
            }
            let job = ingestion(&t.db, workspace, first.document_id).await;
            assert_eq!((job.state, job.attempts, job.finished_at), (ended, 1, Some(at(1))), "{on}");

            assert!(enqueue(&t.db, workspace, first.document_id, at(9)).await, "{on}");
            let job = ingestion(&t.db, workspace, first.document_id).await;
            assert_eq!((job.state, job.attempts, job.queued_at), (JobState::Queued, 0, at(9)), "{on}");
            assert_eq!((job.stage, job.started_at, job.finished_at), (None, None, None), "{on}");
            assert!(job.last_error.is_none(), "{on}");

            let second = claim(&t.db, at(9)).await.unwrap();
            assert_eq!((second.id, second.attempts), (first.id, 1), "{on}: the same job");
            assert_ne!(second.claim_id, first.claim_id, "{on}");
            assert_eq!(second.claimed_revision, first.claimed_revision + 1, "{on}");
        }
    }
}

#[tokio::test]
async fn a_running_job_goes_on_when_its_document_is_queued_again_and_runs_once_more() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let first = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &first, &["old"], at(1)).await;
        assert!(enqueue(&t.db, workspace, first.document_id, at(2)).await, "{}", t.name);

        let running = ingestion(&t.db, workspace, first.document_id).await;
        assert_eq!((running.state, running.attempts), (JobState::Running, 1), "{}", t.name);
        assert_eq!(running.started_at, Some(at(0)), "{}", t.name);
        assert!(claim(&t.db, at(3)).await.is_none(), "{}: it is held", t.name);
        assert!(renew(&t.db, &first, at(3)).await, "{}: it is still the first worker's", t.name);

        assert_eq!(publish(&t.db, &first, generation, at(4)).await, PublishOutcome::Outdated, "{}", t.name);
        let again = ingestion(&t.db, workspace, first.document_id).await;
        assert_eq!((again.state, again.attempts), (JobState::Queued, 0), "{}", t.name);
        assert!(
            documents::active(&t.db, workspace).await.unwrap().is_empty(),
            "{}: nothing old answers",
            t.name
        );
        let document = documents::find(&t.db, workspace, first.document_id).await.unwrap().unwrap();
        assert!(document.search_index.is_none(), "{}", t.name);

        let second = claim(&t.db, at(4)).await.unwrap();
        let generation = staged(&t.db, &second, &["new"], at(5)).await;
        assert_eq!(publish(&t.db, &second, generation, at(6)).await, PublishOutcome::Yes, "{}", t.name);
    }
}

#[tokio::test]
async fn an_outdated_generation_leaves_the_one_that_answers() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (document, old) = published(&t.db, workspace, "one", &["old"], at(0)).await;
        enqueue(&t.db, workspace, document, at(1)).await;
        let second = claim(&t.db, at(1)).await.unwrap();
        let outdated = staged(&t.db, &second, &["outdated"], at(1)).await;
        enqueue(&t.db, workspace, document, at(2)).await;
        assert_eq!(publish(&t.db, &second, outdated, at(3)).await, PublishOutcome::Outdated, "{}", t.name);

        let found = documents::find(&t.db, workspace, document).await.unwrap().unwrap();
        assert_eq!(found.search_index.unwrap().0.generation, old, "{}", t.name);
        assert_eq!(
            documents::active(&t.db, workspace).await.unwrap()[0].active_generation,
            old,
            "{}",
            t.name
        );
        // Nobody holds its claim, so it is given up.
        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(4))), 1, "{}", t.name);
        let purgeable = generations::purgeable(&t.db, at(1_000), 10).await.unwrap();
        assert_eq!(purgeable.iter().map(|g| g.retired.id()).collect::<Vec<_>>(), [outdated], "{}", t.name);
    }
}

#[tokio::test]
async fn nothing_is_queued_for_a_document_that_is_missing_deleted_or_somebody_elses() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (kept, _) = published(&t.db, owner, "kept", &[], at(0)).await;
        let gone = document(&t.db, owner, "gone", at(0)).await;
        commit!(t.db, |tx| documents::delete(tx, owner, gone, at(1), at(2)));
        let before = seen(&t.db, owner, kept).await;
        for (who, what) in
            [(owner, DocumentId::generate()), (owner, gone), (other, kept), (WorkspaceId::generate(), kept)]
        {
            assert!(!enqueue(&t.db, who, what, at(3)).await, "{}", t.name);
        }
        assert_eq!(seen(&t.db, owner, kept).await, before, "{}", t.name);
        assert!(claim(&t.db, at(10)).await.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn workspaces_take_turns_however_many_documents_one_of_them_queues() {
    for t in &both().await {
        let (many, few) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut tx = t.db.begin().await.unwrap();
        let mut queued = Vec::new();
        for _ in 0..500 {
            let document = crate::testing::plain(many, "one of many");
            documents::insert(&mut tx, &document, at(0)).await.unwrap();
            jobs::enqueue(&mut tx, many, document.id, JobKind::Ingest, ATTEMPTS, at(0)).await.unwrap();
            queued.push(document.id);
        }
        tx.commit().await.unwrap();
        for _ in 0..3 {
            document(&t.db, few, "one of few", at(0)).await;
        }
        let mut claims = Vec::new();
        for _ in 0..8 {
            claims.push(claim(&t.db, at(1)).await.unwrap());
        }
        for turn in claims[..6].chunks(2) {
            let workspaces: HashSet<_> = turn.iter().map(|claim| claim.workspace_id).collect();
            assert_eq!(workspaces.len(), 2, "{}: each has one of two", t.name);
        }
        let of_many: Vec<_> =
            claims.iter().filter(|c| c.workspace_id == many).map(|c| c.document_id).collect();
        assert_eq!(of_many, queued[..5], "{}: a workspace's own come in the order of queueing", t.name);

        // Somebody who comes later does not wait for the rest of the 500 either.
        let late = workspace(&t.db, at(2)).await;
        document(&t.db, late, "late", at(4)).await;
        let next = [claim(&t.db, at(4)).await.unwrap(), claim(&t.db, at(4)).await.unwrap()];
        assert!(next.iter().any(|claim| claim.workspace_id == late), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twelve_workers_share_two_hundred_jobs_and_none_is_claimed_twice() {
    for t in &both().await {
        let mut tx = t.db.begin().await.unwrap();
        for _ in 0..10 {
            // Other transactions see neither workspaces nor documents before the end.
            let id = UserId::generate();
            let email = id.to_string();
            let owner = crate::accounts::NewUser {
                id,
                email: &email,
                email_key: &email,
                name: "",
                password_hash: "",
                is_admin: false,
            };
            crate::accounts::insert(&mut tx, &owner, at(0)).await.unwrap();
            for _ in 0..20 {
                let document = crate::testing::plain(id.into(), "one");
                documents::insert(&mut tx, &document, at(0)).await.unwrap();
                jobs::enqueue(&mut tx, id.into(), document.id, JobKind::Ingest, ATTEMPTS, at(0))
                    .await
                    .unwrap();
            }
        }
        tx.commit().await.unwrap();
        let workers: Vec<_> = (0..12)
            .map(|_| {
                let db = t.db.clone();
                tokio::spawn(async move {
                    let mut claims = Vec::new();
                    // None can also mean that the others have all that is left in their hands.
                    while jobs::due(&db, at(1)).await.unwrap().any() {
                        claims.extend(claim(&db, at(1)).await);
                    }
                    claims
                })
            })
            .collect();
        let mut claims = Vec::new();
        for worker in workers {
            claims.extend(worker.await.unwrap());
        }
        assert_eq!(claims.len(), 200, "{}", t.name);
        assert_eq!(claims.iter().map(|claim| claim.id).collect::<HashSet<_>>().len(), 200, "{}", t.name);
        assert!(claims.iter().all(|claim| claim.attempts == 1), "{}", t.name);
        assert_eq!(jobs::depth(&t.db, at(1)).await.unwrap().running, 200, "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_is_not_claimed_before_its_time() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        document(&t.db, workspace, "one", at(10)).await;
        assert!(!jobs::due(&t.db, at(9)).await.unwrap().any(), "{}", t.name);
        assert!(claim(&t.db, at(9)).await.is_none(), "{}", t.name);
        assert!(jobs::due(&t.db, at(10)).await.unwrap().any(), "{}", t.name);
        assert!(claim(&t.db, at(10)).await.is_some(), "{}", t.name);
        assert!(!jobs::due(&t.db, at(10)).await.unwrap().any(), "{}: it is taken", t.name);
    }
}

#[tokio::test]
async fn an_attempt_counts_from_the_moment_of_the_claim() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let claim = claimed(&t.db, workspace, "one", at(3)).await;
        assert_eq!((claim.attempts, claim.max_attempts), (1, i64::from(ATTEMPTS)), "{}", t.name);
        assert_eq!(
            (claim.workspace_id, claim.kind, claim.queued_at),
            (workspace, JobKind::Ingest, at(3)),
            "{}",
            t.name
        );
        let job = ingestion(&t.db, workspace, claim.document_id).await;
        assert_eq!(
            (job.state, job.attempts, job.started_at),
            (JobState::Running, 1, Some(at(3))),
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn a_report_is_seen_while_the_job_runs_and_keeps_the_claim_alive() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let progress = StageProgress { done: 3, total: Some(7), unit: "pages".to_owned() };
        let report = JobProgress { stage: Some(IngestionStage::Parse), progress: Some(progress.clone()) };
        assert!(commit!(t.db, |tx| jobs::renew(tx, &held, at(600), &report)), "{}", t.name);
        let job = ingestion(&t.db, workspace, held.document_id).await;
        assert_eq!(
            (job.stage, job.progress.unwrap().0),
            (Some(IngestionStage::Parse), progress),
            "{}",
            t.name
        );
        assert!(expire(&t.db, at(599)).await.is_empty(), "{}: the lease was extended", t.name);
        assert_eq!(expire(&t.db, at(601)).await, [JobState::Queued], "{}", t.name);
        // The next attempt begins without the last one's report.
        claim(&t.db, at(601)).await.unwrap();
        let job = ingestion(&t.db, workspace, held.document_id).await;
        assert!(job.stage.is_none() && job.progress.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn the_depth_counts_every_kind_of_job() {
    for t in &both().await {
        assert_eq!(jobs::depth(&t.db, at(0)).await.unwrap(), QueueDepth::default(), "{}", t.name);
        let workspace = workspace(&t.db, at(0)).await;
        published(&t.db, workspace, "done", &[], at(0)).await;
        let cancelled = document(&t.db, workspace, "cancelled", at(0)).await;
        cancel(&t.db, workspace, cancelled, at(0)).await;
        let dead = claimed(&t.db, workspace, "dead", at(0)).await;
        fail(&t.db, &dead, None, at(0)).await;
        let retried = claimed(&t.db, workspace, "waits for its retry", at(0)).await;
        fail(&t.db, &retried, Some(at(900)), at(0)).await;
        for _ in 0..2 {
            claimed(&t.db, workspace, "running", at(0)).await;
        }
        for due in [30, 10, 20] {
            document(&t.db, workspace, "due", at(due)).await;
        }
        let depth = jobs::depth(&t.db, at(100)).await.unwrap();
        let expected = QueueDepth { due: 3, oldest_due: Some(at(10)), waiting: 1, running: 2, dead: 1 };
        assert_eq!(depth, expected, "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_has_given_up_when_nothing_is_searchable_and_nothing_under_way() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let gave_up = async |document| commit!(t.db, |tx| jobs::ended_unpublished(tx, document));
        let (searchable, _) = published(&t.db, workspace, "searchable", &["text"], at(1)).await;
        assert!(!gave_up(searchable).await, "{}: it is searchable", t.name);
        let waiting = document(&t.db, workspace, "waiting", at(2)).await;
        assert!(!gave_up(waiting).await, "{}: it waits for a worker", t.name);
        commit!(t.db, |tx| jobs::cancel(tx, workspace, waiting, at(3)));
        assert!(gave_up(waiting).await, "{}: it was cancelled", t.name);
        let failing = claimed(&t.db, workspace, "failing", at(4)).await;
        assert!(!gave_up(failing.document_id).await, "{}: it is worked on", t.name);
        commit!(t.db, |tx| jobs::fail(
            tx,
            &failing,
            &error("not_found"),
            None,
            &JobProgress::default(),
            at(5)
        ));
        assert!(gave_up(failing.document_id).await, "{}: it failed for good", t.name);
        // What was searchable before stays so, whatever becomes of a later run.
        enqueue(&t.db, workspace, searchable, at(6)).await;
        commit!(t.db, |tx| jobs::cancel(tx, workspace, searchable, at(7)));
        assert!(!gave_up(searchable).await, "{}: the earlier index answers", t.name);

        let all = [searchable, waiting, failing.document_id];
        let among = async |workspace, documents: &[DocumentId]| {
            let mut ended = commit!(t.db, |tx| jobs::all_ended_unpublished(tx, workspace, documents));
            ended.sort_unstable();
            ended
        };
        assert_eq!(among(workspace, &all[..]).await, all[1..], "{}", t.name);
        assert_eq!(among(workspace, &all[1..2]).await, all[1..2], "{}", t.name);
        assert_eq!(among(workspace, &all[..0]).await, [], "{}", t.name);
        assert_eq!(among(WorkspaceId::generate(), &all[..]).await, [], "{}: they are not its own", t.name);
    }
}

#[tokio::test]
async fn a_claim_that_nobody_disputes_holds_at_once_on_every_connection() {
    const JOBS: usize = 200;
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        for number in 0..JOBS {
            document(&t.db, owner, &format!("document {number}"), at(0)).await;
        }
        let mut claimed = Vec::new();
        loop {
            let several = jobs::claim_undisputed(&t.db, "worker", at(1), at(1).plus(LEASE), 7).await.unwrap();
            if several.is_empty() {
                break;
            }
            assert!(several.len() <= 7, "{}", t.name);
            for claim in several {
                let new = NewGeneration {
                    id: GenerationId::generate(),
                    space: None,
                    stored_bytes: 0,
                    engine: None,
                };
                let on = t.name;
                assert!(commit!(t.db, |tx| generations::begin(tx, &claim, new, at(1))), "{on}: {claim:?}");
                claimed.push((claim.document_id, claim.claim_id));
            }
        }
        // SQLite has one writer, whom nobody disputes anything.
        let expected = if matches!(t.db, Db::Postgres { .. }) { JOBS } else { 0 };
        assert_eq!(claimed.len(), expected, "{}", t.name);
        assert!(
            claimed.iter().map(|(document, _)| document).is_sorted(),
            "{}: in the order of the line",
            t.name
        );
        let claims: HashSet<_> = claimed.iter().map(|(_, claim)| claim).collect();
        assert_eq!(claims.len(), expected, "{}: each has its own", t.name);
    }
}

#[tokio::test]
async fn the_documents_of_whoever_comes_late_are_one_number_apart() {
    for t in &both().await {
        let (busy, late) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        queue(&t.db, busy, 12, 0).await;
        for _ in 0..8 {
            assert!(claim(&t.db, at(1)).await.is_some(), "{}", t.name);
        }
        // By each of the ways into the line.
        for is_numbered in [false, true, false, true] {
            document(&t.db, late, "queued", at(2)).await;
            let row = plain(late, "new");
            let mut tx = t.db.begin().await.unwrap();
            let demand = StorageDemand::default();
            if is_numbered {
                jobs::store_new(&mut tx, &row, demand, at(2)).await.unwrap();
            } else {
                documents::insert(&mut tx, &row, at(2)).await.unwrap();
            }
            let queued = jobs::enqueue_new(&mut tx, late, row.id, demand, ATTEMPTS, at(2)).await.unwrap();
            let (_, made) = queued.unwrap().unwrap();
            assert_eq!((made.id, made.ingestion.state), (row.id, JobState::Queued), "{}", t.name);
            tx.commit().await.unwrap();
        }
        let select = "SELECT fair_at / 2 FROM jobs WHERE workspace_id = $1 ORDER BY fair_at";
        let numbers: Vec<i64> = on!(t.db, |c| sqlx::query_scalar(select).bind(late).fetch_all(c)).unwrap();
        assert_eq!(numbers, [8, 9, 10, 11, 12, 13, 14, 15], "{}", t.name);
    }
}
