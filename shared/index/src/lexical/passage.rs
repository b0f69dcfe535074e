//! How well one passage answers a question: which of its words it has, and in which sentence.

use std::{collections::HashMap, ops::Range};

use lectern_shared::model::language::Language;

use super::{
    AVG_LEN, LexicalQuery, TermId, TermStemmer, TokenizeMode, idf,
    language::detect_language,
    lead_in::{CountedSentence, pass_on},
    sentences, tokenize, weight,
};

/// A question put to one passage. The question and the passage's language are made out once, whatever is asked of it.
#[derive(Debug)]
pub struct PassageMatch<'a> {
    query: &'a LexicalQuery,
    text: &'a str,
    language: Language,
    /// What each word of the question counts here.
    weights: Vec<f32>,
    /// The question's words by their terms in the passage's language.
    slots: HashMap<TermId, Vec<usize>>,
}

impl LexicalQuery {
    /// Puts the question to a passage, by the same analysis as the index.
    pub fn matched<'a>(&'a self, text: &'a str) -> PassageMatch<'a> {
        let language = detect_language(text);
        let mut slots = HashMap::<TermId, Vec<usize>>::new();
        for (slot, term) in self.terms(language).into_iter().enumerate() {
            slots.entry(term).or_default().push(slot);
        }
        PassageMatch { query: self, text, language, weights: self.weights(&[language]), slots }
    }
}

impl PassageMatch<'_> {
    /// The share of the question's content words that the passage contains, from 0 to 1. Every word weighs the same, however rare. A
    /// question without words is 0.
    pub fn coverage(&self) -> f32 {
        let mut present = vec![false; self.query.len()];
        count(self.text, &mut TermStemmer::new(self.language), |term| {
            for slot in self.slots.get(&term).into_iter().flatten() {
                present[*slot] = true;
            }
        });
        self.query.coverage(&self.weights, |slot| present[slot])
    }

    /// The byte range of the sentence that matches the question best: BM25 among the sentences of the passage, so
    /// that words which every sentence has decide nothing. A heading, a question and the header of a table count for what they introduce.
    /// The first of equals; none if no content word occurs.
    pub fn best_sentence(&self) -> Option<Range<usize>> {
        let mut terms = TermStemmer::new(self.language);
        let mut counted: Vec<CountedSentence> = Vec::new();
        let mut containing = vec![0_u64; self.query.len()];
        for (start, end) in sentences(self.text) {
            let mut frequencies = vec![0_u32; self.query.len()];
            let length = count(&self.text[start..end], &mut terms, |term| {
                for slot in self.slots.get(&term).into_iter().flatten() {
                    frequencies[*slot] += 1;
                }
            });
            for (total, frequency) in containing.iter_mut().zip(&frequencies) {
                *total += u64::from(*frequency > 0);
            }
            let sentence = CountedSentence::new(self.text, counted.last(), start..end, frequencies, length);
            counted.push(sentence);
        }
        pass_on(self.text, &self.weights, &mut counted);
        let total = counted.len() as u64;
        let words: f32 = counted.iter().map(|sentence| scaled(sentence.length)).sum();
        let mean = (words / scaled(u32::try_from(counted.len()).unwrap_or(u32::MAX))).max(1.0);
        let mut best: Option<(f32, Range<usize>)> = None;
        for sentence in counted.into_iter().filter(|sentence| !sentence.is_passed_on) {
            let CountedSentence { range, frequencies, length, .. } = sentence;
            // The constant average is that of passages, so a sentence's length is brought to the same scale.
            let length = rounded(scaled(length) * AVG_LEN / mean);
            let score: f32 = frequencies
                .iter()
                .zip(&self.weights)
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
}

/// [`PassageMatch::best_sentence`] of one passage that is asked nothing else.
pub fn best_sentence(query: &str, text: &str) -> Option<Range<usize>> {
    LexicalQuery::new(query).matched(text).best_sentence()
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
