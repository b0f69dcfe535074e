//! Writing segments.

use std::collections::HashMap;

use lectern_shared::model::language::Language;
use uuid::Uuid;

use super::{
    super::lexical::{TermId, TermStemmer, TokenizeMode, tokenize, weight},
    MAX_BYTES, MAX_CHUNKS,
    header::{self, SegmentHeader, SegmentLayout},
};
use crate::lexical::detect_language;

/// The most bytes of one passage's text.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// The most numbers in a vector.
const MAX_DIMENSION: usize = 65_536;

/// How much of a passage goes into the sample that the language is told from, in bytes.
const SAMPLE: usize = 512;

/// The first passages are all in the sample, later ones at this interval.
const SAMPLE_FIRST: usize = 16;
const SAMPLE_EVERY: usize = 128;

/// Why a passage cannot be added.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BuildError {
    /// [`SegmentBuilder::is_full`] was not heeded, or the ordinals of the generation are used up.
    #[error("the segment is full")]
    Full,
    /// A passage has a vector and the segment's others have none, or the other way round.
    #[error("either every passage of a segment has a vector or none")]
    MixedVectors,
    /// The vector is not one of the segment's space.
    #[error("a vector has {actual} numbers instead of {expected}")]
    Dimension {
        /// The dimension of the space.
        expected: usize,
        /// The length of the vector.
        actual: usize,
    },
    /// A number of the vector is infinite or not a number.
    #[error("a vector contains a number that is not finite")]
    NotFinite,
    /// The passage is longer than any splitter makes one.
    #[error("a passage of {0} bytes is too long")]
    TextTooLong(usize),
}

/// How often a passage uses a word.
struct WordOccurrence {
    /// The index of the word in the vocabulary.
    word: u32,
    passage: u16,
    frequency: u32,
}

/// Collects passages and writes their segment. The same passages give the same bytes, everywhere.
///
/// Each word is cut out once and stemmed once: while passages arrive only words are counted, because the
/// language is known when all of them are there.
#[derive(Default)]
pub struct SegmentBuilder {
    first_ordinal: u32,
    space: Option<(Uuid, usize)>,
    /// The words so far, one after the other, the end of each, and the index of each by the hash of the
    /// word: equal hashes would be equal terms in the end.
    vocabulary: String,
    ends: Vec<usize>,
    indices: HashMap<TermId, u32>,
    occurrences: Vec<WordOccurrence>,
    /// The length of each passage in words.
    lengths: Vec<u32>,
    dense: Vec<u8>,
    sample: String,
    scratch: Vec<u32>,
}

impl SegmentBuilder {
    /// A segment without vectors; `first_ordinal` is the ordinal in the generation of its first passage.
    pub fn new(first_ordinal: u32) -> Self {
        Self { first_ordinal, ..Self::default() }
    }

    /// A segment whose passages have vectors of an embedding space.
    pub fn with_space(first_ordinal: u32, space: Uuid, dimension: usize) -> Result<Self, BuildError> {
        if dimension == 0 || dimension > MAX_DIMENSION {
            return Err(BuildError::Dimension { expected: MAX_DIMENSION, actual: dimension });
        }
        Ok(Self { first_ordinal, space: Some((space, dimension)), ..Self::default() })
    }

    /// Adds the next passage: the text to index (with its context header) and its unit-length vector.
    /// After an error the segment is as it was.
    pub fn push(&mut self, text: &str, vector: Option<&[f32]>) -> Result<(), BuildError> {
        let passage = u16::try_from(self.lengths.len()).map_err(|_| BuildError::Full)?;
        if self.is_full() || self.first_ordinal.checked_add(u32::from(passage)).is_none() {
            return Err(BuildError::Full);
        }
        if text.len() > MAX_TEXT {
            return Err(BuildError::TextTooLong(text.len()));
        }
        match (vector, self.space) {
            (Some(vector), Some((_, expected))) if vector.len() != expected => {
                return Err(BuildError::Dimension { expected, actual: vector.len() });
            }
            (Some(vector), Some(_)) if !vector.iter().all(|number| number.is_finite()) => {
                return Err(BuildError::NotFinite);
            }
            (Some(vector), Some(_)) => {
                self.dense.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
            }
            (None, None) => {}
            _ => return Err(BuildError::MixedVectors),
        }
        if usize::from(passage) < SAMPLE_FIRST || usize::from(passage).is_multiple_of(SAMPLE_EVERY) {
            self.sample.push_str(&text[..text.floor_char_boundary(SAMPLE)]);
            self.sample.push('\n');
        }
        self.count_words(text, passage);
        Ok(())
    }

    fn count_words(&mut self, text: &str, passage: u16) {
        let mut length = 0;
        self.scratch.clear();
        tokenize(text, TokenizeMode::Document, &mut |token| {
            length += u32::from(token.kind.is_counted());
            let index = *self.indices.entry(TermId::of(token.text)).or_insert_with(|| {
                self.vocabulary.push_str(token.text);
                self.ends.push(self.vocabulary.len());
                narrow(self.ends.len() - 1)
            });
            self.scratch.push(index);
        });
        self.scratch.sort_unstable();
        self.occurrences.extend(self.scratch.chunk_by(|a, b| a == b).filter_map(|run| {
            Some(WordOccurrence { word: *run.first()?, passage, frequency: narrow(run.len()) })
        }));
        self.lengths.push(length);
    }

    /// Whether the next passage belongs into another segment.
    pub fn is_full(&self) -> bool {
        self.lengths.len() >= MAX_CHUNKS || self.estimated_len() >= MAX_BYTES
    }

    /// How many passages were added.
    pub const fn chunk_count(&self) -> usize {
        self.lengths.len()
    }

    /// Whether no passage was added.
    pub const fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// About the length of the blob, before stemming makes it a little shorter.
    const fn estimated_len(&self) -> usize {
        header::LENGTH + self.ends.len() * 12 + self.occurrences.len() * 6 + self.dense.len()
    }

    /// Writes the segment.
    pub fn finish(self) -> Vec<u8> {
        self.finish_with_language().0
    }

    /// Writes the segment, and tells the language that its terms were made with.
    pub fn finish_with_language(self) -> (Vec<u8>, Language) {
        let language = detect_language(&self.sample);
        let postings = self.postings(language);
        let terms = postings.chunk_by(|a, b| a.0 == b.0).count();
        let (space, dimension) = self.space.unwrap_or_default();
        let mut header = SegmentHeader {
            first_ordinal: self.first_ordinal,
            chunks: narrow(self.lengths.len()),
            language: u32::from(language.code()),
            terms: narrow(terms),
            postings: narrow(postings.len()),
            layout: SegmentLayout::default(),
            dimension: narrow(dimension),
            space: space.into_bytes(),
        };
        // The limits on passages, texts and dimensions keep every segment far below the 4 GiB of a layout.
        header.layout = SegmentLayout::of(header.terms, header.postings, header.chunks, header.dimension)
            .unwrap_or_default();
        let mut blob = Vec::with_capacity(header.layout.end as usize);
        header.write(&mut blob);
        for run in postings.chunk_by(|a, b| a.0 == b.0) {
            blob.extend(run.iter().take(1).flat_map(|(term, ..)| term.0.to_le_bytes()));
        }
        let mut start = 0_usize;
        blob.extend_from_slice(&0_u32.to_le_bytes());
        for run in postings.chunk_by(|a, b| a.0 == b.0) {
            start += run.len();
            blob.extend_from_slice(&narrow(start).to_le_bytes());
        }
        for (_, passage, frequency) in &postings {
            let length = self.lengths.get(usize::from(*passage)).copied().unwrap_or(0);
            blob.extend_from_slice(&weight(*frequency, length).to_le_bytes());
        }
        for (_, passage, _) in &postings {
            blob.extend_from_slice(&passage.to_le_bytes());
        }
        blob.resize(header.layout.dense as usize, 0);
        blob.extend_from_slice(&self.dense);
        header::seal(&mut blob);
        (blob, language)
    }

    /// Every term of every passage with its frequency, by term and passage.
    fn postings(&self, language: Language) -> Vec<(TermId, u16, u32)> {
        let mut terms = TermStemmer::new(language);
        let mut start = 0;
        let words: Vec<(TermId, Option<TermId>)> = self
            .ends
            .iter()
            .map(|end| {
                let word = &self.vocabulary[start..*end];
                start = *end;
                terms.of_document(word)
            })
            .collect();
        let mut postings = Vec::with_capacity(self.occurrences.len());
        for WordOccurrence { word, passage, frequency } in &self.occurrences {
            let (term, unaccented) = words[*word as usize];
            postings.push((term, *passage, *frequency));
            postings.extend(unaccented.map(|term| (term, *passage, *frequency)));
        }
        postings.sort_unstable();
        // Words with one stem are one term.
        postings.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 = kept.2.saturating_add(next.2);
            }
            same
        });
        postings
    }
}

/// Counts in a segment are bounded far below 2³²: see the limits at the top.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
