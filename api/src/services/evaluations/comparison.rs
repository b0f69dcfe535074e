//! Two runs side by side.

use std::{collections::HashMap, sync::LazyLock};

use lectern_agents::evaluation::{CaseDifference, Comparison, compare};
use lectern_db::evaluations::runs;
use lectern_shared::{
    compute::ComputePool,
    ids::{EvaluationCaseId, EvaluationId, EvaluationRunId},
    model::evaluation::{EvaluationRun, StoredCaseResult},
};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{EvaluationService, MOST_CASES};
use crate::{error::ApiError, services::actor::Actor};

/// Comparisons at once in a process: each has both runs in memory.
static COMPARISONS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));

/// How two runs differ.
pub(crate) struct RunComparison {
    pub(crate) run: EvaluationRun,
    pub(crate) other: EvaluationRun,
    /// By the cases that both have.
    pub(crate) metrics: Vec<Comparison>,
    /// The cases in which they differ, with what came of each in both; the first ones.
    pub(crate) cases: Vec<(CaseDifference, StoredCaseResult, StoredCaseResult)>,
    /// How many there are.
    pub(crate) differing: usize,
}

impl EvaluationService {
    /// Compares a run with another one of the same set; at most `limit` cases in which they differ are told.
    pub(crate) async fn compare(
        &self,
        actor: &Actor,
        id: EvaluationId,
        run: EvaluationRunId,
        other: EvaluationRunId,
        limit: usize,
    ) -> Result<RunComparison, ApiError> {
        let run = self.find_run(actor, id, run).await?;
        let other = self.find_run(actor, id, other).await?;
        let _turn = COMPARISONS.acquire().await.map_err(|_| ApiError::internal())?;
        let (these, others) = (self.all_results(&run).await?, self.all_results(&other).await?);
        let compared = move || {
            let (metrics, differences) = compare(&these, &others);
            let by_id = |results: Vec<StoredCaseResult>| -> HashMap<EvaluationCaseId, StoredCaseResult> {
                results.into_iter().map(|result| (result.case_id, result)).collect()
            };
            let (mut these, mut others) = (by_id(these), by_id(others));
            let differing = differences.len();
            let told = differences.into_iter().take(limit).filter_map(|difference| {
                let this = these.remove(&difference.case)?;
                let other = others.remove(&difference.case)?;
                Some((difference, this, other))
            });
            (metrics, told.collect(), differing)
        };
        let done = ComputePool::per_core().run(compared).await;
        let (metrics, cases, differing) = done.map_err(|_| ApiError::internal())?;
        Ok(RunComparison { run, other, metrics, cases, differing })
    }

    async fn all_results(&self, run: &EvaluationRun) -> Result<Vec<StoredCaseResult>, ApiError> {
        let most = u32::try_from(MOST_CASES).unwrap_or(u32::MAX);
        Ok(runs::results(&self.db, run.workspace_id, run.id, Uuid::max().into(), most).await?)
    }
}
