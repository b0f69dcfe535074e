//! Which documents can be searched, and which of them have changed.

use lectern_shared::{
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::{Json, document::ActiveDocument},
};
use uuid::Uuid;

use crate::{Db, Result, on};

/// The columns of an [`ActiveDocument`].
macro_rules! active_columns {
    () => {
        "d.id, d.active_generation, COALESCE(d.languages, '[]') AS languages, g.embedding_space"
    };
}

/// All of a workspace's searchable documents, by their ids.
pub async fn active(db: &Db, workspace: WorkspaceId) -> Result<Vec<ActiveDocument>> {
    Ok(on!(db, |c| sqlx::query_as(concat!(
        "SELECT ",
        active_columns!(),
        " FROM documents d JOIN generations g ON g.id = d.active_generation
         WHERE d.deleted_at IS NULL AND d.active_generation IS NOT NULL AND d.workspace_id = $1 ORDER BY d.id"
    ))
    .bind(workspace)
    .fetch_all(c))?)
}

/// What has become of one of a workspace's documents.
#[derive(Clone, Debug)]
pub struct ChangedDocument {
    /// The document.
    pub id: DocumentId,
    /// What it is; none when it cannot be searched any more.
    pub active: Option<ActiveDocument>,
}

/// What a workspace has had purged, and its documents that have changed, both as of one moment: what is not among the documents since it was
/// purged is in the workspace's row.
pub(crate) const CHANGED: &str = concat!(
    "SELECT w.purged_epoch, ",
    active_columns!(),
    " FROM workspaces w
      LEFT JOIN documents d ON d.workspace_id = w.id AND d.changed_epoch > $2
      LEFT JOIN generations g ON g.id = d.active_generation
     WHERE w.id = $1 ORDER BY d.id"
);

/// The documents of a workspace that have changed since a search epoch, deleted ones included, by their ids. None when too much is gone
/// to tell.
pub async fn changed_since(
    db: &Db,
    workspace: WorkspaceId,
    epoch: i64,
) -> Result<Option<Vec<ChangedDocument>>> {
    #[derive(sqlx::FromRow)]
    struct ChangedRow {
        purged_epoch: i64,
        /// None in the only row of a workspace in which nothing has changed.
        id: Option<DocumentId>,
        active_generation: Option<GenerationId>,
        languages: Json<Box<[(u8, u64)]>>,
        embedding_space: Option<Uuid>,
    }
    let rows: Vec<ChangedRow> =
        on!(db, |c| sqlx::query_as(CHANGED).bind(workspace).bind(epoch).fetch_all(c))?;
    if rows.first().is_none_or(|row| row.purged_epoch > epoch) {
        return Ok(None);
    }
    let changed = |ChangedRow { id, active_generation, languages, embedding_space, .. }: ChangedRow| {
        let id = id?;
        let active = active_generation.map(|active_generation| ActiveDocument {
            id,
            active_generation,
            languages,
            embedding_space,
        });
        Some(ChangedDocument { id, active })
    };
    Ok(Some(rows.into_iter().filter_map(changed).collect()))
}
