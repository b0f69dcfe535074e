//! Answers that are kept for a while, so that a creating request which is sent again creates nothing twice.

use lectern_shared::{clock::Timestamp, ids::UserId};

use crate::{Db, Result, Tx, execute, on};

/// The answer, sealed by the caller, that a user was given to the request with this key, unless it has expired.
pub async fn find(db: &Db, user: UserId, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT answer_sealed FROM idempotency WHERE user_id = $1 AND request_key = $2 AND expires_at > $3"
    )
    .bind(user)
    .bind(key)
    .bind(now)
    .fetch_optional(c))?)
}

/// Keeps a sealed answer until `expires_at`; false when one is kept under this key already. A transaction that keeps one
/// under the same key at the same time is waited for.
pub async fn insert(
    tx: &mut Tx,
    user: UserId,
    key: &str,
    answer_sealed: &[u8],
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "INSERT INTO idempotency (user_id, request_key, answer_sealed, expires_at)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (user_id, request_key) DO UPDATE SET
                 answer_sealed = excluded.answer_sealed, expires_at = excluded.expires_at
             WHERE idempotency.expires_at <= $5",
        )
        .bind(user)
        .bind(key)
        .bind(answer_sealed)
        .bind(expires_at)
        .bind(now)
    )?;
    Ok(rows == 1)
}

/// Forgets what has expired; at most `limit` answers, so that it never holds the store for long.
pub async fn expire(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    // Said twice: a key that is used again at this moment holds a fresh answer when its row can be had.
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM idempotency WHERE expires_at <= $1 AND (user_id, request_key) IN (
                 SELECT user_id, request_key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)"
        )
        .bind(now)
        .bind(i64::from(limit))
    )
}
