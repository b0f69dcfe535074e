//! The service as a server of the Model Context Protocol, for assistants that search the documents and ask the agents. It speaks
//! the revision without sessions and the handshake of the ones before, and keeps nothing between two requests but what runs: a session
//! is a name, by which a client can take back its own calls.
//! It calls the services, like every face, and nothing but the router calls it.

mod admission;
mod arguments;
mod context;
mod message;
mod metadata;
mod resources;
mod running;
mod served;
mod server;
mod text;
mod tools;

use std::sync::Arc;

use axum::{
    Extension, Router,
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
    routing::post,
};
use lectern_derive::handler;
use lectern_shared::shutdown::Shutdown;
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService,
    streamable_http_server::session::never::NeverSessionManager,
};
use serde_json::Value;
use tracing::Span;

pub(crate) use self::message::error_response;
use self::{
    arguments::CallArguments,
    context::CallContext,
    message::MessageOutline,
    running::{RunningCalls, SessionId},
    served::ServedServices,
    server::McpServer,
};
use crate::{
    auth::{
        Caller,
        in_force::{RequestCredential, TerminationNotice},
    },
    error::{ApiError, ApiErrorKind},
    fields::SenderTrust,
    public_address::PublicAddress,
    response::ApiResult,
    state::AppState,
};

/// Where clients post their messages.
const PATH: &str = "/mcp";
/// The same, as some clients and people write it.
const WITH_SLASH: &str = "/mcp/";
/// What the protocol has clients take, and the library asks for by name.
const ACCEPTED: &str = "application/json, text/event-stream";

/// The paths of the server, and of what tells clients how to be let in.
#[expect(
    clippy::disallowed_methods,
    reason = "the OpenAPI document does not describe another protocol's messages"
)]
pub(crate) fn router(state: &AppState) -> Router<AppState> {
    let endpoint = Arc::new(McpEndpoint::new(state));
    let router = Router::new().route(PATH, post(serve)).route(WITH_SLASH, post(serve));
    router.layer(Extension(endpoint)).merge(metadata::router())
}

/// Answers one message.
#[handler]
async fn serve(
    Extension(endpoint): Extension<Arc<McpEndpoint>>,
    State(state): State<AppState>,
    address: PublicAddress,
    request: Request,
) -> Response {
    let challenge = metadata::challenge(&address);
    match Box::pin(endpoint.answer(&state, Arc::new(address), request)).await {
        Ok(response) => response,
        Err(error) if error.kind == ApiErrorKind::Unauthenticated => {
            let mut response = error_response(&error);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            response
        }
        Err(error) => error.into_response(),
    }
}

/// What stays from one request to the next.
struct McpEndpoint {
    service: StreamableHttpService<McpServer, NeverSessionManager>,
    running: RunningCalls,
}

impl McpEndpoint {
    fn new(state: &AppState) -> Self {
        // Hosts, origins and lengths have been looked at by then, the way the other faces do it.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX);
        let server = McpServer::new(ServedServices::new(state));
        let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
        Self { service, running: RunningCalls::default() }
    }

    async fn answer(&self, state: &AppState, address: Arc<PublicAddress>, request: Request) -> ApiResult {
        admission::check(state, request.headers()).await?;
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, state).await?;
        let opened = parts.extensions.get::<RequestCredential>().cloned();
        let sent = Request::from_parts(parts.clone(), body);
        let sent = state.bodies.read(sent, SenderTrust::Known).await?;
        let outline = MessageOutline::of(&sent.value)?;
        let (actor, session) = (caller.actor(), SessionId::take_from(&mut parts.headers));
        if let (Some(session), Some(id)) = (session, &outline.cancels) {
            self.running.cancel(&actor, session, id);
        }
        let called = session.zip(outline.call_id());
        let running = called.map(|(session, id)| Arc::new(self.running.begin(&actor, session, id)));
        let (text, arguments) = CallArguments::part_from(sent, outline.is_call)?;
        let (shutdown, span) = (parts.extensions.get::<Shutdown>().cloned(), Span::current());
        parts.extensions.insert(CallContext { actor, address, arguments, running, shutdown, span });
        parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if takes_anything(&parts.headers) {
            parts.headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPTED));
        }
        let request = Request::from_parts(parts, Body::from(text));
        let answering = async { Ok::<_, ApiError>(self.service.handle(request).await) };
        let answer = match opened {
            Some(opened) => Box::pin(opened.while_in_force(answering)).await?,
            None => answering.await?,
        };
        let mut answer = finished(answer.map(Body::new), outline.id.as_ref()).await;
        if outline.is_handshake {
            SessionId::generate().put_into(answer.headers_mut());
        }
        Ok(answer)
    }
}

/// Whether a client takes answers of whatever type: it says so, or says nothing of types.
fn takes_anything(headers: &HeaderMap) -> bool {
    let is_any = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        parts.next() == Some("*/*") && !parts.any(|parameter| parameter.eq_ignore_ascii_case("q=0"))
    };
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    !headers.contains_key(header::ACCEPT) || accepted.flat_map(|value| value.split(',')).any(is_any)
}

/// An answer as it goes out: refusals in the protocol's form, and streams with what they say last when they are cut.
async fn finished(mut answer: Response, id: Option<&Value>) -> Response {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind {
        Some("application/json") => answer,
        Some("text/event-stream") => {
            let notice = message::event(id, &ApiError::credential_ended());
            answer.extensions_mut().insert(TerminationNotice(notice));
            answer
        }
        Some(_) | None if answer.status().is_success() => answer,
        Some(_) | None => message::restated(answer, id).await,
    }
}
