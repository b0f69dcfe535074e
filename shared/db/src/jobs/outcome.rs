//! How an attempt ends whose generation does not answer: it failed, it is given back, its owner stops it, or its worker went away.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, JobId, WorkspaceId},
    model::{
        Json,
        job::{IngestionError, JobClaim, JobState},
    },
};

use super::{JobProgress, place::NONE_YET};
use crate::{Result, Tx, execute, on, webhooks};

/// Gives a job back untried: the attempt does not count, and it is due at once, at the place that it had. False when the claim is no longer held.
pub async fn release(tx: &mut Tx, claim: &JobClaim, now: Timestamp) -> Result<bool> {
    requeue_uncounted(tx, claim, now, None).await
}

/// Why a job is given back, and when that was.
type OutageNotice<'a> = (&'a IngestionError, Timestamp);

/// Gives a job back that an outage stopped: the attempt does not count, and it is due at `run_at`. It is noted since when that goes
/// on. False when the claim is no longer held.
pub async fn postpone(
    tx: &mut Tx,
    claim: &JobClaim,
    run_at: Timestamp,
    reason: &IngestionError,
    now: Timestamp,
) -> Result<bool> {
    requeue_uncounted(tx, claim, run_at, Some((reason, now))).await
}

async fn requeue_uncounted(
    tx: &mut Tx,
    claim: &JobClaim,
    run_at: Timestamp,
    outage: Option<OutageNotice<'_>>,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE jobs SET state = 'queued', claim_id = NULL, lease_until = NULL, run_at = $3,
                             fair_at = COALESCE($5, fair_at),
                             attempts = CASE WHEN claimed_revision = (
                                 SELECT revision FROM documents WHERE documents.id = jobs.document_id)
                                 THEN attempts - 1 ELSE 0 END,
                             last_error = COALESCE($4, last_error), stage = NULL, progress = NULL,
                             outage_at = COALESCE(outage_at, $6)
             WHERE id = $1 AND claim_id = $2 AND state = 'running'",
        )
        .bind(claim.id)
        .bind(claim.claim_id)
        .bind(run_at)
        .bind(outage.map(|(reason, _)| Json(reason)))
        .bind(outage.map(|_| NONE_YET))
        .bind(outage.map(|(_, now)| now))
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
        webhooks::emit_ingestion(tx, claim.workspace_id, &[claim.document_id], Some(error), now).await?;
    }
    Ok(state)
}

pub(super) async fn requeue(tx: &mut Tx, claim: &JobClaim, now: Timestamp) -> Result<Option<JobState>> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "UPDATE jobs SET state = 'queued', run_at = $3, attempts = 0, claim_id = NULL, lease_until = NULL,
                         stage = NULL, progress = NULL, outage_at = NULL
         WHERE id = $1 AND claim_id = $2 AND state = 'running' RETURNING state"
    )
    .bind(claim.id)
    .bind(claim.claim_id)
    .bind(now)
    .fetch_optional(c))?)
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
        webhooks::emit_ingestion(tx, job.workspace_id, &[job.document_id], Some(error), now).await?;
    }
    Ok(expired)
}
