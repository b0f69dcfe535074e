//! What an operator does to the jobs of every user.

use super::Jobs;
use crate::{
    db::{
        self, Tx,
        operator_jobs::{self, Action, Filter, Outcome, Position},
    },
    ids::JobId,
    model::job::JobRecord,
};

/// Some of the jobs that something was done to.
#[derive(Debug)]
pub struct Batch {
    /// Those that are changed.
    pub jobs: Vec<JobId>,
    /// Where to go on; none when all are done.
    pub next: Option<Position>,
}

impl Jobs {
    /// Does something to one job. None when there is no such job, or its document was deleted.
    pub async fn change(&self, action: Action, id: JobId) -> db::Result<Option<Outcome>> {
        let Some(job) = operator_jobs::find(&self.db, id).await? else { return Ok(None) };
        let mut tx = self.db.begin().await?;
        let outcomes = self.change_in(&mut tx, action, &[job], &Filter::default()).await?;
        tx.commit().await?;
        let outcome = outcomes.first().map(|(_, outcome)| *outcome);
        if action == Action::Retry && outcome == Some(Outcome::Changed) {
            self.doorbell.ring(1);
        }
        Ok(outcome)
    }

    /// Does something to the next of the jobs that meet a filter, in a transaction of their own; `after` is where the batch
    /// before ended.
    pub async fn change_next(
        &self,
        action: Action,
        filter: &Filter,
        after: Option<Position>,
    ) -> db::Result<Batch> {
        let page = operator_jobs::list(&self.db, filter, after, operator_jobs::BATCH, self.now()).await?;
        if page.jobs.is_empty() {
            return Ok(Batch { jobs: Vec::new(), next: None });
        }
        let mut tx = self.db.begin().await?;
        let outcomes = self.change_in(&mut tx, action, &page.jobs, filter).await?;
        tx.commit().await?;
        let changed = outcomes.into_iter().filter(|(_, outcome)| *outcome == Outcome::Changed);
        let jobs: Vec<JobId> = changed.map(|(id, _)| id).collect();
        if action == Action::Retry {
            self.doorbell.ring(jobs.len());
        }
        Ok(Batch { jobs, next: page.next })
    }

    async fn change_in(
        &self,
        tx: &mut Tx,
        action: Action,
        jobs: &[JobRecord],
        filter: &Filter,
    ) -> db::Result<Vec<(JobId, Outcome)>> {
        // The time is taken only now: beginning the transaction may have taken a while.
        operator_jobs::change(tx, action, jobs, filter, self.settings.max_attempts, self.now()).await
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, time::Duration};

    use super::*;
    use crate::{
        clock::Clock,
        config::JobSettings,
        db::{
            jobs::Report,
            testing::{TestDb, at, both, document, user},
        },
        jobs::Doorbell,
        model::job::{IngestionError, Standing},
    };

    /// A queue whose time is set by the test.
    fn queue(t: &TestDb, clock: &Clock) -> Jobs {
        let settings = JobSettings {
            concurrency: 1,
            timeout: Duration::from_mins(1),
            max_attempts: 3,
            lease: Duration::from_mins(1),
        };
        Jobs::new(t.db.clone(), clock.clone(), settings, Doorbell::local())
    }

    #[tokio::test]
    async fn more_jobs_than_a_transaction_takes_are_changed_batch_by_batch() {
        // Two whole batches, so that the last one ends where the list does.
        const JOBS: usize = 2 * operator_jobs::BATCH as usize;
        for t in &both().await {
            let clock = Clock::manual(at(0));
            let jobs = queue(t, &clock);
            let users = [user(&t.db, at(0)).await, user(&t.db, at(0)).await];
            for number in 0..JOBS {
                document(&t.db, users[number % 2], "lost", at(0)).await;
            }
            clock.advance(Duration::from_hours(1));
            let error = IngestionError {
                code: "embedder_failed".to_owned(),
                message: "It did not answer.".to_owned(),
                retryable: false,
            };
            while let Some(claim) = jobs.claim("worker").await.unwrap() {
                jobs.fail(&claim, &error, &Report::default()).await.unwrap();
            }
            let all = async |action, standing| {
                let filter = Filter { standing: Some(standing), ..Filter::default() };
                let (mut changed, mut batches, mut after) = (Vec::new(), 0, None);
                loop {
                    let batch = jobs.change_next(action, &filter, after).await.unwrap();
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
            assert_eq!(all(Action::Retry, Standing::Dead).await, (JOBS, JOBS, 2), "{}", t.name);
            assert_eq!(all(Action::Retry, Standing::Dead).await, (0, 0, 1), "{}", t.name);
            let depth = db::jobs::depth(&t.db, clock.now()).await.unwrap();
            assert_eq!((depth.due, depth.dead), (i64::try_from(JOBS).unwrap(), 0), "{}", t.name);
            // In the order in which they would be taken, from under the list's feet.
            assert_eq!(all(Action::Discard, Standing::Queued).await, (JOBS, JOBS, 2), "{}", t.name);
            assert!(jobs.claim("worker").await.unwrap().is_none(), "{}", t.name);
        }
    }

    #[tokio::test]
    async fn a_running_job_is_discarded_before_it_is_retried_and_none_is_made_of_an_id() {
        for t in &both().await {
            let jobs = queue(t, &Clock::manual(at(0)));
            let owner = user(&t.db, at(0)).await;
            document(&t.db, owner, "one", at(0)).await;
            let held = jobs.claim("worker").await.unwrap().unwrap();
            for (action, outcome) in [
                (Action::Retry, Outcome::Running),
                (Action::Discard, Outcome::Changed),
                (Action::Discard, Outcome::Unchanged),
                (Action::Retry, Outcome::Changed),
                (Action::Retry, Outcome::Unchanged),
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
            for action in [Action::Retry, Action::Discard] {
                assert_eq!(jobs.change(action, JobId::generate()).await.unwrap(), None, "{}", t.name);
            }
        }
    }
}
