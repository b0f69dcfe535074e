//! Answers without a model: the sentences that match the question best, quoted and cited, or a plain refusal.

use std::{fmt::Write, ops::Range};

use lectern_index::lexical::{LexicalQuery, WordCoverage};
use lectern_shared::{compute::ComputePool, model::run::TerminationReason};

use super::{
    agent_run::{AgentRun, RunAnswer},
    follow_up::goes_on_from,
    setup::RunSetup,
    sources::{ExcerptPassage, NumberedSource},
};
use crate::{AgentError, answer::cite::AnswerCitation};

/// Passages that are quoted.
const QUOTED: usize = 3;
/// Rows of a table that are quoted, if all of them answer.
const ROWS: usize = 5;
/// The share of the question's words that a passage must hold to answer it.
const THRESHOLD: f32 = 0.34;
/// A passage that holds much less of the question than the best one adds nothing.
const OF_BEST: f32 = 0.6;

/// An answer that is made of quotations.
struct ExtractiveAnswer {
    /// The text.
    text: String,
    /// Why it ended.
    finish_reason: TerminationReason,
    /// What it quotes.
    citations: Vec<AnswerCitation>,
}

/// Answers from what was found for the question.
pub(super) async fn answer(run: &mut AgentRun<'_>) -> Result<RunAnswer, AgentError> {
    let setup = run.setup;
    let mut composed = compose(&run.compute, setup, run.sources.all().to_vec()).await?;
    // What the question before is about may have left no room for what this one is about.
    if composed.citations.is_empty() && goes_on_from(setup).is_some() {
        run.retrieve(&setup.question).await?;
        composed = compose(&run.compute, setup, run.sources.all().to_vec()).await?;
    }
    run.emitter.text(&composed.text).await;
    run.emitter.end_text().await;
    find_markers(run.emitter.answer(), &mut composed.citations);
    Ok(run.ended(composed.finish_reason, &composed.citations).await)
}

/// Composes an answer from the passages.
async fn compose(
    compute: &ComputePool,
    setup: &RunSetup,
    sources: Vec<NumberedSource>,
) -> Result<ExtractiveAnswer, AgentError> {
    let (question, before) = (setup.question.clone(), goes_on_from(setup).map(str::to_owned));
    let compose = move || {
        let asked = match before {
            Some(before) => LexicalQuery::going_on(&question, &before),
            None => LexicalQuery::new(&question),
        };
        quote_best(&asked, &sources)
    };
    Ok(compute.run(compose).await?)
}

fn quote_best(question: &LexicalQuery, sources: &[NumberedSource]) -> ExtractiveAnswer {
    let matches: Vec<_> = sources
        .iter()
        .map(|source| {
            let matched = question.matched(&source.found.text).of_document(source.document_name());
            let matched = matched.under(source.headings());
            (source, matched.coverage(), matched)
        })
        .filter(|(_, covered, _)| covered.own >= THRESHOLD)
        .collect();
    // What is told of module 92 answers nothing about module 93 where something tells of that.
    let is_of_another = |covered: &WordCoverage| {
        matches.iter().any(|(_, other, _)| other.numbers > covered.numbers && other.all >= covered.all)
    };
    let needed = matches.iter().map(|(_, covered, _)| covered.all).fold(0.0, f32::max) * OF_BEST;
    let (mut citations, mut quoted) = (Vec::new(), 0);
    let mut text = String::from("From the linked documents:");
    for (source, covered, matched) in &matches {
        if covered.all < needed || quoted == QUOTED || is_of_another(covered) {
            continue;
        }
        let before = citations.len();
        for range in matched.best_sentences().into_iter().take(ROWS) {
            quote(source, range, &mut text, &mut citations);
        }
        quoted += usize::from(citations.len() > before);
    }
    if citations.is_empty() {
        let text = "Nothing in the linked documents answers this question.".to_owned();
        return ExtractiveAnswer { text, finish_reason: TerminationReason::Declined, citations };
    }
    ExtractiveAnswer { text, finish_reason: TerminationReason::Extractive, citations }
}

/// Adds a quotation to an answer, unless it has it already: overlapping passages share sentences.
fn quote(
    source: &NumberedSource,
    range: Range<usize>,
    text: &mut String,
    citations: &mut Vec<AnswerCitation>,
) {
    let Some(said) = source.found.text.get(range.clone()) else { return };
    let quote = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if citations.iter().any(|earlier| earlier.quote == quote) {
        return;
    }
    // The same words may stand in other places of the passage, too.
    let of_part = |part| origin(part, source.page(part, Some(&range)));
    let origin = source.part(Some(&range)).map(of_part).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(text, "\n\n“{quote}{}{origin})", behind_quote(source.n));
    citations.push(AnswerCitation {
        n: source.n,
        verified: true,
        range: Some(range),
        quote,
        markers: Vec::new(),
    });
}

/// What stands between a quote and its origin.
fn behind_quote(n: usize) -> String {
    format!("” [{n}] (")
}

/// Finds the markers in the answer as it went out: quotes may have lost something on the way.
fn find_markers(answer: &str, citations: &mut [AnswerCitation]) {
    let mut from = 0;
    for citation in citations {
        let behind = behind_quote(citation.n);
        let Some(at) = answer.get(from..).and_then(|rest| rest.find(&behind)) else { continue };
        let marker = behind.find('[').zip(behind.find(']')).map(|(open, close)| (open, close + 1));
        citation.markers.extend(marker.map(|(start, end)| from + at + start..from + at + end));
        from += at + behind.len();
    }
}

/// The document's name and the place in it of words that begin on this page, for people.
fn origin(passage: &ExcerptPassage, page: Option<u32>) -> String {
    let place = passage.place.cited_on(page);
    let name = &passage.document_name;
    match (place.page, place.page_end) {
        (Some(first), Some(last)) if first < last => format!("{name}, pages {first}–{last}"),
        (Some(page), _) => format!("{name}, page {page}"),
        (None, _) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::{ids::DocumentId, model::place::SourceSpan};

    use super::*;
    use crate::run::sources::RetrievedExcerpt;

    #[test]
    fn a_quotation_stands_where_it_answers_and_not_where_the_same_words_are_first() {
        let text = "## Office\n\nIt opens at nine. Closed on Tuesday ... and on Friday.\n\n\
                    ## Workshop\n\nIt opens at eight. Closed on Tuesday ... and on Friday.\n";
        let found = RetrievedExcerpt::whole(DocumentId::generate(), "hours.md", SourceSpan::default(), text);
        let question = LexicalQuery::new("Is the workshop closed on Tuesday?");
        let answer = quote_best(&question, &[NumberedSource { n: 1, found }]);
        let [citation] = answer.citations.as_slice() else { panic!("{}", answer.text) };
        assert_eq!(citation.quote, "Closed on Tuesday ... and on Friday.");
        let start = text.rfind("Closed").unwrap();
        assert_eq!(citation.range, Some(start..start + citation.quote.len()));
        assert!(citation.verified);
    }
}
