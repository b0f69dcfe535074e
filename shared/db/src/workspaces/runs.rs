//! What the runs of agents leave in a workspace, which goes with it a part at a time.

use lectern_shared::ids::WorkspaceId;

use crate::{
    Result, Tx, execute,
    traces::{DELETED_TOGETHER, delete_some},
};

/// Deletes some of what the runs of a deleted workspace's agents have left: traces, answers that are kept, and what sessions remember. False
/// when there is no more of it, but for what somebody else is deleting at this moment. A workspace that is not deleted is not touched.
pub async fn purge_some_runs(tx: &mut Tx, workspace: WorkspaceId) -> Result<bool> {
    let mut most = 0;
    for statement in [
        delete_some!(
            tx,
            "traces",
            "workspace_id = $1 AND EXISTS (SELECT 1 FROM workspaces WHERE id = $1 AND deleted_at IS NOT NULL) ORDER BY id LIMIT $2"
        ),
        // Those of deleted agents are of the workspace where the agents were.
        delete_some!(
            tx,
            "traces",
            "agent_id IN (SELECT id FROM agents WHERE workspace_id = $1)
             AND EXISTS (SELECT 1 FROM workspaces WHERE id = $1 AND deleted_at IS NOT NULL) LIMIT $2"
        ),
        delete_some!(
            tx,
            "agent_memory",
            "agent_id IN (SELECT id FROM agents WHERE workspace_id = $1)
             AND EXISTS (SELECT 1 FROM workspaces WHERE id = $1 AND deleted_at IS NOT NULL) LIMIT $2"
        ),
    ] {
        let gone = execute!(tx, sqlx::query(statement).bind(workspace).bind(i64::from(DELETED_TOGETHER)))?;
        most = most.max(gone);
    }
    Ok(most == u64::from(DELETED_TOGETHER))
}
