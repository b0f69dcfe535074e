//! The jobs of every user, as their operator sees and changes them: over HTTP, and on the command line.

use lectern_db::{
    Db, DbError,
    operator_jobs::{self, JobAction, JobActionOutcome, JobCursor, JobRowFilter},
};
use lectern_jobs::JobQueue;
use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, JobId, UserId},
    model::job::{JobPhase, JobRecord},
};
use tokio::time::Instant;

use crate::error::{ApiError, ApiErrorKind};

/// Which jobs are meant: those that meet everything that is set.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Those that stand so.
    pub standing: Option<JobPhase>,
    /// Those of this user, by e-mail or id.
    pub user: Option<String>,
    /// Those of this document.
    pub document: Option<DocumentId>,
    /// Those whose last attempt failed with this code.
    pub code: Option<String>,
}

/// Who does something to jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOperator {
    /// An admin, by way of the service.
    Admin(UserId),
    /// Whoever may run commands, in a process beside the service.
    Command,
}

/// Why something cannot be shown of jobs, or done to them.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// No account is named so.
    #[error("{0} is the e-mail or the id of no account")]
    UnknownUser(String),
    /// There is no such job.
    #[error("{0}: there is no such job, or its document was deleted")]
    UnknownJob(JobId),
    /// It cannot be retried while it runs.
    #[error("{0}: a worker holds it; discard it first, or wait until it ends")]
    Running(JobId),
    /// The store failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<JobError> for ApiError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::UnknownUser(_) => Self::invalid_field("user", "is the e-mail or the id of no account"),
            JobError::UnknownJob(_) => {
                let message = "There is no such job, or its document was deleted.";
                Self::new(ApiErrorKind::NotFound, "not_found", message)
            }
            JobError::Running(_) => {
                Self::conflict("A worker holds this job. Discard it first, or wait until it ends.")
            }
            JobError::Db(error) => error.into(),
        }
    }
}

/// A job, and when it was looked at.
#[derive(Debug)]
pub struct JobSnapshot {
    /// The job.
    pub job: JobRecord,
    /// The moment at which it stands so.
    pub at: Timestamp,
}

/// Some jobs, and when they were looked at.
#[derive(Debug)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobRecord>,
    /// The moment at which they stand so.
    pub at: Timestamp,
    /// Where the list goes on; none when it ends here.
    pub next: Option<JobCursor>,
}

/// The jobs of every user. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JobService {
    db: Db,
    jobs: JobQueue,
}

impl JobService {
    /// The jobs of this queue, which is over `db`.
    pub fn new(db: Db, jobs: JobQueue) -> Self {
        Self { db, jobs }
    }

    /// At most `limit` jobs after a position, in the order of [`operator_jobs::list`].
    ///
    /// # Errors
    /// [`JobError::UnknownUser`] when the filter names no account.
    pub async fn list(
        &self,
        filter: JobFilter,
        after: Option<JobCursor>,
        limit: u32,
    ) -> Result<JobList, JobError> {
        let filter = self.resolve(filter).await?;
        let at = self.jobs.now();
        let (mut jobs, mut left, mut next) = (Vec::new(), limit, after);
        loop {
            let count = left.min(operator_jobs::BATCH);
            let page = operator_jobs::list(&self.db, &filter, next, count, at).await?;
            jobs.extend(page.jobs);
            (left, next) = (left - count, page.next);
            if left == 0 || next.is_none() {
                return Ok(JobList { jobs, at, next });
            }
        }
    }

    /// One job.
    ///
    /// # Errors
    /// [`JobError::UnknownJob`] when there is none, or its document was deleted.
    pub async fn find(&self, id: JobId) -> Result<JobSnapshot, JobError> {
        let job = operator_jobs::find(&self.db, id).await?.ok_or(JobError::UnknownJob(id))?;
        Ok(JobSnapshot { job, at: self.jobs.now() })
    }

    /// Does something to one job; false when it was so already.
    ///
    /// # Errors
    /// [`JobError::UnknownJob`] when there is none, or its document was deleted; [`JobError::Running`] when it is to be retried and
    /// a worker holds it.
    pub async fn change(
        &self,
        operator: JobOperator,
        action: JobAction,
        id: JobId,
    ) -> Result<bool, JobError> {
        match self.jobs.change(action, id).await?.ok_or(JobError::UnknownJob(id))? {
            JobActionOutcome::Changed => {
                note(operator, action, id);
                Ok(true)
            }
            JobActionOutcome::Unchanged => Ok(false),
            JobActionOutcome::Running => Err(JobError::Running(id)),
        }
    }

    /// [`change`](Self::change), and the job as it is afterwards.
    pub(crate) async fn change_and_find(
        &self,
        operator: JobOperator,
        action: JobAction,
        id: JobId,
    ) -> Result<JobSnapshot, JobError> {
        self.change(operator, action, id).await?;
        self.find(id).await
    }

    /// Does something to all jobs that meet a filter, batch by batch; how many are changed. What is done when it fails stays done.
    ///
    /// # Errors
    /// [`JobError::UnknownUser`] when the filter names no account.
    pub async fn change_all(
        &self,
        operator: JobOperator,
        action: JobAction,
        filter: JobFilter,
    ) -> Result<usize, JobError> {
        let filter = self.resolve(filter).await?;
        // SQLite has no queue of writers, so a process that takes the next turn at once would keep the service from writing.
        let takes_turns = operator == JobOperator::Command && matches!(self.db, Db::Sqlite { .. });
        let (mut changed, mut after) = (0, None);
        loop {
            let began = Instant::now();
            let batch = self.jobs.change_batch(action, &filter, after).await?;
            changed += batch.jobs.len();
            for job in batch.jobs {
                note(operator, action, job);
            }
            after = batch.next;
            if after.is_none() {
                return Ok(changed);
            }
            if takes_turns {
                tokio::time::sleep(began.elapsed()).await;
            }
        }
    }

    /// The filter with the account that it names.
    async fn resolve(&self, filter: JobFilter) -> Result<JobRowFilter, JobError> {
        let JobFilter { standing, user, document, code } = filter;
        let user = match user {
            Some(name) => Some(self.account(name).await?),
            None => None,
        };
        Ok(JobRowFilter { standing, user, document, code })
    }

    /// The account of this e-mail or id.
    async fn account(&self, name: String) -> Result<UserId, JobError> {
        // What holds a NUL is no text to PostgreSQL, and nobody's name.
        let found =
            if name.contains('\0') { None } else { operator_jobs::find_account(&self.db, &name).await? };
        found.ok_or(JobError::UnknownUser(name))
    }
}

/// Leaves a line of what an admin did. A command tells it itself.
fn note(operator: JobOperator, action: JobAction, job: JobId) {
    match (operator, action) {
        (JobOperator::Admin(admin), JobAction::Retry) => {
            tracing::info!(%admin, %job, "an admin retried a job");
        }
        (JobOperator::Admin(admin), JobAction::Discard) => {
            tracing::info!(%admin, %job, "an admin discarded a job");
        }
        (JobOperator::Command, JobAction::Retry | JobAction::Discard) => {}
    }
}
