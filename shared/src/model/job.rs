//! Jobs, and how an ingestion looks from outside.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{ClaimId, DocumentId, JobId, WorkspaceId},
    model::{Json, document_type::DocumentType, text_enum, workspace::RowOwner},
};

text_enum! {
    /// What a job does.
    JobKind {
        /// Makes a document searchable.
        Ingest => "ingest",
    }
}

text_enum! {
    /// Where a job stands.
    JobState {
        /// Waits for a worker.
        Queued => "queued",
        /// A worker holds it.
        Running => "running",
        /// Ended well.
        Done => "done",
        /// Ended badly; it is not tried again by itself.
        Dead => "dead",
        /// Its owner stopped it.
        Cancelled => "cancelled",
    }
}

impl JobState {
    /// Whether it ended badly.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Dead => true,
            Self::Queued | Self::Running | Self::Done | Self::Cancelled => false,
        }
    }
}

text_enum! {
    /// What an ingestion is doing.
    IngestionStage {
        /// Getting the source.
        Fetch => "FETCH",
        /// Reading text out of it.
        Parse => "PARSE",
        /// Cutting the text into passages.
        Split => "SPLIT",
        /// Computing vectors.
        Embed => "EMBED",
        /// Writing the index.
        Index => "INDEX",
    }
}

/// How far a stage is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageProgress {
    /// Units done.
    pub done: u64,
    /// Units in all, once that is known.
    pub total: Option<u64>,
    /// What is counted: `bytes`, `pages`, `chunks`, `addresses`.
    pub unit: String,
}

/// Why an ingestion failed, in words that its owner can act on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestionError {
    /// A fixed word.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Trying again can help.
    pub retryable: bool,
}

impl IngestionError {
    /// What is told of a document whose worker went away.
    pub fn interrupted() -> Self {
        Self {
            code: "interrupted".to_owned(),
            message: "The worker that was ingesting this document stopped before it was done.".to_owned(),
            retryable: true,
        }
    }
}

/// Something an ingestion went past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestionWarning {
    /// A fixed word.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// How often it happened.
    pub count: u64,
}

/// What an ingestion learnt of its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// The title that the source gives itself.
    pub title: Option<String>,
    /// The address that the source gives itself, or the one that redirects led to.
    pub canonical_url: Option<String>,
    /// The kind of bytes it turned out to be.
    pub mime_type: Option<String>,
    /// Its size.
    pub bytes: Option<u64>,
}

/// A document's ingestion job as its owner sees it.
#[derive(Clone, Debug, FromRow)]
pub struct IngestionSummary {
    /// Where it stands.
    pub state: JobState,
    /// What it is, or was last, doing.
    pub stage: Option<IngestionStage>,
    /// How far that is.
    pub progress: Option<Json<StageProgress>>,
    /// How often a worker took it up since it was queued.
    pub attempts: i64,
    /// Why the last attempt failed.
    pub last_error: Option<Json<IngestionError>>,
    /// What it went past.
    pub warnings: Json<Vec<IngestionWarning>>,
    /// What it learnt of its source.
    pub source: Option<Json<SourceInfo>>,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When the last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// One worker's hold on a job. Everything written under it is fenced on `claim_id`.
#[derive(Clone, Debug, FromRow)]
pub struct JobClaim {
    /// The job.
    pub id: JobId,
    /// What to do.
    pub kind: JobKind,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// The document it is about.
    pub document_id: DocumentId,
    /// This hold.
    pub claim_id: ClaimId,
    /// The document's revision when it was claimed.
    pub claimed_revision: i64,
    /// Attempts so far, this one included.
    pub attempts: i64,
    /// Attempts allowed.
    pub max_attempts: i64,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// Since when parts of the service that are away keep it from its end; none when none has.
    pub outage_at: Option<Timestamp>,
    /// Only the index is made again, from the passages that are stored; the source is left alone.
    pub from_stored: bool,
    /// The span from which it was queued, as W3C's `traceparent`.
    pub trace_parent: Option<String>,
}

text_enum! {
    /// Where a job stands, as its operator asks: of the queued ones it matters whether their time has come.
    JobPhase {
        /// Due or waiting. Asked for, and never shown.
        Queued => "queued",
        /// A worker could take it now.
        Due => "due",
        /// It waits for a later moment, mostly for its next attempt.
        Waiting => "waiting",
        /// A worker holds it.
        Running => "running",
        /// Ended badly; it is not tried again by itself.
        Dead => "dead",
        /// Ended well.
        Done => "done",
        /// Its owner or the operator stopped it.
        Cancelled => "cancelled",
    }
}

impl JobPhase {
    /// Where a job stands that is in this state, and is or was to run at `run_at`. Never [`Queued`](Self::Queued).
    pub fn of(state: JobState, run_at: Timestamp, now: Timestamp) -> Self {
        match state {
            JobState::Queued if run_at <= now => Self::Due,
            JobState::Queued => Self::Waiting,
            JobState::Running => Self::Running,
            JobState::Dead => Self::Dead,
            JobState::Done => Self::Done,
            JobState::Cancelled => Self::Cancelled,
        }
    }

    /// Whether whoever asks for jobs that stand so asks for one that stands like `other`.
    pub fn covers(self, other: Self) -> bool {
        self == other || (self == Self::Queued && matches!(other, Self::Due | Self::Waiting))
    }
}

/// A job as the operator sees it. Of what its owner wrote nothing is in it but the e-mail, and the host that an error names.
#[derive(Clone, Debug, FromRow)]
pub struct JobRecord {
    /// Its id.
    pub id: JobId,
    /// What it does.
    pub kind: JobKind,
    /// Whose its document is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// The e-mail of who made the document, as written; empty when the account is gone.
    pub user_email: String,
    /// The document it is about.
    pub document_id: DocumentId,
    /// The kind of that document's source.
    pub document_type: DocumentType,
    /// Its state.
    pub state: JobState,
    /// What it is, or was last, doing.
    pub stage: Option<IngestionStage>,
    /// How far that is.
    pub progress: Option<Json<StageProgress>>,
    /// How often a worker took it up since it was queued.
    pub attempts: i64,
    /// Attempts allowed.
    pub max_attempts: i64,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// From when on a worker may, or might, take it.
    pub run_at: Timestamp,
    /// Its place in the order in which workers take jobs: a number, no time.
    pub fair_at: i64,
    /// When the last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Until when the worker that holds it may be silent.
    pub lease_until: Option<Timestamp>,
    /// The worker that holds it, or held it last.
    pub worker: Option<String>,
    /// Why the last attempt failed.
    pub last_error: Option<Json<IngestionError>>,
    /// What it went past.
    pub warnings: Json<Vec<IngestionWarning>>,
    /// Only the index is made again, from the passages that are stored.
    pub from_stored: bool,
}

impl JobRecord {
    /// Where it stands.
    pub fn standing(&self, now: Timestamp) -> JobPhase {
        JobPhase::of(self.state, self.run_at, now)
    }
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
