//! What is left of deleted workspaces. A request that had begun before its workspace was deleted can add something after: its
//! credential was good when it was looked at. So deleted workspaces are looked through again until nothing of them is left; then
//! their row goes, with that of the account if it was an account's own, and from then on nothing can point to it. One of them stays: that of
//! [deleted agents](crate::agents::delete).

use lectern_shared::{
    clock::Timestamp,
    ids::{UserId, WorkspaceId},
};

use super::remove_owned;
pub use super::runs::purge_some_runs;
use crate::{Db, Result, Tx, accounts, documents, execute, on};

/// Documents that are deleted in one transaction.
const DOCUMENTS: u32 = 200;

/// At most `limit` deleted workspaces after `after`, by their ids.
pub async fn deleted(db: &Db, after: WorkspaceId, limit: u32) -> Result<Vec<WorkspaceId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM workspaces WHERE deleted_at IS NOT NULL AND id > $1 ORDER BY id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Removes what was added to a deleted workspace, or everything if it was only [closed](super::close), and its row when that was
/// deleted before `before` and nothing of it is left. A workspace that is not deleted is not touched. True when the row is gone; of many
/// documents and runs it takes some, so that nobody waits for all of them.
pub async fn purge(tx: &mut Tx, workspace: WorkspaceId, now: Timestamp, before: Timestamp) -> Result<bool> {
    let found: Option<bool> = on!(tx, |c| {
        sqlx::query_scalar("SELECT is_personal FROM workspaces WHERE id = $1 AND deleted_at IS NOT NULL")
            .bind(workspace)
            .fetch_optional(c)
    })?;
    let Some(is_personal) = found else { return Ok(false) };
    let account = UserId::from(*workspace.as_uuid());
    // The process that closed it did not come further.
    let is_half_deleted = is_personal && accounts::is_half_deleted(tx, workspace).await?;
    if is_half_deleted {
        // It may after all: both lock the account before the workspace.
        accounts::lock(tx, account).await?;
    }
    if documents::delete_some(tx, workspace, now, DOCUMENTS).await? == u64::from(DOCUMENTS) {
        return Ok(false);
    }
    if is_half_deleted {
        accounts::delete(tx, account, now).await?;
    }
    if !remove_owned(tx, workspace).await? {
        return Ok(false);
    }
    if is_personal {
        accounts::remove_owned(tx, account).await?;
    }
    // Tombstones of documents stay until the last of their generations is purged, and go with their jobs and vectors.
    let rows = execute!(
        tx,
        sqlx::query(
            "DELETE FROM workspaces WHERE id = $1 AND deleted_at < $2
               AND NOT EXISTS (SELECT 1 FROM documents WHERE workspace_id = $1 AND deleted_at IS NOT NULL)
               AND NOT EXISTS (SELECT 1 FROM jobs WHERE workspace_id = $1)"
        )
        .bind(workspace)
        .bind(before)
    )?;
    if rows == 1 && is_personal {
        accounts::forget(tx, workspace).await?;
    }
    Ok(rows == 1)
}
