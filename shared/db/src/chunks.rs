//! Passages. Text, place and hash live here in both modes: hits are filled in from here and quotes are verified here.

use lectern_shared::{
    ids::{ChunkId, DocumentId, GenerationId, WorkspaceId},
    model::{
        Json,
        document::{Chunk, DocumentType},
        place::SourceSpan,
    },
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{Db, DbError, Result, Tx, execute, generations::RetiredGeneration, on, silence};

/// The most rows that one transaction adds or removes, so that other writers get their turn.
pub const BATCH: usize = 100;

/// A new passage.
#[derive(Clone, Debug)]
pub struct NewChunk {
    /// Its number in the generation, from 0.
    pub ordinal: u32,
    /// Its lasting id.
    pub chunk_id: ChunkId,
    /// SHA-256 of the text.
    pub text_hash: [u8; 32],
    /// Tokens in it.
    pub tokens: u32,
    /// Where it stands.
    pub place: SourceSpan,
    /// What it says.
    pub text: String,
}

/// Adds at most [`BATCH`] passages to a generation.
pub async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    document: DocumentId,
    generation: GenerationId,
    chunks: &[NewChunk],
) -> Result<()> {
    debug_assert!(chunks.len() <= BATCH);
    if chunks.is_empty() {
        return Ok(());
    }
    on!(tx, |c| async {
        let mut query = QueryBuilder::new(
            "INSERT INTO chunks (generation_id, ordinal, workspace_id, document_id, chunk_id, text_hash, tokens, place, text) ",
        );
        query.push_values(chunks, |mut row, chunk| {
            row.push_bind(generation)
                .push_bind(i64::from(chunk.ordinal))
                .push_bind(workspace)
                .push_bind(document)
                .push_bind(chunk.chunk_id)
                .push_bind(chunk.text_hash.as_slice())
                .push_bind(i64::from(chunk.tokens))
                .push_bind(Json(&chunk.place))
                .push_bind(chunk.text.as_str());
        });
        query.build().execute(c).await.map(|_| ())
    })?;
    Ok(())
}

/// How many passages a generation has.
#[cfg(any(test, feature = "testing"))]
pub async fn count(db: &Db, generation: GenerationId) -> Result<i64> {
    Ok(on!(db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM chunks WHERE generation_id = $1")
        .bind(generation)
        .fetch_one(c))?)
}

/// A passage, and what is shown of the document that it is of.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct FetchedChunk {
    /// The generation that it is of.
    pub generation_id: GenerationId,
    /// Its document's name.
    pub name: String,
    /// The kind of its document's source.
    pub r#type: DocumentType,
    /// Where its document's source is; empty for inline content and uploads.
    pub url: String,
    /// The passage.
    #[sqlx(flatten)]
    pub chunk: Chunk,
}

/// The passages at these places of these generations, in no order. Those of deleted documents, and of documents that are
/// not `workspace`'s, are left out.
pub async fn fetch(
    db: &Db,
    workspace: WorkspaceId,
    keys: &[(GenerationId, u32)],
) -> Result<Vec<FetchedChunk>> {
    /// The columns of a [`FetchedChunk`], and what they are joined from.
    macro_rules! select_fetched {
        ($from:literal) => {
            concat!(
                "SELECT chunks.generation_id, chunks.ordinal, chunks.chunk_id, chunks.document_id, chunks.tokens, chunks.place,
                        chunks.text, documents.name, documents.type, documents.url
                 FROM ",
                $from,
                " JOIN documents ON documents.id = chunks.document_id AND documents.deleted_at IS NULL "
            )
        };
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    match db {
        // One text for any number of keys, so that every connection has it prepared.
        Db::Postgres { pool, .. } => {
            let generations: Vec<Uuid> = keys.iter().map(|(generation, _)| *generation.as_uuid()).collect();
            let ordinals: Vec<i64> = keys.iter().map(|(_, ordinal)| i64::from(*ordinal)).collect();
            let found = sqlx::query_as(concat!(
                select_fetched!(
                    "unnest($2, $3) AS wanted (generation_id, ordinal)
                     JOIN chunks ON chunks.generation_id = wanted.generation_id AND chunks.ordinal = wanted.ordinal"
                ),
                "WHERE chunks.workspace_id = $1 AND documents.workspace_id = $1"
            ))
            .bind(workspace)
            .bind(generations)
            .bind(ordinals)
            .fetch_all(pool);
            Ok(silence::answered(found).await?)
        }
        Db::Sqlite { readers, .. } => {
            let mut query = QueryBuilder::new(select_fetched!("chunks"));
            query.push("WHERE chunks.workspace_id = ").push_bind(workspace);
            query.push(" AND documents.workspace_id = ").push_bind(workspace);
            query.push(" AND (chunks.generation_id, chunks.ordinal) IN (");
            for (at, (generation, ordinal)) in keys.iter().enumerate() {
                query.push(if at == 0 { "(" } else { ", (" });
                query.push_bind(generation).push(", ").push_bind(i64::from(*ordinal)).push(")");
            }
            query.push(")");
            Ok(query.build_query_as().fetch_all(readers).await?)
        }
    }
}

/// At most `limit` passages of a workspace's document from `from` on, in the order of the source; those of its active
/// generation.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    from: i64,
    limit: u32,
) -> Result<Vec<Chunk>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT chunks.ordinal, chunks.chunk_id, chunks.document_id, chunks.tokens, chunks.place, chunks.text
         FROM documents JOIN chunks ON chunks.generation_id = documents.active_generation
         WHERE documents.id = $1 AND documents.workspace_id = $2 AND documents.deleted_at IS NULL AND chunks.ordinal >= $3
         ORDER BY chunks.ordinal LIMIT $4"
    )
    .bind(document)
    .bind(workspace)
    .bind(from)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// Those of these passages that are of a workspace's document, in the order of the source; those of its active generation.
pub async fn of_ids(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    ids: &[ChunkId],
) -> Result<Vec<Chunk>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT chunks.ordinal, chunks.chunk_id, chunks.document_id, chunks.tokens, chunks.place, chunks.text
             FROM documents JOIN chunks ON chunks.generation_id = documents.active_generation
             WHERE documents.deleted_at IS NULL AND documents.id = ",
        );
        query.push_bind(document).push(" AND documents.workspace_id = ").push_bind(workspace);
        query.push(" AND chunks.chunk_id IN (");
        let mut listed = query.separated(", ");
        for id in ids {
            listed.push_bind(*id);
        }
        query.push(") ORDER BY chunks.ordinal").build_query_as().fetch_all(c).await
    })?)
}

/// Read by strangers who have a link, so no more than the one passage may be read for it.
pub(super) const SELECT_ORDINAL: &str =
    "SELECT chunks.ordinal FROM documents JOIN chunks ON chunks.generation_id = documents.active_generation
     WHERE documents.id = $1 AND documents.workspace_id = $2 AND documents.deleted_at IS NULL AND chunks.chunk_id = $3
     LIMIT 1";

/// The number that a passage has in the active generation of a workspace's document; none when it is not in that.
pub async fn ordinal(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    chunk: ChunkId,
) -> Result<Option<i64>> {
    Ok(on!(db, |c| sqlx::query_scalar(SELECT_ORDINAL)
        .bind(document)
        .bind(workspace)
        .bind(chunk)
        .fetch_optional(c))?)
}

/// At most [`BATCH`] passages of a workspace's generation from `from` on, as they were added.
pub async fn stored(
    db: &Db,
    workspace: WorkspaceId,
    generation: GenerationId,
    from: i64,
) -> Result<Vec<NewChunk>> {
    let rows: Vec<StoredRow> = on!(db, |c| {
        sqlx::query_as(
            "SELECT ordinal, chunk_id, text_hash, tokens, place, text FROM chunks
             WHERE generation_id = $1 AND workspace_id = $2 AND ordinal >= $3 ORDER BY ordinal LIMIT $4",
        )
        .bind(generation)
        .bind(workspace)
        .bind(from)
        .bind(i64::try_from(BATCH).unwrap_or(i64::MAX))
        .fetch_all(c)
    })?;
    rows.into_iter().map(NewChunk::try_from).collect()
}

#[derive(sqlx::FromRow)]
struct StoredRow {
    ordinal: i64,
    chunk_id: ChunkId,
    text_hash: Vec<u8>,
    tokens: i64,
    place: Json<SourceSpan>,
    text: String,
}

impl TryFrom<StoredRow> for NewChunk {
    type Error = DbError;

    fn try_from(row: StoredRow) -> Result<Self> {
        let unreadable = |what: &str| DbError::Unreadable(format!("{what} of a passage"));
        Ok(Self {
            ordinal: u32::try_from(row.ordinal).map_err(|_| unreadable("the number"))?,
            chunk_id: row.chunk_id,
            text_hash: row.text_hash.try_into().map_err(|_| unreadable("the hash"))?,
            tokens: u32::try_from(row.tokens).map_err(|_| unreadable("the count of tokens"))?,
            place: row.place.0,
            text: row.text,
        })
    }
}

/// Removes at most [`BATCH`] passages of a generation; false when none are left.
pub async fn purge_some(tx: &mut Tx, retired: RetiredGeneration) -> Result<bool> {
    let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
    let rows = execute!(
        tx,
        sqlx::query(
            "DELETE FROM chunks WHERE generation_id = $1 AND ordinal IN (
                 SELECT ordinal FROM chunks WHERE generation_id = $1 ORDER BY ordinal LIMIT $2)",
        )
        .bind(retired.id())
        .bind(limit)
    )?;
    Ok(rows == BATCH as u64)
}
