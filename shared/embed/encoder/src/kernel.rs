//! The arithmetic of the encoder: products of matrices, attention, normalisation.
//!
//! Everything is plain loops over arrays of fixed length, which the compiler turns into vector instructions; `pulp` finds out at
//! run time which of them this processor has, and runs the same loops compiled for these. None is assumed.
//!
//! Numbers are kept so that no loop has to gather them. A *panel* holds `N` tokens: a row for each number of their states, and
//! in each row the `N` tokens side by side. A *block* holds `M` outputs of a matrix of weights: a row for each input, and in
//! each row the `M` outputs side by side. A product of a block and a panel is `M` by `N` sums, which stay in registers (those of
//! `P` panels at once, each row of `C` registers), and its rows are rows of a panel again. What is done to one token never mixes with the next one's: tokens that only fill up the
//! last panel do no harm.

#![expect(clippy::inline_always, reason = "it must be compiled into the function for each kind of processor")]
#![expect(clippy::cast_precision_loss, reason = "widths of states are far below 2^24")]

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use archmage::SimdToken as _;
use pulp::{Arch, Simd, WithSimd};

use crate::{
    InstructionSet,
    math::{exp, gelu, gelu_tanh},
};

/// What this processor can run, the fastest first.
pub(crate) fn available() -> Vec<(InstructionSet, Arch)> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        let wide = pulp::x86::V4::try_new().map(Arch::V4);
        let vnni = wide.filter(|_| archmage::X64V4xToken::summon().is_some());
        found.extend(vnni.map(|arch| (InstructionSet::Vnni, arch)));
        found.extend(wide.map(|arch| (InstructionSet::Wide, arch)));
        found.extend(pulp::x86::V3::try_new().map(|simd| (InstructionSet::Narrow, Arch::V3(simd))));
    }
    #[cfg(target_arch = "aarch64")]
    found.extend(pulp::aarch64::Neon::try_new().map(|simd| (InstructionSet::Narrow, Arch::Neon(simd))));
    found.push((InstructionSet::Plain, Arch::Scalar));
    found
}

/// What is done to the sums of a product before they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatmulEpilogue {
    /// They replace what was there.
    Store,
    /// They are added to what was there.
    Add,
    /// They go through the function first.
    Gelu,
    /// Likewise.
    GeluTanh,
    /// Likewise.
    Relu,
}

/// A matrix of weights and its bias, laid out for [`MatmulKernel`].
#[derive(Debug)]
pub(crate) struct PackedLinear<const M: usize> {
    inputs: usize,
    outputs: usize,
    /// Blocks one after another, `inputs` rows each.
    blocks: Vec<[f32; M]>,
    bias: Vec<[f32; M]>,
}

impl<const M: usize> PackedLinear<M> {
    /// All weights zero.
    pub(crate) fn zeroed(inputs: usize, outputs: usize) -> Self {
        let blocks = outputs.div_ceil(M);
        Self { inputs, outputs, blocks: vec![[0.0; M]; blocks * inputs], bias: vec![[0.0; M]; blocks] }
    }

    /// Sets the weights of the outputs from `first` on: `weights` holds a row of `inputs` for each number of `bias`.
    pub(crate) fn set(&mut self, first: usize, weights: &[f32], bias: &[f32]) {
        let inputs = self.inputs;
        for ((output, row), bias) in (first..self.outputs).zip(weights.chunks_exact(inputs.max(1))).zip(bias)
        {
            let (block, place) = (output / M, output % M);
            self.bias[block][place] = *bias;
            for (to, weight) in self.blocks[block * inputs..].iter_mut().zip(row) {
                to[place] = *weight;
            }
        }
    }

    /// What it makes of panels.
    pub(crate) fn apply<const N: usize, const C: usize, const P: usize>(
        &self,
        arch: Arch,
        from: &[[f32; N]],
        to: &mut [[f32; N]],
        finish: MatmulEpilogue,
    ) {
        arch.dispatch(MatmulKernel::<M, N, C, P> { linear: self, from, to, finish });
    }
}

struct MatmulKernel<'a, const M: usize, const N: usize, const C: usize, const P: usize> {
    linear: &'a PackedLinear<M>,
    from: &'a [[f32; N]],
    to: &'a mut [[f32; N]],
    finish: MatmulEpilogue,
}

impl<const M: usize, const N: usize, const C: usize, const P: usize> WithSimd
    for MatmulKernel<'_, M, N, C, P>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { linear, from, to, finish } = self;
        let PackedLinear { inputs, outputs, blocks, bias } = linear;
        // Weights outside, so that each is read from far away once a text; the panels of a text stay near.
        for (number, (block, bias)) in blocks.chunks_exact(*inputs).zip(bias).enumerate() {
            let rows = number * M..(number * M + M).min(*outputs);
            let mut from = from.chunks_exact(P * inputs);
            let mut to = to.chunks_exact_mut(P * outputs);
            for (from, to) in (&mut from).zip(&mut to) {
                let panels = std::array::from_fn(|p| &from[p * inputs..][..*inputs]);
                let sums = tile::<S, M, N, C, P>(simd, block, panels, bias);
                for (sums, to) in sums.iter().zip(to.chunks_exact_mut(*outputs)) {
                    finish.write::<S, M, N>(sums, &mut to[rows.clone()]);
                }
            }
            let (from, to) = (from.remainder(), to.into_remainder());
            for (panel, to) in from.chunks_exact(*inputs).zip(to.chunks_exact_mut(*outputs)) {
                let [sums] = tile::<S, M, N, C, 1>(simd, block, [panel], bias);
                finish.write::<S, M, N>(&sums, &mut to[rows.clone()]);
            }
        }
    }
}

impl MatmulEpilogue {
    /// Writes the sums of one panel.
    #[inline(always)]
    pub(crate) fn write<S: Simd, const M: usize, const N: usize>(
        self,
        sums: &[[f32; N]; M],
        to: &mut [[f32; N]],
    ) {
        match self {
            Self::Store => write(sums, to, |_, sum| sum),
            Self::Add => write(sums, to, |old, sum| old + sum),
            Self::Gelu => write(sums, to, |_, sum| gelu::<S>(sum)),
            Self::GeluTanh => write(sums, to, |_, sum| gelu_tanh::<S>(sum)),
            Self::Relu => write(sums, to, |_, sum| larger(sum, 0.0)),
        }
    }
}

/// Writes as many of the sums as there are rows for.
#[inline(always)]
fn write<const N: usize>(sums: &[[f32; N]], to: &mut [[f32; N]], function: impl Fn(f32, f32) -> f32) {
    for (to, sums) in to.iter_mut().zip(sums) {
        for j in 0..N {
            to[j] = function(to[j], sums[j]);
        }
    }
}

/// A block times each of `P` panels, on top of a start for each output.
///
/// Said with vectors, where the compiler would mostly find them by itself: here everything depends on that. The sums stay in
/// registers as long as they are only ever named by numbers known beforehand; that is why they are not what is returned.
#[inline(always)]
fn tile<S: Simd, const M: usize, const N: usize, const C: usize, const P: usize>(
    simd: S,
    block: &[[f32; M]],
    panels: [&[[f32; N]]; P],
    start: &[f32; M],
) -> [[[f32; N]; M]; P] {
    let mut sums = [[[simd.splat_f32s(0.0); C]; P]; M];
    for i in 0..M {
        sums[i] = [[simd.splat_f32s(start[i]); C]; P];
    }
    // Of the same length, which spares looking at every step whether there is another row.
    let panels = panels.map(|panel| &panel[..block.len()]);
    for (k, weights) in block.iter().enumerate() {
        let mut states = [[simd.splat_f32s(0.0); C]; P];
        for p in 0..P {
            let (row, _) = S::as_simd_f32s(&panels[p][k]);
            states[p].copy_from_slice(row);
        }
        for i in 0..M {
            let weight = simd.splat_f32s(weights[i]);
            for p in 0..P {
                for j in 0..C {
                    sums[i][p][j] = simd.mul_add_e_f32s(weight, states[p][j], sums[i][p][j]);
                }
            }
        }
    }
    let mut rows = [[[0.0; N]; M]; P];
    for i in 0..M {
        for p in 0..P {
            let (row, _) = S::as_mut_simd_f32s(&mut rows[p][i]);
            row.copy_from_slice(&sums[i][p]);
        }
    }
    rows
}

/// The attention of one head: every token's mean of all tokens' values, weighted by how well its query fits their keys.
pub(crate) struct AttentionKernel<'a, const M: usize, const N: usize, const C: usize, const P: usize> {
    /// How many tokens there are.
    pub(crate) tokens: usize,
    /// Queries, then keys, then values of every head: panels of three times `hidden` rows.
    pub(crate) projected: &'a [[f32; N]],
    /// Where the head's means go: panels of `hidden` rows.
    pub(crate) to: &'a mut [[f32; N]],
    /// Numbers in a state.
    pub(crate) hidden: usize,
    /// Numbers of a head.
    pub(crate) width: usize,
    /// Which head.
    pub(crate) head: usize,
    /// Memory to work in.
    pub(crate) work: &'a mut AttentionScratch,
}

/// Memory for the attention of one head.
#[derive(Debug, Default)]
pub(crate) struct AttentionScratch {
    /// Blocks of keys: a row for each number of a key.
    keys: Vec<f32>,
    /// Blocks of a value's numbers: a row for each token.
    values: Vec<f32>,
    /// Of the queries of each panel at hand: a row for each key.
    scores: Vec<f32>,
}

impl<const M: usize, const N: usize, const C: usize, const P: usize> WithSimd
    for AttentionKernel<'_, M, N, C, P>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tokens, projected, to, hidden, width, head, work } = self;
        let first = head * width;
        work.keys.resize(tokens.div_ceil(M) * width * M, 0.0);
        work.values.resize(width.div_ceil(M) * tokens * M, 0.0);
        work.scores.resize(P * tokens * N, 0.0);
        let (keys, _) = work.keys.as_chunks_mut::<M>();
        let (values, _) = work.values.as_chunks_mut::<M>();
        let (scores, _) = work.scores.as_chunks_mut::<N>();
        for token in 0..tokens {
            let panel = &projected[token / N * 3 * hidden..];
            let lane = token % N;
            let block = &mut keys[token / M * width..][..width];
            for (to, from) in block.iter_mut().zip(&panel[hidden + first..]) {
                to[token % M] = from[lane];
            }
            let from = &panel[2 * hidden + first..][..width];
            for (block, from) in from.chunks(M).enumerate() {
                let to = &mut values[block * tokens + token];
                for (to, from) in to.iter_mut().zip(from) {
                    *to = from[lane];
                }
            }
        }
        let mut panels = projected.chunks_exact(P * 3 * hidden);
        let mut means = to.chunks_exact_mut(P * hidden);
        for (panels, to) in (&mut panels).zip(&mut means) {
            mean_values::<S, M, N, C, P>(simd, keys, values, scores, panels, to, first..first + width);
        }
        let (panels, to) = (panels.remainder(), means.into_remainder());
        for (panel, to) in panels.chunks_exact(3 * hidden).zip(to.chunks_exact_mut(hidden)) {
            mean_values::<S, M, N, C, 1>(simd, keys, values, scores, panel, to, first..first + width);
        }
    }
}

/// The attention of one head for the queries of `P` panels. `part` is where the head's numbers are in a state.
#[inline(always)]
fn mean_values<S: Simd, const M: usize, const N: usize, const C: usize, const P: usize>(
    simd: S,
    keys: &[[f32; M]],
    values: &[[f32; M]],
    scores: &mut [[f32; N]],
    projected: &[[f32; N]],
    to: &mut [[f32; N]],
    part: Range<usize>,
) {
    let width = part.len();
    let tokens = values.len() / width.div_ceil(M);
    let (hidden, zero) = (to.len() / P, [0.0; M]);
    let scale = 1.0 / (width as f32).sqrt();
    let queries = std::array::from_fn(|p| &projected[p * 3 * hidden..][part.clone()]);
    for (number, block) in keys.chunks_exact(width).enumerate() {
        let fits = tile::<S, M, N, C, P>(simd, block, queries, &zero);
        for (fits, scores) in fits.iter().zip(scores.chunks_exact_mut(tokens)) {
            write(fits, &mut scores[number * M..], |_, fit| fit);
        }
    }
    let mut shares = [[0.0; N]; P];
    for (shares, scores) in shares.iter_mut().zip(scores.chunks_exact_mut(tokens)) {
        *shares = exponentials::<S, N>(scores, scale);
    }
    let scores = std::array::from_fn(|p| &scores[p * tokens..][..tokens]);
    for (number, block) in values.chunks_exact(tokens).enumerate() {
        let sums = tile::<S, M, N, C, P>(simd, block, scores, &zero);
        for ((sums, shares), to) in sums.iter().zip(&shares).zip(to.chunks_exact_mut(hidden)) {
            let to = &mut to[part.clone()][number * M..];
            write(sums, to, |_, sum| sum);
            for row in to.iter_mut().take(M) {
                for j in 0..N {
                    row[j] *= shares[j];
                }
            }
        }
    }
}

/// Makes `e^(scale (score - largest score))` of each score. The answer is what makes their sum 1, for each token.
#[inline(always)]
fn exponentials<S: Simd, const N: usize>(scores: &mut [[f32; N]], scale: f32) -> [f32; N] {
    let mut most = [f32::NEG_INFINITY; N];
    for row in scores.iter() {
        for j in 0..N {
            most[j] = larger(row[j], most[j]);
        }
    }
    let mut sums = [0.0; N];
    for row in scores.iter_mut() {
        for j in 0..N {
            row[j] = exp::<S>((row[j] - most[j]) * scale);
            sums[j] += row[j];
        }
    }
    sums.map(|sum| 1.0 / sum)
}

/// The scale and shift of a normalisation, and what keeps it from dividing by zero.
#[derive(Debug)]
pub(crate) struct LayerNorm {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
    pub(crate) epsilon: f32,
}

/// Brings the state of each token to mean 0 and variance 1, scaled and shifted.
pub(crate) struct LayerNormKernel<'a, const N: usize> {
    pub(crate) states: &'a mut [[f32; N]],
    pub(crate) norm: &'a LayerNorm,
}

impl<const N: usize> WithSimd for LayerNormKernel<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let LayerNorm { scale, shift, epsilon } = self.norm;
        let part = 1.0 / scale.len() as f32;
        for panel in self.states.chunks_exact_mut(scale.len()) {
            let mut means = [0.0; N];
            for row in panel.iter() {
                for j in 0..N {
                    means[j] += row[j];
                }
            }
            means = means.map(|sum| sum * part);
            let mut squares = [0.0; N];
            for row in panel.iter_mut() {
                for j in 0..N {
                    row[j] -= means[j];
                    squares[j] += row[j] * row[j];
                }
            }
            let factors = squares.map(|sum| 1.0 / (sum * part + epsilon).sqrt());
            for ((row, scale), shift) in panel.iter_mut().zip(scale).zip(shift) {
                for j in 0..N {
                    row[j] = row[j] * factors[j] * scale + shift;
                }
            }
        }
    }
}

/// The larger of two numbers; unlike `f32::max` one instruction, because it does not care for what is no number.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
