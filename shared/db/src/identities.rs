//! Accounts at other providers of identity, by the issuer and its own name for somebody.

use lectern_shared::{clock::Timestamp, ids::UserId, model::user::User};

use crate::{Db, Result, Tx, execute, on};

/// The active account of somebody at a provider.
pub async fn find_user(db: &Db, issuer: &str, subject: &str) -> Result<Option<User>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT users.* FROM user_identities i JOIN users ON users.id = i.user_id
         WHERE i.issuer = $1 AND i.subject = $2 AND users.deleted_at IS NULL"
    )
    .bind(issuer)
    .bind(subject)
    .fetch_optional(c))?)
}

/// Whether an account belongs to somebody at a provider.
pub async fn is_linked(tx: &mut Tx, issuer: &str, user: UserId) -> Result<bool> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM user_identities WHERE user_id = $1 AND issuer = $2)"
    )
    .bind(user)
    .bind(issuer)
    .fetch_one(c))?)
}

/// Forgets who at any provider an account belongs to. How many those were.
pub async fn unlink(tx: &mut Tx, user: UserId) -> Result<u64> {
    execute!(tx, sqlx::query("DELETE FROM user_identities WHERE user_id = $1").bind(user))
}

/// Links somebody at a provider to an account, in place of one that was deleted.
pub async fn link(tx: &mut Tx, issuer: &str, subject: &str, user: UserId, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO user_identities (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (issuer, subject) DO UPDATE SET user_id = excluded.user_id, created_at = excluded.created_at"
        )
        .bind(issuer)
        .bind(subject)
        .bind(user)
        .bind(now)
    )?;
    Ok(())
}
