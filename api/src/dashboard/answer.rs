//! An answer on a page: its text with a link for each source, what was found out about those, and how it came about.

use askama::Template;
use lectern_agents::run::CitationView;
use lectern_shared::{
    ids::{ChunkId, DocumentId, WorkspaceId},
    model::place::SourceSpan,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    markdown,
    text::{counted, duration, place_words},
};
use crate::{
    error::ApiError,
    services::citations::{CitationLinks, PassageReference},
};

/// An answer with what belongs to it.
#[derive(Template)]
#[template(path = "parts/answer.html")]
pub(super) struct AnswerCard {
    /// The answer, of which nothing but the service's own marks is HTML.
    pub(super) html: String,
    pub(super) sources: Vec<SourceRow>,
    pub(super) steps: Vec<StepRow>,
    /// What it took, in words.
    pub(super) spent: String,
    /// Why it ended, where that is worth saying.
    pub(super) ending: &'static str,
    /// The answer and its sources, as text.
    pub(super) copied: String,
    /// Where feedback is sent, from the page.
    pub(super) feedback: String,
    /// Where it is told how the answer came about, for those who may see that.
    pub(super) trace: String,
}

/// A source of an answer.
pub(super) struct SourceRow {
    pub(super) n: usize,
    pub(super) name: String,
    pub(super) place: String,
    /// Where it is shown, from the page.
    pub(super) href: String,
    pub(super) quote: String,
    pub(super) verified: bool,
}

impl SourceRow {
    /// As it stands below a text.
    fn cited(&self) -> String {
        format!("[{}] {} {}", self.n, self.name, self.place)
    }
}

/// A step of the run.
pub(super) struct StepRow {
    pub(super) kind: &'static str,
    pub(super) action: String,
    pub(super) input: String,
    pub(super) result: String,
    pub(super) took: String,
    pub(super) started_ms: u64,
    pub(super) duration_ms: u64,
    pub(super) error: String,
    pub(super) found: Vec<FoundPassage>,
}

/// A passage that a search of the documents found.
pub(super) struct FoundPassage {
    pub(super) name: String,
    pub(super) place: String,
    pub(super) score: String,
    pub(super) text: String,
}

/// What is read of a trace: it is stored as the interface shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TraceBody {
    pub(super) id: String,
    pub(super) output: String,
    pub(super) finish_reason: String,
    pub(super) duration_ms: u64,
    pub(super) llm: TraceModel,
    pub(super) usage: TraceUsage,
    pub(super) steps: Vec<TraceStep>,
    pub(super) citations: Vec<TraceCitation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TraceModel {
    pub(super) model: String,
    pub(super) provider: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TraceUsage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cost: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TraceStep {
    kind: String,
    action: String,
    pub(super) input: Value,
    observation: Value,
    started_ms: u64,
    duration_ms: u64,
    error: Option<String>,
    documents: Vec<TracePassage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TracePassage {
    document_name: String,
    place: SourceSpan,
    score: Option<f32>,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceCitation {
    pub(super) n: usize,
    pub(super) document_id: DocumentId,
    pub(super) document_name: String,
    pub(super) chunk_id: ChunkId,
    pub(super) place: SourceSpan,
    pub(super) quote: String,
    pub(super) verified: bool,
}

impl TraceBody {
    /// A trace that another version has written in another way tells what can be read of it.
    pub(super) fn of(trace: &Value) -> Self {
        Self::deserialize(trace).unwrap_or_else(|error| {
            tracing::warn!(%error, "a trace cannot be read");
            let text = |name: &str| trace.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            Self { id: text("id"), output: text("output"), ..Self::default() }
        })
    }

    /// What was asked, as far as a step still says it.
    pub(super) fn question(&self) -> Option<String> {
        self.steps.iter().find_map(|step| step.input.as_str()).map(str::to_owned)
    }
}

/// What an answer is shown with besides itself.
pub(super) struct AnswerContext<'a> {
    pub(super) links: &'a CitationLinks,
    pub(super) workspace: WorkspaceId,
    /// The way from the page to the root.
    pub(super) root: &'a str,
    /// Where feedback is sent, from the root; the trace's id stands behind it.
    pub(super) feedback: &'a str,
    /// Whether the reader may see how answers came about.
    pub(super) sees_steps: bool,
}

impl AnswerCard {
    /// Of a run that has ended just now. Its citations say where in a passage their words stand.
    pub(super) fn of_run(
        trace: &Value,
        citations: &[CitationView],
        context: &AnswerContext<'_>,
    ) -> Result<Self, ApiError> {
        let body = TraceBody::of(trace);
        let mut sources = Vec::with_capacity(citations.len());
        for citation in citations {
            let passage = PassageReference {
                document: citation.document_id,
                chunk: citation.chunk_id,
                quote: citation.quote_range.clone(),
            };
            let path = context.links.path(context.workspace, &passage)?;
            sources.push(SourceRow {
                n: citation.n,
                name: citation.document_name.clone(),
                place: place_words(&citation.place),
                href: format!("{}{}", context.root, path.trim_start_matches('/')),
                quote: citation.quote.clone(),
                verified: citation.verified,
            });
        }
        Ok(Self::new(body, sources, context))
    }

    /// Of a trace that was kept.
    pub(super) async fn of_trace(trace: &Value, context: &AnswerContext<'_>) -> Result<Self, ApiError> {
        let mut body = TraceBody::of(trace);
        let mut sources = Vec::with_capacity(body.citations.len());
        for citation in std::mem::take(&mut body.citations) {
            let TraceCitation { n, document_id, document_name, chunk_id, place, quote, verified } = citation;
            let path = context.links.path_to_quote(context.workspace, document_id, chunk_id, &quote).await?;
            let href = format!("{}{}", context.root, path.trim_start_matches('/'));
            sources.push(SourceRow {
                n,
                name: document_name,
                place: place_words(&place),
                href,
                quote,
                verified,
            });
        }
        Ok(Self::new(body, sources, context))
    }

    fn new(body: TraceBody, sources: Vec<SourceRow>, context: &AnswerContext<'_>) -> Self {
        let cite = |n: usize| {
            let source = sources.iter().find(|source| source.n == n)?;
            let label = [source.name.as_str(), &source.place].join(" ");
            Some(format!(
                "<a class=\"cite\" data-cite href=\"{}\" aria-label=\"Source {n}: {}\">{n}</a>",
                markdown::escaped(&source.href),
                markdown::escaped(label.trim())
            ))
        };
        let html = markdown::to_html(&body.output, cite);
        let mut copied = body.output.clone();
        for (at, source) in sources.iter().enumerate() {
            copied.push_str(if at == 0 { "\n\n" } else { "\n" });
            copied.push_str(&source.cited());
        }
        let tokens = body.usage.input_tokens + body.usage.output_tokens;
        let model = if body.llm.provider == body.llm.model {
            body.llm.model.clone()
        } else {
            format!("{} ({})", body.llm.model, body.llm.provider)
        };
        let spent = [
            Some(duration(body.duration_ms)),
            Some(model).filter(|model| !model.is_empty()),
            (tokens > 0).then(|| counted(tokens, "token", "tokens")),
            body.usage.cost.map(|cost| format!("cost {cost:.4}")),
        ];
        let sees = context.sees_steps;
        Self {
            html,
            ending: ending(&body.finish_reason),
            spent: spent.into_iter().flatten().collect::<Vec<_>>().join(" · "),
            steps: if sees { body.steps.into_iter().map(StepRow::from).collect() } else { Vec::new() },
            copied,
            feedback: format!("{}{}/{}", context.root, context.feedback, body.id),
            trace: if sees { format!("{}traces/{}", context.root, body.id) } else { String::new() },
            sources,
        }
    }
}

/// Why an answer ended, where its reader should know.
fn ending(reason: &str) -> &'static str {
    match reason {
        "length" => "The answer was cut where the model may write no more.",
        "max_iterations" | "max_time" | "max_tokens" | "max_cost" => {
            "A limit of the agent was reached; this is what there was by then."
        }
        "extractive" => "Quoted from the documents, without a model.",
        "declined" => "Nothing in the documents answers this.",
        "error" => "There is no answer: the run failed.",
        _ => "",
    }
}

impl From<TraceStep> for StepRow {
    fn from(step: TraceStep) -> Self {
        let kind = match step.kind.as_str() {
            "retrieval" => "Search of the documents",
            "chat" => "Question to the model",
            "tool" => "Tool",
            _ => "Step",
        };
        let passage = |passage: TracePassage| FoundPassage {
            place: place_words(&passage.place),
            score: passage.score.map(|score| format!("{score:.3}")).unwrap_or_default(),
            name: passage.document_name,
            text: passage.text,
        };
        Self {
            kind,
            action: step.action,
            input: words(&step.input),
            result: words(&step.observation),
            took: duration(step.duration_ms),
            started_ms: step.started_ms,
            duration_ms: step.duration_ms,
            error: step.error.unwrap_or_default(),
            found: step.documents.into_iter().map(passage).collect(),
        }
    }
}

/// A value as people read it.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use lectern_agents::run::trace;

    use super::*;

    #[test]
    fn a_trace_is_read_as_the_interface_shows_it() {
        let body = TraceBody::of(&trace::example());
        assert_eq!(body.question().as_deref(), Some("Who was the captain?"));
        assert_eq!((body.steps.len(), body.citations.len()), (2, 1));
        assert_eq!(body.citations[0].place.page, Some(2));
        let strange = TraceBody::of(&serde_json::json!({"id": "x", "output": "y", "steps": 7}));
        assert_eq!((strange.id.as_str(), strange.output.as_str()), ("x", "y"));
    }
}
