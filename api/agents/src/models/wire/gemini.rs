//! Gemini's `streamGenerateContent`.

use serde_json::{Map, Value, json};
use url::Url;

use super::{RefusedSettings, gemini_schema::reduced, stop, temperature};
use crate::models::{
    ChatMessage, ChatRequest, FinishReason, ModelConfigError, ToolCall, ToolSpec,
    answer::{AnswerProgress, PartialAnswer, ToolCallDelta, is_own_id},
};

/// Stop texts that a request may hold.
const MAX_STOP: usize = 5;

/// The version of the interface, put after a base that names none.
const VERSION: &str = "v1beta";

/// Kinds of model that a name may begin with; others are of the first kind.
const COLLECTIONS: [&str; 2] = ["models", "tunedModels"];

/// The address of a model. Its name is one segment of the path, whatever is in it.
pub(super) fn url(mut base: Url, model: &str) -> Result<Url, ModelConfigError> {
    let versioned = base.path().split('/').any(is_version);
    let (collection, name) = model
        .split_once('/')
        .filter(|(collection, _)| COLLECTIONS.contains(collection))
        .unwrap_or((COLLECTIONS[0], model));
    let mut path = base.path_segments_mut().map_err(|()| ModelConfigError::BaseUrlInvalid)?;
    path.pop_if_empty();
    if !versioned {
        path.push(VERSION);
    }
    path.push(collection).push(&format!("{name}:streamGenerateContent"));
    drop(path);
    base.query_pairs_mut().append_pair("alt", "sse");
    Ok(base)
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The body of a request. The model is in the address.
pub(super) fn body(request: &ChatRequest, refused: RefusedSettings) -> Value {
    let (system, contents) = conversation(request);
    let mut body = Map::new();
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
    }
    body.insert("contents".to_owned(), Value::Array(contents));
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations}]));
    }
    let mut settings = Map::new();
    if let Some(temperature) = temperature(request, refused) {
        settings.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(limit) = request.max_tokens {
        settings.insert("maxOutputTokens".to_owned(), json!(limit));
    }
    if let Some(stop) = stop(request, refused, MAX_STOP) {
        settings.insert("stopSequences".to_owned(), stop);
    }
    if !settings.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(settings));
    }
    Value::Object(body)
}

fn declaration(tool: &ToolSpec) -> Value {
    let mut declaration = json!({"name": tool.name, "description": tool.description});
    if let Some(parameters) = reduced(&tool.parameters) {
        declaration["parameters"] = parameters;
    }
    declaration
}

/// The instructions, which stand apart, and the turns: what tools answered is one turn of the user.
fn conversation(request: &ChatRequest) -> (String, Vec<Value>) {
    let mut system: Vec<&str> = Vec::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, parts) = match message {
            ChatMessage::System(text) => {
                system.push(text);
                continue;
            }
            ChatMessage::User(content) => ("user", text(content)),
            ChatMessage::Assistant { text: content, tool_calls } => {
                let mut parts = text(content);
                parts.extend(tool_calls.iter().map(function_call));
                ("model", parts)
            }
            ChatMessage::Tool { call_id, name, content } => {
                let mut response = json!({"name": name, "response": {"output": content}});
                put_id(&mut response, call_id);
                ("user", vec![json!({"functionResponse": response})])
            }
        };
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(parts),
            _ => turns.push((role, parts)),
        }
    }
    let mut system = system.join("\n\n");
    turns.retain(|(_, parts)| !parts.is_empty());
    // At least one turn is required.
    if turns.is_empty() {
        turns.push(("user", text(&std::mem::take(&mut system))));
    }
    let turns = turns.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect();
    (system, turns)
}

fn text(text: &str) -> Vec<Value> {
    if text.is_empty() { Vec::new() } else { vec![json!({"text": text})] }
}

fn function_call(call: &ToolCall) -> Value {
    let mut written = json!({"name": call.name, "args": call.arguments_object()});
    put_id(&mut written, &call.id);
    let mut part = json!({"functionCall": written});
    if let Some(signature) = &call.signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

/// Only ids that the provider gave mean something to it; without one, it goes by name and order.
fn put_id(part: &mut Value, id: &str) {
    if !is_own_id(id) {
        part["id"] = json!(id);
    }
}

/// Adds what a response of the stream says.
pub(super) fn read(frame: &Value, answer: &mut PartialAnswer) {
    let usage = &frame["usageMetadata"];
    let tokens =
        |parts: [&str; 2]| parts.iter().filter_map(|part| usage[*part].as_u64()).reduce(u64::saturating_add);
    answer.count(
        tokens(["promptTokenCount", "toolUsePromptTokenCount"]),
        tokens(["candidatesTokenCount", "thoughtsTokenCount"]),
    );
    if frame["promptFeedback"]["blockReason"].is_string() {
        answer.reach(AnswerProgress::Choice);
        answer.finish_reason = Some(FinishReason::ContentFilter);
    }
    let Some(candidate) = frame["candidates"].get(0) else { return };
    answer.reach(AnswerProgress::Choice);
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        let call = &part["functionCall"];
        if call.is_object() {
            let arguments = if call["args"].is_null() { String::new() } else { call["args"].to_string() };
            answer.push_whole_call(&ToolCallDelta {
                index: None,
                id: call["id"].as_str().unwrap_or_default(),
                name: call["name"].as_str().unwrap_or_default(),
                arguments: &arguments,
                signature: part["thoughtSignature"].as_str(),
            });
        } else if part["thought"] == true {
            answer.reach(AnswerProgress::Begun);
            answer.think(&part["text"]);
        } else {
            answer.push_content(&part["text"]);
        }
    }
    if let Some(reason) = candidate["finishReason"].as_str() {
        answer.finish_reason = Some(match reason {
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                FinishReason::ContentFilter
            }
            // `MALFORMED_FUNCTION_CALL` and others: the model went wrong.
            _ => FinishReason::Other,
        });
    }
}
