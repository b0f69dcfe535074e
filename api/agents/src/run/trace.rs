//! What a run did, step by step, as its caller sees it and as it is kept.

use std::{collections::HashMap, ops::Range};

use lectern_shared::{
    ids::{ChunkId, DocumentId, TraceId},
    model::{
        place::SourceSpan,
        run::{StepKind, TerminationReason},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    agent_run::FinishedRun,
    setup::{RunSetup, RunUsage, StepTiming},
    sources::NumberedSource,
};
use crate::answer::{AnswerQuotations, cite::AnswerCitation};

/// How an answer came about.
#[derive(Serialize, ToSchema)]
#[schema(as = Trace)]
#[serde(rename_all = "camelCase")]
pub struct TraceView {
    /// Its id: `GET /traces/{id}` shows it again while it is kept.
    #[schema(value_type = String)]
    id: TraceId,
    /// The number of the version that the agent was which was asked. Traces of before this was noted do not have it.
    #[schema(value_type = i64, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_version: Option<i64>,
    /// The answer, with `[n]` where it cites.
    output: String,
    /// Why the answer ended: `stop` (the model was done), `length` (it was cut at the model's limit), `max_iterations`,
    /// `max_time`, `max_tokens`, `max_cost` (a limit of the run was reached; the answer is what there was), `unformatted` (a
    /// REACT model did not keep to its format, and what it wrote is the answer), `return_direct` (a tool's result is the
    /// answer), `extractive` (quoted from the documents without a model), `declined` (nothing in the documents answers), or
    /// `error` (there is no answer; only in stored traces).
    #[schema(value_type = String)]
    finish_reason: TerminationReason,
    /// How long the run took, in milliseconds.
    duration_ms: u64,
    /// What answered.
    llm: TraceLlm,
    /// Tokens of the whole run.
    usage: UsageView,
    /// What was done, in order.
    steps: Vec<StepView>,
    /// The sources of the answer, in the order of their first use.
    citations: Vec<CitationView>,
}

/// What answered.
#[derive(Serialize, ToSchema)]
struct TraceLlm {
    /// The name of the model.
    model: String,
    /// The label of its provider.
    provider: String,
}

/// Tokens that were used.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageView {
    /// Tokens that the model read.
    input_tokens: u64,
    /// Tokens that the model wrote.
    output_tokens: u64,
    /// What they cost; null when no price is known.
    #[schema(required = true)]
    cost: Option<f64>,
    /// Who counted: `provider`, `estimated` (by the length of the texts), or `none` when no model was asked.
    #[schema(value_type = String)]
    source: &'static str,
}

/// One step of a run.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TraceStep)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepView {
    /// `retrieval` (a search of the linked documents), `chat` (a question to the model) or `tool` (the call of a tool).
    #[schema(value_type = String)]
    pub(super) kind: StepKind,
    /// What was done: the search, the model or the tool by its name.
    pub(super) action: String,
    /// What it was given; null in a trace that was cut to be kept.
    #[schema(value_type = Value)]
    pub(super) input: Value,
    /// What the model said around the step; null when it said nothing.
    #[schema(required = true)]
    pub(super) log: Option<String>,
    /// What came of it; null for a retrieval, whose result is in `documents`.
    #[schema(value_type = Value)]
    pub(super) observation: Value,
    /// When it began, in milliseconds from the beginning of the run.
    pub(super) started_ms: u64,
    /// How long it took, in milliseconds.
    pub(super) duration_ms: u64,
    /// How often it was tried.
    pub(super) attempts: u32,
    /// The model's tokens; null for steps without a model.
    #[schema(value_type = Option<UsageView>, required = true)]
    pub(super) usage: Option<UsageView>,
    /// Why it failed; null when it did not.
    #[schema(required = true)]
    pub(super) error: Option<String>,
    /// The passages that a retrieval found, best first.
    #[schema(value_type = Vec<RetrievedPassage>)]
    pub(super) documents: Vec<Value>,
}

/// A passage that a retrieval found.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes what the retrieval notes in its step")]
struct RetrievedPassage {
    /// The number by which the answer cites it. Passages that stand side by side are read, and cited, as one.
    n: usize,
    /// Its document.
    document_id: String,
    /// The document's name.
    document_name: String,
    /// The passage.
    chunk_id: String,
    /// Where it stands in its document.
    place: PlaceView,
    /// How well it matches; comparable within one step only. Null for a passage that was added because it stands beside one that
    /// was found.
    score: Option<f32>,
    /// Its text; left out of a trace that was cut to be kept.
    #[schema(required = false)]
    text: String,
}

/// A source of the answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Citation)]
#[serde(rename_all = "camelCase")]
pub struct CitationView {
    /// The number in the answer's `[n]`.
    pub n: usize,
    /// The document.
    #[schema(value_type = String)]
    pub document_id: DocumentId,
    /// Its name.
    pub document_name: String,
    /// The passage of it.
    #[schema(value_type = String)]
    pub chunk_id: ChunkId,
    /// Where the passage stands in the document.
    #[schema(value_type = PlaceView)]
    pub place: SourceSpan,
    /// The page that the words begin on, of a document with pages. Null when that is not known, such as for a passage over several pages of
    /// which nothing is quoted. Traces of before this was noted do not have it.
    #[schema(required = false)]
    pub page: Option<u32>,
    /// Where the words can be opened: the document's address, at the page of a PDF (`#page=7`) or the moment of a video. Of several addresses
    /// it is the one that the passage is from. Null for documents that were uploaded or came as text.
    #[schema(required = true)]
    pub url: Option<String>,
    /// The words that are quoted. When the answer quotes none: the passage's sentence that supports it best.
    pub quote: String,
    /// The answer quotes these words, and they were found in the document's text.
    pub verified: bool,
    // What follows is for faces that say more of an answer. It is no part of a trace, which is compared with that of a replay.
    /// The markers in the answer that stand for it, in order.
    #[serde(skip)]
    pub markers: Vec<AnswerSpan>,
    /// Where the quoted words stand in the passage's text, in bytes; none when they were not found, or begin in another passage.
    #[serde(skip)]
    pub quote_range: Option<Range<usize>>,
}

/// A stretch of an answer, in Unicode code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerSpan {
    /// The first character.
    pub start: usize,
    /// The first one after it.
    pub end: usize,
}

impl AnswerSpan {
    /// Makes code points of the markers of citations, which are in bytes of this answer.
    pub(super) fn count_characters(answer: &str, citations: &mut [CitationView]) {
        let spans = citations.iter().flat_map(|citation| &citation.markers);
        let mut ends: Vec<usize> = spans.flat_map(|span| [span.start, span.end]).collect();
        ends.sort_unstable();
        ends.dedup();
        let (mut bytes, mut characters) = (0, 0);
        let mut counted = HashMap::with_capacity(ends.len());
        for end in ends {
            // A place that is not in the answer marks nothing.
            let Some(text) = answer.get(bytes..end) else { continue };
            (bytes, characters) = (end, characters + text.chars().count());
            counted.insert(end, characters);
        }
        let in_characters =
            |span: &Self| Some(Self { start: *counted.get(&span.start)?, end: *counted.get(&span.end)? });
        for citation in citations {
            citation.markers = citation.markers.iter().filter_map(in_characters).collect();
        }
    }
}

/// Where a passage stands in its source. Only what the kind of source has is present; the offsets always are.
#[derive(ToSchema)]
#[schema(as = Place, rename_all = "camelCase")]
#[allow(dead_code, reason = "describes `Place`, which writes itself")]
pub struct PlaceView {
    /// PDF: the first page that it touches, counted from 1.
    #[schema(required = false, minimum = 1)]
    page: u32,
    /// PDF: the last page that it touches.
    #[schema(required = false, minimum = 1)]
    page_end: u32,
    /// PDF: where each page begins that it touches besides the first, in Unicode code points of the extracted text. Not there for a passage on
    /// one page, and for what was read before version 0.2.
    #[schema(required = false)]
    page_starts: Vec<u64>,
    /// URL, of several addresses: the number of the one that it is from, counted from 1.
    #[schema(required = false, minimum = 1)]
    address: u32,
    /// CSV: the first data row, counted from 1 without the header.
    #[schema(required = false, minimum = 1)]
    row: u64,
    /// CSV: the last data row.
    #[schema(required = false, minimum = 1)]
    row_end: u64,
    /// VIDEO: where it begins, in seconds.
    #[schema(required = false)]
    start: f64,
    /// VIDEO: where it ends, in seconds.
    #[schema(required = false)]
    end: f64,
    /// Pages with structure, and PDFs with an outline: the headings above it, outermost first.
    #[schema(required = false)]
    heading: Vec<String>,
    /// Where it begins in the extracted text, in Unicode code points.
    char_start: u64,
    /// Where it ends in the extracted text, in Unicode code points; not included.
    char_end: u64,
}

impl StepView {
    /// A step that has been made, and of which nothing else is known yet.
    pub(super) fn new(kind: StepKind, action: &str, input: Value, span: StepTiming) -> Self {
        Self {
            kind,
            action: action.to_owned(),
            input,
            log: None,
            observation: Value::Null,
            started_ms: span.started_ms,
            duration_ms: span.duration_ms,
            attempts: 1,
            usage: None,
            error: None,
            documents: Vec::new(),
        }
    }
}

/// The trace of a run that has ended, with the answer or without.
pub(super) fn trace(setup: &RunSetup, done: &FinishedRun, duration_ms: u64) -> Value {
    let (output, finish_reason, citations) = match &done.outcome {
        Ok(ended) => (ended.answer.clone(), ended.finish_reason, ended.citations.clone()),
        Err(_) => (String::new(), TerminationReason::Error, Vec::new()),
    };
    json!(TraceView {
        id: setup.trace,
        agent_version: setup.agent_version,
        output,
        finish_reason,
        duration_ms,
        llm: TraceLlm { model: setup.model.clone(), provider: setup.provider.clone() },
        usage: UsageView::of(&done.spent),
        steps: done.steps.clone(),
        citations,
    })
}

impl CitationView {
    /// Whether its words are the answer's alone: in quotation marks there, and not in the passage.
    pub fn is_misquoted(&self, quotations: &AnswerQuotations) -> bool {
        !self.verified && self.quote_range.is_none() && quotations.holds(&self.quote)
    }

    pub(super) fn new(source: &NumberedSource, cited: &AnswerCitation) -> Option<Self> {
        let passage = source.part(cited.range.as_ref())?;
        let page = source.page(passage, cited.range.as_ref());
        Some(Self {
            n: source.n,
            document_id: passage.document_id,
            document_name: passage.document_name.clone(),
            chunk_id: passage.chunk_id,
            place: passage.place.clone(),
            page,
            url: passage.url_on(page),
            quote: cited.quote.clone(),
            verified: cited.verified,
            markers: cited
                .markers
                .iter()
                .map(|bytes| AnswerSpan { start: bytes.start, end: bytes.end })
                .collect(),
            quote_range: cited.range.as_ref().and_then(|range| passage.own_range(range)),
        })
    }
}

impl UsageView {
    pub(super) fn of(spent: &RunUsage) -> Self {
        let source = match (spent.steps, spent.estimated) {
            (0, _) => "none",
            (_, true) => "estimated",
            (_, false) => "provider",
        };
        Self {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cost: spent.known_cost(),
            source,
        }
    }
}

/// A trace, for the documentation.
pub fn example() -> Value {
    let place = json!({"page": 2, "pageEnd": 2, "charStart": 63, "charEnd": 136});
    let sentence = "Its captain, Solveig Aas, had sailed the route twice before.";
    json!({
        "id": "019a8f52-77d0-7b1e-8c35-41a6d90f2e18",
        "agentVersion": 3,
        "output": "Solveig Aas: \u{201c}Its captain, Solveig Aas, had sailed the route twice before.\u{201d} [1]",
        "finishReason": TerminationReason::Stop,
        "durationMs": 1240,
        "llm": {"model": "gpt-4.1-mini", "provider": "openai-chat"},
        "usage": {"inputTokens": 412, "outputTokens": 24, "cost": null, "source": "provider"},
        "steps": [
            {
                "kind": StepKind::Retrieval,
                "action": "search_documents",
                "input": "Who was the captain?",
                "log": null,
                "observation": null,
                "startedMs": 0,
                "durationMs": 12,
                "attempts": 1,
                "usage": null,
                "error": null,
                "documents": [{
                    "n": 1,
                    "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
                    "documentName": "report.pdf",
                    "chunkId": "5f0b7a52-1c3e-5d84-9a6f-2b7c8d9e0f11",
                    "place": place,
                    "score": 7.25,
                    "text": format!("Chapter two. {sentence}"),
                }],
            },
            {
                "kind": StepKind::Chat,
                "action": "gpt-4.1-mini",
                "input": "Who was the captain?",
                "log": null,
                "observation": format!("Solveig Aas: \u{201c}{sentence}\u{201d} [1]"),
                "startedMs": 13,
                "durationMs": 1226,
                "attempts": 1,
                "usage": {"inputTokens": 412, "outputTokens": 24, "cost": null, "source": "provider"},
                "error": null,
                "documents": [],
            },
        ],
        "citations": [{
            "n": 1,
            "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
            "documentName": "report.pdf",
            "chunkId": "5f0b7a52-1c3e-5d84-9a6f-2b7c8d9e0f11",
            "place": place,
            "page": 2,
            "url": "https://example.com/report.pdf#page=2",
            "quote": sentence,
            "verified": true,
        }],
    })
}

/// Longest name of a step in a trace that was cut, in bytes.
const LONGEST_ACTION: usize = 200;

/// A trace of at most `largest` bytes: first without the texts of the passages, then without what the model said and was
/// asked, which the answer itself still holds.
pub(super) fn shortened(mut trace: Value, largest: usize) -> Value {
    let steps = |trace: &mut Value, cut: fn(&mut serde_json::Map<String, Value>)| {
        for step in trace.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
            step.as_object_mut().map(cut);
        }
    };
    steps(&mut trace, |step| {
        for document in step.get_mut("documents").and_then(Value::as_array_mut).into_iter().flatten() {
            document.as_object_mut().and_then(|document| document.remove("text"));
        }
    });
    if trace.to_string().len() > largest {
        steps(&mut trace, |step| {
            for name in ["observation", "input", "log", "error"] {
                step.insert(name.to_owned(), Value::Null);
            }
            if let Some(Value::String(action)) = step.get_mut("action") {
                action.truncate(action.floor_char_boundary(LONGEST_ACTION));
            }
        });
        if let Some(Value::String(output)) = trace.get_mut("output") {
            output.truncate(output.floor_char_boundary(largest / 2));
        }
    }
    if trace.to_string().len() > largest
        && let Some(Value::Array(citations)) = trace.get_mut("citations")
    {
        citations.clear();
    }
    trace
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use utoipa::{
        PartialSchema,
        openapi::{RefOr, Schema},
    };

    use super::*;
    use crate::run::sources::{RetrievedExcerpt, SourceRegistry};

    fn properties<T: PartialSchema>() -> BTreeSet<String> {
        let RefOr::T(Schema::Object(schema)) = T::schema() else { panic!("no object") };
        schema.properties.keys().cloned().collect()
    }

    fn keys(value: &Value) -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    fn place() -> SourceSpan {
        SourceSpan {
            page: Some(1),
            page_end: Some(2),
            page_starts: Some(vec![2]),
            address: Some(1),
            row: Some(1),
            row_end: Some(2),
            start: Some(0.5),
            end: Some(1.5),
            heading: Some(vec!["Title".to_owned()]),
            char_start: 0,
            char_end: 4,
        }
    }

    #[test]
    fn markers_are_counted_in_code_points_of_the_answer() {
        let answer = "e\u{301}🌊 [1] and “ü” [2]";
        let source = RetrievedExcerpt::whole(DocumentId::generate(), "name", place(), "text");
        let mut sources = SourceRegistry::default();
        sources.add(vec![source]);
        let marker = |text: &str| answer.find(text).map(|start| start..start + text.len()).unwrap();
        let cited = AnswerCitation {
            n: 1,
            quote: String::new(),
            verified: false,
            range: Some(1..3),
            // What lies behind the end of the answer marks nothing.
            markers: vec![marker("[1]"), marker("[2]"), 90..93],
        };
        let mut citations = vec![CitationView::new(sources.get(1).unwrap(), &cited).unwrap()];
        AnswerSpan::count_characters(answer, &mut citations);
        let characters: Vec<char> = answer.chars().collect();
        let text = |span: &AnswerSpan| characters[span.start..span.end].iter().collect::<String>();
        assert_eq!(citations[0].markers.iter().map(text).collect::<Vec<_>>(), ["[1]", "[2]"]);
        assert_eq!(citations[0].quote_range, Some(1..3));
    }

    #[test]
    fn what_writes_itself_is_described_with_the_fields_that_it_has() {
        assert_eq!(keys(&json!(place())), properties::<PlaceView>());
        let mut sources = SourceRegistry::default();
        let document = DocumentId::generate();
        let numbers = sources.add(vec![RetrievedExcerpt::whole(document, "name", place(), "text")]);
        let described = sources.describe(&numbers);
        assert_eq!(keys(&described[0]), properties::<RetrievedPassage>());
    }

    #[test]
    fn the_example_has_the_fields_that_are_described() {
        let example = example();
        assert_eq!(keys(&example), properties::<TraceView>());
        let fields_at = |pointer: &str| keys(example.pointer(pointer).unwrap());
        assert_eq!(fields_at("/llm"), properties::<TraceLlm>());
        assert_eq!(fields_at("/usage"), properties::<UsageView>());
        assert_eq!(fields_at("/steps/0"), properties::<StepView>());
        assert_eq!(fields_at("/steps/0/documents/0"), properties::<RetrievedPassage>());
        assert_eq!(fields_at("/citations/0"), properties::<CitationView>());
    }
}
