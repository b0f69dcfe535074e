//! What is gone with documents that are deleted, and the deletion of all that a workspace has.

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
pub(super) use set_deleted;

/// Removes what documents have besides their rows, which are deleted: their jobs are cancelled, and their generations are left for the
/// sweeper, which may begin at `purge_at`.
pub(super) async fn clear(
    tx: &mut Tx,
    documents: &[DocumentId],
    now: Timestamp,
    purge_at: Timestamp,
) -> Result<()> {
    for (statement, moment) in [
        ("DELETE FROM document_contents", None),
        (
            "UPDATE jobs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = ",
            Some(now),
        ),
        ("DELETE FROM agent_documents", None),
        ("DELETE FROM collection_documents", None),
        ("UPDATE generations SET state = 'removing', purge_at = ", Some(purge_at)),
    ] {
        on!(tx, |c| async {
            let mut query = QueryBuilder::new(statement);
            if let Some(moment) = moment {
                query.push_bind(moment);
            }
            query.push(" WHERE document_id IN (");
            let mut ids = query.separated(", ");
            for document in documents {
                ids.push_bind(*document);
            }
            query.push(")");
            query.build().execute(c).await.map(|_| ())
        })?;
    }
    Ok(())
}

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
    clear(tx, &deleted, now, now).await?;
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
