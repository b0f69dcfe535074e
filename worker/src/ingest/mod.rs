//! One ingestion: fetch → parse → split → index → publish, each stage bounded, nothing visible before the last step.

mod generation;
pub(crate) mod passages;
mod publisher;
mod run;
mod vectors;

use std::{sync::Arc, time::Duration};

use lectern_db::{self as db, generations};
use lectern_index::IndexError;
use lectern_runtime::Runtime;
use lectern_sandbox::{Sandbox, budget::CpuBudget};
use lectern_shared::{
    ids::GenerationId,
    model::{Json, job::JobClaim},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::{publisher::GenerationPublisher, run::IngestionRun};
use crate::{
    failure::IngestFailure,
    lease::ProgressReporter,
    source::{ReadOutcome, pdf::PdfEngine},
    splitter::TokenCounter,
};

/// For how long an index that has answered is not asked again whether it is there.
const REACHED_FOR: Duration = Duration::from_secs(1);

/// Runs ingestions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ingester {
    runtime: Runtime,
    sandbox: Sandbox,
    pdf: PdfEngine,
    publisher: GenerationPublisher,
    /// When the index last answered.
    reached: Arc<Mutex<Option<Instant>>>,
}

impl Ingester {
    pub(crate) fn new(runtime: Runtime, sandbox: Sandbox, pdf: PdfEngine) -> Self {
        let publisher = GenerationPublisher::new(&runtime.db, &runtime.jobs);
        Self { runtime, sandbox, pdf, publisher, reached: Arc::default() }
    }

    /// Finds out that an index elsewhere is away before the source is asked. Of small documents there are hundreds a second, so one that
    /// has just answered is taken to be there.
    async fn ensure_reachable_index(&self) -> Result<(), IngestFailure> {
        let is_known = self.reached.lock().is_some_and(|reached| reached.elapsed() < REACHED_FOR);
        if is_known || self.runtime.index.late_write_window().is_none() {
            return Ok(());
        }
        self.runtime.index.ping().await?;
        *self.reached.lock() = Some(Instant::now());
        Ok(())
    }

    /// Makes the claim's document searchable.
    pub(crate) async fn run(
        &self,
        claim: &JobClaim,
        progress: &ProgressReporter,
    ) -> Result<(), IngestFailure> {
        let runtime = &self.runtime.on_behalf_of(claim.workspace_id);
        let source = db::documents::source(&runtime.db, claim.workspace_id, claim.document_id).await?;
        let source = &source.ok_or(IngestFailure::ClaimLost)?;
        self.ensure_reachable_index().await?;
        let embedder = runtime.models.wait_until_opened().await;
        let sizing = &TokenCounter::of(embedder.clone(), &runtime.settings.embedding);
        let budget = CpuBudget::new(runtime.settings.limits.processor_time);
        let run = IngestionRun { ingester: self, runtime, claim, source, embedder, sizing, budget, progress };
        let former = source.active_index.clone().map(|Json(index)| index);
        let known = source.source_state.as_ref().filter(|_| former.is_some()).map(|Json(state)| state);
        let outcome = match &former {
            Some(_) if claim.from_stored => ReadOutcome::Unchanged,
            _ => run.read(known).await?,
        };
        match (outcome, former) {
            (ReadOutcome::Read(read), former) => {
                let (extracted, state) = *read;
                run.publish(extracted, state, former.map(|former| former.generation)).await
            }
            (ReadOutcome::Unchanged, Some(former)) => {
                // What was learnt of it the last time holds still, and was forgotten when it was queued.
                let learnt = known.filter(|_| !claim.from_stored);
                run.index_again(former, learnt.cloned()).await
            }
            (ReadOutcome::Unchanged, None) => {
                Err(IngestFailure::Internal("a source that was never read is unchanged".to_owned()))
            }
        }
    }

    /// Removes what was added to the index after the claim was lost: an index that cannot refuse it may have taken it after the
    /// sweeper looked for the last time. The store decides whether it may go. Nothing depends on it, so a failure is only noted.
    pub(crate) async fn discard(&self, claim: &JobClaim, generation: GenerationId) {
        if self.runtime.index.late_write_window().is_none() {
            return;
        }
        match self.remove_abandoned(claim, generation).await {
            Ok(true) => {}
            Ok(false) => tracing::info!(%generation, "the generation was published after all, and is kept"),
            Err(error) => {
                tracing::warn!(%error, %generation, "an abandoned generation could not be removed yet");
            }
        }
    }

    /// Gives a generation up and removes it from the index; false when it answers, and is left alone.
    async fn remove_abandoned(&self, claim: &JobClaim, generation: GenerationId) -> Result<bool, IndexError> {
        let Runtime { db, index, jobs, settings, .. } = &self.runtime;
        let purge_at = jobs.now().plus(settings.index_grace);
        let mut tx = db.begin_essential().await?;
        let retired = generations::retire(&mut tx, claim, generation, purge_at).await?;
        tx.commit().await?;
        let Some(retired) = retired else { return Ok(false) };
        index.remove(retired).await?;
        Ok(true)
    }
}
