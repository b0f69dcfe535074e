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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
        let measured = async { Ok((self.measured(&run).await?, self.measured(&other).await?)) };
        let compared = in_turn(&COMPARISONS, measured, |(these, others)| compare(&these, &others)).await?;
        let (_turn, (metrics, mut differences)) = compared;
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

/// What is computed of what is read, with its turn, which begins before anything is read. It goes with the work, which goes on with all that
/// was read when whoever asked hangs up.
async fn in_turn<R: Send + 'static, T: Send + 'static>(
    turns: &Arc<Semaphore>,
    read: impl Future<Output = Result<R, ApiError>>,
    work: impl FnOnce(R) -> T + Send + 'static,
) -> Result<(OwnedSemaphorePermit, T), ApiError> {
    let turn = Arc::clone(turns).acquire_owned().await.map_err(|_| ApiError::internal())?;
    let read = read.await?;
    let done = ComputePool::per_core().run(move || (turn, work(read))).await;
    done.map_err(|_| ApiError::internal())
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::mpsc, time::Duration};

    use futures::poll;
    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    fn one() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(1))
    }

    #[tokio::test]
    async fn a_comparison_reads_nothing_before_its_turn_and_gives_that_to_the_next_one() {
        let (turns, has_read) = (one(), Cell::new(false));
        let first = in_turn(&turns, async { Ok(1) }, |read| read + 1).await.unwrap();
        let read = async {
            has_read.set(true);
            Ok(2)
        };
        let mut second = Box::pin(in_turn(&turns, read, |read| read + 1));
        assert!(poll!(second.as_mut()).is_pending());
        assert!(!has_read.get(), "the first one has its turn as long as it is told");
        assert_eq!(first.1, 2);
        drop(first);
        assert_eq!(second.await.unwrap().1, 3);
        assert!(has_read.get());
    }

    #[tokio::test]
    async fn a_comparison_whose_reading_fails_gives_its_turn_back() {
        let turns = one();
        let refused = async { Err::<(), _>(ApiError::not_found("run")) };
        assert_eq!(in_turn(&turns, refused, |()| ()).await.unwrap_err(), ApiError::not_found("run"));
        assert_eq!(turns.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_comparison_keeps_its_turn_until_it_ends_be_whoever_asked_there_or_not() {
        let turns = one();
        let (begun, has_begun) = oneshot::channel();
        let (end, ending) = mpsc::channel::<()>();
        let asking = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move {
                let work = move |()| {
                    let _ = begun.send(());
                    let _ = ending.recv();
                };
                in_turn(&turns, async { Ok(()) }, work).await.is_ok()
            }
        });
        has_begun.await.unwrap();
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        assert_eq!(turns.available_permits(), 0, "what was read of both is in memory still");
        drop(end);
        let next = timeout(Duration::from_mins(1), turns.acquire()).await;
        assert!(next.is_ok_and(|turn| turn.is_ok()));
    }
}
