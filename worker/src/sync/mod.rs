//! Sources whose documents are kept in step with what is there. A schedule queues their runs; a worker claims one, finds what there is,
//! and makes, changes and deletes documents, which are ingested like any others. A run that is cut off goes on elsewhere.

mod bucket;
mod feed;
mod folder;
mod hosts;
mod item;
mod pages;
mod record;
mod run;
mod site;
mod sitemap;

use std::time::Duration;

use lectern_runtime::Runtime;
use lectern_shared::{
    clock::Timestamp,
    db::{
        self, DbError,
        sync::{
            self, DueSource,
            runs::{self, RunRequest},
        },
    },
    ids::{ClaimId, SourceRunId},
    model::sync::{ClaimedSyncRun, SyncCounts, SyncRunState},
    retry::{JitterRange, jitter},
    shutdown::Shutdown,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    hosts::HostPacer,
    run::{RunFailure, SyncRunner},
};

/// How often it is looked for what is due.
const EVERY: Duration = Duration::from_millis(500);
/// How often, after the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Sources that are scheduled at a time.
const SCHEDULED: u32 = 50;
/// How often a run may be taken up by a worker that then went away without a word.
const MOST_ATTEMPTS: i64 = 5;

/// Starts to keep up with sources in the background; it ends with `shutdown`, and runs that are under way then go on elsewhere.
pub(crate) fn start(runtime: Runtime, shutdown: &Shutdown) {
    let soft = shutdown.soft().clone();
    let pacer = HostPacer::new(runtime.settings.sync.pause);
    shutdown.spawn(async move {
        let mut failing = false;
        let mut under_way = JoinSet::new();
        loop {
            let worked = take_up(&runtime, &pacer, &soft, &mut under_way).await;
            // One line for an outage, not one for every try.
            if let Some(error) = worked.as_ref().err().filter(|_| !failing) {
                tracing::warn!(%error, "the runs of sources cannot be read; trying again");
            }
            failing = worked.is_err();
            tokio::select! {
                biased;
                () = soft.cancelled() => break,
                Some(ended) = under_way.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a run of a source panicked");
                    }
                }
                () = tokio::time::sleep(if failing { AFTER_FAILURE } else { EVERY }) => {}
            }
        }
        while under_way.join_next().await.is_some() {}
    });
}

/// Queues what is due, and takes up as many runs as there is room for.
async fn take_up(
    runtime: &Runtime,
    pacer: &HostPacer,
    soft: &CancellationToken,
    under_way: &mut JoinSet<()>,
) -> Result<(), DbError> {
    for source in sync::due(&runtime.db, runtime.jobs.now(), SCHEDULED).await? {
        schedule(runtime, &source).await?;
    }
    let most = runtime.settings.sync.runs;
    while under_way.len() < most as usize && runs::any_due(&runtime.db, runtime.jobs.now()).await? {
        let mut tx = runtime.db.begin().await?;
        let now = runtime.jobs.now();
        let claimed = runs::claim(&mut tx, now, lease_end(runtime), most.div_ceil(2)).await?;
        tx.commit().await?;
        let Some(claimed) = claimed else { break };
        under_way.spawn(work(runtime.clone(), pacer.clone(), soft.clone(), claimed));
    }
    Ok(())
}

/// Queues a run of a source whose time has come, unless one is under way, and sets when it runs again.
async fn schedule(runtime: &Runtime, due: &DueSource) -> Result<(), DbError> {
    let now = runtime.jobs.now();
    let every = Duration::from_secs(due.every_seconds.unsigned_abs());
    let mut tx = runtime.db.begin().await?;
    db::locks::lock_workspace(&mut tx, due.workspace_id).await?;
    if sync::reschedule(&mut tx, due, now.plus(jitter(every, JitterRange::Fifth))).await? {
        runs::insert(&mut tx, due.workspace_id, due.id, RunRequest::default(), now).await?;
    }
    tx.commit().await
}

fn lease_end(runtime: &Runtime) -> Timestamp {
    runtime.jobs.now().plus(runtime.jobs.settings().lease)
}

/// Works on a run until it ends, is lost, or the process stops.
async fn work(runtime: Runtime, pacer: HostPacer, soft: CancellationToken, claimed: ClaimedSyncRun) {
    let (run, source) = (claimed.run.id, claimed.run.source_id);
    let Some(claim) = claimed.run.claim_id else { return };
    let failed_before = claimed.run.attempts > MOST_ATTEMPTS;
    let runner = SyncRunner::new(&runtime, &pacer, claimed);
    let done = tokio::select! {
        biased;
        () = soft.cancelled() => Err(RunFailure::Interrupted),
        () = lost(&runtime, run, claim) => Err(RunFailure::Lost),
        done = async {
            if failed_before {
                return Err(RunFailure::stop("The worker was lost again and again while it was at this run."));
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
        Err(RunFailure::Interrupted) => release(&runtime, run, claim).await,
        Err(RunFailure::Stopped(why)) => {
            tracing::info!(%source, %run, why, "a run of a source failed");
            runner.end(SyncRunState::Failed, Some(&why)).await.map(drop)
        }
        Err(RunFailure::Outage(cause)) => {
            tracing::warn!(%source, %run, cause, "a run of a source rests, since a part of the service is away");
            tokio::select! { () = soft.cancelled() => {}, () = tokio::time::sleep(AFTER_FAILURE) => {} }
            release(&runtime, run, claim).await
        }
    };
    if let Err(error) = ended {
        // Its lease ends, and it goes on then.
        tracing::warn!(?error, %source, %run, "what came of a run of a source cannot be noted");
    }
}

async fn release(runtime: &Runtime, run: SourceRunId, claim: ClaimId) -> Result<(), RunFailure> {
    let mut tx = runtime.db.begin_essential().await?;
    runs::release(&mut tx, run, claim).await?;
    Ok(tx.commit().await?)
}

/// Renews a claim, and returns when it is lost.
async fn lost(runtime: &Runtime, run: SourceRunId, claim: ClaimId) {
    let lease = runtime.jobs.settings().lease;
    let mut held_until = runtime.jobs.now().plus(lease);
    loop {
        // Often enough that somebody who stops a run need not wait for long.
        tokio::time::sleep((lease / 4).min(Duration::from_secs(5))).await;
        let until = lease_end(runtime);
        match renew(runtime, run, claim, until).await {
            Ok(true) => held_until = until,
            Ok(false) => return,
            Err(error) if runtime.jobs.now() >= held_until => {
                tracing::warn!(%error, %run, "the claim on a run of a source could not be renewed");
                return;
            }
            Err(_) => {}
        }
    }
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
