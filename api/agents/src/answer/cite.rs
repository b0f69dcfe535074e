//! Citations: the `[n]` markers of an answer, checked against the passages that the model was given.
//!
//! What a marker claims to quote is looked up in the passage itself, so that a reader can tell what the source says from
//! what the model says it says. Markers that name no passage count for nothing. Code and links are left alone: `[1]` is
//! an index there, or a label.

mod markdown;
mod markers;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use self::markdown::code_spans;
use self::markers::{CitationMarker, NumberedPassages, markers};
pub(super) use self::{
    markdown::{closing_parenthesis, is_label, link_target},
    markers::{MAX_MARKER_CHARACTERS, marker_length, may_stand_in_marker, read_numbers, written_markers},
};
use super::quote::{QuotedSpan, is_unspaced, quoted_spans, verify_quote};

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
    /// The words that the model quoted before the marker, or else the passage's best sentence for the claim; empty only
    /// if the passage is.
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

/// The most of a sentence that is looked up in a passage: its end before a marker, its beginning behind one.
const MAX_CLAIM_BYTES: usize = 2_000;

/// The most citations that are worked out, and the most places in the answer at which they are: whatever a model
/// writes when it runs in circles, or on a document's behalf, costs no more than this. The markers after that
/// cite nothing.
const MAX_LOOKS: usize = 200;
const MAX_PLACES: usize = 1_000;

/// The most markers that are told of: each is told with all that is known of its passage.
const MAX_MARKED: usize = 1_000;

/// Checks the markers of an answer to `question` against the passages. Gives the citations by first use, unique by number and quote.
///
/// Takes time in proportion to the answer, and at most [`MAX_LOOKS`] looks into a passage: for answers of untrusted
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

/// A sentence of the model, without markers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Claim {
    /// What stands before the marker.
    before: String,
    /// The same with what follows the marker, where that says something.
    whole: Option<String>,
}

impl Claim {
    fn read(
        answer: &str,
        sentence: Range<usize>,
        following: Range<usize>,
        markers: &[CitationMarker],
    ) -> Self {
        let before = claim(answer, sentence, markers);
        let end = answer.floor_char_boundary(following.end.min(following.start + MAX_CLAIM_BYTES));
        let behind = without_markers(answer, following.start..end, markers);
        let says_something = behind.chars().any(char::is_alphanumeric);
        let whole = says_something.then(|| format!("{before} {behind}").trim_start().to_owned());
        Self { before, whole }
    }
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
                let mut looked_up = spellings.map(|spelling| (spelling, verify_quote(spelling, passage)));
                let (quote, range) = looked_up.find(|(_, range)| range.is_some()).unwrap_or((words, None));
                let verified = range.is_some();
                AnswerCitation { n, quote: quote.clone(), verified, range, markers: Vec::new() }
            }
            Self::Claim(claim) => {
                let range = sentences.of_claim(claim, source);
                let quote = range.clone().map_or_else(String::new, |range| passage[range].to_owned());
                AnswerCitation { n, quote, verified: false, range, markers: Vec::new() }
            }
        }
    }
}

/// Finds the sentence of a passage that is shown where an answer cites it and quotes nothing.
struct SentenceFinder<'a> {
    best: BestSentence<'a>,
    /// The beginning of what was asked.
    question: &'a str,
    /// What is shown of a passage, by its number, that shares no word with what cites it.
    unclaimed: HashMap<usize, Option<Range<usize>>>,
}

impl<'a> SentenceFinder<'a> {
    fn new(question: &'a str, best: BestSentence<'a>) -> Self {
        let question = question[..question.floor_char_boundary(MAX_CLAIM_BYTES)].trim();
        Self { best, question, unclaimed: HashMap::new() }
    }

    /// The sentence that fits what stands before the marker best, or else the whole sentence, or else the question; the first one of a
    /// passage that has a word of none of them, as one in another language than the answer.
    fn of_claim(&mut self, claim: &Claim, source: &CitableSource<'_>) -> Option<Range<usize>> {
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

/// What follows the markers of a place in the sentence that ends before them at `end`, or in their line when they begin it.
fn following(text: &str, end: usize, place: Range<usize>, ends: &[usize]) -> Range<usize> {
    let line = text[..place.start].rsplit('\n').next().unwrap_or_default();
    let from = if line.trim().is_empty() { place.end } else { end };
    let until = ends.get(ends.partition_point(|other| *other < from)).copied().unwrap_or(text.len());
    place.end..until.max(place.end)
}

/// What is quoted before the marker at `at`, in its sentence, and not before the marker before it, which quotes for itself;
/// the nearest first. A marker inside the quotation marks cites what stands before it.
fn quotes_before(spans: &[QuotedSpan], at: usize, sentence: usize, previous: usize) -> Vec<Range<usize>> {
    let before = &spans[..spans.partition_point(|span| span.outer.start < at)];
    let is_of_this = |span: &&QuotedSpan| span.outer.end > sentence.max(previous);
    let near = before.iter().rev().take_while(is_of_this);
    near.map(|span| span.inner.start..span.inner.end.min(at)).collect()
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

/// Words without the pairs of Markdown's marks of emphasis in them, `**so**` or `_so_`; none if there are none.
fn without_emphasis(words: &str) -> Option<String> {
    /// Marks that wait for the one that closes them.
    const MAX_OPEN: usize = 8;
    let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    let is_blank = |character: Option<char>| character.is_none_or(char::is_whitespace);
    let (mut open, mut marks): (Vec<Range<usize>>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(gap) = words[at..].find(['*', '_']) {
        let start = at + gap;
        let sign = words.as_bytes()[start];
        let end = start + words[start..].bytes().take_while(|byte| *byte == sign).count();
        at = end;
        let (before, after) = (words[..start].chars().next_back(), words[end..].chars().next());
        let opening = open.iter().rposition(|other| words[other.clone()] == words[start..end]);
        match opening.filter(|_| !is_blank(before) && !is_word(after)) {
            Some(opening) => {
                marks.push(open[opening].clone());
                marks.push(start..end);
                open.truncate(opening);
            }
            None if !is_word(before) && !is_blank(after) && open.len() < MAX_OPEN => open.push(start..end),
            None => {}
        }
    }
    if marks.is_empty() {
        return None;
    }
    marks.sort_unstable_by_key(|mark| mark.start);
    let (mut plain, mut from) = (String::with_capacity(words.len()), 0);
    for mark in marks {
        plain.push_str(&words[from..mark.start]);
        from = mark.end;
    }
    plain.push_str(&words[from..]);
    Some(plain)
}

fn is_long_enough(quote: &str) -> bool {
    let characters: usize = quote.chars().map(|character| if is_unspaced(character) { 2 } else { 1 }).sum();
    characters >= MIN_QUOTE_CHARACTERS || quote.split_whitespace().count() >= MIN_QUOTE_WORDS
}

#[cfg(test)]
mod tests;
