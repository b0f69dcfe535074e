//! The deletion of agents. What their runs have left can be much, so it goes in many short transactions, and who could still be asked meanwhile
//! would leave more. Therefore an agent moves first, to a workspace that nobody is a member of and that counts as deleted: from then on nobody
//! finds it. Its row goes last, so that nothing is left to which nobody leads. Where that is cut off, the sweeper goes on with it, as with
//! everything that is in a [deleted workspace](crate::workspaces::leftovers).

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, WorkspaceId},
};
use uuid::Uuid;

use super::lock_row;
use crate::{
    Result, Tx, execute, locks,
    traces::{DELETED_TOGETHER, delete_some},
};

/// When the workspace of deleted agents was deleted: it is never long enough ago for its row to go.
const NEVER: Timestamp = Timestamp::from_micros(i64::MAX);

/// What ends with agent $1, but for what its runs have left. A test compares it with the tables that there are.
const DEPENDENT: [&str; 9] = [
    // The token of a page is its page's alone.
    "DELETE FROM api_tokens WHERE id IN (SELECT token_id FROM publications WHERE agent_id = $1)",
    "DELETE FROM publications WHERE agent_id = $1",
    "DELETE FROM agent_versions WHERE agent_id = $1",
    "DELETE FROM agent_tags WHERE agent_id = $1",
    "DELETE FROM agent_tools WHERE agent_id = $1",
    "DELETE FROM agent_documents WHERE agent_id = $1",
    "DELETE FROM agent_collections WHERE agent_id = $1",
    "UPDATE evaluations SET agent_id = NULL WHERE agent_id = $1",
    "UPDATE evaluations SET judge_id = NULL WHERE judge_id = $1",
];

/// Where agents are that are deleted. The ids of all other workspaces are made up by time or by chance.
fn workspace_of_deleted() -> WorkspaceId {
    Uuid::from_u128(1).into()
}

/// Deletes one of a workspace's agents with its links, its versions and its page; false when there is none. What its runs have left is for
/// [`forget_some_runs`] and [`forget`], which come in transactions of their own after this one.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: AgentId) -> Result<bool> {
    // Whoever takes away one of its links waits, and holds nothing that this waits for.
    locks::lock_workspace(tx, workspace).await?;
    if !lock_row(tx, workspace, id).await? {
        return Ok(false);
    }
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO workspaces (id, name, is_personal, search_epoch, fair_at, created_at, updated_at, deleted_at)
             VALUES ($1, '', FALSE, 0, 0, 0, 0, $2) ON CONFLICT (id) DO NOTHING"
        )
        .bind(workspace_of_deleted())
        .bind(NEVER)
    )?;
    execute!(
        tx,
        sqlx::query(
            "UPDATE agents SET workspace_id = $2, llm_key_sealed = NULL, prompt_id = NULL WHERE id = $1"
        )
        .bind(id)
        .bind(workspace_of_deleted())
    )?;
    for statement in DEPENDENT {
        execute!(tx, sqlx::query(statement).bind(id))?;
    }
    Ok(true)
}

/// Deletes some of what the runs of an agent have left that was [deleted](delete): traces, answers that are kept, and what sessions
/// remember. False when there is no more of it, but for what somebody else is deleting at this moment.
pub async fn forget_some_runs(tx: &mut Tx, id: AgentId) -> Result<bool> {
    let mut most = 0;
    // By the agent alone: SQLite would go through the workspace's other traces each time.
    for statement in [
        delete_some!(
            tx,
            "traces",
            "agent_id = $1 AND EXISTS (SELECT 1 FROM agents WHERE id = $1 AND workspace_id = $2) ORDER BY id LIMIT $3"
        ),
        delete_some!(
            tx,
            "agent_memory",
            "agent_id = $1 AND EXISTS (SELECT 1 FROM agents WHERE id = $1 AND workspace_id = $2) LIMIT $3"
        ),
    ] {
        let gone = execute!(
            tx,
            sqlx::query(statement).bind(id).bind(workspace_of_deleted()).bind(i64::from(DELETED_TOGETHER))
        )?;
        most = most.max(gone);
    }
    Ok(most == u64::from(DELETED_TOGETHER))
}

/// Forgets an agent that was [deleted](delete), with what is left of its runs. Its transaction does nothing else: it waits for runs that are
/// being stored, which wait for whoever deletes what the session remembers.
pub async fn forget(tx: &mut Tx, id: AgentId) -> Result<()> {
    execute!(
        tx,
        sqlx::query("DELETE FROM agents WHERE id = $1 AND workspace_id = $2")
            .bind(id)
            .bind(workspace_of_deleted())
    )?;
    Ok(())
}
