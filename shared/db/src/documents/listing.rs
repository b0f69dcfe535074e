//! A workspace's documents with the collections that they are in: page by page, and one of them.

use lectern_shared::{
    ids::{CollectionId, DocumentId, WorkspaceId},
    model::document::Document,
};
use uuid::Uuid;

use super::select_document;
use crate::{
    Db, Result, Tx,
    commit::{PgIdentity, pg_identity},
    ids_from_hex, silence,
};

/// The column of a document's collections, in a form that one row has room for.
macro_rules! collections {
    (postgres) => {
        ", ARRAY(SELECT m.collection_id FROM collection_documents m
                 WHERE m.document_id = d.id AND m.workspace_id = d.workspace_id) AS collections"
    };
    (sqlite) => {
        ", (SELECT group_concat(hex(m.collection_id), '') FROM collection_documents m
            WHERE m.document_id = d.id AND m.workspace_id = d.workspace_id) AS collections"
    };
}

/// [`list`] by a range that begins with the workspace, and in its order. Asked for by `=`, PostgreSQL takes documents in the order of ids, or
/// merges them with jobs in that order, and goes past all of others that are newer: it does not know that there are any in between.
macro_rules! select_page {
    ($collections:expr) => {
        select_document!(
            $collections,
            "",
            "d.workspace_id >= $1 AND (d.workspace_id, d.id) < ($1, $2) ORDER BY d.workspace_id DESC, d.id DESC LIMIT $3"
        )
    };
}

pub(crate) const LIST_POSTGRES: &str = select_page!(collections!(postgres));
pub(crate) const LIST_SQLITE: &str = select_page!(collections!(sqlite));

const FIND_POSTGRES: &str = select_document!(
    concat!(collections!(postgres), ", ", pg_identity!()),
    "",
    "d.id = $1 AND d.workspace_id = $2"
);
const FIND_SQLITE: &str = select_document!(collections!(sqlite), "", "d.id = $1 AND d.workspace_id = $2");

/// A document, and the collections that it is in, the oldest first.
pub type CollectedDocument = (Document, Vec<CollectionId>);

/// A [`CollectedDocument`] as it is read; `C` has the collections, in the form of the database.
#[derive(sqlx::FromRow)]
struct CollectedRow<C> {
    #[sqlx(flatten)]
    document: Document,
    collections: C,
}

/// The collections of a row have no order.
fn in_order(document: Document, mut collections: Vec<CollectionId>) -> CollectedDocument {
    collections.sort_unstable();
    (document, collections)
}

impl CollectedRow<Vec<Uuid>> {
    fn read(self) -> CollectedDocument {
        in_order(self.document, self.collections.into_iter().map(CollectionId::from).collect())
    }
}

impl CollectedRow<Option<String>> {
    fn read(self) -> Result<CollectedDocument> {
        Ok(in_order(self.document, ids_from_hex(&self.collections.unwrap_or_default())?))
    }
}

/// A document, and what PostgreSQL knows the transaction by that reads it.
#[derive(sqlx::FromRow)]
struct LastRead {
    #[sqlx(flatten)]
    row: CollectedRow<Vec<Uuid>>,
    #[sqlx(flatten)]
    identity: PgIdentity,
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
            Ok(page.into_iter().map(CollectedRow::<Vec<Uuid>>::read).collect())
        }
        Db::Sqlite { readers, .. } => {
            let page = sqlx::query_as(LIST_SQLITE).bind(workspace).bind(before).bind(i64::from(limit));
            let page: Vec<CollectedRow<Option<String>>> = page.fetch_all(readers).await?;
            page.into_iter().map(CollectedRow::<Option<String>>::read).collect()
        }
    }
}

/// One of a workspace's documents as a transaction leaves it, which is committed next: on PostgreSQL what has to be known of it for that comes
/// along.
pub async fn find_collected(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<Option<CollectedDocument>> {
    match tx {
        Tx::Postgres(tx) => {
            let read = sqlx::query_as(FIND_POSTGRES).bind(id).bind(workspace);
            let found: Option<LastRead> = silence::answered(read.fetch_optional(&mut **tx)).await?;
            let Some(LastRead { row, identity }) = found else { return Ok(None) };
            tx.note(Some(identity));
            Ok(Some(row.read()))
        }
        Tx::Sqlite(tx) => {
            let read = sqlx::query_as(FIND_SQLITE).bind(id).bind(workspace);
            let found: Option<CollectedRow<Option<String>>> = read.fetch_optional(&mut **tx).await?;
            found.map(CollectedRow::<Option<String>>::read).transpose()
        }
    }
}
