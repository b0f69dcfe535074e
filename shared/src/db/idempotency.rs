//! Answers that are kept for a while, so that a creating request which is sent again creates nothing twice.

use uuid::Uuid;

use crate::{
    clock::Timestamp,
    db::{Db, Result, Tx, execute, on},
    ids::UserId,
};

/// An answer that was given.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredAnswer {
    /// What its ciphertext is bound to.
    pub row_id: Uuid,
    /// SHA-256 of what was asked.
    pub request_hash: Vec<u8>,
    /// The body, encrypted.
    pub answer_sealed: Vec<u8>,
}

/// The answer that a user was given to the request with this key, unless it has expired.
pub async fn find(db: &Db, user: UserId, key: &str, now: Timestamp) -> Result<Option<StoredAnswer>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT row_id, request_hash, answer_sealed FROM idempotency
         WHERE user_id = $1 AND request_key = $2 AND expires_at > $3"
    )
    .bind(user)
    .bind(key)
    .bind(now)
    .fetch_optional(c))?)
}

/// Keeps an answer until `expires_at`; false when one is kept under this key already.
pub async fn insert(
    tx: &mut Tx,
    user: UserId,
    key: &str,
    answer: &StoredAnswer,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "INSERT INTO idempotency (user_id, request_key, request_hash, row_id, answer_sealed, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (user_id, request_key) DO UPDATE SET
                 request_hash = excluded.request_hash, row_id = excluded.row_id,
                 answer_sealed = excluded.answer_sealed, expires_at = excluded.expires_at
             WHERE idempotency.expires_at <= $7",
        )
        .bind(user)
        .bind(key)
        .bind(answer.request_hash.as_slice())
        .bind(answer.row_id)
        .bind(answer.answer_sealed.as_slice())
        .bind(expires_at)
        .bind(now)
    )?;
    Ok(rows == 1)
}

/// Forgets at most `limit` answers that have expired; how many there were.
pub async fn expire(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    Ok(execute!(
        tx,
        sqlx::query(
            "DELETE FROM idempotency WHERE (user_id, request_key) IN (
                 SELECT user_id, request_key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)"
        )
        .bind(now)
        .bind(i64::from(limit))
    )?)
}
