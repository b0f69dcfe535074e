//! Runs of evaluations.

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use lectern_derive::handler;
use lectern_shared::{
    ids::{EvaluationId, EvaluationRunId},
    model::evaluation::EvaluationRun,
};
use uuid::Uuid;

use super::{
    examples::{comparison_example, result_example, run_example, run_with_results_example},
    view::{ComparisonView, ResultView, RunView, RunWithResultsView},
};
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{PathId, PathIds},
    idempotency::{CreateRequest, OptionalCreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::evaluations::{EvaluationService, NewEvaluationRun},
};

/// Results, and cases that differ, that are told in one answer.
const TOLD: u32 = 200;

pub(super) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find))
        .routes(routes!(results))
        .routes(routes!(cancel))
        .routes(routes!(compare))
}

/// Run an evaluation
///
/// Searches for every question, and asks the evaluation's agent if it has one. The run goes on in the background: `GET …/runs/{run}` tells
/// how far it is, and what came of it.
#[utoipa::path(
    post,
    path = "/evaluations/{id}/runs",
    tag = "Evaluations",
    operation_id = "runEvaluation",
    params(("id" = String, Path, description = "The evaluation's id")),
    request_body(content = NewEvaluationRun, example = json!({"mode": "hybrid", "answers": false})),
    responses(
        (
            status = 200,
            description = "The new run",
            body = inline(SuccessResponse<RunView>),
            example = json!({"success": true, "data": run_example()}),
        ),
        (status = 409, description = "The evaluation has no cases, or too many runs wait"),
    ),
)]
#[handler]
async fn create(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
    OptionalCreateRequest(CreateRequest { body, once }): OptionalCreateRequest<NewEvaluationRun>,
) -> ApiResult {
    let show = json_encoder(|made: &EvaluationRun| Ok(RunView::from(made.clone())));
    evaluations.run(&caller.actor(), id, body, once, show).await.map(creation_response)
}

/// List the runs of an evaluation
///
/// Shows its runs, newest first; the last 200 are kept.
#[utoipa::path(
    get,
    path = "/evaluations/{id}/runs",
    tag = "Evaluations",
    operation_id = "listEvaluationRuns",
    params(("id" = String, Path, description = "The evaluation's id")),
    responses((
        status = 200,
        description = "Its runs",
        body = inline(SuccessResponse<Vec<RunView>>),
        example = json!({"success": true, "data": [run_example()]}),
    )),
)]
#[handler]
async fn index(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
    paging: Paging,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (evaluations, actor) = (evaluations.clone(), caller.actor());
        async move {
            let runs = evaluations.runs(&actor, id, before, limit).await?;
            Ok(runs.into_iter().map(|run| (*run.id.as_uuid(), RunView::from(run))).collect())
        }
    })
    .await
}

/// Get a run of an evaluation
///
/// Shows one run: how far it is, what came of it over all cases, each number with the interval in which it lies with a probability of 95 %,
/// and what came of the newest cases: at most 200, and `nextCursor` says where `…/results` goes on when there are more.
#[utoipa::path(
    get,
    path = "/evaluations/{id}/runs/{run}",
    tag = "Evaluations",
    operation_id = "getEvaluationRun",
    params(
        ("id" = String, Path, description = "The evaluation's id"),
        ("run" = String, Path, description = "The run's id"),
    ),
    responses((
        status = 200,
        description = "The run",
        body = inline(SuccessResponse<RunWithResultsView>),
        example = json!({"success": true, "data": run_with_results_example()}),
    )),
)]
#[handler]
async fn find(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathIds(id, run): PathIds<EvaluationId, EvaluationRunId>,
) -> ApiResult {
    let actor = caller.actor();
    let found = evaluations.find_run(&actor, id, run).await?;
    // One more than is told says whether there are more.
    let mut results = evaluations.results(&actor, id, run, Uuid::max(), TOLD + 1).await?;
    let has_more = results.len() > TOLD as usize;
    results.truncate(TOLD as usize);
    let next_cursor = results.last().map(|last| last.case_id).filter(|_| has_more);
    let results = results.into_iter().map(ResultView::from).collect();
    Ok(data(RunWithResultsView { run: found.into(), results, next_cursor }))
}

/// List what came of the cases in a run
///
/// Shows what was found and answered to each case, the newest case first. It is kept of the latest runs.
#[utoipa::path(
    get,
    path = "/evaluations/{id}/runs/{run}/results",
    tag = "Evaluations",
    operation_id = "listEvaluationResults",
    params(
        ("id" = String, Path, description = "The evaluation's id"),
        ("run" = String, Path, description = "The run's id"),
    ),
    responses((
        status = 200,
        description = "What came of them",
        body = inline(SuccessResponse<Vec<ResultView>>),
        example = json!({"success": true, "data": [result_example()]}),
    )),
)]
#[handler]
async fn results(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathIds(id, run): PathIds<EvaluationId, EvaluationRunId>,
    paging: Paging,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (evaluations, actor) = (evaluations.clone(), caller.actor());
        async move {
            let results = evaluations.results(&actor, id, run, before, limit).await?;
            Ok(results.into_iter().map(|one| (*one.case_id.as_uuid(), ResultView::from(one))).collect())
        }
    })
    .await
}

/// Cancel a run of an evaluation
///
/// Stops a run. What came of the cases that are done stays; nothing happens when it has ended.
#[utoipa::path(
    post,
    path = "/evaluations/{id}/runs/{run}/cancel",
    tag = "Evaluations",
    operation_id = "cancelEvaluationRun",
    params(
        ("id" = String, Path, description = "The evaluation's id"),
        ("run" = String, Path, description = "The run's id"),
    ),
    responses((
        status = 200,
        description = "The run as it is now",
        body = inline(SuccessResponse<RunView>),
        example = json!({"success": true, "data": run_example()}),
    )),
)]
#[handler]
async fn cancel(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathIds(id, run): PathIds<EvaluationId, EvaluationRunId>,
) -> ApiResult {
    let (run, _) = evaluations.cancel(&caller.actor(), id, run).await?;
    Ok(data(RunView::from(run)))
}

/// An evaluation and two of its runs.
struct PathRuns {
    evaluation: EvaluationId,
    run: EvaluationRunId,
    other: EvaluationRunId,
}

impl<S: Send + Sync> FromRequestParts<S> for PathRuns {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found("run");
        let path = Path::<(String, String, String)>::from_request_parts(parts, state).await;
        let Path((evaluation, run, other)) = path.map_err(|_| unknown())?;
        Ok(Self {
            evaluation: evaluation.parse().map_err(|_| unknown())?,
            run: run.parse().map_err(|_| unknown())?,
            other: other.parse().map_err(|_| unknown())?,
        })
    }
}

/// Compare two runs
///
/// Sets two runs of an evaluation side by side: by how much each metric differs, how many cases were won and lost, and which they are.
#[utoipa::path(
    get,
    path = "/evaluations/{id}/runs/{run}/compare/{other}",
    tag = "Evaluations",
    operation_id = "compareEvaluationRuns",
    params(
        ("id" = String, Path, description = "The evaluation's id"),
        ("run" = String, Path, description = "The run's id"),
        ("other" = String, Path, description = "The id of the run that it is compared with"),
    ),
    responses((
        status = 200,
        description = "How they differ",
        body = inline(SuccessResponse<ComparisonView>),
        example = json!({"success": true, "data": comparison_example()}),
    )),
)]
#[handler]
async fn compare(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathRuns { evaluation, run, other }: PathRuns,
) -> ApiResult {
    let told = TOLD as usize;
    let comparison = evaluations.compare(&caller.actor(), evaluation, run, other, told).await?;
    Ok(data(ComparisonView::from(comparison)))
}
