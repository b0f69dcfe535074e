//! Sources whose documents are kept in step with what is there, what is known of their items, and their runs. In the order of locks:
//! the workspace, the source, its run, documents, jobs.

pub mod items;
pub mod runs;

use lectern_shared::{
    clock::Timestamp,
    ids::{SourceId, WorkspaceId},
    model::{
        Json,
        sync::{SyncConfig, SyncSource},
    },
};

use crate::{Db, Result, Tx, execute, on};

macro_rules! select_source {
    ($where:literal) => {
        concat!(
            "SELECT s.id, s.workspace_id, s.created_by, s.name, s.collection_id, s.config, s.secret_sealed, s.every_seconds,
                    s.delete_limit, s.next_run_at, s.etag, s.last_modified, s.created_at, s.updated_at,
                    (SELECT COUNT(*) FROM source_items i JOIN documents d ON d.id = i.document_id
                     WHERE i.source_id = s.id AND d.deleted_at IS NULL) AS documents
             FROM sources s WHERE ",
            $where
        )
    };
}

/// Adds a source.
pub async fn insert(tx: &mut Tx, source: &SyncSource) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO sources (id, workspace_id, created_by, name, type, collection_id, config, secret_sealed, every_seconds,
                                  delete_limit, next_run_at, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
        )
        .bind(source.id)
        .bind(source.owner.workspace_id)
        .bind(source.owner.creator())
        .bind(source.name.as_str())
        .bind(source.config.0.source_type())
        .bind(source.collection_id)
        .bind(&source.config)
        .bind(source.secret_sealed.as_deref())
        .bind(source.every_seconds)
        .bind(source.delete_limit)
        .bind(source.next_run_at)
        .bind(source.created_at)
        .bind(source.updated_at)
    )?;
    Ok(())
}

/// One of a workspace's sources.
pub async fn find(db: &Db, workspace: WorkspaceId, id: SourceId) -> Result<Option<SyncSource>> {
    Ok(on!(db, |c| sqlx::query_as(select_source!("s.id = $1 AND s.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// [`find`] within a transaction; nobody else changes it, or begins a run of it, until that ends.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: SourceId) -> Result<Option<SyncSource>> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE sources SET updated_at = updated_at WHERE id = $1 AND workspace_id = $2")
            .bind(id)
            .bind(workspace)
    )?;
    if rows == 0 {
        return Ok(None);
    }
    Ok(on!(tx, |c| sqlx::query_as(select_source!("s.id = $1 AND s.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// How one of a workspace's sources is read. It stays so while the workspace is [locked](crate::locks::lock_workspace).
pub async fn config(tx: &mut Tx, workspace: WorkspaceId, id: SourceId) -> Result<Option<Json<SyncConfig>>> {
    Ok(on!(tx, |c| sqlx::query_scalar("SELECT config FROM sources WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's sources older than `before`, newest first.
pub async fn list(db: &Db, workspace: WorkspaceId, before: SourceId, limit: u32) -> Result<Vec<SyncSource>> {
    Ok(on!(db, |c| sqlx::query_as(select_source!(
        "s.workspace_id = $1 AND s.id < $2 ORDER BY s.id DESC LIMIT $3"
    ))
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// How many sources a workspace has.
pub async fn count(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64> {
    let count: i64 = on!(tx, |c| sqlx::query_scalar("SELECT COUNT(*) FROM sources WHERE workspace_id = $1")
        .bind(workspace)
        .fetch_one(c))?;
    Ok(count.unsigned_abs())
}

/// Makes a source what it is said to be.
pub async fn update(tx: &mut Tx, source: &SyncSource) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE sources SET name = $3, collection_id = $4, config = $5, secret_sealed = $6, every_seconds = $7, delete_limit = $8,
                                next_run_at = $9, etag = $10, last_modified = $11, updated_at = $12
             WHERE id = $1 AND workspace_id = $2"
        )
        .bind(source.id)
        .bind(source.owner.workspace_id)
        .bind(source.name.as_str())
        .bind(source.collection_id)
        .bind(&source.config)
        .bind(source.secret_sealed.as_deref())
        .bind(source.every_seconds)
        .bind(source.delete_limit)
        .bind(source.next_run_at)
        .bind(source.etag.as_deref())
        .bind(source.last_modified.as_deref())
        .bind(source.updated_at)
    )?;
    Ok(())
}

/// Notes by what the feed of a source is known that was read to its end.
pub async fn set_validators(
    tx: &mut Tx,
    id: SourceId,
    etag: Option<&str>,
    last_modified: Option<&str>,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE sources SET etag = $2, last_modified = $3 WHERE id = $1")
            .bind(id)
            .bind(etag)
            .bind(last_modified)
    )?;
    Ok(())
}

/// Deletes one of a workspace's sources, with its runs and what is known of its items; its documents stay. False when there is none.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: SourceId) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM sources WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(rows == 1)
}

/// A source whose time to run has come.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct DueSource {
    /// The source.
    pub id: SourceId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Seconds between its runs.
    pub every_seconds: i64,
    /// When it should have run.
    pub next_run_at: Timestamp,
}

/// Sources whose time to run has come, those that wait longest first.
pub async fn due(db: &Db, now: Timestamp, limit: u32) -> Result<Vec<DueSource>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, workspace_id, every_seconds, next_run_at FROM sources
         WHERE next_run_at <= $1 AND every_seconds IS NOT NULL ORDER BY next_run_at LIMIT $2"
    )
    .bind(now)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Sets when a source runs again; false when another process was quicker.
pub async fn reschedule(tx: &mut Tx, due: &DueSource, next: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE sources SET next_run_at = $3 WHERE id = $1 AND next_run_at = $2")
            .bind(due.id)
            .bind(due.next_run_at)
            .bind(next)
    )?;
    Ok(rows == 1)
}
