//! What the frames of a chat completions stream say beside text.
//!
//! The client library reports finish reason, usage and tool calls only when the stream ends with `[DONE]`, which not
//! every server sends; it drops tool calls without an `index`, and its own collection of them allocates by an index
//! that the server chooses. So the raw frames are read here as well, in the order in which they arrive.

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{FinishReason, ToolCall};

/// Calls in one answer; more is a runaway.
const MAX_TOOL_CALLS: usize = 128;

/// Bytes of names and arguments of all calls of one answer.
const MAX_TOOL_CALL_BYTES: usize = 1024 * 1024;

/// The frames of one stream, read as they pass by.
#[derive(Debug)]
pub(super) struct FrameLog {
    frames: Mutex<Frames>,
    finished: Notify,
}

/// What the frames so far have said.
#[derive(Debug)]
pub(super) struct Frames {
    /// When the last frame came, comments that keep a connection alive included.
    pub(super) last_frame: Instant,
    /// A frame with data has come.
    pub(super) any_data: bool,
    /// A frame with a choice has come.
    pub(super) any_choice: bool,
    /// Why the answer ended, once a frame has said so.
    pub(super) finish_reason: Option<FinishReason>,
    /// Tokens read, if reported.
    pub(super) input_tokens: Option<u64>,
    /// Tokens written, if reported.
    pub(super) output_tokens: Option<u64>,
    /// The calls are more or larger than accepted, and incomplete here.
    pub(super) calls_too_large: bool,
    calls: Vec<PartialCall>,
    call_bytes: usize,
}

#[derive(Debug)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl FrameLog {
    /// A log for a stream that is about to be asked for.
    pub(super) fn new() -> Self {
        let frames = Mutex::new(Frames {
            last_frame: Instant::now(),
            any_data: false,
            any_choice: false,
            finish_reason: None,
            input_tokens: None,
            output_tokens: None,
            calls_too_large: false,
            calls: Vec::new(),
            call_bytes: 0,
        });
        Self { frames, finished: Notify::new() }
    }

    /// Waits for the finish reason. Frames that hold nothing else make no event of the library.
    pub(super) async fn finished(&self) {
        self.finished.notified().await;
    }

    /// Reads from what is known so far.
    pub(super) fn with<T>(&self, read: impl FnOnce(&mut Frames) -> T) -> T {
        read(&mut self.frames.lock())
    }
}

impl ChatFrameSink for FrameLog {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let parsed = frame.json();
        let mut frames = self.frames.lock();
        frames.last_frame = Instant::now();
        frames.any_data |= !frame.data.is_empty();
        if let Some(value) = parsed {
            frames.read(&value);
        }
        if frames.finish_reason.is_some() {
            self.finished.notify_one();
        }
    }
}

impl Frames {
    /// Whether a tool call has begun.
    pub(super) fn any_tool_call(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Takes the calls, each with an id of its own.
    pub(super) fn take_tool_calls(&mut self) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for (position, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let taken = call.id.is_empty() || calls.iter().any(|other| other.id == call.id);
            let id = if taken { format!("call_{position}_{}", call.name) } else { call.id };
            calls.push(ToolCall { id, name: call.name, arguments: call.arguments });
        }
        calls
    }

    fn read(&mut self, frame: &Value) {
        for usage in [&frame["usage"], &frame["x_groq"]["usage"]] {
            self.input_tokens = usage["prompt_tokens"].as_u64().or(self.input_tokens);
            self.output_tokens = usage["completion_tokens"].as_u64().or(self.output_tokens);
        }
        let Some(choice) = frame["choices"].get(0) else { return };
        self.any_choice = true;
        if let Some(parts) = choice["delta"]["tool_calls"].as_array() {
            for part in parts {
                self.add_call_part(part);
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(match reason {
                "stop" | "eos" | "end_turn" => FinishReason::Stop,
                "length" | "max_tokens" | "model_length" => FinishReason::Length,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                "content_filter" => FinishReason::ContentFilter,
                _ => FinishReason::Other,
            });
        }
    }

    fn add_call_part(&mut self, part: &Value) {
        let index = part["index"].as_u64();
        let id = part["id"].as_str().unwrap_or_default();
        let name = part["function"]["name"].as_str().unwrap_or_default();
        let arguments = match &part["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some servers send the object itself.
            other => other.to_string(),
        };
        self.call_bytes = self.call_bytes.saturating_add(id.len() + name.len() + arguments.len());
        if self.call_bytes > MAX_TOOL_CALL_BYTES {
            self.calls_too_large = true;
            return;
        }
        match self.position_of(index, id) {
            Some(position) => {
                let call = &mut self.calls[position];
                if call.id.is_empty() {
                    call.id.push_str(id);
                }
                if call.name.is_empty() {
                    call.name.push_str(name);
                }
                call.arguments.push_str(&arguments);
            }
            None if self.calls.len() == MAX_TOOL_CALLS => self.calls_too_large = true,
            None => {
                self.calls.push(PartialCall { index, id: id.to_owned(), name: name.to_owned(), arguments });
            }
        }
    }

    /// The call that a part continues. The index decides, unless the part brings another id than the call has:
    /// some servers give every call the index 0. Without an index a known id decides, and a part without either
    /// belongs to the last call.
    fn position_of(&self, index: Option<u64>, id: &str) -> Option<usize> {
        let same_id = |call: &PartialCall| id.is_empty() || call.id.is_empty() || call.id == id;
        match index {
            Some(_) => {
                self.calls.iter().rposition(|call| call.index == index).filter(|&at| same_id(&self.calls[at]))
            }
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        }
    }
}
