//! How jobs look to the operator.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, JobId, UserId},
    model::{
        document::DocumentType,
        job::{IngestionStage, JobKind, JobPhase, JobRecord},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::v1::documents::{ErrorView, ProgressView, WarningView};

/// A job: the work of making one document searchable. There is one for each document, which is queued again for each
/// ingestion. Of what the document's owner wrote nothing is in it but the owner's e-mail, and the host that an error names.
#[derive(Serialize, ToSchema)]
#[schema(as = Job)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// Its id.
    #[schema(value_type = String)]
    id: JobId,
    /// What it does: `ingest`.
    #[schema(value_type = String)]
    kind: JobKind,
    /// Where it stands: `due` (a worker could take it now), `waiting` (for a later moment), `running`, `dead` (it has failed for
    /// good), `done` or `cancelled`.
    #[schema(value_type = String)]
    state: JobPhase,
    /// The document's owner.
    #[schema(value_type = String)]
    user_id: UserId,
    /// That owner's e-mail.
    user_email: String,
    /// The document.
    #[schema(value_type = String)]
    document_id: DocumentId,
    /// The document's type: `TXT`, `PDF`, `VIDEO`, `CSV` or `URL`.
    #[schema(value_type = String)]
    document_type: DocumentType,
    /// Only the index is made again, from the passages that are stored; the source is left alone.
    from_stored: bool,
    /// What it does, or did last: `FETCH`, `PARSE`, `SPLIT`, `EMBED`, `INDEX`; null before it began.
    #[schema(value_type = Option<String>, required = true)]
    stage: Option<IngestionStage>,
    /// How far that is, when it can be told.
    #[schema(required = true)]
    progress: Option<ProgressView>,
    /// How often a worker took it up since it was queued.
    attempts: i64,
    /// How often it is tried.
    max_attempts: i64,
    /// When it was queued.
    #[schema(value_type = String, format = DateTime)]
    queued_at: Timestamp,
    /// From when on a worker may take it, or could have taken it the last time.
    #[schema(value_type = String, format = DateTime)]
    run_at: Timestamp,
    /// When the last attempt began.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished_at: Option<Timestamp>,
    /// While it runs: when another worker takes it over, unless its own is heard of before.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    lease_until: Option<Timestamp>,
    /// The worker that holds it, or held it last.
    #[schema(required = true)]
    worker: Option<String>,
    /// Why the last attempt failed.
    #[schema(required = true)]
    error: Option<ErrorView>,
    /// What it went past without failing.
    warnings: Vec<WarningView>,
}

impl JobView {
    /// A job as it stands at this moment.
    pub fn new(job: JobRecord, now: Timestamp) -> Self {
        Self {
            id: job.id,
            kind: job.kind,
            state: job.standing(now),
            user_id: job.owner.creator(),
            user_email: job.user_email,
            document_id: job.document_id,
            document_type: job.document_type,
            from_stored: job.from_stored,
            stage: job.stage,
            progress: job.progress.map(|progress| progress.0.into()),
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            queued_at: job.queued_at,
            run_at: job.run_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            lease_until: job.lease_until,
            worker: job.worker,
            error: job.last_error.map(|error| error.0.into()),
            warnings: job.warnings.0.into_iter().map(Into::into).collect(),
        }
    }
}

/// A job that failed, for the documentation.
pub(super) fn example() -> Value {
    json!({
        "id": "019a8f50-3c77-7d02-b1e9-84a6f2c05d13",
        "kind": "ingest",
        "state": "dead",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "userEmail": "ada@example.com",
        "documentId": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37",
        "documentType": "PDF",
        "fromStored": false,
        "stage": "EMBED",
        "progress": {"done": 32, "total": 118, "unit": "chunks"},
        "attempts": 5,
        "maxAttempts": 5,
        "queuedAt": "2026-01-31T08:05:00.000000+00:00",
        "runAt": "2026-01-31T08:06:40.000000+00:00",
        "startedAt": "2026-01-31T08:06:41.250000+00:00",
        "finishedAt": "2026-01-31T08:06:58.500000+00:00",
        "leaseUntil": null,
        "worker": "worker-1",
        "error": {
            "code": "embedder_failed",
            "message": "The embedding model did not answer.",
            "retryable": true,
        },
        "warnings": [],
    })
}

/// The same job after it was retried.
pub(super) fn due_example() -> Value {
    with(&json!({
        "state": "due", "stage": null, "progress": null, "attempts": 0, "queuedAt": "2026-01-31T09:00:00.000000+00:00",
        "runAt": "2026-01-31T09:00:00.000000+00:00", "startedAt": null, "finishedAt": null, "error": null,
    }))
}

/// The same job after it was discarded.
pub(super) fn cancelled_example() -> Value {
    with(&json!({"state": "cancelled", "finishedAt": "2026-01-31T09:00:00.000000+00:00"}))
}

fn with(changes: &Value) -> Value {
    let mut job = example();
    if let (Some(job), Some(changes)) = (job.as_object_mut(), changes.as_object()) {
        job.extend(changes.clone());
    }
    job
}
