//! What a model says without quoting: which words stand for a citation, and which sentence of the passage is shown for them.

use std::{collections::HashMap, ops::Range};

use super::{BestSentence, CitableSource, markers::CitationMarker, sentence_ends, without_markers};

/// The most of a sentence that is looked up in a passage: its end before a marker, its beginning behind one.
const MAX_CLAIM_BYTES: usize = 2_000;

/// A sentence of the model, without markers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    /// What stands before the marker.
    before: String,
    /// The same with what follows the marker, where that says something.
    whole: Option<String>,
}

impl Claim {
    pub(super) fn read(
        answer: &str,
        sentence: Range<usize>,
        following: Following,
        markers: &[CitationMarker],
    ) -> Self {
        let Following { range: following, begins_line } = following;
        let before = claim(answer, sentence, markers);
        let end = answer.floor_char_boundary(following.end.min(following.start + MAX_CLAIM_BYTES));
        let behind = without_markers(answer, following.start..end, markers);
        let says_something = behind.chars().any(char::is_alphanumeric);
        if !says_something {
            return Self { before, whole: None };
        }
        // The line above is about something else.
        let before = if begins_line { String::new() } else { before };
        let whole = format!("{before} {behind}").trim_start().to_owned();
        Self { before, whole: Some(whole) }
    }
}

/// What follows the markers of a place.
pub(super) struct Following {
    range: Range<usize>,
    /// Whether they begin their line.
    begins_line: bool,
}

/// What follows the markers of a place in the sentence that ends before them at `end`, or in their line when they begin it.
pub(super) fn following(text: &str, end: usize, place: Range<usize>, ends: &[usize]) -> Following {
    let line = text[..place.start].rsplit('\n').next().unwrap_or_default();
    let begins_line = line.trim().is_empty();
    let from = if begins_line { place.end } else { end };
    let until = ends.get(ends.partition_point(|other| *other < from)).copied().unwrap_or(text.len());
    Following { range: place.end..until.max(place.end), begins_line }
}

/// A sentence as it is looked up: its end, if it is long, without markers.
fn claim(text: &str, sentence: Range<usize>, markers: &[CitationMarker]) -> String {
    let mut start = text.ceil_char_boundary(sentence.end.saturating_sub(MAX_CLAIM_BYTES)).max(sentence.start);
    let before = markers.partition_point(|marker| marker.bytes.start < start);
    if let Some(cut) = before.checked_sub(1).and_then(|before| markers.get(before)) {
        start = start.max(cut.bytes.end).min(sentence.end);
    }
    without_markers(text, start..sentence.end, markers)
}

/// Finds the sentence of a passage that is shown where an answer cites it and quotes nothing.
pub(super) struct SentenceFinder<'a> {
    best: BestSentence<'a>,
    /// The beginning of what was asked.
    question: &'a str,
    /// What is shown of a passage, by its number, that shares no word with what cites it.
    unclaimed: HashMap<usize, Option<Range<usize>>>,
}

impl<'a> SentenceFinder<'a> {
    pub(super) fn new(question: &'a str, best: BestSentence<'a>) -> Self {
        let question = question[..question.floor_char_boundary(MAX_CLAIM_BYTES)].trim();
        Self { best, question, unclaimed: HashMap::new() }
    }

    /// The sentence that fits what stands before the marker best, or else the whole sentence, or else the question; the first one of a
    /// passage that has a word of none of them, as one in another language than the answer.
    pub(super) fn of_claim(&mut self, claim: &Claim, source: &CitableSource<'_>) -> Option<Range<usize>> {
        let claimed = [Some(&claim.before), claim.whole.as_ref()];
        let found = claimed.into_iter().flatten().find_map(|words| self.of_words(words, source.text));
        found.or_else(|| {
            if let Some(known) = self.unclaimed.get(&source.n) {
                return known.clone();
            }
            let range = self
                .of_words(self.question, source.text)
                .or_else(|| first_sentence(source.text, source.best));
            self.unclaimed.insert(source.n, range.clone());
            range
        })
    }

    fn of_words(&self, words: &str, passage: &str) -> Option<Range<usize>> {
        let found = if words.is_empty() { None } else { (self.best)(words, passage) };
        found.filter(|range| passage.get(range.clone()).is_some())
    }
}

/// The first sentence of a passage from here on, or what there is; none of one that is blank.
fn first_sentence(passage: &str, from: usize) -> Option<Range<usize>> {
    let rest = passage.get(from..).filter(|rest| !rest.trim().is_empty()).unwrap_or(passage).trim_start();
    let from = passage.len() - rest.len();
    let rest = &rest[..rest.floor_char_boundary(MAX_CLAIM_BYTES)];
    let ends = sentence_ends(rest, &[], &[]);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let mut sentences = starts.zip(ends.iter().copied().chain([rest.len()])).map(|(start, end)| start..end);
    let has_words = |range: &Range<usize>| rest[range.clone()].chars().any(char::is_alphanumeric);
    let sentence = sentences.find(has_words).unwrap_or(0..rest.len());
    let text = &rest[sentence.clone()];
    let start = from + sentence.start + (text.len() - text.trim_start().len());
    let length = text.trim().len();
    (length > 0).then(|| start..start + length)
}
