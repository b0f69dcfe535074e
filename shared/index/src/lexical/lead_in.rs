//! What stands above a text and introduces it: headings, questions and the headers of tables. They have the words of a question more
//! often than what answers it, so they pass theirs on to the text below, and are no answer themselves then.

use std::ops::Range;

use super::{
    counted::{CountedSentence, TableRow},
    lines::is_table_rule,
    sentences::MAX_SENTENCE_CHARS,
    titles::is_title,
};

/// Headings that a text stands under and need not have itself.
#[derive(Debug)]
pub(super) struct HeadingsAbove<'a> {
    /// From where in the text on, in bytes.
    pub(super) from: usize,
    /// The headings.
    pub(super) titles: &'a [String],
    /// How often they have each word of the question.
    pub(super) frequencies: Vec<u32>,
}

impl HeadingsAbove<'_> {
    /// Whether a line of the text is one of them.
    fn has(&self, line: &str) -> bool {
        self.titles.iter().any(|title| line.contains(title.as_str()))
    }
}

/// Passes the words of all that introduces something on to what it introduces. `weights` are those of the question's words, `name` is how
/// often the name of the document has them, `above` are the headings of the text from its places on, in order.
pub(super) fn pass_on(
    text: &str,
    weights: &[f32],
    name: &[u32],
    above: &[HeadingsAbove<'_>],
    sentences: &mut [CountedSentence],
) {
    pass_on_within_sections(text, weights, name, above, sentences);
    pass_on_headings_and_questions(text, sentences);
    pass_on_headers(text, weights, sentences);
}

enum LeadIn {
    /// A part of a heading of this level, 1 being the highest.
    Heading(usize),
    Question,
}

/// The lowest level of a heading in Markdown.
const LOWEST_LEVEL: usize = 6;

/// The level of a title in plain text: below all that say theirs.
const TITLE_LEVEL: usize = LOWEST_LEVEL + 1;

/// From the headings, and the document's name, to all sentences of their sections that are asked for: those with a word of the question that
/// these lack.
fn pass_on_within_sections(
    text: &str,
    weights: &[f32],
    name: &[u32],
    above: &[HeadingsAbove<'_>],
    sentences: &mut [CountedSentence],
) {
    let mut above = above.iter().peekable();
    let mut outer: Option<&HeadingsAbove<'_>> = None;
    // The headings of the text that hold here, with their levels.
    let mut open: Vec<(usize, Vec<u32>)> = Vec::new();
    for at in 0..sentences.len() {
        while let Some(next) = above.next_if(|next| next.from <= sentences[at].range.start) {
            outer = Some(next);
            open.clear();
        }
        if let Some(LeadIn::Heading(level)) = lead_in(text, sentences, at) {
            let line = &sentences[at].line;
            if at == 0 || sentences[at - 1].line != *line {
                open.retain(|(other, _)| *other < level);
                open.push((level, vec![0; weights.len()]));
                // Of one that is new it is not known how many of those above it ends.
                outer = outer.filter(|outer| outer.has(&text[line.clone()]));
            }
            if let Some((_, words)) = open.last_mut() {
                raise(words, &sentences[at].frequencies);
            }
            continue;
        }
        let mut names = name.to_vec();
        let headings = outer.map(|outer| &outer.frequencies).into_iter();
        for words in headings.chain(open.iter().map(|(_, words)| words)) {
            raise(&mut names, words);
        }
        let sentence = &mut sentences[at];
        if has_more(&sentence.frequencies, &names, weights) {
            raise(&mut sentence.frequencies, &names);
        }
    }
}

/// To the next sentence with words that is neither. A heading does not reach past one that is as high, nor a question past any.
fn pass_on_headings_and_questions(text: &str, sentences: &mut [CountedSentence]) {
    let mut below = None;
    // Of the headings between here and there.
    let mut highest = usize::MAX;
    for at in (0..sentences.len()).rev() {
        let lead_in = lead_in(text, sentences, at);
        let reaches = match lead_in {
            // A line that is drawn, for instance.
            None if sentences[at].length == 0 => continue,
            None => {
                (below, highest) = (Some(at), usize::MAX);
                continue;
            }
            Some(LeadIn::Heading(level)) => level < highest,
            Some(LeadIn::Question) => highest == usize::MAX,
        };
        if let Some(below) = below.filter(|_| reaches) {
            let (above, rest) = sentences.split_at_mut(below);
            above[at].is_passed_on = true;
            raise(&mut rest[0].near, &above[at].frequencies);
            raise(&mut rest[0].frequencies, &above[at].frequencies);
        }
        // The parts of one heading do not stand in each other's way.
        let begins = at == 0 || sentences[at - 1].line != sentences[at].line;
        if let (Some(LeadIn::Heading(level)), true) = (lead_in, begins) {
            highest = highest.min(level);
        }
    }
}

fn lead_in(text: &str, sentences: &[CountedSentence], at: usize) -> Option<LeadIn> {
    let sentence = &sentences[at];
    let line = text[sentence.line.clone()].trim_start();
    let level = line.bytes().take(LOWEST_LEVEL + 1).take_while(|byte| *byte == b'#').count();
    if (1..=LOWEST_LEVEL).contains(&level) && line[level..].starts_with(char::is_whitespace) {
        return Some(LeadIn::Heading(level));
    }
    let words = text[sentence.range.clone()].trim_end_matches(['"', '”', '“', '»', '«', ')']);
    if words.ends_with(['?', '？', '؟']) {
        return Some(LeadIn::Question);
    }
    is_title(text, sentences, at).then_some(LeadIn::Heading(TITLE_LEVEL))
}

/// From the headers of Markdown tables to the rows that are asked for: those with a word of the question that the header lacks. A question
/// about the columns alone asks for all rows.
fn pass_on_headers(text: &str, weights: &[f32], sentences: &mut [CountedSentence]) {
    let headers = headers(text, sentences);
    let ends: Vec<usize> = headers.iter().skip(1).map(|next| next.start).chain([sentences.len()]).collect();
    for (table, (header, end)) in headers.into_iter().zip(ends).enumerate() {
        let mut names = vec![0; weights.len()];
        for part in &sentences[header.clone()] {
            raise(&mut names, &part.frequencies);
        }
        // Behind the line between the header and its rows.
        let rows = sentences.get_mut(header.end + 1..end).unwrap_or_default();
        let count = rows.iter().take_while(|row| row.is_in_row).count();
        let rows = rows.get_mut(..count).unwrap_or_default();
        let is_asked_for = |row: &CountedSentence| has_more(&row.frequencies, &names, weights);
        let is_about_columns =
            has_more(&names, &vec![0; names.len()], weights) && !rows.iter().any(is_asked_for);
        let mut is_passed_on = false;
        let is_meant = |row: &CountedSentence| is_asked_for(row) || (is_about_columns && row.length > 0);
        for row in rows.iter_mut().filter(|row| is_meant(row)) {
            raise(&mut row.near, &names);
            raise(&mut row.frequencies, &names);
            row.row = Some(TableRow { table, line: whole_row(text, row) });
            is_passed_on = true;
        }
        for part in &mut sentences[header] {
            part.is_passed_on |= is_passed_on;
        }
    }
}

/// The line of a row; of a very long one only the sentence.
fn whole_row(text: &str, row: &CountedSentence) -> Range<usize> {
    let line = &text[row.line.clone()];
    let start = row.line.start + (line.len() - line.trim_start().len());
    let end = row.line.start + line.trim_end().len();
    if end - start > MAX_SENTENCE_CHARS { row.range.clone() } else { start..end }
}

/// The sentences of each line that stands above one like `|---|:-:|`.
fn headers(text: &str, sentences: &[CountedSentence]) -> Vec<Range<usize>> {
    let is_rule = |sentence: &CountedSentence| is_table_rule(&text[sentence.range.clone()]);
    let mut headers = Vec::new();
    for (at, pair) in sentences.windows(2).enumerate() {
        let [above, rule] = pair else { continue };
        if above.is_in_row && !is_rule(above) && rule.is_in_row && is_rule(rule) {
            let parts = sentences[..=at].iter().rev().take_while(|part| part.line == above.line).count();
            let end = at + 1;
            headers.push(end - parts..end);
        }
    }
    headers
}

/// Whether one text has a word of the question that another lacks.
pub(super) fn has_more(one: &[u32], other: &[u32], weights: &[f32]) -> bool {
    missing(other, one, weights) > 0
}

/// How many words of the question a text lacks that another has.
pub(super) fn missing(text: &[u32], other: &[u32], weights: &[f32]) -> usize {
    let is_missing =
        |((own, other), weight): &((&u32, &u32), &f32)| **own == 0 && **other > 0 && **weight > 0.0;
    text.iter().zip(other).zip(weights).filter(is_missing).count()
}

/// Counts what another text has of the question's words, too.
pub(super) fn raise(frequencies: &mut [u32], others: &[u32]) {
    for (own, other) in frequencies.iter_mut().zip(others) {
        *own = (*own).max(*other);
    }
}
