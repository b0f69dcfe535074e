//! Cutting text into passages, in time that grows with the text alone: [`split`] is called by `ingest`, on a thread of its own.
//!
//! What a text is made of is found out once, by `outline`; `cutter` goes along it and never looks further than a passage reaches.

mod blanks;
mod cutter;
mod outline;
mod sizing;
mod stretches;
#[cfg(test)]
mod tests;
mod units;

use std::ops::Range;

use lectern_parse::formats::markdown::front_matter;
use lectern_shared::model::document::{SplitterConfig, SplitterType};

pub(crate) use self::sizing::TokenCounter;
use self::{
    cutter::{PassageLimits, cut},
    outline::TextOutline,
    stretches::stretches,
    units::UnicodeSegmenters,
};

/// Tokens of a passage unless the document says otherwise.
const DEFAULT_TOKENS: usize = 400;
/// Tokens that a passage repeats of the one before it, unless the document says otherwise.
const DEFAULT_OVERLAP: usize = 60;

/// What a text is made of, which decides how it is cut when its document does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextShape {
    /// Sentences and paragraphs.
    Prose,
    /// Markdown: passages begin at headings where they can.
    Markdown,
    /// Rows, each of which says by itself what it is: nothing is gained by repeating one.
    Rows,
}

/// A passage of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassageRange {
    /// Where it stands, in bytes.
    pub(crate) range: Range<usize>,
    /// Where it stands, in code points.
    pub(crate) char_range: Range<u64>,
}

/// A line of more bytes has too few boundaries, or none at all.
const LONG_LINE: usize = 16 << 10;
/// Bytes that are at least one token, blanks or not: a passage of megabytes of blanks is none either.
const BYTES_PER_TOKEN: usize = 64;
/// Bytes that are at least one character.
const BYTES_PER_CHARACTER: usize = 4;

/// How passages are measured: what is larger than one by its bytes alone is not looked through.
enum PassageMeasure<'s> {
    /// In tokens.
    Tokens { capacity: usize, sizing: &'s TokenCounter },
    /// In characters: a passage of the `most` of them is as large as `capacity`. What has more tokens than the model takes in is too
    /// large as well; `capacity` is that number of tokens then, which is the smaller one, and decides how far is looked.
    Letters { most: usize, capacity: usize, tokens: Option<&'s TokenCounter> },
}

impl<'s> PassageMeasure<'s> {
    fn letters(letters: usize, sizing: &'s TokenCounter) -> Self {
        match sizing.most().filter(|most| *most < letters) {
            Some(tokens) => Self::Letters { most: letters, capacity: tokens, tokens: Some(sizing) },
            // So few characters never have too many tokens.
            None => Self::Letters { most: letters, capacity: letters, tokens: None },
        }
    }

    /// The largest size of a passage.
    fn capacity(&self) -> usize {
        match self {
            Self::Tokens { capacity, .. } | Self::Letters { capacity, .. } => *capacity,
        }
    }

    /// The room of a passage that repeats `overlap` of the one before, in the document's own measure.
    fn room(&self, overlap: usize) -> PassageLimits {
        let most_bytes = |size: usize, bytes: usize| (size + 1).saturating_mul(bytes) - 1;
        match self {
            Self::Tokens { capacity, .. } => {
                PassageLimits { capacity: *capacity, overlap, bytes: most_bytes(*capacity, BYTES_PER_TOKEN) }
            }
            Self::Letters { most, capacity, tokens } => {
                let by_tokens = tokens.map_or(usize::MAX, |_| most_bytes(*capacity, BYTES_PER_TOKEN));
                PassageLimits {
                    capacity: *capacity,
                    overlap: overlap * capacity / most,
                    bytes: most_bytes(*most, BYTES_PER_CHARACTER).min(by_tokens),
                }
            }
        }
    }

    fn size(&self, piece: &str) -> usize {
        match self {
            Self::Tokens { capacity, sizing } => {
                let least = piece.len() / BYTES_PER_TOKEN;
                if least > *capacity { least } else { sizing.count(piece).max(least) }
            }
            Self::Letters { most, capacity, tokens } => {
                let of = |characters: usize| characters.saturating_mul(*capacity).div_ceil(*most);
                let by_tokens = tokens.map_or(0, |_| piece.len() / BYTES_PER_TOKEN);
                let least = of(piece.len() / BYTES_PER_CHARACTER).max(by_tokens);
                if least > *capacity {
                    return least;
                }
                let letters = of(piece.chars().count()).max(least);
                match tokens {
                    Some(sizing) if letters <= *capacity => letters.max(sizing.count(piece)),
                    _ => letters,
                }
            }
        }
    }
}

/// Cuts `text` and hands out the passages in the order in which they end, as they are found; the same text and splitter always give
/// the same ones. Each is cut at the largest semantic unit that fits, and trimmed of white space; none is larger than the embedding
/// model takes in. One may begin before the one that it overlaps: of a single line indentation is white space, of several it is not.
///
/// `go_on` is asked before so many bytes are looked at.
///
/// # Errors
/// The first error of `go_on` or `each`, which ends the cutting.
pub(crate) fn split<E>(
    text: &str,
    shape: TextShape,
    splitter: Option<&SplitterConfig>,
    sizing: &TokenCounter,
    go_on: &dyn Fn(usize) -> Result<(), E>,
    mut each: impl FnMut(PassageRange) -> Result<(), E>,
) -> Result<(), E> {
    let (kind, size, overlap) = match splitter {
        None if shape == TextShape::Rows => (SplitterType::Token, DEFAULT_TOKENS, 0),
        None => (SplitterType::Token, DEFAULT_TOKENS, DEFAULT_OVERLAP),
        Some(splitter) => (splitter.r#type, splitter.chunk_size as usize, splitter.chunk_overlap as usize),
    };
    let bounded = match kind {
        SplitterType::Token => sizing.most().map_or(size, |most| size.min(most)),
        SplitterType::Recursive | SplitterType::Character | SplitterType::Markdown => size,
    };
    let capacity = bounded.max(1);
    let overlap = overlap.min(capacity - 1);
    let (measure, along_structure) = match kind {
        SplitterType::Token => (PassageMeasure::Tokens { capacity, sizing }, shape == TextShape::Markdown),
        SplitterType::Recursive | SplitterType::Character => {
            (PassageMeasure::letters(capacity, sizing), false)
        }
        SplitterType::Markdown => (PassageMeasure::letters(capacity, sizing), true),
    };
    let room = measure.room(overlap);
    let segmenters = UnicodeSegmenters::new();
    let mut characters = 0;
    let longest = LONG_LINE.max(measure.capacity().saturating_mul(8));
    for stretch in stretches(text, longest, along_structure) {
        let start = stretch.start;
        let stretch = text.get(stretch).unwrap_or_default();
        go_on(stretch.len())?;
        let outline = if along_structure {
            let metadata = if start == 0 { front_matter(stretch) } else { 0 };
            TextOutline::of_markdown(stretch, metadata)
        } else {
            TextOutline::of_lines(stretch)
        };
        let size = |piece: &str| go_on(piece.len()).map(|()| measure.size(piece));
        // How far characters have been counted, in bytes.
        let mut counted = 0;
        let mut before = characters;
        cut(stretch, &outline, &segmenters, room, size, |passage| {
            let count =
                |range: Range<usize>| stretch.get(range).map_or(0, |text| text.chars().count() as u64);
            if passage.start < counted {
                before -= count(passage.start..counted);
            } else {
                before += count(counted..passage.start);
            }
            counted = passage.start;
            let char_range = before..before + count(passage.clone());
            each(PassageRange { range: start + passage.start..start + passage.end, char_range })
        })?;
        characters += stretch.chars().count() as u64;
    }
    Ok(())
}
