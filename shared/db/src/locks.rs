//! The lock that comes first in the order of locks: workspace, document, job; and workspace, prompt, agent, tag or tool, link.

use lectern_shared::ids::WorkspaceId;

use super::{Result, Tx, silence};

/// Makes changes to what a workspace owns wait for each other until this transaction ends: nothing goes while it is joined to
/// something else, of two changes neither undoes the other, and two that are harmless alone make no circle together. In the
/// order of locks it comes first. Of SQLite's transactions there is one at a time anyway.
pub async fn lock_workspace(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    if let Tx::Postgres(tx) = tx
        && !tx.knows_locked(workspace)
    {
        let lock = sqlx::query("UPDATE workspaces SET fair_at = fair_at WHERE id = $1").bind(workspace);
        let locked = silence::answered(lock.execute(&mut **tx)).await?;
        if locked.rows_affected() == 1 {
            tx.note_locked(workspace);
        }
    }
    Ok(())
}

/// Waits for every transaction that has added something that points to a workspace, and keeps others from doing so until this one
/// ends. Of SQLite's there is none.
pub async fn wait_for_references(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    if let Tx::Postgres(tx) = tx {
        let lock = sqlx::query("SELECT id FROM workspaces WHERE id = $1 FOR UPDATE").bind(workspace);
        silence::answered(lock.fetch_optional(&mut **tx)).await?;
    }
    Ok(())
}
