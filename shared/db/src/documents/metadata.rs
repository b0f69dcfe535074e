//! Metadata of searchable documents, as JSON text: together it can be more than should be in memory at once; and what is said of
//! documents that have become files of a collection.

use futures::TryStreamExt;
use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, WorkspaceId},
    model::{Json, document::SplitterConfig},
};
use serde_json::{Map, Value};
use sqlx::{QueryBuilder, Row};

use crate::{Db, Result, Tx, documents::set_changed_epoch, execute, on};

/// What is said of a document, and how it is cut.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct DocumentDescription {
    /// The document.
    pub id: DocumentId,
    /// The owner's own values.
    pub metadata: Option<Json<Map<String, Value>>>,
    /// How to cut it.
    pub splitter: Option<Json<SplitterConfig>>,
}

/// How many of a workspace's searchable documents have metadata, and how many bytes it has together.
pub async fn size(db: &Db, workspace: WorkspaceId) -> Result<(u64, u64)> {
    let (count, bytes): (i64, i64) = on!(db, |c| {
        sqlx::query_as(
            "SELECT COUNT(*), CAST(COALESCE(SUM(octet_length(metadata)), 0) AS BIGINT) FROM documents
             WHERE workspace_id = $1 AND deleted_at IS NULL AND active_generation IS NOT NULL AND metadata IS NOT NULL",
        )
        .bind(workspace)
        .fetch_one(c)
    })?;
    Ok((u64::try_from(count).unwrap_or(0), u64::try_from(bytes).unwrap_or(0)))
}

/// Gives the metadata of those of a workspace's searchable documents that have some to `take`, by their ids, until it refuses one.
pub async fn each(
    db: &Db,
    workspace: WorkspaceId,
    mut take: impl FnMut(DocumentId, &str) -> bool + Send,
) -> Result<()> {
    on!(db, |c| async {
        let mut rows = sqlx::query(
            "SELECT id, metadata FROM documents
             WHERE workspace_id = $1 AND deleted_at IS NULL AND active_generation IS NOT NULL AND metadata IS NOT NULL
             ORDER BY id",
        )
        .bind(workspace)
        .fetch(c);
        while let Some(row) = rows.try_next().await? {
            if !take(row.try_get(0)?, row.try_get(1)?) {
                break;
            }
        }
        Ok::<(), sqlx::Error>(())
    })?;
    Ok(())
}

/// What a workspace has had purged, and the metadata of its documents that have changed, none of those that cannot be searched; both as of one
/// moment, as for the [documents](super::changed_since) themselves.
pub(crate) const CHANGED: &str = "SELECT w.purged_epoch, d.id,
            CASE WHEN d.deleted_at IS NULL AND d.active_generation IS NOT NULL THEN d.metadata END AS metadata
     FROM workspaces w LEFT JOIN documents d ON d.workspace_id = w.id AND d.changed_epoch > $2
     WHERE w.id = $1 ORDER BY d.id LIMIT $3";

/// The metadata of a workspace's documents that have changed since a search epoch, by their ids; none of those that have none any more. None
/// at all when too much is gone to tell, and when more than `limit` have changed.
pub async fn changed_since(
    db: &Db,
    workspace: WorkspaceId,
    epoch: i64,
    limit: u32,
) -> Result<Option<Vec<(DocumentId, Option<String>)>>> {
    let rows: Vec<(i64, Option<DocumentId>, Option<String>)> = on!(db, |c| sqlx::query_as(CHANGED)
        .bind(workspace)
        .bind(epoch)
        .bind(i64::from(limit) + 1)
        .fetch_all(c))?;
    let is_told = rows.len() <= limit as usize && rows.first().is_some_and(|(purged, ..)| *purged <= epoch);
    let changed = |(_, id, metadata): (i64, Option<DocumentId>, Option<String>)| Some((id?, metadata));
    Ok(is_told.then(|| rows.into_iter().filter_map(changed).collect()))
}

/// The metadata of those of these documents that are the workspace's and searchable, and have some; in no order.
pub async fn of(
    db: &Db,
    workspace: WorkspaceId,
    documents: &[DocumentId],
) -> Result<Vec<(DocumentId, String)>> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT id, metadata FROM documents
             WHERE deleted_at IS NULL AND active_generation IS NOT NULL AND metadata IS NOT NULL AND workspace_id = ",
        );
        query.push_bind(workspace).push(" AND id IN (");
        let mut list = query.separated(", ");
        for id in documents {
            list.push_bind(id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?)
}

/// What is said of those of these documents that are the workspace's, in no order. The workspace must be
/// [locked](crate::locks::lock_workspace).
pub async fn described(
    tx: &mut Tx,
    workspace: WorkspaceId,
    documents: &[DocumentId],
) -> Result<Vec<DocumentDescription>> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(tx, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT id, metadata, splitter FROM documents WHERE deleted_at IS NULL AND workspace_id = ",
        );
        query.push_bind(workspace).push(" AND id IN (");
        let mut listed = query.separated(", ");
        for id in documents {
            listed.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?)
}

/// Writes what is said of one of a workspace's documents, and nothing else of it. It is not queued, and what is cached of it is not
/// marked as out of date: the caller knows what changed. False when there is no such document.
pub async fn describe(
    tx: &mut Tx,
    workspace: WorkspaceId,
    description: &DocumentDescription,
    now: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET metadata = $3, splitter = $4, updated_at = $5, ",
            set_changed_epoch!(),
            " WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL"
        ))
        .bind(description.id)
        .bind(workspace)
        .bind(&description.metadata)
        .bind(&description.splitter)
        .bind(now)
    )?;
    Ok(rows == 1)
}

/// By what a document may be called outside.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct NamedDocument {
    /// The document.
    pub id: DocumentId,
    /// Its name.
    pub name: String,
    /// The owner's own values.
    pub metadata: Option<Json<Map<String, Value>>>,
}

/// At most `limit` of a workspace's documents behind `after`, by their ids.
pub async fn named(
    db: &Db,
    workspace: WorkspaceId,
    after: DocumentId,
    limit: u32,
) -> Result<Vec<NamedDocument>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT id, name, metadata FROM documents WHERE workspace_id = $1 AND deleted_at IS NULL AND id > $2 ORDER BY id LIMIT $3"
    )
    .bind(workspace)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}
