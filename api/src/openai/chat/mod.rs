//! Chat completions: asking an agent with the whole conversation.

mod answer;
mod request;
mod stream;

use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse, Response},
};
use lectern_agents::run::{RunEvent, RunHandle};
use lectern_derive::handler;
use lectern_shared::{clock::Clock, shutdown::Shutdown};

use self::{
    answer::{ChatCompletion, CompletionHead, example},
    request::CompletionRequest,
    stream::CompletionStream,
};
use super::{
    annotations::CitationLinker,
    asking::{ask_model, find_model},
};
use crate::{
    auth::{Caller, in_force::RequestCredential},
    error::ApiError,
    extract::ValidJson,
    openapi::{ApiRouter, routes},
    public_address::PublicAddress,
    response::ApiResult,
    run_stream::{streamed, until_stopped},
    services::{asking::AskService, citations::CitationLinks},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(create))
}

/// Create a chat completion
///
/// Asks the agent that `model` names, by its id or its name. `messages` are the whole conversation: the texts of the user after the
/// last answer are the question, everything before is what the agent is told of it, and texts of `system` and `developer` add to its
/// instructions. Nothing is remembered between requests. Agents use tools of their own; tools of the request are not called, and
/// fields that have no meaning here are ignored. An agent whose prompt takes values finds them in `metadata`, by the names of its variables.
///
/// `annotations` tell where the answer cites: each `url` opens the passage, and `lectern` says what is quoted and whether those words
/// were found there. The indices count Unicode code points. With `stream` they come after the text, in the `delta` of a chunk of their
/// own.
#[utoipa::path(
    post,
    path = "/chat/completions",
    tag = "OpenAI-compatible",
    operation_id = "openaiCreateChatCompletion",
    request_body(
        content = CompletionRequest,
        example = json!({
            "model": "support",
            "messages": [{"role": "user", "content": "Who was the captain?"}],
            "stream": false,
        }),
    ),
    responses(
        (
            status = 200,
            description = "The agent's answer; with `stream` as `text/event-stream`, which ends with `data: [DONE]`",
            content(
                (inline(ChatCompletion) = "application/json", example = json!(example())),
                (String = "text/event-stream", example = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Solveig Aas\"}}]}\n\ndata: [DONE]\n\n"),
            ),
        ),
        (status = 502, description = "The agent's model refused the request, failed or answered with something unusable"),
        (status = 504, description = "The agent's model did not answer in time"),
    ),
)]
#[handler]
async fn create(
    (State(asking), State(links), State(clock)): (State<AskService>, State<CitationLinks>, State<Clock>),
    (caller, address): (Caller, PublicAddress),
    shutdown: Option<Extension<Shutdown>>,
    Extension(opened): Extension<RequestCredential>,
    ValidJson(body): ValidJson<CompletionRequest>,
) -> ApiResult<Response> {
    let CompletionRequest {
        model,
        messages,
        stream,
        stream_options,
        max_tokens,
        max_completion_tokens,
        metadata,
    } = body;
    let actor = caller.actor();
    let linker = CitationLinker::new(links, address, &actor)?;
    let max_tokens = max_completion_tokens.or(max_tokens);
    let asked = find_model(&asking, &actor, &model).await?;
    let running = ask_model(&asking, &actor, asked, messages, metadata, max_tokens).await?;
    let head = CompletionHead { created: clock.now().as_secs(), model };
    opened
        .while_in_force(async {
            let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
            if stream {
                let encoder = CompletionStream::new(head, linker, stream_options.include_usage);
                streamed(running, encoder, shutdown).await
            } else {
                until_stopped(shutdown.as_ref(), whole(running, head, &linker)).await
            }
        })
        .await
}

/// The answer of a run, once it has ended.
async fn whole(mut running: RunHandle, head: CompletionHead, linker: &CitationLinker) -> ApiResult<Response> {
    let mut citations = Vec::new();
    while let Some(event) = running.next().await {
        match event {
            RunEvent::Citation(citation) => citations.push(*citation),
            RunEvent::Failed(error) => return Err(error.into()),
            RunEvent::End { answer, outcome, .. } => {
                let markers = linker.markers(&citations);
                return Ok(Json(ChatCompletion::new(head, answer, &markers, outcome)).into_response());
            }
            RunEvent::Start { .. }
            | RunEvent::Retrieval { .. }
            | RunEvent::Token { .. }
            | RunEvent::ToolCall { .. }
            | RunEvent::ToolResult { .. } => {}
        }
    }
    Err(ApiError::internal())
}
