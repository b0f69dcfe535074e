//! Sentences, for answers that quote and for citations.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// The longest sentence in characters; a longer one is cut between words.
pub const MAX_SENTENCE_CHARS: usize = 400;

/// Abbreviations that end in a full stop and are usually followed by the rest of their sentence.
const ABBREVIATIONS: [&str; 56] = [
    "abb", "al", "app", "approx", "art", "bzw", "ca", "cap", "cf", "ch", "co", "corp", "dept", "dr", "e.g",
    "ed", "eds", "eq", "etc", "evtl", "fig", "figs", "ggf", "gov", "i.e", "inc", "inkl", "jr", "kap", "lt",
    "ltd", "mr", "mrs", "ms", "mt", "no", "nos", "nr", "p", "pp", "prof", "ref", "resp", "rev", "sec", "sen",
    "sog", "sr", "st", "str", "tab", "u.s", "usw", "vgl", "vol", "vs",
];

/// The sentences of a text as byte ranges, in order, without the white space around them.
///
/// Boundaries are Unicode's (UAX #29), which would end a sentence at each line: here line breaks
/// inside a paragraph are spaces, because text from a PDF has one at the end of every line. An empty
/// line, a list item, a row of a table, a heading or a short line before a capital ends a paragraph.
pub fn sentences(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text) {
        // Same length in bytes, so that positions stay valid.
        let flat = text[paragraph.clone()].replace(['\n', '\r'], " ");
        let mut start = 0;
        for (at, piece) in flat.split_sentence_bound_indices() {
            let end = at + piece.len();
            if end < flat.len() && ends_in_abbreviation(&flat[start..end]) {
                continue;
            }
            cut(&flat, start..end, |range| {
                found.push((paragraph.start + range.start, paragraph.start + range.end));
            });
            start = end;
        }
    }
    found.into_iter()
}

/// The paragraphs of a text; blank lines are in none.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut open: Option<Range<usize>> = None;
    // The widest line of the open paragraph, and its last line.
    let (mut widest, mut last) = (0, "");
    let (mut at, mut in_table) = (0, false);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let range = at..at + line.len();
        at = range.end;
        let line = line.trim();
        let was_in_table = in_table;
        in_table = line.contains('|') && (in_table || lines.peek().is_some_and(|next| is_table_rule(next)));
        if line.is_empty() {
            all.extend(open.take());
            continue;
        }
        let is_heading = line.starts_with('#');
        let short = last.len() * 2 < widest.max(line.len()) && line.starts_with(char::is_uppercase);
        let is_at_row = in_table || was_in_table;
        let starts = is_heading || last.starts_with('#') || short || is_at_row || starts_item(line);
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

/// Whether a line is the one between the header of a table and its rows: `|---|:-:|`, or `--- | ---`.
pub(super) fn is_table_rule(line: &str) -> bool {
    line.contains('-')
        && line.contains('|')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':') || c.is_whitespace())
}

/// Whether a line is an item of a list or a row of a table.
fn starts_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = number.len() < line.len() && line.len() - number.len() <= 3;
    line.starts_with(['•', '‣', '▪', '●', '|'])
        || ["- ", "* ", "+ ", "– ", "— "].iter().any(|mark| line.starts_with(mark))
        || (numbered && (number.starts_with(". ") || number.starts_with(") ")))
}

/// Whether what looks like the end of a sentence is the full stop of an abbreviation or an initial.
fn ends_in_abbreviation(sentence: &str) -> bool {
    let Some(body) = sentence.trim_end().strip_suffix('.') else { return false };
    let start =
        body.rfind(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"')).map_or(0, |at| at + 1);
    let Some(word) = body.get(start..) else { return false };
    let mut chars = word.chars();
    if matches!((chars.next(), chars.next()), (Some(c), None) if c.is_uppercase()) {
        return true;
    }
    let lower = word.to_lowercase();
    ABBREVIATIONS.contains(&lower.as_str()) || is_dotted(&lower)
}

/// `z.B`, `a.m`, `u.a`: single letters with full stops between them.
fn is_dotted(word: &str) -> bool {
    word.contains('.')
        && word.split('.').all(|part| part.chars().count() == 1 && part.chars().all(char::is_alphabetic))
}

/// Passes on a sentence without its outer white space, in pieces of at most [`MAX_SENTENCE_CHARS`].
fn cut(text: &str, range: Range<usize>, mut push: impl FnMut(Range<usize>)) {
    let mut start = range.start;
    loop {
        let rest = &text[start..range.end];
        start += rest.len() - rest.trim_start().len();
        let rest = text[start..range.end].trim_end();
        if rest.is_empty() {
            return;
        }
        let Some((limit, _)) = rest.char_indices().nth(MAX_SENTENCE_CHARS) else {
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
