//! Two runs side by side.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use lectern_agents::evaluation::{CaseDifference, Comparison, compare};
use lectern_db::evaluations::runs;
use lectern_shared::{
    compute::ComputePool,
    ids::{EvaluationCaseId, EvaluationId, EvaluationRunId},
    model::evaluation::{EvaluationRun, StoredCaseResult},
};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::EvaluationService;
use crate::{error::ApiError, services::actor::Actor};

/// Comparisons at once in a process: each has what is measured of both runs in memory.
static COMPARISONS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));
/// Results that are read at a time.
const READ: u32 = 200;

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
        let turn = COMPARISONS.clone().acquire_owned().await.map_err(|_| ApiError::internal())?;
        let (these, others) = (self.measured(&run).await?, self.measured(&other).await?);
        // With its turn: it goes on when whoever asked hangs up.
        let done = ComputePool::per_core().run(move || (turn, compare(&these, &others))).await;
        let (_turn, (metrics, mut differences)) = done.map_err(|_| ApiError::internal())?;
        let differing = differences.len();
        differences.truncate(limit);
        let told: Vec<EvaluationCaseId> = differences.iter().map(|difference| difference.case).collect();
        let (mut these, mut others) = (self.told(&run, &told).await?, self.told(&other, &told).await?);
        let cases = differences.into_iter().filter_map(|difference| {
            let this = these.remove(&difference.case)?;
            let other = others.remove(&difference.case)?;
            Some((difference, this, other))
        });
        let cases = cases.collect();
        Ok(RunComparison { run, other, metrics, cases, differing })
    }

    /// What is measured of all cases of a run, without the texts and lists that nothing is measured by: they are far larger.
    async fn measured(&self, run: &EvaluationRun) -> Result<Vec<StoredCaseResult>, ApiError> {
        let mut results = Vec::new();
        let mut before: EvaluationCaseId = Uuid::max().into();
        loop {
            let page = runs::results(&self.db, run.workspace_id, run.id, before, READ).await?;
            let Some(last) = page.last() else { return Ok(results) };
            before = last.case_id;
            results.extend(page.into_iter().map(|mut stored| {
                stored.question = String::new();
                let result = &mut stored.result.0;
                result.expect.forget_words();
                for ranking in result.retrieval.values_mut() {
                    ranking.retrieved = Vec::new();
                }
                if let Some(answer) = &mut result.answer {
                    answer.text = String::new();
                }
                stored
            }));
        }
    }

    /// What came of these cases of a run.
    async fn told(
        &self,
        run: &EvaluationRun,
        cases: &[EvaluationCaseId],
    ) -> Result<HashMap<EvaluationCaseId, StoredCaseResult>, ApiError> {
        let results = runs::results_of(&self.db, run.workspace_id, run.id, cases).await?;
        Ok(results.into_iter().map(|result| (result.case_id, result)).collect())
    }
}
