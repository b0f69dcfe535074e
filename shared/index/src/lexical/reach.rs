//! How much is quoted with the sentence that answers: a list with what introduces it, and what only two sentences say together.

use std::ops::Range;

use super::{
    counted::CountedSentence, lead_in::missing, sentences::MAX_SENTENCE_CHARS, titles::looks_like_title,
};

/// The bytes that are quoted for the best of the sentences, at most [`MAX_SENTENCE_CHARS`] unless it is longer itself. `weights` are those
/// of the words that are asked for.
pub(super) fn quoted(
    text: &str,
    sentences: &[CountedSentence],
    best: usize,
    weights: &[f32],
) -> Range<usize> {
    let sentence = &sentences[best];
    let list = with_list(text, sentences, best, weights);
    if list != sentence.range {
        return list;
    }
    let beside = |at: Option<usize>| sentences.get(at?).filter(|other| is_beside(text, sentence, other));
    // Of equals the one behind it.
    let others = [beside(best.checked_sub(1)), beside(best.checked_add(1))].into_iter().flatten();
    let adds = |other: &CountedSentence| missing(&sentence.frequencies, &other.own, weights);
    let other = others.filter(|other| adds(other) > 0).max_by_key(|other| adds(other));
    let together = other.map(|other| both(&sentence.range, &other.range));
    together.filter(|together| fits(text, together)).unwrap_or(list)
}

/// The sentence with the title that may say something by itself, right above it.
pub(super) fn with_title(text: &str, sentences: &[CountedSentence], best: usize) -> Range<usize> {
    let range = &sentences[best].range;
    title_of(text, sentences, best, false).map_or_else(|| range.clone(), |title| both(&title.range, range))
}

/// The sentence with the list that it introduces ("You need:"), or with all of the list that it is an item of, when nothing that is asked
/// for is in the item itself. A line that may be a title is quoted with the one right below it, since it may say something by itself.
fn with_list(text: &str, sentences: &[CountedSentence], best: usize, weights: &[f32]) -> Range<usize> {
    let sentence = &sentences[best];
    let mut range = sentence.range.clone();
    let behind = sentences.get(best + 1..).unwrap_or_default();
    let is_title = is_title_above(text, sentence, behind.first());
    let introduces = is_title || text[range.clone()].ends_with([':', '：']);
    let is_any = sentence.is_point(text) && !sentence.has_own_words(weights);
    if let Some(title) = title_of(text, sentences, best, is_any) {
        range.start = title.range.start;
    }
    if !introduces && !is_any {
        return range;
    }
    for (at, next) in behind.iter().enumerate() {
        let is_apart = line_breaks(text, range.end..next.range.start) > 1;
        let is_first = introduces && at == 0;
        let goes_on = next.is_point(text) || (is_first && is_title);
        if !goes_on || (is_apart && !is_first) || !fits(text, &both(&range, &next.range)) {
            break;
        }
        range.end = next.range.end;
    }
    range
}

/// The title that has passed its words on to a sentence: right above it, or above the list that it begins.
fn title_of<'s>(
    text: &str,
    sentences: &'s [CountedSentence],
    below: usize,
    is_list: bool,
) -> Option<&'s CountedSentence> {
    let title = sentences.get(below.checked_sub(1)?)?;
    let is_above = is_list || line_breaks(text, title.range.end..sentences[below].range.start) == 1;
    (title.is_passed_on && is_above && looks_like_title(&text[title.range.clone()])).then_some(title)
}

/// Whether a sentence is a line that may be a title, right above the line of another one.
fn is_title_above(text: &str, sentence: &CountedSentence, below: Option<&CountedSentence>) -> bool {
    let own = &text[sentence.range.clone()];
    let is_line = text[sentence.line.clone()].trim() == own;
    let is_above = below.is_some_and(|below| {
        below.paragraph != sentence.paragraph && line_breaks(text, sentence.range.end..below.range.start) == 1
    });
    is_line && is_above && looks_like_title(own)
}

/// Whether two sentences are read in one breath: of one paragraph, or of items of a list that follow each other.
fn is_beside(text: &str, one: &CountedSentence, other: &CountedSentence) -> bool {
    let between = one.range.end.min(other.range.end)..one.range.start.max(other.range.start);
    let are_items = || line_breaks(text, between) == 1 && one.is_point(text) && other.is_point(text);
    let is_text = other.row.is_none() && !other.is_passed_on;
    is_text && (one.paragraph == other.paragraph || are_items())
}

/// From the beginning of the first to the end of the last.
fn both(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    one.start.min(other.start)..one.end.max(other.end)
}

fn line_breaks(text: &str, between: Range<usize>) -> usize {
    text.get(between).unwrap_or_default().matches('\n').count()
}

fn fits(text: &str, range: &Range<usize>) -> bool {
    text[range.clone()].chars().count() <= MAX_SENTENCE_CHARS
}
