//! Responses: asking an agent in the newer of OpenAI's two ways. Nothing of one is stored, so each request brings its conversation;
//! answers in it may be referred to, as long as their traces are kept.

mod answer;
mod attributes;
mod references;
mod request;
mod run;
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
    answer::{AgentResponse, example},
    attributes::AttributeReader,
    references::resolve,
    request::{NamedStores, OTHER_STORES, ResponseRequest},
    run::ResponseRun,
    stream::ResponseStream,
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
    services::{
        asking::{AskService, AskableAgent},
        citations::CitationLinks,
        documents::DocumentService,
        traces::TraceService,
    },
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(create))
}

/// Create a response
///
/// Asks the agent that `model` names, by its id or its name. `input` is the question, or the whole conversation: nothing is stored, so
/// `previous_response_id`, `conversation`, `background` and `prompt` are refused. Agents use tools of their own; tools of the request are not
/// called, and fields that have no meaning here are ignored. An agent searches what it is linked to: a `file_search` that names vector
/// stores is refused unless they are all of that, and so are its `filters`.
///
/// `output` has a `file_search_call` for each search of the agent's documents, with what was found if `include` names
/// `file_search_call.results`, and the answer as a `message`. Its annotations come in pairs for each `[n]` of the text: a `url_citation`
/// whose `url` opens the passage, and a `file_citation`. The indices count Unicode code points.
#[utoipa::path(
    post,
    path = "/responses",
    tag = "OpenAI-compatible",
    operation_id = "openaiCreateResponse",
    request_body(
        content = ResponseRequest,
        example = json!({
            "model": "support",
            "input": "Who was the captain?",
            "include": ["file_search_call.results"],
            "stream": false,
        }),
    ),
    responses(
        (
            status = 200,
            description = "The agent's answer; with `stream` as `text/event-stream`, by named events",
            content(
                (inline(AgentResponse) = "application/json", example = json!(example())),
                (String = "text/event-stream", example = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"delta\":\"Solveig Aas\"}\n\n"),
            ),
        ),
        (status = 502, description = "The agent's model refused the request, failed or answered with something unusable"),
        (status = 504, description = "The agent's model did not answer in time"),
    ),
)]
#[handler]
async fn create(
    (State(asking), State(traces)): (State<AskService>, State<TraceService>),
    State(documents): State<DocumentService>,
    (State(links), State(clock)): (State<CitationLinks>, State<Clock>),
    (caller, address): (Caller, PublicAddress),
    shutdown: Option<Extension<Shutdown>>,
    Extension(opened): Extension<RequestCredential>,
    ValidJson(body): ValidJson<ResponseRequest>,
) -> ApiResult<Response> {
    let actor = caller.actor();
    let linker = CitationLinker::new(links, address, &actor)?;
    let (conversation, form) = body.split(clock.now());
    let asked = find_model(&asking, &actor, &form.response.model).await?;
    refuse_other_stores(&asking, &asked, form.stores.as_ref()).await?;
    let conversation = resolve(&traces, &actor, conversation).await?;
    let is_streamed = form.is_streamed;
    let response = form.response;
    let (values, max_tokens) = (response.metadata.clone(), response.max_output_tokens);
    let running = ask_model(&asking, &actor, asked, conversation, values, max_tokens).await?;
    let attributes = form.shows_results.then(|| AttributeReader::new(documents, actor));
    let run = ResponseRun::new(response, linker, form.shows_results);
    opened
        .while_in_force(async {
            let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
            if is_streamed {
                let encoder = ResponseStream::new(run, attributes);
                streamed(running, encoder, shutdown).await
            } else {
                until_stopped(shutdown.as_ref(), Box::pin(whole(running, run, attributes))).await
            }
        })
        .await
}

/// Refuses vector stores that are not all that the agent searches: whoever names some wants an answer from them, and from nothing else.
async fn refuse_other_stores(
    asking: &AskService,
    asked: &AskableAgent,
    named: Option<&NamedStores>,
) -> ApiResult<()> {
    match named {
        Some(named) if !asking.answers_from(asked, &named.stores).await? => {
            Err(ApiError::invalid_field(&named.path, OTHER_STORES))
        }
        Some(_) | None => Ok(()),
    }
}

/// The response of a run, once it has ended.
async fn whole(
    mut running: RunHandle,
    mut run: ResponseRun,
    attributes: Option<AttributeReader>,
) -> ApiResult<Response> {
    while let Some(event) = running.next().await {
        if let RunEvent::Failed(error) = event {
            return Err(error.into());
        }
        if let Some(attributes) = &attributes {
            attributes.prepare(&mut run, &event).await?;
        }
        run.apply(&event);
        if event.is_last() {
            return Ok(Json(run.response).into_response());
        }
    }
    Err(ApiError::internal())
}
