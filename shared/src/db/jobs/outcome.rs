//! How an attempt ends: its generation answers, it failed, it is given back, its owner stops it, or its worker went away.

use super::{JobProgress, place::NONE_YET};
use crate::{
    clock::Timestamp,
    db::{
        Db, Json, Result, Tx,
        documents::{self, set_changed_epoch},
        execute, generations, on, webhooks,
    },
    ids::{DocumentId, GenerationId, JobId, WorkspaceId},
    model::{
        document::{SearchIndexInfo, SourceState},
        job::{IngestionError, JobClaim, JobState},
    },
};

/// Gives a job back untried: the attempt does not count, and it is due at once, at the place that it had. False when the claim is no longer held.
pub async fn release(tx: &mut Tx, claim: &JobClaim, now: Timestamp) -> Result<bool> {
    requeue_uncounted(tx, claim, now, None).await
}

/// Gives a job back that an outage stopped: the attempt does not count, and it is due at `run_at`. False when the claim is no
/// longer held.
pub async fn postpone(
    tx: &mut Tx,
    claim: &JobClaim,
    run_at: Timestamp,
    reason: &IngestionError,
) -> Result<bool> {
    requeue_uncounted(tx, claim, run_at, Some(reason)).await
}

async fn requeue_uncounted(
    tx: &mut Tx,
    claim: &JobClaim,
    run_at: Timestamp,
    reason: Option<&IngestionError>,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE jobs SET state = 'queued', claim_id = NULL, lease_until = NULL, run_at = $3,
                             fair_at = COALESCE($5, fair_at),
                             attempts = CASE WHEN claimed_revision = (
                                 SELECT revision FROM documents WHERE documents.id = jobs.document_id)
                                 THEN attempts - 1 ELSE 0 END,
                             last_error = COALESCE($4, last_error), stage = NULL, progress = NULL
             WHERE id = $1 AND claim_id = $2 AND state = 'running'",
        )
        .bind(claim.id)
        .bind(claim.claim_id)
        .bind(run_at)
        .bind(reason.map(Json))
        .bind(reason.map(|_| NONE_YET))
    )?;
    Ok(rows == 1)
}

/// Notes a failed attempt: queued again for `retry_at`, when it gets another place, or dead when that is none. A document that
/// changed meanwhile is queued afresh instead. Returns the job's new state; none when the claim is no longer held.
pub async fn fail(
    tx: &mut Tx,
    claim: &JobClaim,
    error: &IngestionError,
    retry_at: Option<Timestamp>,
    report: &JobProgress,
    now: Timestamp,
) -> Result<Option<JobState>> {
    // In the order of locks: the document first.
    let revision: Option<i64> = on!(tx, |c| sqlx::query_scalar(
        "UPDATE documents SET revision = revision WHERE id = $1 AND deleted_at IS NULL RETURNING revision"
    )
    .bind(claim.document_id)
    .fetch_optional(c))?;
    if revision.is_some_and(|revision| revision != claim.claimed_revision) {
        return requeue(tx, claim, now).await;
    }
    let state: Option<JobState> = on!(tx, |c| sqlx::query_scalar(
        "UPDATE jobs SET state = CASE WHEN $3 IS NULL THEN 'dead' ELSE 'queued' END,
                         run_at = COALESCE($3, run_at),
                         fair_at = CASE WHEN $3 IS NULL THEN fair_at ELSE $8 END,
                         finished_at = CASE WHEN $3 IS NULL THEN $4 END,
                         last_error = $5, stage = $6, progress = $7, claim_id = NULL, lease_until = NULL
         WHERE id = $1 AND claim_id = $2 AND state = 'running' RETURNING state"
    )
    .bind(claim.id)
    .bind(claim.claim_id)
    .bind(retry_at)
    .bind(now)
    .bind(Json(error))
    .bind(report.stage)
    .bind(report.progress.as_ref().map(Json))
    .bind(NONE_YET)
    .fetch_optional(c))?;
    if state == Some(JobState::Dead) {
        webhooks::emit_ingestion(tx, claim.workspace_id, claim.document_id, Some(error), now).await?;
    }
    Ok(state)
}

async fn requeue(tx: &mut Tx, claim: &JobClaim, now: Timestamp) -> Result<Option<JobState>> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "UPDATE jobs SET state = 'queued', run_at = $3, attempts = 0, claim_id = NULL, lease_until = NULL,
                         stage = NULL, progress = NULL
         WHERE id = $1 AND claim_id = $2 AND state = 'running' RETURNING state"
    )
    .bind(claim.id)
    .bind(claim.claim_id)
    .bind(now)
    .fetch_optional(c))?)
}

/// A finished generation, ready to answer.
#[derive(Debug)]
pub struct GenerationPublication<'a> {
    /// The generation.
    pub generation: GenerationId,
    /// The one that answers until then. Only whoever holds the claim can change that.
    pub replaces: Option<GenerationId>,
    /// What is searchable of the document from now on.
    pub index: &'a SearchIndexInfo,
    /// How many of its passages are in each language, by the language's number.
    pub languages: &'a [(u8, u64)],
    /// What was learnt of the source; none when it was left alone.
    pub learnt: Option<&'a SourceState>,
    /// When the generation that it replaces may be purged.
    pub purge_old_at: Timestamp,
}

/// How publishing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The generation answers from now on.
    Yes,
    /// The document changed while it was ingested; its job is queued again.
    Outdated,
    /// Not as many passages are stored as there should be; nothing was written.
    Incomplete,
    /// The claim is no longer held; nothing was written.
    ClaimLost,
}

/// Makes a generation the one that answers, and ends its job, in one step.
pub async fn publish(
    db: &Db,
    claim: &JobClaim,
    publication: &GenerationPublication<'_>,
    now: Timestamp,
) -> Result<PublishOutcome> {
    let mut tx = db.begin().await?;
    documents::bump_search_epoch(&mut tx, claim.workspace_id).await?;
    if !answer_from(&mut tx, claim, publication).await? {
        return requeue_outdated(tx, claim, now).await;
    }
    let ended: Option<JobId> = on!(tx, |c| {
        sqlx::query_scalar(
        "UPDATE jobs SET state = 'done', claim_id = NULL, lease_until = NULL, finished_at = $3, last_error = NULL,
                         stage = 'INDEX', progress = NULL, source = COALESCE($4, source),
                         warnings = COALESCE($5, warnings)
         WHERE id = $1 AND claim_id = $2 AND state = 'running' RETURNING id"
    )
    .bind(claim.id)
    .bind(claim.claim_id)
    .bind(now)
    .bind(publication.learnt.map(|learnt| Json(&learnt.source)))
    .bind(publication.learnt.map(|learnt| Json(&learnt.warnings)))
    .fetch_optional(c)
    })?;
    if ended.is_none() {
        return Ok(PublishOutcome::ClaimLost);
    }
    if publication.replaces.is_some() {
        execute!(tx, sqlx::query(
            "UPDATE generations SET state = 'superseded', purge_at = $2 WHERE document_id = $1 AND state = 'active'"
        )
        .bind(claim.document_id)
        .bind(publication.purge_old_at))?;
    }
    if !activate(&mut tx, claim, publication).await? {
        let is_writable = generations::is_staging(&mut tx, claim, publication.generation).await?;
        // Else it was given up meanwhile, and what is kept of it may be gone.
        return Ok(if is_writable { PublishOutcome::Incomplete } else { PublishOutcome::ClaimLost });
    }
    webhooks::emit_ingestion(&mut tx, claim.workspace_id, claim.document_id, None, now).await?;
    tx.commit().await?;
    Ok(PublishOutcome::Yes)
}

/// Has a document answer from a generation; false when it is not any more what was claimed.
async fn answer_from(tx: &mut Tx, claim: &JobClaim, publication: &GenerationPublication<'_>) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET active_generation = $4, search_index = $5, languages = $6,
                                      source_state = COALESCE($7, source_state), content_hash = $8, ",
            set_changed_epoch!(),
            " WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL AND revision = $3
               AND active_generation IS NOT DISTINCT FROM $9"
        ))
        .bind(claim.document_id)
        .bind(claim.workspace_id)
        .bind(claim.claimed_revision)
        .bind(publication.generation)
        .bind(Json(publication.index))
        .bind(Json(publication.languages))
        .bind(publication.learnt.map(Json))
        .bind(publication.index.content_hash.as_str())
        .bind(publication.replaces)
    )?;
    Ok(rows == 1)
}

/// Ends the making of a generation whose passages are all there; false when they are not, or it was given up.
async fn activate(tx: &mut Tx, claim: &JobClaim, publication: &GenerationPublication<'_>) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE generations SET state = 'active', chunks = $2
             WHERE id = $1 AND state = 'staging' AND claim_id = $3 AND document_id = $4
               AND (SELECT COUNT(*) FROM chunks WHERE chunks.generation_id = generations.id) = $2"
        )
        .bind(publication.generation)
        .bind(i64::try_from(publication.index.chunks).unwrap_or(i64::MAX))
        .bind(claim.claim_id)
        .bind(claim.document_id)
    )?;
    Ok(rows == 1)
}

/// Queues the job of a document again that changed meanwhile, if it is there still.
async fn requeue_outdated(mut tx: Tx, claim: &JobClaim, now: Timestamp) -> Result<PublishOutcome> {
    let revision: Option<i64> = on!(tx, |c| {
        sqlx::query_scalar(
        "UPDATE documents SET revision = revision WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL RETURNING revision"
    )
    .bind(claim.document_id)
    .bind(claim.workspace_id)
    .fetch_optional(c)
    })?;
    if revision.is_none_or(|revision| revision == claim.claimed_revision) {
        return Ok(PublishOutcome::ClaimLost);
    }
    let state = requeue(&mut tx, claim, now).await?;
    tx.commit().await?;
    Ok(if state.is_some() { PublishOutcome::Outdated } else { PublishOutcome::ClaimLost })
}

/// Stops a workspace's job, queued or running; false when there is nothing to stop.
pub async fn cancel(
    tx: &mut Tx,
    workspace: WorkspaceId,
    document: DocumentId,
    now: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE jobs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = $3
             WHERE document_id = $1 AND workspace_id = $2 AND state IN ('queued', 'running')",
        )
        .bind(document)
        .bind(workspace)
        .bind(now)
    )?;
    Ok(rows > 0)
}

/// A job whose worker went away.
#[derive(Debug, sqlx::FromRow)]
pub struct ExpiredJob {
    /// The job.
    pub id: JobId,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// The document that it is about.
    pub document_id: DocumentId,
    /// What became of it.
    pub state: JobState,
    /// Attempts so far.
    pub attempts: i64,
}

/// Takes jobs from workers whose lease ran out before `before`: queued again, or dead when no attempt is left. A document
/// that changed meanwhile starts afresh.
pub async fn expire_leases(
    tx: &mut Tx,
    before: Timestamp,
    now: Timestamp,
    error: &IngestionError,
) -> Result<Vec<ExpiredJob>> {
    // In the order of locks, and so that a change of a document which is about to be committed is seen below.
    execute!(
        tx,
        sqlx::query(
            "UPDATE documents SET revision = revision
             WHERE id IN (SELECT document_id FROM jobs WHERE state = 'running' AND lease_until < $1)"
        )
        .bind(before)
    )?;
    let expired: Vec<ExpiredJob> = on!(tx, |c| {
        sqlx::query_as(
        "UPDATE jobs SET
             state = CASE WHEN attempts >= max_attempts AND claimed_revision = (
                 SELECT revision FROM documents WHERE documents.id = jobs.document_id) THEN 'dead' ELSE 'queued' END,
             finished_at = CASE WHEN attempts >= max_attempts AND claimed_revision = (
                 SELECT revision FROM documents WHERE documents.id = jobs.document_id) THEN $2 END,
             attempts = CASE WHEN claimed_revision = (
                 SELECT revision FROM documents WHERE documents.id = jobs.document_id) THEN attempts ELSE 0 END,
             last_error = CASE WHEN claimed_revision = (
                 SELECT revision FROM documents WHERE documents.id = jobs.document_id) THEN $3 END,
             run_at = $2, claim_id = NULL, lease_until = NULL
         WHERE state = 'running' AND lease_until < $1 RETURNING id, workspace_id, document_id, state, attempts"
    )
    .bind(before)
    .bind(now)
    .bind(Json(error))
    .fetch_all(c)
    })?;
    for job in expired.iter().filter(|job| job.state == JobState::Dead) {
        webhooks::emit_ingestion(tx, job.workspace_id, job.document_id, Some(error), now).await?;
    }
    Ok(expired)
}
