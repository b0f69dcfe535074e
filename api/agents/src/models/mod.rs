//! Chat models, seen from an agent's run.
//!
//! [`ChatModel`] is the seam between a run and whatever answers it: one request, text deltas while they arrive, one
//! outcome. Requests and outcomes speak of messages, tools and tool calls, never of a provider's protocol, so that a
//! run is the same over every provider and over a scripted model in tests.

mod answer;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod provider;
mod rejection;
mod retry;
mod settings;
pub(crate) mod sse;
mod thoughts;
mod wire;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

pub use self::error::{ChatError, ChatErrorKind, EmptyAnswer, ModelConfigError};
pub(crate) use self::http::{ChatModelConfig, DEFAULT_SILENCE, HttpModel};
pub use self::provider::{ModelProvider, UnknownProvider};
pub(crate) use self::settings::RefusalMemory;

/// Takes each piece of text while it arrives.
#[async_trait]
pub(crate) trait DeltaSink: Send {
    /// Takes the next piece. Nothing more is read from the provider until this is done, so whoever is slow slows the
    /// model down and nothing piles up. How long it takes is not bounded here: a piece that was dropped half-way would be
    /// heard by some and not by others.
    async fn take(&mut self, delta: &str);
}

/// Something that answers a conversation.
#[async_trait]
pub(crate) trait ChatModel: Send + Sync {
    /// Asks the model and waits for its whole answer, at the latest until `deadline`.
    ///
    /// `deltas` gets each piece of text when it arrives, in order; together they are [`ChatOutcome::text`]. It gets nothing of
    /// a try that is repeated. Dropping the future ends the request.
    async fn chat(
        &self,
        request: &ChatRequest,
        deadline: Instant,
        deltas: &mut dyn DeltaSink,
    ) -> Result<ChatOutcome, ChatError>;
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ChatMessage {
    /// Instructions to the model.
    System(String),
    /// What the user said.
    User(String),
    /// What the model said, and the tools that it called in the same turn.
    Assistant {
        /// The text; may be empty beside tool calls.
        text: String,
        /// The calls, each answered by a [`ChatMessage::Tool`] after this message.
        tool_calls: Vec<ToolCall>,
    },
    /// What a tool answered.
    Tool {
        /// [`ToolCall::id`] of the call that this answers.
        call_id: String,
        /// [`ToolCall::name`] of that call.
        name: String,
        /// The observation for the model.
        content: String,
    },
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolSpec {
    /// The name by which the model calls it.
    pub(crate) name: String,
    /// When and how to use it, for the model.
    pub(crate) description: String,
    /// JSON Schema of the arguments object.
    pub(crate) parameters: Value,
}

/// A call that the model made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolCall {
    /// Ties the observation to the call; unique within an answer.
    pub(crate) id: String,
    /// The tool's name as the model wrote it; may name no tool at all.
    pub(crate) name: String,
    /// The arguments as the model wrote them: meant to be a JSON object, not checked.
    pub(crate) arguments: String,
    /// Opaque: what the provider wants to see again beside this call when it is sent back in a later request of the same
    /// conversation. Some models reject the conversation without it.
    pub(crate) signature: Option<String>,
}

impl ToolCall {
    /// The arguments as JSON. No text at all stands for an empty object, as several providers send for tools
    /// without parameters.
    pub(crate) fn parse_arguments(&self) -> Result<Value, serde_json::Error> {
        if self.arguments.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        serde_json::from_str(&self.arguments)
    }

    /// The arguments as the JSON object that every provider requires where a call is sent back. What is no object is
    /// put into one as text, so that the model sees again what it wrote.
    fn arguments_object(&self) -> Map<String, Value> {
        match self.parse_arguments() {
            Ok(Value::Object(arguments)) => arguments,
            _ => Map::from_iter([("arguments".to_owned(), Value::String(self.arguments.clone()))]),
        }
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChatRequest {
    /// The conversation, oldest first.
    pub(crate) messages: Vec<ChatMessage>,
    /// The sampling temperature; the provider's default without one.
    pub(crate) temperature: Option<f64>,
    /// The most tokens to generate; the provider's default without it.
    pub(crate) max_tokens: Option<u32>,
    /// The tools on offer; none are if empty.
    pub(crate) tools: Vec<ToolSpec>,
    /// The answer ends before any of these texts. Sent to the provider, and cut off again by the caller: not every provider
    /// keeps to it.
    pub(crate) stop: Vec<String>,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChatOutcome {
    /// The whole text; may be empty.
    pub(crate) text: String,
    /// The tools that the model wants called, in the order it named them.
    pub(crate) tool_calls: Vec<ToolCall>,
    /// Why the answer ended.
    pub(crate) finish_reason: FinishReason,
    /// Tokens spent by the successful try.
    pub(crate) usage: TokenUsage,
    /// Requests sent, 1 if the first one worked.
    pub(crate) attempts: u32,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FinishReason {
    /// The model was done.
    Stop,
    /// A limit of length was reached; the text is cut.
    Length,
    /// The model waits for tools.
    ToolCalls,
    /// The provider withheld the rest.
    ContentFilter,
    /// Anything else that the provider may say.
    Other,
}

impl FinishReason {
    /// The word for it, whatever word the provider has.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }
}

/// Tokens spent on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenUsage {
    /// Tokens read.
    pub(crate) input_tokens: u64,
    /// Tokens written.
    pub(crate) output_tokens: u64,
    /// Who counted.
    pub(crate) source: UsageSource,
}

/// Where token counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UsageSource {
    /// The provider reported them.
    Provider,
    /// The provider did not say: a quarter of the characters.
    Estimated,
}

impl TokenUsage {
    /// An estimate for an answer whose provider reported nothing: one token for four characters.
    pub(crate) fn estimate(request: &ChatRequest, text: &str, tool_calls: &[ToolCall]) -> Self {
        let calls = |calls: &[ToolCall]| -> u64 {
            calls.iter().map(|call| characters(&call.name) + characters(&call.arguments)).sum()
        };
        let messages: u64 = request
            .messages
            .iter()
            .map(|message| match message {
                ChatMessage::System(text) | ChatMessage::User(text) => characters(text),
                ChatMessage::Assistant { text, tool_calls } => characters(text) + calls(tool_calls),
                ChatMessage::Tool { content, .. } => characters(content),
            })
            .sum();
        let tools: u64 = request
            .tools
            .iter()
            .map(|tool| {
                characters(&tool.name)
                    + characters(&tool.description)
                    + characters(&tool.parameters.to_string())
            })
            .sum();
        Self {
            input_tokens: (messages + tools).div_ceil(4),
            output_tokens: (characters(text) + calls(tool_calls)).div_ceil(4),
            source: UsageSource::Estimated,
        }
    }
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}
