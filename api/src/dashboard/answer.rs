//! An answer on a page: its text with a link for each source, what was found out about those, and how it came about.

mod heading;
mod trace;

use std::collections::{HashMap, HashSet};

use askama::Template;
use lectern_agents::{answer::AnswerQuotations, run::CitationView};
use lectern_db::traces::StoredTrace;
use lectern_index::lexical::language_tag;
use lectern_shared::ids::{DocumentId, WorkspaceId};
use serde_json::Value;

pub(super) use self::trace::TraceBody;
use self::{
    heading::{heading_above, heading_of},
    trace::{TraceCitation, TracePassage, TraceStep},
};
use super::{
    markdown,
    text::{counted, duration, filters, place_words, rating_words},
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
    /// Its language; empty where that is not certain.
    language: &'static str,
    pub(super) sources: Vec<SourceRow>,
    pub(super) steps: Vec<StepRow>,
    /// What it took, in words, for those who may see how it came about.
    pub(super) spent: String,
    /// Why it ended, where that is worth saying.
    pub(super) ending: &'static str,
    /// The run failed, and there is no answer.
    pub(super) has_failed: bool,
    /// Whether it is a model's answer that cites nothing.
    pub(super) names_no_source: bool,
    /// What is said aloud when it has come.
    pub(super) announced: &'static str,
    /// The answer and its sources, as text.
    pub(super) copied: String,
    /// Where feedback is sent, from the page.
    pub(super) feedback: String,
    /// What was said of it so far: whether it helped, and in which words. Who says something else says it in the place of both.
    pub(super) rated: &'static str,
    pub(super) said: String,
    /// Where it is told how the answer came about, for those who may see that.
    pub(super) trace: String,
}

/// A source of an answer.
pub(super) struct SourceRow {
    pub(super) n: usize,
    pub(super) name: String,
    /// The last of the headings that it stands under; empty without any.
    pub(super) heading: String,
    pub(super) place: String,
    /// Where it is shown, from the page; empty when its document was deleted.
    pub(super) href: String,
    /// Where it is told how its document was deleted, for those who may see that.
    pub(super) receipt: String,
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
    /// What tells it from others, in words.
    fn label(&self) -> String {
        let parts = [&self.name, &self.heading, &self.place].map(String::as_str);
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// As it stands below a text.
    fn cited(&self) -> String {
        format!("[{}] {}", self.n, self.label()).trim_end().to_owned()
    }

    /// Its mark in a text, which opens it. What was deleted cannot be opened.
    fn mark(&self) -> String {
        let n = self.n;
        if self.is_deleted() {
            return format!("<span class=\"cite\">{n}</span>");
        }
        format!(
            "<a class=\"cite\" data-cite href=\"{}\" aria-label=\"Source {n}: {}\">{n}</a>",
            markdown::escaped(&self.href),
            markdown::escaped(&self.label())
        )
    }

    /// Whether its document was deleted since.
    pub(super) fn is_deleted(&self) -> bool {
        self.href.is_empty()
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
        // The answer's sentence may have given the first letter another case.
        let is_said = |source: &SourceRow| {
            let mut words = source.quote.chars();
            words.next().is_some() && since.contains(words.as_str())
        };
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
    document: Option<DocumentId>,
    /// Its document was deleted since.
    pub(super) is_deleted: bool,
    pub(super) name: String,
    pub(super) heading: String,
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
    /// Whether the reader may see how documents were deleted.
    pub(super) sees_receipts: bool,
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
                heading: heading_above(&citation.quote, &citation.place, body.texts(citation.n)),
                place: place_words(&citation.place.cited_on(citation.page)),
                href: format!("{}{}", context.root, path.trim_start_matches('/')),
                receipt: String::new(),
                quote: citation.quote.clone(),
                standing,
            });
        }
        Ok(Self::new(body, sources, context))
    }

    /// Of a trace that was kept, some of whose documents may have been deleted since.
    pub(super) async fn of_trace(trace: &StoredTrace, context: &AnswerContext<'_>) -> Result<Self, ApiError> {
        let mut body = TraceBody::of(&trace.body.0);
        let names_no_source = trace.complete && body.names_no_source();
        let deleted = context.links.deleted(context.workspace, &body.documents()).await?;
        let standings = body.standings();
        let mut sources = Vec::with_capacity(body.citations.len());
        for (citation, standing) in std::mem::take(&mut body.citations).into_iter().zip(standings) {
            let TraceCitation { n, document_id, document_name, chunk_id, place, page, quote, verified: _ } =
                citation;
            let (mut href, mut receipt) = (String::new(), String::new());
            if !deleted.contains(&document_id) {
                let path =
                    context.links.path_to_quote(context.workspace, document_id, chunk_id, &quote).await?;
                href = format!("{}{}", context.root, path.trim_start_matches('/'));
            } else if context.sees_receipts {
                receipt = format!("{}documents/{document_id}/receipt", context.root);
            }
            sources.push(SourceRow {
                n,
                name: document_name,
                heading: heading_above(&quote, &place, body.texts(n)),
                place: place_words(&place.cited_on(page)),
                href,
                receipt,
                quote,
                standing,
            });
        }
        let mut card = Self {
            names_no_source,
            rated: rating_words(trace.rating),
            said: trace.feedback.clone().unwrap_or_default(),
            ..Self::new(body, sources, context)
        };
        for found in card.steps.iter_mut().flat_map(|step| &mut step.found) {
            found.is_deleted = found.document.is_some_and(|document| deleted.contains(&document));
        }
        Ok(card)
    }

    fn new(body: TraceBody, sources: Vec<SourceRow>, context: &AnswerContext<'_>) -> Self {
        let mut markers = MarkerReader::new(&sources);
        let cite = |n: usize, said: &str| markers.source(n, said).map(SourceRow::mark);
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
            language: language_tag(&body.output),
            ending: ending(&body.finish_reason),
            has_failed: body.failure().is_some(),
            names_no_source: body.names_no_source(),
            announced: announced(&body.finish_reason),
            spent: spent.join(" · "),
            steps: if sees { body.steps.into_iter().map(StepRow::from).collect() } else { Vec::new() },
            copied,
            feedback: format!("{}{}/{}{query}", context.root, context.feedback, body.id),
            rated: "",
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

/// What those are told of it who do not see the end of an answer.
fn announced(reason: &str) -> &'static str {
    match reason {
        "length" | "max_iterations" | "max_time" | "max_tokens" | "max_cost" | "error" => ending(reason),
        _ => "The answer is complete.",
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
            document: passage.document_id,
            is_deleted: false,
            heading: heading_of(&passage.place),
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
    use lectern_shared::model::place::SourceSpan;

    use super::*;

    fn source(n: usize, quote: &str, place: &str) -> SourceRow {
        SourceRow {
            n,
            name: "House rules".to_owned(),
            heading: String::new(),
            place: place.to_owned(),
            href: "cite/token".to_owned(),
            receipt: String::new(),
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
    fn sources_of_one_document_are_told_apart_by_their_headings() {
        let under =
            |n: usize, heading: &str| SourceRow { heading: heading.to_owned(), ..source(n, "", "page 2") };
        let sources = [under(1, "Bicycles"), under(2, "The cellar"), under(3, "")];
        let told = [
            "[1] House rules Bicycles page 2",
            "[2] House rules The cellar page 2",
            "[3] House rules page 2",
        ];
        assert_eq!(listed(&sources), told);
        assert!(sources[0].mark().contains("aria-label=\"Source 1: House rules Bicycles page 2\""));
        let place = |heading: Option<Vec<String>>| SourceSpan { heading, ..SourceSpan::default() };
        assert_eq!(heading_of(&place(Some(vec!["Rules".to_owned(), "Bicycles".to_owned()]))), "Bicycles");
        assert_eq!(heading_of(&place(None)), "");
    }

    #[test]
    fn the_mark_of_a_source_that_was_deleted_leads_nowhere() {
        let deleted = SourceRow { href: String::new(), ..source(1, "", "") };
        assert!(source(1, "", "").mark().contains("href=") && !deleted.mark().contains("href="));
    }

    #[test]
    fn a_source_is_copied_once_however_often_it_is_cited() {
        let sources = [source(1, "one", ""), source(1, "two", ""), source(2, "three", "page 2")];
        assert_eq!(listed(&sources), ["[1] House rules", "[2] House rules page 2"]);
    }
}
