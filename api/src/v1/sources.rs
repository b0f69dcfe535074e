//! Sources.

use axum::extract::State;
use lectern_shared::{
    clock::Timestamp,
    ids::{CollectionId, DocumentId, SourceId, SourceRunId, UserId, WorkspaceId},
    model::sync::{SyncOutcome, SyncRun, SyncRunItem, SyncRunState, SyncSourceType},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    auth::Caller,
    extract::{OptionalJson, PathId, PathIds, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::SuccessResponse,
    response::{ApiResult, Paging, data, list},
    services::sources::{
        NewRun, NewSource, SourceChange, SourceDetails, SourceService, next_run, written_every,
    },
    state::AppState,
    v1::users::NullBody,
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .routes(routes!(run))
        .routes(routes!(runs))
        .routes(routes!(find_run))
        .routes(routes!(found))
        .routes(routes!(confirm))
        .routes(routes!(cancel))
}

/// A place whose documents are kept in step with what is there.
#[derive(Serialize, ToSchema)]
#[schema(as = Source)]
#[serde(rename_all = "camelCase")]
struct SourceView {
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
struct RunView {
    /// Its id.
    #[schema(value_type = String)]
    id: SourceRunId,
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
    /// What is as it was.
    unchanged: i64,
    /// What is not there any more. Its documents are deleted at the end of the run, unless that is dry, waits or was cancelled.
    gone: i64,
    /// What could not be had. Its documents stay as they were.
    failed: i64,
    /// Bytes that were received.
    bytes: i64,
    /// Why it failed, or what it asks.
    #[schema(required = true)]
    error: Option<String>,
    /// Who asked for it; null for the schedule.
    #[schema(value_type = Option<String>, required = true)]
    requested_by: Option<UserId>,
    /// Who said that what is gone may be deleted.
    #[schema(value_type = Option<String>, required = true)]
    confirmed_by: Option<UserId>,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished_at: Option<Timestamp>,
}

impl From<SyncRun> for RunView {
    fn from(run: SyncRun) -> Self {
        Self {
            id: run.id,
            source_id: run.source_id,
            state: run.state,
            dry_run: run.dry_run,
            full: run.is_full,
            added: run.counts.added,
            changed: run.counts.changed,
            unchanged: run.counts.unchanged,
            gone: run.counts.gone,
            failed: run.counts.failed,
            bytes: run.counts.bytes,
            error: run.error,
            requested_by: run.requested_by,
            confirmed_by: run.confirmed_by,
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }
}

/// What became of something in a run.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceRunItem)]
#[serde(rename_all = "camelCase")]
struct RunItemView {
    /// Its address, or its path.
    item: String,
    /// `added`, `changed`, `gone` or `failed`.
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

fn example() -> Value {
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

fn run_example() -> Value {
    json!({
        "id": "019a8f81-3c4d-7e5f-8a6b-7c8d9e0f1a23",
        "sourceId": "019a8f80-2b3c-7d4e-8f5a-6b7c8d9e0f12",
        "state": "succeeded",
        "dryRun": false,
        "full": false,
        "added": 2,
        "changed": 1,
        "unchanged": 211,
        "gone": 0,
        "failed": 0,
        "bytes": 48_213,
        "error": null,
        "requestedBy": null,
        "confirmedBy": null,
        "createdAt": "2026-01-31T08:20:00.000000+00:00",
        "startedAt": "2026-01-31T08:20:01.000000+00:00",
        "finishedAt": "2026-01-31T08:24:13.000000+00:00",
    })
}

fn item_example() -> Value {
    json!({
        "item": "https://example.com/handbook/leave",
        "outcome": "changed",
        "reason": null,
        "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
    })
}

/// Create a source
///
/// Keeps documents in step with a site, a feed, a bucket or a folder: its runs make documents of what is new, give them the content of what
/// has changed, and delete those of what is gone, within `deleteLimit`. With `every` it runs by itself, the first time at once.
///
/// Sites are asked politely: as their robots.txt has it, about one request a second, and only for what has changed.
#[utoipa::path(
    post,
    path = "/sources",
    tag = "Sources",
    operation_id = "createSource",
    request_body(
        content = NewSource,
        example = json!({"name": "Handbook", "type": "site", "config": {"url": "https://example.com/handbook/", "include": ["/handbook/*"]}, "every": "6h"}),
    ),
    responses(
        (
        status = 200,
        description = "The new source",
        body = inline(SuccessResponse<SourceView>),
        example = json!({"success": true, "data": example()}),
    ),
        (status = 404, description = "The workspace has no such collection"),
        (status = 409, description = "The workspace has as many sources as it may (`too_many_sources`)"),
    ),
)]
async fn create(
    State(sources): State<SourceService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewSource>,
) -> ApiResult {
    let show = json_encoder(|made: &SourceDetails| Ok(SourceView::from(made.clone())));
    sources.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List sources
///
/// Shows the sources of the workspace, newest first, with their last runs.
#[utoipa::path(
    get,
    path = "/sources",
    tag = "Sources",
    operation_id = "listSources",
    responses((
        status = 200,
        description = "The sources",
        body = inline(SuccessResponse<Vec<SourceView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
async fn index(State(sources): State<SourceService>, caller: Caller, paging: Paging) -> ApiResult {
    list(paging, move |before, limit| {
        let (sources, actor) = (sources.clone(), caller.actor());
        async move {
            let sources = sources.list(&actor, before, limit).await?;
            let row = |found: SourceDetails| (*found.source.id.as_uuid(), SourceView::from(found));
            Ok(sources.into_iter().map(row).collect())
        }
    })
    .await
}

/// Get a source
///
/// Shows one source.
#[utoipa::path(
    get,
    path = "/sources/{id}",
    tag = "Sources",
    operation_id = "getSource",
    params(("id" = String, Path, description = "The source's id")),
    responses((
        status = 200,
        description = "The source",
        body = inline(SuccessResponse<SourceView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn find(
    State(sources): State<SourceService>,
    caller: Caller,
    PathId(id): PathId<SourceId>,
) -> ApiResult {
    Ok(data(SourceView::from(sources.find(&caller.actor(), id).await?)))
}

/// Change a source
///
/// Changes what is sent. A configuration takes the place of the earlier one; a secret that it leaves out stays, unless it would be sent to
/// another host.
#[utoipa::path(
    patch,
    path = "/sources/{id}",
    tag = "Sources",
    operation_id = "changeSource",
    params(("id" = String, Path, description = "The source's id")),
    request_body(content = SourceChange, example = json!({"every": "1d"})),
    responses(
        (
        status = 200,
        description = "The source as it is now",
        body = inline(SuccessResponse<SourceView>),
        example = json!({"success": true, "data": example()}),
    ),
        (status = 404, description = "The workspace has no such source, or no such collection"),
    ),
)]
async fn change(
    State(sources): State<SourceService>,
    caller: Caller,
    PathId(id): PathId<SourceId>,
    ValidJson(body): ValidJson<SourceChange>,
) -> ApiResult {
    Ok(data(SourceView::from(sources.change(&caller.actor(), id, body).await?)))
}

/// Delete a source
///
/// Deletes a source with its runs. Its documents stay, and are documents like any others from then on.
#[utoipa::path(
    delete,
    path = "/sources/{id}",
    tag = "Sources",
    operation_id = "deleteSource",
    params(("id" = String, Path, description = "The source's id")),
    responses((
        status = 200,
        description = "It is deleted",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
async fn remove(
    State(sources): State<SourceService>,
    caller: Caller,
    PathId(id): PathId<SourceId>,
) -> ApiResult {
    sources.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}

/// Run a source
///
/// Has a source run now. A dry run tells what would be added, changed and deleted, and changes nothing.
#[utoipa::path(
    post,
    path = "/sources/{id}/run",
    tag = "Sources",
    operation_id = "runSource",
    params(("id" = String, Path, description = "The source's id")),
    request_body(content = Option<NewRun>, example = json!({"dryRun": true})),
    responses(
        (
        status = 200,
        description = "The run, which a worker takes up",
        body = inline(SuccessResponse<RunView>),
        example = json!({"success": true, "data": run_example()}),
    ),
        (status = 409, description = "A run of it is under way, or waits for an answer (`run_under_way`)"),
    ),
)]
async fn run(
    State(sources): State<SourceService>,
    caller: Caller,
    PathId(id): PathId<SourceId>,
    OptionalJson(body): OptionalJson<NewRun>,
) -> ApiResult {
    Ok(data(RunView::from(sources.run(&caller.actor(), id, body).await?)))
}

/// List the runs of a source
///
/// Shows its runs, newest first. They are kept for 90 days.
#[utoipa::path(
    get,
    path = "/sources/{id}/runs",
    tag = "Sources",
    operation_id = "listSourceRuns",
    params(("id" = String, Path, description = "The source's id")),
    responses((
        status = 200,
        description = "The runs",
        body = inline(SuccessResponse<Vec<RunView>>),
        example = json!({"success": true, "data": [run_example()]}),
    )),
)]
async fn runs(
    State(sources): State<SourceService>,
    caller: Caller,
    paging: Paging,
    PathId(id): PathId<SourceId>,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (sources, actor) = (sources.clone(), caller.actor());
        async move {
            let runs = sources.runs(&actor, id, before, limit).await?;
            let row = |run: SyncRun| (*run.id.as_uuid(), RunView::from(run));
            Ok(runs.into_iter().map(row).collect())
        }
    })
    .await
}

/// Get a run of a source
///
/// Shows one run. Its numbers grow while it goes on.
#[utoipa::path(
    get,
    path = "/sources/{id}/runs/{runId}",
    tag = "Sources",
    operation_id = "getSourceRun",
    params(
        ("id" = String, Path, description = "The source's id"),
        ("runId" = String, Path, description = "The run's id"),
    ),
    responses((
        status = 200,
        description = "The run",
        body = inline(SuccessResponse<RunView>),
        example = json!({"success": true, "data": run_example()}),
    )),
)]
async fn find_run(
    State(sources): State<SourceService>,
    caller: Caller,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    Ok(data(RunView::from(sources.find_run(&caller.actor(), id, run).await?)))
}

/// List what a run found
///
/// Shows what was added, changed, gone or could not be had in a run, and why, the last first; what has not changed is not listed. It is kept
/// of the last 20 runs of a source.
#[utoipa::path(
    get,
    path = "/sources/{id}/runs/{runId}/items",
    tag = "Sources",
    operation_id = "listSourceRunItems",
    params(
        ("id" = String, Path, description = "The source's id"),
        ("runId" = String, Path, description = "The run's id"),
    ),
    responses((
        status = 200,
        description = "What was found",
        body = inline(SuccessResponse<Vec<RunItemView>>),
        example = json!({"success": true, "data": [item_example()]}),
    )),
)]
async fn found(
    State(sources): State<SourceService>,
    caller: Caller,
    paging: Paging,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (sources, actor) = (sources.clone(), caller.actor());
        async move {
            let found = sources.found(&actor, id, run, before.into(), limit).await?;
            let row = |item: SyncRunItem| (*item.id.as_uuid(), RunItemView::from(item));
            Ok(found.into_iter().map(row).collect())
        }
    })
    .await
}

/// Confirm a run
///
/// Has a run that is `waiting` delete the documents of what is gone.
#[utoipa::path(
    post,
    path = "/sources/{id}/runs/{runId}/confirm",
    tag = "Sources",
    operation_id = "confirmSourceRun",
    params(
        ("id" = String, Path, description = "The source's id"),
        ("runId" = String, Path, description = "The run's id"),
    ),
    responses(
        (
        status = 200,
        description = "The run, which goes on",
        body = inline(SuccessResponse<RunView>),
        example = json!({"success": true, "data": run_example()}),
    ),
        (status = 409, description = "It asks nothing (`nothing_to_confirm`)"),
    ),
)]
async fn confirm(
    State(sources): State<SourceService>,
    caller: Caller,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    Ok(data(RunView::from(sources.confirm(&caller.actor(), id, run).await?)))
}

/// Cancel a run
///
/// Stops a run, or answers one that is `waiting` with no. What it has added and changed stays; nothing happens when it has ended.
#[utoipa::path(
    post,
    path = "/sources/{id}/runs/{runId}/cancel",
    tag = "Sources",
    operation_id = "cancelSourceRun",
    params(
        ("id" = String, Path, description = "The source's id"),
        ("runId" = String, Path, description = "The run's id"),
    ),
    responses((
        status = 200,
        description = "The run",
        body = inline(SuccessResponse<RunView>),
        example = json!({"success": true, "data": run_example()}),
    )),
)]
async fn cancel(
    State(sources): State<SourceService>,
    caller: Caller,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    Ok(data(RunView::from(sources.cancel(&caller.actor(), id, run).await?)))
}
