//! Uploads. A file can be stored before its document is, and a crash must leave no file that nobody knows of. So an upload
//! begins with a tombstone that is due later: the sweeper removes it, and what was stored under its id, unless the upload
//! makes a document of it before.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, WorkspaceId},
    model::{
        Json,
        document::{DocumentType, StoredFile},
    },
};

use crate::{Db, Result, Tx, documents::NewDocumentRow, execute, on, silence};

/// A file in the blob store.
#[derive(Debug, Clone, Copy)]
pub struct BlobFile<'a> {
    /// Where it is.
    pub key: &'a str,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of it.
    pub sha256: &'a [u8; 32],
    /// How it was called; none when it had no usable name.
    pub name: Option<&'a str>,
    /// Its media type, as it was told.
    pub mime: &'a str,
}

/// What is stored of an upload is purged after so long, unless it has become a document. Well after the longest upload, so that
/// none is purged that is just being completed.
pub const RESERVED_FOR: Duration = Duration::from_hours(2);

/// The row that an upload begins with.
macro_rules! reservation {
    ($workspace:ident, $id:ident, $now:ident, $until:ident) => {
        sqlx::query(
            "INSERT INTO documents (id, workspace_id, type, name, description, url, revision, created_at, updated_at,
                                    deleted_at)
             VALUES ($1, $2, $3, '', '', '', 0, $4, $4, $5)",
        )
        .bind($id)
        .bind($workspace)
        .bind(DocumentType::Txt)
        .bind($now)
        .bind($until)
    };
}

/// Begins an upload: whatever is stored under the document's id is purged after `until`, unless [`complete`] comes before.
pub async fn reserve(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    now: Timestamp,
    until: Timestamp,
) -> Result<()> {
    execute!(tx, reservation!(workspace, id, now, until))?;
    Ok(())
}

/// [`reserve`] in a transaction of its own, which is one round trip on PostgreSQL: when its answer is lost, nothing is stored under the id, and
/// whatever became of it is purged.
pub async fn reserve_alone(
    db: &Db,
    workspace: WorkspaceId,
    id: DocumentId,
    now: Timestamp,
    until: Timestamp,
) -> Result<()> {
    match db {
        Db::Postgres { pool, .. } => {
            silence::answered(reservation!(workspace, id, now, until).execute(pool)).await?;
            Ok(())
        }
        Db::Sqlite { .. } => {
            let mut tx = db.begin().await?;
            reserve(&mut tx, workspace, id, now, until).await?;
            tx.commit().await
        }
    }
}

/// Makes a document of an upload, created when that began: lists go by ids, and the id is of that time. It is not queued: see
/// `lectern_jobs::enqueue`. False when the upload's time is over. Nobody else locks what is no document yet, so it may come before the
/// workspace's row.
pub async fn complete(
    tx: &mut Tx,
    document: &NewDocumentRow<'_>,
    file: &BlobFile<'_>,
    now: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE documents SET type = $3, name = $4, description = $5, metadata = $6, splitter = $7,
                                  from_page = $8, to_page = $9, blob_key = $10, source_sha256 = $11,
                                  source_bytes = $12, stored_bytes = $12, updated_at = $13, deleted_at = NULL,
                                  source_name = $14, source_mime = $15, created_by = $16, url = $17
             WHERE id = $1 AND workspace_id = $2 AND deleted_at > $13"
        )
        .bind(document.id)
        .bind(document.owner.workspace_id)
        .bind(document.r#type)
        .bind(document.name)
        .bind(document.description)
        .bind(document.metadata.map(Json))
        .bind(document.splitter.map(Json))
        .bind(document.pages.from.map(i64::from))
        .bind(document.pages.to.map(i64::from))
        .bind(file.key)
        .bind(file.sha256.as_slice())
        .bind(i64::try_from(file.bytes).unwrap_or(i64::MAX))
        .bind(now)
        .bind(file.name)
        .bind(file.mime)
        .bind(document.owner.creator())
        .bind(document.url)
    )?;
    Ok(rows == 1)
}

/// Gives one of a workspace's documents, which is [locked](super::lock), another file in place of the one that it was made of. It is not
/// queued. Returns the key of the former file, which is to be removed after the commit; none when there is no such document.
pub async fn replace(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    r#type: DocumentType,
    file: &BlobFile<'_>,
    now: Timestamp,
) -> Result<Option<String>> {
    let former: Option<Option<String>> = on!(tx, |c| sqlx::query_scalar(
        "SELECT blob_key FROM documents WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?;
    let Some(former) = former.flatten() else { return Ok(None) };
    execute!(
        tx,
        sqlx::query(
            "UPDATE documents SET type = $3, blob_key = $4, source_sha256 = $5, source_bytes = $6, stored_bytes = $6,
                                  source_name = $7, source_mime = $8, updated_at = $9
             WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(workspace)
        .bind(r#type)
        .bind(file.key)
        .bind(file.sha256.as_slice())
        .bind(i64::try_from(file.bytes).unwrap_or(i64::MAX))
        .bind(file.name)
        .bind(file.mime)
        .bind(now)
    )?;
    Ok(Some(former))
}

/// Gives an upload up: what is stored of it may be purged at once. Nothing happens when it was completed.
pub async fn give_up(tx: &mut Tx, id: DocumentId, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE documents SET deleted_at = $2 WHERE id = $1 AND deleted_at > $2")
            .bind(id)
            .bind(now)
    )?;
    Ok(())
}

/// The file of one of a workspace's documents; none when there is no such document, or it was not uploaded.
pub async fn find(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<StoredFile>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT type, name, blob_key, source_sha256, source_bytes, source_name, source_mime FROM documents
         WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL AND blob_key IS NOT NULL"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?)
}
