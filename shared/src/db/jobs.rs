//! Job rows. The database is the truth about work; queues elsewhere only say that there is some.
//!
//! Locks are taken in one order everywhere: user, document, job.

mod claims;
mod line;
mod place;

use uuid::Uuid;

#[cfg(test)]
pub(super) use claims::{DUE, PASSED_OVER, TAKE};
pub use claims::{DueJobs, claim, due};
pub(super) use line::BEHIND_OWN;
pub use line::admit;
#[cfg(test)]
pub(super) use line::{BEGINS_BEHIND, NEXT_BESIDES};
use place::{NONE_YET, place_in_line};

use crate::{
    clock::Timestamp,
    db::{Db, Json, Result, Tx, documents, execute, on},
    ids::{DocumentId, GenerationId, JobId, UserId},
    model::{
        document::{SearchIndexInfo, SourceState},
        job::{IngestionError, IngestionStage, JobClaim, JobKind, JobState, StageProgress},
    },
};

/// Queues a user's document: a new job, or its old one again. A job that is running goes on, and is queued again when it
/// ends, because the document's revision has risen. None when there is no such document.
pub async fn enqueue(
    tx: &mut Tx,
    user: UserId,
    document: DocumentId,
    kind: JobKind,
    max_attempts: u32,
    now: Timestamp,
) -> Result<Option<JobId>> {
    let place = line::next_place(tx, user).await?;
    let revision: Option<i64> = on!(tx, |c| {
        sqlx::query_scalar(
        "UPDATE documents SET revision = revision + 1 WHERE id = $1 AND user_id = $2 AND deleted_at IS NULL
         RETURNING revision"
    )
    .bind(document)
    .bind(user)
    .fetch_optional(c)
    })?;
    let (Some(place), Some(_)) = (place, revision) else {
        return Ok(None);
    };
    Ok(Some(insert(tx, user, document, kind, max_attempts, place, now).await?))
}

/// Queues a document that this transaction has made, for the first time: nobody else knows of it, so it is not looked at. None when
/// its owner is gone.
pub async fn enqueue_new(
    tx: &mut Tx,
    user: UserId,
    document: DocumentId,
    kind: JobKind,
    max_attempts: u32,
    now: Timestamp,
) -> Result<Option<JobId>> {
    match line::next_place(tx, user).await? {
        Some(place) => Ok(Some(insert(tx, user, document, kind, max_attempts, place, now).await?)),
        None => Ok(None),
    }
}

async fn insert(
    tx: &mut Tx,
    user: UserId,
    document: DocumentId,
    kind: JobKind,
    max_attempts: u32,
    place: i64,
    now: Timestamp,
) -> Result<JobId> {
    Ok(on!(tx, |c| {
        sqlx::query_scalar(
        "INSERT INTO jobs (id, kind, user_id, document_id, state, attempts, max_attempts, run_at, fair_at, warnings,
                           queued_at, from_stored)
         VALUES ($1, $2, $3, $4, 'queued', 0, $5, $6, $7, '[]', $6, FALSE)
         ON CONFLICT (document_id, kind) DO UPDATE SET
             state = CASE WHEN jobs.state = 'running' THEN jobs.state ELSE 'queued' END,
             attempts = CASE WHEN jobs.state = 'running' THEN jobs.attempts ELSE 0 END,
             max_attempts = excluded.max_attempts,
             run_at = excluded.run_at,
             fair_at = excluded.fair_at,
             stage = CASE WHEN jobs.state = 'running' THEN jobs.stage END,
             progress = CASE WHEN jobs.state = 'running' THEN jobs.progress END,
             last_error = NULL,
             warnings = '[]',
             queued_at = excluded.queued_at,
             from_stored = excluded.from_stored,
             trace_parent = NULL,
             started_at = CASE WHEN jobs.state = 'running' THEN jobs.started_at END,
             finished_at = NULL
         RETURNING id"
    )
    .bind(JobId::generate())
    .bind(kind)
    .bind(user)
    .bind(document)
    .bind(i64::from(max_attempts))
    .bind(now)
    .bind(place)
    .fetch_one(c)
    })?)
}

/// Notes the span from which a job was queued, as W3C's `traceparent`.
pub async fn set_trace_parent(tx: &mut Tx, job: JobId, parent: &str) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE jobs SET trace_parent = $2 WHERE id = $1").bind(job).bind(parent))?;
    Ok(())
}

/// Which searchable documents are indexed again from their stored passages.
#[derive(Clone, Copy, Debug)]
pub enum ReindexTarget {
    /// All of them.
    All,
    /// Those whose vectors are not of this embedding space, or that have none.
    OutsideSpace(Uuid),
    /// Those without vectors that were made before this, unless their last ingestion failed.
    WithoutVectors(Timestamp),
}

macro_rules! enqueue_again {
    ($which:literal) => {
        concat!(
            "UPDATE jobs SET state = 'queued', from_stored = TRUE, trace_parent = NULL, attempts = 0, run_at = $1, queued_at = $1,
                             fair_at = ",
            place_in_line!("place.number + (SELECT fair_at FROM queue_head)"),
            ", started_at = NULL, finished_at = NULL, last_error = NULL, stage = NULL, progress = NULL
             FROM (SELECT jobs.id AS job_id,
                          ROW_NUMBER() OVER (PARTITION BY documents.user_id ORDER BY documents.id) AS number
                   FROM generations
                   JOIN documents ON documents.id = generations.document_id
                                 AND documents.active_generation = generations.id
                   JOIN jobs ON jobs.document_id = documents.id
                   WHERE generations.state = 'active' AND documents.deleted_at IS NULL AND ",
            $which,
            ") AS place WHERE jobs.id = place.job_id AND jobs.state NOT IN ('queued', 'running')"
        )
    };
}

/// Queues searchable documents of every user to be indexed again from their stored passages, except those that are queued or
/// running already; how many there were. Each user's documents are a second line of the user's: they take turns with what the
/// user adds.
pub async fn enqueue_again(tx: &mut Tx, which: ReindexTarget, now: Timestamp) -> Result<u64> {
    match which {
        ReindexTarget::All => execute!(tx, sqlx::query(enqueue_again!("1 = 1")).bind(now)),
        ReindexTarget::OutsideSpace(space) => execute!(
            tx,
            sqlx::query(enqueue_again!(
                "(generations.embedding_space IS NULL OR generations.embedding_space <> $2)"
            ))
            .bind(now)
            .bind(space)
        ),
        ReindexTarget::WithoutVectors(before) => execute!(
            tx,
            sqlx::query(enqueue_again!(
                "generations.embedding_space IS NULL AND generations.created_at < $2 AND jobs.state = 'done'"
            ))
            .bind(now)
            .bind(before)
        ),
    }
}

/// Whether [`enqueue_again`] would find documents without vectors that were made before this.
pub async fn any_without_vectors(db: &Db, before: Timestamp) -> Result<bool> {
    let found: Option<Uuid> = on!(db, |c| {
        sqlx::query_scalar(
        "SELECT generations.id FROM generations
         JOIN documents ON documents.id = generations.document_id AND documents.active_generation = generations.id
         JOIN jobs ON jobs.document_id = documents.id
         WHERE generations.state = 'active' AND generations.embedding_space IS NULL AND generations.created_at < $1
           AND documents.deleted_at IS NULL AND jobs.state = 'done' LIMIT 1"
    )
    .bind(before)
    .fetch_optional(c)
    })?;
    Ok(found.is_some())
}

/// What a worker tells of a job while it holds it.
#[derive(Debug, Clone, Default)]
pub struct JobProgress {
    /// What it is doing.
    pub stage: Option<IngestionStage>,
    /// How far that is.
    pub progress: Option<StageProgress>,
}

/// Extends a claim and notes how far it is. False when the claim is no longer held.
pub async fn renew(
    tx: &mut Tx,
    claim: &JobClaim,
    lease_until: Timestamp,
    report: &JobProgress,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE jobs SET lease_until = $3, stage = $4, progress = $5
             WHERE id = $1 AND claim_id = $2 AND state = 'running'",
        )
        .bind(claim.id)
        .bind(claim.claim_id)
        .bind(lease_until)
        .bind(report.stage)
        .bind(report.progress.as_ref().map(Json))
    )?;
    Ok(rows == 1)
}

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
    Ok(on!(tx, |c| sqlx::query_scalar(
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
    .fetch_optional(c))?)
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
    documents::bump_search_epoch(&mut tx, claim.user_id).await?;
    let revision: Option<i64> = on!(tx, |c| {
        sqlx::query_scalar(
        "UPDATE documents SET revision = revision WHERE id = $1 AND user_id = $2 AND deleted_at IS NULL RETURNING revision"
    )
    .bind(claim.document_id)
    .bind(claim.user_id)
    .fetch_optional(c)
    })?;
    let Some(revision) = revision else {
        return Ok(PublishOutcome::ClaimLost);
    };
    if revision != claim.claimed_revision {
        let state = requeue(&mut tx, claim, now).await?;
        tx.commit().await?;
        return Ok(if state.is_some() { PublishOutcome::Outdated } else { PublishOutcome::ClaimLost });
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
    execute!(tx, sqlx::query(
        "UPDATE generations SET state = 'superseded', purge_at = $2 WHERE document_id = $1 AND state = 'active'"
    )
    .bind(claim.document_id)
    .bind(publication.purge_old_at))?;
    let activated = execute!(
        tx,
        sqlx::query(
            "UPDATE generations SET state = 'active', chunks = $2
             WHERE id = $1 AND state = 'staging' AND claim_id = $3 AND document_id = $4"
        )
        .bind(publication.generation)
        .bind(i64::try_from(publication.index.chunks).unwrap_or(i64::MAX))
        .bind(claim.claim_id)
        .bind(claim.document_id)
    )?;
    if activated != 1 {
        // It was given up meanwhile, and what is kept of it may be gone.
        return Ok(PublishOutcome::ClaimLost);
    }
    execute!(
        tx,
        sqlx::query(
            "UPDATE documents SET active_generation = $2, search_index = $3, languages = $4,
                                  source_state = COALESCE($5, source_state)
             WHERE id = $1"
        )
        .bind(claim.document_id)
        .bind(publication.generation)
        .bind(Json(publication.index))
        .bind(Json(publication.languages))
        .bind(publication.learnt.map(Json))
    )?;
    tx.commit().await?;
    Ok(PublishOutcome::Yes)
}

/// Stops a user's job, queued or running; false when there is nothing to stop.
pub async fn cancel(tx: &mut Tx, user: UserId, document: DocumentId, now: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE jobs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = $3
             WHERE document_id = $1 AND user_id = $2 AND state IN ('queued', 'running')",
        )
        .bind(document)
        .bind(user)
        .bind(now)
    )?;
    Ok(rows > 0)
}

/// Whether nothing of a document is searchable, and nothing is under way to change that.
pub async fn ended_unpublished(tx: &mut Tx, document: DocumentId) -> Result<bool> {
    let found: Option<JobId> = on!(tx, |c| {
        sqlx::query_scalar(
        "SELECT jobs.id FROM jobs JOIN documents ON documents.id = jobs.document_id
         WHERE jobs.document_id = $1 AND jobs.state IN ('dead', 'cancelled') AND documents.active_generation IS NULL"
    )
    .bind(document)
    .fetch_optional(c)
    })?;
    Ok(found.is_some())
}

/// A job whose worker went away.
#[derive(Debug, sqlx::FromRow)]
pub struct ExpiredJob {
    /// The job.
    pub id: JobId,
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
    Ok(on!(tx, |c| {
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
         WHERE state = 'running' AND lease_until < $1 RETURNING id, state, attempts"
    )
    .bind(before)
    .bind(now)
    .bind(Json(error))
    .fetch_all(c)
    })?)
}

/// How much work there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct QueueDepth {
    /// Jobs that a worker could take now.
    pub due: i64,
    /// When the oldest of them became due.
    pub oldest_due: Option<Timestamp>,
    /// Jobs that wait for a later moment.
    pub waiting: i64,
    /// Jobs that a worker holds.
    pub running: i64,
    /// Jobs that ended badly.
    pub dead: i64,
}

/// Counts the jobs by what they wait for.
pub async fn depth(db: &Db, now: Timestamp) -> Result<QueueDepth> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT
             (SELECT COUNT(*) FROM jobs WHERE state = 'queued' AND run_at <= $1) AS due,
             (SELECT MIN(run_at) FROM jobs WHERE state = 'queued' AND run_at <= $1) AS oldest_due,
             (SELECT COUNT(*) FROM jobs WHERE state = 'queued' AND run_at > $1) AS waiting,
             (SELECT COUNT(*) FROM jobs WHERE state = 'running') AS running,
             (SELECT COUNT(*) FROM jobs WHERE state = 'dead') AS dead"
    )
    .bind(now)
    .fetch_one(c))?)
}
