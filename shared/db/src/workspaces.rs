//! Workspaces.

pub mod invitations;
pub mod leftovers;
pub mod members;
mod runs;

use lectern_shared::{
    clock::Timestamp,
    ids::{UserId, WorkspaceId},
    model::{
        Json,
        workspace::{JoinedWorkspace, Workspace, WorkspaceQuotas},
    },
};

use crate::{Db, Result, Tx, commit::pg_identity, documents, execute, locks, on, silence};

/// What a workspace owns besides documents and agents. What hangs on these goes with them, by the schema's own cascades; a test compares
/// both with the tables that there are.
const OWNED: [&str; 13] = [
    "DELETE FROM tools WHERE workspace_id = $1",
    "DELETE FROM tags WHERE workspace_id = $1",
    "DELETE FROM prompts WHERE workspace_id = $1",
    "DELETE FROM collections WHERE workspace_id = $1",
    "DELETE FROM api_tokens WHERE workspace_id = $1",
    "DELETE FROM invitations WHERE workspace_id = $1",
    "DELETE FROM members WHERE workspace_id = $1",
    "DELETE FROM workspace_usage WHERE workspace_id = $1",
    "DELETE FROM audit_events WHERE workspace_id = $1",
    "DELETE FROM webhooks WHERE workspace_id = $1",
    "DELETE FROM sources WHERE workspace_id = $1",
    "DELETE FROM evaluations WHERE workspace_id = $1",
    "DELETE FROM deletion_receipts WHERE workspace_id = $1",
];

/// Adds a workspace. It has no members: see [`members::put`].
pub async fn insert(tx: &mut Tx, workspace: &Workspace) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO workspaces (id, name, is_personal, search_epoch, fair_at, created_at, updated_at)
             VALUES ($1, $2, $3, 0, 0, $4, $5)"
        )
        .bind(workspace.id)
        .bind(workspace.name.as_str())
        .bind(workspace.is_personal)
        .bind(workspace.created_at)
        .bind(workspace.updated_at)
    )?;
    Ok(())
}

macro_rules! select_joined {
    ($where:literal) => {
        concat!(
            "SELECT w.id, w.name, w.is_personal, w.quotas, w.created_at, w.updated_at, m.role
             FROM workspaces w JOIN members m ON m.workspace_id = w.id
             WHERE w.deleted_at IS NULL AND m.user_id = $1 AND ",
            $where
        )
    };
}

/// One of the workspaces that an account is a member of.
pub async fn find_joined(db: &Db, user: UserId, id: WorkspaceId) -> Result<Option<JoinedWorkspace>> {
    Ok(on!(db, |c| sqlx::query_as(select_joined!("w.id = $2")).bind(user).bind(id).fetch_optional(c))?)
}

/// At most `limit` of the workspaces that an account is a member of, older than `before`, newest first.
pub async fn list_joined(
    db: &Db,
    user: UserId,
    before: WorkspaceId,
    limit: u32,
) -> Result<Vec<JoinedWorkspace>> {
    Ok(on!(db, |c| sqlx::query_as(select_joined!("w.id < $2 ORDER BY w.id DESC LIMIT $3"))
        .bind(user)
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(c))?)
}

/// A workspace, whoever asks: for the operator.
pub async fn find(db: &Db, id: WorkspaceId) -> Result<Option<Workspace>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM workspaces WHERE id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_optional(c))?)
}

/// At most `limit` workspaces older than `before`, newest first: for the operator.
pub async fn list(db: &Db, before: WorkspaceId, limit: u32) -> Result<Vec<Workspace>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM workspaces WHERE deleted_at IS NULL AND id < $1 ORDER BY id DESC LIMIT $2"
    )
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Writes a workspace's name; false when there is none.
pub async fn rename(tx: &mut Tx, id: WorkspaceId, name: &str, now: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE workspaces SET name = $2, updated_at = $3 WHERE id = $1 AND deleted_at IS NULL")
            .bind(id)
            .bind(name)
            .bind(now)
    )?;
    Ok(rows == 1)
}

/// Writes what a workspace may hold and use; false when there is none. What it stores is [summed up](crate::storage::admit) anew,
/// and its documents are [counted](crate::storage::count_documents).
pub async fn set_quotas(
    tx: &mut Tx,
    id: WorkspaceId,
    quotas: WorkspaceQuotas,
    now: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE workspaces SET quotas = $2, updated_at = $3, stored_at_most = NULL, documents_at_most = NULL
             WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(Json(quotas))
        .bind(now)
    )?;
    Ok(rows == 1)
}

/// What a workspace is called; nothing, when it is deleted.
pub async fn name(tx: &mut Tx, id: WorkspaceId) -> Result<String> {
    let name: Option<String> = on!(tx, |c| sqlx::query_scalar("SELECT name FROM workspaces WHERE id = $1")
        .bind(id)
        .fetch_optional(c))?;
    Ok(name.unwrap_or_default())
}

/// Whether a workspace is an account's own.
pub async fn is_personal(tx: &mut Tx, id: WorkspaceId) -> Result<bool> {
    let is_personal: Option<bool> =
        on!(tx, |c| sqlx::query_scalar("SELECT is_personal FROM workspaces WHERE id = $1")
            .bind(id)
            .fetch_optional(c))?;
    Ok(is_personal.unwrap_or(false))
}

/// What a workspace may hold and use.
pub async fn quotas(tx: &mut Tx, id: WorkspaceId) -> Result<WorkspaceQuotas> {
    let quotas: Option<Option<Json<WorkspaceQuotas>>> =
        on!(tx, |c| sqlx::query_scalar("SELECT quotas FROM workspaces WHERE id = $1")
            .bind(id)
            .fetch_optional(c))?;
    Ok(quotas.flatten().map(|Json(quotas)| quotas).unwrap_or_default())
}

/// Ends a workspace: nobody finds it any more, and nothing is added to it. What it owns is left for [`delete`], which comes in a
/// transaction after this one, as it does for [accounts](super::accounts::close).
pub async fn close(tx: &mut Tx, id: WorkspaceId, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE workspaces SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL")
            .bind(id)
            .bind(now)
    )?;
    Ok(())
}

/// Deletes a workspace and everything that it owns. The row stays, empty of what tells what it was, until nothing points to
/// it. Documents become tombstones, whose generations may be purged from `now` on. What a request adds that had begun before is for
/// [`leftovers::purge`], and so is what is left of a workspace whose agents were asked often: the transaction is to be short.
pub async fn delete(tx: &mut Tx, id: WorkspaceId, now: Timestamp) -> Result<()> {
    locks::wait_for_references(tx, id).await?;
    execute!(
        tx,
        sqlx::query(
            "UPDATE workspaces SET deleted_at = COALESCE(deleted_at, $2), name = '', quotas = NULL,
                                   search_epoch = search_epoch + 1
             WHERE id = $1"
        )
        .bind(id)
        .bind(now)
    )?;
    documents::delete_all(tx, id, now).await?;
    remove_owned(tx, id).await.map(drop)
}

/// Removes what a deleted workspace owns besides documents. False while there are agents left, of whose runs this takes some.
async fn remove_owned(tx: &mut Tx, workspace: WorkspaceId) -> Result<bool> {
    for statement in OWNED {
        execute!(tx, sqlx::query(statement).bind(workspace))?;
    }
    if runs::purge_some_runs(tx, workspace).await? {
        return Ok(false);
    }
    execute!(tx, sqlx::query("DELETE FROM agents WHERE workspace_id = $1").bind(workspace))?;
    Ok(true)
}

/// Whether a workspace is there, within a transaction. Asked after something was added that points to it, it is so until
/// the transaction ends: either its deletion waits for this transaction and takes with it what was added, or this one has waited.
pub async fn is_active(tx: &mut Tx, id: WorkspaceId) -> Result<bool> {
    match tx {
        Tx::Postgres(tx) if tx.knows_active(id) => Ok(true),
        Tx::Sqlite(tx) if tx.knows_active(id) => Ok(true),
        // The last question of many a transaction.
        Tx::Postgres(tx) => {
            let active =
                concat!("SELECT ", pg_identity!(), " FROM workspaces WHERE id = $1 AND deleted_at IS NULL");
            let active = sqlx::query_as(active).bind(id);
            let identity = silence::answered(active.fetch_optional(&mut **tx)).await?;
            let is_active = identity.is_some();
            tx.note(identity);
            Ok(is_active)
        }
        Tx::Sqlite(tx) => {
            let active = sqlx::query_scalar("SELECT 1 FROM workspaces WHERE id = $1 AND deleted_at IS NULL");
            let found: Option<i64> = active.bind(id).fetch_optional(&mut **tx).await?;
            Ok(found.is_some())
        }
    }
}
