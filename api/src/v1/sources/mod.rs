//! Sources.

mod view;

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    ids::{SourceId, SourceRunId},
    model::sync::{SyncRun, SyncRunItem},
};

use self::view::{RunItemView, RunView, SourceView, example, item_example, run_example};
use crate::{
    auth::Caller,
    extract::{PathId, PathIds, ValidJson},
    idempotency::{CreateRequest, OptionalCreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::{
        edits::EditBase,
        sources::{NewRun, NewSource, SourceChange, SourceDetails, SourceService},
    },
    v1::users::NullBody,
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .routes(routes!(run))
        .routes(routes!(runs))
        .routes(routes!(find_run))
        .routes(routes!(found))
        .routes(routes!(confirm))
        .routes(routes!(cancel))
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
#[handler]
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
#[handler]
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
#[handler]
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
#[handler]
async fn change(
    State(sources): State<SourceService>,
    caller: Caller,
    PathId(id): PathId<SourceId>,
    ValidJson(body): ValidJson<SourceChange>,
) -> ApiResult {
    Ok(data(SourceView::from(sources.change(&caller.actor(), id, body, EditBase::Present).await?)))
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
#[handler]
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
#[handler]
async fn run(
    State(sources): State<SourceService>,
    caller: Caller,
    PathId(id): PathId<SourceId>,
    OptionalCreateRequest(CreateRequest { body, once }): OptionalCreateRequest<NewRun>,
) -> ApiResult {
    let show = json_encoder(|made: &SyncRun| Ok(RunView::from(made.clone())));
    sources.run(&caller.actor(), id, body, once, show).await.map(creation_response)
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
#[handler]
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
#[handler]
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
#[handler]
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
#[handler]
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
#[handler]
async fn cancel(
    State(sources): State<SourceService>,
    caller: Caller,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    let (run, _) = sources.cancel(&caller.actor(), id, run).await?;
    Ok(data(RunView::from(run)))
}
