//! Chat models over HTTP: one request, the stream of its answer, and when to ask again. What is said in requests and
//! events is the wire formats' business; everything that decides whether an answer may be believed is here and in
//! [`PartialAnswer::conclude`].

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use lectern_shared::{
    compute::ComputePool,
    egress::{Egress, EgressError, EgressRequest, EgressResponse, RequestLimits},
};
use reqwest::Method;
use secrecy::SecretString;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use url::Url;

use super::{
    ChatError, ChatErrorKind, ChatModel, ChatOutcome, ChatRequest, DeltaSink, ModelConfigError,
    ModelProvider,
    answer::{AnswerProgress, CompleteAnswer, HaltReason, PartialAnswer, StreamOutcome},
    rejection::classify_response,
    retry::AttemptFailure,
    settings::{AskedModel, RefusalMemory},
    sse::SseReader,
    wire::ModelEndpoint,
};

/// How long a provider may send nothing at all.
pub(crate) const DEFAULT_SILENCE: Duration = Duration::from_mins(1);

/// The most bytes read of one answer. A token takes some hundred bytes of event, so that this is room for the longest answers
/// there are; none of it is kept but the text and the calls, which have limits of their own.
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// How long the end of the stream is waited for once the finish reason is known; only usage still follows it.
const TAIL: Duration = Duration::from_secs(2);

/// How long the end of the body is waited for after the last event: a connection that was read to its end can be used again.
const LAST_BYTES: Duration = Duration::from_millis(20);

/// What a model over HTTP is made of.
#[derive(Clone)]
pub(crate) struct ChatModelConfig {
    /// The provider.
    pub(crate) provider: ModelProvider,
    /// The model name, sent as it is. For Azure the name of the deployment.
    pub(crate) model: String,
    /// Where requests go; the provider's own address without one. The path may end with or without a slash.
    pub(crate) base_url: Option<Url>,
    /// Sent in the header that the provider reads keys from; no credentials are sent without one.
    pub(crate) api_key: Option<SecretString>,
    /// The way out. It decides which addresses may be reached.
    pub(crate) egress: Egress,
    /// How long the provider may send nothing, before its first byte or between two; usually [`DEFAULT_SILENCE`].
    pub(crate) silence: Duration,
    /// Where large events are parsed.
    pub(crate) compute: ComputePool,
    /// What models turned out not to take.
    pub(crate) refusals: RefusalMemory,
}

/// A [`ChatModel`] that asks a provider over HTTP.
pub(crate) struct HttpModel {
    provider: ModelProvider,
    model: String,
    endpoint: ModelEndpoint,
    egress: Egress,
    silence: Duration,
    compute: ComputePool,
    refusals: RefusalMemory,
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
    pub(crate) fn new(config: ChatModelConfig) -> Result<Self, ModelConfigError> {
        let ChatModelConfig { provider, model, base_url, api_key, egress, silence, compute, refusals } =
            config;
        if model.trim().is_empty() {
            return Err(ModelConfigError::ModelRequired);
        }
        let endpoint = ModelEndpoint::new(provider, &model, base_url, api_key.as_ref())?;
        Ok(Self { provider, model, endpoint, egress, silence, compute, refusals })
    }

    /// Whom a request is for.
    fn asked(&self, request: &ChatRequest) -> AskedModel {
        AskedModel {
            provider: self.provider,
            url: self.endpoint.url.clone(),
            model: self.model.clone(),
            temperature: request.temperature.map(f64::to_bits),
        }
    }

    /// Sends one request and reads its answer.
    async fn attempt(
        &self,
        body: Bytes,
        deadline: Instant,
        deltas: &mut dyn DeltaSink,
    ) -> Result<CompleteAnswer, AttemptFailure> {
        let limits = RequestLimits {
            max_bytes: MAX_ANSWER_BYTES,
            total_timeout: deadline.saturating_duration_since(Instant::now()),
            idle_timeout: self.silence,
        };
        let mut request = EgressRequest::new(Method::POST, self.endpoint.url.clone(), limits);
        request.headers = self.endpoint.headers.clone();
        request.body = Some(body);
        // The key, the conversation and the model's answer are for the host that was named.
        request.follow_redirects = false;
        let sent = self.egress.send(request).await;
        let mut response = sent.map_err(|error| send_failure(&error, deadline))?;
        if !(200..300).contains(&response.status) {
            return classify_response(response, deadline).await;
        }
        let content_type = response.content_type();
        // A page for people, from a proxy or a wrong address.
        if content_type.as_deref() == Some("text/html") {
            return Err(AttemptFailure::new(ChatErrorKind::Garbage));
        }
        let mut answer = PartialAnswer::default();
        let end = self.read(&mut response, &mut answer, deadline, deltas).await;
        if answer.halt == Some(HaltReason::Ended) {
            let _ = timeout(LAST_BYTES, response.chunk()).await;
        }
        // Some servers pass over the wish for a stream, and answer with one completion.
        let is_whole =
            content_type.as_deref() == Some("application/json") && answer.progress == AnswerProgress::Nothing;
        answer.conclude(end).map_err(|failure| match failure.kind {
            ChatErrorKind::Garbage if is_whole => AttemptFailure::new(ChatErrorKind::NotStreamed),
            _ => failure,
        })
    }

    /// Reads events into `answer` until there is nothing more to read, or no reason to.
    async fn read(
        &self,
        response: &mut EgressResponse,
        answer: &mut PartialAnswer,
        deadline: Instant,
        deltas: &mut dyn DeltaSink,
    ) -> StreamOutcome {
        let mut events = SseReader::default();
        let mut heard = Instant::now();
        loop {
            let until = if answer.finish_reason.is_some() { deadline.min(heard + TAIL) } else { deadline };
            match timeout_at(until, response.chunk()).await {
                Ok(Ok(Some(piece))) => events.feed(piece),
                Ok(Ok(None)) => return StreamOutcome::Closed,
                Ok(Err(error)) => return StreamOutcome::Failed(read_failure(&error, answer, deadline)),
                Err(_) => return StreamOutcome::Failed(AttemptFailure::timed_out(false)),
            }
            loop {
                let event = match events.next_event() {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(error) => {
                        let kind = if error.is_event { ChatErrorKind::TooLarge } else { too_large(answer) };
                        return StreamOutcome::Failed(AttemptFailure::new(kind));
                    }
                };
                if event.data.is_empty() {
                    continue;
                }
                answer.reach(AnswerProgress::Data);
                heard = Instant::now();
                let told = answer.text.len();
                if let Err(failure) = self.endpoint.format.take(event, answer, &self.compute).await {
                    return StreamOutcome::Failed(failure);
                }
                let delta = &answer.text[told..];
                if !delta.is_empty() {
                    // Not bounded by the deadline: a piece that was dropped half-way would be heard and not told.
                    deltas.take(delta).await;
                    if Instant::now() >= deadline && answer.halt.is_none() {
                        return StreamOutcome::Failed(AttemptFailure::timed_out(false));
                    }
                }
                match answer.halt {
                    None => {}
                    Some(HaltReason::Ended) => return StreamOutcome::Closed,
                    Some(HaltReason::TextCut) => return StreamOutcome::Cut,
                    Some(HaltReason::CallsTooLarge) => {
                        return StreamOutcome::Failed(AttemptFailure::new(ChatErrorKind::TooLarge));
                    }
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
        deltas: &mut dyn DeltaSink,
    ) -> Result<ChatOutcome, ChatError> {
        let asked = self.asked(request);
        let known = self.refusals.of(&asked);
        let body =
            |refused| Bytes::from(self.endpoint.format.body(&self.model, request, refused).to_string());
        let (mut refused, mut bytes) = (known, body(known));
        let (mut attempts, mut failed) = (1, 0);
        loop {
            let failure = match self.attempt(bytes.clone(), deadline, deltas).await {
                Ok(answer) => {
                    if refused != known {
                        self.refusals.note(asked, refused);
                    }
                    return Ok(answer.into_outcome(request, attempts));
                }
                Err(failure) => failure,
            };
            let pause = match failure.refused.filter(|&setting| !refused.contains(setting)) {
                // Each is left out once, so that this comes to an end by itself.
                Some(setting) => {
                    refused = refused.with(setting);
                    bytes = body(refused);
                    Some(Duration::ZERO)
                }
                None => {
                    failed += 1;
                    failure.pause(failed)
                }
            };
            let in_time =
                |pause: &Duration| Instant::now().checked_add(*pause).is_some_and(|then| then < deadline);
            let pause = pause.filter(in_time);
            let again = pause.is_some();
            tracing::warn!(provider = %self.provider, class = failure.kind.code(), attempts, again, "model call failed");
            let Some(pause) = pause else {
                return Err(ChatError { provider: self.provider, attempts, kind: failure.kind });
            };
            sleep(pause).await;
            attempts += 1;
        }
    }
}

/// The class of a request that brought no response.
fn send_failure(error: &EgressError, deadline: Instant) -> AttemptFailure {
    match error {
        EgressError::RefusedAddress { .. }
        | EgressError::OtherSite { .. }
        | EgressError::InvalidUrl { .. }
        | EgressError::Dns { .. }
        | EgressError::Connect { .. } => {
            AttemptFailure { retryable: error.is_retryable(), ..AttemptFailure::new(ChatErrorKind::RefusedAddress) }
        }
        EgressError::Timeout { .. } => AttemptFailure::timed_out(Instant::now() < deadline),
        EgressError::Tls { .. }
        // The connection closed before an answer began.
        | EgressError::Protocol { .. } => {
            AttemptFailure { retryable: error.is_retryable(), ..AttemptFailure::new(ChatErrorKind::Connect) }
        }
        EgressError::TooLarge { .. } => AttemptFailure::new(ChatErrorKind::TooLarge),
        EgressError::Decode => AttemptFailure::new(ChatErrorKind::Garbage),
        EgressError::TooManyRedirects { .. }
        | EgressError::ContentNotSentOn { .. }
        | EgressError::RefusedRedirect { .. }
        | EgressError::Setup { .. } => AttemptFailure::new(ChatErrorKind::Upstream { status: None }),
    }
}

/// The class of a body that could not be read to its end.
fn read_failure(error: &EgressError, answer: &PartialAnswer, deadline: Instant) -> AttemptFailure {
    match error {
        EgressError::TooLarge { .. } => AttemptFailure::new(too_large(answer)),
        EgressError::Protocol { .. } | EgressError::Decode if answer.progress > AnswerProgress::Nothing => {
            AttemptFailure::new(ChatErrorKind::Truncated)
        }
        error => send_failure(error, deadline),
    }
}

/// Too much of an answer, or too much of something that never was one.
fn too_large(answer: &PartialAnswer) -> ChatErrorKind {
    if answer.progress > AnswerProgress::Nothing { ChatErrorKind::TooLarge } else { ChatErrorKind::Garbage }
}
