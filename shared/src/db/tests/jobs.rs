//! The queue.

use std::{collections::HashSet, time::Duration};

use crate::{
    clock::Timestamp,
    db::{
        Db, documents, generations,
        jobs::{self, GenerationPublication, JobProgress, PublishOutcome, QueueDepth},
        testing::{
            ATTEMPTS, GRACE, LEASE, at, both, claim, claimed, commit, document, enqueue, finished_or_blocked,
            publish, published, ready, staged, user,
        },
    },
    ids::{DocumentId, GenerationId, UserId},
    model::{
        document::SourceState,
        job::{
            IngestionError, IngestionStage, IngestionSummary, IngestionWarning, JobClaim, JobKind, JobState,
            SourceInfo, StageProgress,
        },
    },
};

fn error(code: &str) -> IngestionError {
    IngestionError { code: code.to_owned(), message: "It did not work.".to_owned(), retryable: true }
}

async fn ingestion(db: &Db, user: UserId, document: DocumentId) -> IngestionSummary {
    documents::find(db, user, document).await.unwrap().unwrap().ingestion
}

async fn state(db: &Db, claim: &JobClaim) -> JobState {
    ingestion(db, claim.user_id, claim.document_id).await.state
}

async fn renew(db: &Db, claim: &JobClaim, now: Timestamp) -> bool {
    commit!(db, |tx| jobs::renew(tx, claim, now.plus(LEASE), &JobProgress::default()))
}

async fn hand_back(db: &Db, claim: &JobClaim, now: Timestamp) -> bool {
    commit!(db, |tx| jobs::release(tx, claim, now))
}

async fn fail(db: &Db, claim: &JobClaim, retry_at: Option<Timestamp>, now: Timestamp) -> Option<JobState> {
    commit!(db, |tx| jobs::fail(tx, claim, &error("timeout"), retry_at, &JobProgress::default(), now))
}

async fn cancel(db: &Db, user: UserId, document: DocumentId, now: Timestamp) -> bool {
    commit!(db, |tx| jobs::cancel(tx, user, document, now))
}

/// Expires every lease that ended before `now`.
async fn expire(db: &Db, now: Timestamp) -> Vec<JobState> {
    let expired = commit!(db, |tx| jobs::expire_leases(tx, now, now, &error("worker_lost")));
    expired.into_iter().map(|job| job.state).collect()
}

/// Everything that an owner can see of a document, to be compared.
async fn seen(db: &Db, user: UserId, document: DocumentId) -> String {
    let found = documents::find(db, user, document).await.unwrap();
    let active = documents::active(db, user).await.unwrap();
    let epoch = documents::search_epoch(db, user).await.unwrap();
    format!("{found:?} {active:?} {epoch}")
}

#[tokio::test]
async fn a_new_documents_job_waits_untried() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let document = document(&t.db, user, "one", at(5)).await;
        let job = ingestion(&t.db, user, document).await;
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
            let user = user(&t.db, at(0)).await;
            let first = claimed(&t.db, user, "one", at(0)).await;
            match ended {
                JobState::Done => {
                    let generation = staged(&t.db, &first, &[], at(1)).await;
                    publish(&t.db, &first, generation, at(1)).await;
                }
                JobState::Dead => {
                    fail(&t.db, &first, None, at(1)).await;
                }
                _ => {
                    cancel(&t.db, user, first.document_id, at(1)).await;
                }
            }
            let job = ingestion(&t.db, user, first.document_id).await;
            assert_eq!((job.state, job.attempts, job.finished_at), (ended, 1, Some(at(1))), "{on}");

            assert!(enqueue(&t.db, user, first.document_id, at(9)).await, "{on}");
            let job = ingestion(&t.db, user, first.document_id).await;
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
        let user = user(&t.db, at(0)).await;
        let first = claimed(&t.db, user, "one", at(0)).await;
        let generation = staged(&t.db, &first, &["old"], at(1)).await;
        assert!(enqueue(&t.db, user, first.document_id, at(2)).await, "{}", t.name);

        let running = ingestion(&t.db, user, first.document_id).await;
        assert_eq!((running.state, running.attempts), (JobState::Running, 1), "{}", t.name);
        assert_eq!(running.started_at, Some(at(0)), "{}", t.name);
        assert!(claim(&t.db, at(3)).await.is_none(), "{}: it is held", t.name);
        assert!(renew(&t.db, &first, at(3)).await, "{}: it is still the first worker's", t.name);

        assert_eq!(publish(&t.db, &first, generation, at(4)).await, PublishOutcome::Outdated, "{}", t.name);
        let again = ingestion(&t.db, user, first.document_id).await;
        assert_eq!((again.state, again.attempts), (JobState::Queued, 0), "{}", t.name);
        assert!(documents::active(&t.db, user).await.unwrap().is_empty(), "{}: nothing old answers", t.name);
        let document = documents::find(&t.db, user, first.document_id).await.unwrap().unwrap();
        assert!(document.search_index.is_none(), "{}", t.name);

        let second = claim(&t.db, at(4)).await.unwrap();
        let generation = staged(&t.db, &second, &["new"], at(5)).await;
        assert_eq!(publish(&t.db, &second, generation, at(6)).await, PublishOutcome::Yes, "{}", t.name);
    }
}

#[tokio::test]
async fn an_outdated_generation_leaves_the_one_that_answers() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let (document, old) = published(&t.db, user, "one", &["old"], at(0)).await;
        enqueue(&t.db, user, document, at(1)).await;
        let second = claim(&t.db, at(1)).await.unwrap();
        let outdated = staged(&t.db, &second, &["outdated"], at(1)).await;
        enqueue(&t.db, user, document, at(2)).await;
        assert_eq!(publish(&t.db, &second, outdated, at(3)).await, PublishOutcome::Outdated, "{}", t.name);

        let found = documents::find(&t.db, user, document).await.unwrap().unwrap();
        assert_eq!(found.search_index.unwrap().0.generation, old, "{}", t.name);
        assert_eq!(documents::active(&t.db, user).await.unwrap()[0].active_generation, old, "{}", t.name);
        // Nobody holds its claim, so it is given up.
        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(4))), 1, "{}", t.name);
        let purgeable = generations::purgeable(&t.db, at(1_000), 10).await.unwrap();
        assert_eq!(purgeable.iter().map(|g| g.retired.id()).collect::<Vec<_>>(), [outdated], "{}", t.name);
    }
}

#[tokio::test]
async fn nothing_is_queued_for_a_document_that_is_missing_deleted_or_somebody_elses() {
    for t in &both().await {
        let (owner, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let (kept, _) = published(&t.db, owner, "kept", &[], at(0)).await;
        let gone = document(&t.db, owner, "gone", at(0)).await;
        commit!(t.db, |tx| documents::delete(tx, owner, gone, at(1), at(2)));
        let before = seen(&t.db, owner, kept).await;
        for (who, what) in
            [(owner, DocumentId::generate()), (owner, gone), (other, kept), (UserId::generate(), kept)]
        {
            assert!(!enqueue(&t.db, who, what, at(3)).await, "{}", t.name);
        }
        assert_eq!(seen(&t.db, owner, kept).await, before, "{}", t.name);
        assert!(claim(&t.db, at(10)).await.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn users_take_turns_however_many_documents_one_of_them_queues() {
    for t in &both().await {
        let (many, few) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let mut tx = t.db.begin().await.unwrap();
        let mut queued = Vec::new();
        for _ in 0..500 {
            let document = crate::db::testing::plain(many, "one of many");
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
            let users: HashSet<_> = turn.iter().map(|claim| claim.user_id).collect();
            assert_eq!(users.len(), 2, "{}: each has one of two", t.name);
        }
        let of_many: Vec<_> = claims.iter().filter(|c| c.user_id == many).map(|c| c.document_id).collect();
        assert_eq!(of_many, queued[..5], "{}: a user's own come in the order of queueing", t.name);

        // Somebody who comes later does not wait for the rest of the 500 either.
        let late = user(&t.db, at(2)).await;
        document(&t.db, late, "late", at(4)).await;
        let next = [claim(&t.db, at(4)).await.unwrap(), claim(&t.db, at(4)).await.unwrap()];
        assert!(next.iter().any(|claim| claim.user_id == late), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twelve_workers_share_two_hundred_jobs_and_none_is_claimed_twice() {
    for t in &both().await {
        let mut tx = t.db.begin().await.unwrap();
        for _ in 0..10 {
            // Other transactions see neither users nor documents before the end.
            let id = UserId::generate();
            let email = id.to_string();
            let owner = crate::db::accounts::NewUser {
                id,
                email: &email,
                email_key: &email,
                name: "",
                password_hash: "",
                is_admin: false,
            };
            crate::db::accounts::insert(&mut tx, &owner, at(0)).await.unwrap();
            for _ in 0..20 {
                let document = crate::db::testing::plain(id, "one");
                documents::insert(&mut tx, &document, at(0)).await.unwrap();
                jobs::enqueue(&mut tx, id, document.id, JobKind::Ingest, ATTEMPTS, at(0)).await.unwrap();
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
        let user = user(&t.db, at(0)).await;
        document(&t.db, user, "one", at(10)).await;
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
        let user = user(&t.db, at(0)).await;
        let claim = claimed(&t.db, user, "one", at(3)).await;
        assert_eq!((claim.attempts, claim.max_attempts), (1, i64::from(ATTEMPTS)), "{}", t.name);
        assert_eq!(
            (claim.user_id, claim.kind, claim.queued_at),
            (user, JobKind::Ingest, at(3)),
            "{}",
            t.name
        );
        let job = ingestion(&t.db, user, claim.document_id).await;
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
        let user = user(&t.db, at(0)).await;
        let held = claimed(&t.db, user, "one", at(0)).await;
        let progress = StageProgress { done: 3, total: Some(7), unit: "pages".to_owned() };
        let report = JobProgress { stage: Some(IngestionStage::Parse), progress: Some(progress.clone()) };
        assert!(commit!(t.db, |tx| jobs::renew(tx, &held, at(600), &report)), "{}", t.name);
        let job = ingestion(&t.db, user, held.document_id).await;
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
        let job = ingestion(&t.db, user, held.document_id).await;
        assert!(job.stage.is_none() && job.progress.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_that_is_handed_back_was_never_tried() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let first = claimed(&t.db, user, "one", at(0)).await;
        assert!(hand_back(&t.db, &first, at(5)).await, "{}", t.name);
        let job = ingestion(&t.db, user, first.document_id).await;
        assert_eq!((job.state, job.attempts), (JobState::Queued, 0), "{}", t.name);
        let second = claim(&t.db, at(5)).await.unwrap();
        assert_eq!((second.id, second.attempts), (first.id, 1), "{}", t.name);
        assert!(!hand_back(&t.db, &first, at(6)).await, "{}: the second worker keeps it", t.name);
        assert_eq!(state(&t.db, &second).await, JobState::Running, "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_that_an_outage_stopped_was_never_tried_and_rests_with_the_reason() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let first = claimed(&t.db, user, "one", at(0)).await;
        let reason = error("unavailable");
        assert!(commit!(t.db, |tx| jobs::postpone(tx, &first, at(15), &reason)), "{}", t.name);
        let job = ingestion(&t.db, user, first.document_id).await;
        assert_eq!((job.state, job.attempts), (JobState::Queued, 0), "{}", t.name);
        assert_eq!(job.last_error.unwrap().0, reason, "{}", t.name);
        assert!(claim(&t.db, at(14)).await.is_none(), "{}", t.name);
        assert_eq!(claim(&t.db, at(15)).await.unwrap().attempts, 1, "{}", t.name);
        assert!(!commit!(t.db, |tx| jobs::postpone(tx, &first, at(30), &reason)), "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_that_waits_to_be_repeated_goes_behind_those_queued_meanwhile() {
    for t in &both().await {
        let (one, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let failing = claimed(&t.db, one, "failing", at(0)).await;
        fail(&t.db, &failing, Some(at(20)), at(1)).await;
        let later = document(&t.db, other, "later", at(10)).await;
        assert_eq!(claim(&t.db, at(20)).await.unwrap().document_id, later, "{}", t.name);
        assert_eq!(claim(&t.db, at(20)).await.unwrap().id, failing.id, "{}", t.name);
    }
}

#[tokio::test]
async fn a_failed_attempt_is_repeated_at_its_time() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let first = claimed(&t.db, user, "one", at(0)).await;
        let report = JobProgress {
            stage: Some(IngestionStage::Fetch),
            progress: Some(StageProgress { done: 1, total: None, unit: "bytes".to_owned() }),
        };
        let failed =
            commit!(t.db, |tx| jobs::fail(tx, &first, &error("timeout"), Some(at(20)), &report, at(10)));
        assert_eq!(failed, Some(JobState::Queued), "{}", t.name);
        let job = ingestion(&t.db, user, first.document_id).await;
        assert_eq!((job.state, job.attempts, job.finished_at), (JobState::Queued, 1, None), "{}", t.name);
        assert_eq!(job.last_error.unwrap().0, error("timeout"), "{}", t.name);
        assert_eq!((job.stage, job.progress.map(|p| p.0)), (report.stage, report.progress), "{}", t.name);
        assert!(claim(&t.db, at(19)).await.is_none(), "{}", t.name);
        assert_eq!(claim(&t.db, at(20)).await.unwrap().attempts, 2, "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_that_fails_for_good_is_dead_and_says_why() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let held = claimed(&t.db, user, "one", at(0)).await;
        assert_eq!(fail(&t.db, &held, None, at(10)).await, Some(JobState::Dead), "{}", t.name);
        let job = ingestion(&t.db, user, held.document_id).await;
        assert_eq!((job.state, job.finished_at), (JobState::Dead, Some(at(10))), "{}", t.name);
        assert_eq!(job.last_error.unwrap().0, error("timeout"), "{}", t.name);
        assert!(claim(&t.db, at(1_000_000)).await.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_that_changed_while_its_attempt_failed_is_tried_afresh() {
    for t in &both().await {
        for retry_at in [None, Some(at(1_000))] {
            let on = format!("{} {retry_at:?}", t.name);
            let user = user(&t.db, at(0)).await;
            let first = claimed(&t.db, user, "one", at(0)).await;
            enqueue(&t.db, user, first.document_id, at(1)).await;
            assert_eq!(fail(&t.db, &first, retry_at, at(2)).await, Some(JobState::Queued), "{on}");
            let job = ingestion(&t.db, user, first.document_id).await;
            assert_eq!((job.attempts, job.finished_at), (0, None), "{on}");
            assert!(job.last_error.is_none(), "{on}: the error was of what is no longer there");
            let second = claim(&t.db, at(2)).await.unwrap();
            assert_eq!((second.id, second.attempts), (first.id, 1), "{on}");
        }
    }
}

#[tokio::test]
async fn a_worker_whose_claim_is_gone_changes_nothing() {
    for t in &both().await {
        for lost in ["expired", "claimed again", "handed back", "failed", "published", "cancelled", "deleted"]
        {
            let on = format!("{} {lost}", t.name);
            let user = user(&t.db, at(0)).await;
            let stale = claimed(&t.db, user, "one", at(0)).await;
            let (document, mine) = (stale.document_id, staged(&t.db, &stale, &["stale"], at(0)).await);
            let later = at(0).plus(LEASE).plus(Duration::from_secs(1));
            match lost {
                "expired" | "claimed again" => {
                    assert_eq!(expire(&t.db, later).await, [JobState::Queued], "{on}");
                }
                "handed back" => assert!(hand_back(&t.db, &stale, at(1)).await, "{on}"),
                "failed" => assert!(fail(&t.db, &stale, Some(at(1)), at(1)).await.is_some(), "{on}"),
                "published" => {
                    let generation = staged(&t.db, &stale, &["published"], at(1)).await;
                    assert_eq!(publish(&t.db, &stale, generation, at(1)).await, PublishOutcome::Yes, "{on}");
                }
                "cancelled" => assert!(cancel(&t.db, user, document, at(1)).await, "{on}"),
                _ => assert!(commit!(t.db, |tx| documents::delete(tx, user, document, at(1), at(2))), "{on}"),
            }
            if lost == "claimed again" {
                assert_eq!(claim(&t.db, later).await.unwrap().id, stale.id, "{on}");
            }
            let before = seen(&t.db, user, document).await;
            assert!(!renew(&t.db, &stale, later).await, "{on}");
            assert!(!hand_back(&t.db, &stale, later).await, "{on}");
            assert_eq!(fail(&t.db, &stale, Some(later), later).await, None, "{on}");
            assert_eq!(fail(&t.db, &stale, None, later).await, None, "{on}");
            assert_eq!(publish(&t.db, &stale, mine, later).await, PublishOutcome::ClaimLost, "{on}");
            assert_eq!(seen(&t.db, user, document).await, before, "{on}");
            // Not even when the document has changed since.
            if enqueue(&t.db, user, document, later).await {
                let before = seen(&t.db, user, document).await;
                assert_eq!(fail(&t.db, &stale, None, later).await, None, "{on}");
                assert_eq!(publish(&t.db, &stale, mine, later).await, PublishOutcome::ClaimLost, "{on}");
                // Only caches are told to look again.
                let without_epoch = |seen: String| seen.rsplit_once(' ').unwrap().0.to_owned();
                let after = seen(&t.db, user, document).await;
                assert_eq!(without_epoch(after), without_epoch(before), "{on}");
                cancel(&t.db, user, document, later).await;
            }
        }
    }
}

#[tokio::test]
async fn publishing_makes_a_document_answer_and_ends_its_job() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let held = claimed(&t.db, user, "one", at(0)).await;
        let generation = staged(&t.db, &held, &["a", "b"], at(1)).await;
        let epoch = documents::search_epoch(&t.db, user).await.unwrap();
        let index = ready(generation, 2);
        let source = SourceInfo { title: Some("Title".to_owned()), bytes: Some(12), ..SourceInfo::default() };
        let warnings =
            vec![IngestionWarning { code: "bad_page".to_owned(), message: "Page 3.".to_owned(), count: 1 }];
        let state =
            SourceState { etag: Some("\"1\"".to_owned()), source, warnings, ..SourceState::default() };
        let publication = GenerationPublication {
            generation,
            index: &index,
            languages: &[],
            learnt: Some(&state),
            purge_old_at: at(9),
        };
        assert_eq!(
            jobs::publish(&t.db, &held, &publication, at(7)).await.unwrap(),
            PublishOutcome::Yes,
            "{}",
            t.name
        );

        let document = documents::find(&t.db, user, held.document_id).await.unwrap().unwrap();
        assert_eq!(document.search_index.unwrap().0, index, "{}", t.name);
        let job = document.ingestion;
        assert_eq!(
            (job.state, job.stage, job.finished_at),
            (JobState::Done, Some(IngestionStage::Index), Some(at(7))),
            "{}",
            t.name
        );
        assert_eq!((&job.source.unwrap().0, &job.warnings.0), (&state.source, &state.warnings), "{}", t.name);
        let kept = documents::source(&t.db, user, held.document_id).await.unwrap().unwrap().source_state;
        assert_eq!(kept.unwrap().0, state, "{}", t.name);
        let active = documents::active(&t.db, user).await.unwrap();
        assert_eq!((active.len(), active[0].active_generation), (1, generation), "{}", t.name);
        assert!(documents::search_epoch(&t.db, user).await.unwrap() > epoch, "{}", t.name);
        assert!(generations::purgeable(&t.db, at(1_000), 10).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(8))), 0, "{}", t.name);
    }
}

#[tokio::test]
async fn the_generation_that_is_replaced_can_be_purged_after_its_grace() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let (document, old) = published(&t.db, user, "one", &["old"], at(0)).await;
        let (_, unrelated) = published(&t.db, user, "two", &["other"], at(0)).await;
        let epoch = documents::search_epoch(&t.db, user).await.unwrap();
        enqueue(&t.db, user, document, at(10)).await;
        let held = claim(&t.db, at(10)).await.unwrap();
        let new = staged(&t.db, &held, &["new"], at(10)).await;
        assert_eq!(publish(&t.db, &held, new, at(10)).await, PublishOutcome::Yes, "{}", t.name);
        let active: HashSet<GenerationId> =
            documents::active(&t.db, user).await.unwrap().iter().map(|d| d.active_generation).collect();
        assert_eq!(active, HashSet::from([new, unrelated]), "{}", t.name);
        assert!(documents::search_epoch(&t.db, user).await.unwrap() > epoch, "{}", t.name);
        let end = at(10).plus(GRACE);
        let early = generations::purgeable(&t.db, end.minus(Duration::from_micros(1)), 10).await.unwrap();
        assert!(early.is_empty(), "{}", t.name);
        let purgeable = generations::purgeable(&t.db, end, 10).await.unwrap();
        assert_eq!(purgeable.iter().map(|g| g.retired.id()).collect::<Vec<_>>(), [old], "{}", t.name);
        assert_eq!(
            (purgeable[0].retired.user_id(), purgeable[0].document_id),
            (user, document),
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn an_owner_stops_a_job_that_waits_or_runs_and_nobody_else_does() {
    for t in &both().await {
        let (owner, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let running = claimed(&t.db, owner, "running", at(0)).await;
        let waiting = document(&t.db, owner, "waiting", at(0)).await;
        for document in [running.document_id, waiting] {
            assert!(!cancel(&t.db, other, document, at(1)).await, "{}", t.name);
            assert!(cancel(&t.db, owner, document, at(2)).await, "{}", t.name);
            assert!(!cancel(&t.db, owner, document, at(3)).await, "{}: it is stopped already", t.name);
            let job = ingestion(&t.db, owner, document).await;
            assert_eq!((job.state, job.finished_at), (JobState::Cancelled, Some(at(2))), "{}", t.name);
        }
        assert!(claim(&t.db, at(10)).await.is_none(), "{}", t.name);
        let (done, _) = published(&t.db, owner, "done", &[], at(10)).await;
        let dead = claimed(&t.db, owner, "dead", at(10)).await;
        fail(&t.db, &dead, None, at(10)).await;
        for document in [done, dead.document_id, DocumentId::generate()] {
            assert!(!cancel(&t.db, owner, document, at(11)).await, "{}: there is nothing to stop", t.name);
        }
    }
}

#[tokio::test]
async fn a_lost_workers_job_waits_again_until_its_attempts_are_used_up() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let first = claimed(&t.db, user, "one", at(0)).await;
        let end = at(0).plus(LEASE);
        assert!(expire(&t.db, end).await.is_empty(), "{}: the lease has not ended", t.name);
        let later = end.plus(Duration::from_secs(1));
        let expired = commit!(t.db, |tx| jobs::expire_leases(tx, later, later, &error("worker_lost")));
        assert_eq!(expired.len(), 1, "{}", t.name);
        assert_eq!(
            (expired[0].id, expired[0].state, expired[0].attempts),
            (first.id, JobState::Queued, 1),
            "{}",
            t.name
        );
        assert!(expire(&t.db, later).await.is_empty(), "{}: once", t.name);

        let second = claim(&t.db, later).await.unwrap();
        assert_eq!((second.id, second.attempts), (first.id, 2), "{}", t.name);
        let last = later.plus(LEASE).plus(Duration::from_secs(1));
        assert_eq!(expire(&t.db, last).await, [JobState::Dead], "{}", t.name);
        let job = ingestion(&t.db, user, first.document_id).await;
        assert_eq!((job.state, job.finished_at), (JobState::Dead, Some(last)), "{}", t.name);
        assert_eq!(job.last_error.unwrap().0, error("worker_lost"), "{}", t.name);
        assert!(claim(&t.db, last).await.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_change_during_the_last_attempt_is_not_lost_with_its_worker() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let first = claimed(&t.db, user, "one", at(0)).await;
        assert_eq!(fail(&t.db, &first, Some(at(0)), at(0)).await, Some(JobState::Queued), "{}", t.name);
        let last = claim(&t.db, at(0)).await.unwrap();
        assert_eq!(last.attempts, last.max_attempts, "{}", t.name);
        enqueue(&t.db, user, last.document_id, at(1)).await;
        let later = at(0).plus(LEASE).plus(Duration::from_secs(1));
        assert_eq!(expire(&t.db, later).await, [JobState::Queued], "{}", t.name);
        assert_eq!(claim(&t.db, later).await.unwrap().attempts, 1, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_at_the_moment_when_the_last_lease_expires_is_not_lost() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let first = claimed(&t.db, user, "one", at(0)).await;
        fail(&t.db, &first, Some(at(0)), at(0)).await;
        let last = claim(&t.db, at(0)).await.unwrap();
        assert_eq!(last.attempts, last.max_attempts, "{}", t.name);
        let later = at(0).plus(LEASE).plus(Duration::from_secs(1));

        let mut changing = t.db.begin().await.unwrap();
        let document = last.document_id;
        jobs::enqueue(&mut changing, user, document, JobKind::Ingest, ATTEMPTS, later).await.unwrap();
        let db = t.db.clone();
        let expiring = tokio::spawn(async move { expire(&db, later).await });
        finished_or_blocked(&t.db, &expiring).await;
        changing.commit().await.unwrap();
        assert_eq!(expiring.await.unwrap(), [JobState::Queued], "{}", t.name);
        assert_eq!(claim(&t.db, later).await.unwrap().attempts, 1, "{}", t.name);
    }
}

#[tokio::test]
async fn the_depth_counts_every_kind_of_job() {
    for t in &both().await {
        assert_eq!(jobs::depth(&t.db, at(0)).await.unwrap(), QueueDepth::default(), "{}", t.name);
        let user = user(&t.db, at(0)).await;
        published(&t.db, user, "done", &[], at(0)).await;
        let cancelled = document(&t.db, user, "cancelled", at(0)).await;
        cancel(&t.db, user, cancelled, at(0)).await;
        let dead = claimed(&t.db, user, "dead", at(0)).await;
        fail(&t.db, &dead, None, at(0)).await;
        let retried = claimed(&t.db, user, "waits for its retry", at(0)).await;
        fail(&t.db, &retried, Some(at(900)), at(0)).await;
        for _ in 0..2 {
            claimed(&t.db, user, "running", at(0)).await;
        }
        for due in [30, 10, 20] {
            document(&t.db, user, "due", at(due)).await;
        }
        let depth = jobs::depth(&t.db, at(100)).await.unwrap();
        let expected = QueueDepth { due: 3, oldest_due: Some(at(10)), waiting: 1, running: 2, dead: 1 };
        assert_eq!(depth, expected, "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_has_given_up_when_nothing_is_searchable_and_nothing_under_way() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let gave_up = async |document| commit!(t.db, |tx| jobs::ended_unpublished(tx, document));
        let (searchable, _) = published(&t.db, user, "searchable", &["text"], at(1)).await;
        assert!(!gave_up(searchable).await, "{}: it is searchable", t.name);
        let waiting = document(&t.db, user, "waiting", at(2)).await;
        assert!(!gave_up(waiting).await, "{}: it waits for a worker", t.name);
        commit!(t.db, |tx| jobs::cancel(tx, user, waiting, at(3)));
        assert!(gave_up(waiting).await, "{}: it was cancelled", t.name);
        let failing = claimed(&t.db, user, "failing", at(4)).await;
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
        enqueue(&t.db, user, searchable, at(6)).await;
        commit!(t.db, |tx| jobs::cancel(tx, user, searchable, at(7)));
        assert!(!gave_up(searchable).await, "{}: the earlier index answers", t.name);
    }
}
