//! How well one passage answers a question: which of its words it has, and in which sentence.

use std::{collections::HashMap, ops::Range};

use lectern_shared::model::language::Language;

use super::{
    AVG_LEN, LexicalQuery, TermId, TermStemmer, TokenizeMode, idf,
    language::detect_language,
    lead_in::{CountedSentence, HeadingsAbove, TableRow, pass_on, raise},
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
    /// What it stands under.
    above: Vec<HeadingsAbove<'a>>,
}

/// How much of a question a passage has: the shares of its content words that it contains, or the headings above it if it contains any, from
/// 0 to 1. Every word weighs the same, however rare. Of a question without words they are 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordCoverage {
    /// Of the question's own words.
    pub own: f32,
    /// Of these and those of the question that it goes on from, if it does.
    pub all: f32,
}

impl LexicalQuery {
    /// Puts the question to a passage, by the same analysis as the index.
    pub fn matched<'a>(&'a self, text: &'a str) -> PassageMatch<'a> {
        let language = detect_language(text);
        let mut slots = HashMap::<TermId, Vec<usize>>::new();
        for (slot, term) in self.terms(language).into_iter().enumerate() {
            slots.entry(term).or_default().push(slot);
        }
        let weights = self.weights(&[language]);
        PassageMatch { query: self, text, language, weights, slots, above: Vec::new() }
    }
}

impl<'a> PassageMatch<'a> {
    /// The same for a passage under headings, which its text has or not: those that hold from each of these bytes of it on, in order.
    #[must_use]
    pub fn under(mut self, headings: impl IntoIterator<Item = (usize, &'a [String])>) -> Self {
        let mut terms = TermStemmer::new(self.language);
        for (from, titles) in headings {
            let (frequencies, _) = self.frequencies(&titles.join("\n"), &mut terms);
            self.above.push(HeadingsAbove { from, titles, frequencies });
        }
        self
    }

    /// How much of the question the passage has.
    pub fn coverage(&self) -> WordCoverage {
        let (mut words, _) = self.frequencies(self.text, &mut TermStemmer::new(self.language));
        if !self.has_any(&words, self.query.len()) {
            return WordCoverage::default();
        }
        for above in &self.above {
            raise(&mut words, &above.frequencies);
        }
        let is_present = |slot: usize| words.get(slot).is_some_and(|frequency| *frequency > 0);
        let own = self.weights.get(..self.query.own_words()).unwrap_or_default();
        let covered = |weights: &[f32]| self.query.coverage(weights, is_present);
        WordCoverage { own: covered(own), all: covered(&self.weights) }
    }

    /// The byte range of the sentence that matches the question best: BM25 among the sentences of the passage, so
    /// that words which every sentence has decide nothing. A heading, a question and the header of a table count for what they introduce.
    /// The first of equals; none if no content word occurs.
    pub fn best_sentence(&self) -> Option<Range<usize>> {
        self.best_sentences().into_iter().next()
    }

    /// [`PassageMatch::best_sentence`], and where that is the row of a table whose columns alone are asked about, all of its rows in
    /// their order.
    pub fn best_sentences(&self) -> Vec<Range<usize>> {
        let mut terms = TermStemmer::new(self.language);
        let mut counted: Vec<CountedSentence> = Vec::new();
        let mut containing = vec![0_u64; self.query.len()];
        for (start, end) in sentences(self.text, self.language) {
            let (frequencies, length) = self.frequencies(&self.text[start..end], &mut terms);
            for (total, frequency) in containing.iter_mut().zip(&frequencies) {
                *total += u64::from(*frequency > 0);
            }
            let sentence = CountedSentence::new(self.text, counted.last(), start..end, frequencies, length);
            counted.push(sentence);
        }
        pass_on(self.text, &self.weights, &self.above, &mut counted);
        let Some(best) = self.best(&counted, &containing) else { return Vec::new() };
        let Some(TableRow { table, .. }) = &best.row else { return vec![best.range.clone()] };
        let rows = counted.iter().filter_map(|sentence| sentence.row.as_ref());
        let mut rows: Vec<_> = rows.filter(|row| row.table == *table).map(|row| row.line.clone()).collect();
        rows.dedup();
        rows
    }

    /// The best of the sentences; `containing` is how many have each word of the question.
    fn best<'s>(&self, counted: &'s [CountedSentence], containing: &[u64]) -> Option<&'s CountedSentence> {
        let total = counted.len() as u64;
        let words: f32 = counted.iter().map(|sentence| scaled(sentence.length)).sum();
        let mean = (words / scaled(u32::try_from(counted.len()).unwrap_or(u32::MAX))).max(1.0);
        let mut best: Option<(f32, &CountedSentence)> = None;
        let own = self.query.own_words();
        let is_about = |sentence: &&CountedSentence| self.has_any(&sentence.frequencies, own);
        for sentence in counted.iter().filter(|sentence| !sentence.is_passed_on).filter(is_about) {
            // The constant average is that of passages, so a sentence's length is brought to the same scale.
            let length = rounded(scaled(sentence.length) * AVG_LEN / mean);
            let score: f32 = sentence
                .frequencies
                .iter()
                .zip(&self.weights)
                .zip(containing)
                .filter(|((frequency, _), _)| **frequency > 0)
                .map(|((frequency, factor), containing)| {
                    factor * idf(total, *containing) * weight(*frequency, length)
                })
                .sum();
            if score > 0.0 && best.is_none_or(|(most, _)| score > most) {
                best = Some((score, sentence));
            }
        }
        best.map(|(_, sentence)| sentence)
    }

    /// Whether any of the first so many words of the question counts, and is there.
    fn has_any(&self, frequencies: &[u32], first: usize) -> bool {
        let mut words = frequencies.iter().zip(&self.weights).take(first);
        words.any(|(frequency, weight)| *frequency > 0 && *weight > 0.0)
    }

    /// How often a text has each word of the question, and how many words it has.
    fn frequencies(&self, text: &str, terms: &mut TermStemmer) -> (Vec<u32>, u32) {
        let mut frequencies = vec![0_u32; self.query.len()];
        let length = count(text, terms, |term| {
            for slot in self.slots.get(&term).into_iter().flatten() {
                frequencies[*slot] += 1;
            }
        });
        (frequencies, length)
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
