//! Weights as they are kept: in `f32`, or in whole numbers of eight bits.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
};

use pulp::Arch;

use crate::{
    int8::{Int8Linear, IntegerDot, QuantizedPanels, quantized_row},
    kernel::{MatmulEpilogue, PackedLinear},
};

/// How exactly the weights of a model's products are kept. Norms, attention and everything between two products are `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightPrecision {
    /// As they are published.
    F32,
    /// Rounded to whole numbers of eight bits; so are the states that they are multiplied with.
    Int8,
}

/// A [`WeightPrecision`], and the instruction that it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LinearLayout {
    F32,
    Int8(IntegerDot),
}

/// A matrix of weights and its bias.
#[derive(Debug)]
pub(crate) enum LinearLayer<const M: usize> {
    F32(PackedLinear<M>),
    Int8(Int8Linear<M>),
}

impl<const M: usize> LinearLayer<M> {
    /// All weights zero.
    pub(crate) fn zeroed(layout: LinearLayout, inputs: usize, outputs: usize) -> Self {
        match layout {
            LinearLayout::F32 => Self::F32(PackedLinear::zeroed(inputs, outputs)),
            LinearLayout::Int8(dot) => Self::Int8(Int8Linear::zeroed(dot, inputs, outputs)),
        }
    }

    /// Sets the weights of the outputs from `first` on: `weights` holds a row of `inputs` for each number of `bias`.
    pub(crate) fn set(&mut self, first: usize, weights: &[f32], bias: &[f32]) {
        match self {
            Self::F32(linear) => linear.set(first, weights, bias),
            Self::Int8(linear) => linear.set(first, weights, bias),
        }
    }

    /// What it makes of panels.
    pub(crate) fn apply<const N: usize, const C: usize, const P: usize>(
        &self,
        arch: Arch,
        from: &[[f32; N]],
        to: &mut [[f32; N]],
        finish: MatmulEpilogue,
        quantized: &mut QuantizedPanels,
    ) {
        match self {
            Self::F32(linear) => linear.apply::<N, C, P>(arch, from, to, finish),
            Self::Int8(linear) => linear.apply::<N, C, P>(arch, from, to, finish, quantized),
        }
    }
}

/// The token embeddings, `[vocabulary, hidden]`: what each token of the vocabulary starts with, a row of bytes for each.
#[derive(Debug)]
pub(crate) struct WordTable {
    format: WordFormat,
    hidden: usize,
    rows: WordRows,
}

/// How a row of a [`WordTable`] is written, little-endian.
#[derive(Debug, Clone, Copy)]
enum WordFormat {
    /// `f32` × hidden.
    F32,
    /// What 1 stands for (`f32`), then `i8` × hidden.
    Int8,
}

/// Where the rows of a [`WordTable`] are.
#[derive(Debug)]
enum WordRows {
    Memory(Vec<u8>),
    File(File),
}

impl WordTable {
    /// A table of no rows yet, of `hidden` numbers each, which is not 0.
    pub(crate) fn with_capacity(layout: LinearLayout, vocabulary: usize, hidden: usize) -> Self {
        let format = match layout {
            LinearLayout::F32 => WordFormat::F32,
            LinearLayout::Int8(_) => WordFormat::Int8,
        };
        let rows = WordRows::Memory(Vec::with_capacity(vocabulary * format.row_bytes(hidden)));
        Self { format, hidden, rows }
    }

    /// Adds rows to a table in memory.
    pub(crate) fn extend(&mut self, more: &[f32]) {
        let WordRows::Memory(rows) = &mut self.rows else { return };
        match self.format {
            WordFormat::F32 => rows.extend(more.iter().flat_map(|number| number.to_le_bytes())),
            WordFormat::Int8 => {
                for row in more.chunks_exact(self.hidden) {
                    let (scale, row) = quantized_row(row);
                    rows.extend(scale.to_le_bytes());
                    rows.extend(row.into_iter().map(i8::cast_unsigned));
                }
            }
        }
    }

    /// Moves the rows from memory to an empty file, made for so many bytes. They stay where they are when they cannot be written.
    pub(crate) fn move_to(&mut self, file: impl FnOnce(u64) -> io::Result<File>) -> io::Result<()> {
        if let WordRows::Memory(rows) = &self.rows {
            let mut file = file(rows.len() as u64)?;
            file.write_all(rows)?;
            self.rows = WordRows::File(file);
        }
        Ok(())
    }

    /// Writes a token's row into one lane of a panel. `memory` is kept from one token to the next.
    pub(crate) fn write<const N: usize>(
        &self,
        token: usize,
        panel: &mut [[f32; N]],
        lane: usize,
        memory: &mut Vec<u8>,
    ) -> io::Result<()> {
        let length = self.format.row_bytes(self.hidden);
        let row = match &self.rows {
            WordRows::Memory(rows) => &rows[token * length..][..length],
            WordRows::File(file) => {
                memory.resize(length, 0);
                file.read_exact_at(memory, (token * length) as u64)?;
                memory
            }
        };
        match self.format {
            WordFormat::F32 => {
                for (to, number) in panel.iter_mut().zip(row.as_chunks().0) {
                    to[lane] = f32::from_le_bytes(*number);
                }
            }
            WordFormat::Int8 => {
                let (scale, row) = row.split_first_chunk().unwrap_or((&[0; 4], &[]));
                let scale = f32::from_le_bytes(*scale);
                for (to, number) in panel.iter_mut().zip(row) {
                    to[lane] = f32::from(number.cast_signed()) * scale;
                }
            }
        }
        Ok(())
    }
}

impl WordFormat {
    /// The bytes of a row of `hidden` numbers.
    const fn row_bytes(self, hidden: usize) -> usize {
        match self {
            Self::F32 => size_of::<f32>() * hidden,
            Self::Int8 => size_of::<f32>() + hidden,
        }
    }
}
