//! Documents. A document that was deleted is a tombstone until its generations are purged; nothing here but
//! [`tombstones`], [`drop_tombstone`] and [`uploads`] sees it.

mod active;
pub mod browse;
mod clearing;
pub mod content;
pub mod deletion;
pub mod duplicates;
pub mod files;
pub mod holdings;
mod ingestions;
mod listing;
pub mod metadata;
pub(super) mod select;
pub mod uploads;

#[cfg(test)]
pub(crate) use active::CHANGED;
pub use active::{ChangedDocument, active, changed_since};
pub(super) use clearing::{delete_all, delete_some};
pub use ingestions::{DocumentIngestion, ingestion, ingestions};
pub(crate) use listing::{CollectedRow, collections_column, read_page};
pub use listing::{DocumentDetails, find_collected, find_with_content, list, list_named};
#[cfg(test)]
pub(crate) use listing::{LIST_POSTGRES, LIST_SQLITE};
use select::select_document;

use std::collections::{BTreeSet, HashSet};

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, WorkspaceId},
    model::{
        Json,
        document::{Document, DocumentSource, DocumentType, PageRange, SplitterConfig},
        job::IngestionWarning,
        workspace::RowOwner,
    },
};
use serde_json::{Map, Value};
use sqlx::QueryBuilder;

use crate::{
    Db, Result, Tx,
    commit::{PgIdentity, pg_identity},
    execute,
    jobs::still_queued,
    on, receipts, silence,
};

/// A new document's row.
#[derive(Debug)]
pub struct NewDocumentRow<'a> {
    /// Its id.
    pub id: DocumentId,
    /// Whose it is.
    pub owner: RowOwner,
    /// The kind of source.
    pub r#type: DocumentType,
    /// Its name.
    pub name: &'a str,
    /// Anything its owner wants to say of it.
    pub description: &'a str,
    /// Where the source is; empty for inline content.
    pub url: &'a str,
    /// Inline content.
    pub content: Option<&'a str>,
    /// The owner's own values.
    pub metadata: Option<&'a Map<String, Value>>,
    /// How to cut it.
    pub splitter: Option<&'a SplitterConfig>,
    /// Pages to ingest.
    pub pages: PageRange,
    /// What opens the source, sealed.
    pub authorization_sealed: Option<&'a [u8]>,
}

macro_rules! insert_document {
    () => {
        "INSERT INTO documents (id, workspace_id, created_by, type, name, description, url, metadata, splitter, from_page, to_page,
                                authorization_sealed, revision, created_at, updated_at, stored_bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $13, COALESCE(OCTET_LENGTH(CAST($14 AS TEXT)), 0))"
    };
}

pub(super) use insert_document;

/// Binds what [`insert_document`] adds; the inline text is `$14`.
macro_rules! bind_document {
    ($query:expr, $document:expr, $now:expr) => {
        $query
            .bind($document.id)
            .bind($document.owner.workspace_id)
            .bind($document.owner.creator())
            .bind($document.r#type)
            .bind($document.name)
            .bind($document.description)
            .bind($document.url)
            .bind($document.metadata.map(lectern_shared::model::Json))
            .bind($document.splitter.map(lectern_shared::model::Json))
            .bind($document.pages.from.map(i64::from))
            .bind($document.pages.to.map(i64::from))
            .bind($document.authorization_sealed)
            .bind($now)
            .bind($document.content)
    };
}
pub(super) use bind_document;

/// Adds a document. It is not queued: see `lectern_jobs::enqueue`.
pub async fn insert(tx: &mut Tx, document: &NewDocumentRow<'_>, now: Timestamp) -> Result<()> {
    // In one round trip.
    let statement = match tx {
        Tx::Postgres(_) => concat!(
            "WITH inline AS (INSERT INTO document_contents (document_id, content) SELECT $1, $14 WHERE $14 IS NOT NULL) ",
            insert_document!()
        ),
        Tx::Sqlite(_) => concat!(
            insert_document!(),
            "; INSERT INTO document_contents (document_id, content) SELECT $1, $14 WHERE $14 IS NOT NULL"
        ),
    };
    execute!(tx, bind_document!(sqlx::query(statement), document, now))?;
    Ok(())
}

/// Notes on a document that it has changed for searches: at the epoch that [`bump_search_epoch`] has begun in the same transaction.
macro_rules! set_changed_epoch {
    () => {
        "changed_epoch = (SELECT search_epoch FROM workspaces WHERE workspaces.id = documents.workspace_id)"
    };
}
pub(super) use set_changed_epoch;

/// One of a workspace's documents.
pub async fn find(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<Document>> {
    Ok(on!(db, |c| sqlx::query_as(select_document!("d.id = $1 AND d.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// [`lock`], which also reads the document, and what an ingestion needs to know of it.
pub async fn find_locked(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<Option<(Document, DocumentSource)>> {
    #[derive(sqlx::FromRow)]
    struct LockedDocument {
        #[sqlx(flatten)]
        document: Document,
        #[sqlx(flatten)]
        source: DocumentSource,
    }
    // In a statement of its own: one that waits for the document's row reads its job as that was before it waited.
    if !lock(tx, workspace, id).await? {
        return Ok(None);
    }
    let found: Option<LockedDocument> = on!(tx, |c| sqlx::query_as(select_document!(
        ", d.blob_key, d.source_name, d.source_mime, d.authorization_sealed, d.source_state, c.content,
           CASE WHEN d.active_generation IS NOT NULL THEN d.search_index END AS active_index",
        "LEFT JOIN document_contents c ON c.document_id = d.id ",
        "d.id = $1 AND d.workspace_id = $2"
    ))
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?;
    Ok(found.map(|LockedDocument { document, source }| (document, source)))
}

/// Whether all of these documents, which may repeat, are the workspace's.
pub async fn has_all(db: &Db, workspace: WorkspaceId, ids: &[DocumentId]) -> Result<bool> {
    let ids: BTreeSet<DocumentId> = ids.iter().copied().collect();
    if ids.is_empty() {
        return Ok(true);
    }
    let found: i64 = on!(db, |c| async {
        let mut query =
            QueryBuilder::new("SELECT COUNT(*) FROM documents WHERE deleted_at IS NULL AND workspace_id = ");
        query.push_bind(workspace).push(" AND id IN (");
        let mut listed = query.separated(", ");
        for id in &ids {
            listed.push_bind(*id);
        }
        query.push(")");
        query.build_query_scalar().fetch_one(c).await
    })?;
    Ok(usize::try_from(found).is_ok_and(|found| found == ids.len()))
}

/// Those of these documents that are the workspace's and can be searched.
pub async fn searchable(db: &Db, workspace: WorkspaceId, ids: &[DocumentId]) -> Result<HashSet<DocumentId>> {
    let selected = "SELECT id FROM documents WHERE deleted_at IS NULL AND active_generation IS NOT NULL AND workspace_id = ";
    among(db, selected, workspace, ids).await
}

/// Those of these documents that are the workspace's and were not deleted.
pub async fn present(db: &Db, workspace: WorkspaceId, ids: &[DocumentId]) -> Result<HashSet<DocumentId>> {
    let selected = "SELECT id FROM documents WHERE deleted_at IS NULL AND workspace_id = ";
    among(db, selected, workspace, ids).await
}

/// Those of these documents that a statement selects, at whose end the workspace stands.
async fn among(
    db: &Db,
    selected: &'static str,
    workspace: WorkspaceId,
    ids: &[DocumentId],
) -> Result<HashSet<DocumentId>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let found: Vec<DocumentId> = on!(db, |c| async {
        let mut query = QueryBuilder::new(selected);
        query.push_bind(workspace).push(" AND id IN (");
        let mut listed = query.separated(", ");
        for id in ids {
            listed.push_bind(*id);
        }
        query.push(")");
        query.build_query_scalar().fetch_all(c).await
    })?;
    Ok(found.into_iter().collect())
}

/// What an ingestion needs to know of a document; none when it was deleted.
pub async fn source(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<DocumentSource>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT id, workspace_id, type, name, url, blob_key, source_name, source_mime, splitter, from_page, to_page,
                authorization_sealed, metadata, source_state,
                (SELECT content FROM document_contents WHERE document_contents.document_id = documents.id) AS content,
                CASE WHEN active_generation IS NOT NULL THEN search_index END AS active_index,
                (SELECT quotas FROM workspaces WHERE workspaces.id = workspace_id) AS quotas
         FROM documents WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c)
    })?)
}

/// Makes one of a workspace's documents what `document` says; its type and an upload stay as they are. It is not queued, what is cached of
/// it is not marked as out of date, and its content is left to [`content::set`]: the caller knows what changed. False when there is no
/// such document.
pub async fn update(tx: &mut Tx, document: &NewDocumentRow<'_>, now: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            concat!(
                "UPDATE documents SET name = $3, description = $4, url = $5, metadata = $6, splitter = $7,
                                      from_page = $8, to_page = $9, authorization_sealed = $10, updated_at = $11, ",
                set_changed_epoch!(),
                " WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL"
            )
        )
        .bind(document.id)
        .bind(document.owner.workspace_id)
        .bind(document.name)
        .bind(document.description)
        .bind(document.url)
        .bind(document.metadata.map(Json))
        .bind(document.splitter.map(Json))
        .bind(document.pages.from.map(i64::from))
        .bind(document.pages.to.map(i64::from))
        .bind(document.authorization_sealed)
        .bind(now)
    )?;
    Ok(rows == 1)
}

/// Has a document that was just queued be indexed again from the passages that are stored, so that its source is left alone.
/// `warnings` are what its last ingestion went past, which is still true. A job that a worker holds is left as it is.
pub async fn from_stored(tx: &mut Tx, id: DocumentId, warnings: &[IngestionWarning]) -> Result<()> {
    execute!(tx, sqlx::query(SET_FROM_STORED).bind(id).bind(Json(warnings)))?;
    Ok(())
}

pub(crate) const SET_FROM_STORED: &str = concat!(
    "UPDATE jobs SET from_stored = TRUE, warnings = $2 WHERE document_id = $1 AND ",
    still_queued!("")
);

macro_rules! select_locked {
    ($lock:literal) => {
        concat!(
            "SELECT revision FROM documents WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL ",
            $lock
        )
    };
}

/// Locks the workspace $2 and the document $1 in one round trip, and in the order of locks: rows are locked after they were joined, for which
/// the workspace's has to be had, and a document that was changed or deleted meanwhile is looked at anew. What a transaction has to know at
/// its end comes along.
const LOCK_BOTH: &str = concat!(
    "WITH own AS (UPDATE workspaces SET fair_at = fair_at WHERE id = $2 RETURNING id, deleted_at)
     SELECT own.deleted_at IS NULL AS is_active, ",
    pg_identity!(),
    " FROM own JOIN documents d ON d.workspace_id = own.id
     WHERE d.id = $1 AND d.deleted_at IS NULL FOR NO KEY UPDATE OF d"
);

/// The workspace of a document that is locked with it.
#[derive(sqlx::FromRow)]
struct LockedWorkspace {
    is_active: bool,
    #[sqlx(flatten)]
    identity: PgIdentity,
}

/// Keeps one of a workspace's documents as it is until the transaction ends; false when there is no such document. The workspace is
/// [locked](crate::locks::lock_workspace) with it.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: DocumentId) -> Result<bool> {
    let revision: Option<i64> = match tx {
        Tx::Postgres(c) if !c.knows_locked(workspace) => {
            let both = sqlx::query_as(LOCK_BOTH).bind(id).bind(workspace);
            let locked: Option<LockedWorkspace> = silence::answered(both.fetch_optional(&mut **c)).await?;
            let Some(LockedWorkspace { is_active, identity }) = locked else { return Ok(false) };
            c.note(Some(identity));
            c.note_locked(workspace);
            if is_active {
                c.note_active(workspace);
            }
            return Ok(true);
        }
        Tx::Postgres(c) => {
            // As an update would.
            let alone = sqlx::query_scalar(select_locked!("FOR NO KEY UPDATE")).bind(id).bind(workspace);
            silence::answered(alone.fetch_optional(&mut **c)).await?
        }
        Tx::Sqlite(c) => {
            sqlx::query_scalar(select_locked!("")).bind(id).bind(workspace).fetch_optional(&mut **c).await?
        }
    };
    Ok(revision.is_some())
}

/// Deletes one of a workspace's documents for every reader at once: links go, its job is cancelled, and its generations are
/// left for the sweeper, which may begin at `purge_at`. False when there is no such document.
pub async fn delete(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    now: Timestamp,
    purge_at: Timestamp,
) -> Result<bool> {
    bump_search_epoch(tx, workspace).await?;
    clearing::delete_one(tx, workspace, id, now, purge_at).await
}

/// Deleted documents of which no generation is left, and uploads that were given up or whose time is over; oldest first.
pub async fn tombstones(db: &Db, now: Timestamp, limit: u32) -> Result<Vec<DocumentId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM documents
         WHERE deleted_at <= $1
           AND NOT EXISTS (SELECT 1 FROM generations WHERE generations.document_id = documents.id)
         ORDER BY deleted_at LIMIT $2"
    )
    .bind(now)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Forgets a deleted document and everything small that hangs on it.
pub async fn drop_tombstone(tx: &mut Tx, id: DocumentId, now: Timestamp) -> Result<()> {
    // In the order of locks: the workspace first.
    execute!(
        tx,
        sqlx::query(
            "UPDATE workspaces SET purged_epoch = gone.changed_epoch
             FROM (SELECT workspace_id, changed_epoch FROM documents WHERE id = $1 AND deleted_at IS NOT NULL) AS gone
             WHERE workspaces.id = gone.workspace_id AND workspaces.purged_epoch < gone.changed_epoch"
        )
        .bind(id)
    )?;
    let rows =
        execute!(tx, sqlx::query("DELETE FROM documents WHERE id = $1 AND deleted_at IS NOT NULL").bind(id))?;
    if rows == 1 {
        execute!(tx, sqlx::query("DELETE FROM vectors WHERE document_id = $1").bind(id))?;
        execute!(tx, sqlx::query("DELETE FROM jobs WHERE document_id = $1").bind(id))?;
        receipts::close(tx, id, now).await?;
    }
    Ok(())
}

/// Marks what is cached of a workspace's searchable documents as out of date; the statement that changes a document notes on it that it is
/// this one (`set_changed_epoch!`). Taken first in a transaction: workspaces, then documents, then jobs is the order of locks everywhere.
pub async fn bump_search_epoch(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    begin_search_epoch(tx, workspace, false).await
}

/// [`bump_search_epoch`], with which what the workspace stores may be forgotten, so that it is [summed up](crate::storage::admit) anew.
pub(super) async fn begin_search_epoch(tx: &mut Tx, workspace: WorkspaceId, forgets_sum: bool) -> Result<()> {
    /// Another epoch of the workspace $1, whose sum is forgotten if $2 is true.
    macro_rules! begin_epoch {
        () => {
            "UPDATE workspaces SET search_epoch = search_epoch + 1, stored_at_most = CASE WHEN $2 THEN NULL ELSE stored_at_most END
             WHERE id = $1"
        };
    }
    match tx {
        Tx::Postgres(tx) => {
            let bump = sqlx::query_as(concat!(begin_epoch!(), " RETURNING ", pg_identity!()));
            let bump = bump.bind(workspace).bind(forgets_sum);
            let bumped = silence::answered(bump.fetch_optional(&mut **tx)).await?;
            if bumped.is_some() {
                tx.note_locked(workspace);
            }
            tx.note(bumped);
        }
        Tx::Sqlite(tx) => {
            sqlx::query(begin_epoch!()).bind(workspace).bind(forgets_sum).execute(&mut **tx).await?;
        }
    }
    Ok(())
}

/// [`bump_search_epoch`] for one document that nothing else is written of.
pub(super) async fn touch(tx: &mut Tx, workspace: WorkspaceId, document: DocumentId) -> Result<()> {
    bump_search_epoch(tx, workspace).await?;
    execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET ",
            set_changed_epoch!(),
            " WHERE id = $1 AND workspace_id = $2"
        ))
        .bind(document)
        .bind(workspace)
    )?;
    Ok(())
}

/// The number that rises whenever what a workspace can search changes.
pub async fn search_epoch(db: &Db, workspace: WorkspaceId) -> Result<i64> {
    Ok(on!(db, |c| sqlx::query_scalar("SELECT search_epoch FROM workspaces WHERE id = $1")
        .bind(workspace)
        .fetch_one(c))?)
}
