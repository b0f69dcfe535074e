//! Records of what agents did.

use axum::{
    Extension, Json,
    extract::State,
    http::Uri,
    response::{IntoResponse, Response},
};
use lectern_agents::run::{
    self, AgentParts,
    trace::{self, TraceView},
};
use lectern_db::traces::{ErasedRuns, StoredTrace, TraceFilter};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, ApiTokenId, AskerId, TraceId, UserId},
    shutdown::Shutdown,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    error::ApiError,
    extract::{NamePart, PathId, QueriedAgent, ValidJson, parameter},
    fields::GivenId,
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list_until},
    run_stream::streamed,
    services::traces::{RecordedTrace, TraceFeedback, TraceService},
    v1::{predict::StreamFormat, users::NullBody},
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index))
        .routes(routes!(find, remove))
        .routes(routes!(remove_all))
        .routes(routes!(replay))
        .routes(routes!(rate, unrate))
}

/// Traces may have a megabyte each.
const PAGE: u32 = 10;

/// The record of one call of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredTrace)]
#[serde(rename_all = "camelCase")]
struct StoredTraceView {
    /// Its id; the trace itself carries the same.
    #[schema(value_type = String)]
    id: TraceId,
    /// The agent that was called.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The session that the call named; null when it named none.
    #[schema(required = true)]
    session: Option<String>,
    /// Who asked, as far as it is known.
    asked_by: AskerView,
    /// When the agent answered.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// False when the trace was larger than 1 MiB and its longest texts were left out.
    complete: bool,
    /// The trace as predict answered it.
    #[schema(value_type = TraceView)]
    trace: Value,
    /// What was said of the answer; null when nothing was.
    #[schema(required = true)]
    feedback: Option<FeedbackView>,
}

/// Who asked.
#[derive(Serialize, ToSchema)]
#[schema(as = Asker)]
#[serde(rename_all = "camelCase")]
struct AskerView {
    /// The account; null when it was asked with a token that many may hold.
    #[schema(value_type = Option<String>, required = true)]
    user_id: Option<UserId>,
    /// The API token, if it is bound to an agent or for pages: its own, or that of the agent's page, with which all ask who have no account. Who
    /// of them it was is not known. Null for an account's own questions.
    #[schema(value_type = Option<String>, required = true)]
    token_id: Option<ApiTokenId>,
}

/// What somebody said of an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = Feedback)]
struct FeedbackView {
    /// 1 when it helped, -1 when it did not.
    rating: i64,
    /// In which words.
    #[schema(required = true)]
    text: Option<String>,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

impl From<StoredTrace> for StoredTraceView {
    fn from(stored: StoredTrace) -> Self {
        let feedback = stored.rating.zip(stored.feedback_at);
        let feedback = feedback.map(|(rating, at)| FeedbackView { rating, text: stored.feedback, at });
        Self {
            id: stored.id,
            agent_id: stored.agent_id,
            session: stored.session,
            asked_by: AskerView {
                // That of a token made it, and need not have asked.
                user_id: stored.user_id.filter(|_| stored.token_id.is_none()),
                token_id: stored.token_id,
            },
            created_at: stored.created_at,
            complete: stored.complete,
            trace: stored.body.0,
            feedback,
        }
    }
}

fn example() -> Value {
    let trace = trace::example();
    json!({
        "id": trace.get("id"),
        "agentId": "019a8f4e-90aa-7e26-a4d7-58c1f3b20d6e",
        "session": "support-4711",
        "askedBy": {"userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55", "tokenId": null},
        "createdAt": "2026-01-31T08:20:00.000000+00:00",
        "complete": true,
        "trace": trace,
        "feedback": {"rating": 1, "text": "The right page at once.", "at": "2026-01-31T08:21:00.000000+00:00"},
    })
}

/// List traces
///
/// Shows what your agents did when they were called, newest first. Traces are kept for as long as the operator has set (30
/// days, if not said otherwise), and go with their agent.
#[utoipa::path(
    get,
    path = "/traces",
    tag = "Traces",
    operation_id = "listTraces",
    params(
        ("agentId" = Option<String>, Query, description = "Only the traces of this agent"),
        ("askedBy" = Option<String>, Query, description = "Only what this one asked: the id of an account, or of an API token that many may hold, as `askedBy` of a trace has it"),
        ("rating" = Option<i32>, Query, description = "Only those of which this was said: 1 (it helped) or -1"),
        (
            "name" = Option<String>, Query, max_length = 1_000,
            description = "Only the answers to questions that have this somewhere in their first 500 characters, in whichever case. At most 10,000 traces are looked at; where there are older ones, the answer has a `nextCursor`, however few it shows"
        ),
    ),
    responses((
        status = 200,
        description = "Your traces",
        body = inline(SuccessResponse<Vec<StoredTraceView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(traces): State<TraceService>,
    caller: Caller,
    paging: Paging,
    QueriedAgent(agent): QueriedAgent,
    NamePart(question): NamePart,
    uri: Uri,
) -> ApiResult {
    let rating = match parameter(&uri, "rating").map(|text| text.parse()) {
        None => None,
        Some(Ok(rating @ (1 | -1))) => Some(rating),
        Some(Ok(_) | Err(_)) => {
            return Err(ApiError::invalid_field("rating", "must be 1 or -1"));
        }
    };
    let asker = match parameter(&uri, "askedBy") {
        None => None,
        Some(asker) => Some(asker.parse::<AskerId>().map_err(|_| unknown_asker())?),
    };
    let mut filter = TraceFilter { agent, rating, asker, question, since: None };
    let end = traces.bound(&caller.actor(), &mut filter, paging.before()).await?;
    list_until(PAGE, paging, end, move |before, limit| {
        let (traces, actor, filter) = (traces.clone(), caller.actor(), filter.clone());
        async move {
            let traces = traces.list(&actor, &filter, before, limit).await?;
            let row = |trace: StoredTrace| (*trace.id.as_uuid(), StoredTraceView::from(trace));
            Ok(traces.into_iter().map(row).collect())
        }
    })
    .await
}

fn unknown_asker() -> ApiError {
    ApiError::not_found("asker")
}

/// Get a trace
///
/// Shows what an agent did in one call.
#[utoipa::path(
    get,
    path = "/traces/{id}",
    tag = "Traces",
    operation_id = "getTrace",
    params(("id" = String, Path, description = "The trace's id, `trace.id` of the answer")),
    responses((
        status = 200,
        description = "The trace",
        body = inline(SuccessResponse<StoredTraceView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(State(traces): State<TraceService>, caller: Caller, PathId(id): PathId<TraceId>) -> ApiResult {
    Ok(data(StoredTraceView::from(traces.find(&caller.actor(), id).await?)))
}

/// Delete a trace
///
/// Deletes what is kept of one call: the question, the answer, the passages that were found, what was said of the answer, and the turn of the
/// conversation that the agent remembers of it. Cases that were made of it stay, and so does what traces of later questions of the same
/// conversation tell of it. Whoever builds agents may delete everybody's, and others what they asked themselves.
#[utoipa::path(
    delete,
    path = "/traces/{id}",
    tag = "Traces",
    operation_id = "deleteTrace",
    params(("id" = String, Path, description = "The trace's id")),
    responses((
        status = 200,
        description = "It is deleted",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(traces): State<TraceService>,
    caller: Caller,
    PathId(id): PathId<TraceId>,
) -> ApiResult {
    traces.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}

/// Whose traces are deleted.
#[derive(RequestBody, ToSchema)]
#[schema(as = TraceErasure, rename_all = "camelCase")]
struct TraceErasure {
    /// Who asked: the id of an account, or of an API token that many may hold, as `askedBy` of a trace has it.
    #[schema(value_type = String)]
    asked_by: GivenId<AskerId>,
}

/// What was deleted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ErasedTraces {
    /// Traces that this request has deleted.
    traces: u64,
    /// Turns that conversations remembered, and do not any more.
    remembered: u64,
    /// Whether there is more of it: send the request again.
    has_more: bool,
}

/// Delete all traces of one asker
///
/// Deletes all that is kept in the workspace of what one asked, of whichever agents, and what the conversations with these remember: 200 of each
/// at once, the oldest first. As long as `hasMore` is true, send it again; what is deleted stays deleted. Whoever builds agents may delete
/// everybody's, and others what they asked themselves: of anybody else's they find none.
#[utoipa::path(
    post,
    path = "/traces/delete",
    tag = "Traces",
    operation_id = "deleteTracesOfAsker",
    request_body(content = TraceErasure, example = json!({"askedBy": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55"})),
    responses((
        status = 200,
        description = "What was deleted",
        body = inline(SuccessResponse<ErasedTraces>),
        example = json!({"success": true, "data": {"traces": 42, "remembered": 17, "hasMore": false}}),
    )),
)]
#[handler]
async fn remove_all(
    State(traces): State<TraceService>,
    caller: Caller,
    ValidJson(body): ValidJson<TraceErasure>,
) -> ApiResult {
    let asker = body.asked_by.map_err(|_| unknown_asker())?;
    let ErasedRuns { traces, turns, has_more } = traces.delete_some_of(&caller.actor(), asker).await?;
    Ok(data(ErasedTraces { traces, remembered: turns, has_more }))
}

/// Say whether an answer helped
///
/// Keeps what you say of an answer with its trace, in the place of what was said before. Whoever may see the trace may; and an API
/// token that is bound to an agent, of the answers that were given to it.
#[utoipa::path(
    post,
    path = "/traces/{id}/feedback",
    tag = "Traces",
    operation_id = "rateTrace",
    params(("id" = String, Path, description = "The trace's id")),
    request_body(content = TraceFeedback, example = json!({"rating": 1, "text": "The right page at once."})),
    responses((
        status = 200,
        description = "The trace, with the feedback",
        body = inline(SuccessResponse<StoredTraceView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn rate(
    State(traces): State<TraceService>,
    caller: Caller,
    PathId(id): PathId<TraceId>,
    ValidJson(body): ValidJson<TraceFeedback>,
) -> ApiResult {
    Ok(data(StoredTraceView::from(traces.rate(&caller.actor(), id, body).await?)))
}

/// Take feedback back
///
/// Takes away what was said of an answer.
#[utoipa::path(
    delete,
    path = "/traces/{id}/feedback",
    tag = "Traces",
    operation_id = "unrateTrace",
    params(("id" = String, Path, description = "The trace's id")),
    responses((
        status = 200,
        description = "The trace, without feedback",
        body = inline(SuccessResponse<StoredTraceView>),
        example = json!({"success": true, "data": unrated_example()}),
    )),
)]
#[handler]
async fn unrate(
    State(traces): State<TraceService>,
    caller: Caller,
    PathId(id): PathId<TraceId>,
) -> ApiResult {
    Ok(data(StoredTraceView::from(traces.unrate(&caller.actor(), id).await?)))
}

fn unrated_example() -> Value {
    let mut example = example();
    example["feedback"] = Value::Null;
    example
}

/// How a run is to be repeated.
#[derive(RequestBody, ToSchema)]
#[schema(as = Replay)]
struct ReplayRequest {
    /// Whether the answer is to be streamed, as predict does it.
    #[schema(required = false, default = false)]
    has_streaming: bool,
    /// With `has_streaming`: whether the stream tells all that happens.
    #[schema(required = false, default = false)]
    stream_events: bool,
}

/// What a repeated run answered.
#[derive(Serialize, ToSchema)]
struct ReplayResponse {
    /// True when the run was repeated.
    success: bool,
    /// The answer that it gives.
    data: String,
    /// How it came about.
    #[schema(value_type = TraceView)]
    trace: Value,
    /// It is the same answer, with the same trace, as the first time. Another version of the service may read what the model
    /// said in another way.
    matches: bool,
}

fn replayed_example() -> Value {
    let trace = trace::example();
    json!({"success": true, "data": trace.get("output"), "trace": trace, "matches": true})
}

/// Replay a trace
///
/// Repeats a run from its record: what the documents, the model and the tools said then is taken from it, and nothing outside is
/// asked. It gives the same answer and the same events. A run that failed fails in the same way.
#[utoipa::path(
    post,
    path = "/traces/{id}/replay",
    tag = "Traces",
    operation_id = "replayTrace",
    params(("id" = String, Path, description = "The trace's id")),
    request_body(content = ReplayRequest, example = json!({"has_streaming": false})),
    responses(
        (
            status = 200,
            description = "What the run answers; with `has_streaming` as `text/event-stream`",
            content(
                (inline(ReplayResponse) = "application/json", example = json!(replayed_example())),
                (String = "text/event-stream", example = "data: Solveig Aas had sailed\n\ndata:  the route twice before [1].\n\ndata: [END]\n\n"),
            ),
        ),
        (status = 409, description = "The trace was too large to be kept whole, or another version of the service recorded it"),
        (status = 502, description = "The run failed so: its model refused the request, failed or answered with something unusable"),
        (status = 504, description = "The run failed so: its model did not answer in time"),
    ),
)]
#[handler]
async fn replay(
    State(agents): State<AgentParts>,
    State(traces): State<TraceService>,
    caller: Caller,
    shutdown: Option<Extension<Shutdown>>,
    PathId(id): PathId<TraceId>,
    ValidJson(body): ValidJson<ReplayRequest>,
) -> ApiResult<Response> {
    let RecordedTrace { trace: stored, record } = traces.find_with_record(&caller.actor(), id).await?;
    let running = run::replay(&agents, &stored, record)?;
    match StreamFormat::of(body.has_streaming, body.stream_events) {
        Some(format) => streamed(running, format, shutdown.map(|Extension(shutdown)| shutdown)).await,
        None => {
            let (data, trace) = running.finish().await?;
            let matches = trace == stored.body.0;
            Ok(Json(ReplayResponse { success: true, data, trace, matches }).into_response())
        }
    }
}
