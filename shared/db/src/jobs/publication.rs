//! How an attempt ends well: what it made answers from then on.

use lectern_shared::{
    clock::Timestamp,
    ids::{GenerationId, WorkspaceId},
    model::{
        Json,
        document::{SearchIndexInfo, SourceState},
        job::{JobClaim, JobState},
    },
};
use uuid::Uuid;

use super::outcome::requeue;
use crate::{
    Db, Result, Tx,
    commit::PgWrite,
    documents::{self, set_changed_epoch},
    execute, generations, on, silence, webhooks,
};

/// A finished generation, ready to answer.
#[derive(Debug)]
pub struct GenerationPublication {
    /// Under which it was made.
    pub claim: JobClaim,
    /// The generation.
    pub generation: GenerationId,
    /// Whether its bytes were admitted without any quota, which may have been set since.
    pub was_unlimited: bool,
    /// The one that answers until then. Only whoever holds the claim can change that.
    pub replaces: Option<GenerationId>,
    /// What is searchable of the document from now on.
    pub index: SearchIndexInfo,
    /// How many of its passages are in each language, by the language's number.
    pub languages: Vec<(u8, u64)>,
    /// What was learnt of the source; none when it was left alone.
    pub learnt: Option<SourceState>,
    /// When the generation that it replaces may be purged.
    pub purge_old_at: Timestamp,
}

impl GenerationPublication {
    fn chunks(&self) -> i64 {
        i64::try_from(self.index.chunks).unwrap_or(i64::MAX)
    }

    /// Whether the document answers from the passages that it answered from before, its source left alone.
    fn mended_nothing(&self) -> bool {
        self.claim.from_stored && self.replaces.is_some()
    }
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
pub async fn publish(db: &Db, publication: &GenerationPublication, now: Timestamp) -> Result<PublishOutcome> {
    let GenerationPublication { claim, .. } = publication;
    let mut tx = db.begin().await?;
    begin_epoch(&mut tx, claim.workspace_id, std::slice::from_ref(publication)).await?;
    if !answer_from(&mut tx, publication).await? {
        return requeue_outdated(tx, claim, now).await;
    }
    let Some(ended) = end_job(&mut tx, publication, now).await? else {
        return Ok(PublishOutcome::ClaimLost);
    };
    if publication.replaces.is_some() {
        execute!(tx, sqlx::query(
            "UPDATE generations SET state = 'superseded', purge_at = $2 WHERE document_id = $1 AND state = 'active'"
        )
        .bind(claim.document_id)
        .bind(publication.purge_old_at))?;
    }
    if !activate(&mut tx, publication).await? {
        let is_writable = generations::is_staging(&mut tx, claim, publication.generation).await?;
        // Else it was given up meanwhile, and what is kept of it may be gone.
        return Ok(if is_writable { PublishOutcome::Incomplete } else { PublishOutcome::ClaimLost });
    }
    if ended == JobState::Done {
        webhooks::emit_ingestion(&mut tx, claim.workspace_id, &[claim.document_id], None, now).await?;
    }
    tx.commit().await?;
    Ok(PublishOutcome::Yes)
}

/// [`publish`] for several documents of one workspace, in one transaction: most of what a publication of a small document takes is its
/// commit, and the row of the workspace, which is locked until then. False when something is in the way of any of them, or one of them
/// replaces another generation: then nothing was written, and each has to be published by itself.
pub async fn publish_together(
    db: &Db,
    publications: &[GenerationPublication],
    now: Timestamp,
) -> Result<bool> {
    let Some(GenerationPublication { claim: JobClaim { workspace_id: workspace, .. }, .. }) =
        publications.first()
    else {
        return Ok(true);
    };
    let is_first = |publication: &GenerationPublication| {
        publication.replaces.is_none() && publication.claim.workspace_id == *workspace
    };
    if !publications.iter().all(is_first) {
        return Ok(false);
    }
    let mut tx = db.begin().await?;
    begin_epoch(&mut tx, *workspace, publications).await?;
    let are_published = match &mut tx {
        Tx::Postgres(tx) => publish_all(tx, publications, now).await?,
        Tx::Sqlite(_) => publish_each(&mut tx, publications, now).await?,
    };
    if !are_published {
        return Ok(false);
    }
    let documents: Vec<_> = publications.iter().map(|publication| publication.claim.document_id).collect();
    webhooks::emit_ingestion(&mut tx, *workspace, &documents, None, now).await?;
    tx.commit().await?;
    Ok(true)
}

/// Begins the epoch in which generations answer. What is stored may have been summed up before one of them was there, for a quota that its job
/// did not know of: it is summed up anew then.
async fn begin_epoch(
    tx: &mut Tx,
    workspace: WorkspaceId,
    publications: &[GenerationPublication],
) -> Result<()> {
    let forgets_sum = publications.iter().any(|publication| publication.was_unlimited);
    documents::begin_search_epoch(tx, workspace, forgets_sum).await
}

async fn publish_each(tx: &mut Tx, publications: &[GenerationPublication], now: Timestamp) -> Result<bool> {
    for publication in publications {
        let is_published = answer_from(tx, publication).await?
            && end_job(tx, publication, now).await?.is_some()
            && activate(tx, publication).await?;
        if !is_published {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What an UPDATE of a document sets to have it answer.
macro_rules! set_answering {
    ($generation:literal, $index:literal, $languages:literal, $state:literal, $hash:literal) => {
        concat!(
            "active_generation = ",
            $generation,
            ", search_index = ",
            $index,
            ", languages = ",
            $languages,
            ", source_state = COALESCE(",
            $state,
            ", source_state), content_hash = ",
            $hash,
            ", ",
            set_changed_epoch!()
        )
    };
}

/// What an UPDATE of a job sets to end it well, or as the ingestion before it ended, if it is one that mended nothing of that.
macro_rules! set_ended {
    ($now:literal, $source:literal, $warnings:literal, $mended_nothing:literal) => {
        concat!(
            "state = CASE WHEN ",
            $mended_nothing,
            " THEN COALESCE(former_state, 'done') ELSE 'done' END, last_error = CASE WHEN ",
            $mended_nothing,
            " THEN former_error END, from_stored = (from_stored AND former_state IS NULL), former_state = NULL, former_error = NULL,
             claim_id = NULL, lease_until = NULL, outage_at = NULL, finished_at = ",
            $now,
            ", stage = 'INDEX', progress = NULL, source = COALESCE(",
            $source,
            ", source), warnings = COALESCE(",
            $warnings,
            ", warnings)"
        )
    };
}

/// Has a document answer from a generation; false when it is not any more what was claimed.
async fn answer_from(tx: &mut Tx, publication: &GenerationPublication) -> Result<bool> {
    let GenerationPublication { claim, learnt, .. } = publication;
    let rows = execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET ",
            set_answering!("$4", "$5", "$6", "$7", "$8"),
            " WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL AND revision = $3
               AND active_generation IS NOT DISTINCT FROM $9"
        ))
        .bind(claim.document_id)
        .bind(claim.workspace_id)
        .bind(claim.claimed_revision)
        .bind(publication.generation)
        .bind(Json(&publication.index))
        .bind(Json(&publication.languages))
        .bind(learnt.as_ref().map(Json))
        .bind(publication.index.content_hash.as_str())
        .bind(publication.replaces)
    )?;
    Ok(rows == 1)
}

/// Ends the job, and tells how; none when the claim is no longer held.
async fn end_job(
    tx: &mut Tx,
    publication: &GenerationPublication,
    now: Timestamp,
) -> Result<Option<JobState>> {
    let GenerationPublication { claim, learnt, .. } = publication;
    Ok(on!(tx, |c| {
        sqlx::query_scalar(concat!(
            "UPDATE jobs SET ",
            set_ended!("$3", "$4", "$5", "$6"),
            " WHERE id = $1 AND claim_id = $2 AND state = 'running' RETURNING state"
        ))
        .bind(claim.id)
        .bind(claim.claim_id)
        .bind(now)
        .bind(learnt.as_ref().map(|learnt| Json(&learnt.source)))
        .bind(learnt.as_ref().map(|learnt| Json(&learnt.warnings)))
        .bind(publication.mended_nothing())
        .fetch_optional(c)
    })?)
}

/// Ends the making of a generation whose passages are all there; false when they are not, or it was given up.
async fn activate(tx: &mut Tx, publication: &GenerationPublication) -> Result<bool> {
    let GenerationPublication { claim, .. } = publication;
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE generations SET state = 'active', chunks = $2
             WHERE id = $1 AND state = 'staging' AND claim_id = $3 AND document_id = $4
               AND (SELECT COUNT(*) FROM chunks WHERE chunks.generation_id = generations.id) = $2"
        )
        .bind(publication.generation)
        .bind(publication.chunks())
        .bind(claim.claim_id)
        .bind(claim.document_id)
    )?;
    Ok(rows == 1)
}

/// [`publish_each`] in one round trip, however many they are.
async fn publish_all(
    tx: &mut PgWrite,
    publications: &[GenerationPublication],
    now: Timestamp,
) -> Result<bool> {
    const PUBLISH: &str = concat!(
        "WITH published AS MATERIALIZED (
             SELECT * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
                 AS published (document_id, revision, generation_id, index, languages, learnt, content_hash, job_id, claim_id,
                               job_source, job_warnings, chunk_count)),
         answering AS (
             UPDATE documents SET ",
        set_answering!(
            "published.generation_id",
            "published.index",
            "published.languages",
            "published.learnt",
            "published.content_hash"
        ),
        " FROM published
             WHERE documents.id = published.document_id AND documents.workspace_id = $1 AND documents.deleted_at IS NULL
               AND documents.revision = published.revision AND documents.active_generation IS NULL
             RETURNING 1),
         ended AS (
             UPDATE jobs SET ",
        // None of them answered before, so all were read.
        set_ended!("$14", "published.job_source", "published.job_warnings", "FALSE"),
        " FROM published
             WHERE jobs.id = published.job_id AND jobs.claim_id = published.claim_id AND jobs.state = 'running'
             RETURNING 1),
         active AS (
             UPDATE generations SET state = 'active', chunks = published.chunk_count
             FROM published
             WHERE generations.id = published.generation_id AND generations.state = 'staging'
               AND generations.claim_id = published.claim_id AND generations.document_id = published.document_id
               AND (SELECT COUNT(*) FROM chunks WHERE chunks.generation_id = generations.id) = published.chunk_count
             RETURNING 1)
         SELECT (SELECT COUNT(*) FROM answering), (SELECT COUNT(*) FROM ended), (SELECT COUNT(*) FROM active)"
    );
    let Some(first) = publications.first() else { return Ok(true) };
    let column =
        |value: fn(&GenerationPublication) -> Uuid| -> Vec<Uuid> { publications.iter().map(value).collect() };
    let numbers =
        |value: fn(&GenerationPublication) -> i64| -> Vec<i64> { publications.iter().map(value).collect() };
    let learnt = |value: fn(&SourceState) -> serde_json::Result<String>| {
        let text = |publication: &GenerationPublication| publication.learnt.as_ref().map(value).transpose();
        publications.iter().map(text).collect::<serde_json::Result<Vec<Option<String>>>>()
    };
    let texts = |value: fn(&GenerationPublication) -> serde_json::Result<String>| {
        publications.iter().map(value).collect::<serde_json::Result<Vec<String>>>()
    };
    let hashes: Vec<&str> =
        publications.iter().map(|publication| publication.index.content_hash.as_str()).collect();
    let unwritable = |error: serde_json::Error| sqlx::Error::Encode(error.into());
    let published = sqlx::query_as(PUBLISH)
        .bind(first.claim.workspace_id)
        .bind(column(|publication| *publication.claim.document_id.as_uuid()))
        .bind(numbers(|publication| publication.claim.claimed_revision))
        .bind(column(|publication| *publication.generation.as_uuid()))
        .bind(texts(|publication| serde_json::to_string(&publication.index)).map_err(unwritable)?)
        .bind(texts(|publication| serde_json::to_string(&publication.languages)).map_err(unwritable)?)
        .bind(learnt(serde_json::to_string).map_err(unwritable)?)
        .bind(hashes)
        .bind(column(|publication| *publication.claim.id.as_uuid()))
        .bind(column(|publication| *publication.claim.claim_id.as_uuid()))
        .bind(learnt(|learnt| serde_json::to_string(&learnt.source)).map_err(unwritable)?)
        .bind(learnt(|learnt| serde_json::to_string(&learnt.warnings)).map_err(unwritable)?)
        .bind(numbers(GenerationPublication::chunks))
        .bind(now)
        .fetch_one(&mut **tx);
    let counts: (i64, i64, i64) = silence::answered(published).await?;
    let all = i64::try_from(publications.len()).unwrap_or(i64::MAX);
    Ok(counts == (all, all, all))
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
