//! A workspace's documents with the collections that they are in: page by page, and one of them. The collections come in the same statement: a
//! question of its own for them takes as long as a good part of a page.

use lectern_shared::{
    ids::{CollectionId, DocumentId, WorkspaceId},
    model::document::Document,
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{browse::and_has, select::select_document};
use crate::{
    Db, Result, Tx,
    commit::{PgIdentity, pg_identity},
    ids_from_hex, silence,
};

/// The column of the collections of the document `d`, in a form that one row has room for.
macro_rules! collections_column {
    (postgres) => {
        ", ARRAY(SELECT m.collection_id FROM collection_documents m
                 WHERE m.document_id = d.id AND m.workspace_id = d.workspace_id) AS collections"
    };
    (sqlite) => {
        ", (SELECT group_concat(hex(m.collection_id), '') FROM collection_documents m
            WHERE m.document_id = d.id AND m.workspace_id = d.workspace_id) AS collections"
    };
}
pub(crate) use collections_column;

/// [`list`] by a range that begins with the workspace, and in its order. Asked for by `=`, PostgreSQL takes documents in the order of ids, or
/// merges them with jobs in that order, and goes past all of others that are newer: it does not know that there are any in between.
///
/// What is asked for stands in selections of its own, where PostgreSQL does not see it when it plans. It takes a pair that is less than another
/// one for a first value that is less, of which the range has none: a plan for these very values looks so cheap to it that it makes one for each
/// request, which takes twice as long as the page.
pub(crate) const LIST_POSTGRES: &str = select_document!(
    collections_column!(postgres),
    "",
    "d.workspace_id >= (SELECT CAST($1 AS UUID)) AND d.workspace_id <= (SELECT CAST($1 AS UUID))
     AND (d.workspace_id, d.id) < ((SELECT CAST($1 AS UUID)), $2)
     ORDER BY d.workspace_id DESC, d.id DESC LIMIT (SELECT CAST($3 AS BIGINT))"
);
pub(crate) const LIST_SQLITE: &str = select_document!(
    collections_column!(sqlite),
    "",
    "d.workspace_id >= $1 AND (d.workspace_id, d.id) < ($1, $2) ORDER BY d.workspace_id DESC, d.id DESC LIMIT $3"
);

const NAMED_POSTGRES: &str = select_document!(collections_column!(postgres), "", "d.workspace_id >= ");
const NAMED_SQLITE: &str = select_document!(collections_column!(sqlite), "", "d.workspace_id >= ");

const FIND_POSTGRES: &str = select_document!(
    concat!(collections_column!(postgres), ", ", pg_identity!()),
    "",
    "d.id = $1 AND d.workspace_id = $2"
);
const FIND_SQLITE: &str =
    select_document!(collections_column!(sqlite), "", "d.id = $1 AND d.workspace_id = $2");

/// A document with its collections and its inline content.
macro_rules! select_whole {
    ($collections:expr) => {
        select_document!(
            concat!($collections, ", c.content"),
            "LEFT JOIN document_contents c ON c.document_id = d.id ",
            "d.id = $1 AND d.workspace_id = $2"
        )
    };
}

const WHOLE_POSTGRES: &str = select_whole!(collections_column!(postgres));
const WHOLE_SQLITE: &str = select_whole!(collections_column!(sqlite));

/// A document, and the collections that it is in.
#[derive(Clone, Debug)]
pub struct DocumentDetails {
    /// The document.
    pub document: Document,
    /// The oldest first.
    pub collections: Vec<CollectionId>,
}

/// The column of a document's collections, in which they have no order.
pub(crate) trait CollectionColumn {
    fn read(self) -> Result<Vec<CollectionId>>;
}

impl CollectionColumn for Vec<Uuid> {
    fn read(self) -> Result<Vec<CollectionId>> {
        Ok(self.into_iter().map(CollectionId::from).collect())
    }
}

impl CollectionColumn for Option<String> {
    fn read(self) -> Result<Vec<CollectionId>> {
        ids_from_hex(&self.unwrap_or_default())
    }
}

/// [`DocumentDetails`] in the form of a database.
#[derive(sqlx::FromRow)]
pub(crate) struct CollectedRow<C> {
    #[sqlx(flatten)]
    document: Document,
    collections: C,
}

impl<C: CollectionColumn> CollectedRow<C> {
    fn read(self) -> Result<DocumentDetails> {
        let mut collections = self.collections.read()?;
        collections.sort_unstable();
        Ok(DocumentDetails { document: self.document, collections })
    }
}

/// Reads a page.
pub(crate) fn read_page<C: CollectionColumn>(page: Vec<CollectedRow<C>>) -> Result<Vec<DocumentDetails>> {
    page.into_iter().map(CollectedRow::read).collect()
}

/// A document with its inline content.
#[derive(sqlx::FromRow)]
struct WholeRow<C> {
    #[sqlx(flatten)]
    row: CollectedRow<C>,
    content: Option<String>,
}

impl<C: CollectionColumn> WholeRow<C> {
    fn read(self) -> Result<(DocumentDetails, Option<String>)> {
        Ok((self.row.read()?, self.content))
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

/// Goes on with a statement for documents of some names: by the same range, which the statement ends with the beginning of.
macro_rules! push_named {
    ($query:ident, $workspace:ident, $name:ident, $before:ident, $limit:ident) => {
        $query.push_bind($workspace);
        $query.push(" AND (d.workspace_id, d.id) < (").push_bind($workspace).push(", ");
        $query.push_bind($before).push(")");
        and_has(&mut $query, "d.name", $name);
        $query.push(" ORDER BY d.workspace_id DESC, d.id DESC LIMIT ").push_bind(i64::from($limit));
    };
}

/// [`list`], of documents whose names have `name` somewhere, in whichever case.
pub async fn list_named(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    before: DocumentId,
    limit: u32,
) -> Result<Vec<DocumentDetails>> {
    match db {
        Db::Postgres { pool, .. } => {
            let mut query = QueryBuilder::new(NAMED_POSTGRES);
            push_named!(query, workspace, name, before, limit);
            let page: Vec<CollectedRow<Vec<Uuid>>> =
                silence::answered(query.build_query_as().fetch_all(pool)).await?;
            read_page(page)
        }
        Db::Sqlite { readers, .. } => {
            let mut query = QueryBuilder::new(NAMED_SQLITE);
            push_named!(query, workspace, name, before, limit);
            let page: Vec<CollectedRow<Option<String>>> = query.build_query_as().fetch_all(readers).await?;
            read_page(page)
        }
    }
}

/// At most `limit` of a workspace's documents older than `before`, newest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    before: DocumentId,
    limit: u32,
) -> Result<Vec<DocumentDetails>> {
    match db {
        Db::Postgres { pool, .. } => {
            let page = sqlx::query_as(LIST_POSTGRES).bind(workspace).bind(before).bind(i64::from(limit));
            let page: Vec<CollectedRow<Vec<Uuid>>> = silence::answered(page.fetch_all(pool)).await?;
            read_page(page)
        }
        Db::Sqlite { readers, .. } => {
            let page = sqlx::query_as(LIST_SQLITE).bind(workspace).bind(before).bind(i64::from(limit));
            let page: Vec<CollectedRow<Option<String>>> = page.fetch_all(readers).await?;
            read_page(page)
        }
    }
}

/// One of a workspace's documents, with its inline content, if it has any.
pub async fn find_with_content(
    db: &Db,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<Option<(DocumentDetails, Option<String>)>> {
    match db {
        Db::Postgres { pool, .. } => {
            let read = sqlx::query_as(WHOLE_POSTGRES).bind(id).bind(workspace);
            let found: Option<WholeRow<Vec<Uuid>>> = silence::answered(read.fetch_optional(pool)).await?;
            found.map(WholeRow::read).transpose()
        }
        Db::Sqlite { readers, .. } => {
            let read = sqlx::query_as(WHOLE_SQLITE).bind(id).bind(workspace);
            let found: Option<WholeRow<Option<String>>> = read.fetch_optional(readers).await?;
            found.map(WholeRow::read).transpose()
        }
    }
}

/// One of a workspace's documents as a transaction leaves it, which is committed next: on PostgreSQL what has to be known of it for that comes
/// along.
pub async fn find_collected(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<Option<DocumentDetails>> {
    match tx {
        Tx::Postgres(tx) => {
            let read = sqlx::query_as(FIND_POSTGRES).bind(id).bind(workspace);
            let found: Option<LastRead> = silence::answered(read.fetch_optional(&mut **tx)).await?;
            let Some(LastRead { row, identity }) = found else { return Ok(None) };
            tx.note(Some(identity));
            row.read().map(Some)
        }
        Tx::Sqlite(tx) => {
            let read = sqlx::query_as(FIND_SQLITE).bind(id).bind(workspace);
            let found: Option<CollectedRow<Option<String>>> = read.fetch_optional(&mut **tx).await?;
            found.map(CollectedRow::read).transpose()
        }
    }
}
