//! Jobs, and how an ingestion looks from outside.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    db::Json,
    ids::{ClaimId, DocumentId, JobId, UserId},
    model::text_enum,
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

text_enum! {
    /// What an ingestion is doing.
    Stage {
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
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// Units in all, once that is known.
    pub total: Option<u64>,
    /// What is counted: `bytes`, `pages`, `chunks`.
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

/// Something an ingestion went past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
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
pub struct Ingestion {
    /// Where it stands.
    pub state: JobState,
    /// What it is, or was last, doing.
    pub stage: Option<Stage>,
    /// How far that is.
    pub progress: Option<Json<Progress>>,
    /// How often a worker took it up since it was queued.
    pub attempts: i64,
    /// Why the last attempt failed.
    pub last_error: Option<Json<IngestionError>>,
    /// What it went past.
    pub warnings: Json<Vec<Warning>>,
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
pub struct Claim {
    /// The job.
    pub id: JobId,
    /// What to do.
    pub kind: JobKind,
    /// Whose it is.
    pub user_id: UserId,
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
    /// Only the index is made again, from the passages that are stored; the source is left alone.
    pub from_stored: bool,
    /// The span from which it was queued, as W3C's `traceparent`.
    pub trace_parent: Option<String>,
}
