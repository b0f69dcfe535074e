//! Generations: complete, immutable ingestions of a document. One is active, at most; the others are being made, or wait
//! to be purged. What destroys anything of one asks for a [`RetiredGeneration`].

use std::collections::HashSet;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::{job::JobClaim, page::PdfEngineName},
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{Db, Result, Tx, execute, on, receipts};

/// A generation that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewGeneration {
    /// Its id.
    pub id: GenerationId,
    /// The embedding space of its vectors, if it gets any.
    pub space: Option<Uuid>,
    /// What it takes of its owner's storage: see [`storage`](crate::storage).
    pub stored_bytes: u64,
    /// What read its source, if that is a PDF.
    pub engine: Option<PdfEngineName>,
}

/// Begins a generation under a claim, with vectors in `space` or without any. False when the claim is no longer held: nothing
/// was written then.
pub async fn begin(tx: &mut Tx, claim: &JobClaim, new: NewGeneration, now: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "INSERT INTO generations
                 (id, workspace_id, document_id, claim_id, state, embedding_space, chunks, created_at, removals,
                  stored_bytes, engine)
             SELECT $1, workspace_id, document_id, claim_id, 'staging', $5, 0, $4, 0, $6, $7
             FROM jobs WHERE id = $2 AND claim_id = $3 AND state = 'running'",
        )
        .bind(new.id)
        .bind(claim.id)
        .bind(claim.claim_id)
        .bind(now)
        .bind(new.space)
        .bind(i64::try_from(new.stored_bytes).unwrap_or(i64::MAX))
        .bind(new.engine)
    )?;
    Ok(rows == 1)
}

/// Whether rows may still be added to a generation: it is being made, and its claim is held. Inside the transaction that
/// adds them, this is what keeps a worker that was given up from writing.
pub async fn may_write(tx: &mut Tx, claim: &JobClaim, id: GenerationId) -> Result<bool> {
    let found: Option<i64> = on!(tx, |c| {
        sqlx::query_scalar(
        "UPDATE generations SET chunks = chunks WHERE id = $1 AND state = 'staging' AND claim_id = $3
           AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = $2 AND jobs.claim_id = $3 AND jobs.state = 'running')
         RETURNING chunks"
    )
    .bind(id)
    .bind(claim.id)
    .bind(claim.claim_id)
    .fetch_optional(c)
    })?;
    Ok(found.is_some())
}

/// Whether a generation is being made under a claim.
pub(super) async fn is_staging(tx: &mut Tx, claim: &JobClaim, id: GenerationId) -> Result<bool> {
    let found: Option<GenerationId> = on!(tx, |c| sqlx::query_scalar(
        "SELECT id FROM generations WHERE id = $1 AND state = 'staging' AND claim_id = $2"
    )
    .bind(id)
    .bind(claim.claim_id)
    .fetch_optional(c))?;
    Ok(found.is_some())
}

/// Proof that a generation does not answer and never will again, so that whatever is kept of it may be destroyed. Only the
/// functions of this file make one, of what the store said: no document names it, its state is one from which none leads back, and
/// one without a row cannot be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct RetiredGeneration {
    id: GenerationId,
    workspace_id: WorkspaceId,
}

impl RetiredGeneration {
    /// The generation.
    pub fn id(&self) -> GenerationId {
        self.id
    }

    /// Its owner.
    pub fn workspace_id(&self) -> WorkspaceId {
        self.workspace_id
    }

    /// What a test of an index without rows says of itself.
    #[cfg(any(test, feature = "testing"))]
    pub fn assumed(workspace_id: WorkspaceId, id: GenerationId) -> Self {
        Self { id, workspace_id }
    }
}

/// A generation whose time to be removed has come.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct PurgeableGeneration {
    /// The generation.
    #[sqlx(flatten)]
    pub retired: RetiredGeneration,
    /// Its document.
    pub document_id: DocumentId,
    /// How often its entries were removed from the index already.
    pub removals: i64,
}

/// Gives up generations whose claim is not their job's current one; they may be purged from `purge_at`. Returns how many. What they were
/// going to store counts no more: see [`storage`](crate::storage).
pub async fn abandon(tx: &mut Tx, purge_at: Timestamp) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE generations SET state = 'removing', purge_at = $1, stored_bytes = 0
             WHERE state = 'staging' AND NOT EXISTS (
                 SELECT 1 FROM jobs WHERE jobs.document_id = generations.document_id
                   AND jobs.claim_id = generations.claim_id AND jobs.state = 'running')",
        )
        .bind(purge_at)
    )
}

/// Gives up the generation that was being written under a claim, for good, so that it may be removed at once. None when it
/// answers, or answered until a moment ago: then it was published, whatever its writer believes.
pub async fn retire(
    tx: &mut Tx,
    claim: &JobClaim,
    id: GenerationId,
    purge_at: Timestamp,
) -> Result<Option<RetiredGeneration>> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE generations SET state = 'removing', purge_at = $3, stored_bytes = 0
             WHERE id = $1 AND claim_id = $2 AND state = 'staging'"
        )
        .bind(id)
        .bind(claim.claim_id)
        .bind(purge_at)
    )?;
    // Asked after the update, which waits for whoever is about to publish it.
    let answers: bool = on!(tx, |c| {
        sqlx::query_scalar(
        "SELECT (EXISTS (SELECT 1 FROM generations WHERE id = $1 AND state <> 'removing')
              OR EXISTS (SELECT 1 FROM documents WHERE id = $2 AND active_generation = $1 AND deleted_at IS NULL))"
    )
    .bind(id)
    .bind(claim.document_id)
    .fetch_one(c)
    })?;
    Ok((!answers).then_some(RetiredGeneration { id, workspace_id: claim.workspace_id }))
}

/// Those of some generations, each with its workspace, of which no row is left: they were purged, or a crash took back that they had begun.
/// Their index entries must have been seen before this is asked, since a generation's row is there before its first entry.
pub async fn unknown(db: &Db, generations: &[(WorkspaceId, GenerationId)]) -> Result<Vec<RetiredGeneration>> {
    if generations.is_empty() {
        return Ok(Vec::new());
    }
    let known: Vec<GenerationId> = on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT id FROM generations WHERE id IN (");
        let mut listed = query.separated(", ");
        for (_, id) in generations {
            listed.push_bind(*id);
        }
        query.push(")").build_query_scalar().fetch_all(c).await
    })?;
    let known: HashSet<GenerationId> = known.into_iter().collect();
    let unknown = generations.iter().filter(|(_, id)| !known.contains(id));
    Ok(unknown.map(|(workspace_id, id)| RetiredGeneration { id: *id, workspace_id: *workspace_id }).collect())
}

/// Generations whose time has come, oldest first.
pub async fn purgeable(db: &Db, now: Timestamp, limit: u32) -> Result<Vec<PurgeableGeneration>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT id, workspace_id, document_id, removals FROM generations
         WHERE purge_at IS NOT NULL AND purge_at <= $1 AND state IN ('superseded', 'removing')
           AND NOT EXISTS (SELECT 1 FROM documents WHERE documents.id = generations.document_id
                             AND documents.active_generation = generations.id AND documents.deleted_at IS NULL)
         ORDER BY purge_at LIMIT $2"
    )
    .bind(now)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// Whether somebody is told of the removal of a generation, and how many entries the index holds of it is not noted yet.
pub async fn wants_entries(db: &Db, retired: RetiredGeneration) -> Result<bool> {
    let wanted: Option<GenerationId> = on!(db, |c| sqlx::query_scalar(
        "SELECT g.id FROM generations g JOIN deletion_receipts r ON r.document_id = g.document_id
         WHERE g.id = $1 AND g.removed_entries IS NULL"
    )
    .bind(retired.id())
    .fetch_optional(c))?;
    Ok(wanted.is_some())
}

/// Notes how many entries of a generation the index held before their removal began; what was noted first stays.
pub async fn note_entries(tx: &mut Tx, retired: RetiredGeneration, entries: u64) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE generations SET removed_entries = $2 WHERE id = $1 AND removed_entries IS NULL")
            .bind(retired.id())
            .bind(i64::try_from(entries).unwrap_or(i64::MAX))
    )?;
    Ok(())
}

/// Notes that a generation's entries were removed from the index, and that they are to be removed once more at `again_at`,
/// because a writer that was given up may still have added some.
pub async fn remove_again(tx: &mut Tx, retired: RetiredGeneration, again_at: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE generations SET removals = removals + 1, purge_at = $2 WHERE id = $1 AND state <> 'active'"
        )
        .bind(retired.id)
        .bind(again_at)
    )?;
    Ok(())
}

/// Forgets a generation whose index entries are gone. False while it still has chunks or pages: somebody else is removing them.
pub async fn delete(tx: &mut Tx, retired: RetiredGeneration) -> Result<bool> {
    let forgotten: Option<(DocumentId, Option<i64>)> = on!(tx, |c| sqlx::query_as(
        "DELETE FROM generations WHERE id = $1 AND state <> 'active'
           AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.generation_id = generations.id)
           AND NOT EXISTS (SELECT 1 FROM pages WHERE pages.generation_id = generations.id)
         RETURNING document_id, removed_entries"
    )
    .bind(retired.id)
    .fetch_optional(c))?;
    if let Some((document, Some(entries))) = forgotten {
        receipts::add_entries(tx, document, entries).await?;
    }
    Ok(forgotten.is_some())
}
