//! What the doctor asks the store, and what it has changed. For the operator alone: the questions go over all workspaces, in pages.

mod repair;

use std::collections::{HashMap, HashSet};

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, GenerationId, JobId, WorkspaceId},
    model::job::JobState,
};
use sqlx::QueryBuilder;
use uuid::Uuid;

pub use self::repair::{
    adopt_leftovers, index_again, ingest_again, renew_generation, retire_unnamed, unpublish,
};
use crate::{
    Db, Result, on,
    sealed::{self, KeyUsage, SealedColumn},
};

/// The most rows that one question is answered with.
pub const PAGE: u32 = 500;
/// Problems of the file that SQLite reports, at most.
const PROBLEMS: usize = 10;

/// The first id of a look through everything: no row has it.
pub fn beginning() -> DocumentId {
    DocumentId::from(Uuid::nil())
}

/// What SQLite finds wrong with its file, a line each and a few at most; `thorough` also compares indexes with their tables.
/// PostgreSQL has no such question.
pub async fn damage(db: &Db, thorough: bool) -> Result<Vec<String>> {
    let Db::Sqlite { readers, .. } = db else { return Ok(Vec::new()) };
    let check = if thorough { "PRAGMA integrity_check(10)" } else { "PRAGMA quick_check(10)" };
    let found: Vec<String> = sqlx::query_scalar(check).fetch_all(readers).await?;
    Ok(found.into_iter().filter(|line| line != "ok").take(PROBLEMS).collect())
}

/// How many rows of a SQLite file point to rows that do not exist. PostgreSQL lets none be.
pub async fn dangling(db: &Db) -> Result<usize> {
    let Db::Sqlite { readers, .. } = db else { return Ok(0) };
    // Counted there: of a file that is badly damaged there may be any number.
    let rows: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM pragma_foreign_key_check").fetch_one(readers).await?;
    Ok(usize::try_from(rows).unwrap_or(usize::MAX))
}

/// Counts what is encrypted, by the key's id that each secret carries.
pub async fn sealed(db: &Db, current: [u8; 4], previous: [u8; 4]) -> Result<KeyUsage> {
    let mut all = KeyUsage::default();
    for column in SealedColumn::ALL {
        let found = sealed::usage(db, column, current, previous).await?;
        all.total += found.total;
        all.current += found.current;
        all.previous += found.previous;
    }
    Ok(all)
}

/// A few of the jobs whose lease ran out before `before` and that still count as running.
pub async fn stale(db: &Db, before: Timestamp) -> Result<Vec<JobId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM jobs WHERE state = 'running' AND lease_until < $1 ORDER BY id LIMIT $2"
    )
    .bind(before)
    .bind(i64::from(PAGE))
    .fetch_all(c))?)
}

/// The last errors of at most [`PAGE`] dead jobs after `after`, as they are stored.
pub async fn dead(db: &Db, after: JobId) -> Result<Vec<(JobId, Option<String>)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, last_error FROM jobs WHERE state = 'dead' AND id > $1 ORDER BY id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(PAGE))
    .fetch_all(c))?)
}

/// A document that no job belongs to, so that nobody sees it and nothing is done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct UnqueuedDocument {
    /// The document.
    pub id: DocumentId,
    /// Its owner.
    pub workspace_id: WorkspaceId,
    /// Whether its passages are stored.
    pub searchable: bool,
}

/// At most [`PAGE`] documents without a job after `after`.
pub async fn unqueued(db: &Db, after: DocumentId) -> Result<Vec<UnqueuedDocument>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT d.id, d.workspace_id, (d.active_generation IS NOT NULL) AS searchable
         FROM documents d LEFT JOIN jobs j ON j.document_id = d.id
         WHERE d.deleted_at IS NULL AND j.id IS NULL AND d.id > $1 ORDER BY d.id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(PAGE))
    .fetch_all(c))?)
}

/// A document that answers, with everything that says how.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct SearchableDocument {
    /// The document.
    pub id: DocumentId,
    /// Its owner.
    pub workspace_id: WorkspaceId,
    /// The generation that it names.
    pub generation: GenerationId,
    /// What is told of it, as it is stored.
    pub search_index: Option<String>,
    /// Whether its source has an address.
    pub has_url: bool,
    /// Whether its source came inline.
    pub has_content: bool,
    /// Where its source is in the blob store.
    pub blob_key: Option<String>,
    /// Whether its source is read again even if it has not changed.
    pub source_forgotten: bool,
    /// The state of the generation's row; none when there is no row.
    pub state: Option<String>,
    /// Passages that the row says there are.
    pub chunks: Option<i64>,
    /// The embedding space of its vectors.
    pub embedding_space: Option<Uuid>,
    /// Where its job stands.
    pub job: Option<JobState>,
    /// Whether the job leaves the source alone.
    pub from_stored: Option<bool>,
}

/// At most [`PAGE`] documents that answer, of all workspaces, after `after`.
pub async fn answering(db: &Db, after: DocumentId) -> Result<Vec<SearchableDocument>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT d.id, d.workspace_id, d.active_generation AS generation, d.search_index, (d.url <> '') AS has_url,
                EXISTS (SELECT 1 FROM document_contents c WHERE c.document_id = d.id) AS has_content, d.blob_key,
                (d.source_state IS NULL) AS source_forgotten,
                g.state, g.chunks, g.embedding_space, j.state AS job, j.from_stored
         FROM documents d
         LEFT JOIN generations g ON g.id = d.active_generation
         LEFT JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest'
         WHERE d.deleted_at IS NULL AND d.active_generation IS NOT NULL AND d.id > $1 ORDER BY d.id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(PAGE))
    .fetch_all(c)
    })?)
}

macro_rules! by_generation {
    ($db:expr, $generations:expr, $select:literal) => {{
        let mut all = HashMap::new();
        for some in $generations.chunks(PAGE as usize) {
            let rows: Vec<(GenerationId, i64)> = on!($db, |c| async {
                let mut query = QueryBuilder::new(concat!($select, " WHERE generation_id IN ("));
                let mut ids = query.separated(", ");
                for generation in some {
                    ids.push_bind(generation);
                }
                query.push(") GROUP BY generation_id");
                query.build_query_as().fetch_all(c).await
            })?;
            all.extend(rows);
        }
        Ok(all)
    }};
}

/// How many passages are stored of each of these generations; those of which none is are left out.
pub async fn passages(db: &Db, generations: &[GenerationId]) -> Result<HashMap<GenerationId, i64>> {
    by_generation!(db, generations, "SELECT generation_id, COUNT(*) FROM chunks")
}

/// How many passages the embedded index holds of each of these generations; those of which none is are left out.
pub async fn indexed(db: &Db, generations: &[GenerationId]) -> Result<HashMap<GenerationId, i64>> {
    by_generation!(db, generations, "SELECT generation_id, CAST(SUM(chunks) AS BIGINT) FROM index_segments")
}

/// How many vectors are kept for each of these generations, which used them last; those of which none is are left out.
pub async fn embedded(db: &Db, generations: &[GenerationId]) -> Result<HashMap<GenerationId, i64>> {
    let mut all = HashMap::new();
    for some in generations.chunks(PAGE as usize) {
        // By way of the document, which the vectors have an index of.
        let rows: Vec<(GenerationId, i64)> = on!(db, |c| async {
            let mut query = QueryBuilder::new(
                "SELECT generations.id, COUNT(*) FROM generations
                 JOIN vectors ON vectors.document_id = generations.document_id
                             AND vectors.space_id = generations.embedding_space
                 WHERE generations.id IN (",
            );
            let mut ids = query.separated(", ");
            for generation in some {
                ids.push_bind(generation);
            }
            query.push(") GROUP BY generations.id");
            query.build_query_as().fetch_all(c).await
        })?;
        all.extend(rows);
    }
    Ok(all)
}

/// The embedded index's parts of a generation, by number and size in bytes.
pub async fn parts(db: &Db, generation: GenerationId) -> Result<Vec<(i64, i64)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT part, CAST(LENGTH(data) AS BIGINT) FROM index_segments WHERE generation_id = $1 ORDER BY part"
    )
    .bind(generation)
    .fetch_all(c))?)
}

/// One part of the embedded index.
pub async fn part(db: &Db, generation: GenerationId, part: i64) -> Result<Option<Vec<u8>>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT data FROM index_segments WHERE generation_id = $1 AND part = $2"
    )
    .bind(generation)
    .bind(part)
    .fetch_optional(c))?)
}

/// How many documents answer without vectors.
pub async fn without_vectors(db: &Db) -> Result<i64> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM documents JOIN generations ON generations.id = documents.active_generation
         WHERE documents.deleted_at IS NULL AND generations.embedding_space IS NULL"
    )
    .fetch_one(c))?)
}

/// A document's file, as its row has it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct UploadRecord {
    /// The document.
    pub id: DocumentId,
    /// Where the file is in the blob store.
    pub blob_key: String,
    /// Its size in bytes.
    pub source_bytes: i64,
    /// SHA-256 of it.
    pub source_sha256: Vec<u8>,
}

/// The files of at most [`PAGE`] documents after `after`, of all workspaces.
pub async fn uploads(db: &Db, after: DocumentId) -> Result<Vec<UploadRecord>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, blob_key, COALESCE(source_bytes, 0) AS source_bytes, source_sha256 FROM documents
         WHERE deleted_at IS NULL AND blob_key IS NOT NULL AND source_sha256 IS NOT NULL AND id > $1
         ORDER BY id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(PAGE))
    .fetch_all(c))?)
}

/// What is stored of a document's file.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct BlobHolder {
    /// The document.
    pub id: DocumentId,
    /// The file that it names.
    pub blob_key: Option<String>,
    /// Deleted, or an upload that goes on: the sweeper sees to what is stored under its id.
    pub tombstone: bool,
}

/// Those of these documents that there are, deleted ones included; at most [`PAGE`].
pub async fn holders(db: &Db, documents: &[DocumentId]) -> Result<Vec<BlobHolder>> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT id, blob_key, (deleted_at IS NOT NULL) AS tombstone FROM documents WHERE id IN (",
        );
        let mut ids = query.separated(", ");
        for document in documents {
            ids.push_bind(document);
        }
        query.push(")");
        query.build_query_as().fetch_all(c).await
    })?)
}

/// Those of these keys whose files the sweeper sees to, although no document names them; at most [`PAGE`].
pub async fn loose(db: &Db, keys: &[String]) -> Result<HashSet<String>> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let found: Vec<String> = on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT blob_key FROM loose_files WHERE blob_key IN (");
        let mut listed = query.separated(", ");
        for key in keys {
            listed.push_bind(key.clone());
        }
        query.push(")");
        query.build_query_scalar().fetch_all(c).await
    })?;
    Ok(found.into_iter().collect())
}

/// What nobody owns, and the sweeper does not see either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct OrphanCounts {
    /// Passages of no generation.
    pub chunks: i64,
    /// Parts of the embedded index of no generation.
    pub segments: i64,
    /// Generations that count as answering and that no document names.
    pub generations: i64,
    /// Vectors of no document.
    pub vectors: i64,
}

impl OrphanCounts {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts what nobody owns.
pub async fn leftovers(db: &Db) -> Result<OrphanCounts> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT
             (SELECT COUNT(*) FROM chunks
              WHERE NOT EXISTS (SELECT 1 FROM generations WHERE generations.id = chunks.generation_id)
                AND NOT EXISTS (SELECT 1 FROM documents WHERE documents.id = chunks.document_id
                                  AND documents.active_generation = chunks.generation_id)) AS chunks,
             (SELECT COUNT(*) FROM index_segments
              WHERE NOT EXISTS (SELECT 1 FROM generations WHERE generations.id = index_segments.generation_id)
                AND NOT EXISTS (SELECT 1 FROM documents
                                WHERE documents.active_generation = index_segments.generation_id)) AS segments,
             (SELECT COUNT(*) FROM generations
              WHERE state = 'active' AND NOT EXISTS (
                  SELECT 1 FROM documents WHERE documents.id = generations.document_id
                    AND documents.active_generation = generations.id)) AS generations,
             (SELECT COUNT(*) FROM vectors
              WHERE NOT EXISTS (SELECT 1 FROM documents WHERE documents.id = vectors.document_id)) AS vectors"
    )
    .fetch_one(c)
    })?)
}

/// At most [`PAGE`] documents that are gone and of which vectors are kept.
pub async fn vectors_of_nobody(db: &Db) -> Result<Vec<DocumentId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT DISTINCT document_id FROM vectors
         WHERE NOT EXISTS (SELECT 1 FROM documents WHERE documents.id = vectors.document_id) LIMIT $1"
    )
    .bind(i64::from(PAGE))
    .fetch_all(c))?)
}

/// Until when some process keeps the house, if one ever did: one that works says so again and again.
pub async fn housekeeper_until(db: &Db) -> Result<Option<Timestamp>> {
    Ok(on!(db, |c| sqlx::query_scalar("SELECT held_until FROM leases WHERE name = 'sweeper'")
        .fetch_optional(c))?)
}
