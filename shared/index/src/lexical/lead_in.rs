//! What stands above a text and introduces it: headings, questions and the headers of tables. They have the words of a question more
//! often than what answers it, so they pass theirs on to the text below, and are no answer themselves then.

use std::ops::Range;

use super::sentences::is_table_rule;

/// A sentence of a passage.
pub(super) struct CountedSentence {
    /// Its bytes.
    pub(super) range: Range<usize>,
    /// How often it has each word of the question.
    pub(super) frequencies: Vec<u32>,
    /// In words.
    pub(super) length: u32,
    /// Its words count for another one.
    pub(super) is_passed_on: bool,
    /// Where its first line begins.
    line: usize,
}

impl CountedSentence {
    /// A sentence of `text`, and the one before it.
    pub(super) fn new(
        text: &str,
        before: Option<&Self>,
        range: Range<usize>,
        frequencies: Vec<u32>,
        length: u32,
    ) -> Self {
        let (from, line) = before.map_or((0, 0), |before| (before.range.start, before.line));
        let line = text[from..range.start].rfind('\n').map_or(line, |end| from + end + 1);
        Self { range, frequencies, length, is_passed_on: false, line }
    }
}

/// Passes the words of all that introduces something on to what it introduces. `weights` are those of the question's words.
pub(super) fn pass_on(text: &str, weights: &[f32], sentences: &mut [CountedSentence]) {
    pass_on_headings_and_questions(text, sentences);
    pass_on_headers(text, weights, sentences);
}

enum LeadIn {
    /// A part of a heading of this level, 1 being the highest.
    Heading(usize),
    Question,
}

/// To the next sentence with words that is neither. A heading does not reach past one that is as high, nor a question past any.
fn pass_on_headings_and_questions(text: &str, sentences: &mut [CountedSentence]) {
    let mut below = None;
    // Of the headings between here and there.
    let mut highest = usize::MAX;
    for at in (0..sentences.len()).rev() {
        let lead_in = lead_in(text, &sentences[at]);
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
            raise(&mut rest[0].frequencies, &above[at].frequencies);
        }
        // The parts of one heading do not stand in each other's way.
        let begins = at == 0 || sentences[at - 1].line != sentences[at].line;
        if let (Some(LeadIn::Heading(level)), true) = (lead_in, begins) {
            highest = highest.min(level);
        }
    }
}

fn lead_in(text: &str, sentence: &CountedSentence) -> Option<LeadIn> {
    let line = text[sentence.line..].trim_start();
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    if level > 0 && title.starts_with(char::is_whitespace) {
        return Some(LeadIn::Heading(level));
    }
    let words = text[sentence.range.clone()].trim_end_matches(['"', '”', '“', '»', '«', ')']);
    words.ends_with(['?', '？', '؟']).then_some(LeadIn::Question)
}

/// From the headers of Markdown tables to the rows that are asked for: those with a word of the question that the header lacks. A question
/// about the columns alone is answered by the header.
fn pass_on_headers(text: &str, weights: &[f32], sentences: &mut [CountedSentence]) {
    let headers = headers(text, sentences);
    let ends: Vec<usize> = headers.iter().skip(1).map(|next| next.start).chain([sentences.len()]).collect();
    for (header, end) in headers.into_iter().zip(ends) {
        let mut names = vec![0; weights.len()];
        for part in &sentences[header.clone()] {
            raise(&mut names, &part.frequencies);
        }
        let mut is_passed_on = false;
        let rows = sentences[header.end..end].iter_mut().take_while(|row| is_row(text, row));
        for row in rows.filter(|row| has_more(&row.frequencies, &names, weights)) {
            raise(&mut row.frequencies, &names);
            is_passed_on = true;
        }
        for part in &mut sentences[header] {
            part.is_passed_on |= is_passed_on;
        }
    }
}

/// The sentences of each line that stands above one like `|---|:-:|`.
fn headers(text: &str, sentences: &[CountedSentence]) -> Vec<Range<usize>> {
    let is_rule = |sentence: &CountedSentence| is_table_rule(&text[sentence.range.clone()]);
    let mut headers = Vec::new();
    for (at, pair) in sentences.windows(2).enumerate() {
        let [above, rule] = pair else { continue };
        if is_row(text, above) && !is_rule(above) && is_row(text, rule) && is_rule(rule) {
            let parts = sentences[..=at].iter().rev().take_while(|part| part.line == above.line).count();
            let end = at + 1;
            headers.push(end - parts..end);
        }
    }
    headers
}

fn is_row(text: &str, sentence: &CountedSentence) -> bool {
    text[sentence.line..].lines().next().is_some_and(|line| line.contains('|'))
}

/// Whether a row has a word of the question that the header lacks.
fn has_more(row: &[u32], header: &[u32], weights: &[f32]) -> bool {
    row.iter().zip(header).zip(weights).any(|((own, name), weight)| *own > 0 && *name == 0 && *weight > 0.0)
}

fn raise(frequencies: &mut [u32], others: &[u32]) {
    for (own, other) in frequencies.iter_mut().zip(others) {
        *own = (*own).max(*other);
    }
}
