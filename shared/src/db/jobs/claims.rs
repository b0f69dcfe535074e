//! Taking jobs.

use uuid::Uuid;

use super::line::{self, none_yet};
use crate::{
    clock::Timestamp,
    db::{Db, Result, Tx, execute, on},
    ids::ClaimId,
    model::job::Claim,
};

/// What of the queued jobs is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Some that have their place.
    pub in_line: bool,
    /// Some that waited for a moment which has come, and have to get a place.
    pub waited: bool,
}

impl Due {
    /// Whether any job is due.
    pub fn any(self) -> bool {
        self.in_line || self.waited
    }
}

pub(in crate::db) const DUE: &str = concat!(
    "SELECT (SELECT run_at FROM jobs WHERE state = 'queued' AND fair_at < ",
    none_yet!(),
    " AND run_at <= $1 ORDER BY fair_at, id LIMIT 1),
            (SELECT run_at FROM jobs WHERE state = 'queued' AND fair_at = ",
    none_yet!(),
    " AND run_at <= $1 ORDER BY run_at LIMIT 1)"
);

/// What is due.
pub async fn due(db: &Db, now: Timestamp) -> Result<Due> {
    let (in_line, waited): (Option<i64>, Option<i64>) =
        on!(db, |c| sqlx::query_as(DUE).bind(now).fetch_one(c))?;
    Ok(Due { in_line: in_line.is_some(), waited: waited.is_some() })
}

/// The only user whose jobs run, if another one waits. The ends of two indexes tell, so it takes no longer when many are queued.
/// Every id is above $5, which says to SQLite by which index to look.
macro_rules! has_all_slots {
    () => {
        concat!(
            "COALESCE((SELECT held.user_id
                       FROM (SELECT user_id FROM jobs WHERE state = 'running' ORDER BY user_id LIMIT 1) AS held
                       WHERE held.user_id = (
                                 SELECT user_id FROM jobs WHERE state = 'running' ORDER BY user_id DESC LIMIT 1)
                         AND (held.user_id <> (
                                 SELECT user_id FROM jobs WHERE state = 'queued' AND fair_at < ",
            none_yet!(),
            " AND user_id > $5 AND run_at <= $1
                                 ORDER BY user_id, fair_at, id LIMIT 1)
                              OR held.user_id <> (
                                 SELECT user_id FROM jobs WHERE state = 'queued' AND fair_at < ",
            none_yet!(),
            " AND user_id > $5 AND run_at <= $1
                                 ORDER BY user_id DESC, fair_at DESC, id DESC LIMIT 1))), $5)"
        )
    };
}

macro_rules! claim_next {
    ($passed_over:expr, $lock:literal) => {
        concat!(
            "UPDATE jobs SET state = 'running', claim_id = $2, lease_until = $3, worker = $4, attempts = attempts + 1,
                    claimed_revision = COALESCE(
                        (SELECT revision FROM documents WHERE documents.id = jobs.document_id), 0),
                    started_at = $1, finished_at = NULL, stage = NULL, progress = NULL
             WHERE id = (SELECT id FROM jobs WHERE state = 'queued' AND fair_at < ",
            none_yet!(),
            " AND run_at <= $1
                          AND CASE WHEN user_id = ",
            $passed_over,
            // As `<>` PostgreSQL takes it for hardly ever true where most jobs are one user's, and sorts all of them.
            " THEN FALSE ELSE TRUE END
                         ORDER BY fair_at, id LIMIT 1 ",
            $lock,
            // Repeated, because without them the row that another claimer took meanwhile is taken again.
            ") AND state = 'queued' AND run_at <= $1
             RETURNING id, kind, user_id, document_id, claim_id, claimed_revision, attempts, max_attempts, queued_at,
                       from_stored, trace_parent, fair_at"
        )
    };
}

#[derive(sqlx::FromRow)]
struct Taken {
    #[sqlx(flatten)]
    claim: Claim,
    fair_at: i64,
}

/// Whose job is taken.
#[derive(Clone, Copy)]
enum Whose {
    /// Not that of the user who has all slots that are in use, if another one waits.
    FairShare,
    /// Anybody's.
    Anybodys,
}

/// Takes the next due job for `worker` until `lease_until`. The attempt is counted now, so that one which kills its worker
/// counts too. While several users wait no user gets the last slot besides all others.
pub async fn claim(
    tx: &mut Tx,
    worker: &str,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<Claim>> {
    if let Tx::Postgres(c) = tx {
        // One claim after the other: two at once would not see each other, and could give one user the last two slots. A claimer
        // that is cut off in between is given up soon.
        sqlx::raw_sql(
            "SET LOCAL idle_in_transaction_session_timeout = '5s'; SELECT fair_at FROM queue_head FOR UPDATE",
        )
        .execute(&mut **c)
        .await?;
    }
    let claim_id = ClaimId::generate();
    let mut taken = take(tx, Whose::FairShare, claim_id, worker, now, lease_until).await?;
    if taken.is_none() {
        // The other users' jobs are held by somebody who changes them, or there are none in line at all.
        line::admit(tx, now).await?;
        taken = take(tx, Whose::Anybodys, claim_id, worker, now, lease_until).await?;
    }
    let Some(Taken { claim, fair_at }) = taken else { return Ok(None) };
    execute!(tx, sqlx::query("UPDATE queue_head SET fair_at = $1 WHERE fair_at < $1").bind(fair_at / 2))?;
    Ok(Some(claim))
}

async fn take(
    tx: &mut Tx,
    whose: Whose,
    claim_id: ClaimId,
    worker: &str,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<Taken>> {
    let statement = match (&*tx, whose) {
        (Tx::Postgres(_), Whose::FairShare) => claim_next!(has_all_slots!(), "FOR UPDATE SKIP LOCKED"),
        (Tx::Postgres(_), Whose::Anybodys) => claim_next!("$5", "FOR UPDATE SKIP LOCKED"),
        (Tx::Sqlite(_), Whose::FairShare) => claim_next!(has_all_slots!(), ""),
        (Tx::Sqlite(_), Whose::Anybodys) => claim_next!("$5", ""),
    };
    Ok(on!(tx, |c| sqlx::query_as(statement)
        .bind(now)
        .bind(claim_id)
        .bind(lease_until)
        .bind(worker)
        // Nobody's id.
        .bind(Uuid::nil())
        .fetch_optional(c))?)
}

/// The statement of a claim, for a test that looks at its plan.
#[cfg(test)]
pub(in crate::db) const CLAIM: &str = claim_next!(has_all_slots!(), "");
