//! How providers are spoken to: where a request goes, which header holds the key, what the body looks like, and what the
//! events of the answer mean. One file for each format; all of them stream.

mod anthropic;
mod cohere;
mod gemini;
mod gemini_schema;
mod openai;

use lectern_shared::compute::ComputePool;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use url::Url;

use self::openai::OpenAiDialect;
use super::{
    ChatErrorKind, ChatRequest, ModelConfigError, ModelProvider, ToolSpec,
    answer::{HaltReason, PartialAnswer},
    retry::AttemptFailure,
    settings::{RefusedSettings, RequestSetting},
    sse::ServerSentEvent,
};

/// Where the requests of one model go, and in which format.
pub(super) struct ModelEndpoint {
    /// The address, with the model in it where the provider wants it there. Never with a key of ours.
    pub(super) url: Url,
    /// All headers that depend on the model; values that are secret are marked so.
    pub(super) headers: HeaderMap,
    /// The format of requests and events.
    pub(super) format: WireFormat,
}

/// A wire format.
#[derive(Debug, Clone, Copy)]
pub(super) enum WireFormat {
    /// OpenAI's chat completions, as one provider speaks them.
    OpenAi(OpenAiDialect),
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// Cohere's chat, version 2.
    Cohere,
}

impl ModelEndpoint {
    /// Where `provider` serves `model`, under `base_url` or else its public address.
    pub(super) fn new(
        provider: ModelProvider,
        model: &str,
        base_url: Option<Url>,
        key: Option<&SecretString>,
    ) -> Result<Self, ModelConfigError> {
        let base = || match (base_url, provider.default_base()) {
            (Some(url), _) => web_address(url),
            (None, Some(default)) => Url::parse(default).map_err(|_| ModelConfigError::BaseUrlInvalid),
            (None, None) => Err(ModelConfigError::BaseUrlRequired { provider }),
        };
        let (url, format) = match provider {
            ModelProvider::Extractive => return Err(ModelConfigError::ProviderNotAvailable { provider }),
            ModelProvider::OpenAiChat
            | ModelProvider::OpenAi
            | ModelProvider::OpenAiCompatible
            | ModelProvider::Groq => {
                (under(base()?, "", &["chat", "completions"])?, WireFormat::OpenAi(OpenAiDialect::OPENAI))
            }
            ModelProvider::Mistral => {
                (under(base()?, "", &["chat", "completions"])?, WireFormat::OpenAi(OpenAiDialect::MISTRAL))
            }
            ModelProvider::Ollama => {
                (under(base()?, "v1", &["chat", "completions"])?, WireFormat::OpenAi(OpenAiDialect::OPENAI))
            }
            ModelProvider::AzureOpenAi => {
                let (url, dialect) = openai::azure(base()?, model)?;
                (url, WireFormat::OpenAi(dialect))
            }
            ModelProvider::Anthropic => (under(base()?, "v1", &["messages"])?, WireFormat::Anthropic),
            ModelProvider::Gemini => (gemini::url(base()?, model)?, WireFormat::Gemini),
            ModelProvider::Cohere => (under(base()?, "v2", &["chat"])?, WireFormat::Cohere),
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if provider == ModelProvider::Anthropic {
            headers.insert(
                HeaderName::from_static("anthropic-version"),
                HeaderValue::from_static(anthropic::VERSION),
            );
        }
        if let Some(key) = key.map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty()) {
            let (name, value) = match provider {
                ModelProvider::Anthropic => {
                    (HeaderName::from_static("x-api-key"), HeaderValue::from_str(key))
                }
                ModelProvider::Gemini => {
                    (HeaderName::from_static("x-goog-api-key"), HeaderValue::from_str(key))
                }
                ModelProvider::AzureOpenAi => {
                    (HeaderName::from_static("api-key"), HeaderValue::from_str(key))
                }
                _ => (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}"))),
            };
            let mut value = value.map_err(|_| ModelConfigError::ApiKeyInvalid)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self { url, headers, format })
    }
}

impl WireFormat {
    /// The body of a request, without the settings that the model has refused.
    pub(super) fn body(self, model: &str, request: &ChatRequest, refused: RefusedSettings) -> Value {
        match self {
            Self::OpenAi(dialect) => openai::body(dialect, model, request, refused),
            Self::Anthropic => anthropic::body(model, request, refused),
            Self::Gemini => gemini::body(request, refused),
            Self::Cohere => cohere::body(model, request, refused),
        }
    }

    /// Adds what an event says to the answer; a large one is parsed off the async threads.
    pub(super) async fn take(
        self,
        event: ServerSentEvent,
        answer: &mut PartialAnswer,
        compute: &ComputePool,
    ) -> Result<(), AttemptFailure> {
        if ends(&event, answer) {
            return Ok(());
        }
        let ServerSentEvent { name, data } = event;
        let frame = compute.parse(data, |data| serde_json::from_slice(data).ok()).await;
        self.read_frame(&name, frame, answer)
    }

    /// The same, with all of it done here.
    #[cfg(feature = "fuzzing")]
    pub(super) fn read(
        self,
        event: &ServerSentEvent,
        answer: &mut PartialAnswer,
    ) -> Result<(), AttemptFailure> {
        if ends(event, answer) {
            return Ok(());
        }
        self.read_frame(&event.name, serde_json::from_slice(&event.data).ok(), answer)
    }

    /// Adds what an event says that was parsed, if it could be.
    fn read_frame(
        self,
        name: &[u8],
        frame: Option<Value>,
        answer: &mut PartialAnswer,
    ) -> Result<(), AttemptFailure> {
        let Some(frame) = frame.filter(Value::is_object) else {
            return Err(AttemptFailure::new(ChatErrorKind::Garbage));
        };
        let error = &frame["error"];
        if !error.is_null() {
            return Err(super::rejection::error_event(error));
        }
        if name == b"error" {
            return Err(super::rejection::error_event(&frame));
        }
        match self {
            Self::OpenAi(_) => openai::read(&frame, answer),
            Self::Anthropic => anthropic::read(&frame, answer),
            Self::Gemini => {
                gemini::read(&frame, answer);
                Ok(())
            }
            Self::Cohere => cohere::read(&frame, answer),
        }
    }
}

/// Whether an event is OpenAI's mark of the end, which gateways put behind the other formats too. The answer is told.
fn ends(event: &ServerSentEvent, answer: &mut PartialAnswer) -> bool {
    let is_end = event.data.trim_ascii() == b"[DONE]";
    if is_end {
        answer.halt(HaltReason::Ended);
    }
    is_end
}

/// A base URL that can be asked, without a fragment.
fn web_address(mut base: Url) -> Result<Url, ModelConfigError> {
    let web = matches!(base.scheme(), "http" | "https") && base.has_host();
    if !web || !base.username().is_empty() || base.password().is_some() {
        return Err(ModelConfigError::BaseUrlInvalid);
    }
    base.set_fragment(None);
    Ok(base)
}

/// The address of `segments` under a base, whose query stays. The base gets the segment `version` at its end unless it has
/// it already.
fn under(mut base: Url, version: &str, segments: &[&str]) -> Result<Url, ModelConfigError> {
    let versioned =
        version.is_empty() || base.path().trim_end_matches('/').rsplit('/').next() == Some(version);
    let mut path = base.path_segments_mut().map_err(|()| ModelConfigError::BaseUrlInvalid)?;
    path.pop_if_empty();
    if !versioned {
        path.push(version);
    }
    path.extend(segments);
    drop(path);
    Ok(base)
}

/// The temperature to send, if any.
fn temperature(request: &ChatRequest, refused: RefusedSettings) -> Option<f64> {
    request.temperature.filter(|_| !refused.contains(RequestSetting::Temperature))
}

/// The stop texts to send, `most` at most.
fn stop(request: &ChatRequest, refused: RefusedSettings, most: usize) -> Option<Value> {
    if refused.contains(RequestSetting::Stop) {
        return None;
    }
    let texts: Vec<&str> =
        request.stop.iter().map(String::as_str).filter(|text| !text.is_empty()).take(most).collect();
    (!texts.is_empty()).then(|| json!(texts))
}

/// A tool as OpenAI and those after it describe one.
fn function(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": object_schema(&tool.parameters),
        },
    })
}

/// A tool's parameters with what every provider insists on: the type at the root.
fn object_schema(parameters: &Value) -> Value {
    match parameters {
        Value::Object(schema) if schema.contains_key("type") => parameters.clone(),
        Value::Object(schema) => {
            let mut schema = schema.clone();
            schema.insert("type".to_owned(), json!("object"));
            schema.entry("properties").or_insert_with(|| json!({}));
            Value::Object(schema)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn event(numbers: usize) -> ServerSentEvent {
        let frame = json!({"choices": [{"delta": {"content": "hi"}}], "more": vec![0; numbers]});
        ServerSentEvent { name: Vec::new(), data: frame.to_string().into_bytes() }
    }

    #[tokio::test]
    async fn events_are_read_whatever_their_size() {
        let format = WireFormat::OpenAi(OpenAiDialect::OPENAI);
        let (mut answer, compute) = (PartialAnswer::default(), ComputePool::new(1));
        assert!(format.take(event(0), &mut answer, &compute).now_or_never().is_some());
        assert_eq!(answer.text, "hi");
        assert!(format.take(event(100_000), &mut answer, &compute).await.is_ok());
        assert_eq!(answer.text, "hihi");
    }
}
