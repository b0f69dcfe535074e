//! From text to weighted terms: the half of the search that works without a model.
//!
//! Both search back ends rank by the weights computed here, so a question is answered alike whether the
//! index is the embedded one or Qdrant. Text is normalised (NFKC, lower case), cut into words,
//! stemmed in the language of its segment and stripped of accents; what remains is
//! hashed to a [`TermId`].
//!
//! Short questions are often taken for the wrong language. Nothing here depends on such a guess: every
//! segment records the [`Language`] that its terms were made with, and a question is analysed once for each
//! language present among the segments searched. A wrong guess then costs a little stemming quality, never
//! a match, because the question is stemmed the same way as the text.
//!
//! Stop words are indexed, so that "The Who" and "to be or not to be" can be found; a question ignores its
//! stop words unless it consists of nothing else.

mod abbreviations;
mod counted;
mod fold;
mod language;
mod lead_in;
mod lines;
mod others;
mod passage;
mod query;
mod reach;
mod script;
mod sentences;
mod stop_words;
mod tag;
mod terms;
#[cfg(test)]
mod tests;
mod titles;
mod tokenize;
mod typing;

use std::collections::BTreeMap;

use lectern_shared::model::language::Language;

pub use self::stop_words::function_words;
pub use self::{
    language::{detect_language, question_language},
    passage::{PassageMatch, WordCoverage, best_sentence},
    query::LexicalQuery,
    sentences::{MAX_SENTENCE_CHARS, sentences},
    tag::language_tag,
    typing::{TypedWord, put_right},
};
pub(crate) use self::{
    terms::TermStemmer,
    tokenize::{LexicalToken, TokenKind, TokenizeMode, tokenize},
};

/// Terms are made by this version of the analysis. It must rise with every change after which a question does not find, or weighs
/// otherwise, what was indexed before: segments of another version are refused, and their documents found only when they are indexed
/// again. Terms that a text gets besides are none: earlier segments are found as they were.
pub const ANALYSIS_VERSION: u16 = 1;

/// How fast further occurrences of a term in a passage stop counting (BM25's k1).
///
/// Chosen with [`B`] and [`AVG_LEN`] by nDCG@10 over twelve collections in seven languages, from 216 settings. The three are two in
/// truth, since only k1·(1 − b) and k1·b / `AVG_LEN` count, and the best lie close together: these have the highest mean.
pub const K1: f32 = 1.5;

/// How much a passage's length discounts its terms, from 0 to 1 (BM25's b).
pub const B: f32 = 0.75;

/// The length of a typical passage in words.
///
/// A constant, not a statistic: with it a weight depends on its passage alone, so it can be stored, and
/// adding one document changes no other.
pub const AVG_LEN: f32 = 180.0;

/// The identity of a term: a 64-bit hash that is the same on every platform and in every release.
///
/// Terms are stored by hash only. Two terms collide with a probability of n²/2⁶⁵: about one chance in a
/// million for an index of five million different words. A collision would make one rare word match
/// another in the lexical ranking of one tenant, which is less than what stemming does on purpose; no text
/// is ever returned because of a hash, since passages are read from the database by their own ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(pub u64);

impl TermId {
    /// The term of an analysed (folded, stemmed) word: FNV-1a, then `MurmurHash3`'s finaliser so that every
    /// bit is as good as another.
    pub fn of(word: &str) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in word.as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Self(hash ^ (hash >> 33))
    }

    /// The upper half, for back ends whose sparse vectors have 32-bit indices. Collisions are then real
    /// but rare (about 1 % of the words in a vocabulary of 50 million); [`document_terms`] has distinct
    /// 64-bit ids, so a caller that narrows them adds up the weights of equal ones.
    pub const fn narrow(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The BM25 weight of a term that occurs `frequency` times in a passage of `length` words: everything but
/// the IDF, which belongs to the set of passages searched.
///
/// Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.
#[allow(clippy::cast_precision_loss, reason = "counts of words in one passage are far below 2^24")]
pub fn weight(frequency: u32, length: u32) -> f32 {
    let (tf, length) = (frequency as f32, length as f32);
    tf * (K1 + 1.0) / (tf + K1 * (1.0 - B + B * length / AVG_LEN))
}

/// The inverse document frequency of a term that `frequency` of `passages` contain. Always positive, by the 1 that is added before the
/// logarithm is taken, as Lucene does it.
#[allow(clippy::cast_precision_loss, reason = "the logarithm of a count needs no more than f64's 52 bits")]
#[allow(clippy::cast_possible_truncation, reason = "a logarithm of a u64 ratio is below 50")]
pub fn idf(passages: u64, frequency: u64) -> f32 {
    let missing = passages.saturating_sub(frequency) as f64;
    (1.0 + (missing + 0.5) / (frequency as f64 + 0.5)).ln() as f32
}

/// The terms of one passage with their weights, by ascending term: a sparse vector.
pub fn document_terms(text: &str, language: Language) -> Vec<(TermId, f32)> {
    let mut terms = TermStemmer::new(language);
    let mut counts = BTreeMap::<TermId, u32>::new();
    let mut length = 0;
    tokenize(text, TokenizeMode::Document, &mut |token| {
        length += u32::from(token.kind.is_counted());
        let (term, unaccented) = terms.of_document(token.text);
        *counts.entry(term).or_default() += 1;
        if let Some(term) = unaccented {
            *counts.entry(term).or_default() += 1;
        }
    });
    counts.into_iter().map(|(term, frequency)| (term, weight(frequency, length))).collect()
}
