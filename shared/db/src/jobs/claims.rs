//! Taking jobs.

use lectern_shared::{
    clock::Timestamp,
    ids::{ClaimId, WorkspaceId},
    model::job::JobClaim,
};
use uuid::Uuid;

use super::{
    line::{self, still_queued},
    place::{self, none_yet, number_of_place},
};
use crate::{Db, Result, Tx, on, silence};

/// What of the queued jobs is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueJobs {
    /// Some that have their place.
    pub in_line: bool,
    /// Some that waited for a moment which has come, and have to get a place.
    pub waited: bool,
}

impl DueJobs {
    /// Whether any job is due.
    pub fn any(self) -> bool {
        self.in_line || self.waited
    }
}

pub(crate) const DUE: &str = concat!(
    "SELECT (SELECT run_at FROM jobs WHERE state = 'queued' AND fair_at < ",
    none_yet!(),
    " AND run_at <= $1 ORDER BY fair_at, id LIMIT 1),
            (SELECT run_at FROM jobs WHERE state = 'queued' AND fair_at = ",
    none_yet!(),
    " AND run_at <= $1 ORDER BY run_at LIMIT 1)"
);

/// What is due.
pub async fn due(db: &Db, now: Timestamp) -> Result<DueJobs> {
    let (in_line, waited): (Option<i64>, Option<i64>) =
        on!(db, |c| sqlx::query_as(DUE).bind(now).fetch_one(c))?;
    Ok(DueJobs { in_line: in_line.is_some(), waited: waited.is_some() })
}

/// Whether several workspaces have jobs in line; null when nobody has.
macro_rules! several_wait {
    () => {
        concat!(
            "(SELECT workspace_id FROM jobs WHERE state = 'queued' AND fair_at < ",
            none_yet!(),
            " ORDER BY workspace_id, fair_at, id LIMIT 1)
             <> (SELECT workspace_id FROM jobs WHERE state = 'queued' AND fair_at < ",
            none_yet!(),
            " ORDER BY workspace_id DESC, fair_at DESC, id DESC LIMIT 1)"
        )
    };
}

/// The workspace who has all slots that are in use, if the next job is one of the same workspace's and somebody else waits too. The ends of
/// indexes tell, so it takes no longer when many are queued.
macro_rules! passed_over {
    () => {
        concat!(
            "SELECT held.workspace_id
             FROM (SELECT workspace_id FROM jobs WHERE state = 'running' ORDER BY workspace_id, fair_at LIMIT 1) AS held
             WHERE held.workspace_id = (
                       SELECT workspace_id FROM jobs WHERE state = 'running' ORDER BY workspace_id DESC, fair_at DESC LIMIT 1)
               AND held.workspace_id = (
                       SELECT workspace_id FROM jobs WHERE state = 'queued' AND run_at <= $1 AND fair_at < ",
            none_yet!(),
            " ORDER BY fair_at, id LIMIT 1)
               AND ",
            several_wait!()
        )
    };
}

pub(crate) const PASSED_OVER: &str = passed_over!();

/// What an UPDATE of a job sets to give it to $4 until $3, at $1. An outage that it met before it stood in line for an hour is forgotten:
/// nothing tells whether it lasted.
macro_rules! set_taken {
    ($claim:literal) => {
        concat!(
            "state = 'running', claim_id = ",
            $claim,
            ", lease_until = $3, worker = $4, attempts = attempts + 1,
                    claimed_revision = COALESCE(
                        (SELECT revision FROM documents WHERE documents.id = jobs.document_id), 0),
                    started_at = $1, finished_at = NULL, stage = NULL, progress = NULL,
                    outage_at = CASE WHEN run_at > $1 - 3600000000 THEN outage_at END"
        )
    };
}

/// The columns of a [`JobClaim`], and its place.
macro_rules! taken_columns {
    () => {
        "jobs.id, jobs.kind, jobs.workspace_id, jobs.document_id, jobs.claim_id, jobs.claimed_revision, jobs.attempts, jobs.max_attempts,
                       jobs.queued_at, jobs.outage_at, jobs.from_stored, jobs.trace_parent, jobs.fair_at"
    };
}

/// Takes the first due job in line `$of` some, by their `$order`.
macro_rules! take {
    ($of:expr, $order:literal, $lock:literal) => {
        concat!(
            "UPDATE jobs SET ",
            set_taken!("$2"),
            " WHERE id = (SELECT id FROM jobs
                         WHERE ",
            $of,
            "state = 'queued' AND run_at <= $1 AND fair_at < ",
            none_yet!(),
            " ORDER BY ",
            $order,
            "fair_at, id LIMIT 1 ",
            $lock,
            // Repeated, because without them the row that another claimer took meanwhile is taken again.
            ") AND ",
            still_queued!(""),
            " AND run_at <= $1
             RETURNING ",
            taken_columns!()
        )
    };
}

/// [`take`], which tells also where the head is and whether others wait.
macro_rules! take_first {
    ($of:expr, $order:literal, $lock:literal) => {
        concat!(
            take!($of, $order, $lock),
            ", (SELECT fair_at FROM queue_head) AS head, COALESCE(",
            several_wait!(),
            ", FALSE) AS several_wait"
        )
    };
}

/// Takes the first $5 jobs if no two workspaces wait, and moves the head up to the last of them, in one round trip and with nobody else's
/// claims held up: who alone waits may have every slot, and whoever comes at the same moment is next. The transaction that this is of does
/// not wait for the disk.
pub(crate) const TAKE_UNDISPUTED: &str = concat!(
    "WITH relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', TRUE) AS setting),
     due AS MATERIALIZED (
         SELECT id FROM jobs
         WHERE COALESCE(NOT (",
    several_wait!(),
    "), TRUE) AND state = 'queued' AND run_at <= $1 AND fair_at < ",
    none_yet!(),
    " ORDER BY fair_at, id LIMIT $5 FOR UPDATE SKIP LOCKED),
     given AS MATERIALIZED (
         SELECT numbered.id, claims.claim_id
         FROM (SELECT id, ROW_NUMBER() OVER () AS place FROM due) AS numbered
         JOIN unnest($2) WITH ORDINALITY AS claims (claim_id, place) ON claims.place = numbered.place),
     taken AS (
         UPDATE jobs SET ",
    set_taken!("given.claim_id"),
    " FROM given WHERE jobs.id = given.id AND ",
    still_queued!("jobs."),
    " AND jobs.run_at <= $1
         RETURNING ",
    taken_columns!(),
    "),
     reached AS (SELECT MAX(",
    number_of_place!("fair_at"),
    ") AS number FROM taken),
     moved AS (
         UPDATE queue_head SET fair_at = reached.number FROM reached WHERE queue_head.fair_at < reached.number)
     SELECT taken.* FROM taken CROSS JOIN relaxed ORDER BY taken.fair_at, taken.id"
);

macro_rules! take_anybodys {
    ($lock:literal) => {
        take_first!("", "", $lock)
    };
}

macro_rules! take_next {
    ($lock:literal) => {
        take_first!(concat!("NOT EXISTS (", passed_over!(), ") AND "), "", $lock)
    };
}

/// The workspace is $5. By a range, as in `line.rs`: else PostgreSQL may go past all that others have before.
macro_rules! take_ones {
    ($lock:literal) => {
        take_first!("workspace_id >= $5 AND workspace_id <= $5 AND ", "workspace_id, ", $lock)
    };
}

/// The statements of claims, for a test that looks at their plans.
#[cfg(test)]
pub(crate) const TAKE: [&str; 3] = [take_next!(""), take_anybodys!(""), take_ones!("")];

#[derive(sqlx::FromRow)]
struct ClaimedRow {
    #[sqlx(flatten)]
    claim: JobClaim,
    fair_at: i64,
    /// The highest number that was taken before.
    head: i64,
    /// Whether several workspaces have jobs in line.
    several_wait: bool,
}

/// Whose job is taken.
#[derive(Clone, Copy)]
enum ClaimScope {
    /// The first of all, if its workspace is not passed over.
    Next,
    /// The first of all.
    Anybodys,
    /// The first of this workspace's.
    Ones(WorkspaceId),
}

/// Jobs that were taken in turn.
#[derive(Debug, Default)]
pub struct ClaimedJobs {
    /// They, in the order in which they were taken.
    pub claims: Vec<JobClaim>,
    /// Whether as many were taken as were asked for, and several workspaces wait: then some are in line still.
    pub several_wait: bool,
}

/// Takes the next due jobs, `most` of them at most, for `worker` until `lease_until`. The attempts are counted now, so that one which kills
/// its worker counts too. While several workspaces wait no workspace gets the last slot besides all others. Whoever takes several here
/// gets those that would be taken by one transaction after the other.
pub async fn claim(
    tx: &mut Tx,
    worker: &str,
    now: Timestamp,
    lease_until: Timestamp,
    most: usize,
) -> Result<ClaimedJobs> {
    // Who claims waits for who claims: two at once would not see each other, and could give one workspace the last two slots.
    line::lock_head(tx).await?;
    let mut claimed = ClaimedJobs::default();
    // How far the head goes on while no two workspaces wait: only this transaction could see it, so it is written once.
    let mut reached = None;
    while claimed.claims.len() < most {
        let mut taken = take_in_line(tx, worker, now, lease_until).await?;
        if taken.is_none() {
            // Nobody else waits, somebody holds the job to change it, or there are none in line at all.
            note_reached(tx, &mut reached).await?;
            line::admit(tx, now).await?;
            taken = take(tx, ClaimScope::Anybodys, worker, now, lease_until).await?;
        }
        let Some(ClaimedRow { claim, fair_at, head, several_wait }) = taken else {
            claimed.several_wait = false;
            break;
        };
        claimed.claims.push(claim);
        claimed.several_wait = several_wait;
        let number = place::number(fair_at);
        if number > reached.unwrap_or(head) {
            reached = if several_wait {
                line::advance_head(tx, number, now).await?;
                None
            } else {
                Some(number)
            };
        }
    }
    note_reached(tx, &mut reached).await?;
    Ok(claimed)
}

/// Writes how far the head has gone on, if that is not written yet.
async fn note_reached(tx: &mut Tx, reached: &mut Option<i64>) -> Result<()> {
    match reached.take() {
        Some(number) => line::note_head(tx, number).await,
        None => Ok(()),
    }
}

/// Takes the first job in line, or the first of the others if its workspace is passed over.
async fn take_in_line(
    tx: &mut Tx,
    worker: &str,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<ClaimedRow>> {
    let taken = take(tx, ClaimScope::Next, worker, now, lease_until).await?;
    if taken.is_none()
        && let Some(workspace) = next_besides_passed_over(tx, now).await?
    {
        return take(tx, ClaimScope::Ones(workspace), worker, now, lease_until).await;
    }
    Ok(taken)
}

/// Who is next besides the workspace who is passed over for having all slots that are in use; none when nobody is passed over, or nobody
/// else waits: then no slot stays empty.
async fn next_besides_passed_over(tx: &mut Tx, now: Timestamp) -> Result<Option<WorkspaceId>> {
    let passed_over: Option<WorkspaceId> =
        on!(tx, |c| sqlx::query_scalar(PASSED_OVER).bind(now).fetch_optional(c))?;
    match passed_over {
        Some(workspace) => line::next_besides(tx, workspace, now).await,
        None => Ok(None),
    }
}

/// [`claim`] of at most `most` jobs in one round trip, where the database can and nobody disputes it: jobs that are due and in line already,
/// while no two workspaces wait. None at all says nothing about whether there are some.
pub async fn claim_undisputed(
    db: &Db,
    worker: &str,
    now: Timestamp,
    lease_until: Timestamp,
    most: usize,
) -> Result<Vec<JobClaim>> {
    let Db::Postgres { pool, .. } = db else { return Ok(Vec::new()) };
    let claims: Vec<Uuid> = (0..most).map(|_| *ClaimId::generate().as_uuid()).collect();
    // All rows: a statement that is given up before its end may still have to be committed, and whoever goes on by another connection would
    // find the claim not held.
    let taken = sqlx::query_as(TAKE_UNDISPUTED)
        .bind(now)
        .bind(claims)
        .bind(lease_until)
        .bind(worker)
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .fetch_all(pool);
    Ok(silence::answered(taken).await?)
}

async fn take(
    tx: &mut Tx,
    whose: ClaimScope,
    worker: &str,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<ClaimedRow>> {
    let statement = match (&*tx, whose) {
        (Tx::Postgres(_), ClaimScope::Next) => take_next!("FOR UPDATE SKIP LOCKED"),
        (Tx::Postgres(_), ClaimScope::Anybodys) => take_anybodys!("FOR UPDATE SKIP LOCKED"),
        (Tx::Postgres(_), ClaimScope::Ones(_)) => take_ones!("FOR UPDATE SKIP LOCKED"),
        (Tx::Sqlite(_), ClaimScope::Next) => take_next!(""),
        (Tx::Sqlite(_), ClaimScope::Anybodys) => take_anybodys!(""),
        (Tx::Sqlite(_), ClaimScope::Ones(_)) => take_ones!(""),
    };
    Ok(on!(tx, |c| {
        let query =
            sqlx::query_as(statement).bind(now).bind(ClaimId::generate()).bind(lease_until).bind(worker);
        let query = match whose {
            ClaimScope::Next | ClaimScope::Anybodys => query,
            ClaimScope::Ones(workspace) => query.bind(workspace),
        };
        query.fetch_optional(c)
    })?)
}
