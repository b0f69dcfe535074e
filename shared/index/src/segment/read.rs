//! Reading segments, in place.

use bytes::Bytes;
use lectern_shared::model::language::Language;
use uuid::Uuid;

use super::{
    super::lexical::TermId,
    header::{self, HeaderError, SegmentHeader, SegmentLayout},
};

/// Why bytes are not a segment.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SegmentError {
    /// Shorter than a header, or not as long as the header says.
    #[error("the segment is cut off or has bytes too many")]
    Length,
    /// They begin otherwise.
    #[error("the bytes are not a segment")]
    Magic,
    /// Written by another version; to be rebuilt from the stored text.
    #[error("the segment has layout {layout} and analysis {analysis}, which this version does not read")]
    Version {
        /// The version of the layout.
        layout: u16,
        /// The version of the analysis.
        analysis: u16,
    },
    /// Some bytes have changed since it was written.
    #[error("the segment is damaged: its checksum does not match")]
    Checksum,
    /// The checksum matches and the content makes no sense.
    #[error("the segment is inconsistent: {0}")]
    Inconsistent(&'static str),
}

impl From<HeaderError> for SegmentError {
    fn from(error: HeaderError) -> Self {
        match error {
            HeaderError::Magic => Self::Magic,
            HeaderError::Version { layout, analysis } => Self::Version { layout, analysis },
            HeaderError::Flags => Self::Inconsistent("flags"),
        }
    }
}

/// A checked segment. Cheap to clone; clones share the bytes.
#[derive(Debug, Clone)]
pub struct Segment {
    bytes: Bytes,
    header: SegmentHeader,
    language: Language,
}

impl Segment {
    /// Checks a blob once, completely; nothing is copied. Numbers of vectors are covered by the checksum only.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, SegmentError> {
        let bytes = bytes.into();
        let head = bytes.first_chunk::<{ header::LENGTH }>().ok_or(SegmentError::Length)?;
        let header = SegmentHeader::read(head)?;
        let layout = SegmentLayout::of(header.terms, header.postings, header.chunks, header.dimension)
            .filter(|layout| *layout == header.layout)
            .ok_or(SegmentError::Inconsistent("section offsets"))?;
        if usize::try_from(layout.end).ok() != Some(bytes.len()) {
            return Err(SegmentError::Length);
        }
        if header::stored_checksum(head) != header::checksum(&bytes) {
            return Err(SegmentError::Checksum);
        }
        let language = Language::from_code(header.language).ok_or(SegmentError::Inconsistent("language"))?;
        if header.first_ordinal.checked_add(header.chunks).is_none() {
            return Err(SegmentError::Inconsistent("first ordinal"));
        }
        let segment = Self { bytes, header, language };
        segment.check_postings()?;
        Ok(segment)
    }

    fn check_postings(&self) -> Result<(), SegmentError> {
        let ascending = |all: &[[u8; 8]]| {
            all.array_windows().all(|[a, b]| u64::from_le_bytes(*a) < u64::from_le_bytes(*b))
        };
        if !ascending(self.terms()) {
            return Err(SegmentError::Inconsistent("order of terms"));
        }
        let starts = self.starts();
        if starts.first().map(|start| u32::from_le_bytes(*start)) != Some(0)
            || starts.last().map(|end| u32::from_le_bytes(*end)) != Some(self.header.postings)
            || !starts.array_windows().all(|[a, b]| u32::from_le_bytes(*a) < u32::from_le_bytes(*b))
        {
            return Err(SegmentError::Inconsistent("bounds of postings"));
        }
        for [start, end] in starts.array_windows() {
            let postings = self.slice(u32::from_le_bytes(*start), u32::from_le_bytes(*end));
            let last = postings.ordinals.last().map_or(0, |last| u16::from_le_bytes(*last));
            if u32::from(last) >= self.header.chunks
                || !postings
                    .ordinals
                    .array_windows()
                    .all(|[a, b]| u16::from_le_bytes(*a) < u16::from_le_bytes(*b))
            {
                return Err(SegmentError::Inconsistent("ordinals"));
            }
            if !postings.weights.iter().all(|weight| f32::from_le_bytes(*weight).is_finite()) {
                return Err(SegmentError::Inconsistent("weights"));
            }
        }
        Ok(())
    }

    /// How many passages it holds.
    pub const fn chunk_count(&self) -> u32 {
        self.header.chunks
    }

    /// The ordinal in the generation of its first passage.
    pub const fn first_ordinal(&self) -> u32 {
        self.header.first_ordinal
    }

    /// The language that its terms were made with.
    pub const fn language(&self) -> Language {
        self.language
    }

    /// Its length in bytes.
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// How many passages contain a term.
    #[cfg(test)]
    pub fn document_frequency(&self, term: TermId) -> u32 {
        self.bounds(term).map_or(0, |(start, end)| end - start)
    }

    /// The passages that contain a term; none if there are none.
    pub fn postings(&self, term: TermId) -> Option<TermPostings<'_>> {
        self.bounds(term).map(|(start, end)| self.slice(start, end))
    }

    /// Every term and the passages that contain it, by ascending term.
    pub fn all_postings(&self) -> impl Iterator<Item = (TermId, TermPostings<'_>)> {
        self.terms().iter().zip(self.starts().array_windows()).map(|(term, [start, end])| {
            let postings = self.slice(u32::from_le_bytes(*start), u32::from_le_bytes(*end));
            (TermId(u64::from_le_bytes(*term)), postings)
        })
    }

    /// The vectors, if its passages were embedded.
    pub fn dense(&self) -> Option<DenseView<'_>> {
        (self.header.dimension > 0).then(|| DenseView {
            rows: &self.bytes[self.header.layout.dense as usize..],
            dimension: self.header.dimension as usize,
            space: Uuid::from_bytes(self.header.space),
        })
    }

    fn bounds(&self, term: TermId) -> Option<(u32, u32)> {
        let index = self.terms().binary_search_by_key(&term.0, |id| u64::from_le_bytes(*id)).ok()?;
        match self.starts().get(index..index + 2)? {
            [start, end] => Some((u32::from_le_bytes(*start), u32::from_le_bytes(*end))),
            _ => None,
        }
    }

    fn slice(&self, start: u32, end: u32) -> TermPostings<'_> {
        let SegmentLayout { weights, ordinals, .. } = self.header.layout;
        let (start, end) = (start as usize, end as usize);
        let section =
            |at: u32, width: usize| &self.bytes[at as usize + start * width..at as usize + end * width];
        TermPostings {
            ordinals: section(ordinals, 2).as_chunks().0,
            weights: section(weights, 4).as_chunks().0,
        }
    }

    fn terms(&self) -> &[[u8; 8]] {
        self.bytes[header::LENGTH..self.header.layout.starts as usize].as_chunks().0
    }

    fn starts(&self) -> &[[u8; 4]] {
        self.bytes[self.header.layout.starts as usize..self.header.layout.weights as usize].as_chunks().0
    }
}

/// The passages of a segment that contain one term.
#[derive(Debug, Clone, Copy)]
pub struct TermPostings<'a> {
    ordinals: &'a [[u8; 2]],
    weights: &'a [[u8; 4]],
}

impl<'a> TermPostings<'a> {
    /// How many there are: the term's document frequency in the segment.
    pub const fn len(self) -> usize {
        self.ordinals.len()
    }

    /// Never true of what [`Segment::postings`] returns.
    pub const fn is_empty(self) -> bool {
        self.ordinals.is_empty()
    }

    /// The local ordinal and the weight of each, by ascending ordinal.
    pub fn iter(self) -> impl Iterator<Item = (u16, f32)> + 'a {
        self.ordinals
            .iter()
            .zip(self.weights)
            .map(|(ordinal, weight)| (u16::from_le_bytes(*ordinal), f32::from_le_bytes(*weight)))
    }
}

/// The vectors of a segment: a matrix of a row for each passage.
#[derive(Debug, Clone, Copy)]
pub struct DenseView<'a> {
    rows: &'a [u8],
    dimension: usize,
    space: Uuid,
}

impl<'a> DenseView<'a> {
    /// The embedding space that the vectors are of.
    pub const fn space(self) -> Uuid {
        self.space
    }

    /// The numbers in a row.
    pub const fn dimension(self) -> usize {
        self.dimension
    }

    /// All numbers, row by row.
    pub fn numbers(self) -> impl ExactSizeIterator<Item = f32> + 'a {
        self.rows.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number))
    }

    /// The rows, by local ordinal.
    pub fn rows(self) -> impl ExactSizeIterator<Item = VectorView<'a>> + 'a {
        self.rows.chunks_exact(self.dimension * 4).map(VectorView)
    }
}

/// One stored vector.
#[derive(Debug, Clone, Copy)]
pub struct VectorView<'a>(&'a [u8]);

impl<'a> VectorView<'a> {
    /// Its numbers.
    pub fn iter(self) -> impl Iterator<Item = f32> + 'a {
        self.0.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number))
    }
}
