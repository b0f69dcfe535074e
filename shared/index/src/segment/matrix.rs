//! The vectors of a block.

use std::ops::Range;

use crate::quantize::{CodeMatrix, CodeRows};

/// Where rows are aligned to, in bytes: a line of the processor's caches, and its widest register.
const ALIGNMENT: usize = 64;

/// Vectors, row by row, the first one aligned, and their codes in eight bits.
#[derive(Debug)]
pub(super) struct VectorMatrix {
    numbers: Vec<f32>,
    /// Where the first row begins.
    start: usize,
    dimension: usize,
    codes: CodeMatrix,
}

impl VectorMatrix {
    pub(super) fn with_capacity(rows: usize, dimension: usize) -> Self {
        let length = rows * dimension;
        if length == 0 {
            return Self { numbers: Vec::new(), start: 0, dimension, codes: CodeMatrix::default() };
        }
        let most = ALIGNMENT / size_of::<f32>();
        let mut numbers: Vec<f32> = Vec::with_capacity(length + most);
        // Where it cannot be told, rows are not aligned, and nothing else changes.
        let start = Some(numbers.as_ptr().align_offset(ALIGNMENT)).filter(|start| *start < most).unwrap_or(0);
        numbers.resize(start, 0.0);
        Self { numbers, start, dimension, codes: CodeMatrix::with_capacity(rows, dimension) }
    }

    /// Adds vectors, number by number.
    pub(super) fn extend(&mut self, numbers: impl Iterator<Item = f32>) {
        let first = self.numbers.len();
        self.numbers.extend(numbers);
        self.codes.extend(&self.numbers[first..], self.dimension);
    }

    /// Adds rows of another of the same dimension.
    pub(super) fn copy(&mut self, other: &Self, rows: Range<u32>) {
        self.numbers.extend_from_slice(other.rows(rows.clone()));
        self.codes.copy(other.codes(rows));
    }

    /// These rows, one after the other; none where not all of them are there.
    pub(super) fn rows(&self, rows: Range<u32>) -> &[f32] {
        let at = |row: u32| self.start + row as usize * self.dimension;
        self.numbers.get(at(rows.start)..at(rows.end)).unwrap_or_default()
    }

    /// The codes of these rows.
    pub(super) fn codes(&self, rows: Range<u32>) -> CodeRows<'_> {
        self.codes.rows(rows.start as usize..rows.end as usize, self.dimension)
    }

    /// The memory that it takes, in bytes.
    pub(super) fn byte_len(&self) -> usize {
        self.numbers.capacity() * size_of::<f32>() + self.codes.byte_len()
    }
}
