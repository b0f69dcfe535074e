//! The markers of an answer: `[1]`, `[1, 2]`, `[1-3]` or the same in full-width brackets.

use std::ops::Range;

use super::{
    CitableSource, MAX_MARKED, lies_in,
    markdown::{code_spans, is_label},
};

/// The most digits of a marker: `[2024]` is a year.
const MAX_DIGITS: usize = 3;
const MAX_NUMBER: usize = 999;

/// What stands between the numbers of a marker, and within a range of them.
const SEPARATORS: [char; 4] = [',', ';', '，', '、'];
const RANGE_SIGNS: [char; 2] = ['-', '–'];

/// The most numbers that a range like `[1-3]` stands for.
const MAX_RANGE: usize = 50;

/// So much of an answer is looked through by whoever shows it, in bytes: more than anybody reads, and a few hundredths of a second of a
/// thread that has others to serve, since where a link ends that may be one is looked for behind each bracket.
const MAX_SHOWN: usize = 128 << 10;

/// Nothing longer than this can be a marker, whatever follows.
pub(in crate::answer) const MAX_MARKER_CHARACTERS: usize = 200;

/// The sources by the numbers that a marker can hold.
pub(super) struct NumberedPassages<'a>(Vec<Option<CitableSource<'a>>>);

impl<'a> NumberedPassages<'a> {
    pub(super) fn new(sources: &[CitableSource<'a>]) -> Self {
        let mut passages = vec![None; MAX_NUMBER + 1];
        for source in sources {
            if let Some(passage) = passages.get_mut(source.n) {
                passage.get_or_insert(*source);
            }
        }
        Self(passages)
    }

    pub(super) fn get(&self, n: usize) -> Option<&CitableSource<'a>> {
        self.0.get(n)?.as_ref()
    }

    /// The numbers of passages, each once.
    pub(super) fn known(&self, numbers: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut is_new = vec![true; MAX_NUMBER + 1];
        let mut known = Vec::new();
        for n in numbers.filter(|n| self.get(*n).is_some()) {
            if is_new.get_mut(n).is_some_and(std::mem::take) {
                known.push(n);
            }
        }
        known
    }
}

/// A marker of an answer, for those who show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerMarker {
    /// Where it stands in the answer, in bytes.
    pub bytes: Range<usize>,
    /// The numbers that it has, or stands for, each once and in order. Not each of them need be a source's.
    pub numbers: Vec<usize>,
}

impl AnswerMarker {
    /// The most numbers of all markers that are told: those that come after them are text to whoever shows the answer.
    pub const MOST_NUMBERS: usize = MAX_MARKED;

    /// Those of an answer, in order, as its citations were made from them. Of an answer that is longer than any that is read, those of its
    /// beginning.
    pub fn all(answer: &str) -> Vec<Self> {
        let answer = &answer[..answer.floor_char_boundary(MAX_SHOWN)];
        let code = code_spans(answer);
        let mut left = Self::MOST_NUMBERS;
        let told = markers(answer, &lies_in(&code)).into_iter().map_while(|marker| {
            let numbers = marker.numbers(answer);
            left = left.checked_sub(numbers.len())?;
            Some(Self { bytes: marker.bytes, numbers })
        });
        told.collect()
    }
}

/// A marker in an answer.
#[derive(Debug)]
pub(super) struct CitationMarker {
    pub(super) bytes: Range<usize>,
}

impl CitationMarker {
    /// Read anew each time: a few bytes can stand for a thousand numbers.
    pub(super) fn numbers(&self, answer: &str) -> Vec<usize> {
        read_numbers(answer[self.bytes.clone()].trim_matches(['[', ']', '【', '】'])).unwrap_or_default()
    }
}

pub(super) fn markers(answer: &str, is_code: &dyn Fn(usize) -> bool) -> Vec<CitationMarker> {
    let mut markers = Vec::new();
    for (at, open) in answer.match_indices(['[', '【']) {
        let close = if open == "[" { ']' } else { '】' };
        let rest = &answer[at + open.len()..];
        let Some(length) = marker_length(rest, close) else { continue };
        let end = at + open.len() + length + close.len_utf8();
        if is_code(at) || answer[..at].ends_with('\\') {
            continue;
        }
        if open == "[" && is_label(answer, at, end) {
            continue;
        }
        markers.push(CitationMarker { bytes: at..end });
    }
    markers
}

/// What looks like a marker in any text, as it is written there.
pub(in crate::answer) fn written_markers(text: &str) -> impl Iterator<Item = &str> {
    markers(text, &|_| false).into_iter().map(|marker| &text[marker.bytes])
}

/// The bytes up to the closing bracket of a marker, of a text that begins behind the opening one; none if it is no marker.
pub(in crate::answer) fn marker_length(rest: &str, close: char) -> Option<usize> {
    let (length, _) = rest
        .char_indices()
        .take(MAX_MARKER_CHARACTERS)
        .find(|(_, end)| !may_stand_in_marker(*end))
        .filter(|(_, end)| *end == close)?;
    read_numbers(&rest[..length]).map(|_| length)
}

/// What [`read_numbers`] can read.
pub(in crate::answer) fn may_stand_in_marker(character: char) -> bool {
    character.is_ascii_digit()
        || character.is_whitespace()
        || SEPARATORS.contains(&character)
        || RANGE_SIGNS.contains(&character)
}

/// The numbers between the brackets, each once; `None` if there is anything else.
pub(in crate::answer) fn read_numbers(inner: &str) -> Option<Vec<usize>> {
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
