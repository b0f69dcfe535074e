//! What an operator does to the jobs of every workspace.

use lectern_db::{
    self as db, Tx,
    operator_jobs::{self, JobAction, JobActionOutcome, JobCursor, JobRowFilter},
};
use lectern_shared::{ids::JobId, model::job::JobRecord};

use super::JobQueue;

/// Some of the jobs that something was done to.
#[derive(Debug)]
pub struct JobBatch {
    /// Those that are changed.
    pub jobs: Vec<JobId>,
    /// Where to go on; none when all are done.
    pub next: Option<JobCursor>,
}

impl JobQueue {
    /// Does something to one job. None when there is no such job, or its document was deleted.
    pub async fn change(&self, action: JobAction, id: JobId) -> db::Result<Option<JobActionOutcome>> {
        let Some(job) = operator_jobs::find(&self.db, id).await? else { return Ok(None) };
        let mut tx = self.db.begin().await?;
        let outcomes = self.change_in(&mut tx, action, &[job], &JobRowFilter::default()).await?;
        tx.commit().await?;
        let outcome = outcomes.first().map(|(_, outcome)| *outcome);
        if action == JobAction::Retry && outcome == Some(JobActionOutcome::Changed) {
            self.doorbell.ring(1);
        }
        Ok(outcome)
    }

    /// Does something to the next of the jobs that meet a filter, in a transaction of their own; `after` is where the batch
    /// before ended.
    pub async fn change_batch(
        &self,
        action: JobAction,
        filter: &JobRowFilter,
        after: Option<JobCursor>,
    ) -> db::Result<JobBatch> {
        let page = operator_jobs::list(&self.db, filter, after, operator_jobs::BATCH, self.now()).await?;
        if page.jobs.is_empty() {
            return Ok(JobBatch { jobs: Vec::new(), next: None });
        }
        let mut tx = self.db.begin().await?;
        let outcomes = self.change_in(&mut tx, action, &page.jobs, filter).await?;
        tx.commit().await?;
        let changed = outcomes.into_iter().filter(|(_, outcome)| *outcome == JobActionOutcome::Changed);
        let jobs: Vec<JobId> = changed.map(|(id, _)| id).collect();
        if action == JobAction::Retry {
            self.doorbell.ring(jobs.len());
        }
        Ok(JobBatch { jobs, next: page.next })
    }

    async fn change_in(
        &self,
        tx: &mut Tx,
        action: JobAction,
        jobs: &[JobRecord],
        filter: &JobRowFilter,
    ) -> db::Result<Vec<(JobId, JobActionOutcome)>> {
        // The time is taken only now: beginning the transaction may have taken a while.
        operator_jobs::change(tx, action, jobs, filter, self.settings.max_attempts, self.now()).await
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, time::Duration};

    use lectern_db::{
        jobs::JobProgress,
        testing::{at, both, document, workspace},
    };
    use lectern_shared::{
        clock::Clock,
        model::job::{IngestionError, JobPhase},
    };

    use super::*;
    use crate::{RetryPause, testing::queue};

    #[tokio::test]
    async fn more_jobs_than_a_transaction_takes_are_changed_batch_by_batch() {
        // Two whole batches, so that the last one ends where the list does.
        const JOBS: usize = 2 * operator_jobs::BATCH as usize;
        for t in &both().await {
            let clock = Clock::manual(at(0));
            let jobs = queue(&t.db, &clock);
            let workspaces = [workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await];
            for number in 0..JOBS {
                document(&t.db, workspaces[number % 2], "lost", at(0)).await;
            }
            clock.advance(Duration::from_hours(1));
            let error = IngestionError {
                code: "embedder_failed".to_owned(),
                message: "It did not answer.".to_owned(),
                retryable: false,
            };
            while let Some(claim) = jobs.claim("worker").await.unwrap() {
                jobs.fail(&claim, &error, RetryPause::Service, &JobProgress::default()).await.unwrap();
            }
            let all = async |action, standing| {
                let filter = JobRowFilter { standing: Some(standing), ..JobRowFilter::default() };
                let (mut changed, mut batches, mut after) = (Vec::new(), 0, None);
                loop {
                    let batch = jobs.change_batch(action, &filter, after).await.unwrap();
                    assert!(batch.jobs.len() <= operator_jobs::BATCH as usize, "{}", t.name);
                    changed.extend(batch.jobs);
                    batches += 1;
                    after = batch.next;
                    if after.is_none() {
                        break (changed.len(), changed.into_iter().collect::<HashSet<_>>().len(), batches);
                    }
                }
            };
            clock.advance(Duration::from_secs(1));
            assert_eq!(all(JobAction::Retry, JobPhase::Dead).await, (JOBS, JOBS, 2), "{}", t.name);
            assert_eq!(all(JobAction::Retry, JobPhase::Dead).await, (0, 0, 1), "{}", t.name);
            let depth = db::jobs::depth(&t.db, clock.now()).await.unwrap();
            assert_eq!((depth.due, depth.dead), (i64::try_from(JOBS).unwrap(), 0), "{}", t.name);
            // In the order in which they would be taken, from under the list's feet.
            assert_eq!(all(JobAction::Discard, JobPhase::Queued).await, (JOBS, JOBS, 2), "{}", t.name);
            assert!(jobs.claim("worker").await.unwrap().is_none(), "{}", t.name);
        }
    }

    #[tokio::test]
    async fn a_running_job_is_discarded_before_it_is_retried_and_none_is_made_of_an_id() {
        for t in &both().await {
            let jobs = queue(&t.db, &Clock::manual(at(0)));
            let owner = workspace(&t.db, at(0)).await;
            document(&t.db, owner, "one", at(0)).await;
            let held = jobs.claim("worker").await.unwrap().unwrap();
            for (action, outcome) in [
                (JobAction::Retry, JobActionOutcome::Running),
                (JobAction::Discard, JobActionOutcome::Changed),
                (JobAction::Discard, JobActionOutcome::Unchanged),
                (JobAction::Retry, JobActionOutcome::Changed),
                (JobAction::Retry, JobActionOutcome::Unchanged),
            ] {
                assert_eq!(
                    jobs.change(action, held.id).await.unwrap(),
                    Some(outcome),
                    "{} {action:?}",
                    t.name
                );
            }
            let again = jobs.claim("worker").await.unwrap().unwrap();
            assert_eq!((again.id, again.attempts), (held.id, 1), "{}", t.name);
            for action in [JobAction::Retry, JobAction::Discard] {
                assert_eq!(jobs.change(action, JobId::generate()).await.unwrap(), None, "{}", t.name);
            }
        }
    }
}
