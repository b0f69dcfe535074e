//! A chat completion, and what of it a stream's chunks have too.

use lectern_agents::run::RunOutcome;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::openai::{
    annotations::{CitationDetail, CitedMarker},
    asking::{RunReference, answer_id, is_cut},
};

/// The beginning of an id.
pub(super) const PREFIX: &str = "chatcmpl-";

/// What is known of an answer before there is one.
#[derive(Debug)]
pub(super) struct CompletionHead {
    /// When it was asked for, in seconds since 1970.
    pub(super) created: i64,
    /// The agent, as the client called it.
    pub(super) model: String,
}

/// An agent's answer.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiChatCompletion)]
pub(super) struct ChatCompletion {
    /// Its id.
    id: String,
    /// Always `chat.completion`.
    object: &'static str,
    /// When it was asked for, in seconds since 1970.
    created: i64,
    /// The agent, as the request calls it.
    model: String,
    /// The one answer.
    choices: Vec<CompletionChoice>,
    /// Tokens of the whole run, its searches and tools included.
    usage: CompletionUsage,
    /// Always null.
    #[schema(value_type = Option<String>, required = true)]
    system_fingerprint: (),
    /// How the answer came about.
    lectern: RunReference,
}

/// The answer among others, of which there are none.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiChoice)]
struct CompletionChoice {
    /// Always 0.
    index: u32,
    /// The answer.
    message: CompletionAnswer,
    /// Always null.
    #[schema(value_type = Option<String>, required = true)]
    logprobs: (),
    /// `stop`, `length` when a limit cut the answer, or `content_filter` when the agent's provider withheld the rest.
    finish_reason: &'static str,
}

/// The text of an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiAnswer)]
struct CompletionAnswer {
    /// Always `assistant`.
    role: &'static str,
    /// The text, with `[n]` where it cites.
    content: String,
    /// Always null.
    #[schema(value_type = Option<String>, required = true)]
    refusal: (),
    /// Where it cites, in the order of the text.
    annotations: Vec<ChatAnnotation>,
}

/// A place where an answer cites.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiChatAnnotation)]
pub(super) struct ChatAnnotation {
    /// Always `url_citation`.
    r#type: &'static str,
    /// The marker, and what it leads to.
    url_citation: UrlCitation,
    /// What else is known of the passage.
    lectern: CitationDetail,
}

/// A marker, and what it leads to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiUrlCitation)]
struct UrlCitation {
    /// The marker's first character, in Unicode code points.
    start_index: usize,
    /// The first one after it.
    end_index: usize,
    /// Opens the passage.
    url: String,
    /// The document's name.
    title: String,
}

/// Tokens that were used.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiUsage)]
pub(super) struct CompletionUsage {
    /// Tokens that the model read.
    prompt_tokens: u64,
    /// Tokens that the model wrote.
    completion_tokens: u64,
    /// Both.
    total_tokens: u64,
    /// Always none.
    prompt_tokens_details: PromptTokenDetail,
    /// Always none.
    completion_tokens_details: CompletionTokenDetail,
}

/// Of what was read.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = OpenAiPromptTokens)]
struct PromptTokenDetail {
    /// Always 0.
    cached_tokens: u64,
}

/// Of what was written.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = OpenAiCompletionTokens)]
struct CompletionTokenDetail {
    /// Always 0.
    reasoning_tokens: u64,
}

impl ChatCompletion {
    pub(super) fn new(
        head: CompletionHead,
        answer: String,
        markers: &[CitedMarker],
        outcome: RunOutcome,
    ) -> Self {
        let message = CompletionAnswer {
            role: "assistant",
            content: answer,
            refusal: (),
            annotations: markers.iter().map(ChatAnnotation::from).collect(),
        };
        Self {
            id: answer_id(PREFIX, outcome.trace),
            object: "chat.completion",
            created: head.created,
            model: head.model,
            choices: vec![CompletionChoice {
                index: 0,
                message,
                logprobs: (),
                finish_reason: finish_reason(outcome),
            }],
            usage: outcome.into(),
            system_fingerprint: (),
            lectern: RunReference { trace_id: outcome.trace },
        }
    }
}

/// Why the answer ended, in the words that clients know.
pub(super) const fn finish_reason(outcome: RunOutcome) -> &'static str {
    if outcome.is_withheld {
        "content_filter"
    } else if is_cut(outcome.finish_reason) {
        "length"
    } else {
        "stop"
    }
}

impl From<&CitedMarker> for ChatAnnotation {
    fn from(marker: &CitedMarker) -> Self {
        Self {
            r#type: "url_citation",
            url_citation: UrlCitation {
                start_index: marker.span.start,
                end_index: marker.span.end,
                url: marker.url.clone(),
                title: marker.title.clone(),
            },
            lectern: marker.detail.clone(),
        }
    }
}

impl From<RunOutcome> for CompletionUsage {
    fn from(outcome: RunOutcome) -> Self {
        Self {
            prompt_tokens: outcome.input_tokens,
            completion_tokens: outcome.output_tokens,
            total_tokens: outcome.input_tokens.saturating_add(outcome.output_tokens),
            prompt_tokens_details: PromptTokenDetail::default(),
            completion_tokens_details: CompletionTokenDetail::default(),
        }
    }
}

/// An answer, for the documentation.
pub(super) fn example() -> Value {
    let sentence = "Its captain, Solveig Aas, had sailed the route twice before.";
    let answer = format!("Solveig Aas: \u{201c}{sentence}\u{201d} [1]");
    let end = answer.chars().count();
    json!({
        "id": "chatcmpl-019a8f5277d07b1e8c3541a6d90f2e18",
        "object": "chat.completion",
        "created": 1_769_846_700,
        "model": "support",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant",
                "content": answer,
                "refusal": null,
                "annotations": [{
                    "type": "url_citation",
                    "url_citation": {
                        "start_index": end - 3,
                        "end_index": end,
                        "url": "https://lectern.example.com/cite/Aq3vX0d1",
                        "title": "report.pdf",
                    },
                    "lectern": {
                        "n": 1,
                        "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
                        "chunkId": "5f0b7a52-1c3e-5d84-9a6f-2b7c8d9e0f11",
                        "page": 2,
                        "place": {"page": 2, "pageEnd": 2, "charStart": 63, "charEnd": 136},
                        "quote": sentence,
                        "verified": true,
                    },
                }],
            },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": 412,
            "completion_tokens": 24,
            "total_tokens": 436,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "system_fingerprint": null,
        "lectern": {"traceId": "019a8f52-77d0-7b1e-8c35-41a6d90f2e18"},
    })
}
