//! A response, with every field that OpenAI's SDKs expect one to have.

use std::collections::BTreeMap;

use lectern_agents::run::RunOutcome;
use lectern_shared::ids::DocumentId;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::openai::{
    annotations::{CitationDetail, CitedMarker},
    asking::RunReference,
    error::ErrorDetail,
    score::bounded_score,
};

/// An agent's answer, with what it searched for.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiResponse)]
pub(super) struct AgentResponse {
    /// Its id. Nothing is stored under it.
    pub(super) id: String,
    /// Always `response`.
    object: &'static str,
    /// When it was asked for, in seconds since 1970.
    created_at: i64,
    /// How far it is.
    pub(super) status: ResponseStatus,
    /// Always false.
    background: bool,
    /// Why it failed; only in streams.
    #[schema(required = true)]
    pub(super) error: Option<ResponseProblem>,
    /// Why it is cut, if it is.
    #[schema(required = true)]
    pub(super) incomplete_details: Option<IncompleteDetail>,
    /// The request's.
    #[schema(required = true)]
    pub(super) instructions: Option<String>,
    /// The request's.
    #[schema(required = true)]
    pub(super) max_output_tokens: Option<u32>,
    /// The agent, as the request calls it.
    pub(super) model: String,
    /// What was searched for, and the answer.
    pub(super) output: Vec<OutputItem>,
    /// Always true.
    parallel_tool_calls: bool,
    /// Always null.
    #[schema(value_type = Option<String>, required = true)]
    previous_response_id: (),
    /// Always false.
    store: bool,
    /// Always null: the agent has its own.
    #[schema(value_type = Option<f64>, required = true)]
    temperature: (),
    /// Always text.
    text: TextSetting,
    /// Always `auto`.
    tool_choice: &'static str,
    /// Always empty: the agent has its own.
    #[schema(value_type = Vec<Object>)]
    tools: Vec<Value>,
    /// Always null.
    #[schema(value_type = Option<f64>, required = true)]
    top_p: (),
    /// Always `disabled`.
    truncation: &'static str,
    /// Tokens of the whole run, once it has ended.
    #[schema(required = true)]
    pub(super) usage: Option<ResponseUsage>,
    /// The request's.
    #[schema(value_type = Object)]
    pub(super) metadata: Map<String, Value>,
    /// The request's.
    #[schema(required = true)]
    pub(super) user: Option<String>,
    /// How the answer came about.
    #[schema(required = true)]
    pub(super) lectern: Option<RunReference>,
}

/// How far a response, or something of it, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = OpenAiResponseStatus)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseStatus {
    /// It goes on.
    InProgress,
    /// All of it is there.
    Completed,
    /// A limit cut it, or the agent's provider withheld the rest.
    Incomplete,
    /// It failed.
    Failed,
}

/// Why a response failed.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiResponseProblem)]
pub(super) struct ResponseProblem {
    /// `server_error` or `rate_limit_exceeded`.
    code: &'static str,
    /// One sentence, for people.
    message: String,
}

/// Why a response is cut.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiIncompleteDetail)]
pub(super) struct IncompleteDetail {
    /// `max_output_tokens`: a limit of the request, the agent or the service; or `content_filter`: the agent's provider withheld the
    /// rest.
    reason: &'static str,
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiTextSetting)]
struct TextSetting {
    /// Its format.
    format: OutputFormat,
}

/// A format of answers.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiTextFormat)]
struct OutputFormat {
    /// Always `text`.
    r#type: &'static str,
}

/// A part of a response.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiOutputItem)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputItem {
    /// A search of the agent's documents.
    FileSearchCall(DocumentSearch),
    /// The answer.
    Message(OutputMessage),
}

/// A search of the agent's documents.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFileSearchCall)]
pub(super) struct DocumentSearch {
    /// Its id.
    pub(super) id: String,
    /// How far it is.
    pub(super) status: ResponseStatus,
    /// What was looked for.
    pub(super) queries: Vec<String>,
    /// What was found, if `include` asks for it and the search did not fail.
    #[schema(required = true)]
    pub(super) results: Option<Vec<FoundPassage>>,
}

/// A passage that was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFoundPassage)]
pub(super) struct FoundPassage {
    /// Its document.
    file_id: String,
    /// The document's name.
    filename: String,
    /// How well it matches; comparable within one search only. 0 for one that was added because it stands beside one that was found.
    score: f64,
    /// Its text.
    text: String,
    /// The strings, numbers and booleans in the document's metadata; none for those who may not read documents.
    #[schema(value_type = Object)]
    attributes: Map<String, Value>,
}

/// The answer of a response.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiOutputMessage)]
pub(super) struct OutputMessage {
    /// Its id.
    pub(super) id: String,
    /// How far it is.
    pub(super) status: ResponseStatus,
    /// Always `assistant`.
    pub(super) role: &'static str,
    /// One text, once all of it is there.
    pub(super) content: Vec<OutputText>,
}

/// The text of an answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiOutputText)]
pub(super) struct OutputText {
    /// Always `output_text`.
    r#type: &'static str,
    /// The text, with `[n]` where it cites.
    pub(super) text: String,
    /// Where it cites, in the order of the text.
    pub(super) annotations: Vec<OutputAnnotation>,
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    logprobs: Vec<Value>,
}

/// A place where an answer cites.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiAnnotation)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputAnnotation {
    /// A marker, and the passage that it leads to.
    UrlCitation {
        /// The marker's first character, in Unicode code points.
        start_index: usize,
        /// The first one after it.
        end_index: usize,
        /// Opens the passage.
        url: String,
        /// The document's name.
        title: String,
        /// What else is known of the passage.
        lectern: Box<CitationDetail>,
    },
    /// The document of the marker before.
    FileCitation {
        /// The document.
        file_id: String,
        /// Its name.
        filename: String,
        /// The marker's first character, in Unicode code points.
        index: usize,
    },
}

/// Tokens that were used.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiTokenUsage)]
pub(super) struct ResponseUsage {
    /// Tokens that the model read.
    input_tokens: u64,
    /// Always none.
    input_tokens_details: InputTokenDetail,
    /// Tokens that the model wrote.
    output_tokens: u64,
    /// Always none.
    output_tokens_details: OutputTokenDetail,
    /// Both.
    total_tokens: u64,
}

/// Of what was read.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[schema(as = OpenAiInputTokens)]
struct InputTokenDetail {
    /// Always 0.
    cached_tokens: u64,
    /// Always 0.
    cache_write_tokens: u64,
}

/// Of what was written.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[schema(as = OpenAiOutputTokens)]
struct OutputTokenDetail {
    /// Always 0.
    reasoning_tokens: u64,
}

impl AgentResponse {
    /// A response of which nothing is there yet.
    pub(super) fn begun(model: String, created_at: i64) -> Self {
        Self {
            id: String::new(),
            object: "response",
            created_at,
            status: ResponseStatus::InProgress,
            background: false,
            error: None,
            incomplete_details: None,
            instructions: None,
            max_output_tokens: None,
            model,
            output: Vec::new(),
            parallel_tool_calls: true,
            previous_response_id: (),
            store: false,
            temperature: (),
            text: TextSetting { format: OutputFormat { r#type: "text" } },
            tool_choice: "auto",
            tools: Vec::new(),
            top_p: (),
            truncation: "disabled",
            usage: None,
            metadata: Map::new(),
            user: None,
            lectern: None,
        }
    }
}

impl IncompleteDetail {
    /// A limit was reached.
    pub(super) const LIMIT: Self = Self { reason: "max_output_tokens" };
    /// The provider withheld the rest.
    pub(super) const WITHHELD: Self = Self { reason: "content_filter" };
}

impl From<&ErrorDetail> for ResponseProblem {
    fn from(error: &ErrorDetail) -> Self {
        let code =
            if error.code == Some("rate_limit_exceeded") { "rate_limit_exceeded" } else { "server_error" };
        Self { code, message: error.message().to_owned() }
    }
}

impl OutputItem {
    /// Says how far it is.
    pub(super) fn set_status(&mut self, to: ResponseStatus) {
        match self {
            Self::FileSearchCall(search) => search.status = to,
            Self::Message(message) => message.status = to,
        }
    }
}

impl OutputText {
    pub(super) fn new(text: String, markers: &[CitedMarker]) -> Self {
        let annotations = markers.iter().flat_map(OutputAnnotation::of).collect();
        Self { r#type: "output_text", text, annotations, logprobs: Vec::new() }
    }
}

impl OutputAnnotation {
    /// Both that stand for a marker: some clients read the one, some the other.
    fn of(marker: &CitedMarker) -> [Self; 2] {
        let by_url = Self::UrlCitation {
            start_index: marker.span.start,
            end_index: marker.span.end,
            url: marker.url.clone(),
            title: marker.title.clone(),
            lectern: Box::new(marker.detail.clone()),
        };
        let by_file = Self::FileCitation {
            file_id: marker.detail.document_id.to_string(),
            filename: marker.title.clone(),
            index: marker.span.start,
        };
        [by_url, by_file]
    }
}

impl FoundPassage {
    /// A passage as a run tells it, with what is known of its document's attributes.
    pub(super) fn new(passage: &Value, attributes: &BTreeMap<DocumentId, Map<String, Value>>) -> Self {
        let known = Self::file_of(passage).and_then(|file| attributes.get(&file));
        let text = |name| passage.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            file_id: text("documentId"),
            filename: text("documentName"),
            score: passage.get("score").and_then(Value::as_f64).map_or(0.0, bounded_score),
            text: text("text"),
            attributes: known.cloned().unwrap_or_default(),
        }
    }

    /// The document of a passage as a run tells it.
    pub(super) fn file_of(passage: &Value) -> Option<DocumentId> {
        passage.get("documentId").and_then(Value::as_str)?.parse().ok()
    }
}

impl From<RunOutcome> for ResponseUsage {
    fn from(outcome: RunOutcome) -> Self {
        Self {
            input_tokens: outcome.input_tokens,
            input_tokens_details: InputTokenDetail::default(),
            output_tokens: outcome.output_tokens,
            output_tokens_details: OutputTokenDetail::default(),
            total_tokens: outcome.input_tokens.saturating_add(outcome.output_tokens),
        }
    }
}

/// A response, for the documentation.
pub(super) fn example() -> Value {
    let sentence = "Its captain, Solveig Aas, had sailed the route twice before.";
    let answer = format!("Solveig Aas: \u{201c}{sentence}\u{201d} [1]");
    let end = answer.chars().count();
    let document = "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37";
    let mut response = json!(AgentResponse::begun("support".to_owned(), 1_769_846_700));
    response["id"] = json!("resp_019a8f5277d07b1e8c3541a6d90f2e18");
    response["status"] = json!(ResponseStatus::Completed);
    response["output"] = json!([
        {
            "type": "file_search_call",
            "id": "fs_019a8f5277d07b1e8c3541a6d90f2e18_0",
            "status": "completed",
            "queries": ["Who was the captain?"],
            "results": [{
                "file_id": document,
                "filename": "report.pdf",
                "score": 0.875,
                "text": format!("Chapter two. {sentence}"),
                "attributes": {"year": 2026},
            }],
        },
        {
            "type": "message",
            "id": "msg_019a8f5277d07b1e8c3541a6d90f2e18",
            "status": "completed",
            "role": "assistant",
            "content": [{
                "type": "output_text",
                "text": answer,
                "annotations": [
                    {
                        "type": "url_citation",
                        "start_index": end - 3,
                        "end_index": end,
                        "url": "https://lectern.example.com/cite/Aq3vX0d1",
                        "title": "report.pdf",
                        "lectern": {
                            "n": 1,
                            "documentId": document,
                            "chunkId": "5f0b7a52-1c3e-5d84-9a6f-2b7c8d9e0f11",
                            "page": 2,
                            "place": {"page": 2, "pageEnd": 2, "charStart": 63, "charEnd": 136},
                            "quote": sentence,
                            "verified": true,
                        },
                    },
                    {"type": "file_citation", "file_id": document, "filename": "report.pdf", "index": end - 3},
                ],
                "logprobs": [],
            }],
        },
    ]);
    response["usage"] = json!({
        "input_tokens": 412,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 24,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 436,
    });
    response["lectern"] = json!({"traceId": "019a8f52-77d0-7b1e-8c35-41a6d90f2e18"});
    response
}
