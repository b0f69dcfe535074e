//! Citations: the `[n]` markers of an answer, checked against the passages that the model was given.
//!
//! What a marker claims to quote is looked up in the passage itself, so that a reader can tell what the source says from
//! what the model says it says. Markers that name no passage count for nothing. Code and links are left alone: `[1]` is
//! an index there, or a label.

mod claims;
mod markdown;
mod markers;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use self::claims::{Claim, SentenceFinder, following};
use self::markdown::{code_spans, without_emphasis};
pub use self::markers::AnswerMarker;
use self::markers::{CitationMarker, NumberedPassages, markers};
pub(super) use self::{
    markdown::{closing_parenthesis, is_label, link_target},
    markers::{MAX_MARKER_CHARACTERS, marker_length, may_stand_in_marker, read_numbers, written_markers},
};
use super::quote::{FoundQuote, QuotedSpan, find_quote, is_unspaced, quoted_spans};

/// A numbered passage that the model was given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CitableSource<'a> {
    /// The number by which the answer cites it; from 1, unique.
    pub(crate) n: usize,
    /// The passage as it is stored.
    pub(crate) text: &'a str,
    /// Where the part of it begins that was found best, in bytes.
    pub(crate) best: usize,
}

/// One citation of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerCitation {
    /// The passage's number.
    pub(crate) n: usize,
    /// The words that the model quoted before the marker, as the passage has them if it has them otherwise; or else the passage's best
    /// sentence for the claim. Empty only if the passage is.
    pub(crate) quote: String,
    /// The model quoted, and the passage says so.
    pub(crate) verified: bool,
    /// Where the quote, or the best sentence, stands in the passage, in bytes.
    pub(crate) range: Option<Range<usize>>,
    /// The markers of the answer that stand for it, in bytes of the answer, in order.
    pub(crate) markers: Vec<Range<usize>>,
}

/// Finds the sentence of a passage that supports a claim best: `(claim, passage)` to bytes of the passage.
pub(crate) type BestSentence<'a> = &'a dyn Fn(&str, &str) -> Option<Range<usize>>;

/// A quoted span counts from so many words, or so many characters (of scripts without blanks: half as many).
const MIN_QUOTE_WORDS: usize = 3;
const MIN_QUOTE_CHARACTERS: usize = 12;

/// The most quotations for which one marker stands.
const MAX_QUOTES: usize = 8;

/// A longer span in quotation marks is no quotation: the model forgot the closing mark, or copies a whole document.
const MAX_QUOTE_BYTES: usize = 10_000;

/// The most citations that are worked out, and the most places in the answer at which they are: whatever a model
/// writes when it runs in circles, or on a document's behalf, costs no more than this. The markers after that
/// cite nothing.
const MAX_LOOKS: usize = 200;
const MAX_PLACES: usize = 1_000;

/// The most markers that are told of: each is told with all that is known of its passage.
const MAX_MARKED: usize = 1_000;

/// Checks the markers of an answer to `question` against the passages. Gives the citations by first use, unique by number and quote.
///
/// Takes time in proportion to the answer, and at most a few looks for each of [`MAX_LOOKS`] wordings and passages: for answers of untrusted
/// length this is work for a blocking thread.
pub(crate) fn cite(
    question: &str,
    answer: &str,
    sources: &[CitableSource<'_>],
    best_sentence: BestSentence<'_>,
) -> Vec<AnswerCitation> {
    let code = code_spans(answer);
    let is_code = lies_in(&code);
    let passages = NumberedPassages::new(sources);
    let markers = markers(answer, &is_code);
    let spans = quoted_spans(answer, &is_code);
    let ends = sentence_ends(answer, &spans, &markers);
    let mut looks = CitationLookup::new(&passages, SentenceFinder::new(question, best_sentence));
    let mut places = 0;
    let mut previous_end = 0;
    // Markers with nothing but blanks between them stand in one place, and cite for the same words.
    let is_adjacent = |one: &CitationMarker, next: &CitationMarker| {
        answer[one.bytes.end..next.bytes.start].trim().is_empty()
    };
    for place in markers.chunk_by(is_adjacent) {
        let (Some(first), Some(last)) = (place.first(), place.last()) else { continue };
        let at = first.bytes.start;
        let previous = std::mem::replace(&mut previous_end, last.bytes.end);
        let numbers = passages.known(place.iter().flat_map(|marker| marker.numbers(answer)));
        if numbers.is_empty() {
            continue;
        }
        places += 1;
        if places > MAX_PLACES {
            break;
        }
        let sentence = sentence_before(answer, at, &ends);
        let mut wordings: Vec<CitedWording> = quotes_before(&spans, at, sentence.start, previous)
            .into_iter()
            .filter_map(|range| QuotedWords::read(answer, range, &markers))
            .take(MAX_QUOTES)
            .map(CitedWording::Quote)
            .collect();
        if wordings.is_empty() {
            let following = following(answer, sentence.end, at..last.bytes.end, &ends);
            wordings.push(CitedWording::Claim(Claim::read(answer, sentence, following, &markers)));
        }
        let written: Vec<_> = place.iter().map(|marker| (marker, marker.numbers(answer))).collect();
        if !looks.add(wordings, &numbers, &written) {
            break;
        }
    }
    looks.citations
}

/// Whether a byte lies in one of these spans, which are in order.
fn lies_in(spans: &[Range<usize>]) -> impl Fn(usize) -> bool {
    move |at| {
        let after = spans.partition_point(|span| span.start <= at);
        after > 0 && at < spans[after - 1].end
    }
}

/// What an answer says in quotation marks. A citation keeps either the answer's own words or a sentence of the passage, and this
/// tells which of the two words are that were not found.
#[derive(Debug)]
pub struct AnswerQuotations(HashSet<String>);

impl AnswerQuotations {
    /// Those of this answer.
    pub fn of(answer: &str) -> Self {
        let code = code_spans(answer);
        let is_code = lies_in(&code);
        let markers = markers(answer, &is_code);
        let mut quoted = HashSet::new();
        for span in quoted_spans(answer, &is_code) {
            // A marker inside the marks cites what stands before it.
            let first = markers.partition_point(|marker| marker.bytes.start < span.inner.start);
            let inside = markers[first..].iter().map(|marker| marker.bytes.start);
            let cuts = inside.take_while(|cut| *cut < span.inner.end).take(MAX_QUOTES);
            for end in cuts.chain([span.inner.end]) {
                quoted.extend(
                    QuotedWords::read(answer, span.inner.start..end, &markers).map(|quote| quote.words),
                );
            }
        }
        Self(quoted)
    }

    /// Whether these words are one of them, as a citation has them.
    pub fn holds(&self, words: &str) -> bool {
        self.0.contains(words)
    }
}

/// What a marker stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CitedWording {
    /// Words in quotation marks.
    Quote(QuotedWords),
    /// The model's own sentence.
    Claim(Claim),
}

/// Words in quotation marks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct QuotedWords {
    /// Without markers.
    words: String,
    /// As they stand there, when that is something else: what looks like a marker may be the source's own.
    written: Option<String>,
    /// Without Markdown's marks of emphasis, when there are some: they may be the model's own.
    plain: Option<String>,
}

impl QuotedWords {
    /// Reads what stands between quotation marks; none when it is no quotation by its length.
    fn read(answer: &str, range: Range<usize>, markers: &[CitationMarker]) -> Option<Self> {
        if range.len() > MAX_QUOTE_BYTES {
            return None;
        }
        let words = without_markers(answer, range.clone(), markers);
        let written = answer[range].trim();
        let written = (written != words).then(|| written.to_owned());
        let plain = without_emphasis(&words);
        is_long_enough(plain.as_ref().unwrap_or(&words)).then_some(Self { words, written, plain })
    }
}

impl CitedWording {
    fn look_up(&self, source: &CitableSource<'_>, sentences: &mut SentenceFinder<'_>) -> AnswerCitation {
        let (n, passage) = (source.n, source.text);
        match self {
            Self::Quote(QuotedWords { words, written, plain }) => {
                let spellings = written.iter().chain([words]).chain(plain);
                let found: Vec<(&String, FoundQuote)> = spellings
                    .filter_map(|spelling| find_quote(spelling, passage).map(|found| (spelling, found)))
                    .collect();
                let literal = found.iter().find(|(_, found)| found.is_literal);
                let (quote, range) = match literal.or(found.first()) {
                    Some((spelling, FoundQuote { range, is_literal })) => {
                        let own = || passage[range.clone()].to_owned();
                        let quote = if *is_literal { (*spelling).clone() } else { own() };
                        (quote, Some(range.clone()))
                    }
                    None => (words.clone(), None),
                };
                AnswerCitation { n, quote, verified: range.is_some(), range, markers: Vec::new() }
            }
            Self::Claim(claim) => {
                let range = sentences.of_claim(claim, source);
                let quote = range.clone().map_or_else(String::new, |range| passage[range].to_owned());
                AnswerCitation { n, quote, verified: false, range, markers: Vec::new() }
            }
        }
    }
}

/// What was looked up, and what it gave.
struct CitationLookup<'a> {
    passages: &'a NumberedPassages<'a>,
    sentences: SentenceFinder<'a>,
    /// Each wording has a number, which is cheaper to compare.
    wordings: HashMap<CitedWording, usize>,
    found: HashMap<(usize, usize), AnswerCitation>,
    /// The places of the citations, by their passage and quote.
    shown: HashMap<(usize, String), usize>,
    citations: Vec<AnswerCitation>,
    /// How often something is cited.
    marked: usize,
}

impl<'a> CitationLookup<'a> {
    fn new(passages: &'a NumberedPassages<'a>, sentences: SentenceFinder<'a>) -> Self {
        Self {
            passages,
            sentences,
            wordings: HashMap::new(),
            found: HashMap::new(),
            shown: HashMap::new(),
            citations: Vec::new(),
            marked: 0,
        }
    }

    /// Cites these passages for these wordings, of which each quotation belongs to the passages that hold it; one that none
    /// of them holds to all of them. `written` are the markers, each with its numbers. False when enough was looked up for one
    /// answer.
    fn add(
        &mut self,
        wordings: Vec<CitedWording>,
        numbers: &[usize],
        written: &[(&CitationMarker, Vec<usize>)],
    ) -> bool {
        let mut ids = Vec::with_capacity(wordings.len());
        let mut complete = true;
        'wordings: for wording in wordings {
            let next = self.wordings.len();
            let id = *self.wordings.entry(wording.clone()).or_insert(next);
            ids.push(id);
            for n in numbers {
                let Some(source) = self.passages.get(*n) else { continue };
                if self.found.contains_key(&(id, *n)) {
                    continue;
                }
                if self.found.len() == MAX_LOOKS {
                    complete = false;
                    break 'wordings;
                }
                self.found.insert((id, *n), wording.look_up(source, &mut self.sentences));
            }
        }
        let is_verified = |id: usize, n: usize| self.found.get(&(id, n)).is_some_and(|cited| cited.verified);
        let is_of_none: Vec<bool> =
            ids.iter().map(|id| !numbers.iter().any(|n| is_verified(*id, *n))).collect();
        for n in numbers {
            let holds_none = !ids.iter().any(|id| is_verified(*id, *n));
            for (position, (id, is_of_none)) in ids.iter().zip(&is_of_none).enumerate() {
                let Some(cited) = self.found.get(&(*id, *n)) else { continue };
                let is_last_resort = holds_none && position == 0;
                if !(cited.verified || *is_of_none || is_last_resort) {
                    continue;
                }
                let next = self.citations.len();
                let at = *self.shown.entry((cited.n, cited.quote.clone())).or_insert(next);
                if at == next {
                    self.citations.push(cited.clone());
                }
                // At the first marker of the place that has its number, once.
                let marker = written.iter().find(|(_, numbers)| numbers.contains(n));
                if let (Some(shown), Some((marker, _))) = (self.citations.get_mut(at), marker)
                    && self.marked < MAX_MARKED
                    && shown.markers.last() != Some(&marker.bytes)
                {
                    shown.markers.push(marker.bytes.clone());
                    self.marked += 1;
                }
            }
        }
        complete
    }
}

/// Where sentences end, in order: after the closing sign, or at the line break. Quotations are not cut.
fn sentence_ends(text: &str, spans: &[QuotedSpan], markers: &[CitationMarker]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut span = spans.iter().map(|span| &span.outer).peekable();
    for (at, character) in text.char_indices() {
        while span.next_if(|span| span.end <= at).is_some() {}
        if span.peek().is_some_and(|span| span.start <= at) {
            continue;
        }
        let end = at + character.len_utf8();
        let rest = &text[end..];
        let is_end = match character {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let next = rest.trim_start_matches([')', '"', '”', '’', '»', '*', '_']);
                let blank = next.is_empty()
                    || next.starts_with(char::is_whitespace)
                    || markers.binary_search_by_key(&end, |marker| marker.bytes.start).is_ok();
                let lower = next.trim_start().chars().next().is_some_and(char::is_lowercase);
                blank && !lower && !(character == '.' && is_abbreviation(&text[..at]))
            }
            _ => false,
        };
        if is_end {
            ends.push(end);
        }
    }
    ends
}

/// Whether a full stop after this text most likely ends an abbreviation or an initial.
fn is_abbreviation(before: &str) -> bool {
    const KNOWN: [&str; 18] = [
        "dr", "mr", "mrs", "ms", "prof", "st", "vs", "cf", "fig", "no", "e.g", "i.e", "al", "ca", "approx",
        "z.b", "nr", "bzw",
    ];
    const LONGEST: usize = 6;
    let word_end = || {
        before
            .chars()
            .rev()
            .take_while(|character| !character.is_whitespace() && *character != '(')
            .take(LONGEST + 1)
    };
    if word_end().count() > LONGEST {
        return false;
    }
    let word = &before[before.len() - word_end().map(char::len_utf8).sum::<usize>()..];
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    initial || KNOWN.contains(&word.to_lowercase().as_str())
}

/// The sentence to which a marker at `at` belongs. A marker after the full stop belongs to the sentence before it.
fn sentence_before(text: &str, at: usize, ends: &[usize]) -> Range<usize> {
    let end = text[..at].trim_end().len();
    let start = ends[..ends.partition_point(|other| *other < end)].last().copied().unwrap_or(0);
    start..end.max(start)
}

/// What is quoted before the marker at `at`, in its sentence, and not before the marker before it, which quotes for itself;
/// the nearest first. A marker inside the quotation marks cites what stands before it.
fn quotes_before(spans: &[QuotedSpan], at: usize, sentence: usize, previous: usize) -> Vec<Range<usize>> {
    let before = &spans[..spans.partition_point(|span| span.outer.start < at)];
    let is_of_this = |span: &&QuotedSpan| span.outer.end > sentence.max(previous);
    let near = before.iter().rev().take_while(is_of_this);
    near.map(|span| span.inner.start..span.inner.end.min(at)).collect()
}

fn without_markers(text: &str, range: Range<usize>, markers: &[CitationMarker]) -> String {
    let mut kept = String::new();
    let mut from = range.start;
    let first = markers.partition_point(|marker| marker.bytes.start < range.start);
    for marker in markers[first..].iter().take_while(|marker| marker.bytes.end <= range.end) {
        kept.push_str(text[from..marker.bytes.start].trim_end());
        from = marker.bytes.end;
    }
    kept.push_str(&text[from..range.end]);
    kept.trim().to_owned()
}

fn is_long_enough(quote: &str) -> bool {
    let characters: usize = quote.chars().map(|character| if is_unspaced(character) { 2 } else { 1 }).sum();
    characters >= MIN_QUOTE_CHARACTERS || quote.split_whitespace().count() >= MIN_QUOTE_WORDS
}

#[cfg(test)]
mod tests;
