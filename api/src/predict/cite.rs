//! Citations: the `[n]` markers of an answer, checked against the passages that the model was given.
//!
//! Markers that name no passage are taken out of the answer; of the others, what they claim to quote is looked up in
//! the passage itself, so that a reader can tell what the source says from what the model says it says. Code and
//! links are left alone: `[1]` is an index there, or a label.

mod markdown;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use self::markdown::{code_spans, is_label};
use super::quote::{QuotedSpan, is_unspaced, quoted_spans, verify_quote};

/// A numbered passage that the model was given.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The number by which the answer cites it; from 1, unique.
    pub n: usize,
    /// The passage as it is stored.
    pub text: &'a str,
}

/// One citation of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    /// The passage's number.
    pub n: usize,
    /// The words that the model quoted before the marker, or else the passage's best sentence for the claim; empty
    /// if the passage has none.
    pub quote: String,
    /// The model quoted, and the passage says so.
    pub verified: bool,
    /// Where the quote, or the best sentence, stands in the passage, in bytes.
    pub range: Option<Range<usize>>,
}

/// An answer whose every marker names a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitedAnswer {
    /// The answer without unknown numbers, otherwise as the model wrote it.
    pub text: String,
    /// The citations by first use, unique by number and quote.
    pub citations: Vec<Cited>,
}

/// Finds the sentence of a passage that supports a claim best: `(claim, passage)` to bytes of the passage.
pub type BestSentence<'a> = &'a dyn Fn(&str, &str) -> Option<Range<usize>>;

/// The most digits of a marker: `[2024]` is a year.
const MAX_DIGITS: usize = 3;
const MAX_NUMBER: usize = 999;

/// What stands between the numbers of a marker, and within a range of them.
const SEPARATORS: [char; 4] = [',', ';', '，', '、'];
const RANGE_SIGNS: [char; 2] = ['-', '–'];

/// The most numbers that a range like `[1-3]` stands for.
const MAX_RANGE: usize = 50;

/// A quoted span counts from so many words, or so many characters (of scripts without blanks: half as many).
const MIN_QUOTE_WORDS: usize = 3;
const MIN_QUOTE_CHARACTERS: usize = 12;

/// A longer span in quotation marks is no quotation: the model forgot the closing mark, or copies a whole document.
const MAX_QUOTE_BYTES: usize = 10_000;

/// The end of a sentence that is looked up in a passage.
const MAX_CLAIM_BYTES: usize = 2_000;

/// The most citations that are worked out, and the most places in the answer at which they are: whatever a model
/// writes when it runs in circles, or on a document's behalf, costs no more than this. The markers after that are
/// only checked for unknown numbers.
const MAX_LOOKS: usize = 200;
const MAX_PLACES: usize = 1_000;

/// The most bytes that an answer gains when ranges like `[0-9]` are written out without their unknown numbers.
const MAX_GROWTH: usize = 64 * 1024;

/// Checks the markers of an answer against the passages.
///
/// Takes time in proportion to the answer, and at most [`MAX_LOOKS`] looks into a passage: for answers of untrusted
/// length this is work for a blocking thread.
pub fn cite(answer: &str, sources: &[Source<'_>], best_sentence: BestSentence<'_>) -> CitedAnswer {
    let code = code_spans(answer);
    let is_code = |at: usize| {
        let after = code.partition_point(|span| span.start <= at);
        after > 0 && at < code[after - 1].end
    };
    let passages = Passages::new(sources);
    let markers = markers(answer, &is_code);
    let spans = quoted_spans(answer, &is_code);
    let ends = sentence_ends(answer, &spans, &markers);
    let mut citations: Vec<Cited> = Vec::new();
    let mut seen = HashSet::new();
    // What has been looked up already: each wording has a number, which is cheaper to compare.
    let mut wordings: HashMap<Wording, usize> = HashMap::new();
    let mut looked_up = HashSet::new();
    // Markers with nothing but blanks between them stand in one place, and cite for the same words.
    let mut place_start = 0;
    let mut previous_place_end = 0;
    let mut places = 0;
    let mut of_place: Option<(Wording, usize)> = None;
    'markers: for (position, marker) in markers.iter().enumerate() {
        let adjacent =
            position > 0 && answer[markers[position - 1].bytes.end..marker.bytes.start].trim().is_empty();
        if !adjacent {
            place_start = marker.bytes.start;
            previous_place_end = if position == 0 { 0 } else { markers[position - 1].bytes.end };
            of_place = None;
        }
        for n in marker.numbers(answer) {
            let Some(passage) = passages.get(n) else { continue };
            if of_place.is_none() {
                places += 1;
                if places > MAX_PLACES {
                    break 'markers;
                }
            }
            let (wording, id) = of_place.get_or_insert_with(|| {
                let sentence = sentence_before(answer, place_start, &ends);
                let wording = quote_before(&spans, place_start, sentence.start, previous_place_end)
                    .filter(|range| range.len() <= MAX_QUOTE_BYTES)
                    .map(|range| without_markers(answer, range, &markers))
                    .filter(|quote| is_long_enough(quote))
                    .map_or_else(|| Wording::Claim(claim(answer, sentence, &markers)), Wording::Quote);
                let next = wordings.len();
                let id = *wordings.entry(wording.clone()).or_insert(next);
                (wording, id)
            });
            if !looked_up.insert((*id, n)) {
                continue;
            }
            if looked_up.len() > MAX_LOOKS {
                break 'markers;
            }
            let cited = wording.look_up(n, passage, best_sentence);
            if seen.insert((cited.n, cited.quote.clone())) {
                citations.push(cited);
            }
        }
    }
    CitedAnswer { text: without_unknown(answer, &markers, &passages), citations }
}

/// What a marker stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wording {
    /// Words in quotation marks.
    Quote(String),
    /// The model's own sentence, or the end of a long one.
    Claim(String),
}

impl Wording {
    fn look_up(&self, n: usize, passage: &str, best_sentence: BestSentence<'_>) -> Cited {
        match self {
            Self::Quote(quote) => {
                let range = verify_quote(quote, passage);
                Cited { n, quote: quote.clone(), verified: range.is_some(), range }
            }
            Self::Claim(claim) => {
                let range =
                    best_sentence(claim, passage).filter(|range| passage.get(range.clone()).is_some());
                let quote = range.clone().map_or_else(String::new, |range| passage[range].to_owned());
                Cited { n, quote, verified: false, range }
            }
        }
    }
}

/// The texts of the sources by the numbers that a marker can hold.
struct Passages<'a>(Vec<Option<&'a str>>);

impl<'a> Passages<'a> {
    fn new(sources: &[Source<'a>]) -> Self {
        let mut texts = vec![None; MAX_NUMBER + 1];
        for source in sources {
            if let Some(text) = texts.get_mut(source.n) {
                text.get_or_insert(source.text);
            }
        }
        Self(texts)
    }

    fn get(&self, n: usize) -> Option<&'a str> {
        self.0.get(n).copied().flatten()
    }
}

/// `[1]`, `[1, 2]`, `[1-3]` or the same in full-width brackets.
#[derive(Debug)]
struct Marker {
    bytes: Range<usize>,
}

impl Marker {
    /// Read anew each time: a few bytes can stand for a thousand numbers.
    fn numbers(&self, answer: &str) -> Vec<usize> {
        numbers(answer[self.bytes.clone()].trim_matches(['[', ']', '【', '】'])).unwrap_or_default()
    }
}

fn markers(answer: &str, is_code: &dyn Fn(usize) -> bool) -> Vec<Marker> {
    let mut markers = Vec::new();
    for (at, open) in answer.match_indices(['[', '【']) {
        let close = if open == "[" { ']' } else { '】' };
        let rest = &answer[at + open.len()..];
        // Nothing longer than this can be a marker, whatever follows.
        let Some((length, _)) = rest
            .char_indices()
            .take(200)
            .find(|(_, end)| !may_stand_in_marker(*end))
            .filter(|(_, end)| *end == close)
        else {
            continue;
        };
        let end = at + open.len() + length + close.len_utf8();
        if numbers(&rest[..length]).is_none() || is_code(at) || answer[..at].ends_with('\\') {
            continue;
        }
        if open == "[" && is_label(answer, at, end) {
            continue;
        }
        markers.push(Marker { bytes: at..end });
    }
    markers
}

/// What [`numbers`] can read.
fn may_stand_in_marker(character: char) -> bool {
    character.is_ascii_digit()
        || character.is_whitespace()
        || SEPARATORS.contains(&character)
        || RANGE_SIGNS.contains(&character)
}

/// The numbers between the brackets, each once; `None` if there is anything else.
fn numbers(inner: &str) -> Option<Vec<usize>> {
    let number = |text: &str| -> Option<usize> {
        let text = text.trim();
        let digits =
            !text.is_empty() && text.len() <= MAX_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let mut numbers = Vec::new();
    let mut has = [false; MAX_NUMBER + 1];
    for item in inner.split(SEPARATORS) {
        let (first, last) = match item.split_once(RANGE_SIGNS) {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(item)?, number(item)?),
        };
        if last < first || last - first >= MAX_RANGE {
            return None;
        }
        for (n, has) in has.iter_mut().enumerate().take(last + 1).skip(first) {
            if !std::mem::replace(has, true) {
                numbers.push(n);
            }
        }
    }
    Some(numbers)
}

/// The answer without numbers that name no source, and without the blank before a marker that goes altogether.
fn without_unknown(answer: &str, markers: &[Marker], passages: &Passages<'_>) -> String {
    let mut text = String::with_capacity(answer.len());
    let mut copied = 0;
    for marker in markers {
        let mut known = marker.numbers(answer);
        let all = known.len();
        known.retain(|n| passages.get(*n).is_some());
        if known.len() == all {
            continue;
        }
        text.push_str(&answer[copied..marker.bytes.start]);
        copied = marker.bytes.end;
        if known.is_empty() {
            text.truncate(text.trim_end_matches([' ', '\t', '\u{A0}', '\u{202F}']).len());
            if text.is_empty() || text.ends_with('\n') {
                let rest = &answer[copied..];
                copied += rest.len() - rest.trim_start_matches([' ', '\t']).len();
            }
        } else {
            let (open, close) =
                if answer[marker.bytes.start..].starts_with('[') { ('[', ']') } else { ('【', '】') };
            text.push(open);
            for (position, n) in known.iter().enumerate() {
                if position > 0 && text.len() > copied + MAX_GROWTH {
                    break;
                }
                let _ = write!(text, "{}{n}", if position == 0 { "" } else { ", " });
            }
            text.push(close);
        }
    }
    text.push_str(&answer[copied..]);
    text
}

/// Where sentences end, in order: after the closing sign, or at the line break. Quotations are not cut.
fn sentence_ends(text: &str, spans: &[QuotedSpan], markers: &[Marker]) -> Vec<usize> {
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

/// The words last quoted before the marker at `at`, in its sentence, and after the marker before it, which quotes
/// for itself. A marker inside the quotation marks cites what stands before it.
fn quote_before(spans: &[QuotedSpan], at: usize, sentence: usize, previous: usize) -> Option<Range<usize>> {
    let after = spans.partition_point(|span| span.outer.start < at);
    let span = spans.get(after.checked_sub(1)?)?;
    let of_this = span.outer.end > sentence && span.outer.start >= previous;
    of_this.then(|| span.inner.start..span.inner.end.min(at))
}

/// A sentence as it is looked up: its end, if it is long, without markers.
fn claim(text: &str, sentence: Range<usize>, markers: &[Marker]) -> String {
    let mut start = text.ceil_char_boundary(sentence.end.saturating_sub(MAX_CLAIM_BYTES)).max(sentence.start);
    let before = markers.partition_point(|marker| marker.bytes.start < start);
    if let Some(cut) = before.checked_sub(1).and_then(|before| markers.get(before)) {
        start = start.max(cut.bytes.end).min(sentence.end);
    }
    without_markers(text, start..sentence.end, markers)
}

fn without_markers(text: &str, range: Range<usize>, markers: &[Marker]) -> String {
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
