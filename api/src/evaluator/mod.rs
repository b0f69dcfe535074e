//! Runs of evaluations. A process of the API claims one, goes through its cases, and notes what came of each; a run that is cut off goes on
//! elsewhere behind the last case that was noted.

mod answer;
mod failure;
mod run;

use lectern_agents::{run::AgentParts, tools::Toolbox};
use lectern_db::{
    self as db, DbError,
    evaluations::runs::{self, ClaimedEvaluationRun, EvaluationEnd},
};
use lectern_runtime::{
    Runtime,
    leased::{AFTER_FAILURE, LeasedWork, MOST_ATTEMPTS, lease_end, until_lost},
};
use lectern_shared::{
    clock::Timestamp,
    config::DatabaseLocation,
    ids::{ClaimId, EvaluationRunId},
    model::evaluation::EvaluationRun,
};
use tokio_util::sync::CancellationToken;

use self::{failure::RunFailure, run::CaseRunner};
use crate::{services::agents::versions::AgentHistory, state::AppState};

/// Why a run ends that was taken up too often.
const CUT_OFF: &str =
    "The run was cut off again and again: its process was lost, or the database was too slow for it.";

/// The runs of evaluations.
#[derive(Clone)]
pub(crate) struct EvaluationRuns {
    runtime: Runtime,
    agents: AgentParts,
    toolbox: Toolbox,
    history: AgentHistory,
}

impl EvaluationRuns {
    /// Over the same search and the same tools as everything else of the process.
    pub(crate) fn new(state: &AppState) -> Self {
        let (agents, toolbox) = (state.agents.clone(), state.toolbox.clone());
        let Runtime { db, clock, keyring, .. } = state.runtime.clone();
        Self {
            history: AgentHistory::new(db, clock, keyring),
            runtime: state.runtime.clone(),
            agents,
            toolbox,
        }
    }

    /// Ends the claims of processes that are known to be gone: a database in a file has one process.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn void_claims(&self) -> Result<(), DbError> {
        if !matches!(self.runtime.settings.database, DatabaseLocation::Sqlite(_)) {
            return Ok(());
        }
        let mut tx = self.runtime.db.begin_essential().await?;
        runs::void_claims(&mut tx).await?;
        tx.commit().await
    }

    /// Ends a run, or leaves it to whoever has it now.
    async fn end(&self, run: &EvaluationRun, end: EvaluationEnd) -> Result<(), DbError> {
        let mut tx = self.runtime.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, run.workspace_id).await?;
        let kept = self.runtime.settings.evaluation.results;
        runs::end(&mut tx, run, &end, self.runtime.clock.now(), kept).await?;
        tx.commit().await
    }

    async fn release(&self, run: EvaluationRunId, claim: ClaimId, counts: bool) -> Result<(), DbError> {
        let mut tx = self.runtime.db.begin_essential().await?;
        runs::release(&mut tx, run, claim, counts).await?;
        tx.commit().await
    }

    async fn renew(&self, run: EvaluationRunId, claim: ClaimId, until: Timestamp) -> Result<bool, DbError> {
        let mut tx = self.runtime.db.begin_essential_relaxed().await?;
        let held = runs::hold(&mut tx, run, claim, until).await?;
        tx.commit().await?;
        Ok(held)
    }
}

impl LeasedWork for EvaluationRuns {
    type Claimed = ClaimedEvaluationRun;

    const NAME: &'static str = "runs of evaluations";

    fn most_at_once(&self) -> usize {
        self.runtime.settings.evaluation.runs as usize
    }

    async fn claim(&self) -> Result<Option<ClaimedEvaluationRun>, DbError> {
        let Runtime { db, jobs, .. } = &self.runtime;
        if !runs::any_due(db, jobs.now()).await? {
            return Ok(None);
        }
        let mut tx = db.begin().await?;
        let claimed = runs::claim(&mut tx, jobs.now(), lease_end(jobs)).await?;
        tx.commit().await?;
        Ok(claimed)
    }

    async fn work(self, claimed: ClaimedEvaluationRun, stopping: CancellationToken) {
        let run = &claimed.run;
        let (id, evaluation) = (run.id, run.evaluation_id);
        let Some(claim) = run.claim_id else { return };
        let go = async {
            if run.attempts > MOST_ATTEMPTS {
                return Err(RunFailure::Stopped(CUT_OFF.to_owned()));
            }
            let quotas = claimed.quotas.as_ref().map(|quotas| quotas.0).unwrap_or_default();
            Box::pin(CaseRunner::new(&self, run, quotas).go()).await
        };
        let done = tokio::select! {
            biased;
            () = stopping.cancelled() => Err(RunFailure::Interrupted),
            () = until_lost(&self.runtime.jobs, |until| self.renew(id, claim, until)) => Err(RunFailure::Lost),
            done = go => done,
        };
        let ended = match done {
            Ok(metrics) => {
                tracing::info!(%evaluation, run = %id, "a run of an evaluation ended");
                self.end(run, EvaluationEnd::Succeeded(metrics)).await
            }
            Err(RunFailure::Lost) => {
                tracing::info!(%evaluation, run = %id, "a run of an evaluation was stopped, or is elsewhere now");
                Ok(())
            }
            Err(RunFailure::Interrupted) => self.release(id, claim, false).await,
            Err(RunFailure::Stopped(why)) => {
                tracing::info!(%evaluation, run = %id, why, "a run of an evaluation failed");
                self.end(run, EvaluationEnd::Failed(why)).await
            }
            Err(RunFailure::Outage(cause)) => {
                tracing::warn!(%evaluation, run = %id, cause, "a run of an evaluation rests, since a part of the service is away");
                tokio::select! { () = stopping.cancelled() => {}, () = tokio::time::sleep(AFTER_FAILURE) => {} }
                self.release(id, claim, false).await
            }
            Err(RunFailure::Slow(cause)) => {
                tracing::warn!(%evaluation, run = %id, cause, "a run of an evaluation rests, since the database failed");
                tokio::select! { () = stopping.cancelled() => {}, () = tokio::time::sleep(AFTER_FAILURE) => {} }
                self.release(id, claim, true).await
            }
        };
        if let Err(error) = ended {
            // Its lease ends, and it goes on then.
            tracing::warn!(%error, %evaluation, run = %id, "what came of a run of an evaluation cannot be noted");
        }
    }
}
