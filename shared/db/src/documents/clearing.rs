//! Deleting the documents of a workspace that ends.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, WorkspaceId},
};
use sqlx::QueryBuilder;

use super::{bump_search_epoch, content, set_changed_epoch};
use crate::{Result, Tx, execute, on};

/// What a document's row is set to when it is deleted.
macro_rules! set_deleted {
    ($now:literal) => {
        concat!(
            "deleted_at = ",
            $now,
            ", active_generation = NULL, search_index = NULL, content_hash = NULL, authorization_sealed = NULL, ",
            set_changed_epoch!()
        )
    };
}

/// What is done to what hangs on documents that are deleted, and whether the moment follows.
const HANGING: [(&str, bool); 5] = [
    ("DELETE FROM document_contents", false),
    ("UPDATE jobs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = ", true),
    ("DELETE FROM agent_documents", false),
    ("DELETE FROM collection_documents", false),
    ("UPDATE generations SET state = 'removing', purge_at = ", true),
];

/// Deletes at most `limit` documents of a workspace, as [`delete`](super::delete) does one, and tells how many: the transaction is short
/// however many there are.
pub(crate) async fn delete_some(
    tx: &mut Tx,
    workspace: WorkspaceId,
    now: Timestamp,
    limit: u32,
) -> Result<u64> {
    let any: Option<DocumentId> = on!(tx, |c| {
        sqlx::query_scalar("SELECT id FROM documents WHERE workspace_id = $1 AND deleted_at IS NULL LIMIT 1")
            .bind(workspace)
            .fetch_optional(c)
    })?;
    if any.is_none() {
        return Ok(0);
    }
    bump_search_epoch(tx, workspace).await?;
    let deleted: Vec<DocumentId> = on!(tx, |c| {
        sqlx::query_scalar(concat!(
            "UPDATE documents SET ",
            set_deleted!("$2"),
            " WHERE id IN (SELECT id FROM documents WHERE workspace_id = $1 AND deleted_at IS NULL ORDER BY id LIMIT $3)
             RETURNING id"
        ))
        .bind(workspace)
        .bind(now)
        .bind(i64::from(limit))
        .fetch_all(c)
    })?;
    if deleted.is_empty() {
        return Ok(0);
    }
    for (statement, is_dated) in HANGING {
        on!(tx, |c| async {
            let mut query = QueryBuilder::new(statement);
            if is_dated {
                query.push_bind(now);
            }
            query.push(" WHERE document_id IN (");
            let mut ids = query.separated(", ");
            for document in &deleted {
                ids.push_bind(document);
            }
            query.push(")");
            query.build().execute(c).await.map(|_| ())
        })?;
    }
    Ok(deleted.len() as u64)
}

/// Deletes all documents of a workspace, as [`delete`](super::delete) does one. Their links go with the agents.
pub(crate) async fn delete_all(tx: &mut Tx, workspace: WorkspaceId, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET ",
            set_deleted!("$2"),
            " WHERE workspace_id = $1 AND deleted_at IS NULL"
        ))
        .bind(workspace)
        .bind(now)
    )?;
    content::forget_all(tx, workspace).await?;
    execute!(
        tx,
        sqlx::query(
            "UPDATE jobs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = $2
             WHERE workspace_id = $1"
        )
        .bind(workspace)
        .bind(now)
    )?;
    execute!(
        tx,
        sqlx::query("UPDATE generations SET state = 'removing', purge_at = $2 WHERE workspace_id = $1")
            .bind(workspace)
            .bind(now)
    )?;
    Ok(())
}
