//! Anthropic's messages.

use serde_json::{Map, Value, json};

use super::{RefusedSettings, object_schema, stop, temperature};
use crate::models::{
    ChatErrorKind, ChatMessage, ChatRequest, FinishReason, ModelProvider,
    answer::{AnswerProgress, HaltReason, PartialAnswer, ToolCallDelta},
    retry::AttemptFailure,
};

/// The version of the interface; the only one there is.
pub(super) const VERSION: &str = "2023-06-01";

/// The limit of length that is sent where the agent sets none, because one is required: every model there is accepts this.
const DEFAULT_MAX_TOKENS: u32 = 4096;

/// The body of a request.
pub(super) fn body(model: &str, request: &ChatRequest, refused: RefusedSettings) -> Value {
    let (system, messages) = conversation(request);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)));
    if !system.is_empty() {
        body.insert("system".to_owned(), json!(system));
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    body.insert("stream".to_owned(), json!(true));
    if !request.tools.is_empty() {
        let tool = |tool: &crate::models::ToolSpec| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": object_schema(&tool.parameters),
            })
        };
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    if let Some(temperature) = temperature(request, refused) {
        // Agents that were saved before it was looked at may have more, which is refused.
        let highest = ModelProvider::Anthropic.max_temperature();
        body.insert("temperature".to_owned(), json!(temperature.min(highest)));
    }
    if let Some(Value::Array(mut texts)) = stop(request, refused, usize::MAX) {
        // Refused as stop texts: those of white space alone.
        texts.retain(|text| text.as_str().is_some_and(|text| !text.trim().is_empty()));
        if !texts.is_empty() {
            body.insert("stop_sequences".to_owned(), Value::Array(texts));
        }
    }
    Value::Object(body)
}

/// The instructions, which stand apart, and the turns: roles take turns strictly, and what tools answered is the user's.
fn conversation(request: &ChatRequest) -> (String, Vec<Value>) {
    let mut system: Vec<&str> = Vec::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            ChatMessage::System(text) => {
                system.push(text);
                continue;
            }
            ChatMessage::User(content) => ("user", text(content)),
            ChatMessage::Assistant { text: content, tool_calls } => {
                let mut blocks = text(content);
                blocks.extend(tool_calls.iter().map(|call| {
                    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments_object()})
                }));
                ("assistant", blocks)
            }
            ChatMessage::Tool { call_id, content, .. } => {
                ("user", vec![json!({"type": "tool_result", "tool_use_id": call_id, "content": content})])
            }
        };
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let mut system = system.join("\n\n");
    turns.retain(|(_, blocks)| !blocks.is_empty());
    // At least one turn is required.
    if turns.is_empty() {
        turns.push(("user", text(&std::mem::take(&mut system))));
    }
    let turns = turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect();
    (system, turns)
}

/// A block of text; none for an empty one, which is refused.
fn text(text: &str) -> Vec<Value> {
    if text.trim().is_empty() { Vec::new() } else { vec![json!({"type": "text", "text": text})] }
}

/// Adds what an event says.
pub(super) fn read(frame: &Value, answer: &mut PartialAnswer) -> Result<(), AttemptFailure> {
    match frame["type"].as_str().unwrap_or_default() {
        "message_start" => {
            answer.reach(AnswerProgress::Choice);
            count(&frame["message"]["usage"], answer);
        }
        "content_block_start" => {
            answer.reach(AnswerProgress::Choice);
            start_block(frame["index"].as_u64(), &frame["content_block"], answer);
        }
        "content_block_delta" => {
            answer.reach(AnswerProgress::Choice);
            let delta = &frame["delta"];
            match delta["type"].as_str().unwrap_or_default() {
                "text_delta" => answer.push_content(&delta["text"]),
                "input_json_delta" => answer.push_call(&ToolCallDelta {
                    index: frame["index"].as_u64(),
                    arguments: delta["partial_json"].as_str().unwrap_or_default(),
                    ..ToolCallDelta::default()
                }),
                // Thoughts, their signatures, citations.
                _ => {
                    answer.reach(AnswerProgress::Begun);
                    answer.think(&delta["thinking"]);
                }
            }
        }
        "message_delta" => {
            answer.reach(AnswerProgress::Choice);
            count(&frame["usage"], answer);
            if let Some(reason) = frame["delta"]["stop_reason"].as_str() {
                answer.finish_reason = Some(match reason {
                    "end_turn" | "stop_sequence" => FinishReason::Stop,
                    "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
                    "tool_use" => FinishReason::ToolCalls,
                    "refusal" => FinishReason::ContentFilter,
                    // `pause_turn` among them, which only the provider's own tools bring about.
                    _ => FinishReason::Other,
                });
            }
        }
        "message_stop" => answer.halt(HaltReason::Ended),
        "error" => return Err(AttemptFailure::new(ChatErrorKind::Upstream { status: None })),
        // `ping`, `content_block_stop`, and what may be added.
        _ => {}
    }
    Ok(())
}

fn start_block(index: Option<u64>, block: &Value, answer: &mut PartialAnswer) {
    match block["type"].as_str().unwrap_or_default() {
        "text" => answer.push_content(&block["text"]),
        "tool_use" => {
            // The input follows in pieces, which are the whole of it. Some gateways send it here instead.
            let input = &block["input"];
            let whole = input.as_object().is_some_and(|input| !input.is_empty()).then(|| input.to_string());
            answer.push_call(&ToolCallDelta {
                index,
                id: block["id"].as_str().unwrap_or_default(),
                name: block["name"].as_str().unwrap_or_default(),
                arguments: whole.as_deref().unwrap_or_default(),
                signature: None,
            });
        }
        _ => answer.reach(AnswerProgress::Begun),
    }
}

/// Tokens read count whether or not they came from a cache. Every report holds the sums so far; gateways leave those at zero
/// that they do not know yet.
fn count(usage: &Value, answer: &mut PartialAnswer) {
    let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let read: Option<u64> = parts
        .iter()
        .filter_map(|part| usage[*part].as_u64())
        .reduce(u64::saturating_add)
        .filter(|&sum| sum > 0);
    answer.count(read, usage["output_tokens"].as_u64());
}
