//! Accounts at other providers of identity, by the issuer and its own name for somebody.

use lectern_shared::{clock::Timestamp, ids::UserId, model::user::User};

use crate::{Db, Result, Tx, accounts, execute, on};

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

/// Who an account belongs to at providers: the issuer and its own name for somebody, of each.
pub async fn of_user(db: &Db, user: UserId) -> Result<Vec<(String, String)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT issuer, subject FROM user_identities WHERE user_id = $1 ORDER BY issuer, subject"
    )
    .bind(user)
    .fetch_all(c))?)
}

/// Links somebody at a provider to an account that nobody there has yet; false when somebody has it. Of two who come at once one gets it.
pub async fn link_unless_taken(
    tx: &mut Tx,
    issuer: &str,
    subject: &str,
    user: UserId,
    now: Timestamp,
) -> Result<bool> {
    accounts::lock(tx, user).await?;
    let is_taken: bool = on!(tx, |c| sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM user_identities WHERE user_id = $1 AND issuer = $2)"
    )
    .bind(user)
    .bind(issuer)
    .fetch_one(c))?;
    if !is_taken {
        link(tx, issuer, subject, user, now).await?;
    }
    Ok(!is_taken)
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
