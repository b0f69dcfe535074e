//! Uploads. A file can be stored before its document is, and a crash must leave no file that nobody knows of. So an upload
//! begins with a tombstone that is due later: the sweeper removes it, and what was stored under its id, unless the upload
//! makes a document of it before. One that takes the place of a document's file begins with a row of the files that no document names,
//! which are removed in the same way; and so does what it took the place of.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, WorkspaceId},
    model::{
        Json,
        document::{DocumentType, StoredFile},
    },
};

use super::set_changed_epoch;
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

/// Begins an upload that is to take the place of a document's file: what is stored under the key is removed after `until`, unless [`replace`]
/// comes before.
pub async fn reserve_key(tx: &mut Tx, key: &str, until: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query("INSERT INTO loose_files (blob_key, purge_at) VALUES ($1, $2)").bind(key).bind(until)
    )?;
    Ok(())
}

/// What takes the place of a document's file.
#[derive(Debug)]
pub struct FileReplacement<'a> {
    /// What the document is from then on.
    pub r#type: DocumentType,
    /// How it is called from then on; none when its name stays.
    pub name: Option<&'a str>,
    /// Where people find it from then on; none when that stays.
    pub url: Option<&'a str>,
    /// The file, whose key was [reserved](reserve_key).
    pub file: BlobFile<'a>,
}

/// Gives one of a workspace's documents, which is [locked](super::lock), another file in place of the one that it was made of, which may be
/// removed once this is committed. It is not queued. False when there is no such document, or the upload's time is over: then nothing of the
/// transaction may stay.
pub async fn replace(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    new: &FileReplacement<'_>,
    now: Timestamp,
) -> Result<bool> {
    let FileReplacement { r#type, name, url, file } = new;
    let taken = execute!(
        tx,
        sqlx::query("DELETE FROM loose_files WHERE blob_key = $1 AND purge_at > $2").bind(file.key).bind(now)
    )?;
    let left = execute!(
        tx,
        sqlx::query(
            "INSERT INTO loose_files (blob_key, purge_at)
             SELECT blob_key, CAST($3 AS BIGINT) FROM documents
             WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL AND blob_key IS NOT NULL"
        )
        .bind(id)
        .bind(workspace)
        .bind(now)
    )?;
    if taken == 0 || left == 0 {
        return Ok(false);
    }
    execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET type = $3, name = COALESCE($4, name), blob_key = $5, source_sha256 = $6, source_bytes = $7,
                                  stored_bytes = $7, source_name = $8, source_mime = $9, updated_at = $10, url = COALESCE($11, url), ",
            set_changed_epoch!(),
            " WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL"
        ))
        .bind(id)
        .bind(workspace)
        .bind(*r#type)
        .bind(*name)
        .bind(file.key)
        .bind(file.sha256.as_slice())
        .bind(i64::try_from(file.bytes).unwrap_or(i64::MAX))
        .bind(file.name)
        .bind(file.mime)
        .bind(now)
        .bind(*url)
    )?;
    Ok(true)
}

/// Where a document's file is from then on.
#[derive(Debug, Clone, Copy, Default)]
pub struct FilePlace<'a> {
    /// How the document is called; none when its name stays.
    pub name: Option<&'a str>,
    /// How the file is called; none when it has no usable name.
    pub file_name: Option<&'a str>,
    /// Where people find it; none when that stays.
    pub url: Option<&'a str>,
}

/// Says that the file of one of a workspace's documents, which is [locked](super::lock), is elsewhere. It is not queued.
pub async fn relocate(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    place: FilePlace<'_>,
    now: Timestamp,
) -> Result<()> {
    let FilePlace { name, file_name, url } = place;
    execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET name = COALESCE($3, name), source_name = $4, updated_at = $5, url = COALESCE($6, url), ",
            set_changed_epoch!(),
            " WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL"
        ))
        .bind(id)
        .bind(workspace)
        .bind(name)
        .bind(file_name)
        .bind(now)
        .bind(url)
    )?;
    Ok(())
}

/// Gives an upload up that was to take the place of a document's file: what is stored under the key may be removed at once. Nothing happens
/// when it took that place.
pub async fn give_up_key(tx: &mut Tx, key: &str, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE loose_files SET purge_at = $2 WHERE blob_key = $1 AND purge_at > $2")
            .bind(key)
            .bind(now)
    )?;
    Ok(())
}

/// The keys of files that no document names and whose time is over; oldest first.
pub async fn loose(db: &Db, now: Timestamp, limit: u32) -> Result<Vec<String>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT blob_key FROM loose_files WHERE purge_at <= $1 ORDER BY purge_at LIMIT $2"
    )
    .bind(now)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Forgets a file that no document names, and that is not there any more.
pub async fn forget_loose(tx: &mut Tx, key: &str) -> Result<()> {
    execute!(tx, sqlx::query("DELETE FROM loose_files WHERE blob_key = $1").bind(key))?;
    Ok(())
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

/// The file of the document $1 of the workspace $2.
const FIND: &str =
    "SELECT type, name, blob_key, source_sha256, source_bytes, source_name, source_mime FROM documents
     WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL AND blob_key IS NOT NULL";

/// The file of one of a workspace's documents; none when there is no such document, or it was not uploaded.
pub async fn find(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<StoredFile>> {
    Ok(on!(db, |c| sqlx::query_as(FIND).bind(id).bind(workspace).fetch_optional(c))?)
}

/// [`find`] for a document that the transaction has [locked](super::lock), or whose workspace it has.
pub async fn find_locked(tx: &mut Tx, workspace: WorkspaceId, id: DocumentId) -> Result<Option<StoredFile>> {
    Ok(on!(tx, |c| sqlx::query_as(FIND).bind(id).bind(workspace).fetch_optional(c))?)
}
