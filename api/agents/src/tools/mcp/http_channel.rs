//! A server at an address: each message is a POST through the guarded client, and what comes back is one JSON text or a
//! stream of events, read until the answer is there.
//!
//! Redirects are not followed, nothing is sent twice, and no stream stays open beside a request. What one request brings
//! is bounded like any tool's answer, pings and progress included.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lectern_shared::egress::EgressResponse;
use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json, value::RawValue};
use tokio::{
    runtime::Handle,
    sync::{Mutex, Semaphore},
    time::{Instant, timeout_at},
};
use url::Url;

use super::{
    super::{
        ToolError,
        http::{ServiceClient, ServiceRequest},
    },
    header::header_text,
    message::{self, McpFailure, McpRequest, McpRevision, RpcOutcome, STATELESS_VERSION, ServerMessage},
};
use crate::models::sse::SseReader;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Longest name of a session that is sent back, in bytes.
const LONGEST_SESSION: usize = 1_024;
/// Requests of the server that are answered while it works on one of ours.
const ASKED: usize = 16;
/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a handshake has brought.
#[derive(Clone)]
struct HttpSession {
    /// None when the server keeps nothing.
    id: Option<HeaderValue>,
    version: HeaderValue,
    /// Whether the handshake is over: the server has taken the notification that ends it.
    is_ready: bool,
}

impl HttpSession {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, self.version.clone());
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        headers
    }
}

/// The way to a server, for one run. Its session ends with it.
pub(super) struct HttpChannel {
    service: ServiceClient,
    url: Url,
    /// What the tool's owner wants sent with everything.
    headers: HeaderMap,
    last_id: AtomicU64,
    session: Mutex<Option<HttpSession>>,
    changes: AtomicU64,
    /// How many sessions are being ended at once.
    farewells: Arc<Semaphore>,
}

impl HttpChannel {
    pub(super) fn new(
        service: ServiceClient,
        url: Url,
        headers: HeaderMap,
        farewells: Arc<Semaphore>,
    ) -> Self {
        Self {
            service,
            url,
            headers,
            last_id: AtomicU64::new(0),
            session: Mutex::new(None),
            changes: AtomicU64::new(0),
            farewells,
        }
    }

    /// How often the server has said that its tools are others.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Finds out which revision the server speaks: it is asked in the newest one, and an older server refuses that.
    pub(super) async fn greet(&self, until: Instant) -> Result<McpRevision, McpFailure> {
        match self.request(McpRevision::Stateless, &McpRequest::new("server/discover"), until).await {
            Ok(discovered) if message::is_stateless(&discovered) => Ok(McpRevision::Stateless),
            Ok(_) | Err(McpFailure::Refused(_) | McpFailure::Unanswered) => Ok(McpRevision::Handshake),
            Err(McpFailure::Status(status)) if may_want_handshake(status) => Ok(McpRevision::Handshake),
            Err(failure) => Err(failure),
        }
    }

    /// Asks the server, and waits for its answer.
    pub(super) async fn request(
        &self,
        revision: McpRevision,
        request: &McpRequest,
        until: Instant,
    ) -> Result<Box<RawValue>, McpFailure> {
        let asking = async {
            let headers = match revision {
                McpRevision::Stateless => stateless_headers(request),
                McpRevision::Handshake => self.session(until).await?.headers(),
            };
            let answered = self.exchange(revision, request, headers, until).await;
            // The server has forgotten the session: the next call begins another one. Whether it has done anything of
            // what was asked is not known here, so it is not asked again.
            if matches!(answered, Err(McpFailure::Status(404))) {
                *self.session.lock().await = None;
            }
            answered.map(|(result, _)| result)
        };
        timeout_at(until, asking).await.unwrap_or(Err(McpFailure::Other(ToolError::Timeout)))
    }

    /// The session, after a handshake if there is none yet. A handshake that a call has left in the middle is gone on with by
    /// the next one: the server answers nothing before.
    async fn session(&self, until: Instant) -> Result<HttpSession, McpFailure> {
        let mut held = self.session.lock().await;
        let mut session = match &*held {
            Some(session) => session.clone(),
            // From here on it is ended with this channel, whatever comes.
            None => held.insert(self.begin_session(until).await?).clone(),
        };
        if !session.is_ready {
            let told = message::notification("notifications/initialized", &json!({}));
            let answer = self.post(&told, session.headers(), until).await?;
            if !(200..300).contains(&answer.status) {
                *held = None;
                return Err(McpFailure::Status(answer.status));
            }
            session.is_ready = true;
            *held = Some(session.clone());
        }
        Ok(session)
    }

    async fn begin_session(&self, until: Instant) -> Result<HttpSession, McpFailure> {
        let request = McpRequest::initialize();
        let asked = self.exchange(McpRevision::Handshake, &request, HeaderMap::new(), until);
        let (result, id) = asked.await?;
        let Some(version) = message::agreed_version(&result) else {
            return Err(self.service.failed("speaks no version of the protocol that is known here").into());
        };
        Ok(HttpSession { id, version: HeaderValue::from_static(version), is_ready: false })
    }

    async fn post(
        &self,
        message: &Value,
        own: HeaderMap,
        until: Instant,
    ) -> Result<EgressResponse, ToolError> {
        let mut ask = ServiceRequest::post(self.url.clone(), message);
        ask.accept = "application/json, text/event-stream";
        ask.headers.extend(self.headers.clone());
        ask.headers.extend(own);
        self.service.begin(ask, until).await
    }

    /// Sends a request, and reads what comes until its answer; with the session that the server may have begun.
    async fn exchange(
        &self,
        revision: McpRevision,
        request: &McpRequest,
        headers: HeaderMap,
        until: Instant,
    ) -> Result<(Box<RawValue>, Option<HeaderValue>), McpFailure> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut answer = self.post(&request.message(id, revision), headers.clone(), until).await?;
        if !(200..300).contains(&answer.status) {
            return Err(McpFailure::Status(answer.status));
        }
        let session = answer.headers.get(SESSION).filter(|id| id.len() <= LONGEST_SESSION).cloned();
        let session = session.map(|mut id| {
            id.set_sensitive(true);
            id
        });
        let outcome = match answer.content_type().as_deref() {
            Some("text/event-stream") => {
                let replies = (revision == McpRevision::Handshake).then_some(headers);
                self.listen(&mut answer, id, replies, until).await?
            }
            Some("application/json") => self.read(answer, id).await?,
            _ if matches!(answer.status, 202 | 204) => return Err(McpFailure::Unanswered),
            _ => return Err(self.service.malformed_answer().into()),
        };
        outcome.map(|result| (result, session)).map_err(McpFailure::Refused)
    }

    /// The answer in a body that is one JSON text.
    async fn read(&self, answer: EgressResponse, asked: u64) -> Result<RpcOutcome, ToolError> {
        let body = answer.bytes().await.map_err(|error| self.service.explain(&error))?;
        let messages = self.service.compute().parse(body, ServerMessage::all).await;
        for message in messages.unwrap_or_default() {
            self.note(&message);
            match message {
                ServerMessage::Answer { id, outcome } if is_for(&id, asked, &outcome) => return Ok(outcome),
                ServerMessage::Answer { .. }
                | ServerMessage::Request { .. }
                | ServerMessage::Notification { .. } => {}
            }
        }
        Err(self.service.malformed_answer())
    }

    /// The answer in a stream of events. `replies` holds the headers with which the server is told what it asks meanwhile;
    /// without them it may ask nothing.
    async fn listen(
        &self,
        answer: &mut EgressResponse,
        asked: u64,
        replies: Option<HeaderMap>,
        until: Instant,
    ) -> Result<RpcOutcome, ToolError> {
        let mut reader = SseReader::default();
        let mut requests = 0;
        while let Some(piece) = answer.chunk().await.map_err(|error| self.service.explain(&error))? {
            reader.feed(piece);
            while let Some(event) =
                reader.next_event().map_err(|_| self.service.failed("gave an answer that is too large"))?
            {
                // An event without data only says where the stream could be taken up again.
                if event.data.trim_ascii().is_empty() {
                    continue;
                }
                let messages = self.service.compute().parse(event.data, ServerMessage::all).await;
                for message in messages.ok_or_else(|| self.service.malformed_answer())? {
                    self.note(&message);
                    match (message, &replies) {
                        (ServerMessage::Answer { id, outcome }, _) if is_for(&id, asked, &outcome) => {
                            return Ok(outcome);
                        }
                        (ServerMessage::Request { id, method }, Some(headers)) => {
                            requests += 1;
                            if requests > ASKED {
                                return Err(self.service.failed("asks its client too much"));
                            }
                            drop(self.post(&message::reply(&id, &method), headers.clone(), until).await?);
                        }
                        (
                            ServerMessage::Answer { .. }
                            | ServerMessage::Request { .. }
                            | ServerMessage::Notification { .. },
                            _,
                        ) => {}
                    }
                }
            }
        }
        Err(self.service.failed("ended its answer before it had said anything"))
    }

    fn note(&self, message: &ServerMessage) {
        if message.changes_tools() {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether an answer is the one to this request. An error may not say which request it is about, when the server could not
/// read so much of it.
fn is_for(id: &Value, asked: u64, outcome: &RpcOutcome) -> bool {
    id.as_u64() == Some(asked) || (id.is_null() && outcome.is_err())
}

/// Whether a server that answers the newest revision with this status may be one that only knows older ones. Some of those
/// fail when somebody does not begin with the handshake.
fn may_want_handshake(status: u16) -> bool {
    (400..=501).contains(&status) && !matches!(status, 401 | 402 | 403 | 407 | 429)
}

/// What the newest revision wants to be seen without the body.
fn stateless_headers(request: &McpRequest) -> HeaderMap {
    let mut headers = request.promoted.clone();
    headers.insert(VERSION, HeaderValue::from_static(STATELESS_VERSION));
    headers.insert(METHOD, HeaderValue::from_static(request.method));
    if let Some(name) = request.params.get("name").and_then(Value::as_str).and_then(header_text) {
        headers.insert(NAME, name);
    }
    headers
}

/// The server is told that nothing more comes. What it answers to that matters to nobody.
impl Drop for HttpChannel {
    fn drop(&mut self) {
        let Some(session) = self.session.get_mut().take().filter(|session| session.id.is_some()) else {
            return;
        };
        let Ok(slot) = Arc::clone(&self.farewells).try_acquire_owned() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let mut ask = ServiceRequest::new(Method::DELETE, self.url.clone());
        ask.headers.extend(self.headers.clone());
        ask.headers.extend(session.headers());
        let service = self.service.clone();
        runtime.spawn(async move {
            let _slot = slot;
            drop(service.begin(ask, Instant::now() + FAREWELL).await);
        });
    }
}
