//! Evaluations.

mod cases;
mod examples;
mod runs;
mod view;

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{ids::EvaluationId, model::evaluation::Evaluation};

pub(crate) use self::cases::import_file;
use self::{examples::example, view::EvaluationView};
use crate::{
    auth::Caller,
    extract::{PathId, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::{
        edits::EditBase,
        evaluations::{EvaluationChange, EvaluationService, NewEvaluation},
    },
    v1::users::NullBody,
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .merge(cases::router())
        .merge(runs::router())
}

/// Create an evaluation
///
/// Makes a set of questions, each with what is to come of it, by which is measured how well is found and answered. Add questions with `POST
/// …/cases` or `POST …/import`, or from a recorded answer with `POST /traces/{id}/cases`.
#[utoipa::path(
    post,
    path = "/evaluations",
    tag = "Evaluations",
    operation_id = "createEvaluation",
    request_body(content = NewEvaluation, example = json!({
        "name": "Warranty questions", "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
    })),
    responses(
        (
            status = 200,
            description = "The new evaluation",
            body = inline(SuccessResponse<EvaluationView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 404, description = "One of the agents or collections is none of yours"),
    ),
)]
#[handler]
async fn create(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewEvaluation>,
) -> ApiResult {
    let show = json_encoder(|made: &Evaluation| Ok(EvaluationView::from(made.clone())));
    evaluations.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List evaluations
///
/// Shows the evaluations of the workspace, newest first.
#[utoipa::path(
    get,
    path = "/evaluations",
    tag = "Evaluations",
    operation_id = "listEvaluations",
    responses((
        status = 200,
        description = "The evaluations",
        body = inline(SuccessResponse<Vec<EvaluationView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(State(evaluations): State<EvaluationService>, caller: Caller, paging: Paging) -> ApiResult {
    list(paging, move |before, limit| {
        let (evaluations, actor) = (evaluations.clone(), caller.actor());
        async move {
            let found = evaluations.list(&actor, before, limit).await?;
            Ok(found.into_iter().map(|one| (*one.id.as_uuid(), EvaluationView::from(one))).collect())
        }
    })
    .await
}

/// Get an evaluation
///
/// Shows one evaluation.
#[utoipa::path(
    get,
    path = "/evaluations/{id}",
    tag = "Evaluations",
    operation_id = "getEvaluation",
    params(("id" = String, Path, description = "The evaluation's id")),
    responses((
        status = 200,
        description = "The evaluation",
        body = inline(SuccessResponse<EvaluationView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
) -> ApiResult {
    Ok(data(EvaluationView::from(evaluations.find(&caller.actor(), id).await?)))
}

/// Change an evaluation
///
/// Changes what is sent. Runs that go on take what they find, and ask the agent that they were begun with.
#[utoipa::path(
    patch,
    path = "/evaluations/{id}",
    tag = "Evaluations",
    operation_id = "updateEvaluation",
    params(("id" = String, Path, description = "The evaluation's id")),
    request_body(content = EvaluationChange, example = json!({"name": "Warranty"})),
    responses((
        status = 200,
        description = "The evaluation as it is now",
        body = inline(SuccessResponse<EvaluationView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn change(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
    ValidJson(body): ValidJson<EvaluationChange>,
) -> ApiResult {
    Ok(data(EvaluationView::from(evaluations.change(&caller.actor(), id, body, EditBase::Present).await?)))
}

/// Delete an evaluation
///
/// Deletes an evaluation with its cases and its runs. Traces of its answers stay as long as others.
#[utoipa::path(
    delete,
    path = "/evaluations/{id}",
    tag = "Evaluations",
    operation_id = "deleteEvaluation",
    params(("id" = String, Path, description = "The evaluation's id")),
    responses((
        status = 200,
        description = "It is deleted",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
) -> ApiResult {
    evaluations.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
