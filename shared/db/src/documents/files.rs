//! Documents as files: all of them, however they were made, by a window of their ids.

use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::document::{DocumentFile, FileLabel},
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{Db, Result, on};

/// A part of a list that is ordered by ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdWindow {
    /// Only ids that are greater.
    pub above: Uuid,
    /// Only ids that are less.
    pub below: Uuid,
    /// From which of the two the rows are taken: the oldest first, or the newest.
    pub is_ascending: bool,
    /// The most rows.
    pub limit: u32,
}

macro_rules! select_file {
    ($where:literal) => {
        concat!(
            "SELECT d.id, d.name, d.source_name, d.stored_bytes, d.created_at, j.state, j.last_error
             FROM documents d JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest'
             WHERE d.deleted_at IS NULL AND ",
            $where
        )
    };
}

/// The files of a workspace within a window.
pub async fn list(db: &Db, workspace: WorkspaceId, window: &IdWindow) -> Result<Vec<DocumentFile>> {
    let select = if window.is_ascending { OLDEST } else { NEWEST };
    Ok(on!(db, |c| sqlx::query_as(select)
        .bind(workspace)
        .bind(window.above)
        .bind(window.below)
        .bind(i64::from(window.limit))
        .fetch_all(c))?)
}

/// By ranges that begin with the workspace, for the reason that [`super::LIST`] has.
pub(crate) const OLDEST: &str = select_file!(
    "(d.workspace_id, d.id) > ($1, $2) AND (d.workspace_id, d.id) < ($1, $3) ORDER BY d.workspace_id, d.id LIMIT $4"
);

/// [`OLDEST`] the other way round.
pub(crate) const NEWEST: &str = select_file!(
    "(d.workspace_id, d.id) > ($1, $2) AND (d.workspace_id, d.id) < ($1, $3)
     ORDER BY d.workspace_id DESC, d.id DESC LIMIT $4"
);

/// One of a workspace's files.
pub async fn find(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<DocumentFile>> {
    Ok(on!(db, |c| sqlx::query_as(select_file!("d.workspace_id = $1 AND d.id = $2"))
        .bind(workspace)
        .bind(id)
        .fetch_optional(c))?)
}

/// How those of these documents that are the workspace's are called as files, with their metadata; in no order.
pub async fn labels(db: &Db, workspace: WorkspaceId, documents: &[DocumentId]) -> Result<Vec<FileLabel>> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT id, name, source_name, metadata FROM documents WHERE deleted_at IS NULL AND workspace_id = ",
        );
        query.push_bind(workspace).push(" AND id IN (");
        let mut list = query.separated(", ");
        for id in documents {
            list.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?)
}
