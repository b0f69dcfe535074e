//! How the ingestions of documents go, for those who follow them.

use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::job::IngestionSummary,
};
use sqlx::{ColumnIndex, Decode, FromRow, QueryBuilder, Row, Type};
use uuid::Uuid;

use crate::{Db, DbError, Result, on, silence};

/// How the ingestion of one of several documents goes.
#[derive(Debug)]
pub struct DocumentIngestion {
    /// The document.
    pub id: DocumentId,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// How its ingestion goes, if that can be read: what is damaged of one document is no matter of those who ask for others.
    pub ingestion: Result<IngestionSummary>,
}

impl<'r, R: Row> FromRow<'r, R> for DocumentIngestion
where
    &'r str: ColumnIndex<R>,
    DocumentId: Decode<'r, R::Database> + Type<R::Database>,
    WorkspaceId: Decode<'r, R::Database> + Type<R::Database>,
    IngestionSummary: FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> sqlx::Result<Self> {
        Ok(Self {
            id: row.try_get("id")?,
            workspace_id: row.try_get("workspace_id")?,
            ingestion: IngestionSummary::from_row(row).map_err(DbError::from),
        })
    }
}

/// Selects columns of an [`IngestionSummary`], and what comes before them, of documents that are not deleted.
macro_rules! select_ingestion {
    ($columns:literal, $where:literal) => {
        concat!(
            "SELECT ",
            $columns,
            "j.state, j.stage, j.progress, j.attempts, j.last_error, j.warnings, j.source, j.queued_at, j.started_at, j.finished_at
             FROM documents d JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest'
             WHERE d.deleted_at IS NULL AND ",
            $where
        )
    };
}

/// How the ingestion of one of a workspace's documents goes; none when there is no such document.
pub async fn ingestion(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<IngestionSummary>> {
    Ok(on!(db, |c| sqlx::query_as(select_ingestion!("", "d.id = $1 AND d.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// How the ingestions of those of these documents go that are of one of the workspaces that are named with them.
pub async fn ingestions(db: &Db, documents: &[(WorkspaceId, DocumentId)]) -> Result<Vec<DocumentIngestion>> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    match db {
        // One text for any number of documents, so that every connection has it prepared.
        Db::Postgres { pool, .. } => {
            let (workspaces, ids): (Vec<Uuid>, Vec<Uuid>) =
                documents.iter().map(|(workspace, id)| (*workspace.as_uuid(), *id.as_uuid())).unzip();
            let found = sqlx::query_as(select_ingestion!(
                "d.id, d.workspace_id, ",
                "(d.workspace_id, d.id) IN (SELECT * FROM unnest($1, $2))"
            ))
            .bind(workspaces)
            .bind(ids)
            .fetch_all(pool);
            Ok(silence::answered(found).await?)
        }
        Db::Sqlite { readers, .. } => {
            let mut query = QueryBuilder::new(select_ingestion!("d.id, d.workspace_id, ", "d.id IN ("));
            let mut listed = query.separated(", ");
            for (_, id) in documents {
                listed.push_bind(*id);
            }
            query.push(") AND d.workspace_id IN (");
            let mut listed = query.separated(", ");
            for (workspace, _) in documents {
                listed.push_bind(*workspace);
            }
            Ok(query.push(")").build_query_as().fetch_all(readers).await?)
        }
    }
}
