//! A workspace's documents, page by page.

use lectern_shared::{
    ids::{CollectionId, DocumentId, WorkspaceId},
    model::document::Document,
};
use uuid::Uuid;

use super::select_document;
use crate::{Db, Result, ids_from_hex, silence};

/// [`list`] by a range that begins with the workspace, and in its order. Asked for by `=`, PostgreSQL takes documents in the order of ids, or
/// merges them with jobs in that order, and goes past all of others that are newer: it does not know that there are any in between.
macro_rules! select_page {
    ($collections:literal) => {
        select_document!(
            $collections,
            "",
            "d.workspace_id >= $1 AND (d.workspace_id, d.id) < ($1, $2) ORDER BY d.workspace_id DESC, d.id DESC LIMIT $3"
        )
    };
}

pub(crate) const LIST_POSTGRES: &str = select_page!(
    ", ARRAY(SELECT m.collection_id FROM collection_documents m
             WHERE m.document_id = d.id AND m.workspace_id = d.workspace_id) AS collections"
);

pub(crate) const LIST_SQLITE: &str = select_page!(
    ", (SELECT group_concat(hex(m.collection_id), '') FROM collection_documents m
        WHERE m.document_id = d.id AND m.workspace_id = d.workspace_id) AS collections"
);

/// A document, and the collections that it is in, the oldest first.
pub type CollectedDocument = (Document, Vec<CollectionId>);

/// A [`CollectedDocument`] as it is read; `C` has the collections, in the form of the database.
#[derive(sqlx::FromRow)]
struct CollectedRow<C> {
    #[sqlx(flatten)]
    document: Document,
    collections: C,
}

impl<C> CollectedRow<C> {
    /// With the collections that `read` finds in the form of the database, in which they have no order.
    fn read(self, read: impl FnOnce(C) -> Result<Vec<CollectionId>>) -> Result<CollectedDocument> {
        let mut collections = read(self.collections)?;
        collections.sort_unstable();
        Ok((self.document, collections))
    }
}

/// At most `limit` of a workspace's documents older than `before`, newest first. Their collections come in the same statement: a question of
/// its own for them takes as long as a good part of the page.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    before: DocumentId,
    limit: u32,
) -> Result<Vec<CollectedDocument>> {
    match db {
        Db::Postgres { pool, .. } => {
            let page = sqlx::query_as(LIST_POSTGRES).bind(workspace).bind(before).bind(i64::from(limit));
            let page: Vec<CollectedRow<Vec<Uuid>>> = silence::answered(page.fetch_all(pool)).await?;
            let ids = |ids: Vec<Uuid>| Ok(ids.into_iter().map(CollectionId::from).collect());
            page.into_iter().map(|row| row.read(ids)).collect()
        }
        Db::Sqlite { readers, .. } => {
            let page = sqlx::query_as(LIST_SQLITE).bind(workspace).bind(before).bind(i64::from(limit));
            let page: Vec<CollectedRow<Option<String>>> = page.fetch_all(readers).await?;
            let ids = |digits: Option<String>| ids_from_hex(&digits.unwrap_or_default());
            page.into_iter().map(|row| row.read(ids)).collect()
        }
    }
}
