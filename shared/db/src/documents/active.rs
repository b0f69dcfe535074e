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

/// The documents of a workspace that have changed since a search epoch, deleted ones included, by their ids. None when too much is gone
/// to tell.
pub async fn changed_since(
    db: &Db,
    workspace: WorkspaceId,
    epoch: i64,
) -> Result<Option<Vec<ChangedDocument>>> {
    #[derive(sqlx::FromRow)]
    struct ChangedRow {
        id: DocumentId,
        active_generation: Option<GenerationId>,
        languages: Json<Box<[(u8, u64)]>>,
        embedding_space: Option<Uuid>,
    }
    let rows: Vec<ChangedRow> = on!(db, |c| sqlx::query_as(concat!(
        "SELECT ",
        active_columns!(),
        " FROM documents d LEFT JOIN generations g ON g.id = d.active_generation
         WHERE d.workspace_id = $1 AND d.changed_epoch > $2 ORDER BY d.id"
    ))
    .bind(workspace)
    .bind(epoch)
    .fetch_all(c))?;
    // Asked last: what was purged before is not among the rows.
    let purged: i64 = on!(db, |c| sqlx::query_scalar("SELECT purged_epoch FROM workspaces WHERE id = $1")
        .bind(workspace)
        .fetch_one(c))?;
    let changed = |ChangedRow { id, active_generation, languages, embedding_space }: ChangedRow| {
        let active = active_generation.map(|active_generation| ActiveDocument {
            id,
            active_generation,
            languages,
            embedding_space,
        });
        ChangedDocument { id, active }
    };
    Ok((purged <= epoch).then(|| rows.into_iter().map(changed).collect()))
}
