//! What a text is cut at where nothing else divides it: sentences, words, and at last characters.

use std::ops::Range;

use icu_segmenter::{
    GraphemeClusterSegmenter, GraphemeClusterSegmenterBorrowed, SentenceSegmenter, SentenceSegmenterBorrowed,
    WordSegmenter, WordSegmenterBorrowed,
    options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions},
};

/// Knows the boundaries of Unicode.
pub(super) struct UnicodeSegmenters {
    graphemes: GraphemeClusterSegmenterBorrowed<'static>,
    words: WordSegmenterBorrowed<'static>,
    sentences: SentenceSegmenterBorrowed<'static>,
}

/// A unit, from the smallest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextUnit {
    Character,
    Grapheme,
    Word,
    Sentence,
}

impl TextUnit {
    pub(super) const ALL: [Self; 4] = [Self::Character, Self::Grapheme, Self::Word, Self::Sentence];
}

impl UnicodeSegmenters {
    pub(super) fn new() -> Self {
        Self {
            graphemes: GraphemeClusterSegmenter::new(),
            words: WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()),
            sentences: SentenceSegmenter::new(SentenceBreakInvariantOptions::default()),
        }
    }

    /// The units of a text, which begins at `base`.
    pub(super) fn units<'s>(
        &'s self,
        unit: TextUnit,
        text: &'s str,
        base: usize,
    ) -> Box<dyn Iterator<Item = Range<usize>> + 's> {
        match unit {
            TextUnit::Character => {
                Box::new(text.char_indices().map(move |(at, c)| base + at..base + at + c.len_utf8()))
            }
            TextUnit::Grapheme => Box::new(between(self.graphemes.segment_str(text), base)),
            TextUnit::Word => Box::new(between(self.words.segment_str(text), base)),
            TextUnit::Sentence => Box::new(between(self.sentences.segment_str(text), base)),
        }
    }
}

/// Bytes before a place that are looked at for the end of a character as people see it; hardly any has more.
const LONGEST_GRAPHEME: usize = 256;

/// The end of the last character as people see it that does not end beyond `most`; `most` itself if there is none nearby.
pub(super) fn last_grapheme_end(text: &str, most: usize) -> usize {
    let begins = text.floor_char_boundary(most.saturating_sub(LONGEST_GRAPHEME));
    // What follows tells whether one ends at `most`.
    let ends = text.ceil_char_boundary(most.saturating_add(1));
    let near = text.get(begins..ends).unwrap_or_default();
    let breaks = GraphemeClusterSegmenter::new().segment_str(near).map(|at| begins + at);
    breaks.take_while(|at| *at <= most).filter(|at| *at > begins).last().unwrap_or(most)
}

fn between(mut breaks: impl Iterator<Item = usize>, base: usize) -> impl Iterator<Item = Range<usize>> {
    let mut last = breaks.next();
    std::iter::from_fn(move || {
        let (start, end) = (last?, breaks.next()?);
        last = Some(end);
        Some(base + start..base + end)
    })
}
