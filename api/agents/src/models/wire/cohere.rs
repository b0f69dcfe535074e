//! Cohere's chat, version 2: OpenAI's messages and tools, and a stream of events of its own.

use serde_json::{Map, Value, json};

use super::{
    RefusedSettings, function,
    openai::{push_call, tool_call},
    stop, temperature,
};
use crate::models::{
    ChatErrorKind, ChatMessage, ChatRequest, FinishReason,
    answer::{AnswerProgress, HaltReason, PartialAnswer},
    retry::AttemptFailure,
};

/// Stop texts that a request may hold.
const MAX_STOP: usize = 5;

/// The body of a request.
pub(super) fn body(model: &str, request: &ChatRequest, refused: RefusedSettings) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), request.messages.iter().map(message).collect());
    body.insert("stream".to_owned(), json!(true));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(function).collect());
    }
    if let Some(temperature) = temperature(request, refused) {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(limit) = request.max_tokens {
        body.insert("max_tokens".to_owned(), json!(limit));
    }
    if let Some(stop) = stop(request, refused, MAX_STOP) {
        body.insert("stop_sequences".to_owned(), stop);
    }
    Value::Object(body)
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System(text) => json!({"role": "system", "content": text}),
        ChatMessage::User(text) => json!({"role": "user", "content": text}),
        ChatMessage::Assistant { text, tool_calls } if tool_calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        ChatMessage::Assistant { text, tool_calls } => {
            let calls: Vec<Value> = tool_calls.iter().map(|call| tool_call(call, &call.id)).collect();
            let mut message = json!({"role": "assistant", "tool_calls": calls});
            if !text.is_empty() {
                // The place for what is said beside calls.
                message["tool_plan"] = json!(text);
            }
            message
        }
        ChatMessage::Tool { call_id, content, .. } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": content})
        }
    }
}

/// Adds what an event says.
pub(super) fn read(frame: &Value, answer: &mut PartialAnswer) -> Result<(), AttemptFailure> {
    let kind = frame["type"].as_str().unwrap_or_default();
    let message = &frame["delta"]["message"];
    if message.is_object() || matches!(kind, "message-start" | "message-end") {
        answer.reach(AnswerProgress::Choice);
    }
    match kind {
        "content-start" | "content-delta" => {
            answer.push_content(&message["content"]["text"]);
            answer.think(&message["content"]["thinking"]);
        }
        // How it means to use tools: a thought.
        "tool-plan-delta" => answer.think(&message["tool_plan"]),
        "tool-call-start" | "tool-call-delta" => {
            push_call(answer, frame["index"].as_u64(), &message["tool_calls"]);
        }
        "message-end" => {
            let delta = &frame["delta"];
            // What is paid for, where that is said.
            let usage = &delta["usage"];
            for tokens in [&usage["tokens"], &usage["billed_units"]] {
                answer.count(whole(&tokens["input_tokens"]), whole(&tokens["output_tokens"]));
            }
            answer.finish_reason = match delta["finish_reason"].as_str() {
                Some("COMPLETE" | "STOP_SEQUENCE") => Some(FinishReason::Stop),
                Some("MAX_TOKENS") => Some(FinishReason::Length),
                Some("TOOL_CALL") => Some(FinishReason::ToolCalls),
                Some("ERROR_TOXIC") => Some(FinishReason::ContentFilter),
                Some("TIMEOUT") => return Err(AttemptFailure::from_status(504)),
                Some("ERROR") => return Err(AttemptFailure::new(ChatErrorKind::Upstream { status: None })),
                Some(_) => Some(FinishReason::Other),
                None => None,
            };
            answer.halt(HaltReason::Ended);
        }
        // `message-start`, ends of parts, citations, and what may be added.
        _ => {}
    }
    Ok(())
}

/// A count, which is sometimes written as a fraction.
fn whole(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates, and counts are small"
    )]
    value.as_u64().or_else(|| value.as_f64().map(|count| count as u64))
}
