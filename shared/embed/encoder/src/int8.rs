//! Products of matrices in whole numbers of eight bits: a quarter of the memory of `f32`, and four products in the time of one.
//!
//! A token's state is written as whole numbers from 0 to 255 between its own least and largest number, an output's weights as
//! whole numbers from -127 to 127 of their own largest one. With `x = least + step q` and `w = scale v`, a product is
//! `Σ w x = scale step Σ v q + least scale Σ v`: the first sum is of whole numbers and exact, the last one is known beforehand.
//! Panels and blocks are those of `kernel`, but that each number of a row is a word of 32 bits in which the next few inputs
//! lie together, as the processor wants them. Source of the method: B. Jacob et al., "Quantization and Training of Neural Networks
//! for Efficient Integer-Arithmetic-Only Inference" (2018), with a scale for each token and each output.

#![expect(clippy::inline_always, reason = "it must be compiled into the function for each kind of processor")]
#![expect(
    clippy::cast_precision_loss,
    reason = "sums are of the size of what they stand for, and are rounded like it"
)]
#![expect(clippy::cast_possible_truncation, reason = "rounded and within eight bits")]

mod dot;

use pulp::{Arch, Simd, WithSimd};

pub(crate) use self::dot::IntegerDot;
use crate::kernel::MatmulEpilogue;

/// A matrix of weights in eight bits and its bias, laid out for [`Int8MatmulKernel`].
#[derive(Debug)]
pub(crate) struct Int8Linear<const M: usize> {
    dot: IntegerDot,
    inputs: usize,
    outputs: usize,
    /// Blocks one after another, a row for each word of inputs.
    blocks: Vec<[i32; M]>,
    known: Vec<OutputNumbers<M>>,
}

/// What is known of each output of a block.
#[derive(Debug, Clone)]
pub(crate) struct OutputNumbers<const M: usize> {
    /// What a weight of 1 stands for.
    scale: [f32; M],
    /// What the sum of the output's weights stands for.
    sum: [f32; M],
    bias: [f32; M],
}

impl<const M: usize> Int8Linear<M> {
    /// All weights zero.
    pub(crate) fn zeroed(dot: IntegerDot, inputs: usize, outputs: usize) -> Self {
        let blocks = outputs.div_ceil(M);
        let zero = OutputNumbers { scale: [0.0; M], sum: [0.0; M], bias: [0.0; M] };
        Self {
            dot,
            inputs,
            outputs,
            blocks: vec![[0; M]; blocks * dot.words(inputs)],
            known: vec![zero; blocks],
        }
    }

    /// Sets the weights of the outputs from `first` on: `weights` holds a row of `inputs` for each number of `bias`.
    pub(crate) fn set(&mut self, first: usize, weights: &[f32], bias: &[f32]) {
        let depth = self.dot.words(self.inputs);
        for ((output, row), bias) in
            (first..self.outputs).zip(weights.chunks_exact(self.inputs.max(1))).zip(bias)
        {
            let (block, place) = (output / M, output % M);
            let (scale, numbers) = quantized_row(row);
            let known = &mut self.known[block];
            known.scale[place] = scale;
            known.sum[place] = scale * numbers.iter().map(|number| i32::from(*number)).sum::<i32>() as f32;
            known.bias[place] = *bias;
            let words = self.blocks[block * depth..].iter_mut();
            for (to, numbers) in words.zip(numbers.chunks(self.dot.inputs_of_a_word())) {
                to[place] = self.dot.word(numbers);
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
        quantized: &mut QuantizedPanels,
    ) {
        let QuantizedPanels { words, least, step } = quantized;
        let depth = self.dot.words(self.inputs);
        let panels = from.len() / self.inputs.max(1);
        words.resize(panels * depth * N, 0);
        least.resize(panels * N, 0.0);
        step.resize(panels * N, 0.0);
        let (words, _) = words.as_chunks_mut::<N>();
        let (least, _) = least.as_chunks_mut::<N>();
        let (step, _) = step.as_chunks_mut::<N>();
        let (inputs, dot) = (self.inputs, self.dot);
        arch.dispatch(QuantizeKernel { dot, inputs, from, words, least, step });
        let from = PanelNumbers { words, least, step };
        arch.dispatch(Int8MatmulKernel::<M, N, C, P> { linear: self, from, to, finish });
    }
}

/// A row of numbers as whole ones from -127 to 127, and what 1 stands for.
pub(crate) fn quantized_row(row: &[f32]) -> (f32, Vec<i8>) {
    let largest = row.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let factor = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    (largest / 127.0, row.iter().map(|number| (number * factor).round() as i8).collect())
}

/// Memory for the panels that a product is made of, as [`PanelNumbers`].
#[derive(Debug, Default)]
pub(crate) struct QuantizedPanels {
    words: Vec<i32>,
    least: Vec<f32>,
    step: Vec<f32>,
}

/// Panels in eight bits.
struct PanelNumbers<'a, const N: usize> {
    /// `[tokens / N, words, N]`.
    words: &'a [[i32; N]],
    /// `[tokens / N, N]`: what 0 stands for.
    least: &'a [[f32; N]],
    /// `[tokens / N, N]`: how much more 1 stands for.
    step: &'a [[f32; N]],
}

/// One panel of them.
#[derive(Clone, Copy)]
pub(crate) struct Int8Panel<'a, const N: usize> {
    words: &'a [[i32; N]],
    least: &'a [f32; N],
    step: &'a [f32; N],
}

/// Writes panels in eight bits.
struct QuantizeKernel<'a, const N: usize> {
    dot: IntegerDot,
    inputs: usize,
    from: &'a [[f32; N]],
    words: &'a mut [[i32; N]],
    least: &'a mut [[f32; N]],
    step: &'a mut [[f32; N]],
}

impl<const N: usize> WithSimd for QuantizeKernel<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { dot, inputs, from, words, least, step } = self;
        let known = least.iter_mut().zip(step);
        let words = words.chunks_exact_mut(dot.words(inputs));
        for ((panel, words), (least, step)) in from.chunks_exact(inputs).zip(words).zip(known) {
            let (mut low, mut high) = (panel[0], panel[0]);
            for row in panel {
                for j in 0..N {
                    low[j] = if row[j] < low[j] { row[j] } else { low[j] };
                    high[j] = if row[j] > high[j] { row[j] } else { high[j] };
                }
            }
            *least = low;
            let mut factor = [0.0; N];
            for j in 0..N {
                step[j] = (high[j] - low[j]) / 255.0;
                factor[j] = if step[j] > 0.0 { 1.0 / step[j] } else { 0.0 };
            }
            match dot.inputs_of_a_word() {
                2 => write_words::<2, N>(panel, words, &low, &factor),
                _ => write_words::<4, N>(panel, words, &low, &factor),
            }
        }
    }
}

/// Writes a panel in words of `W` numbers.
#[inline(always)]
fn write_words<const W: usize, const N: usize>(
    panel: &[[f32; N]],
    words: &mut [[i32; N]],
    least: &[f32; N],
    factor: &[f32; N],
) {
    // Adding this leaves no room for a fraction: the sum is rounded to a whole number, and its low bits are that number.
    const ROUND: f32 = 12_582_912.0;
    let whole = |number: f32, j: usize| ((number - least[j]) * factor[j] + ROUND).to_bits() & 0xff;
    let (full, rest) = panel.as_chunks::<W>();
    for (rows, word) in full.iter().zip(words.iter_mut()) {
        for j in 0..N {
            let mut bits = 0;
            for (place, row) in rows.iter().enumerate() {
                bits |= whole(row[j], j) << (32 / W * place);
            }
            word[j] = bits.cast_signed();
        }
    }
    if let Some(word) = words.get_mut(full.len()) {
        *word = [0; N];
        for (place, row) in rest.iter().enumerate() {
            for j in 0..N {
                word[j] |= (whole(row[j], j) << (32 / W * place)).cast_signed();
            }
        }
    }
}

struct Int8MatmulKernel<'a, const M: usize, const N: usize, const C: usize, const P: usize> {
    linear: &'a Int8Linear<M>,
    from: PanelNumbers<'a, N>,
    to: &'a mut [[f32; N]],
    finish: MatmulEpilogue,
}

impl<const M: usize, const N: usize, const C: usize, const P: usize> WithSimd
    for Int8MatmulKernel<'_, M, N, C, P>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { linear, from, to, finish } = self;
        let Int8Linear { dot, inputs, outputs, blocks, known } = linear;
        let depth = dot.words(*inputs);
        let whole = to.len() / outputs / P * P;
        let (to, last_to) = to.split_at_mut(whole * outputs);
        let (words, last_words) = from.words.split_at(whole * depth);
        // Weights outside, so that each is read from far away once a text; the panels of a text stay near.
        for (number, (block, known)) in blocks.chunks_exact(depth).zip(known).enumerate() {
            let rows = number * M..(number * M + M).min(*outputs);
            let together = words.chunks_exact(P * depth).zip(to.chunks_exact_mut(P * outputs));
            for (at, (words, to)) in together.enumerate() {
                let mut sums = [[[0.0; N]; M]; P];
                let panels = std::array::from_fn(|p| Int8Panel {
                    words: &words[p * depth..][..depth],
                    least: &from.least[at * P + p],
                    step: &from.step[at * P + p],
                });
                dot.tile::<M, N, C, P>(block, known, panels, &mut sums);
                for (sums, to) in sums.iter().zip(to.chunks_exact_mut(*outputs)) {
                    finish.write::<S, M, N>(sums, &mut to[rows.clone()]);
                }
            }
            let last = last_words.chunks_exact(depth).zip(last_to.chunks_exact_mut(*outputs));
            for (at, (words, to)) in (whole..).zip(last) {
                let mut sums = [[[0.0; N]; M]; 1];
                let panel = Int8Panel { words, least: &from.least[at], step: &from.step[at] };
                dot.tile::<M, N, C, 1>(block, known, [panel], &mut sums);
                finish.write::<S, M, N>(&sums[0], &mut to[rows.clone()]);
            }
        }
    }
}
