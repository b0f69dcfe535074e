//! Asking an agent.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use lectern_shared::{db, ids::AgentId, runtime::Runtime};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    auth::TokenCaller,
    error::ApiError,
    extract::{Fields, FromFields, PathId, Valid},
    predict::{
        self, Question,
        trace::{self, TraceView},
    },
    response::Answer,
    state::AppState,
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(run))
}

/// Longest question, in characters.
const QUESTION: usize = 100_000;
/// Longest session name, in characters.
const SESSION: usize = 1_000;

/// A question to an agent.
#[derive(ToSchema)]
struct Predict {
    /// What the agent is given.
    input: PredictInput,
    /// Whether the answer is to be streamed. Streamed answers are not available yet: leave it out or send false.
    #[schema(required = false, default = false)]
    #[expect(dead_code, reason = "true is refused when it is read")]
    has_streaming: bool,
    /// The conversation that the question belongs to, by a name of your own.
    #[schema(max_length = 1_000)]
    session: Option<String>,
}

/// What an agent is given.
#[derive(Default, ToSchema)]
struct PredictInput {
    /// The message to the agent.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    input: String,
}

impl FromFields for Predict {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        if fields.get("input").is_none() {
            fields.refuse("input", "is required: an object such as {\"input\": \"your question\"}");
        }
        let has_streaming = fields.boolean("has_streaming").unwrap_or(false);
        if has_streaming {
            fields.refuse("has_streaming", "streamed answers are not available yet; send false");
        }
        Self {
            input: fields.nested("input", PredictInput::from_fields).unwrap_or_default(),
            has_streaming,
            session: fields.optional_text("session", SESSION),
        }
    }
}

impl FromFields for PredictInput {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        Self { input: fields.text("input", QUESTION) }
    }
}

/// An agent's answer.
#[derive(Serialize, ToSchema)]
struct Prediction {
    /// True when the agent has answered.
    success: bool,
    /// The answer, with `[n]` where it cites.
    data: String,
    /// How it came about.
    #[schema(value_type = TraceView)]
    trace: Value,
}

fn example() -> Value {
    let trace = trace::example();
    json!({"success": true, "data": trace.get("output"), "trace": trace})
}

/// Call an agent
///
/// Searches the documents that are linked to the agent, asks its model, and answers with a text that cites its sources as
/// `[n]`. `trace.citations` tells which documents the numbers stand for, and whether the words that the answer quotes were
/// found in them. The trace is kept for a while, see `GET /traces`.
///
/// Send an API token in `X_SERVICE_API_KEY` (or `X-Service-Api-Key`, which proxies let through), or any bearer token as on the
/// other endpoints.
#[utoipa::path(
    post,
    path = "/agents/{id}/predict",
    tag = "Predict",
    operation_id = "predict",
    security(("apiToken" = []), ("bearer" = []), ("autorization" = [])),
    params(("id" = String, Path, description = "The agent's id")),
    request_body(
        content = Predict,
        example = json!({"input": {"input": "Who was the captain?"}, "has_streaming": false, "session": "support-4711"}),
    ),
    responses(
        (status = 200, description = "The agent's answer", body = inline(Prediction), example = json!(example())),
        (status = 502, description = "The agent's model refused the request, failed or answered with something unusable"),
        (status = 504, description = "The agent's model did not answer in time"),
    ),
)]
async fn run(
    State(runtime): State<Runtime>,
    TokenCaller(user): TokenCaller,
    PathId(id): PathId<AgentId>,
    Valid(body): Valid<Predict>,
) -> Answer<Response> {
    let agent =
        db::agents::find(&runtime.db, user.id, id).await?.ok_or_else(|| ApiError::not_found("agent"))?;
    let question = Question { text: body.input.input, session: body.session };
    let answer = predict::run(&runtime, &agent, &question).await?;
    Ok(Json(Prediction { success: true, data: answer.text, trace: answer.trace }).into_response())
}
