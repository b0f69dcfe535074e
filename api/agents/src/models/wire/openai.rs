//! OpenAI's chat completions, which most of the field speaks, each with its own small differences.

use serde_json::{Map, Value, json};
use url::Url;

use super::{RefusedSettings, RequestSetting, function, stop, temperature, under};
use crate::models::{
    ChatErrorKind, ChatMessage, ChatRequest, FinishReason, ModelConfigError, ToolCall,
    answer::{AnswerProgress, PartialAnswer, ToolCallDelta},
    retry::AttemptFailure,
};

/// Stop texts that a request may hold.
const MAX_STOP: usize = 4;

/// The generally available version of Azure's interface that is asked for where the address names none.
const AZURE_VERSION: &str = "2024-10-21";

/// The first of Azure's versions that knows `stream_options`.
const AZURE_USAGE_SINCE: &str = "2024-09-01";

/// Length of the tool call ids that Mistral accepts; they are letters and digits.
const MISTRAL_ID_LENGTH: usize = 9;

/// What distinguishes one speaker of the format from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::models) struct OpenAiDialect {
    /// The model is named in the body rather than in the address.
    model_in_body: bool,
    /// `stream_options.include_usage` is known.
    stream_options: bool,
    /// Nothing but the documented fields and forms is accepted.
    mistral: bool,
}

impl OpenAiDialect {
    /// As OpenAI itself.
    pub(super) const OPENAI: Self = Self { model_in_body: true, stream_options: true, mistral: false };
    /// Usage comes unasked, unknown fields are refused, and so are ids of other forms than its own.
    pub(super) const MISTRAL: Self = Self { model_in_body: true, stream_options: false, mistral: true };
}

/// Azure's address for a deployment. The base is the resource's own address; the deployment's full address, as Azure shows it,
/// and the newer form under `/openai/v1` do as well.
pub(super) fn azure(mut base: Url, deployment: &str) -> Result<(Url, OpenAiDialect), ModelConfigError> {
    let path = base.path().trim_end_matches('/').to_owned();
    if path.ends_with("/openai/v1") {
        return Ok((under(base, "", &["chat", "completions"])?, OpenAiDialect::OPENAI));
    }
    let own = path.split_once("/openai/deployments").map_or(path.as_str(), |(own, _)| own);
    let own = own.strip_suffix("/openai").unwrap_or(own).to_owned();
    base.set_path(&own);
    let named =
        base.query_pairs().find(|(name, _)| name == "api-version").map(|(_, value)| value.into_owned());
    if named.is_none() {
        base.query_pairs_mut().append_pair("api-version", AZURE_VERSION);
    }
    let version = named.as_deref().unwrap_or(AZURE_VERSION);
    let dialect =
        OpenAiDialect { model_in_body: false, stream_options: version >= AZURE_USAGE_SINCE, mistral: false };
    Ok((under(base, "", &["openai", "deployments", deployment, "chat", "completions"])?, dialect))
}

/// The body of a request.
pub(super) fn body(
    dialect: OpenAiDialect,
    model: &str,
    request: &ChatRequest,
    refused: RefusedSettings,
) -> Value {
    let ids = CallIds::new(dialect, request);
    let messages: Vec<Value> = request.messages.iter().map(|written| message(written, &ids)).collect();
    let mut body = Map::new();
    if dialect.model_in_body {
        body.insert("model".to_owned(), json!(model));
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    body.insert("stream".to_owned(), json!(true));
    if dialect.stream_options && !refused.contains(RequestSetting::StreamOptions) {
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(function).collect());
    }
    if let Some(temperature) = temperature(request, refused) {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    let reasoning = !dialect.mistral && is_reasoning(model);
    if let Some(limit) = request.max_tokens {
        let newer = !dialect.mistral && reasoning != refused.contains(RequestSetting::LimitName);
        let name = if newer { "max_completion_tokens" } else { "max_tokens" };
        body.insert(name.to_owned(), json!(limit));
    }
    // These models refuse it; answers are cut at the caller's in any case.
    if let Some(stop) = stop(request, refused, MAX_STOP).filter(|_| !reasoning) {
        body.insert("stop".to_owned(), stop);
    }
    Value::Object(body)
}

/// Whether the name is one of OpenAI's reasoning models, which take `max_completion_tokens` instead of `max_tokens` (most
/// other servers know nothing else) and no `stop`. Gateways put a vendor before the name.
fn is_reasoning(model: &str) -> bool {
    let name = model.rsplit(['/', ':']).next().unwrap_or(model);
    let digit_after = |prefix: &str| {
        name.strip_prefix(prefix).and_then(|rest| rest.chars().next()).and_then(|digit| digit.to_digit(10))
    };
    digit_after("o").is_some() || digit_after("gpt-").is_some_and(|major| major >= 5)
}

fn message(message: &ChatMessage, ids: &CallIds<'_>) -> Value {
    match message {
        ChatMessage::System(text) => json!({"role": "system", "content": text}),
        ChatMessage::User(text) => json!({"role": "user", "content": text}),
        ChatMessage::Assistant { text, tool_calls } if tool_calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        ChatMessage::Assistant { text, tool_calls } => {
            let calls: Vec<Value> =
                tool_calls.iter().map(|call| tool_call(call, &ids.of(&call.id))).collect();
            let content = if text.is_empty() { Value::Null } else { json!(text) };
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        ChatMessage::Tool { call_id, content, .. } => {
            json!({"role": "tool", "tool_call_id": ids.of(call_id), "content": content})
        }
    }
}

/// A call as it is sent back, by Cohere's format too. Good arguments stay as the model wrote them, so that whoever caches by
/// the letter finds them again.
pub(super) fn tool_call(call: &ToolCall, id: &str) -> Value {
    let arguments = match call.parse_arguments() {
        Ok(Value::Object(_)) if !call.arguments.trim().is_empty() => call.arguments.clone(),
        _ => Value::Object(call.arguments_object()).to_string(),
    };
    json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// The ids of a conversation's calls, in the form that is accepted.
struct CallIds<'a>(Option<Vec<&'a str>>);

impl<'a> CallIds<'a> {
    fn new(dialect: OpenAiDialect, request: &'a ChatRequest) -> Self {
        let calls = request.messages.iter().flat_map(|message| match message {
            ChatMessage::Assistant { tool_calls, .. } => tool_calls.as_slice(),
            _ => &[],
        });
        Self(dialect.mistral.then(|| calls.map(|call| call.id.as_str()).collect()))
    }

    fn of(&self, id: &str) -> String {
        let fits = id.len() == MISTRAL_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match &self.0 {
            Some(known) if !fits => {
                let place = known.iter().position(|other| *other == id).unwrap_or(known.len());
                format!("c{place:08}")
            }
            _ => id.to_owned(),
        }
    }
}

/// Adds what a chunk says.
pub(super) fn read(frame: &Value, answer: &mut PartialAnswer) -> Result<(), AttemptFailure> {
    for usage in [&frame["usage"], &frame["x_groq"]["usage"]] {
        answer.count(usage["prompt_tokens"].as_u64(), usage["completion_tokens"].as_u64());
    }
    let Some(choice) = frame["choices"].get(0) else { return Ok(()) };
    answer.reach(AnswerProgress::Choice);
    let delta = &choice["delta"];
    // Servers that do not know a model's thoughts pass them on as text.
    answer.expect_thoughts();
    answer.push_content(&delta["content"]);
    // Instead of content, where a model declines.
    answer.push_content(&delta["refusal"]);
    // Some servers say the same under both names.
    let thoughts = [&delta["reasoning_content"], &delta["reasoning"]];
    let told = thoughts.into_iter().find(|thought| !thought.is_null() && thought.as_str() != Some(""));
    answer.think(told.unwrap_or(&Value::Null));
    for part in delta["tool_calls"].as_array().into_iter().flatten() {
        push_call(answer, part["index"].as_u64(), part);
    }
    if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
        answer.end_text();
        answer.finish_reason = Some(match reason {
            "stop" | "eos" | "end_turn" => FinishReason::Stop,
            "length" | "max_tokens" | "model_length" => FinishReason::Length,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            "content_filter" => FinishReason::ContentFilter,
            // Mistral's and some gateways' way to say that the model broke down.
            "error" => return Err(AttemptFailure::new(ChatErrorKind::Upstream { status: None })),
            _ => FinishReason::Other,
        });
    }
    Ok(())
}

/// A part of a call as OpenAI and Cohere write it.
pub(super) fn push_call(answer: &mut PartialAnswer, index: Option<u64>, part: &Value) {
    let arguments = match &part["function"]["arguments"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        // Some servers send the object itself.
        other => other.to_string(),
    };
    answer.push_call(&ToolCallDelta {
        index,
        id: part["id"].as_str().unwrap_or_default(),
        name: part["function"]["name"].as_str().unwrap_or_default(),
        arguments: &arguments,
        signature: None,
    });
}
