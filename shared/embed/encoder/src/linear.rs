//! Weights as they are kept: in `f32`, or in whole numbers of eight bits.

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

/// `[vocabulary, hidden]`: what each token of the vocabulary starts with.
#[derive(Debug)]
pub(crate) enum WordTable {
    F32 {
        rows: Vec<f32>,
        hidden: usize,
    },
    Int8 {
        rows: Vec<i8>,
        /// What 1 stands for, for each token.
        scales: Vec<f32>,
        hidden: usize,
    },
}

impl WordTable {
    /// A table of no rows yet, of `hidden` numbers each, which is not 0.
    pub(crate) fn with_capacity(layout: LinearLayout, vocabulary: usize, hidden: usize) -> Self {
        match layout {
            LinearLayout::F32 => Self::F32 { rows: Vec::with_capacity(vocabulary * hidden), hidden },
            LinearLayout::Int8(_) => Self::Int8 {
                rows: Vec::with_capacity(vocabulary * hidden),
                scales: Vec::with_capacity(vocabulary),
                hidden,
            },
        }
    }

    /// Adds rows.
    pub(crate) fn extend(&mut self, more: &[f32]) {
        match self {
            Self::F32 { rows, .. } => rows.extend_from_slice(more),
            Self::Int8 { rows, scales, hidden } => {
                for row in more.chunks_exact(*hidden) {
                    let (scale, row) = quantized_row(row);
                    scales.push(scale);
                    rows.extend(row);
                }
            }
        }
    }

    /// Writes a token's row into one lane of a panel.
    pub(crate) fn write<const N: usize>(&self, token: usize, panel: &mut [[f32; N]], lane: usize) {
        match self {
            Self::F32 { rows, hidden } => {
                for (to, number) in panel.iter_mut().zip(&rows[token * hidden..][..*hidden]) {
                    to[lane] = *number;
                }
            }
            Self::Int8 { rows, scales, hidden } => {
                let scale = scales[token];
                for (to, number) in panel.iter_mut().zip(&rows[token * hidden..][..*hidden]) {
                    to[lane] = f32::from(*number) * scale;
                }
            }
        }
    }
}
