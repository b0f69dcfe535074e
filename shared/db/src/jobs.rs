//! Job rows. The database is the truth about work; queues elsewhere only say that there is some.
//!
//! Locks are taken in one order everywhere: workspace, document, job.

mod arrival;
mod claims;
mod line;
mod outcome;
mod place;
mod publication;

use uuid::Uuid;

pub use arrival::store_new;
pub use claims::{ClaimedJobs, DueJobs, claim, claim_undisputed, due};
#[cfg(test)]
pub(super) use claims::{DUE, PASSED_OVER, TAKE, TAKE_UNDISPUTED};
use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, JobId, WorkspaceId},
    model::{
        Json,
        document::Document,
        job::{IngestionStage, JobClaim, JobKind, QueueDepth, StageProgress},
        page::PdfEngineName,
    },
};
pub use line::admit;
#[cfg(test)]
pub(super) use line::{BEGINS_BEHIND, NEXT_BESIDES};
pub(super) use line::{BEHIND_OWN, still_queued};
use line::{LinePlace, note_number};
pub use outcome::{ExpiredJob, cancel, expire_leases, fail, postpone, release};
use place::place_in_line;
pub use publication::{GenerationPublication, PublishOutcome, publish, publish_together};
use sqlx::QueryBuilder;

use crate::{
    Db, Result, Tx,
    documents::select::select_document,
    execute, on,
    storage::{self, OverQuota, StorageDemand},
};

/// A new job, as an INSERT of what stands between these: its values, or a selection of them.
macro_rules! insert_job {
    ($before:literal, $after:literal) => {
        concat!(
            "INSERT INTO jobs (id, kind, workspace_id, document_id, state, attempts, max_attempts, run_at, fair_at, warnings,
                               queued_at, from_stored) ",
            $before,
            "$1, $2, $3, $4, 'queued', 0, $5, $6, $7, '[]', $6, FALSE",
            $after
        )
    };
}

/// What becomes of the job that a document has already, when it is queued.
macro_rules! queue_anew {
    () => {
        " ON CONFLICT (document_id, kind) DO UPDATE SET
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
              outage_at = NULL,
              from_stored = excluded.from_stored,
              trace_parent = NULL,
              started_at = CASE WHEN jobs.state = 'running' THEN jobs.started_at END,
              finished_at = NULL
          RETURNING id"
    };
}

/// Has what is known of the document $4 be out of date.
macro_rules! raise_revision {
    () => {
        "UPDATE documents SET revision = revision + 1 WHERE id = $4 AND workspace_id = $3 AND deleted_at IS NULL"
    };
}

/// Queues a workspace's document: a new job, or its old one again. A job that is running goes on, and is queued again when it
/// ends, because the document's revision has risen. None when there is no such document.
pub async fn enqueue(
    tx: &mut Tx,
    workspace: WorkspaceId,
    document: DocumentId,
    kind: JobKind,
    max_attempts: u32,
    now: Timestamp,
) -> Result<Option<JobId>> {
    // In one round trip, since others wait for the workspace's row meanwhile. In the order of locks: the job is made of the document's row.
    const OF_RAISED_ROW: &str = concat!(
        "WITH numbered AS (",
        note_number!(),
        "), raised AS (",
        raise_revision!(),
        " RETURNING id) ",
        insert_job!("SELECT ", " FROM raised"),
        queue_anew!()
    );
    const OF_TABLE: &str = concat!(
        note_number!(),
        "; ",
        raise_revision!(),
        "; ",
        insert_job!("SELECT ", " FROM documents WHERE id = $4 AND workspace_id = $3 AND deleted_at IS NULL"),
        queue_anew!()
    );
    let demand = StorageDemand::default();
    let Some(next) = line::next_place(tx, workspace, demand, 0).await? else { return Ok(None) };
    let raise_and_queue = match tx {
        Tx::Postgres(_) => OF_RAISED_ROW,
        Tx::Sqlite(_) => OF_TABLE,
    };
    Ok(on!(tx, |c| sqlx::query_scalar(raise_and_queue)
        .bind(JobId::generate())
        .bind(kind)
        .bind(workspace)
        .bind(document)
        .bind(i64::from(max_attempts))
        .bind(now)
        .bind(next.place)
        .bind(next.number)
        .fetch_optional(c))?)
}

/// Queues a document that this transaction has made, for the first time, and reads it: nobody else knows of it, so it is not looked at before.
/// What is stored of it is [admitted](crate::storage::admit) with its place in line. None when its owner is gone.
///
/// # Errors
/// [`OverQuota`] within, when it may not stay.
pub async fn enqueue_new(
    tx: &mut Tx,
    workspace: WorkspaceId,
    document: DocumentId,
    demand: StorageDemand,
    max_attempts: u32,
    now: Timestamp,
) -> Result<std::result::Result<Option<(JobId, Document)>, OverQuota>> {
    /// What is selected from is the row that has just been added.
    const OF_ADDED_ROW: &str = concat!(
        "WITH numbered AS (",
        note_number!(),
        "), jobs AS (",
        insert_job!("VALUES (", ")"),
        " RETURNING *) ",
        select_document!("d.id = $4 AND d.workspace_id = $3")
    );
    const OF_TABLE: &str = concat!(
        note_number!(),
        "; ",
        insert_job!("VALUES (", ")"),
        "; ",
        select_document!("d.id = $4 AND d.workspace_id = $3")
    );
    let next = match place_of_new(tx, workspace, demand).await? {
        Ok(Some(next)) => next,
        Ok(None) => return Ok(Ok(None)),
        Err(over) => return Ok(Err(over)),
    };
    let job = JobId::generate();
    // In one round trip, since others wait for the workspace's row, or the only writer, meanwhile.
    let queue_and_read = match tx {
        Tx::Postgres(_) => OF_ADDED_ROW,
        Tx::Sqlite(_) => OF_TABLE,
    };
    let made: Option<Document> = on!(tx, |c| sqlx::query_as(queue_and_read)
        .bind(job)
        .bind(JobKind::Ingest)
        .bind(workspace)
        .bind(document)
        .bind(i64::from(max_attempts))
        .bind(now)
        .bind(next.place)
        .bind(next.number)
        .fetch_optional(c))?;
    Ok(Ok(made.map(|document| (job, document))))
}

/// The place in line of what a transaction has stored already; none when its owner is gone.
async fn place_of_new(
    tx: &mut Tx,
    workspace: WorkspaceId,
    demand: StorageDemand,
) -> Result<std::result::Result<Option<LinePlace>, OverQuota>> {
    if let Some(next) = line::next_place(tx, workspace, demand, 1).await? {
        return Ok(Ok(Some(next)));
    }
    if let Err(over) = storage::admit_stored(tx, workspace, demand).await? {
        return Ok(Err(over));
    }
    Ok(Ok(line::next_place(tx, workspace, StorageDemand::default(), 1).await?))
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

/// Which PDFs are read again from their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RereadTarget {
    /// All of them.
    All,
    /// Those that this engine read.
    ReadBy(PdfEngineName),
    /// Those that were read before it was noted what read them.
    Unknown,
}

/// Searchable documents, with their generations and jobs.
macro_rules! searchable {
    ($($which:tt)+) => {
        concat!(
            "FROM generations
             JOIN documents ON documents.id = generations.document_id
                           AND documents.active_generation = generations.id
             JOIN jobs ON jobs.document_id = documents.id
             WHERE generations.state = 'active' AND documents.deleted_at IS NULL AND ",
            $($which)+
        )
    };
}

/// What an UPDATE of a job that is not under way sets, before it is indexed again from stored passages: that mends nothing of an ingestion
/// that failed, or was stopped, before. The job ends as that did, so that people go on seeing it.
macro_rules! set_former {
    () => {
        "former_state = CASE WHEN jobs.from_stored THEN jobs.former_state
                             WHEN jobs.state IN ('dead', 'cancelled') THEN jobs.state END,
         former_error = CASE WHEN jobs.from_stored THEN jobs.former_error
                             WHEN jobs.state = 'dead' THEN jobs.last_error END"
    };
}
pub(super) use set_former;

/// Queues what is searchable, from stored passages or not.
macro_rules! enqueue_again {
    (from_stored: $from_stored:literal, $($which:tt)+) => {
        concat!(
            "UPDATE jobs SET state = 'queued', from_stored = ",
            $from_stored,
            ", trace_parent = NULL, attempts = 0, run_at = $1, queued_at = $1, fair_at = ",
            place_in_line!("place.number + (SELECT fair_at FROM queue_head)"),
            ", started_at = NULL, finished_at = NULL, last_error = NULL, stage = NULL, progress = NULL, outage_at = NULL, ",
            set_former!(),
            " FROM (SELECT jobs.id AS job_id,
                          ROW_NUMBER() OVER (PARTITION BY documents.workspace_id ORDER BY documents.id) AS number ",
            searchable!($($which)+),
            ") AS place WHERE jobs.id = place.job_id AND jobs.state NOT IN ('queued', 'running')"
        )
    };
}

/// The condition of a [`RereadTarget`], which is a parameter. Sources with pages that are no PDFs are presentations: nothing is noted
/// of them, and they are read again with the PDFs.
macro_rules! to_be_read {
    ($target:literal) => {
        concat!(
            "documents.search_index NOT LIKE '%\"pages\":null%' AND (",
            $target,
            " = '*' OR COALESCE(generations.engine, '') = ",
            $target,
            ")"
        )
    };
}

/// Queues searchable documents of every workspace to be indexed again from their stored passages, except those that are queued or
/// running already; how many there were. Each workspace's documents are a second line of the workspace's: they take turns with what the
/// workspace adds. A document whose last ingestion failed is one that failed afterwards, too.
pub async fn enqueue_again(tx: &mut Tx, which: ReindexTarget, now: Timestamp) -> Result<u64> {
    match which {
        ReindexTarget::All => {
            execute!(tx, sqlx::query(enqueue_again!(from_stored: "TRUE", "1 = 1")).bind(now))
        }
        ReindexTarget::OutsideSpace(space) => execute!(
            tx,
            sqlx::query(enqueue_again!(
                from_stored: "TRUE",
                "(generations.embedding_space IS NULL OR generations.embedding_space <> $2)"
            ))
            .bind(now)
            .bind(space)
        ),
        ReindexTarget::WithoutVectors(before) => execute!(
            tx,
            sqlx::query(enqueue_again!(
                from_stored: "TRUE",
                "generations.embedding_space IS NULL AND generations.created_at < $2 AND jobs.state = 'done'"
            ))
            .bind(now)
            .bind(before)
        ),
    }
}

impl RereadTarget {
    /// The engine's name, empty where none is noted, `*` for all.
    fn parameter(self) -> &'static str {
        match self {
            Self::All => "*",
            Self::ReadBy(engine) => engine.as_str(),
            Self::Unknown => "",
        }
    }
}

/// How many documents [`enqueue_to_read`] would find.
pub async fn count_to_read(db: &Db, which: RereadTarget) -> Result<i64> {
    Ok(on!(db, |c| {
        sqlx::query_scalar(concat!("SELECT COUNT(*) ", searchable!(to_be_read!("$1"))))
            .bind(which.parameter())
            .fetch_one(c)
    })?)
}

/// Queues searchable documents of every workspace to be read again from their sources, as if these had changed, except those that
/// are queued or running already; how many there were. They stand in line as those of [`enqueue_again`] do.
pub async fn enqueue_to_read(tx: &mut Tx, which: RereadTarget, now: Timestamp) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(concat!(
            "UPDATE documents SET source_state = NULL WHERE id IN (SELECT documents.id ",
            searchable!(to_be_read!("$1")),
            ")"
        ))
        .bind(which.parameter())
    )?;
    execute!(
        tx,
        sqlx::query(enqueue_again!(from_stored: "FALSE", to_be_read!("$2")))
            .bind(now)
            .bind(which.parameter())
    )
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

/// Whether nothing of a document is searchable, and nothing is under way to change that.
macro_rules! has_ended_unpublished {
    ($document:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM jobs JOIN documents ON documents.id = jobs.document_id
                     WHERE jobs.document_id = ",
            $document,
            " AND jobs.state IN ('dead', 'cancelled') AND documents.active_generation IS NULL)"
        )
    };
}
pub(super) use has_ended_unpublished;

/// Whether nothing of a document is searchable, and nothing is under way to change that.
pub async fn ended_unpublished(tx: &mut Tx, document: DocumentId) -> Result<bool> {
    Ok(on!(tx, |c| sqlx::query_scalar(concat!("SELECT ", has_ended_unpublished!("$1")))
        .bind(document)
        .fetch_one(c))?)
}

/// Those of these documents of a workspace of which nothing is searchable while nothing is under way to change that, in no order.
pub async fn all_ended_unpublished(
    tx: &mut Tx,
    workspace: WorkspaceId,
    documents: &[DocumentId],
) -> Result<Vec<DocumentId>> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(tx, |c| async {
        let mut query = QueryBuilder::new(concat!(
            "SELECT d.id FROM documents d WHERE d.deleted_at IS NULL AND ",
            has_ended_unpublished!("d.id"),
            " AND d.workspace_id = "
        ));
        query.push_bind(workspace).push(" AND d.id IN (");
        let mut listed = query.separated(", ");
        for id in documents {
            listed.push_bind(*id);
        }
        query.push(")").build_query_scalar().fetch_all(c).await
    })?)
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
