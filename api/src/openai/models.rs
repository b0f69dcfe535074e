//! Models: the agents that the caller may ask.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use lectern_derive::handler;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::asking::find_model;
use crate::{
    auth::Caller,
    extract::PathId,
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::asking::{AskService, AskableAgent},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index)).routes(routes!(find))
}

/// An agent, as a model.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiModel)]
struct ModelView {
    /// The agent's id, which is what `model` takes. It takes the name too, if no other agent is called the same.
    id: String,
    /// Always `model`.
    object: &'static str,
    /// When the agent was made, in seconds since 1970.
    created: i64,
    /// Always `lectern`.
    owned_by: &'static str,
    /// The agent's name.
    name: String,
    /// What it is for.
    description: String,
}

/// Models.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiModels)]
struct ModelList {
    /// Always `list`.
    object: &'static str,
    /// The models, newest first.
    data: Vec<ModelView>,
}

impl From<AskableAgent> for ModelView {
    fn from(askable: AskableAgent) -> Self {
        let agent = askable.agent();
        Self {
            id: agent.id.to_string(),
            object: "model",
            created: agent.created_at.as_secs(),
            owned_by: "lectern",
            name: agent.name.clone(),
            description: agent.description.clone(),
        }
    }
}

/// An agent among others: what it is for is cut.
fn listed(askable: AskableAgent) -> ModelView {
    let description = askable.summary();
    ModelView { description, ..ModelView::from(askable) }
}

fn example() -> Value {
    json!({
        "id": "019a8f4d-6d1b-7f62-a0c8-5b7e9d2f4a16",
        "object": "model",
        "created": 1_769_846_580,
        "owned_by": "lectern",
        "name": "support",
        "description": "Answers from the manuals",
    })
}

/// List models
///
/// Shows the agents that you may ask, newest first. Their ids are what `model` takes elsewhere; their names are taken too, as long
/// as no two agents share one.
#[utoipa::path(
    get,
    path = "/models",
    tag = "OpenAI-compatible",
    operation_id = "openaiListModels",
    responses((
        status = 200,
        description = "The agents",
        body = inline(ModelList),
        example = json!({"object": "list", "data": [example()]}),
    )),
)]
#[handler]
async fn index(State(asking): State<AskService>, caller: Caller) -> ApiResult<Response> {
    let data = asking.all_askable(&caller.actor(), listed).await?;
    Ok(Json(ModelList { object: "list", data }).into_response())
}

/// Get a model
///
/// Shows one agent, by its id or its name.
#[utoipa::path(
    get,
    path = "/models/{model}",
    tag = "OpenAI-compatible",
    operation_id = "openaiGetModel",
    params(("model" = String, Path, description = "The agent's id, or its name if no other one is called the same")),
    responses((
        status = 200,
        description = "The agent",
        body = inline(ModelView),
        example = json!(example()),
    )),
)]
#[handler]
async fn find(
    State(asking): State<AskService>,
    caller: Caller,
    PathId(model): PathId<String>,
) -> ApiResult<Response> {
    let agent = find_model(&asking, &caller.actor(), &model).await?;
    Ok(Json(ModelView::from(agent)).into_response())
}
