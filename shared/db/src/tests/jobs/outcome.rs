//! How attempts end.

use std::{collections::HashSet, time::Duration};

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, GenerationId},
    model::{
        document::SourceState,
        job::{IngestionStage, IngestionWarning, JobClaim, JobKind, JobState, SourceInfo, StageProgress},
    },
};

use super::{cancel, error, expire, fail, ingestion, renew, seen};
use crate::{
    Db, documents, generations,
    jobs::{self, GenerationPublication, JobProgress, PublishOutcome},
    testing::{
        ATTEMPTS, GRACE, LEASE, at, both, claim, claimed, commit, document, enqueue, finished_or_blocked,
        publish, published, ready, staged, workspace,
    },
};

async fn state(db: &Db, claim: &JobClaim) -> JobState {
    ingestion(db, claim.workspace_id, claim.document_id).await.state
}

async fn hand_back(db: &Db, claim: &JobClaim, now: Timestamp) -> bool {
    commit!(db, |tx| jobs::release(tx, claim, now))
}

#[tokio::test]
async fn a_job_that_is_handed_back_was_never_tried() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let first = claimed(&t.db, workspace, "one", at(0)).await;
        assert!(hand_back(&t.db, &first, at(5)).await, "{}", t.name);
        let job = ingestion(&t.db, workspace, first.document_id).await;
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
        let workspace = workspace(&t.db, at(0)).await;
        let first = claimed(&t.db, workspace, "one", at(0)).await;
        let reason = error("unavailable");
        assert!(commit!(t.db, |tx| jobs::postpone(tx, &first, at(15), &reason, at(5))), "{}", t.name);
        let job = ingestion(&t.db, workspace, first.document_id).await;
        assert_eq!((job.state, job.attempts), (JobState::Queued, 0), "{}", t.name);
        assert_eq!(job.last_error.unwrap().0, reason, "{}", t.name);
        assert!(claim(&t.db, at(14)).await.is_none(), "{}", t.name);
        assert_eq!(claim(&t.db, at(15)).await.unwrap().attempts, 1, "{}", t.name);
        assert!(!commit!(t.db, |tx| jobs::postpone(tx, &first, at(30), &reason, at(20))), "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_that_waits_to_be_repeated_goes_behind_those_queued_meanwhile() {
    for t in &both().await {
        let (one, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
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
        let workspace = workspace(&t.db, at(0)).await;
        let first = claimed(&t.db, workspace, "one", at(0)).await;
        let report = JobProgress {
            stage: Some(IngestionStage::Fetch),
            progress: Some(StageProgress { done: 1, total: None, unit: "bytes".to_owned() }),
        };
        let failed =
            commit!(t.db, |tx| jobs::fail(tx, &first, &error("timeout"), Some(at(20)), &report, at(10)));
        assert_eq!(failed, Some(JobState::Queued), "{}", t.name);
        let job = ingestion(&t.db, workspace, first.document_id).await;
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
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        assert_eq!(fail(&t.db, &held, None, at(10)).await, Some(JobState::Dead), "{}", t.name);
        let job = ingestion(&t.db, workspace, held.document_id).await;
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
            let workspace = workspace(&t.db, at(0)).await;
            let first = claimed(&t.db, workspace, "one", at(0)).await;
            enqueue(&t.db, workspace, first.document_id, at(1)).await;
            assert_eq!(fail(&t.db, &first, retry_at, at(2)).await, Some(JobState::Queued), "{on}");
            let job = ingestion(&t.db, workspace, first.document_id).await;
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
            let workspace = workspace(&t.db, at(0)).await;
            let stale = claimed(&t.db, workspace, "one", at(0)).await;
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
                "cancelled" => assert!(cancel(&t.db, workspace, document, at(1)).await, "{on}"),
                _ => assert!(
                    commit!(t.db, |tx| documents::delete(tx, workspace, document, at(1), at(2))),
                    "{on}"
                ),
            }
            if lost == "claimed again" {
                assert_eq!(claim(&t.db, later).await.unwrap().id, stale.id, "{on}");
            }
            let before = seen(&t.db, workspace, document).await;
            assert!(!renew(&t.db, &stale, later).await, "{on}");
            assert!(!hand_back(&t.db, &stale, later).await, "{on}");
            assert_eq!(fail(&t.db, &stale, Some(later), later).await, None, "{on}");
            assert_eq!(fail(&t.db, &stale, None, later).await, None, "{on}");
            assert_eq!(publish(&t.db, &stale, mine, later).await, PublishOutcome::ClaimLost, "{on}");
            assert_eq!(seen(&t.db, workspace, document).await, before, "{on}");
            // Not even when the document has changed since.
            if enqueue(&t.db, workspace, document, later).await {
                let before = seen(&t.db, workspace, document).await;
                assert_eq!(fail(&t.db, &stale, None, later).await, None, "{on}");
                assert_eq!(publish(&t.db, &stale, mine, later).await, PublishOutcome::ClaimLost, "{on}");
                // Only caches are told to look again.
                let without_epoch = |seen: String| seen.rsplit_once(' ').unwrap().0.to_owned();
                let after = seen(&t.db, workspace, document).await;
                assert_eq!(without_epoch(after), without_epoch(before), "{on}");
                cancel(&t.db, workspace, document, later).await;
            }
        }
    }
}

#[tokio::test]
async fn publishing_makes_a_document_answer_and_ends_its_job() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &["a", "b"], at(1)).await;
        let epoch = documents::search_epoch(&t.db, workspace).await.unwrap();
        let index = ready(generation, 2);
        let source = SourceInfo { title: Some("Title".to_owned()), bytes: Some(12), ..SourceInfo::default() };
        let warnings =
            vec![IngestionWarning { code: "bad_page".to_owned(), message: "Page 3.".to_owned(), count: 1 }];
        let state =
            SourceState { etag: Some("\"1\"".to_owned()), source, warnings, ..SourceState::default() };
        let publication = GenerationPublication {
            claim: held.clone(),
            generation,
            was_unlimited: true,
            replaces: None,
            index: index.clone(),
            languages: Vec::new(),
            learnt: Some(state.clone()),
            purge_old_at: at(9),
        };
        assert_eq!(
            jobs::publish(&t.db, &publication, at(7)).await.unwrap(),
            PublishOutcome::Yes,
            "{}",
            t.name
        );

        let document = documents::find(&t.db, workspace, held.document_id).await.unwrap().unwrap();
        assert_eq!(document.search_index.unwrap().0, index, "{}", t.name);
        let job = document.ingestion;
        assert_eq!(
            (job.state, job.stage, job.finished_at),
            (JobState::Done, Some(IngestionStage::Index), Some(at(7))),
            "{}",
            t.name
        );
        assert_eq!((&job.source.unwrap().0, &job.warnings.0), (&state.source, &state.warnings), "{}", t.name);
        let kept = documents::source(&t.db, workspace, held.document_id).await.unwrap().unwrap().source_state;
        assert_eq!(kept.unwrap().0, state, "{}", t.name);
        let active = documents::active(&t.db, workspace).await.unwrap();
        assert_eq!((active.len(), active[0].active_generation), (1, generation), "{}", t.name);
        assert!(documents::search_epoch(&t.db, workspace).await.unwrap() > epoch, "{}", t.name);
        assert!(generations::purgeable(&t.db, at(1_000), 10).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(8))), 0, "{}", t.name);
    }
}

#[tokio::test]
async fn the_generation_that_is_replaced_can_be_purged_after_its_grace() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (document, old) = published(&t.db, workspace, "one", &["old"], at(0)).await;
        let (_, unrelated) = published(&t.db, workspace, "two", &["other"], at(0)).await;
        let epoch = documents::search_epoch(&t.db, workspace).await.unwrap();
        enqueue(&t.db, workspace, document, at(10)).await;
        let held = claim(&t.db, at(10)).await.unwrap();
        let new = staged(&t.db, &held, &["new"], at(10)).await;
        assert_eq!(publish(&t.db, &held, new, at(10)).await, PublishOutcome::Yes, "{}", t.name);
        let active: HashSet<GenerationId> =
            documents::active(&t.db, workspace).await.unwrap().iter().map(|d| d.active_generation).collect();
        assert_eq!(active, HashSet::from([new, unrelated]), "{}", t.name);
        assert!(documents::search_epoch(&t.db, workspace).await.unwrap() > epoch, "{}", t.name);
        let end = at(10).plus(GRACE);
        let early = generations::purgeable(&t.db, end.minus(Duration::from_micros(1)), 10).await.unwrap();
        assert!(early.is_empty(), "{}", t.name);
        let purgeable = generations::purgeable(&t.db, end, 10).await.unwrap();
        assert_eq!(purgeable.iter().map(|g| g.retired.id()).collect::<Vec<_>>(), [old], "{}", t.name);
        assert_eq!(
            (purgeable[0].retired.workspace_id(), purgeable[0].document_id),
            (workspace, document),
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn an_owner_stops_a_job_that_waits_or_runs_and_nobody_else_does() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
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
        let workspace = workspace(&t.db, at(0)).await;
        let first = claimed(&t.db, workspace, "one", at(0)).await;
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
        let job = ingestion(&t.db, workspace, first.document_id).await;
        assert_eq!((job.state, job.finished_at), (JobState::Dead, Some(last)), "{}", t.name);
        assert_eq!(job.last_error.unwrap().0, error("worker_lost"), "{}", t.name);
        assert!(claim(&t.db, last).await.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_change_during_the_last_attempt_is_not_lost_with_its_worker() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let first = claimed(&t.db, workspace, "one", at(0)).await;
        assert_eq!(fail(&t.db, &first, Some(at(0)), at(0)).await, Some(JobState::Queued), "{}", t.name);
        let last = claim(&t.db, at(0)).await.unwrap();
        assert_eq!(last.attempts, last.max_attempts, "{}", t.name);
        enqueue(&t.db, workspace, last.document_id, at(1)).await;
        let later = at(0).plus(LEASE).plus(Duration::from_secs(1));
        assert_eq!(expire(&t.db, later).await, [JobState::Queued], "{}", t.name);
        assert_eq!(claim(&t.db, later).await.unwrap().attempts, 1, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_at_the_moment_when_the_last_lease_expires_is_not_lost() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let first = claimed(&t.db, workspace, "one", at(0)).await;
        fail(&t.db, &first, Some(at(0)), at(0)).await;
        let last = claim(&t.db, at(0)).await.unwrap();
        assert_eq!(last.attempts, last.max_attempts, "{}", t.name);
        let later = at(0).plus(LEASE).plus(Duration::from_secs(1));

        let mut changing = t.db.begin().await.unwrap();
        let document = last.document_id;
        jobs::enqueue(&mut changing, workspace, document, JobKind::Ingest, ATTEMPTS, later).await.unwrap();
        let db = t.db.clone();
        let expiring = tokio::spawn(async move { expire(&db, later).await });
        finished_or_blocked(&t.db, &expiring).await;
        changing.commit().await.unwrap();
        assert_eq!(expiring.await.unwrap(), [JobState::Queued], "{}", t.name);
        assert_eq!(claim(&t.db, later).await.unwrap().attempts, 1, "{}", t.name);
    }
}
