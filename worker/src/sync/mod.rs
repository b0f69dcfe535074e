//! Sources whose documents are kept in step with what is there. A schedule queues their runs; a worker claims one, finds what there is,
//! and makes, changes and deletes documents, which are ingested like any others. A run that is cut off goes on elsewhere.

mod address;
mod bucket;
mod context;
mod failure;
mod feed;
mod folder;
mod frontier;
mod hosts;
mod item;
mod listing;
mod objects;
mod pages;
mod record;
pub(crate) mod robots;
mod run;
mod site;
mod sitemap;
mod spellings;
mod vanished;
mod warning;

use std::{collections::HashSet, time::Duration};

use lectern_db::{
    self as db, DbError,
    sync::{
        self, DueSource,
        runs::{self, RunRequest},
    },
};
use lectern_runtime::{
    Runtime,
    leased::{AFTER_FAILURE, LeasedWork, MOST_ATTEMPTS, lease_end, until_lost},
};
use lectern_sandbox::Sandbox;
use lectern_shared::{
    clock::Timestamp,
    compute::ComputePool,
    ids::{ClaimId, SourceRunId},
    model::sync::{SyncCounts, SyncRun, SyncRunState},
};
use tokio_util::sync::CancellationToken;

use self::{failure::RunFailure, hosts::HostPacer, run::SyncRunner};

/// Why a run ends that was taken up too often.
const CUT_OFF: &str =
    "The run was cut off again and again: its worker was lost, or the database was too slow for it.";
/// Sources that are scheduled at a time.
const SCHEDULED: u32 = 50;
/// Folders that are looked into at once, at least. A disk that does not answer keeps a thread after its run was stopped, and everything in
/// the process that blocks shares some hundred threads.
const FOLDERS: usize = 64;

/// The runs of sources.
#[derive(Clone)]
pub(crate) struct SyncRuns {
    runtime: Runtime,
    sandbox: Sandbox,
    pacer: HostPacer,
    folders: ComputePool,
}

impl SyncRuns {
    pub(crate) fn new(runtime: Runtime, sandbox: Sandbox) -> Self {
        let settings = &runtime.settings.sync;
        let pacer = HostPacer::new(settings.pause);
        let folders = ComputePool::new(FOLDERS.max(settings.runs as usize));
        Self { runtime, sandbox, pacer, folders }
    }
}

impl LeasedWork for SyncRuns {
    type Claimed = SyncRun;

    const NAME: &'static str = "runs of sources";

    fn most_at_once(&self) -> usize {
        self.runtime.settings.sync.runs as usize
    }

    /// Queues what is due, and claims the next run.
    async fn claim(&self) -> Result<Option<SyncRun>, DbError> {
        let Runtime { db, jobs, settings, .. } = &self.runtime;
        // A workspace that somebody holds for long does not keep the sources of others from running.
        let mut busy = HashSet::new();
        for source in sync::due(db, jobs.now(), SCHEDULED).await? {
            if busy.contains(&source.workspace_id) {
                continue;
            }
            if let Err(error) = schedule(&self.runtime, &source).await {
                tracing::warn!(%error, source = %source.id, "a source could not be scheduled yet");
                busy.insert(source.workspace_id);
            }
        }
        if !runs::any_due(db, jobs.now()).await? {
            return Ok(None);
        }
        let mut tx = db.begin().await?;
        let of_one = settings.sync.runs.div_ceil(2);
        let claimed = runs::claim(&mut tx, jobs.now(), lease_end(jobs), of_one).await?;
        tx.commit().await?;
        Ok(claimed)
    }

    async fn work(self, claimed: SyncRun, stopping: CancellationToken) {
        work(self, stopping, claimed).await;
    }
}

/// Queues a run of a source whose time has come, unless one is under way, and sets when it runs again.
async fn schedule(runtime: &Runtime, due: &DueSource) -> Result<(), DbError> {
    let now = runtime.jobs.now();
    let next = next_time(due.next_run_at, due.every_seconds.unsigned_abs(), now);
    let mut tx = runtime.db.begin().await?;
    db::locks::lock_workspace(&mut tx, due.workspace_id).await?;
    if sync::reschedule(&mut tx, due, next).await? {
        runs::insert(&mut tx, due.workspace_id, due.id, RunRequest::default(), now).await?;
    }
    tx.commit().await
}

/// The next time of a source that runs so often, in seconds. Its times keep their distance, also from one at which nobody could run it.
fn next_time(due: Timestamp, every: u64, now: Timestamp) -> Timestamp {
    let passed = now.since(due).as_secs() / every.max(1);
    due.plus(Duration::from_secs(every.saturating_mul(passed.saturating_add(1))))
}

/// Works on a run until it ends, is lost, or the process stops.
async fn work(runs: SyncRuns, soft: CancellationToken, claimed: SyncRun) {
    let runtime = &runs.runtime;
    let (run, source) = (claimed.id, claimed.source_id);
    let Some(claim) = claimed.claim_id else { return };
    let failed_before = claimed.attempts > MOST_ATTEMPTS;
    let runner = SyncRunner::new(&runs, claimed);
    let done = tokio::select! {
        biased;
        () = soft.cancelled() => Err(RunFailure::Interrupted),
        () = until_lost(&runtime.jobs, |until| renew(runtime, run, claim, until)) => Err(RunFailure::Lost),
        done = async {
            if failed_before {
                return Err(RunFailure::stop(CUT_OFF));
            }
            Box::pin(runner.go()).await
        } => done,
    };
    let ended = match done {
        Ok(state) => {
            tracing::info!(%source, %run, %state, "a run of a source ended");
            Ok(())
        }
        Err(RunFailure::Lost) => {
            tracing::info!(%source, %run, "a run of a source was stopped, or is elsewhere now");
            Ok(())
        }
        Err(RunFailure::Interrupted) => release(runtime, run, claim, false).await,
        Err(RunFailure::Stopped(why)) => {
            tracing::info!(%source, %run, why, "a run of a source failed");
            runner.end(SyncRunState::Failed, Some(&why)).await.map(drop)
        }
        Err(RunFailure::Outage(cause)) => {
            tracing::warn!(%source, %run, cause, "a run of a source rests, since a part of the service is away");
            tokio::select! { () = soft.cancelled() => {}, () = tokio::time::sleep(AFTER_FAILURE) => {} }
            release(runtime, run, claim, false).await
        }
        Err(RunFailure::Slow(cause)) => {
            tracing::warn!(%source, %run, cause, "a run of a source rests, since the database was too slow");
            tokio::select! { () = soft.cancelled() => {}, () = tokio::time::sleep(AFTER_FAILURE) => {} }
            release(runtime, run, claim, true).await
        }
    };
    if let Err(error) = ended {
        // Its lease ends, and it goes on then.
        tracing::warn!(?error, %source, %run, "what came of a run of a source cannot be noted");
    }
}

async fn release(
    runtime: &Runtime,
    run: SourceRunId,
    claim: ClaimId,
    counts: bool,
) -> Result<(), RunFailure> {
    let mut tx = runtime.db.begin_essential().await?;
    runs::release(&mut tx, run, claim, counts).await?;
    Ok(tx.commit().await?)
}

async fn renew(
    runtime: &Runtime,
    run: SourceRunId,
    claim: ClaimId,
    until: Timestamp,
) -> Result<bool, DbError> {
    let mut tx = runtime.db.begin_essential_relaxed().await?;
    let held = runs::hold(&mut tx, run, claim, until, &SyncCounts::default()).await?;
    tx.commit().await?;
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_source_keep_their_distance() {
        const HOUR: u64 = 60 * 60;
        let at = |seconds: u64| Timestamp::from_micros(0).plus(Duration::from_secs(seconds));
        let mut due = at(100);
        // Whoever looks is never quite in time.
        for late in [0, 1, 7, 299, HOUR - 1] {
            let next = next_time(due, HOUR, due.plus(Duration::from_secs(late)));
            assert_eq!(next.since(due), Duration::from_secs(HOUR), "{late} seconds late");
            due = next;
        }
        assert_eq!(due, at(100 + 5 * HOUR));
        // What was missed is left out, and the rhythm is kept.
        assert_eq!(next_time(at(100), HOUR, at(100 + HOUR)), at(100 + 2 * HOUR));
        assert_eq!(next_time(at(100), HOUR, at(100 + 10 * HOUR + 5)), at(100 + 11 * HOUR));
    }
}
