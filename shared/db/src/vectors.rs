//! Embedding spaces, and the vectors of passages: whatever was embedded once is not embedded again, whether a job is tried
//! again, a document ingested again or an index filled anew.

use std::collections::HashMap;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::space::EmbeddingSpace,
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{Db, DbError, Result, Tx, chunks::BATCH, execute, on};

/// SHA-256 of a text as the model was given it.
pub type TextHash = [u8; 32];

/// Records an embedding space; nothing happens when it is known.
pub async fn record_space(tx: &mut Tx, space: &EmbeddingSpace, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO embedding_spaces (id, fingerprint, model, dimensions, created_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
        )
        .bind(space.id)
        .bind(space.fingerprint.as_str())
        .bind(space.model.as_str())
        .bind(i64::try_from(space.dimensions).unwrap_or(i64::MAX))
        .bind(now)
    )?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct SpaceRow {
    id: Uuid,
    fingerprint: String,
    model: String,
    dimensions: i64,
}

/// A recorded embedding space.
pub async fn space(db: &Db, id: Uuid) -> Result<Option<EmbeddingSpace>> {
    let row: Option<SpaceRow> = on!(db, |c| sqlx::query_as(
        "SELECT id, fingerprint, model, dimensions FROM embedding_spaces WHERE id = $1"
    )
    .bind(id)
    .fetch_optional(c))?;
    row.map(|SpaceRow { id, fingerprint, model, dimensions }| {
        let dimensions = usize::try_from(dimensions)
            .map_err(|_| DbError::Unreadable("the dimension of an embedding space".to_owned()))?;
        Ok(EmbeddingSpace { id, fingerprint, model, dimensions })
    })
    .transpose()
}

/// How many searchable documents, of all workspaces, have their vectors in this space, and how many have not.
pub async fn documents_in_space(db: &Db, space: &EmbeddingSpace) -> Result<(i64, i64)> {
    let (inside, all): (i64, i64) = on!(db, |c| sqlx::query_as(
        "SELECT COUNT(CASE WHEN generations.embedding_space = $1 THEN 1 END), COUNT(*)
         FROM documents JOIN generations ON generations.id = documents.active_generation
         WHERE documents.deleted_at IS NULL"
    )
    .bind(space.id)
    .fetch_one(c))?;
    Ok((inside, all - inside))
}

#[derive(sqlx::FromRow)]
struct VectorRow {
    text_hash: Vec<u8>,
    vector: Vec<u8>,
}

/// The vectors that are known of these texts of a workspace's document; at most [`BATCH`] texts.
pub async fn fetch(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    space: &EmbeddingSpace,
    hashes: &[TextHash],
) -> Result<HashMap<TextHash, Vec<f32>>> {
    debug_assert!(hashes.len() <= BATCH);
    if hashes.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<VectorRow> = on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT text_hash, vector FROM vectors WHERE space_id = ");
        query.push_bind(space.id).push(" AND document_id = ").push_bind(document);
        query.push(" AND EXISTS (SELECT 1 FROM documents WHERE documents.id = vectors.document_id AND documents.workspace_id = ");
        query.push_bind(workspace).push(") AND text_hash IN (");
        let mut list = query.separated(", ");
        for hash in hashes {
            list.push_bind(hash.as_slice());
        }
        query.push(")");
        query.build_query_as().fetch_all(c).await
    })?;
    let mut vectors = HashMap::with_capacity(rows.len());
    for VectorRow { text_hash, vector } in rows {
        let (numbers, rest) = vector.as_chunks::<4>();
        let vector: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        match TextHash::try_from(text_hash) {
            Ok(hash) if rest.is_empty() && is_usable(&vector, space) => {
                vectors.insert(hash, vector);
            }
            // It is made again.
            _ => tracing::warn!(%document, "a stored vector is damaged"),
        }
    }
    Ok(vectors)
}

/// Whether these numbers can be a vector of the space: one that is infinite, or not a number, is refused by every index.
fn is_usable(vector: &[f32], space: &EmbeddingSpace) -> bool {
    vector.len() == space.dimensions && vector.iter().all(|number| number.is_finite())
}

/// Keeps the vectors of texts of a document, used by `generation`; at most [`BATCH`].
pub async fn insert(
    tx: &mut Tx,
    document: DocumentId,
    generation: GenerationId,
    space: &EmbeddingSpace,
    vectors: &[(TextHash, Vec<f32>)],
) -> Result<()> {
    debug_assert!(vectors.len() <= BATCH);
    if vectors.is_empty() {
        return Ok(());
    }
    on!(tx, |c| async {
        let mut query = QueryBuilder::new(
            "INSERT INTO vectors (space_id, document_id, text_hash, generation_id, vector) ",
        );
        query.push_values(vectors, |mut row, (hash, vector)| {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            row.push_bind(space.id)
                .push_bind(document)
                .push_bind(hash.as_slice())
                .push_bind(generation)
                .push_bind(bytes);
        });
        query.push(
            " ON CONFLICT (space_id, document_id, text_hash)
              DO UPDATE SET vector = excluded.vector, generation_id = excluded.generation_id",
        );
        query.build().execute(c).await.map(|_| ())
    })?;
    Ok(())
}

/// Notes that `generation` uses these vectors too.
pub async fn used(
    tx: &mut Tx,
    document: DocumentId,
    generation: GenerationId,
    space: &EmbeddingSpace,
    hashes: &[TextHash],
) -> Result<()> {
    debug_assert!(hashes.len() <= BATCH);
    if hashes.is_empty() {
        return Ok(());
    }
    on!(tx, |c| async {
        let mut query = QueryBuilder::new("UPDATE vectors SET generation_id = ");
        query.push_bind(generation).push(" WHERE space_id = ").push_bind(space.id);
        query.push(" AND document_id = ").push_bind(document).push(" AND text_hash IN (");
        let mut list = query.separated(", ");
        for hash in hashes {
            list.push_bind(hash.as_slice());
        }
        query.push(")");
        query.build().execute(c).await.map(|_| ())
    })?;
    Ok(())
}

/// Removes the vectors of a document that `kept`, one of its generations, does not use; all of them without one. A transaction
/// for each [`BATCH`], so that other writers get their turn.
pub async fn remove(db: &Db, document: DocumentId, kept: Option<GenerationId>) -> Result<()> {
    let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
    // No generation has the nil id.
    let kept = kept.unwrap_or_else(|| GenerationId::from(Uuid::nil()));
    // A glance first: there hardly ever are any, and writers must not wait for nothing.
    let mut any = on!(db, |c| {
        sqlx::query_scalar::<_, i64>(
            "SELECT CAST(1 AS BIGINT) FROM vectors WHERE document_id = $1 AND generation_id <> $2 LIMIT 1",
        )
        .bind(document)
        .bind(kept)
        .fetch_optional(c)
    })?
    .is_some();
    while any {
        let mut tx = db.begin_essential_relaxed().await?;
        let rows = execute!(
            tx,
            sqlx::query(
                "DELETE FROM vectors WHERE document_id = $1 AND (space_id, text_hash) IN (
                     SELECT space_id, text_hash FROM vectors
                     WHERE document_id = $1 AND generation_id <> $2 LIMIT $3)"
            )
            .bind(document)
            .bind(kept)
            .bind(limit)
        )?;
        tx.commit().await?;
        any = rows >= BATCH as u64;
    }
    Ok(())
}
