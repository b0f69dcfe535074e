//! Chat models over HTTP: one request, the stream of its answer, and when to ask again. What is said in requests and
//! events is the wire formats' business; everything that decides whether an answer may be believed is here and in
//! [`Partial::conclude`].

use std::{
    fmt,
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use lectern_shared::egress::{Egress, EgressError, Limits, Request, Response};
use reqwest::Method;
use secrecy::SecretString;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use url::Url;

use super::{
    ChatError, ChatErrorKind, ChatModel, ChatOutcome, ChatRequest, Deltas, ModelConfigError, Provider,
    answer::{Answer, End, Halt, Partial, Progress},
    rejection::{Refused, judge},
    retry::{Failure, MAX_ATTEMPTS},
    sse::EventReader,
    wire::Endpoint,
};

/// How long a provider may send nothing at all.
pub const DEFAULT_SILENCE: Duration = Duration::from_mins(1);

/// The most bytes read of one answer. A token takes some hundred bytes of event, so that this is room for the longest answers
/// there are; none of it is kept but the text and the calls, which have limits of their own.
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// How long the end of the stream is waited for once the finish reason is known; only usage still follows it.
const TAIL: Duration = Duration::from_secs(2);

/// How long the end of the body is waited for after the last event: a connection that was read to its end can be used again.
const LAST_BYTES: Duration = Duration::from_millis(20);

/// What a model over HTTP is made of.
#[derive(Clone)]
pub struct ModelConfig {
    /// The provider.
    pub provider: Provider,
    /// The model name, sent as it is. For Azure the name of the deployment.
    pub model: String,
    /// Where requests go; the provider's own address without one. The path may end with or without a slash.
    pub base_url: Option<Url>,
    /// Sent in the header that the provider reads keys from; no credentials are sent without one.
    pub api_key: Option<SecretString>,
    /// The way out. It decides which addresses may be reached.
    pub egress: Egress,
    /// How long the provider may send nothing, before its first byte or between two; usually [`DEFAULT_SILENCE`].
    pub silence: Duration,
}

/// A [`ChatModel`] that asks a provider over HTTP.
pub struct HttpModel {
    provider: Provider,
    model: String,
    endpoint: Endpoint,
    egress: Egress,
    silence: Duration,
    /// [`Refused`], as this model has taught it.
    refused: AtomicU8,
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl HttpModel {
    /// Sets the model up; sends nothing.
    pub fn new(config: ModelConfig) -> Result<Self, ModelConfigError> {
        let ModelConfig { provider, model, base_url, api_key, egress, silence } = config;
        if model.trim().is_empty() {
            return Err(ModelConfigError::ModelRequired);
        }
        let endpoint = Endpoint::new(provider, &model, base_url, api_key.as_ref())?;
        Ok(Self { provider, model, endpoint, egress, silence, refused: AtomicU8::new(0) })
    }

    /// Sends one request and reads its answer.
    async fn attempt(
        &self,
        body: Bytes,
        deadline: Instant,
        deltas: &mut dyn Deltas,
    ) -> Result<Answer, Failure> {
        let limits = Limits {
            max_bytes: MAX_ANSWER_BYTES,
            total_timeout: deadline.saturating_duration_since(Instant::now()),
            idle_timeout: self.silence,
        };
        let mut request = Request::new(Method::POST, self.endpoint.url.clone(), limits);
        request.headers = self.endpoint.headers.clone();
        request.body = Some(body);
        // The key, the conversation and the model's answer are for the host that was named.
        request.follow_redirects = false;
        let sent = self.egress.send(request).await;
        let mut response = sent.map_err(|error| unsent(&error, deadline))?;
        if !(200..300).contains(&response.status) {
            return judge(response, deadline).await;
        }
        // A page for people, from a proxy or a wrong address.
        if response.content_type().as_deref() == Some("text/html") {
            return Err(Failure::new(ChatErrorKind::Garbage));
        }
        let mut answer = Partial::default();
        let end = self.read(&mut response, &mut answer, deadline, deltas).await;
        if answer.halt == Some(Halt::Ended) {
            let _ = timeout(LAST_BYTES, response.chunk()).await;
        }
        answer.conclude(end)
    }

    /// Reads events into `answer` until there is nothing more to read, or no reason to.
    async fn read(
        &self,
        response: &mut Response,
        answer: &mut Partial,
        deadline: Instant,
        deltas: &mut dyn Deltas,
    ) -> End {
        let mut events = EventReader::default();
        let mut heard = Instant::now();
        loop {
            let until = if answer.finish_reason.is_some() { deadline.min(heard + TAIL) } else { deadline };
            match timeout_at(until, response.chunk()).await {
                Ok(Ok(Some(piece))) => events.feed(piece),
                Ok(Ok(None)) => return End::Closed,
                Ok(Err(error)) => return End::Failed(broken(&error, answer, deadline)),
                Err(_) => return End::Failed(Failure::timed_out(false)),
            }
            loop {
                let event = match events.next_event() {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(_) => return End::Failed(Failure::new(too_large(answer))),
                };
                if event.data.is_empty() {
                    continue;
                }
                answer.reach(Progress::Data);
                heard = Instant::now();
                let told = answer.text.len();
                if let Err(failure) = self.endpoint.format.read(&event, answer) {
                    return End::Failed(failure);
                }
                let delta = &answer.text[told..];
                if !delta.is_empty() {
                    // Not bounded by the deadline: a piece that was dropped half-way would be heard and not told.
                    deltas.take(delta).await;
                    if Instant::now() >= deadline && answer.halt.is_none() {
                        return End::Failed(Failure::timed_out(false));
                    }
                }
                match answer.halt {
                    None => {}
                    Some(Halt::Ended) => return End::Closed,
                    Some(Halt::TextCut) => return End::Cut,
                    Some(Halt::CallsTooLarge) => return End::Failed(Failure::new(ChatErrorKind::TooLarge)),
                }
            }
        }
    }
}

#[async_trait]
impl ChatModel for HttpModel {
    async fn chat(
        &self,
        request: &ChatRequest,
        deadline: Instant,
        deltas: &mut dyn Deltas,
    ) -> Result<ChatOutcome, ChatError> {
        let mut refused = Refused::from_bits(self.refused.load(Ordering::Relaxed));
        let body =
            |refused| Bytes::from(self.endpoint.format.body(&self.model, request, refused).to_string());
        let mut bytes = body(refused);
        let mut attempts = 1;
        loop {
            let failure = match self.attempt(bytes.clone(), deadline, deltas).await {
                Ok(answer) => return Ok(answer.into_outcome(request, attempts)),
                Err(failure) => failure,
            };
            let other = failure.refused.filter(|&setting| !refused.contains(setting));
            let pause = if other.is_some() { Duration::ZERO } else { failure.pause(attempts) };
            let again = (failure.retryable || other.is_some())
                && attempts < MAX_ATTEMPTS
                && Instant::now().checked_add(pause).is_some_and(|then| then < deadline);
            tracing::warn!(provider = %self.provider, class = failure.kind.code(), attempts, again, "model call failed");
            if !again {
                return Err(ChatError { provider: self.provider, attempts, kind: failure.kind });
            }
            if let Some(setting) = other {
                refused = refused.with(setting);
                self.refused.fetch_or(refused.bits(), Ordering::Relaxed);
                bytes = body(refused);
            }
            sleep(pause).await;
            attempts += 1;
        }
    }
}

/// The class of a request that brought no response.
fn unsent(error: &EgressError, deadline: Instant) -> Failure {
    match error {
        EgressError::RefusedAddress { .. }
        | EgressError::OtherSite { .. }
        | EgressError::InvalidUrl { .. }
        | EgressError::Dns { .. }
        | EgressError::Connect { .. } => {
            Failure { retryable: error.is_retryable(), ..Failure::new(ChatErrorKind::RefusedAddress) }
        }
        EgressError::Timeout { .. } => Failure::timed_out(Instant::now() < deadline),
        EgressError::Tls { .. }
        // The connection closed before an answer began.
        | EgressError::Protocol { .. } => {
            Failure { retryable: error.is_retryable(), ..Failure::new(ChatErrorKind::Connect) }
        }
        EgressError::TooLarge { .. } => Failure::new(ChatErrorKind::TooLarge),
        EgressError::Decode => Failure::new(ChatErrorKind::Garbage),
        EgressError::TooManyRedirects { .. }
        | EgressError::RefusedRedirect { .. }
        | EgressError::Write { .. }
        | EgressError::Setup { .. } => Failure::new(ChatErrorKind::Upstream { status: None }),
    }
}

/// The class of a body that could not be read to its end.
fn broken(error: &EgressError, answer: &Partial, deadline: Instant) -> Failure {
    match error {
        EgressError::TooLarge { .. } => Failure::new(too_large(answer)),
        EgressError::Protocol { .. } | EgressError::Decode if answer.progress > Progress::Nothing => {
            Failure::new(ChatErrorKind::Truncated)
        }
        error => unsent(error, deadline),
    }
}

/// Too much of an answer, or too much of something that never was one.
fn too_large(answer: &Partial) -> ChatErrorKind {
    if answer.progress > Progress::Nothing { ChatErrorKind::TooLarge } else { ChatErrorKind::Garbage }
}
