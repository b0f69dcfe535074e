//! Asking an agent.

mod stream;

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse, Response},
};
use lectern_agents::run::{
    AgentQuestion, RunHandle,
    trace::{self, TraceView},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{ids::AgentId, shutdown::Shutdown};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

pub(super) use self::stream::StreamFormat;
use crate::{
    auth::{TokenCaller, in_force::RequestCredential},
    error::ApiError,
    extract::{PathId, ValidJson},
    fields::{FieldRule, JsonFields},
    openapi::{ApiRouter, routes},
    response::ApiResult,
    run_stream::{streamed, until_stopped},
    services::asking::AskService,
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(run))
}

/// A question to an agent.
#[derive(RequestBody, ToSchema)]
#[schema(as = Predict)]
#[body(before = require_input, first(session))]
struct PredictRequest {
    /// What the agent is given.
    #[body(default)]
    input: PredictInput,
    /// Whether the answer is to be streamed as server-sent events.
    #[schema(required = false, default = false)]
    has_streaming: bool,
    /// With `has_streaming`: whether the stream tells by named events all that happens, instead of the answer alone.
    #[schema(required = false, default = false)]
    stream_events: bool,
    /// The conversation that the question belongs to, by a name of your own. An agent with `hasMemory` is told what was said in
    /// it before.
    #[schema(max_length = 1_000)]
    #[body(with = session)]
    session: Option<String>,
    /// How old an answer may be, in seconds, that is given again instead of asking: to the same question, by the same agent, from
    /// the same documents. 0 (no old answer) when left out; not used with a session.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2_592_000)]
    #[body(with = cache_ttl)]
    cache_ttl: Duration,
    /// An earlier version of the agent to ask, see `GET /agents/{id}/versions`; for those who build agents. The agent as it is when left
    /// out.
    #[schema(value_type = Option<u32>, minimum = 1)]
    version: Option<u32>,
}

/// What an agent is given.
#[derive(Default, RequestBody, ToSchema)]
struct PredictInput {
    /// The message to the agent.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    input: String,
    /// Values of the variables of the agent's prompt, each by its name.
    #[schema(value_type = Object)]
    #[serde(flatten)]
    variables: Map<String, Value>,
}

/// Refuses a body without input, and shows what it should be.
fn require_input(fields: &mut JsonFields<'_>) {
    if fields.get("input").is_none() {
        fields.refuse("input", "is required: an object such as {\"input\": \"your question\"}");
    }
}

fn session(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let session = fields.optional_text(rule.name, rule.max_length);
    // No path could name them, and so nothing could erase them.
    if session.as_deref().is_some_and(|name| matches!(name, "" | "." | "..")) {
        fields.refuse(rule.name, "must be a name; leave it out for a question without a session");
    }
    session
}

fn cache_ttl(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Duration> {
    fields.number(rule.name, rule.minimum, rule.maximum).map(Duration::from_secs_f64)
}

/// An agent's answer.
#[derive(Serialize, ToSchema)]
struct PredictResponse {
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
/// Searches the documents that are linked to the agent, asks its model, which may call the agent's tools, and answers with a text
/// that cites its sources as `[n]`. `trace.citations` tells which documents the numbers stand for, and whether the words that the
/// answer quotes were found in them. The trace is kept for a while, see `GET /traces`.
///
/// With `has_streaming` the answer is a stream of server-sent events: each piece of it an unnamed event, then one whose data is
/// `[END]`; before that, when the run fails, an event `error` with `code` and `message`. With `stream_events` too, the events are
/// `start`, `retrieval`, `token` (`delta`), `tool_call`, `tool_result`, `citation`, and at last `end` (`answer`, `trace`) or
/// `error`, each with JSON. What fails before the first piece, and within ten seconds, is answered as an ordinary error.
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
        content = PredictRequest,
        example = json!({"input": {"input": "Who was the captain?"}, "has_streaming": false, "session": "support-4711"}),
    ),
    responses(
        (
            status = 200,
            description = "The agent's answer; with `has_streaming` as `text/event-stream`",
            content(
                (inline(PredictResponse) = "application/json", example = json!(example())),
                (String = "text/event-stream", example = "data: Solveig Aas had sailed\n\ndata:  the route twice before [1].\n\ndata: [END]\n\n"),
            ),
        ),
        (status = 502, description = "The agent's model refused the request, failed or answered with something unusable"),
        (status = 504, description = "The agent's model did not answer in time"),
    ),
)]
#[handler]
async fn run(
    State(asking): State<AskService>,
    TokenCaller(caller): TokenCaller,
    shutdown: Option<Extension<Shutdown>>,
    Extension(opened): Extension<RequestCredential>,
    PathId(id): PathId<AgentId>,
    ValidJson(body): ValidJson<PredictRequest>,
) -> ApiResult<Response> {
    let actor = caller.actor();
    let agent = asking.find(&actor, id).await?;
    let format = StreamFormat::of(body.has_streaming, body.stream_events);
    let question = AgentQuestion {
        text: body.input.input,
        variables: body.input.variables,
        session: body.session,
        cache_ttl: body.cache_ttl,
        ..AgentQuestion::default()
    };
    let answered = async {
        let running = match body.version {
            None => asking.ask(&actor, agent, question).await?,
            Some(version) => asking.ask_version(&actor, agent, version.into(), question).await?,
        };
        answer(running, format, shutdown).await
    };
    opened.while_in_force(answered).await
}

/// A run's answer, whole or as it comes.
pub(super) async fn answer(
    running: RunHandle,
    format: Option<StreamFormat>,
    shutdown: Option<Extension<Shutdown>>,
) -> ApiResult<Response> {
    let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
    match format {
        Some(format) => streamed(running, format, shutdown).await,
        None => {
            let finished = async { running.finish().await.map_err(ApiError::from) };
            let (text, trace) = until_stopped(shutdown.as_ref(), finished).await?;
            Ok(Json(PredictResponse { success: true, data: text, trace }).into_response())
        }
    }
}
