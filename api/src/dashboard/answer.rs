//! An answer on a page: its text with a link for each source, what was found out about those, and how it came about.

mod trace;

use std::collections::{HashMap, HashSet};

use askama::Template;
use lectern_agents::{answer::AnswerQuotations, run::CitationView};
use lectern_shared::ids::WorkspaceId;
use serde_json::Value;

pub(super) use self::trace::TraceBody;
use self::trace::{TraceCitation, TracePassage, TraceStep};
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
    /// What it took, in words, for those who may see how it came about.
    pub(super) spent: String,
    /// Why it ended, where that is worth saying.
    pub(super) ending: &'static str,
    /// The answer and its sources, as text.
    pub(super) copied: String,
    /// Where feedback is sent, from the page.
    pub(super) feedback: String,
    /// What its reader has said of it in words.
    pub(super) said: String,
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
    /// The words that the answer quotes, or a sentence of the passage.
    pub(super) quote: String,
    pub(super) standing: QuoteStanding,
}

/// What the words of a citation are, and whether the passage has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteStanding {
    /// The answer's quotation, which the passage has.
    Verified,
    /// The answer's quotation, which the passage does not have: no words of the document.
    Misquoted,
    /// The passage's own sentence, or none: the answer quotes nothing.
    Paraphrased,
}

impl SourceRow {
    /// As it stands below a text.
    fn cited(&self) -> String {
        format!("[{}] {} {}", self.n, self.name, self.place).trim_end().to_owned()
    }
}

/// The sources below a text, each once.
fn listed(sources: &[SourceRow]) -> Vec<String> {
    let mut seen = HashSet::new();
    sources.iter().map(SourceRow::cited).filter(|line| seen.insert(line.clone())).collect()
}

/// Tells which source each marker of an answer opens. A number stands for a passage, of which an answer may cite several words.
struct MarkerReader<'a> {
    sources: &'a [SourceRow],
    /// Those that a marker has opened.
    opened: HashSet<usize>,
    /// By number: the end of what was said before its last marker.
    read: HashMap<usize, usize>,
}

impl<'a> MarkerReader<'a> {
    fn new(sources: &'a [SourceRow]) -> Self {
        Self { sources, opened: HashSet::new(), read: HashMap::new() }
    }

    /// The source of the next marker with this number, behind all that was `said`: the one whose words were said since the last
    /// marker with it, or else the first that none has opened yet.
    fn source(&mut self, n: usize, said: &str) -> Option<&'a SourceRow> {
        let from = self.read.insert(n, said.len()).unwrap_or(0);
        let since = said.get(from..).unwrap_or_default();
        let sources = self.sources;
        let own = || sources.iter().enumerate().filter(move |(_, source)| source.n == n);
        let is_said = |source: &SourceRow| !source.quote.is_empty() && since.contains(&source.quote);
        let of_words: Vec<usize> = own().filter(|(_, source)| is_said(source)).map(|(at, _)| at).collect();
        let at = of_words
            .first()
            .copied()
            .or_else(|| own().map(|(at, _)| at).find(|at| !self.opened.contains(at)))
            .or_else(|| own().map(|(at, _)| at).next_back())?;
        self.opened.extend(of_words.into_iter().chain([at]));
        sources.get(at)
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

/// What an answer is shown with besides itself.
pub(super) struct AnswerContext<'a> {
    pub(super) links: &'a CitationLinks,
    pub(super) workspace: WorkspaceId,
    /// The way from the page to the root.
    pub(super) root: &'a str,
    /// Where feedback is sent, from the root; the trace's id stands behind it.
    pub(super) feedback: &'a str,
    /// What stands behind `?` there; empty on a page without a frame.
    pub(super) stamp: &'a str,
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
        let quotations = AnswerQuotations::of(&body.output);
        for citation in citations {
            let standing = if citation.verified {
                QuoteStanding::Verified
            } else if citation.is_misquoted(&quotations) {
                QuoteStanding::Misquoted
            } else {
                QuoteStanding::Paraphrased
            };
            let passage = PassageReference {
                document: citation.document_id,
                chunk: citation.chunk_id,
                quote: citation.quote_range.clone(),
            };
            let path = context.links.path(context.workspace, &passage)?;
            sources.push(SourceRow {
                n: citation.n,
                name: citation.document_name.clone(),
                place: place_words(&citation.place.cited_on(citation.page)),
                href: format!("{}{}", context.root, path.trim_start_matches('/')),
                quote: citation.quote.clone(),
                standing,
            });
        }
        Ok(Self::new(body, sources, context))
    }

    /// Of a trace that was kept.
    pub(super) async fn of_trace(trace: &Value, context: &AnswerContext<'_>) -> Result<Self, ApiError> {
        let mut body = TraceBody::of(trace);
        let standings = body.standings();
        let mut sources = Vec::with_capacity(body.citations.len());
        for (citation, standing) in std::mem::take(&mut body.citations).into_iter().zip(standings) {
            let TraceCitation { n, document_id, document_name, chunk_id, place, page, quote, verified: _ } =
                citation;
            let path = context.links.path_to_quote(context.workspace, document_id, chunk_id, &quote).await?;
            let href = format!("{}{}", context.root, path.trim_start_matches('/'));
            sources.push(SourceRow {
                n,
                name: document_name,
                place: place_words(&place.cited_on(page)),
                href,
                quote,
                standing,
            });
        }
        Ok(Self::new(body, sources, context))
    }

    fn new(body: TraceBody, sources: Vec<SourceRow>, context: &AnswerContext<'_>) -> Self {
        let mut markers = MarkerReader::new(&sources);
        let cite = |n: usize, said: &str| {
            let source = markers.source(n, said)?;
            let label = [source.name.as_str(), &source.place].join(" ");
            Some(format!(
                "<a class=\"cite\" data-cite href=\"{}\" aria-label=\"Source {n}: {}\">{n}</a>",
                markdown::escaped(&source.href),
                markdown::escaped(label.trim())
            ))
        };
        let html = markdown::to_html(&body.output, cite);
        let mut copied = body.output.clone();
        for (at, line) in listed(&sources).iter().enumerate() {
            copied.push_str(if at == 0 { "\n\n" } else { "\n" });
            copied.push_str(line);
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
        let stamp = Some(context.stamp).filter(|stamp| !stamp.is_empty());
        let query = stamp.map(|stamp| format!("?{stamp}")).unwrap_or_default();
        let sees = context.sees_steps;
        let spent = spent.into_iter().flatten().filter(|_| sees).collect::<Vec<_>>();
        Self {
            html,
            ending: ending(&body.finish_reason),
            spent: spent.join(" · "),
            steps: if sees { body.steps.into_iter().map(StepRow::from).collect() } else { Vec::new() },
            copied,
            feedback: format!("{}{}/{}{query}", context.root, context.feedback, body.id),
            said: String::new(),
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
        "error" => "There is no answer: the run failed.",
        // Where nothing answers it, the answer says so itself.
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
    use super::*;

    fn source(n: usize, quote: &str, place: &str) -> SourceRow {
        SourceRow {
            n,
            name: "House rules".to_owned(),
            place: place.to_owned(),
            href: String::new(),
            quote: quote.to_owned(),
            standing: QuoteStanding::Verified,
        }
    }

    #[test]
    fn each_marker_opens_the_words_that_it_stands_behind() {
        let sources = [
            source(1, "the gate opens at six", ""),
            source(1, "the cellar is locked", ""),
            source(2, "nobody may smoke", ""),
            source(1, "A sentence of the passage.", ""),
        ];
        let said = [
            (1, "“the gate opens at six”"),
            (2, "“nobody may smoke”"),
            (1, "“the cellar is locked”"),
            (1, "in other words"),
            (1, "again “the gate opens at six”"),
            (1, "and so on"),
        ];
        let (mut markers, mut before, mut opened) = (MarkerReader::new(&sources), String::new(), Vec::new());
        for (n, words) in said {
            before.push_str(words);
            opened.push(markers.source(n, &before).map(|source| source.quote.as_str()));
        }
        let expected = [0, 2, 1, 3, 0, 3].map(|at: usize| Some(sources[at].quote.as_str()));
        assert_eq!(opened, expected);
        assert!(markers.source(3, &before).is_none());
    }

    #[test]
    fn a_source_is_copied_once_however_often_it_is_cited() {
        let sources = [source(1, "one", ""), source(1, "two", ""), source(2, "three", "page 2")];
        assert_eq!(listed(&sources), ["[1] House rules", "[2] House rules page 2"]);
    }
}
