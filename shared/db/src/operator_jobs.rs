//! Jobs of every workspace, as their operator lists and changes them. A job whose document was deleted is not among them: it goes
//! with what is left of the document.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, InvalidId, JobId, UserId, WorkspaceId},
    model::{
        Json,
        job::{IngestionError, IngestionWarning, JobKind, JobPhase, JobRecord, JobState},
        user::email_key,
        workspace::RowOwner,
    },
};
use serde_json::Value;
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, accounts, documents, execute, jobs, locks, on};

/// Jobs that are changed in one transaction, at most.
pub const BATCH: u32 = 200;

/// Which jobs are meant: those that meet everything that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRowFilter {
    /// Those that stand so.
    pub standing: Option<JobPhase>,
    /// Those of documents that this account made, in workspaces that it is a member of.
    pub user: Option<UserId>,
    /// Those of this document.
    pub document: Option<DocumentId>,
    /// Those whose last attempt failed with this code.
    pub code: Option<String>,
}

/// Where a page of a list ended, for the one after it. Good for the same filter only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCursor {
    /// By what the list is ordered, a place in the queue being written as a time too; the beginning of time where that is the id
    /// alone.
    at: Timestamp,
    id: JobId,
}

impl fmt::Display for JobCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.at.as_micros(), self.id)
    }
}

impl FromStr for JobCursor {
    type Err = InvalidId;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidId> {
        let (at, id) = text.split_once('_').ok_or(InvalidId)?;
        let at = at.parse().map(Timestamp::from_micros).map_err(|_| InvalidId)?;
        Ok(Self { at, id: id.parse()? })
    }
}

/// How a list is ordered, which is by what an index has in that order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobOrder {
    /// As workers take them.
    Queue,
    /// The longest running first.
    Started,
    /// The last that ended first.
    Ended,
    /// The newest document's first.
    Id,
}

impl JobOrder {
    fn of(standing: Option<JobPhase>) -> Self {
        match standing {
            Some(JobPhase::Queued | JobPhase::Due | JobPhase::Waiting) => Self::Queue,
            Some(JobPhase::Running) => Self::Started,
            Some(JobPhase::Dead | JobPhase::Cancelled) => Self::Ended,
            Some(JobPhase::Done) | None => Self::Id,
        }
    }

    fn position(self, job: &JobRecord) -> JobCursor {
        let at = match self {
            Self::Queue => Some(Timestamp::from_micros(job.fair_at)),
            Self::Started => job.started_at,
            Self::Ended => job.finished_at,
            Self::Id => None,
        };
        JobCursor { at: at.unwrap_or(Timestamp::from_micros(0)), id: job.id }
    }
}

/// The joins are written so that SQLite keeps their order: it would begin with the documents otherwise.
pub(super) const SELECT: &str =
    "SELECT j.id, j.kind, j.workspace_id, d.created_by,
            COALESCE((SELECT email FROM users WHERE users.id = COALESCE(d.created_by, d.workspace_id)), '') AS user_email,
            j.document_id, d.type AS document_type, j.state, j.stage,
            j.progress, j.attempts, j.max_attempts, j.queued_at, j.run_at, j.fair_at, j.started_at, j.finished_at,
            j.lease_until, j.worker, j.last_error, j.warnings, j.from_stored
     FROM jobs j CROSS JOIN documents d
     WHERE d.id = j.document_id AND d.deleted_at IS NULL AND ";

/// One job.
pub async fn find(db: &Db, id: JobId) -> Result<Option<JobRecord>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(SELECT);
        query.push("j.id = ").push_bind(id);
        query.build_query_as().fetch_optional(c).await
    })?)
}

/// A page of jobs.
#[derive(Debug)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobRecord>,
    /// Where the next page begins; none when there is none.
    pub next: Option<JobCursor>,
}

/// At most `limit` jobs after a position. Queued ones come in the order in which workers take them, running ones with the
/// longest running first, dead and cancelled ones with the last that ended first, and all else with the newest documents' first.
pub async fn list(
    db: &Db,
    filter: &JobRowFilter,
    after: Option<JobCursor>,
    limit: u32,
    now: Timestamp,
) -> Result<JobPage> {
    let order = JobOrder::of(filter.standing);
    let mut jobs: Vec<JobRecord> = on!(db, |c| async {
        let mut query = QueryBuilder::new(SELECT);
        // Literals, because an index over a part of the table is used for no others.
        match filter.standing {
            Some(JobPhase::Queued) => query.push("j.state = 'queued'"),
            Some(JobPhase::Due) => query.push("j.state = 'queued' AND j.run_at <= ").push_bind(now),
            Some(JobPhase::Waiting) => query.push("j.state = 'queued' AND j.run_at > ").push_bind(now),
            Some(JobPhase::Running) => query.push("j.state = 'running'"),
            Some(JobPhase::Dead) => query.push("j.state = 'dead'"),
            Some(JobPhase::Done) => query.push("j.state = 'done'"),
            Some(JobPhase::Cancelled) => query.push("j.state = 'cancelled'"),
            None => query.push("1 = 1"),
        };
        if let Some(user) = filter.user {
            query
                .push(" AND j.workspace_id IN (SELECT workspace_id FROM members WHERE user_id = ")
                .push_bind(user);
            query.push(") AND COALESCE(d.created_by, d.workspace_id) = ").push_bind(user);
        }
        if let Some(document) = filter.document {
            query.push(" AND j.document_id = ").push_bind(document);
        }
        if let Some(code) = &filter.code {
            let start = error_start(code);
            query.push(" AND SUBSTR(j.last_error, 1, LENGTH(").push_bind(start.clone());
            query.push(")) = ").push_bind(start);
        }
        let (key, compare, direction) = match order {
            JobOrder::Queue => (Some("j.fair_at"), '>', "ASC"),
            JobOrder::Started => (Some("j.started_at"), '>', "ASC"),
            JobOrder::Ended => (Some("j.finished_at"), '<', "DESC"),
            JobOrder::Id => (None, '<', "DESC"),
        };
        if let Some(JobCursor { at, id }) = after {
            match key {
                Some(key) => {
                    query.push(format_args!(" AND ({key}, j.id) {compare} (")).push_bind(at);
                    query.push(", ").push_bind(id).push(")");
                }
                None => {
                    query.push(format_args!(" AND j.id {compare} ")).push_bind(id);
                }
            }
        }
        query.push(" ORDER BY ");
        if let Some(key) = key {
            query.push(format_args!("{key} {direction}, "));
        }
        query.push(format_args!("j.id {direction} LIMIT ")).push_bind(i64::from(limit) + 1);
        query.build_query_as().fetch_all(c).await
    })?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().filter(|_| more).map(|last| order.position(last));
    Ok(JobPage { jobs, next })
}

/// How every stored error with this code begins: as JSON it is written with the code first.
fn error_start(code: &str) -> String {
    format!("{{\"code\":{},", Value::from(code))
}

/// The active account that is named by its e-mail or its id.
pub async fn find_account(db: &Db, name: &str) -> Result<Option<UserId>> {
    if let Ok(id) = name.trim().parse() {
        return Ok(accounts::find(db, id).await?.map(|user| user.id));
    }
    Ok(accounts::find_by_email(db, &email_key(name)).await?.map(|found| found.user.id))
}

/// What an operator can do to jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAction {
    /// Have them tried again, at once, with all their attempts before them, as when the owner asks for an ingestion. What was to
    /// be made from stored passages still is, unless it had ended well.
    Retry,
    /// Stop them, as when the owner cancels. The documents, and what can be searched of them, stay.
    Discard,
}

impl JobAction {
    /// How jobs may stand that it is done to without naming each of them.
    pub fn standings(self) -> &'static [JobPhase] {
        match self {
            Self::Retry => &[JobPhase::Dead, JobPhase::Waiting, JobPhase::Cancelled],
            Self::Discard => {
                &[JobPhase::Dead, JobPhase::Queued, JobPhase::Due, JobPhase::Waiting, JobPhase::Running]
            }
        }
    }

    /// The words of [`standings`](Self::standings), for a message that says what is accepted.
    pub fn choices(self) -> String {
        self.standings().iter().map(|standing| standing.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobActionOutcome {
    /// It is as it was to be.
    Changed,
    /// It was so already: due, when it was to be retried; ended, when it was to be discarded.
    Unchanged,
    /// A worker holds it, so that it cannot be retried.
    Running,
}

/// A job that nobody else can change until the transaction ends.
#[derive(sqlx::FromRow)]
struct LockedJob {
    kind: JobKind,
    state: JobState,
    run_at: Timestamp,
    last_error: Option<Json<IngestionError>>,
    warnings: Json<Vec<IngestionWarning>>,
    from_stored: bool,
}

/// Does the same to all of these jobs that still meet the filter, and tells what became of each; a retried one gets
/// `max_attempts`. Jobs that are gone, or whose documents are, are left out.
pub async fn change(
    tx: &mut Tx,
    action: JobAction,
    jobs: &[JobRecord],
    filter: &JobRowFilter,
    max_attempts: u32,
    now: Timestamp,
) -> Result<Vec<(JobId, JobActionOutcome)>> {
    // In the order of locks, and each kind in the order of ids, so that no two of these wait for each other.
    let workspaces: BTreeSet<WorkspaceId> = jobs.iter().map(|job| job.owner.workspace_id).collect();
    for workspace in workspaces {
        locks::lock_workspace(tx, workspace).await?;
    }
    let by_document: BTreeMap<DocumentId, &JobRecord> =
        jobs.iter().map(|job| (job.document_id, job)).collect();
    let mut there = Vec::new();
    for job in by_document.into_values() {
        if documents::lock(tx, job.owner.workspace_id, job.document_id).await? {
            there.push(job);
        }
    }
    let mut outcomes = Vec::new();
    for job in there {
        let Some(held) = lock_job(tx, job.id).await? else { continue };
        if !held.meets(filter, now) {
            continue;
        }
        let outcome = match action {
            JobAction::Retry => retry(tx, job, &held, max_attempts, now).await?,
            JobAction::Discard => discard(tx, job, held.state, now).await?,
        };
        outcomes.push((job.id, outcome));
    }
    Ok(outcomes)
}

impl LockedJob {
    /// Whether it is still what was found: its owner, or a worker, may have been quicker.
    fn meets(&self, filter: &JobRowFilter, now: Timestamp) -> bool {
        let standing = JobPhase::of(self.state, self.run_at, now);
        let code = self.last_error.as_ref().map(|error| error.0.code.as_str());
        filter.standing.is_none_or(|wanted| wanted.covers(standing))
            && filter.code.as_deref().is_none_or(|wanted| code == Some(wanted))
    }
}

async fn lock_job(tx: &mut Tx, id: JobId) -> Result<Option<LockedJob>> {
    Ok(on!(tx, |c| sqlx::query_as(
        "UPDATE jobs SET attempts = attempts WHERE id = $1
         RETURNING kind, state, run_at, last_error, warnings, from_stored"
    )
    .bind(id)
    .fetch_optional(c))?)
}

async fn retry(
    tx: &mut Tx,
    &JobRecord { owner: RowOwner { workspace_id, .. }, document_id, .. }: &JobRecord,
    held: &LockedJob,
    max_attempts: u32,
    now: Timestamp,
) -> Result<JobActionOutcome> {
    match JobPhase::of(held.state, held.run_at, now) {
        JobPhase::Running => return Ok(JobActionOutcome::Running),
        // It keeps its place.
        JobPhase::Due => return Ok(JobActionOutcome::Unchanged),
        JobPhase::Queued | JobPhase::Waiting | JobPhase::Dead | JobPhase::Done | JobPhase::Cancelled => {}
    }
    jobs::enqueue(tx, workspace_id, document_id, held.kind, max_attempts, now).await?;
    if held.from_stored && held.state != JobState::Done {
        documents::from_stored(tx, document_id, &held.warnings.0).await?;
    }
    Ok(JobActionOutcome::Changed)
}

async fn discard(
    tx: &mut Tx,
    &JobRecord { id, owner: RowOwner { workspace_id, .. }, document_id, .. }: &JobRecord,
    state: JobState,
    now: Timestamp,
) -> Result<JobActionOutcome> {
    let changed = match state {
        JobState::Queued | JobState::Running => jobs::cancel(tx, workspace_id, document_id, now).await?,
        JobState::Dead => cancel_dead(tx, id, now).await?,
        JobState::Done | JobState::Cancelled => false,
    };
    Ok(if changed { JobActionOutcome::Changed } else { JobActionOutcome::Unchanged })
}

/// Makes a dead job one that was cancelled. Why it died stays.
async fn cancel_dead(tx: &mut Tx, id: JobId, now: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE jobs SET state = 'cancelled', finished_at = $2 WHERE id = $1 AND state = 'dead'")
            .bind(id)
            .bind(now)
    )?;
    Ok(rows == 1)
}
