//! The blobs of the embedded search index.

use lectern_shared::ids::{GenerationId, WorkspaceId};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, execute, generations::RetiredGeneration, on};

/// The most generations that one query asks for.
const FETCH: usize = 500;

/// A stored blob.
#[derive(Debug, sqlx::FromRow)]
pub struct StoredSegment {
    /// The generation that it is a part of.
    pub generation_id: GenerationId,
    /// Its number in the generation, from 0.
    pub part: i64,
    /// How many passages it holds; none when it is [known](note_damage) that it cannot be read.
    pub chunks: i64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// Adds a blob to a generation.
pub async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    generation: GenerationId,
    part: u32,
    chunks: u32,
    data: &[u8],
) -> Result<()> {
    execute!(tx, sqlx::query(
        "INSERT INTO index_segments (generation_id, part, workspace_id, chunks, data) VALUES ($1, $2, $3, $4, $5)"
    )
    .bind(generation)
    .bind(i64::from(part))
    .bind(workspace)
    .bind(i64::from(chunks))
    .bind(data))?;
    Ok(())
}

/// How many passages the blobs of a generation hold.
pub async fn count(db: &Db, generation: GenerationId) -> Result<i64> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT CAST(COALESCE(SUM(chunks), 0) AS BIGINT) FROM index_segments WHERE generation_id = $1"
    )
    .bind(generation)
    .fetch_one(c))?)
}

/// How many bytes the blobs of each of these generations have together, if they are `workspace`'s; a generation without blobs is
/// left out.
pub async fn sizes(
    db: &Db,
    workspace: WorkspaceId,
    generations: &[GenerationId],
) -> Result<Vec<(GenerationId, i64)>> {
    let mut all = Vec::new();
    for some in generations.chunks(FETCH) {
        let rows: Vec<(GenerationId, i64)> = on!(db, |c| async {
            let mut query = QueryBuilder::new(
                "SELECT generation_id, CAST(SUM(LENGTH(data)) AS BIGINT) FROM index_segments WHERE workspace_id = ",
            );
            query.push_bind(workspace).push(" AND generation_id IN (");
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
}

/// Every blob of these generations, if they are `workspace`'s.
pub async fn fetch(
    db: &Db,
    workspace: WorkspaceId,
    generations: &[GenerationId],
) -> Result<Vec<StoredSegment>> {
    let mut all = Vec::new();
    for some in generations.chunks(FETCH) {
        let rows: Vec<StoredSegment> = on!(db, |c| async {
            let mut query = QueryBuilder::new(
                "SELECT generation_id, part, chunks, data FROM index_segments WHERE workspace_id = ",
            );
            query.push_bind(workspace).push(" AND generation_id IN (");
            let mut ids = query.separated(", ");
            for generation in some {
                ids.push_bind(generation);
            }
            query.push(") ORDER BY generation_id, part");
            query.build_query_as().fetch_all(c).await
        })?;
        all.extend(rows);
    }
    Ok(all)
}

/// Notes that a blob cannot be read: it holds no passages.
pub async fn note_damage(tx: &mut Tx, generation: GenerationId, part: i64) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE index_segments SET chunks = 0 WHERE generation_id = $1 AND part = $2")
            .bind(generation)
            .bind(part)
    )?;
    Ok(())
}

/// Removes every blob of a generation.
pub async fn delete(tx: &mut Tx, retired: RetiredGeneration) -> Result<()> {
    execute!(tx, sqlx::query("DELETE FROM index_segments WHERE generation_id = $1").bind(retired.id()))?;
    Ok(())
}
