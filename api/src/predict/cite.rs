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
mod tests {
    use std::{cell::RefCell, ops::Range};

    use super::{CitedAnswer, Source, cite};

    const SKY: &str = "It is known that the sky is blue at noon. Grass is green.";
    const SEA: &str = "The sea is deep and wide.";

    fn first_sentence(_: &str, text: &str) -> Option<Range<usize>> {
        text.find('.').map(|end| 0..end + 1)
    }

    fn check(answer: &str) -> CitedAnswer {
        cite(answer, &[Source { n: 1, text: SKY }, Source { n: 2, text: SEA }], &first_sentence)
    }

    fn list(answer: &str) -> Vec<(usize, String, bool)> {
        check(answer).citations.into_iter().map(|cited| (cited.n, cited.quote, cited.verified)).collect()
    }

    #[test]
    fn a_quotation_that_the_source_holds_is_verified_with_its_place() {
        let cited = check("As they write, “the sky is blue at noon” [1].").citations.remove(0);
        assert!(cited.verified);
        assert_eq!(&SKY[cited.range.unwrap()], "the sky is blue at noon");
        for answer in [
            "\"the sky is blue at noon.\" [1]",
            "„the sky is blue at noon“ [1]",
            "«the sky is blue at noon»【1】",
            "“the sky is blue at noon”. [1]",
            "“the sky is blue at noon [1]”",
        ] {
            assert!(list(answer)[0].2, "{answer}");
        }
    }

    #[test]
    fn a_quotation_that_the_source_does_not_hold_stays_and_is_not_verified() {
        let cited = check("“the sky is red at noon” [1]").citations.remove(0);
        assert_eq!(
            (cited.quote.as_str(), cited.verified, cited.range),
            ("the sky is red at noon", false, None)
        );
    }

    #[test]
    fn without_a_quotation_the_best_sentence_is_given_unverified() {
        assert_eq!(list("The sea is deep [2]."), [(2, SEA.to_owned(), false)]);
        assert_eq!(list("The “sea” is deep [2]."), [(2, SEA.to_owned(), false)]);
    }

    #[test]
    fn the_claim_is_the_sentence_without_its_markers() {
        let claims = parking_lot::Mutex::new(Vec::new());
        let note = |claim: &str, _: &str| {
            claims.lock().push(claim.to_owned());
            None
        };
        cite(
            "First one. Dr. No says [1] it is so [2]. Third.[1]",
            &[Source { n: 1, text: SKY }, Source { n: 2, text: SEA }],
            &note,
        );
        assert_eq!(*claims.lock(), ["Dr. No says", "Dr. No says it is so", "Third."]);
    }

    #[test]
    fn a_quotation_belongs_to_its_own_sentence_and_marker() {
        assert_eq!(
            list("“the sky is blue at noon” [1] and the sea is deep [2]."),
            [(1, "the sky is blue at noon".to_owned(), true), (2, SEA.to_owned(), false)]
        );
        assert_eq!(
            list("They said “the sky is blue at noon”. The sea is deep [2]."),
            [(2, SEA.to_owned(), false)]
        );
        let both = list("“the sky is blue at noon” [1][2]");
        assert_eq!(both.iter().map(|cited| (cited.0, cited.2)).collect::<Vec<_>>(), [(1, true), (2, false)]);
    }

    #[test]
    fn citations_come_in_order_of_first_use_and_only_once() {
        let numbers: Vec<usize> =
            list("a [2]. b [1]. c [2]. d [1, 2]. e [1-2].").iter().map(|cited| cited.0).collect();
        assert_eq!(numbers, [2, 1]);
    }

    #[test]
    fn unknown_numbers_go_with_the_blank_before_them() {
        for (answer, cleaned) in [
            ("Blue [9].", "Blue."),
            ("Blue [1] [9] sky", "Blue [1] sky"),
            ("Blue [1, 9, 2].", "Blue [1, 2]."),
            ("Blue【9】, sea【2】", "Blue, sea【2】"),
            ("[7] Blue\n[8] sky", "Blue\nsky"),
            ("Blue [1-3].", "Blue [1, 2]."),
            ("Blue [0][3].", "Blue."),
            ("in [2024], [a], [1a], [], [-1], [1-", "in [2024], [a], [1a], [], [-1], [1-"),
        ] {
            assert_eq!(check(answer).text, cleaned);
        }
    }

    #[test]
    fn code_and_links_are_left_alone() {
        for answer in [
            "`a[9]` and ``b ` [9]``",
            "```rust\nx[9]\n```\n",
            "~~~\nx[9]\n```\n[9]",
            "see [9](https://example.org/a) and [9](https://example.org \"title\")",
            "[9]: https://example.org",
            "\\[9]",
        ] {
            let checked = check(answer);
            assert_eq!((checked.text.as_str(), checked.citations.len()), (answer, 0));
        }
        assert_eq!(check("`open [9] and\n\nclosed` [9]").text, "`open and\n\nclosed`");
        assert_eq!(
            check("```\n[9]\n```\n[9] after [1](see there)").text,
            "```\n[9]\n```\nafter [1](see there)"
        );
    }

    #[test]
    fn odd_input_never_panics() {
        let alphabet = [
            "[", "]", "1", "2", "9", "【", "】", "`", "```", "\n", " ", "“", "”", "\"", ".", "é", "中", "(",
            ")", "-", ",", "~~~", "word ", "\u{301}",
        ];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut answer = String::new();
            for _ in 0..30 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                answer.push_str(alphabet[usize::try_from(state >> 33).unwrap() % alphabet.len()]);
            }
            let once = check(&answer);
            assert!(once.citations.iter().all(|cited| (1..=2).contains(&cited.n)), "{answer:?}");
        }
    }

    /// The claims that are looked up in passages, for sources 1 to `count` that know no good sentence.
    fn looks(answer: &str, count: usize) -> (Vec<String>, CitedAnswer) {
        let sources: Vec<_> = (1..=count).map(|n| Source { n, text: SKY }).collect();
        let claims = RefCell::new(Vec::new());
        let cited = cite(answer, &sources, &|claim, _| {
            claims.borrow_mut().push(claim.to_owned());
            None
        });
        (claims.into_inner(), cited)
    }

    #[test]
    fn the_same_claim_is_looked_up_once_in_each_passage() {
        assert_eq!(looks("Blue [1]. Blue [1, 2][1]. Blue [2].", 2).0, ["Blue", "Blue"]);
        let flood = "[1-12]".repeat(100_000);
        let (claims, cited) = looks(&flood, 12);
        assert_eq!((claims.len(), cited.citations.len()), (12, 12));
        assert_eq!(cited.text, flood);
    }

    #[test]
    fn a_flood_of_different_claims_is_looked_up_two_hundred_times() {
        let mut flood: String =
            (0..50_000).fold(String::new(), |text, k| text + &format!("Fact {k} [1-12]. "));
        let (claims, cited) = looks(&format!("{flood}Blue [13, 2] [99]."), 12);
        assert_eq!(claims.len(), 200);
        assert_eq!(claims.last().unwrap(), "Fact 16");
        flood.push_str("Blue [2].");
        assert_eq!(cited.text, flood);
    }

    #[test]
    fn two_hundred_citations_of_an_answer_are_all_worked_out() {
        let answer =
            (0..200).fold(String::new(), |text, k| text + &format!("The value “number {k} of many” [1]. "));
        assert_eq!(list(&answer).len(), 200);
    }

    #[test]
    fn quotations_that_repeat_or_never_end_are_looked_up_once() {
        let (_, cited) = looks(&"“the sky is blue at noon” [1]. ".repeat(30_000), 1);
        assert_eq!(cited.citations.len(), 1);
        assert!(cited.citations[0].verified);
        let (claims, cited) =
            looks(&format!("Say “{}” {}", "many words ".repeat(45_000), "[1-50]".repeat(20_000)), 50);
        assert_eq!(claims.len(), 50);
        assert!(cited.citations.iter().all(|cited| cited.quote.is_empty() && !cited.verified));
    }

    #[test]
    fn of_an_endless_sentence_the_end_is_the_claim() {
        let (claims, _) = looks(&format!("{}[1, 2] the end [1].", "é[1, 2]".repeat(150_000)), 1);
        assert_eq!(claims.len(), 200);
        let (claims, _) = looks(&format!("{}x[9, 8] the end [1].", "é".repeat(500_000)), 1);
        assert!(claims[0].ends_with("éx the end"), "{}", claims[0]);
        assert!((1_900..=2_000).contains(&claims[0].len()));
        let (claims, _) = looks(&format!("{}[1, 2]{} [3].", "a".repeat(500_000), "b".repeat(1_997)), 3);
        assert_eq!(
            claims.last().unwrap(),
            &"b".repeat(1_997),
            "a marker that is cut is not part of the claim"
        );
    }

    #[test]
    fn ranges_without_their_unknown_numbers_do_not_swell_the_answer() {
        let flood = "[0-49]".repeat(50_000);
        let text = looks(&flood, 49).1.text;
        assert!(text.starts_with("[1, 2, 3, 4"));
        assert!(text.len() < flood.len() + 100_000);
    }

    #[test]
    fn hostile_answers_are_read_in_one_go() {
        const LENGTH: usize = 1 << 18;
        let full = |part: &str| part.repeat(LENGTH / part.len());
        let half = |part: &str| part.repeat(LENGTH / 2 / part.len());
        let mut answers: Vec<String> = [
            "[",
            "【",
            "]",
            "[1",
            "[1](",
            "[1](a",
            "x[1]",
            "x.[1]",
            "x[9]",
            "x. [1] ",
            "[1]:",
            "[1]\n",
            "“",
            "“x[1]",
            "\"",
            "“a b c”[1]",
            "`",
            "`\n",
            "``a` ",
            "```a`\n",
            "~~~\n",
            "\n",
            " ",
            ".",
            ".)",
            ". [",
            "[1-50]",
            "[1-50,51-99,100-149,150-199]",
            "[ ",
            "\\",
            "x",
            "中[1]。",
        ]
        .map(full)
        .to_vec();
        for (first, second) in
            [(" ", "[1]"), ("\t", "[9]"), ("x", "[1] x"), ("“x ", "[1]"), ("x[1]", "”"), ("x", "[1]y ")]
        {
            answers.push(half(first) + &half(second));
        }
        answers.push(format!("“{}”{}", half("some words "), half("[1]")));
        for answer in answers {
            let (claims, cited) = looks(&answer, 12);
            let shown: String = answer.chars().take(20).collect();
            assert!(claims.len() <= 200, "{shown}");
            assert!(cited.text.len() <= answer.len() + 100_000, "{shown}");
        }
    }

    #[test]
    fn a_best_sentence_out_of_bounds_is_ignored() {
        let cited = cite("Blue [1].", &[Source { n: 1, text: "é" }], &|_, _| Some(1..9)).citations.remove(0);
        assert_eq!((cited.quote.as_str(), cited.range), ("", None));
    }
}
