//! What the doctor changes. Locks are taken in the order of all: workspaces, documents, jobs.

use lectern_shared::{clock::Timestamp, ids::DocumentId};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{PAGE, SearchableDocument};
use crate::{
    Result, Tx, documents, execute,
    jobs::{BEHIND_OWN, set_former},
    on,
};

/// Queues documents to be indexed again from their stored passages, except those that are deleted, queued or running already; how
/// many were queued. At most [`PAGE`]. They go behind what their workspaces have queued, so that page after page gives nobody more turns.
pub async fn index_again(tx: &mut Tx, documents: &[DocumentId], now: Timestamp) -> Result<u64> {
    change(tx, documents, "revision = revision").await?;
    queue(tx, documents, true, now).await
}

/// Queues documents to be ingested from their sources, whatever was known of these, as [`index_again`] does; only those that are
/// deleted or running are left alone. How many were queued. At most [`PAGE`].
pub async fn ingest_again(tx: &mut Tx, documents: &[DocumentId], now: Timestamp) -> Result<u64> {
    change(tx, documents, "source_state = NULL").await?;
    queue(tx, documents, false, now).await
}

/// Changes these documents, so that none is deleted before the transaction ends.
async fn change(tx: &mut Tx, documents: &[DocumentId], set: &'static str) -> Result<()> {
    if documents.is_empty() {
        return Ok(());
    }
    debug_assert!(documents.len() <= PAGE as usize);
    on!(tx, |c| async {
        let mut query = QueryBuilder::new("UPDATE documents SET ");
        query.push(set).push(" WHERE deleted_at IS NULL AND id IN (");
        let mut ids = query.separated(", ");
        for document in documents {
            ids.push_bind(document);
        }
        query.push(")");
        query.build().execute(c).await.map(|_| ())
    })?;
    Ok(())
}

async fn queue(tx: &mut Tx, documents: &[DocumentId], from_stored: bool, now: Timestamp) -> Result<u64> {
    if documents.is_empty() {
        return Ok(0);
    }
    debug_assert!(documents.len() <= PAGE as usize);
    // One that only indexes again does not help where the passages are what is lost.
    let besides = if from_stored { "('queued', 'running')" } else { "('running')" };
    let queued: Vec<DocumentId> = on!(tx, |c| async {
        let mut query = QueryBuilder::new("UPDATE jobs SET state = 'queued', from_stored = ");
        query.push_bind(from_stored).push(", attempts = 0, run_at = ").push_bind(now);
        query.push(", queued_at = ").push_bind(now);
        query.push(concat!(
            ", fair_at = place.fair_at, started_at = NULL, finished_at = NULL, last_error = NULL, stage = NULL, progress = NULL,
             outage_at = NULL, ",
            set_former!(),
            " FROM (SELECT jobs.id AS job_id, "
        ));
        query.push(BEHIND_OWN);
        query.push(
            " AS fair_at
                   FROM jobs JOIN documents ON documents.id = jobs.document_id
                   WHERE documents.deleted_at IS NULL AND jobs.state NOT IN ",
        );
        query.push(besides).push(" AND jobs.document_id IN (");
        let mut ids = query.separated(", ");
        for document in documents {
            ids.push_bind(document);
        }
        query.push(")) AS place WHERE jobs.id = place.job_id AND jobs.state NOT IN ").push(besides);
        query.push(" RETURNING jobs.document_id");
        query.build_query_scalar().fetch_all(c).await
    })?;
    Ok(queued.len() as u64)
}

/// Makes the row of the generation that a document names what it should be: there, with so many passages, and answering. A row
/// that was lost comes back without an embedding space. False when the document names another one by now.
pub async fn renew_generation(
    tx: &mut Tx,
    document: &SearchableDocument,
    chunks: i64,
    now: Timestamp,
) -> Result<bool> {
    documents::touch(tx, document.workspace_id, document.id).await?;
    let rows = execute!(
        tx,
        sqlx::query(
            "INSERT INTO generations
                 (id, workspace_id, document_id, claim_id, state, embedding_space, chunks, created_at, removals)
             SELECT active_generation, workspace_id, id, $3, 'active', NULL, $4, $5, 0
             FROM documents WHERE id = $1 AND active_generation = $2 AND deleted_at IS NULL
             ON CONFLICT (id) DO UPDATE SET state = 'active', chunks = excluded.chunks, purge_at = NULL"
        )
        .bind(document.id)
        .bind(document.generation)
        .bind(Uuid::nil())
        .bind(chunks)
        .bind(now)
    )?;
    Ok(rows == 1)
}

/// Has a document of which no passage is left not answer any more, and leaves what remains of its generation to the sweeper. False
/// when the document names another generation by now.
pub async fn unpublish(tx: &mut Tx, document: &SearchableDocument, now: Timestamp) -> Result<bool> {
    documents::touch(tx, document.workspace_id, document.id).await?;
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE documents SET active_generation = NULL, search_index = NULL, content_hash = NULL, languages = NULL
             WHERE id = $1 AND active_generation = $2"
        )
        .bind(document.id)
        .bind(document.generation)
    )?;
    if rows == 0 {
        return Ok(false);
    }
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO generations
                 (id, workspace_id, document_id, claim_id, state, embedding_space, chunks, created_at, purge_at, removals)
             VALUES ($1, $2, $3, $4, 'removing', NULL, 0, $5, $5, 0)
             ON CONFLICT (id) DO UPDATE SET state = 'removing', purge_at = excluded.purge_at"
        )
        .bind(document.generation)
        .bind(document.workspace_id)
        .bind(document.id)
        .bind(Uuid::nil())
        .bind(now)
    )?;
    Ok(true)
}

/// Gives passages and parts of the embedded index that belong to no generation one that the sweeper purges. (PostgreSQL would take
/// the NULL of a `SELECT DISTINCT` for a text.)
pub async fn adopt_leftovers(tx: &mut Tx, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO generations
                 (id, workspace_id, document_id, claim_id, state, embedding_space, chunks, created_at, purge_at, removals)
             SELECT generation_id, workspace_id, $1, $1, 'removing', NULL, 0, $2, $2, 0 FROM (
                 SELECT DISTINCT generation_id, workspace_id FROM chunks
                 WHERE NOT EXISTS (SELECT 1 FROM generations WHERE generations.id = chunks.generation_id)
                   AND NOT EXISTS (SELECT 1 FROM documents WHERE documents.id = chunks.document_id
                                     AND documents.active_generation = chunks.generation_id)) AS found
             WHERE 1 = 1
             ON CONFLICT (id) DO NOTHING"
        )
        .bind(Uuid::nil())
        .bind(now)
    )?;
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO generations
                 (id, workspace_id, document_id, claim_id, state, embedding_space, chunks, created_at, purge_at, removals)
             SELECT generation_id, workspace_id, $1, $1, 'removing', NULL, 0, $2, $2, 0 FROM (
                 SELECT DISTINCT generation_id, workspace_id FROM index_segments
                 WHERE NOT EXISTS (SELECT 1 FROM generations WHERE generations.id = index_segments.generation_id)
                   AND NOT EXISTS (SELECT 1 FROM documents
                                   WHERE documents.active_generation = index_segments.generation_id)) AS found
             WHERE 1 = 1
             ON CONFLICT (id) DO NOTHING"
        )
        .bind(Uuid::nil())
        .bind(now)
    )?;
    Ok(())
}

/// Leaves generations that count as answering and that no document names to the sweeper.
pub async fn retire_unnamed(tx: &mut Tx, now: Timestamp) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE generations SET state = 'removing', purge_at = $1
             WHERE state = 'active' AND NOT EXISTS (
                 SELECT 1 FROM documents WHERE documents.id = generations.document_id
                   AND documents.active_generation = generations.id)"
        )
        .bind(now)
    )
}
