//! Doorbell → claim → run → finish. apalis drives it: it hears the rings, bounds how many are answered at once, and waits
//! for them when the service stops.

use std::{sync::Arc, time::Duration};

use apalis::prelude::{Data, WorkerBuilder, WorkerBuilderExt, WorkerError};
use lectern_db::DbError;
use lectern_jobs::{DoorbellRing, JobQueue};
use lectern_shared::{
    metrics::{JobAttemptOutcome, Metrics},
    model::job::{IngestionError, JobClaim, JobKind, JobState},
    retry::{JitterRange, jitter},
    shutdown::Shutdown,
    telemetry,
};
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::{
    failure::IngestFailure,
    ingest::Ingester,
    lease::{AbortReason, JobLease},
};

/// How long a job may go on after the service was asked to stop; then it is handed back.
const FINISH_WITHIN: Duration = Duration::from_secs(8);
/// The pause after a server failed that the service needs.
const OUTAGE_PAUSE: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct JobConsumer {
    name: String,
    jobs: JobQueue,
    metrics: Arc<Metrics>,
    ingester: Ingester,
    shutdown: Shutdown,
}

/// Starts to answer rings, in the background.
pub(crate) fn start(jobs: &JobQueue, metrics: &Arc<Metrics>, ingester: Ingester, shutdown: &Shutdown) {
    let consumer = JobConsumer {
        name: format!("worker-{}", uuid::Uuid::now_v7()),
        jobs: jobs.clone(),
        metrics: Arc::clone(metrics),
        ingester,
        shutdown: shutdown.clone(),
    };
    let concurrency = jobs.settings().concurrency;
    let Some(backend) = jobs.doorbell().listen() else {
        tracing::error!("a second worker was started in one process; it does nothing");
        return;
    };
    let (doorbell, name, soft) = (jobs.doorbell().clone(), consumer.name.clone(), shutdown.soft().clone());
    shutdown.spawn(async move {
        tokio::select! { () = doorbell.hear(&name) => {}, () = soft.cancelled() => {} }
    });
    let soft = shutdown.soft().clone();
    let worker = WorkerBuilder::new(consumer.name.as_str())
        .backend(backend)
        .data(consumer)
        .concurrency(concurrency)
        .build(answer);
    shutdown.spawn(async move {
        let stop = async move {
            soft.cancelled().await;
            Ok::<_, WorkerError>(())
        };
        if let Err(error) = worker.run_until(stop).await {
            tracing::error!(%error, "the worker ended");
        }
    });
}

/// Answers a ring on a task of its own. apalis's own layer for this cannot be named in a future that moves between threads.
async fn answer(_: DoorbellRing, consumer: Data<JobConsumer>) {
    let consumer = consumer.clone();
    if let Err(error) = tokio::spawn(async move { consumer.drain().await }).await {
        tracing::error!(%error, "the consumer panicked");
    }
}

/// How the work on a claim ended.
enum ClaimOutcome {
    Done,
    Failed(IngestFailure),
    ClaimLost,
    Stopping,
}

impl JobConsumer {
    /// Works until nothing is due any more: a ring says that there is work, not how much.
    async fn drain(&self) {
        while !self.shutdown.soft().is_cancelled() {
            match self.jobs.claim(&self.name).await {
                Ok(Some(claim)) => {
                    let span = span(&claim);
                    self.run(claim).instrument(span).await;
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "no job can be claimed; trying again");
                    self.pause().await;
                }
            }
        }
    }

    /// Waits a moment, or until the service stops.
    async fn pause(&self) {
        tokio::select! {
            () = tokio::time::sleep(jitter(OUTAGE_PAUSE, JitterRange::Fifth)) => {}
            () = self.shutdown.soft().cancelled() => {}
        }
    }

    async fn run(&self, claim: JobClaim) {
        tracing::info!(kind = %claim.kind, "job started");
        let began = Instant::now();
        let hold = JobLease::take(self.jobs.clone(), claim.clone(), Arc::clone(&self.metrics));
        let ended = self.work(&claim, &hold).await;
        let generation = hold.progress().generation();
        // One that lasts for too long is one too, although it counts.
        let is_outage = matches!(ended, ClaimOutcome::Failed(IngestFailure::Outage(_)));
        let settled = match ended {
            ClaimOutcome::Done => {
                tracing::info!("job done");
                Ok(JobAttemptOutcome::Done)
            }
            ClaimOutcome::ClaimLost => {
                tracing::info!("job given up: the claim is no longer held");
                if let Some(generation) = generation {
                    self.ingester.discard(&claim, generation).await;
                }
                Ok(JobAttemptOutcome::Lost)
            }
            ClaimOutcome::Stopping => {
                tracing::info!("job handed back: the service is stopping");
                self.jobs.release(&claim).await.map(|()| JobAttemptOutcome::HandedBack)
            }
            ClaimOutcome::Failed(IngestFailure::Outage(cause)) if self.jobs.may_wait(&claim) => {
                tracing::warn!(cause, "job requeued: a part of the service is away");
                self.requeue_after_outage(&claim).await.map(|()| JobAttemptOutcome::Postponed)
            }
            ClaimOutcome::Failed(failure) => {
                let pause = failure.pause();
                let error = failure.into_error();
                let report = hold.report();
                telemetry::note(&Span::current(), "error.type", error.code.clone());
                self.jobs.fail(&claim, &error, pause, &report).await.map(|state| {
                    log_failure(&error, state);
                    match state {
                        Some(JobState::Dead) => JobAttemptOutcome::Dead,
                        Some(_) => JobAttemptOutcome::Retried,
                        None => JobAttemptOutcome::Lost,
                    }
                })
            }
        };
        drop(hold);
        let attempt = settled.unwrap_or_else(|error| {
            // The lease will run out, and the sweeper takes the job back.
            tracing::warn!(%error, "the end of the job could not be recorded");
            JobAttemptOutcome::Lost
        });
        self.metrics.attempt(attempt, began.elapsed());
        telemetry::note(&Span::current(), "lectern.job.outcome", attempt.as_str());
        if attempt != JobAttemptOutcome::Done {
            telemetry::note_failure(&Span::current());
        }
        if is_outage {
            // The next job would fare no better.
            self.pause().await;
        }
    }

    /// Requeues a job that an outage stopped, uncounted. The store may be what is away or full, so it is tried until it can be
    /// told, and past the end of the lease: whoever has the job by then keeps it.
    async fn requeue_after_outage(&self, claim: &JobClaim) -> Result<(), DbError> {
        let error = IngestFailure::Outage(String::new()).into_error();
        loop {
            let failed = match self.jobs.postpone(claim, &error).await {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            };
            self.pause().await;
            if self.shutdown.soft().is_cancelled() {
                return Err(failed);
            }
        }
    }

    async fn work(&self, claim: &JobClaim, hold: &JobLease) -> ClaimOutcome {
        let mut task = match claim.kind {
            JobKind::Ingest => {
                let (ingester, claim, progress) = (self.ingester.clone(), claim.clone(), hold.progress());
                tokio::spawn(async move { ingester.run(&claim, &progress).await }.in_current_span())
            }
        };
        let stopping = async {
            self.shutdown.soft().cancelled().await;
            tokio::select! {
                () = tokio::time::sleep(FINISH_WITHIN) => {}
                () = self.shutdown.hard().cancelled() => {}
            }
        };
        let ended = tokio::select! {
            done = &mut task => return match done {
                Ok(Ok(())) => ClaimOutcome::Done,
                Ok(Err(IngestFailure::ClaimLost)) => ClaimOutcome::ClaimLost,
                Ok(Err(failure)) => ClaimOutcome::Failed(failure),
                Err(_) => ClaimOutcome::Failed(IngestFailure::Panicked),
            },
            lost = hold.lost() => match lost {
                AbortReason::Claim => ClaimOutcome::ClaimLost,
                AbortReason::Progress => ClaimOutcome::Failed(IngestFailure::Stalled),
            },
            () = stopping => ClaimOutcome::Stopping,
        };
        task.abort();
        // Nothing of it may still write when the job is given away, but for a publication, which the claim decides about.
        let _ = task.await;
        ended
    }
}

/// The span of an attempt, in the trace of whoever queued the job.
fn span(claim: &JobClaim) -> Span {
    let JobClaim { id, document_id: document, attempts: attempt, kind, .. } = claim;
    if !telemetry::is_exporting() {
        return tracing::info_span!("job", %id, %document, attempt);
    }
    let span = tracing::info_span!("job", %id, %document, attempt, otel.kind = "consumer", otel.name = %kind);
    if let Some(parent) = &claim.trace_parent {
        telemetry::follow(&span, parent);
    }
    telemetry::note(&span, "lectern.job.id", id.to_string());
    telemetry::note(&span, "lectern.document.id", document.to_string());
    span
}

fn log_failure(error: &IngestionError, state: Option<JobState>) {
    match state {
        Some(state) => tracing::warn!(code = error.code, reason = error.message, %state, "job failed"),
        None => tracing::info!(code = error.code, "job failed after its claim was lost"),
    }
}
