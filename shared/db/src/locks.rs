//! The lock that comes first in the order of locks: workspace, document, job; and workspace, prompt, agent, tag or tool, link.

use std::time::Duration;

use lectern_shared::ids::WorkspaceId;
use tokio::time::{Instant, sleep};

use super::{Result, Tx, silence};

/// For how long [`wait_for_references`] asks for a workspace's row: as long as a transaction waits for any other lock.
const ASK_FOR: Duration = Duration::from_secs(5);
/// The pause between two questions.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Locks the row of the workspace $1 for a transaction that goes together with no other which points to it, and tells its id; without one
/// when somebody else has locked it. For PostgreSQL: whoever stands in line for such a lock is passed by nobody, and some of those who are
/// waited for may have to write to the row too, as whoever adds a document does. Each would wait for the other.
pub(crate) const LOCK_WHEN_FREE: &str =
    "SELECT (SELECT id FROM workspaces WHERE id = $1 FOR UPDATE SKIP LOCKED) FROM workspaces WHERE id = $1";

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
/// ends. Of SQLite's there is none. The workspace is to be closed before: of one that is written to all the time the row may never be free.
pub async fn wait_for_references(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    let Tx::Postgres(tx) = tx else { return Ok(()) };
    let began = Instant::now();
    while began.elapsed() < ASK_FOR {
        let free = sqlx::query_scalar(LOCK_WHEN_FREE).bind(workspace);
        let locked: Option<Option<WorkspaceId>> = silence::answered(free.fetch_optional(&mut **tx)).await?;
        match locked {
            // Somebody has locked it.
            Some(None) => sleep(ASK_EVERY).await,
            // It is locked now, or is not there at all.
            Some(Some(_)) | None => return Ok(()),
        }
    }
    let lock = sqlx::query("SELECT id FROM workspaces WHERE id = $1 FOR UPDATE NOWAIT").bind(workspace);
    silence::answered(lock.fetch_optional(&mut **tx)).await?;
    Ok(())
}
