//! Segments: immutable pieces of the embedded index.
//!
//! A segment is one binary blob, stored with the generation it belongs to, with the lexical postings and,
//! where the passages were embedded, the vectors of up to [`MAX_CHUNKS`] passages. It is written once by
//! [`SegmentBuilder`] and read in place by [`Segment`], which trusts nothing before it has checked all of it.
//!
//! Layout, little-endian, every section right after the one before:
//!
//! | section | content |
//! |---|---|
//! | header | 80 bytes, see `header` |
//! | terms | `u64` × terms, ascending |
//! | starts | `u32` × (terms + 1): where each term's postings begin, and their end |
//! | weights | `f32` × postings |
//! | ordinals | `u16` × postings, ascending within a term |
//! | dense | zeros up to a multiple of 64 bytes, then `f32` × dimension × chunks, row by row |
//!
//! Ordinals are local to the segment; a passage's ordinal in its generation is `first_ordinal` more.

mod block;
mod build;
mod header;
mod matrix;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use self::block::distinct;
pub use self::{
    block::{BlockKind, BlockPart, MAX_ROWS, MergeSource, PostingsBlock},
    build::{BuildError, SegmentBuilder},
    read::{DenseView, Segment, SegmentError, TermPostings, VectorView},
};

/// The most passages in a segment.
pub const MAX_CHUNKS: usize = 4096;

/// A builder is full once its blob would be about as long as this, in bytes.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;
