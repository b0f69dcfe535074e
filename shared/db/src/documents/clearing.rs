//! What is gone with documents that are deleted, and the deletion of all that a workspace has.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, WorkspaceId},
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{bump_search_epoch, content, set_changed_epoch};
use crate::{PgWrite, Result, Tx, execute, on, silence};

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

/// What becomes of what documents have, up to the condition which says of which ones, or to the moment before it.
macro_rules! cleared {
    (contents) => {
        "DELETE FROM document_contents"
    };
    (links) => {
        "DELETE FROM agent_documents"
    };
    (places) => {
        "DELETE FROM collection_documents"
    };
    (jobs) => {
        "UPDATE jobs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = "
    };
    (generations) => {
        "UPDATE generations SET state = 'removing', purge_at = "
    };
}

/// Removes what documents have besides their rows and generations, for PostgreSQL: parts of a statement, up to its end. `$documents` is the
/// condition, behind `document_id`.
macro_rules! clear_but_generations {
    ($documents:literal, $now:literal) => {
        concat!(
            "contents AS (",
            cleared!(contents),
            " WHERE document_id ",
            $documents,
            "), links AS (",
            cleared!(links),
            " WHERE document_id ",
            $documents,
            "), places AS (",
            cleared!(places),
            " WHERE document_id ",
            $documents,
            "), stopped AS (",
            cleared!(jobs),
            $now,
            " WHERE document_id ",
            $documents,
            ")"
        )
    };
}

/// Deletes the document $1 of the workspace $2 at $3.
macro_rules! delete_document {
    () => {
        concat!(
            "UPDATE documents SET ",
            set_deleted!("$3"),
            " WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL RETURNING id"
        )
    };
}

/// Deletes one of a workspace's documents, in a transaction that has begun another search epoch. False when there is no such document.
pub(super) async fn delete_one(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    now: Timestamp,
    purge_at: Timestamp,
) -> Result<bool> {
    const AND_CLEAR: &str = concat!(
        "WITH gone AS (",
        delete_document!(),
        "), ",
        clear_but_generations!("= (SELECT id FROM gone)", "$3"),
        " SELECT id FROM gone"
    );
    let statement = match tx {
        // In the order of locks: a job is found by its document's row.
        Tx::Postgres(_) => AND_CLEAR,
        Tx::Sqlite(_) => delete_document!(),
    };
    let found: Option<DocumentId> =
        on!(tx, |c| sqlx::query_scalar(statement).bind(id).bind(workspace).bind(now).fetch_optional(c))?;
    let Some(found) = found else { return Ok(false) };
    match tx {
        Tx::Postgres(tx) => remove_generations(tx, vec![*found.as_uuid()], purge_at).await?,
        Tx::Sqlite(_) => clear(tx, &[found], now, purge_at).await?,
    }
    Ok(true)
}

/// Removes what documents have besides their rows, which are deleted: their jobs are cancelled, and their generations are left for the
/// sweeper, which may begin at `purge_at`.
async fn clear(tx: &mut Tx, documents: &[DocumentId], now: Timestamp, purge_at: Timestamp) -> Result<()> {
    match tx {
        // In two round trips, since others wait for the workspace's row meanwhile.
        Tx::Postgres(tx) => {
            let ids: Vec<Uuid> = documents.iter().map(|id| *id.as_uuid()).collect();
            let others = concat!("WITH ", clear_but_generations!("= ANY($1)", "$2"), " SELECT 1");
            let others = sqlx::query(others).bind(ids.clone()).bind(now);
            silence::answered(others.execute(&mut **tx)).await?;
            remove_generations(tx, ids, purge_at).await?;
        }
        // In one, since each is a way to the thread of the database and back, and nobody else writes meanwhile.
        Tx::Sqlite(tx) => {
            let mut all = QueryBuilder::new("");
            for (statement, moment) in [
                (cleared!(contents), None),
                (cleared!(links), None),
                (cleared!(places), None),
                (cleared!(jobs), Some(now)),
                (cleared!(generations), Some(purge_at)),
            ] {
                all.push(statement);
                if let Some(moment) = moment {
                    all.push_bind(moment);
                }
                all.push(" WHERE document_id IN (");
                let mut ids = all.separated(", ");
                for document in documents {
                    ids.push_bind(*document);
                }
                all.push(");");
            }
            all.build().execute(&mut **tx).await?;
        }
    }
    Ok(())
}

/// Leaves the generations of documents for the sweeper, which may begin at `purge_at`. They come after jobs, as everywhere, and in a statement
/// of their own: of a statement's parts nobody can tell which comes first, and whoever holds a job may be adding one.
async fn remove_generations(tx: &mut PgWrite, documents: Vec<Uuid>, purge_at: Timestamp) -> Result<()> {
    let removed = concat!(cleared!(generations), "$2 WHERE document_id = ANY($1)");
    let removed = sqlx::query(removed).bind(documents).bind(purge_at);
    silence::answered(removed.execute(&mut **tx)).await?;
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
