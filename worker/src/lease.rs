//! One worker's hold on a job: renewed while it works, told how far it is, and noticed when it is lost. It ends where publication
//! begins, which ends the claim itself: only the store can say then what became of the job.

use std::{pin::pin, sync::Arc, time::Duration};

use lectern_db::jobs::JobProgress;
use lectern_jobs::JobQueue;
use lectern_shared::{
    ids::GenerationId,
    metrics::Metrics,
    model::job::{IngestionStage, JobClaim, StageProgress},
    telemetry,
};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::Instant,
};
use tracing::Span;

/// Progress is written at most this often.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// How long a new stage goes on before it is written: most documents are small, and through with all stages by then, and each
/// write is a commit that other jobs wait behind on SQLite.
const STAGE_AFTER: Duration = Duration::from_millis(200);
/// A claim that could not be renewed is given up so long before somebody else may take the job.
const MARGIN: Duration = Duration::from_secs(1);

/// Why the work must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbortReason {
    /// Somebody else may hold the job now, or it was cancelled.
    Claim,
    /// Nothing moved for too long.
    Progress,
}

/// Told by the work how far it is. Cheap to clone; may be called from any thread.
#[derive(Clone)]
pub(crate) struct ProgressReporter {
    state: Arc<Mutex<ReporterState>>,
    stage_changed: Arc<Notify>,
    metrics: Arc<Metrics>,
    span: Span,
}

struct ReporterState {
    report: JobProgress,
    /// How far a work of several parts is, which is told in the place of how far each part is.
    of_several: Option<StageProgress>,
    running: Option<RunningStage>,
    moved_at: Instant,
    unwritten: bool,
    generation: Option<GenerationId>,
    /// The claim is about to be ended by the work itself, so that nobody is told that it is lost.
    publishing: bool,
}

/// A stage that goes on; told when it ends.
struct RunningStage {
    stage: IngestionStage,
    began: Instant,
    metrics: Arc<Metrics>,
    /// Ends with the stage.
    _span: Span,
}

impl Drop for RunningStage {
    fn drop(&mut self) {
        self.metrics.stage(self.stage, self.began.elapsed());
    }
}

impl ProgressReporter {
    /// One that nobody listens to. Stages are part of the current span.
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        let state = ReporterState {
            report: JobProgress::default(),
            of_several: None,
            running: None,
            moved_at: Instant::now(),
            unwritten: false,
            generation: None,
            publishing: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            stage_changed: Arc::new(Notify::new()),
            metrics,
            span: Span::current(),
        }
    }

    /// A new stage begins; written soon.
    pub(crate) fn stage(&self, stage: IngestionStage) {
        let mut state = self.state.lock();
        let began = Instant::now();
        // A source of several addresses is in the same stage several times.
        if state.running.as_ref().is_none_or(|running| running.stage != stage) {
            // The one before ends first.
            state.running = None;
            let name = stage.as_str().to_ascii_lowercase();
            let span =
                tracing::info_span!(target: telemetry::SPANS, parent: &self.span, "stage", otel.name = name);
            state.running =
                Some(RunningStage { stage, began, metrics: Arc::clone(&self.metrics), _span: span });
        }
        state.report = JobProgress { stage: Some(stage), progress: state.of_several.clone() };
        state.moved_at = began;
        state.unwritten = true;
        drop(state);
        self.stage_changed.notify_one();
    }

    /// From now on this generation is being written.
    pub(crate) fn writes(&self, generation: GenerationId) {
        self.state.lock().generation = Some(generation);
    }

    /// The generation that was being written, if it came to that.
    pub(crate) fn generation(&self) -> Option<GenerationId> {
        self.state.lock().generation
    }

    /// From now on the claim is not renewed any more, and whatever a renewal that is under way finds out says nothing.
    pub(crate) fn publishing(&self) {
        self.state.lock().publishing = true;
        self.stage_changed.notify_one();
    }

    /// From the next stage on so many of so many addresses are read; none when the work is of one part again.
    pub(crate) fn of_several(&self, read: Option<(u64, u64)>) {
        let of = |(done, total)| StageProgress { done, total: Some(total), unit: "addresses".to_owned() };
        self.state.lock().of_several = read.map(of);
    }

    /// The stage is so far; written within a second.
    pub(crate) fn at(&self, done: u64, total: Option<u64>, unit: &str) {
        let mut state = self.state.lock();
        if state.of_several.is_none() {
            state.report.progress = Some(StageProgress { done, total, unit: unit.to_owned() });
        }
        state.moved_at = Instant::now();
        state.unwritten = true;
    }
}

impl ProgressReporter {
    /// Waits for what others may have for long, such as a turn: whoever waits in line does not stand still.
    pub(crate) async fn waiting_for<T>(&self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        loop {
            match tokio::time::timeout(REPORT_EVERY, &mut awaited).await {
                Ok(done) => return done,
                Err(_) => self.state.lock().moved_at = Instant::now(),
            }
        }
    }

    /// Tells that the work must stop, unless it publishes: then it is the work that ends the claim.
    fn signal_abort(&self, tell: &watch::Sender<Option<AbortReason>>, reason: AbortReason) {
        let state = self.state.lock();
        if !state.publishing {
            let _ = tell.send(Some(reason));
        }
    }
}

/// A hold on a claim; renewed in the background until it is released or dropped.
pub(crate) struct JobLease {
    progress: ProgressReporter,
    lost: watch::Receiver<Option<AbortReason>>,
    renewal: JoinHandle<()>,
}

impl JobLease {
    /// Begins to renew `claim`.
    pub(crate) fn take(jobs: JobQueue, claim: JobClaim, metrics: Arc<Metrics>) -> Self {
        let progress = ProgressReporter::new(metrics);
        let (tell, lost) = watch::channel(None);
        let renewal = tokio::spawn(renew(jobs, claim, progress.clone(), tell));
        Self { progress, lost, renewal }
    }

    /// What the work tells its progress to.
    pub(crate) fn progress(&self) -> ProgressReporter {
        self.progress.clone()
    }

    /// Waits until the work must stop; for ever once it publishes.
    pub(crate) async fn lost(&self) -> AbortReason {
        let mut lost = self.lost.clone();
        match lost.wait_for(Option::is_some).await.map(|reason| *reason) {
            Ok(Some(reason)) => reason,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// What was last told.
    pub(crate) fn report(&self) -> JobProgress {
        self.progress.state.lock().report.clone()
    }
}

impl Drop for JobLease {
    fn drop(&mut self) {
        self.progress.state.lock().running = None;
        self.renewal.abort();
    }
}

async fn renew(
    jobs: JobQueue,
    claim: JobClaim,
    progress: ProgressReporter,
    tell: watch::Sender<Option<AbortReason>>,
) {
    let lease = jobs.settings().lease;
    let patience = jobs.settings().timeout;
    let mut renewed_at = Instant::now();
    loop {
        let (report, moved_at, unwritten) = {
            let mut state = progress.state.lock();
            if state.publishing {
                return;
            }
            (state.report.clone(), state.moved_at, std::mem::take(&mut state.unwritten))
        };
        if moved_at.elapsed() > patience {
            progress.signal_abort(&tell, AbortReason::Progress);
            return;
        }
        if unwritten || renewed_at.elapsed() > lease / 3 {
            let began = Instant::now();
            // A store that hangs must not outlast the lease.
            match tokio::time::timeout(lease / 3, jobs.renew(&claim, &report)).await {
                Ok(Ok(true)) => renewed_at = began,
                Ok(Ok(false)) => {
                    progress.signal_abort(&tell, AbortReason::Claim);
                    return;
                }
                Ok(Err(error)) => {
                    progress.state.lock().unwritten = true;
                    tracing::debug!(%error, "the claim could not be renewed yet");
                }
                Err(_) => progress.state.lock().unwritten = true,
            }
            if renewed_at.elapsed() + MARGIN > lease {
                progress.signal_abort(&tell, AbortReason::Claim);
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(REPORT_EVERY) => {}
            () = progress.stage_changed.notified() => tokio::time::sleep(STAGE_AFTER).await,
        }
    }
}
