//! What is shown of sources and their runs.

use lectern_shared::{
    clock::Timestamp,
    ids::{CollectionId, DocumentId, SourceId, SourceRunId, UserId, WorkspaceId},
    model::sync::{SyncOutcome, SyncRun, SyncRunItem, SyncRunState, SyncSourceType},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::services::sources::{SourceDetails, next_run, written_every};

/// A place whose documents are kept in step with what is there.
#[derive(Serialize, ToSchema)]
#[schema(as = Source)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceView {
    /// Its id.
    #[schema(value_type = String)]
    id: SourceId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// What it is called.
    name: String,
    /// What kind of place it is: `site`, `feed`, `s3` or `folder`.
    #[schema(value_type = String)]
    r#type: SyncSourceType,
    /// The collection that its documents go into.
    #[schema(value_type = Option<String>, required = true)]
    collection_id: Option<CollectionId>,
    /// Where it is, and what of it becomes documents, without what is secret.
    #[schema(value_type = Object)]
    config: Value,
    /// Whether something secret opens it.
    has_secret: bool,
    /// How often it runs by itself.
    #[schema(required = true)]
    every: Option<String>,
    /// How many of its documents one run may delete without a question, in per cent.
    delete_limit: i64,
    /// How many documents it has.
    documents: i64,
    /// When it runs next by itself.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_run_at: Option<Timestamp>,
    /// Its last run.
    #[schema(required = true)]
    last_run: Option<RunView>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<SourceDetails> for SourceView {
    fn from(SourceDetails { source, last_run }: SourceDetails) -> Self {
        let mut config = json!(source.config.0);
        if let Some(config) = config.as_object_mut() {
            config.shift_remove("type");
        }
        Self {
            every: written_every(&source),
            next_run_at: next_run(&source),
            id: source.id,
            workspace_id: source.owner.workspace_id,
            r#type: source.config.0.source_type(),
            name: source.name,
            collection_id: source.collection_id,
            config,
            has_secret: source.secret_sealed.is_some(),
            delete_limit: source.delete_limit,
            documents: source.documents,
            last_run: last_run.map(RunView::from),
            created_at: source.created_at,
            updated_at: source.updated_at,
        }
    }
}

/// A run of a source.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceRun)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunView {
    /// Its id.
    #[schema(value_type = String)]
    id: SourceRunId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// The source.
    #[schema(value_type = String)]
    source_id: SourceId,
    /// Where it stands: `queued`, `running`, `waiting` (it asks whether so much is to be deleted), `succeeded`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    state: SyncRunState,
    /// Whether nothing is changed.
    dry_run: bool,
    /// Whether everything is read anew.
    full: bool,
    /// Documents that were made; that would be, in a dry run.
    added: i64,
    /// Documents that have another content now.
    changed: i64,
    /// Documents that stay, since what they were made of is elsewhere now.
    moved: i64,
    /// What is as it was.
    unchanged: i64,
    /// Documents that somebody deleted here, and that are left away although they are there.
    deleted_here: i64,
    /// What is not there any more. Its documents are deleted at the end of the run, unless that is dry, waits or was cancelled.
    gone: i64,
    /// What could not be had. Its documents stay as they were.
    failed: i64,
    /// What was come across and becomes no document, such as links and what robots may not read: as much as is named, 1,000 at most.
    skipped: i64,
    /// Bytes that were received.
    bytes: i64,
    /// Why it failed, or what it asks.
    #[schema(required = true)]
    error: Option<String>,
    /// What is to be known of it although it did not fail, such as that `maxDocuments` was reached.
    #[schema(required = true)]
    warning: Option<String>,
    /// Who asked for it; null for the schedule.
    #[schema(value_type = Option<String>, required = true)]
    requested_by: Option<UserId>,
    /// Who said that what is gone may be deleted.
    #[schema(value_type = Option<String>, required = true)]
    confirmed_by: Option<UserId>,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was asked for, taken up or ended, whichever was last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished_at: Option<Timestamp>,
}

impl From<SyncRun> for RunView {
    fn from(run: SyncRun) -> Self {
        let updated_at = run.updated_at();
        Self {
            id: run.id,
            workspace_id: run.workspace_id,
            source_id: run.source_id,
            state: run.state,
            dry_run: run.dry_run,
            full: run.is_full,
            added: run.counts.added,
            changed: run.counts.changed,
            moved: run.counts.moved,
            unchanged: run.counts.unchanged,
            deleted_here: run.counts.deleted_here,
            gone: run.counts.gone,
            failed: run.counts.failed,
            skipped: run.skipped,
            bytes: run.counts.bytes,
            error: run.error,
            warning: run.warning,
            requested_by: run.requested_by,
            confirmed_by: run.confirmed_by,
            created_at: run.created_at,
            updated_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }
}

/// What became of something in a run.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceRunItem)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunItemView {
    /// Its address, or its path.
    item: String,
    /// `added`, `changed`, `moved`, `gone`, `failed` or `skipped`.
    #[schema(value_type = String)]
    outcome: SyncOutcome,
    /// Why.
    #[schema(required = true)]
    reason: Option<String>,
    /// Its document.
    #[schema(value_type = Option<String>, required = true)]
    document_id: Option<DocumentId>,
}

impl From<SyncRunItem> for RunItemView {
    fn from(item: SyncRunItem) -> Self {
        Self {
            item: item.item_key,
            outcome: item.outcome,
            reason: item.reason,
            document_id: item.document_id,
        }
    }
}

pub(super) fn example() -> Value {
    json!({
        "id": "019a8f80-2b3c-7d4e-8f5a-6b7c8d9e0f12",
        "workspaceId": "019a8f3e-0a1b-7c2d-8e3f-4a5b6c7d8e9f",
        "name": "Handbook",
        "type": "site",
        "collectionId": null,
        "config": {
            "url": "https://example.com/handbook/", "discover": "auto", "include": ["/handbook/*"], "exclude": [],
            "maxDepth": 5, "maxDocuments": 1000,
        },
        "hasSecret": false,
        "every": "6h",
        "deleteLimit": 20,
        "documents": 214,
        "nextRunAt": "2026-01-31T14:20:00.000000+00:00",
        "lastRun": run_example(),
        "createdAt": "2026-01-31T08:20:00.000000+00:00",
        "updatedAt": "2026-01-31T08:20:00.000000+00:00",
    })
}

pub(super) fn run_example() -> Value {
    json!({
        "id": "019a8f81-3c4d-7e5f-8a6b-7c8d9e0f1a23",
        "workspaceId": "019a8f3e-0a1b-7c2d-8e3f-4a5b6c7d8e9f",
        "sourceId": "019a8f80-2b3c-7d4e-8f5a-6b7c8d9e0f12",
        "state": "succeeded",
        "dryRun": false,
        "full": false,
        "added": 2,
        "changed": 1,
        "moved": 0,
        "unchanged": 211,
        "deletedHere": 0,
        "gone": 0,
        "failed": 0,
        "skipped": 3,
        "bytes": 48_213,
        "error": null,
        "warning": null,
        "requestedBy": null,
        "confirmedBy": null,
        "createdAt": "2026-01-31T08:20:00.000000+00:00",
        "updatedAt": "2026-01-31T08:24:13.000000+00:00",
        "startedAt": "2026-01-31T08:20:01.000000+00:00",
        "finishedAt": "2026-01-31T08:24:13.000000+00:00",
    })
}

pub(super) fn item_example() -> Value {
    json!({
        "item": "https://example.com/handbook/leave",
        "outcome": "changed",
        "reason": null,
        "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
    })
}
