//! Quotations: where an answer holds them, and whether a source really says so.
//!
//! A quotation counts as found only if the source has the same words. What may differ is what typesetting and text
//! extraction change without changing a word: white space, hyphens at line ends, ligatures, composed or decomposed
//! accents. An ellipsis stands for words left out. Case, punctuation, dashes and quotation marks must be the same,
//! and a match must not begin or end inside a word or a number: "rose to 10" is not a quotation of "rose to 100".

use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_canonical, decompose_compatible};

/// How often, for each of their characters, two texts may be compared for their hyphens alone. Only texts made for
/// it, one letter over and over, need more; these are not found.
const HYPHEN_CHECKS: usize = 16;

/// Finds a quotation in a text: the byte range from the first quoted word to the last, or `None`.
///
/// Parts between ellipses (`…`, `...`, `[...]`, `(…)`) must stand in the text in the same order.
/// Takes time in proportion to both lengths.
pub fn verify_quote(quote: &str, text: &str) -> Option<Range<usize>> {
    let parts: Vec<Vec<Unit>> =
        parts_between_ellipses(quote).into_iter().map(|part| units(part, LineEndHyphen::Joins)).collect();
    // "pre-⏎and post-war" keeps its hyphen and its blank, unlike "exam-⏎ple": a second reading of the same text.
    [LineEndHyphen::Joins, LineEndHyphen::Stays]
        .into_iter()
        .find_map(|hyphen| find_in_order(&parts, &units(text, hyphen)))
}

fn find_in_order(parts: &[Vec<Unit>], text: &[Unit]) -> Option<Range<usize>> {
    let mut checks = HYPHEN_CHECKS * (text.len() + parts.iter().map(Vec::len).sum::<usize>());
    let mut from = 0;
    let mut found: Option<Range<usize>> = None;
    for part in parts {
        let at = find(part, text, from, &mut checks)?;
        from = at + part.len();
        let bytes = text[at].bytes.start..text[from - 1].bytes.end;
        found = Some(found.map_or(bytes.clone(), |whole| whole.start..bytes.end));
    }
    found
}

/// One character to compare, and the bytes of the source character that it comes from.
#[derive(Debug, Clone)]
struct Unit {
    character: char,
    hyphen: Hyphen,
    bytes: Range<usize>,
}

/// The hyphen between a letter and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hyphen {
    None,
    Written,
    /// At the end of a line: part of the word, or of the typesetting only.
    AtLineEnd,
}

impl Hyphen {
    fn may_be(self, other: Self) -> bool {
        self == other || self == Self::AtLineEnd || other == Self::AtLineEnd
    }
}

/// How a hyphen before a line break is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEndHyphen {
    /// It joins the two halves of a word.
    Joins,
    /// It is a hyphen, and the line break is a blank.
    Stays,
}

/// A text as what is compared: white space as single blanks, none at the ends and none within scripts written
/// without; ligatures and accents apart; hyphens inside words on the letter that follows.
fn units(text: &str, line_end: LineEndHyphen) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(text.len());
    let mut blank: Option<Range<usize>> = None;
    let mut hyphen = Hyphen::None;
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let bytes = at..at + character.len_utf8();
        at = bytes.end;
        if is_invisible(character) {
            continue;
        }
        if character.is_whitespace() {
            blank = Some(blank.map_or(bytes.clone(), |blank| blank.start..bytes.end));
            continue;
        }
        if blank.is_none()
            && matches!(character, '-' | '\u{2010}')
            && units.last().is_some_and(|unit| unit.character.is_alphanumeric() || is_mark(unit.character))
        {
            let (joined, next) = joined_letter(&text[at..], line_end);
            if let Some(kind) = joined {
                hyphen = kind;
                at += next;
                continue;
            }
        }
        if let Some(blank) = blank.take()
            && let Some(last) = units.last()
            && !(is_unspaced(last.character) && is_unspaced(character))
        {
            units.push(Unit { character: ' ', hyphen: Hyphen::None, bytes: blank });
        }
        let mut push = |character| {
            units.push(Unit {
                character,
                hyphen: std::mem::replace(&mut hyphen, Hyphen::None),
                bytes: bytes.clone(),
            });
        };
        if is_ligature(character) {
            decompose_compatible(character, &mut push);
        } else {
            decompose_canonical(character, &mut push);
        }
    }
    units
}

/// Reads on after a hyphen that follows a letter: the kind of hyphen and the bytes of white space after it, if a
/// letter or digit comes next.
fn joined_letter(rest: &str, line_end: LineEndHyphen) -> (Option<Hyphen>, usize) {
    let trimmed = rest.trim_start();
    let gap = rest.len() - trimmed.len();
    let Some(next) = trimmed.chars().next().filter(|next| next.is_alphanumeric()) else { return (None, 0) };
    if gap == 0 {
        return (Some(Hyphen::Written), 0);
    }
    if line_end == LineEndHyphen::Stays || !rest[..gap].contains(['\n', '\r', '\u{2028}', '\u{85}']) {
        return (None, 0);
    }
    // Typesetting breaks words, not numbers: "1990-⏎1995" never stands for "19901995".
    (Some(if next.is_alphabetic() { Hyphen::AtLineEnd } else { Hyphen::Written }), gap)
}

/// The first place, from `from` on, at which `part` stands in `text` (Knuth-Morris-Pratt); `checks` is what may be
/// spent on hyphens.
fn find(part: &[Unit], text: &[Unit], from: usize, checks: &mut usize) -> Option<usize> {
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
    for (at, unit) in text.iter().enumerate().skip(from) {
        while length > 0 && unit.character != part[length].character {
            length = borders[length - 1];
        }
        length += usize::from(unit.character == part.get(length)?.character);
        if length == part.len() {
            let start = at + 1 - length;
            if is_whole(text, start, at + 1) {
                *checks = checks.checked_sub(part.len())?;
                if same_hyphens(part, &text[start..=at]) {
                    return Some(start);
                }
            }
            length = borders[length - 1];
        }
    }
    None
}

/// The first letter of a part has nothing before it to be joined to.
fn same_hyphens(part: &[Unit], text: &[Unit]) -> bool {
    part.iter().zip(text).skip(1).all(|(quoted, stored)| quoted.hyphen.may_be(stored.hyphen))
}

/// Whether neither end of a match lies within a word, a number or an accented letter.
fn is_whole(text: &[Unit], start: usize, end: usize) -> bool {
    let cuts = |at: usize| {
        let (Some(before), Some(after)) = (at.checked_sub(1).and_then(|at| text.get(at)), text.get(at))
        else {
            return false;
        };
        let (left, right) = (before.character, after.character);
        let in_word = (left.is_alphanumeric() || is_mark(left))
            && right.is_alphanumeric()
            && after.hyphen == Hyphen::None
            && !is_unspaced(left)
            && !is_unspaced(right);
        in_word || is_mark(right) || before.bytes == after.bytes
    };
    let digit =
        |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(|unit| unit.character.is_numeric());
    let separator = |at: Option<usize>| {
        at.and_then(|at| text.get(at))
            .is_some_and(|unit| matches!(unit.character, '.' | ',' | '\'' | '\u{2019}'))
    };
    let number_goes_on = digit(Some(end - 1)) && separator(Some(end)) && digit(Some(end + 1));
    let number_began = digit(Some(start)) && separator(start.checked_sub(1)) && digit(start.checked_sub(2));
    !cuts(start) && !cuts(end) && !number_goes_on && !number_began
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
        let dots = text.bytes().take_while(|byte| *byte == b'.').count();
        let signs = text.chars().take_while(|character| *character == '…').count();
        if dots >= 3 { dots } else { signs * '…'.len_utf8() }
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

fn opens(mark: char, previous: char, next: char) -> bool {
    match mark {
        '“' | '„' | '«' | '‹' | '「' | '『' => true,
        // A straight mark opens where a word may begin; elsewhere it closes, or stands for inches.
        '"' => !previous.is_alphanumeric() && !next.is_whitespace(),
        _ => false,
    }
}

fn closes(open: char, mark: char, next: char) -> bool {
    match open {
        '“' => mark == '”',
        '„' => matches!(mark, '“' | '”'),
        '«' => mark == '»',
        '‹' => mark == '›',
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

/// Characters that only tell where a line may break.
const fn is_invisible(character: char) -> bool {
    matches!(character, '\u{AD}' | '\u{200B}' | '\u{2060}' | '\u{FEFF}')
}

/// Scripts that put no blanks between words: a line break there means nothing, and no border of a word can be seen.
pub(super) const fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3000}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::{quoted_spans, verify_quote};

    fn found<'a>(quote: &str, text: &'a str) -> Option<&'a str> {
        verify_quote(quote, text).map(|range| &text[range])
    }

    #[test]
    fn a_quotation_is_found_over_line_breaks_and_runs_of_blanks() {
        let text = "Intro.  The quick\n brown\u{A0}fox\tjumps. End";
        assert_eq!(found("The quick brown fox jumps.", text), Some("The quick\n brown\u{A0}fox\tjumps."));
        assert_eq!(found("  The   quick brown ", text), Some("The quick\n brown"));
    }

    #[test]
    fn a_word_broken_at_a_line_end_is_one_word_or_a_compound() {
        let text = "an exam-\nple of a well-\n known state-of-the-art soft\u{AD}ware";
        assert_eq!(
            found("an example of a well-known state", text),
            Some("an exam-\nple of a well-\n known state")
        );
        assert!(found("state-of-the-art software", text).is_some());
        assert!(found("stateoftheart software", text).is_none());
        assert!(found("an exam-\nple", "an example here").is_some());
        assert!(found("pre- and post-war", "pre-\nand post-war").is_some());
        assert!(found("from 19901995 on", "from 1990-\n1995 on").is_none());
        assert!(found("from 1990-1995 on", "from 1990-\n1995 on").is_some());
    }

    #[test]
    fn ligatures_and_decomposed_accents_are_the_same_letters() {
        assert_eq!(found("an efficient office", "an eﬃcient oﬃce"), Some("an eﬃcient oﬃce"));
        assert_eq!(found("an eﬃcient office", "an efficient office"), Some("an efficient office"));
        assert_eq!(found("the café is", "the cafe\u{301} is"), Some("the cafe\u{301} is"));
        assert!(found("the cafe", "the café").is_none());
        assert!(found("the cafe", "the cafe\u{301}").is_none());
    }

    #[test]
    fn parts_around_an_ellipsis_must_stand_in_order() {
        let text = "One two three. Four five six. Seven eight nine.";
        for quote in
            ["One two … five six", "One two ... five six", "One two [...] five six", "One two (…) five six"]
        {
            assert_eq!(found(quote, text), Some("One two three. Four five six"), "{quote}");
        }
        assert_eq!(found("…Four five…", text), Some("Four five"));
        assert!(found("Seven eight … One two", text).is_none());
        assert!(found("…", text).is_none());
        assert!(found("One two [..] five", text).is_none());
        assert_eq!(found("wait… what", "wait… what"), Some("wait… what"));
    }

    #[test]
    fn other_words_case_punctuation_and_marks_are_not_tolerated() {
        let text = "The sky is blue, she said: “it’s late” – always.";
        for quote in
            ["the sky is blue", "The sky is blue.", "“it's late”", "late” - always", "The sky was blue"]
        {
            assert!(found(quote, text).is_none(), "{quote}");
        }
        assert!(found("x2 plus one", "x² plus one").is_none());
    }

    #[test]
    fn a_match_does_not_begin_or_end_inside_a_word_or_number() {
        assert!(found("it rose to 10", "it rose to 100").is_none());
        assert!(found("it rose to 1", "it rose to 1.5").is_none());
        assert!(found("500 people came", "1,500 people came").is_none());
        assert!(found("ice cream is good", "nice cream is good").is_none());
        assert_eq!(found("it rose to 1", "it rose to 1.5; later it rose to 1."), Some("it rose to 1"));
        assert_eq!(found("known for it", "well-known for it"), Some("known for it"));
    }

    #[test]
    fn scripts_without_blanks_match_anywhere_and_over_line_breaks() {
        assert_eq!(found("東京は日本の首都", "今日、東京は日本\nの首都です。"), Some("東京は日本\nの首都"));
    }

    #[test]
    fn odd_input_never_panics_and_ranges_are_slices() {
        let alphabet = [
            'a',
            ' ',
            '\n',
            '-',
            '…',
            '.',
            '[',
            ']',
            'ﬃ',
            '\u{301}',
            'é',
            '한',
            '中',
            '\u{200B}',
            '🏽',
            '\u{10FFFF}',
            '"',
            '“',
            '”',
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = |most: u64| -> String {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            };
            (0..next() % most).map(|_| alphabet[usize::try_from(next()).unwrap() % alphabet.len()]).collect()
        };
        for _ in 0..20_000 {
            let (text, quote) = (draw(40), draw(6));
            if let Some(range) = verify_quote(&quote, &text) {
                assert!(text.get(range.clone()).is_some_and(|slice| !slice.is_empty()), "{text:?} {quote:?}");
            }
            for span in quoted_spans(&text, &|_| false) {
                assert!(text.get(span.inner).is_some() && text.get(span.outer).is_some());
            }
        }
    }

    #[test]
    fn a_text_without_ellipses_or_half_words_quotes_itself() {
        for text in
            ["Ünïcode “quotes” – dashes.", "한국어 문장입니다.", "עברית כאן", "a\r\nb-\r\nc", "นี่คือภาษาไทย"]
        {
            assert_eq!(verify_quote(text, text), Some(0..text.len()), "{text}");
        }
    }

    #[test]
    fn a_long_repetitive_text_is_searched_at_once() {
        let text = "ab ".repeat(200_000);
        assert!(verify_quote(&format!("{}x", "ab ".repeat(50_000)), &text).is_none());
        assert!(verify_quote(&"ab ".repeat(100_000), &text).is_some());
    }

    #[test]
    fn a_hyphen_that_is_missing_everywhere_is_not_looked_for_forever() {
        let quote = format!("{}-中", "中".repeat(20_000));
        assert!(verify_quote(&quote, &"中".repeat(300_000)).is_none());
        assert_eq!(found("中中-中", "中中中中 中中-中中"), Some("中中-中"));
    }

    #[test]
    fn a_quotation_of_nothing_but_signs_is_read_in_one_go() {
        for sign in
            ["[", "[ ", "[…", "[...", "( ", ".", "..[", "-", "a-", "a- ", "a-\n", "\u{AD}", "“", "\u{301}"]
        {
            let quote = sign.repeat(200_000 / sign.len());
            assert!(verify_quote(&quote, "A short text.").is_none(), "{sign:?}");
            assert!(verify_quote("other words", &quote).is_none(), "{sign:?}");
        }
    }

    #[test]
    fn quoted_spans_know_many_marks_and_stop_at_paragraphs() {
        let inner = |text: &str| -> Vec<String> {
            quoted_spans(text, &|_| false).into_iter().map(|span| text[span.inner].to_owned()).collect()
        };
        assert_eq!(
            inner("“a” „b“ «c» ‹d› 「e」 『f』 \"g\" “h ‘i’ j”"),
            ["a", "b", "c", "d", "e", "f", "g", "h ‘i’ j"]
        );
        assert_eq!(inner("a 5\" pipe and \"real words\" here"), ["real words"]);
        assert!(inner("“never closed\n\nnext” one").is_empty());
        assert_eq!(inner("“over\na line”"), ["over\na line"]);
    }
}
