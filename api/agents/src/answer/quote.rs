//! Quotations: where an answer holds them, and whether a source really says so.
//!
//! A quotation counts as found only if the source has the same words in the same order. What may differ is how a text is set,
//! never what it says: white space, ligatures, accents in one piece or in two. An ellipsis stands for a few words of the same
//! source that were left out between others: what is left out can turn a meaning round, so that each part has to be a quotation
//! by itself, and to stand near the one before it. Where the source has no such words, those will do that differ in the form of apostrophes,
//! quotation marks, hyphens and dashes, or in the case of the first letter, as a sentence gives it (`adapted.rs`); the source's are shown then.
//! Nothing else may differ, neither case nor punctuation, and a match must not begin or end inside a word or a number: "rose to 10" is not a
//! quotation of "rose to 100", nor "5 degrees" of "-5 degrees".

mod adapted;

use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_canonical, decompose_compatible};

/// Each part of a quotation with an ellipsis has so many words, or so many characters of scripts without blanks.
const MIN_PART_WORDS: usize = 3;
const MIN_PART_CHARACTERS: usize = 6;

/// The most characters that an ellipsis stands for.
const MAX_OMITTED: usize = 150;

/// The most places of the first part behind which the others are looked for.
const MAX_STARTS: usize = 50;

/// Where a quotation stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundQuote {
    /// From the first quoted word to the last, in bytes.
    pub(super) range: Range<usize>,
    /// Whether the text has it but for how it is set: it is written otherwise there, if not.
    pub(super) is_literal: bool,
}

/// Finds a quotation in a text: the byte range from the first quoted word to the last, or `None`.
///
/// Parts between ellipses (`…`, `...`, `. . .`, `[...]`, `(…)`) must stand in the text in the same order, with few
/// characters between two of them, and have several words each.
/// Takes time in proportion to both lengths.
pub fn verify_quote(quote: &str, text: &str) -> Option<Range<usize>> {
    find_quote(quote, text).map(|found| found.range)
}

/// [`verify_quote`], and whether the text has these very words.
pub(super) fn find_quote(quote: &str, text: &str) -> Option<FoundQuote> {
    let (quote, stored) = (QuoteParts::of(quote), NormalizedText::of(text));
    if let Some(range) = quote.find_in(&stored, &|_| true) {
        return Some(FoundQuote { range, is_literal: true });
    }
    adapted::find(quote, stored).map(|range| FoundQuote { range, is_literal: false })
}

/// A quotation, and the parts of it between ellipses.
struct QuoteParts<'a> {
    whole: NormalizedText<'a>,
    parts: Vec<NormalizedText<'a>>,
    /// Whether each part is a quotation by itself.
    are_long: bool,
}

impl<'a> QuoteParts<'a> {
    fn of(quote: &'a str) -> Self {
        let parts = parts_between_ellipses(quote);
        let are_long = parts.iter().all(|part| has_several_words(part));
        let parts = parts.into_iter().map(NormalizedText::of).collect();
        Self { whole: NormalizedText::of(quote), parts, are_long }
    }

    /// Where it stands in a text, from a place on that `may_begin`.
    fn find_in(&self, stored: &NormalizedText<'_>, may_begin: PlaceTest<'_>) -> Option<Range<usize>> {
        let (first, others) = self.parts.split_first()?;
        if others.is_empty() {
            return stored.whole(first, may_begin);
        }
        // The source may have the ellipsis itself.
        if let Some(found) = stored.whole(&self.whole, may_begin) {
            return Some(found);
        }
        if !self.are_long {
            return None;
        }
        let mut from = 0;
        for _ in 0..MAX_STARTS {
            let start = stored.find_from(&first.units, from..stored.units.len(), may_begin)?;
            if let Some(end) = stored.end_of(others, start + first.units.len()) {
                return stored.bytes(start..end);
            }
            from = start + 1;
        }
        None
    }
}

/// Whether a quotation may begin with a unit of a text.
type PlaceTest<'a> = &'a dyn Fn(usize) -> bool;

/// Finds a quotation that a person has shortened, who knows what was left out: as [`verify_quote`], with parts of any length and
/// however far apart.
pub(crate) fn find_in_order(quote: &str, text: &str) -> Option<Range<usize>> {
    let stored = NormalizedText::of(text);
    let mut from = 0;
    let mut found: Option<Range<usize>> = None;
    for part in parts_between_ellipses(quote) {
        let part = NormalizedText::of(part);
        let at = stored.find(&part.units, from..stored.units.len())?;
        from = at + part.units.len();
        let bytes = stored.bytes(at..from)?;
        found = Some(found.map_or(bytes.clone(), |whole| whole.start..bytes.end));
    }
    found
}

fn has_several_words(part: &str) -> bool {
    part.split_whitespace().count() >= MIN_PART_WORDS
        || part.chars().filter(|character| is_unspaced(*character)).count() >= MIN_PART_CHARACTERS
}

/// One character to compare, and the bytes of the source characters that it comes from.
#[derive(Debug, Clone)]
struct NormalizedChar {
    character: char,
    bytes: Range<usize>,
}

/// A text as what is compared: white space as single blanks, none at the ends and none where scripts are written without;
/// ligatures and accents apart.
struct NormalizedText<'a> {
    text: &'a str,
    units: Vec<NormalizedChar>,
}

impl<'a> NormalizedText<'a> {
    fn of(text: &'a str) -> Self {
        let mut units: Vec<NormalizedChar> = Vec::with_capacity(text.len());
        let mut blank: Option<Range<usize>> = None;
        let mut is_divided = false;
        for (at, character) in text.char_indices() {
            let bytes = at..at + character.len_utf8();
            if is_invisible(character) {
                // A word that is divided here goes on in the next line.
                is_divided = character == SOFT_HYPHEN && blank.is_none();
                continue;
            }
            if character.is_whitespace() {
                if !is_divided {
                    blank = Some(blank.map_or(bytes.clone(), |blank| blank.start..bytes.end));
                }
                continue;
            }
            is_divided = false;
            if let Some(bytes) = blank.take()
                && parts(&units, character)
            {
                units.push(NormalizedChar { character: ' ', bytes });
            }
            let push = |character| units.push(NormalizedChar { character, bytes: bytes.clone() });
            if is_ligature(character) {
                decompose_compatible(character, push);
            } else {
                decompose_canonical(character, push);
            }
        }
        order_marks(&mut units);
        Self { text, units }
    }

    /// The bytes of some units.
    fn bytes(&self, range: Range<usize>) -> Option<Range<usize>> {
        let units = self.units.get(range)?;
        Some(units.first()?.bytes.start..units.last()?.bytes.end)
    }

    /// The bytes of the first place that `may_begin` at which all of another text stands.
    fn whole(&self, other: &Self, may_begin: PlaceTest<'_>) -> Option<Range<usize>> {
        let at = self.find_from(&other.units, 0..self.units.len(), may_begin)?;
        self.bytes(at..at + other.units.len())
    }

    /// Where the last of these parts ends, which stand near each other behind `from`.
    fn end_of(&self, parts: &[Self], from: usize) -> Option<usize> {
        parts.iter().try_fold(from, |from, part| {
            let near = from.saturating_add(MAX_OMITTED + part.units.len()).min(self.units.len());
            self.find(&part.units, from..near).map(|at| at + part.units.len())
        })
    }

    /// The first place within `within` at which `part` stands.
    fn find(&self, part: &[NormalizedChar], within: Range<usize>) -> Option<usize> {
        self.find_from(part, within, &|_| true)
    }

    /// The same, of the places that `may_begin` (Knuth-Morris-Pratt).
    fn find_from(
        &self,
        part: &[NormalizedChar],
        within: Range<usize>,
        may_begin: PlaceTest<'_>,
    ) -> Option<usize> {
        let mut borders = vec![0; part.len()];
        let mut length = 0;
        for at in 1..part.len() {
            while length > 0 && part[at].character != part[length].character {
                length = borders[length - 1];
            }
            length += usize::from(part[at].character == part[length].character);
            borders[at] = length;
        }
        length = 0;
        for (at, unit) in self.units.iter().enumerate().take(within.end).skip(within.start) {
            while length > 0 && unit.character != part[length].character {
                length = borders[length - 1];
            }
            length += usize::from(unit.character == part.get(length)?.character);
            if length == part.len() {
                let start = at + 1 - length;
                if self.is_whole(start, at + 1) && may_begin(start) {
                    return Some(start);
                }
                length = borders[length - 1];
            }
        }
        None
    }

    fn character(&self, at: Option<usize>) -> Option<char> {
        self.units.get(at?).map(|unit| unit.character)
    }

    /// Whether neither end of a match lies within a word, a number or an accented letter.
    fn is_whole(&self, start: usize, end: usize) -> bool {
        !self.cuts_word(start) && !self.cuts_word(end) && !self.cuts_number(start) && !self.cuts_number(end)
    }

    fn cuts_word(&self, at: usize) -> bool {
        let (Some(before), Some(after)) =
            (at.checked_sub(1).and_then(|at| self.units.get(at)), self.units.get(at))
        else {
            return false;
        };
        let (left, right) = (before.character, after.character);
        let in_word = (left.is_alphanumeric() || is_mark(left))
            && right.is_alphanumeric()
            && !is_unspaced(left)
            && !is_unspaced(right);
        in_word || is_mark(right) || before.bytes == after.bytes
    }

    /// Whether a number goes on over the place before `at`: its digits, what groups them, or its sign.
    fn cuts_number(&self, at: usize) -> bool {
        let digit = |at| self.character(at).is_some_and(is_digit);
        let groups = |at: Option<usize>| match self.character(at) {
            // What keeps digits together is no blank between words.
            Some(' ') => {
                let unit = at.and_then(|at| self.units.get(at));
                unit.and_then(|unit| self.text.get(unit.bytes.clone()))
                    .is_some_and(|blank| matches!(blank, "\u{A0}" | "\u{2007}" | "\u{2009}" | "\u{202F}"))
            }
            Some(character) => is_number_sign(character),
            None => false,
        };
        let [two_before, before, here, after] =
            [at.checked_sub(2), at.checked_sub(1), Some(at), at.checked_add(1)];
        let begins = || {
            let sign = matches!(self.character(before), Some('-' | '+' | '±' | '−' | '–' | '－' | '＋'));
            let of_word = |at| {
                self.character(at).is_some_and(|left| left.is_alphanumeric() || is_mark(left) || left == ')')
            };
            sign && !of_word(two_before)
        };
        (digit(before) && digit(here))
            || (digit(before) && groups(here) && digit(after))
            || (digit(two_before) && groups(before) && digit(here))
            || (digit(here) && begins())
    }
}

/// Whether a blank before this character parts it from what came before.
fn parts(before: &[NormalizedChar], character: char) -> bool {
    let mut back = before.iter().rev().map(|unit| unit.character);
    let Some(left) = back.next() else { return false };
    if left.is_numeric() && character.is_numeric() {
        return true;
    }
    // After a hyphen lines break, and blanks come with that: "well-⏎known" and "pre- and post-war".
    let after_hyphen = matches!(left, '-' | '\u{2010}')
        && character.is_alphanumeric()
        && back.next().is_some_and(|left| left.is_alphanumeric() || is_mark(left));
    !after_hyphen && !is_unspaced(left) && !is_unspaced(character)
}

/// Puts the marks on a letter into their canonical order. All of them, and the letter, then have the bytes of all.
fn order_marks(units: &mut [NormalizedChar]) {
    let mut at = 0;
    while at < units.len() {
        let marks = units[at + 1..].iter().take_while(|unit| is_mark(unit.character)).count();
        let end = at + 1 + marks;
        if marks > 0 && !is_mark(units[at].character) {
            let letter = &mut units[at..end];
            let from = letter.iter().map(|unit| unit.bytes.start).min().unwrap_or_default();
            let to = letter.iter().map(|unit| unit.bytes.end).max().unwrap_or_default();
            letter[1..].sort_by_key(|unit| canonical_combining_class(unit.character));
            for unit in letter {
                unit.bytes = from..to;
            }
        }
        at = end;
    }
}

/// The pieces of a quotation that are left when its ellipses are taken out; empty ones are dropped.
fn parts_between_ellipses(quote: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < quote.len() {
        let length = ellipsis_length(&quote[at..]);
        if length == 0 {
            at += quote[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        parts.push(&quote[start..at]);
        at += length;
        start = at;
    }
    parts.push(&quote[start..]);
    parts.retain(|part| part.chars().any(|character| !character.is_whitespace() && !is_invisible(character)));
    parts
}

/// The bytes of the ellipsis, with its brackets, at the start of `text`; 0 if there is none.
fn ellipsis_length(text: &str) -> usize {
    let bare = |text: &str| {
        let signs: usize =
            text.chars().take_while(|sign| matches!(sign, '…' | '⋯' | '‥')).map(char::len_utf8).sum();
        if signs > 0 { signs } else { dots_length(text) }
    };
    for (open, close) in [('[', ']'), ('(', ')')] {
        if let Some(inner) = text.strip_prefix(open) {
            let inner = inner.trim_start_matches(' ');
            let rest =
                inner.get(bare(inner)..).filter(|_| bare(inner) > 0).map(|rest| rest.trim_start_matches(' '));
            if let Some(rest) = rest.and_then(|rest| rest.strip_prefix(close)) {
                return text.len() - rest.len();
            }
        }
    }
    bare(text)
}

/// The bytes of three dots or more at the start of `text`, with a blank between them or without; 0 if there are fewer.
fn dots_length(text: &str) -> usize {
    let (mut length, mut dots) = (0, 0);
    let mut rest = text;
    while let Some(after) = rest.strip_prefix('.') {
        dots += 1;
        length = text.len() - after.len();
        rest = after.strip_prefix([' ', '\u{A0}']).filter(|after| after.starts_with('.')).unwrap_or(after);
    }
    if dots >= 3 { length } else { 0 }
}

/// A span in quotation marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuotedSpan {
    /// Bytes with the marks.
    pub(super) outer: Range<usize>,
    /// Bytes between the marks.
    pub(super) inner: Range<usize>,
}

/// The outermost spans in quotation marks, in order. A span does not reach past a blank line, nor into or over a
/// byte that `is_code` tells to be code.
pub(super) fn quoted_spans(text: &str, is_code: &dyn Fn(usize) -> bool) -> Vec<QuotedSpan> {
    let mut spans = Vec::new();
    let mut open: Option<(char, Range<usize>)> = None;
    let mut previous = '\n';
    let mut line_is_blank = true;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map_or('\n', |(_, next)| *next);
        let ends_paragraph = character == '\n' && line_is_blank;
        line_is_blank = if character == '\n' { true } else { line_is_blank && character.is_whitespace() };
        let bytes = at..at + character.len_utf8();
        if ends_paragraph || is_code(at) {
            open = None;
        } else if let Some((_, begun)) = open.take_if(|(mark, _)| closes(*mark, character, next)) {
            spans.push(QuotedSpan { inner: begun.end..at, outer: begun.start..bytes.end });
        } else if opens(character, previous, next) && open.as_ref().is_none_or(|(mark, _)| *mark == character)
        {
            open = Some((character, bytes));
        }
        previous = character;
    }
    spans
}

/// Whether a quotation mark between these characters begins a quotation, when none is open.
pub(super) fn opens(mark: char, previous: char, next: char) -> bool {
    match mark {
        '“' | '„' | '「' | '『' => true,
        // A straight mark opens where a word may begin; elsewhere it closes, or stands for inches.
        '"' => !previous.is_alphanumeric() && !next.is_whitespace(),
        // One language begins with what another ends with.
        '»' | '›' | '”' => !ends_words(previous) && !next.is_whitespace() && !is_behind_words(next),
        '«' | '‹' => !ends_words(previous),
        _ => false,
    }
}

/// Whether words end with this character, so that the quotation mark behind it is their end too.
fn ends_words(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '.' | '!' | '?' | '…' | ')' | ']' | '}')
}

/// Whether no word begins with this character: a marker follows a quotation, as these do.
const fn is_behind_words(character: char) -> bool {
    matches!(character, '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '[' | '【')
}

fn closes(open: char, mark: char, next: char) -> bool {
    match open {
        '„' => matches!(mark, '“' | '”'),
        '“' | '”' => mark == '”',
        '«' => mark == '»',
        '»' => mark == '«',
        '‹' => mark == '›',
        '›' => mark == '‹',
        '「' => mark == '」',
        '『' => mark == '』',
        _ => mark == '"' && !next.is_alphanumeric(),
    }
}

fn is_mark(character: char) -> bool {
    canonical_combining_class(character) != 0
}

/// Latin and Armenian ligatures: one sign for letters that are written apart elsewhere.
const fn is_ligature(character: char) -> bool {
    matches!(character, '\u{FB00}'..='\u{FB06}' | '\u{FB13}'..='\u{FB17}')
}

/// Divides a word, and shows only where a line ends.
const SOFT_HYPHEN: char = '\u{AD}';

/// Characters that only tell where a line may break.
const fn is_invisible(character: char) -> bool {
    matches!(character, SOFT_HYPHEN | '\u{200B}' | '\u{2060}' | '\u{FEFF}')
}

/// What numbers are written with, in any script.
fn is_digit(character: char) -> bool {
    const IDEOGRAPHS: &str = "零一二三四五六七八九十百千万亿兩两萬億兆壹贰叁肆伍陆柒捌玖拾佰仟";
    character.is_numeric() || IDEOGRAPHS.contains(character)
}

/// What stands within a number, between its digits.
const fn is_number_sign(character: char) -> bool {
    matches!(
        character,
        '.' | ','
            | '\''
            | '\u{2019}'
            | '/'
            | '\u{2044}'
            | ':'
            | '^'
            | '·'
            | '．'
            | '，'
            | '／'
            | '：'
            | '\u{66B}'
            | '\u{66C}'
    )
}

/// Scripts that put no blanks between words: a line break there means nothing, and no border of a word can be seen.
pub(crate) const fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3000}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
        // Full-width letters and digits are written as the narrow ones are.
        || matches!(character,
            '\u{FF00}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF20}' | '\u{FF3B}'..='\u{FF40}' | '\u{FF5B}'..='\u{FF9F}'
            | '\u{FFE0}'..='\u{FFEF}')
}

#[cfg(test)]
mod tests;
