//! How well one passage answers a question: which of its words it has, and in which sentence.

use std::{collections::HashMap, ops::Range};

use lectern_shared::model::language::Language;

use super::{
    AVG_LEN, LexicalQuery, TermId, TermStemmer, TokenizeMode, idf, language::detect_language, sentences,
    tokenize, weight,
};

/// The share of a question's content words that a text contains, from 0 to 1, by the same analysis as the
/// index. Every word weighs the same, however rare. A question without words is 0.
pub fn covered_terms(query: &str, text: &str) -> f32 {
    let query = LexicalQuery::new(query);
    let language = detect_language(text);
    let slots = slots_by_term(&query, language);
    let mut present = vec![false; query.len()];
    count(text, &mut TermStemmer::new(language), |term| {
        for slot in slots.get(&term).into_iter().flatten() {
            present[*slot] = true;
        }
    });
    query.coverage(&query.weights(&[language]), |slot| present[slot])
}

/// The byte range of the sentence that matches a question best: BM25 among the sentences of the passage, so
/// that words which every sentence has decide nothing. The first of equals; none if no content word occurs.
pub fn best_sentence(query: &str, text: &str) -> Option<Range<usize>> {
    let query = LexicalQuery::new(query);
    let language = detect_language(text);
    let weights = query.weights(&[language]);
    let slots = slots_by_term(&query, language);
    let mut terms = TermStemmer::new(language);
    let mut counted = Vec::new();
    let mut containing = vec![0_u64; query.len()];
    for (start, end) in sentences(text) {
        let mut frequencies = vec![0_u32; query.len()];
        let length = count(&text[start..end], &mut terms, |term| {
            for slot in slots.get(&term).into_iter().flatten() {
                frequencies[*slot] += 1;
            }
        });
        for (total, frequency) in containing.iter_mut().zip(&frequencies) {
            *total += u64::from(*frequency > 0);
        }
        counted.push((start..end, frequencies, length));
    }
    let total = counted.len() as u64;
    let words: f32 = counted.iter().map(|(_, _, length)| scaled(*length)).sum();
    let mean = (words / scaled(u32::try_from(counted.len()).unwrap_or(u32::MAX))).max(1.0);
    let mut best: Option<(f32, Range<usize>)> = None;
    for (range, frequencies, length) in counted {
        // The constant average is that of passages, so a sentence's length is brought to the same scale.
        let length = rounded(scaled(length) * AVG_LEN / mean);
        let score: f32 = frequencies
            .iter()
            .zip(&weights)
            .zip(&containing)
            .filter(|((frequency, _), _)| **frequency > 0)
            .map(|((frequency, factor), containing)| {
                factor * idf(total, *containing) * weight(*frequency, length)
            })
            .sum();
        if score > 0.0 && best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, range));
        }
    }
    best.map(|(_, range)| range)
}

#[allow(clippy::cast_precision_loss, reason = "word counts of a passage are far below 2^24")]
const fn scaled(count: u32) -> f32 {
    count as f32
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is meant"
)]
const fn rounded(length: f32) -> u32 {
    length as u32
}

fn slots_by_term(query: &LexicalQuery, language: Language) -> HashMap<TermId, Vec<usize>> {
    let mut slots = HashMap::<TermId, Vec<usize>>::new();
    for (slot, term) in query.terms(language).into_iter().enumerate() {
        slots.entry(term).or_default().push(slot);
    }
    slots
}

/// Calls `found` for every term of a text and returns its length in words.
fn count(text: &str, terms: &mut TermStemmer, mut found: impl FnMut(TermId)) -> u32 {
    let mut length = 0;
    tokenize(text, TokenizeMode::Document, &mut |token| {
        length += u32::from(token.kind.is_counted());
        let (term, unaccented) = terms.of_document(token.text);
        found(term);
        if let Some(term) = unaccented {
            found(term);
        }
    });
    length
}
