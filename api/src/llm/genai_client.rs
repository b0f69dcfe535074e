//! Chat models over HTTP, through the `genai` library.
//!
//! The library builds requests and reads streams; everything that decides whether an answer may be believed is here:
//! deadlines, tries, ends without an end, sizes, and errors without a word of what the provider wrote. It is used in
//! one way only, streaming, with the address, the headers and the model name set by us, because it would otherwise
//! derive all three from the shape of the model name (`qwen-max` becomes `qwen`, `a::b` becomes `b`).

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use genai::chat::{ChatOptions, ChatStreamEvent, ContentPart, MessageContent, Tool, ToolName, ToolResponse};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Dispatch;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;
use url::Url;

use super::retry::{Failure, MAX_ATTEMPTS};
use super::wire::{FrameLog, Frames};
use super::{
    ChatError, ChatErrorKind, ChatMessage, ChatModel, ChatOutcome, ChatRequest, FinishReason,
    ModelConfigError, OnDelta, Provider, Usage, UsageSource,
};

/// How long a provider may send nothing at all.
pub const DEFAULT_SILENCE: Duration = Duration::from_mins(1);

/// The most text taken from one answer. A longer one is cut there, at a character, and finishes with
/// [`FinishReason::Length`].
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// How long the end of the stream is waited for once the finish reason is known; only usage still follows it.
const TAIL: Duration = Duration::from_secs(2);

/// Tells whether an error, found in the cause chain of a failed request, is the egress guard's refusal of an address.
pub type IsRefusal = fn(&(dyn StdError + 'static)) -> bool;

/// What a model over HTTP is made of.
#[derive(Clone)]
pub struct GenaiConfig {
    /// The provider.
    pub provider: Provider,
    /// The model name, sent as it is.
    pub model: String,
    /// Where requests go; the provider's own address without one. The path may end with or without a slash.
    pub base_url: Option<Url>,
    /// Sent as a bearer; no credentials are sent without one.
    pub api_key: Option<SecretString>,
    /// The client to use. It must not follow redirects, and should not decompress: sizes are then those of the wire.
    pub client: reqwest::Client,
    /// How long the provider may send nothing, before its first byte or between two; usually [`DEFAULT_SILENCE`].
    pub silence: Duration,
    /// Recognises the guard that is built into `client`.
    pub is_refusal: IsRefusal,
}

/// A [`ChatModel`] that asks a provider over HTTP.
pub struct GenaiModel {
    provider: Provider,
    model: String,
    target: ServiceTarget,
    client: genai::Client,
    silence: Duration,
    is_refusal: IsRefusal,
    // The library logs upstream error bodies, keys included, at `error`: it runs without a subscriber.
    unheard: Dispatch,
}

impl fmt::Debug for GenaiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiModel")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl GenaiModel {
    /// Sets the model up; sends nothing.
    pub fn new(config: GenaiConfig) -> Result<Self, ModelConfigError> {
        let provider = config.provider;
        let route = provider.route().ok_or(ModelConfigError::ProviderNotAvailable { provider })?;
        if config.model.trim().is_empty() {
            return Err(ModelConfigError::ModelRequired);
        }
        let base = match (config.base_url, route.default_base) {
            (Some(url), _) => url,
            (None, Some(default)) => Url::parse(default).map_err(|_| ModelConfigError::BaseUrlInvalid)?,
            (None, None) => return Err(ModelConfigError::BaseUrlRequired { provider }),
        };
        let (base, endpoint) = chat_url(base)?;
        let mut headers = vec![("Accept".to_owned(), "text/event-stream".to_owned())];
        if let Some(key) =
            config.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty())
        {
            let bearer = format!("Bearer {key}");
            HeaderValue::from_str(&bearer).map_err(|_| ModelConfigError::ApiKeyInvalid)?;
            headers.push(("Authorization".to_owned(), bearer));
        }
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(base.as_str()),
            auth: AuthData::RequestOverride { url: endpoint.into(), headers: Headers::from(headers) },
            // A name without any meaning: what the library reads out of names must not reach the wire. The true one
            // is merged into the body.
            model: ModelIden::from_static(route.adapter, "model"),
        };
        // Building fails only where the library has to make an HTTP client of its own.
        let client = genai::Client::builder()
            .with_reqwest(config.client)
            .build()
            .map_err(|_| ModelConfigError::ProviderNotAvailable { provider })?;
        Ok(Self {
            provider,
            model: config.model,
            target,
            client,
            silence: config.silence,
            is_refusal: config.is_refusal,
            unheard: Dispatch::new(NoSubscriber::default()),
        })
    }

    /// Sends one request and reads its answer.
    async fn attempt(
        &self,
        request: &ChatRequest,
        deadline: Instant,
        on_delta: OnDelta<'_>,
    ) -> Result<Answer, Failure> {
        let log = Arc::new(FrameLog::new());
        let options = self.options(request).with_raw_frame_sink_arc(log.clone());
        let opened = self
            .client
            .exec_chat_stream(self.target.clone(), genai_request(request), Some(&options))
            .with_subscriber(self.unheard.clone());
        let opened = match timeout_at(deadline, opened).await {
            Ok(opened) => opened.map_err(|error| self.classify(&error))?,
            Err(_) => return Err(timed_out(false)),
        };
        let mut stream = opened.stream;
        let mut text = String::new();
        let mut begun = false;
        let end = loop {
            let (last_frame, finished) =
                log.with(|frames| (frames.last_frame, frames.finish_reason.is_some()));
            let patience = if finished { self.silence.min(TAIL) } else { self.silence };
            let silent_at = last_frame + patience;
            let next = stream.next().with_subscriber(self.unheard.clone());
            let waited = tokio::select! {
                biased;
                waited = timeout_at(silent_at.min(deadline), next) => waited,
                // From now on patience is shorter.
                () = log.finished(), if !finished => continue,
            };
            let event = match waited {
                Ok(Some(Ok(event))) => event,
                Ok(None) => break End::Closed,
                Ok(Some(Err(error))) => break End::Failed(self.classify(&error)),
                // Frames that make no event, comments and the like, are a sign of life too.
                Err(_) if Instant::now() < deadline && log.with(|frames| frames.last_frame > last_frame) => {
                    continue;
                }
                Err(_) => break End::Failed(timed_out(Instant::now() < deadline)),
            };
            match event {
                ChatStreamEvent::Chunk(chunk) => {
                    begun = true;
                    let room = MAX_TEXT_BYTES - text.len();
                    let piece = &chunk.content[..chunk.content.floor_char_boundary(room)];
                    text.push_str(piece);
                    if !piece.is_empty() {
                        on_delta(piece);
                    }
                    if piece.len() < chunk.content.len() {
                        break End::Cut;
                    }
                }
                ChatStreamEvent::ReasoningChunk(_) | ChatStreamEvent::ToolCallChunk(_) => begun = true,
                ChatStreamEvent::End(_) => break End::Closed,
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::Heartbeat => {}
            }
            if log.with(|frames| frames.calls_too_large) {
                break End::Failed(Failure::new(ChatErrorKind::TooLarge));
            }
        };
        log.with(|frames| conclude(end, text, frames, begun))
    }

    fn options(&self, request: &ChatRequest) -> ChatOptions {
        let mut body = json!({ "model": self.model });
        if let Some(max_tokens) = request.max_tokens {
            body[max_tokens_field(&self.model)] = json!(max_tokens);
        }
        let mut options = ChatOptions::default().with_capture_usage(true).with_extra_body(body);
        options.temperature = request.temperature;
        options
    }

    /// The class of an error of the library. Nothing of its text goes further than this.
    fn classify(&self, error: &genai::Error) -> Failure {
        use genai::Error;
        if let (Some(status), Some(headers)) = (error.status(), error.headers()) {
            return Failure::from_response(status.as_u16(), headers);
        }
        match error {
            Error::WebStream { error, .. } => self.classify_transport(error.as_ref()),
            Error::WebModelCall { webc_error: genai::webc::Error::Reqwest(error), .. } => {
                self.classify_transport(error)
            }
            Error::ChatResponse { body, .. } => Failure::new(error_event(body)),
            _ => Failure::new(ChatErrorKind::Garbage),
        }
    }

    fn classify_transport(&self, error: &(dyn StdError + 'static)) -> Failure {
        if let Some(error) = error.downcast_ref::<genai::Error>() {
            return match (error.status(), error.headers()) {
                (Some(status), Some(headers)) => Failure::from_response(status.as_u16(), headers),
                _ => Failure::new(ChatErrorKind::Garbage),
            };
        }
        let mut cause = Some(error);
        while let Some(current) = cause {
            if (self.is_refusal)(current) {
                return Failure::new(ChatErrorKind::RefusedAddress);
            }
            cause = current.source();
        }
        Failure::new(match error.downcast_ref::<reqwest::Error>() {
            Some(error) if error.is_timeout() => return timed_out(true),
            Some(error) if error.is_body() || error.is_decode() => ChatErrorKind::Truncated,
            Some(error) if error.is_redirect() || error.is_builder() => {
                ChatErrorKind::Upstream { status: None }
            }
            Some(_) => ChatErrorKind::Connect,
            // Bytes that are no text.
            None => ChatErrorKind::Garbage,
        })
    }
}

#[async_trait]
impl ChatModel for GenaiModel {
    async fn chat(
        &self,
        request: &ChatRequest,
        deadline: Instant,
        on_delta: OnDelta<'_>,
    ) -> Result<ChatOutcome, ChatError> {
        let mut attempts = 1;
        loop {
            let failure = match self.attempt(request, deadline, on_delta).await {
                Ok(answer) => return Ok(answer.into_outcome(request, attempts)),
                Err(failure) => failure,
            };
            let pause = failure.pause(attempts);
            let again = failure.retryable && attempts < MAX_ATTEMPTS && Instant::now() + pause < deadline;
            tracing::warn!(provider = %self.provider, class = failure.kind.code(), attempts, again, "model call failed");
            if !again {
                return Err(ChatError { provider: self.provider, attempts, kind: failure.kind });
            }
            sleep(pause).await;
            attempts += 1;
        }
    }
}

/// How a stream ended.
enum End {
    /// The provider ended it, with or without an end event.
    Closed,
    /// We did: there is more text than we take.
    Cut,
    /// Neither wanted to.
    Failed(Failure),
}

/// A stream that came to a good end.
struct Answer {
    text: String,
    tool_calls: Vec<super::ToolCall>,
    finish_reason: FinishReason,
    reported: Option<(u64, u64)>,
}

impl Answer {
    fn into_outcome(self, request: &ChatRequest, attempts: u32) -> ChatOutcome {
        let usage = self.reported.map_or_else(
            || Usage::estimate(request, &self.text, &self.tool_calls),
            |(input_tokens, output_tokens)| Usage {
                input_tokens,
                output_tokens,
                source: UsageSource::Provider,
            },
        );
        let Self { text, tool_calls, finish_reason, .. } = self;
        ChatOutcome { text, tool_calls, finish_reason, usage, attempts }
    }
}

/// Decides what a stream amounts to. A finish reason makes it whole, however it ended; nothing else does.
fn conclude(end: End, text: String, frames: &mut Frames, begun: bool) -> Result<Answer, Failure> {
    let finish_reason = match (end, frames.finish_reason) {
        (End::Failed(failure), _) if failure.kind == ChatErrorKind::TooLarge => return Err(failure),
        (End::Cut, _) => FinishReason::Length,
        (_, Some(reason)) => reason,
        (End::Failed(failure), None) => {
            let begun = begun || frames.any_tool_call();
            return Err(Failure { retryable: failure.retryable && !begun, ..failure });
        }
        (End::Closed, None) => {
            return Err(Failure::new(if !frames.any_data {
                ChatErrorKind::Garbage
            } else if frames.any_choice {
                ChatErrorKind::Truncated
            } else {
                ChatErrorKind::NoChoices
            }));
        }
    };
    let tool_calls = frames.take_tool_calls();
    // Several servers end a turn of tool calls with `stop`.
    let waits = finish_reason == FinishReason::Stop && !tool_calls.is_empty();
    Ok(Answer {
        text,
        tool_calls,
        finish_reason: if waits { FinishReason::ToolCalls } else { finish_reason },
        reported: frames.input_tokens.zip(frames.output_tokens),
    })
}

/// A wait that ended; worth another try unless the deadline ended it.
const fn timed_out(retryable: bool) -> Failure {
    Failure { kind: ChatErrorKind::Timeout, retry_after: None, retryable }
}

/// The class of an error that a stream carries as an event, by the status it names, if it names one.
fn error_event(body: &Value) -> ChatErrorKind {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    ["status", "code", "status_code"]
        .iter()
        .find_map(|field| number(&body[*field]))
        .and_then(|number| u16::try_from(number).ok())
        .filter(|status| (400..600).contains(status))
        .map_or(ChatErrorKind::Upstream { status: None }, |status| ChatErrorKind::from_status(status, None))
}

/// The base with its closing slash, and the address of chat completions under it.
fn chat_url(mut base: Url) -> Result<(Url, Url), ModelConfigError> {
    let web = matches!(base.scheme(), "http" | "https") && base.has_host();
    if !web || !base.username().is_empty() || base.password().is_some() {
        return Err(ModelConfigError::BaseUrlInvalid);
    }
    base.set_fragment(None);
    if !base.path().ends_with('/') {
        let path = format!("{}/", base.path());
        base.set_path(&path);
    }
    let mut chat = base.join("chat/completions").map_err(|_| ModelConfigError::BaseUrlInvalid)?;
    chat.set_query(base.query());
    Ok((base, chat))
}

/// OpenAI's reasoning models refuse `max_tokens`; most other servers know nothing else. Gateways put a vendor before
/// the name.
fn max_tokens_field(model: &str) -> &'static str {
    let name = model.rsplit(['/', ':']).next().unwrap_or(model);
    let digit_after = |prefix: &str| {
        name.strip_prefix(prefix).and_then(|rest| rest.chars().next()).and_then(|digit| digit.to_digit(10))
    };
    let reasoning = digit_after("o").is_some() || digit_after("gpt-").is_some_and(|major| major >= 5);
    if reasoning { "max_completion_tokens" } else { "max_tokens" }
}

fn genai_request(request: &ChatRequest) -> genai::chat::ChatRequest {
    let messages = request.messages.iter().map(genai_message).collect();
    let mut built = genai::chat::ChatRequest::from_messages(messages);
    if !request.tools.is_empty() {
        built.tools = Some(
            request
                .tools
                .iter()
                .map(|tool| {
                    Tool::new(ToolName::Custom(tool.name.clone()))
                        .with_description(tool.description.clone())
                        .with_schema(tool.parameters.clone())
                })
                .collect(),
        );
    }
    built
}

fn genai_message(message: &ChatMessage) -> genai::chat::ChatMessage {
    use genai::chat::ChatMessage as Built;
    match message {
        ChatMessage::System(text) => Built::system(text.as_str()),
        ChatMessage::User(text) => Built::user(text.as_str()),
        ChatMessage::Assistant { text, tool_calls } => {
            let mut content = MessageContent::default();
            if !text.is_empty() {
                content.push(ContentPart::Text(text.clone()));
            }
            for call in tool_calls {
                content.push(ContentPart::ToolCall(genai::chat::ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    // Arguments that are no JSON go back as a JSON string: servers parse this field.
                    fn_arguments: call
                        .parse_arguments()
                        .unwrap_or_else(|_| Value::String(call.arguments.clone())),
                    thought_signatures: None,
                }));
            }
            Built::assistant(content)
        }
        ChatMessage::Tool { call_id, name, content } => {
            Built::from(ToolResponse::new(call_id.as_str(), content.as_str()).with_fn_name(name.as_str()))
        }
    }
}
