//! The order in which workers take jobs, fair between users: start-time fair queueing.
//!
//! Jobs have numbers, counted in documents. A user's own jobs are one number apart, and `queue_head` has the highest number that was
//! taken so far. A user's next job has the number behind the user's last one, but never one before the head's, so whoever comes
//! new is next, however long another's line is, and of those who have a line each has one job taken in turn.
//!
//! The place of a job (`fair_at`) is twice its number, and one more if others of its user were there before it: of the same
//! number, the only one of a user comes before those of a line.

use crate::{
    clock::Timestamp,
    db::{Result, Tx, accounts, execute, on},
    ids::UserId,
};

/// The place of a job that waits for a later moment: none yet. It gets one when it is due, so that thousands that wait are not
/// gone past at each claim, and so that it goes behind what its user has queued meanwhile.
pub(super) const NONE_YET: i64 = i64::MAX;

/// [`NONE_YET`] as a literal, because an index over a part of the table is used for no other.
macro_rules! none_yet {
    () => {
        "9223372036854775807"
    };
}
pub(super) use none_yet;

/// The place of a job of the user $3 with the number $7. A user's only one whose number has come is put before all others: somebody
/// whom the limit on slots holds up may still stand before the head.
macro_rules! place {
    () => {
        "(SELECT CASE WHEN EXISTS (SELECT 1 FROM jobs
                                   WHERE user_id = $3 AND state = 'queued' AND fair_at < 9223372036854775807)
                        OR EXISTS (SELECT 1 FROM jobs WHERE user_id = $3 AND state = 'running') THEN 2 * $7 + 1
                      WHEN $7 <= queue_head.fair_at AND front.fair_at < 2 * $7 THEN front.fair_at - front.fair_at % 2
                      ELSE 2 * $7 END
          FROM queue_head LEFT JOIN (
              SELECT fair_at FROM jobs WHERE state = 'queued' ORDER BY fair_at, id LIMIT 1) AS front ON TRUE)"
    };
}
pub(super) use place;

/// Jobs that get a place in one transaction, at most.
const ADMITTED: i64 = 200;

/// The next number in a user's line; none when there is no such user.
pub(super) async fn next_number(tx: &mut Tx, user: UserId) -> Result<Option<i64>> {
    // In a statement of its own: the next one then sees what others have queued for this user until now.
    accounts::lock(tx, user).await?;
    // `reach` is how far the user's line really goes: what was cancelled from its end does not count against the user.
    Ok(on!(tx, |c| {
        sqlx::query_scalar(concat!(
        "UPDATE users SET fair_at = (
             SELECT CASE WHEN users.fair_at >= line.reach THEN line.reach + 1
                         WHEN users.fair_at >= line.head THEN users.fair_at + 1
                         ELSE line.head END
             FROM (SELECT ends.head, CASE WHEN ends.queued > ends.taken THEN ends.queued ELSE ends.taken END AS reach
                   FROM (SELECT queue_head.fair_at AS head,
                                COALESCE((SELECT MAX(fair_at) / 2 FROM jobs
                                          WHERE user_id = $1 AND state = 'queued' AND fair_at < ",
        none_yet!(),
        "), 0) AS queued,
                                CASE WHEN held.fair_at > queue_head.fair_at THEN held.fair_at
                                     ELSE queue_head.fair_at END AS taken
                         FROM queue_head CROSS JOIN
                              (SELECT MAX(fair_at) / 2 AS fair_at FROM jobs WHERE user_id = $1 AND state = 'running') AS held
                        ) AS ends) AS line)
         WHERE id = $1 AND deleted_at IS NULL RETURNING fair_at"
    ))
    .bind(user)
    .fetch_optional(c)
    })?)
}

macro_rules! admit {
    ($lock:literal) => {
        concat!(
            "UPDATE jobs SET fair_at = place.fair_at
             FROM (SELECT due.id AS job_id,
                          1 + 2 * ROW_NUMBER() OVER (PARTITION BY due.user_id ORDER BY due.run_at, due.id)
                          + 2 * CASE WHEN due.last > queue_head.fair_at THEN due.last ELSE queue_head.fair_at END AS fair_at
                   FROM (SELECT waiting.id, waiting.user_id, waiting.run_at,
                                (SELECT MAX(own.fair_at) / 2 FROM jobs AS own
                                 WHERE own.user_id = waiting.user_id AND own.state = 'queued' AND own.fair_at < ",
            none_yet!(),
            ") AS last
                         FROM (SELECT id, user_id, run_at FROM jobs
                               WHERE state = 'queued' AND fair_at = ",
            none_yet!(),
            " AND run_at <= $1
                               ORDER BY run_at LIMIT $2 ",
            $lock,
            ") AS waiting) AS due
                        CROSS JOIN (SELECT fair_at FROM queue_head LIMIT 1) AS queue_head) AS place
             WHERE jobs.id = place.job_id"
        )
    };
}

/// Gives those that waited for a moment which has come their places, each behind what its user has queued; how many. It takes on some
/// hundred at most, the longest due first.
pub async fn admit(tx: &mut Tx, now: Timestamp) -> Result<u64> {
    let statement = match tx {
        Tx::Postgres(_) => admit!("FOR UPDATE SKIP LOCKED"),
        Tx::Sqlite(_) => admit!(""),
    };
    execute!(tx, sqlx::query(statement).bind(now).bind(ADMITTED))
}
