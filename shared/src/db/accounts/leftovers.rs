//! What is left of deleted accounts. A request that had begun before its account was deleted can add something after: its credential
//! was good when it was looked at. So deleted accounts are looked through again until nothing of them is left; then their row goes, and
//! from then on nothing can point to it.

use crate::{
    clock::Timestamp,
    db::{Db, Result, Tx, documents, execute, on},
    ids::{DocumentId, UserId},
};

/// What an account owns besides documents. What hangs on these goes with them, by the schema's own cascades; a test compares both with
/// the tables that there are.
const OWNED: [&str; 7] = [
    "DELETE FROM agents WHERE user_id = $1",
    "DELETE FROM tools WHERE user_id = $1",
    "DELETE FROM tags WHERE user_id = $1",
    "DELETE FROM prompts WHERE user_id = $1",
    "DELETE FROM api_tokens WHERE user_id = $1",
    "DELETE FROM idempotency WHERE user_id = $1",
    "DELETE FROM known_addresses WHERE user_id = $1",
];

/// Removes what an account owns besides documents.
pub(super) async fn remove_owned(tx: &mut Tx, user: UserId) -> Result<()> {
    for statement in OWNED {
        execute!(tx, sqlx::query(statement).bind(user))?;
    }
    Ok(())
}

/// At most `limit` deleted accounts after `after`, by their ids.
pub async fn deleted(db: &Db, after: UserId, limit: u32) -> Result<Vec<UserId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM users WHERE deleted_at IS NOT NULL AND id > $1 ORDER BY id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Removes what was added to a deleted account, or everything if it was only [closed](super::close), and its row when that was deleted before `before` and nothing of it is left. An
/// account that is not deleted is not touched. True when the row is gone.
pub async fn purge(tx: &mut Tx, user: UserId, now: Timestamp, before: Timestamp) -> Result<bool> {
    let key: Option<String> = on!(tx, |c| {
        sqlx::query_scalar("SELECT email_key FROM users WHERE id = $1 AND deleted_at IS NOT NULL")
            .bind(user)
            .fetch_optional(c)
    })?;
    let Some(key) = key else { return Ok(false) };
    if key != super::deleted_key(user) {
        // The process that closed it did not come further.
        super::delete(tx, user, now).await?;
    }
    let living: Vec<DocumentId> = on!(tx, |c| {
        sqlx::query_scalar("SELECT id FROM documents WHERE user_id = $1 AND deleted_at IS NULL")
            .bind(user)
            .fetch_all(c)
    })?;
    for document in living {
        documents::delete(tx, user, document, now, now).await?;
    }
    remove_owned(tx, user).await?;
    // Tombstones of documents stay until the last of their generations is purged, and go with their jobs and vectors.
    let rows = execute!(
        tx,
        sqlx::query(
            "DELETE FROM users WHERE id = $1 AND deleted_at < $2
               AND NOT EXISTS (SELECT 1 FROM documents WHERE user_id = $1 AND deleted_at IS NOT NULL)
               AND NOT EXISTS (SELECT 1 FROM jobs WHERE user_id = $1)"
        )
        .bind(user)
        .bind(before)
    )?;
    Ok(rows == 1)
}
