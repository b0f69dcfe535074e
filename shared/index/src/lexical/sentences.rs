//! Sentences, for answers that quote and for citations.

use std::ops::Range;

use lectern_shared::model::language::Language;
use unicode_segmentation::UnicodeSegmentation;

use super::{
    abbreviations::is_abbreviation,
    lines::{field_name, is_list_item, is_table_rule, records},
    script::GramScript,
    stop_words::StopLanguages,
};

/// The longest sentence in characters; a longer one is cut between words.
pub const MAX_SENTENCE_CHARS: usize = 400;

/// The longest row in characters that is written field by field: without its first fields a piece does not tell what it is about.
const MAX_RECORD_CHARS: usize = 1_000;

/// The most digits of an ordinal. What has more is a year or an amount.
const MAX_ORDINAL_DIGITS: usize = 3;

/// The most bytes of an abbreviation: however many letters follow each other with full stops between them, the sentence ends.
const LONGEST_ABBREVIATION: usize = 32;

/// The most words of a heading that begins an item of a list.
const MAX_OPENING_WORDS: usize = 3;

/// The most bytes of it, with its number: however many numbers follow each other with full stops behind them, the item has begun.
const LONGEST_OPENING: usize = 128;

/// A sentence, and where it stands.
#[derive(Debug)]
pub(super) struct PlacedSentence {
    /// Its bytes.
    pub(super) range: Range<usize>,
    /// The number of its paragraph.
    pub(super) paragraph: usize,
    /// It is a row of a table that is written field by field, or a part of a long one.
    pub(super) is_record: bool,
}

/// The sentences of a text in this language as byte ranges, in order, without the white space around them.
///
/// Boundaries are Unicode's (UAX #29), without those at the full stops of abbreviations, initials and ordinals. It
/// would end a sentence at each line, too: here line breaks inside a paragraph are spaces, because text from a PDF
/// has one at the end of every line. An empty line, a list item, a row of a table, one of several fields with their
/// names, a heading or a short line before a capital ends a paragraph. The number of an item, or a word or two that it
/// begins with, is no sentence, and a row that is written field by field is one.
pub fn sentences(text: &str, language: Language) -> impl Iterator<Item = (usize, usize)> {
    placed_sentences(text, language).into_iter().map(|sentence| (sentence.range.start, sentence.range.end))
}

/// [`sentences`] with their places.
pub(super) fn placed_sentences(text: &str, language: Language) -> Vec<PlacedSentence> {
    let mut found = Vec::new();
    for (paragraph, (place, is_record)) in paragraphs_and_records(text).into_iter().enumerate() {
        // Same length in bytes, so that positions stay valid.
        let flat = text[place.clone()].replace(['\n', '\r'], " ");
        let mut push = |range: Range<usize>| {
            let range = place.start + range.start..place.start + range.end;
            found.push(PlacedSentence { range, paragraph, is_record });
        };
        if is_record {
            cut(&flat, 0..flat.len(), MAX_RECORD_CHARS, push);
            continue;
        }
        let is_item = is_list_item(flat.trim_start());
        let mut start = 0;
        for (at, piece) in flat.split_sentence_bound_indices() {
            let end = at + piece.len();
            let opens = is_item && start == 0 && is_opening(&flat[..end]);
            if end < flat.len() && (opens || goes_on(&flat[start..end], &flat[end..], language)) {
                continue;
            }
            cut(&flat, start..end, MAX_SENTENCE_CHARS, &mut push);
            start = end;
        }
    }
    found
}

/// Whether an item has but its number so far, or a short heading: "3. Budget." of "3. Budget. It was approved."
fn is_opening(beginning: &str) -> bool {
    let beginning = beginning.trim();
    if beginning.len() > LONGEST_OPENING {
        return false;
    }
    let words = beginning.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    // In scripts without blanks two characters are a word.
    let is_unspaced = |word: &str| word.contains(|c: char| GramScript::of(c).is_some());
    let count = |word: &str| if is_unspaced(word) { word.chars().count().div_ceil(2) } else { 1 };
    words.map(count).sum::<usize>() <= MAX_OPENING_WORDS && beginning.ends_with(['.', '。'])
}

/// The paragraphs of a text, and whether they are rows that are written field by field.
fn paragraphs_and_records(text: &str) -> Vec<(Range<usize>, bool)> {
    let mut records = records(text).into_iter().peekable();
    let mut all: Vec<(Range<usize>, bool)> = Vec::new();
    for paragraph in paragraphs(text) {
        while records.next_if(|record| record.end <= paragraph.start).is_some() {}
        match records.peek().filter(|record| record.start <= paragraph.start) {
            Some(record) if all.last().is_some_and(|(last, _)| last == record) => {}
            Some(record) => all.push((record.clone(), true)),
            None => all.push((paragraph, false)),
        }
    }
    all
}

/// The paragraphs of a text; blank lines are in none.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut open: Option<Range<usize>> = None;
    // The widest line of the open paragraph, and its last line.
    let (mut widest, mut last) = (0, "");
    let (mut at, mut in_table, mut is_named) = (0, false, false);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let range = at..at + line.len();
        at = range.end;
        let line = line.trim();
        let was_in_table = in_table;
        in_table = line.contains('|') && (in_table || lines.peek().is_some_and(|next| is_table_rule(next)));
        let was_named = is_named;
        is_named = field_name(line).is_some();
        if line.is_empty() {
            all.extend(open.take());
            continue;
        }
        // A sentence may have a colon, too; several lines with one are fields.
        let is_field = is_named && (was_named || lines.peek().is_some_and(|next| field_name(next).is_some()));
        let is_heading = line.starts_with('#');
        let short = last.len() * 2 < widest.max(line.len()) && line.starts_with(char::is_uppercase);
        let is_row = in_table || was_in_table || line.starts_with('|');
        let starts = is_heading || last.starts_with('#') || short || is_row || is_field || is_list_item(line);
        match &mut open {
            Some(paragraph) if !starts => {
                paragraph.end = range.end;
                widest = widest.max(line.len());
            }
            _ => {
                all.extend(open.replace(range));
                widest = line.len();
            }
        }
        last = line;
    }
    all.extend(open);
    all
}

/// Whether a sentence goes on behind what looks like its end: the full stop of an abbreviation, of an initial or of an ordinal.
fn goes_on(sentence: &str, rest: &str, language: Language) -> bool {
    let Some(body) = sentence.trim_end().strip_suffix('.') else { return false };
    let is_border =
        |c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '\'' | '’' | '“' | '„' | '«' | '»');
    let word = body.rsplit(is_border).next().unwrap_or_default();
    let before = body.strip_suffix(word).unwrap_or_default();
    is_single_letter(word, before, language)
        || (word.len() <= LONGEST_ABBREVIATION && is_abbreviation(word, language))
        || is_ordinal(word, rest.trim_start(), language)
}

/// `J` of a name, `z` of "z. B.". A small letter behind a number is its unit, one behind an apostrophe the end of a word ("don't"), and
/// others are words by themselves: those end sentences.
fn is_single_letter(word: &str, before: &str, language: Language) -> bool {
    let mut chars = word.chars();
    let (Some(letter), None) = (chars.next(), chars.next()) else { return false };
    let is_ending = before.trim_end().ends_with(char::is_numeric) || before.ends_with(['\'', '’']);
    letter.is_uppercase()
        || (letter.is_lowercase() && !is_ending && !StopLanguages::of(word).contains(language))
}

/// `30` of "am 30. Juni", in languages that write ordinals so. A function word, and what is no word, begins another sentence.
fn is_ordinal(word: &str, rest: &str, language: Language) -> bool {
    let is_short = (1..=MAX_ORDINAL_DIGITS).contains(&word.len());
    let next = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    is_short
        && word.bytes().all(|byte| byte.is_ascii_digit())
        && writes_ordinals_with_full_stops(language)
        && next.starts_with(char::is_alphabetic)
        && !StopLanguages::of(&next.to_lowercase()).contains(language)
}

/// Of the languages without rules of their own, most that have Latin letters do: the Slavic and the Baltic ones, Estonian, Icelandic.
const fn writes_ordinals_with_full_stops(language: Language) -> bool {
    matches!(
        language,
        Language::Danish
            | Language::Finnish
            | Language::German
            | Language::Hungarian
            | Language::Norwegian
            | Language::Turkish
            | Language::Other
    )
}

/// Passes on a sentence without its outer white space, in pieces of at most so many characters.
fn cut(text: &str, range: Range<usize>, most: usize, mut push: impl FnMut(Range<usize>)) {
    let mut start = range.start;
    let last = start + text[range].trim_end().len();
    loop {
        start += text[start..last].len() - text[start..last].trim_start().len();
        let rest = &text[start..last];
        if rest.is_empty() {
            return;
        }
        let Some((limit, _)) = rest.char_indices().nth(most) else {
            push(start..start + rest.len());
            return;
        };
        // A space or an East Asian comma right after the limit still lets the words before it fit.
        let window = &rest[..limit];
        let boundary = if rest[limit..].starts_with(char::is_whitespace) {
            Some(limit)
        } else {
            window.rfind(char::is_whitespace).filter(|at| *at > 0)
        };
        let end = boundary
            .or_else(|| {
                window
                    .rfind(['、', '，', '；', '：'])
                    .and_then(|at| Some(at + window[at..].chars().next()?.len_utf8()))
            })
            .or_else(|| window.unicode_word_indices().map(|(at, _)| at).rfind(|at| *at > 0))
            .unwrap_or(limit);
        push(start..start + window.get(..end).unwrap_or(window).trim_end().len());
        start += end;
    }
}
