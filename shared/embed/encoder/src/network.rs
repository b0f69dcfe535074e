//! The layers of a model, laid out for blocks of `M` outputs and panels of `N` tokens (see `kernel`).

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek},
};

use pulp::Arch;

use crate::{
    ActivationFunction, ModelShape, PoolingMode,
    int8::QuantizedPanels,
    kernel::{AttentionKernel, AttentionScratch, LayerNorm, LayerNormKernel, MatmulEpilogue},
    linear::{LinearLayer, LinearLayout, WordTable},
    weights::{TensorFile, WeightsError},
};

/// The memory of one computation, kept between texts so that it is not asked of the system for each. Shapes are those of the numbers
/// that are meant; they lie in panels of `N` tokens, `[tokens / N, rows, N]` (see `kernel`).
#[derive(Default)]
pub struct EncoderScratch {
    /// `[tokens, hidden]`: what goes from layer to layer.
    states: Vec<f32>,
    /// `[tokens, 3 * hidden]`: queries, keys and values.
    projected: Vec<f32>,
    /// `[tokens, hidden]`: what attention made of the values.
    mixed: Vec<f32>,
    /// `[tokens, inner]`: between the two products of a feed-forward part.
    inner: Vec<f32>,
    attention: AttentionScratch,
    quantized: QuantizedPanels,
    /// The row of a token that is read from a file.
    word: Vec<u8>,
}

impl fmt::Debug for EncoderScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncoderScratch").finish_non_exhaustive()
    }
}

/// A model, laid out.
pub(crate) struct EncoderNetwork<const M: usize, const N: usize, const C: usize, const P: usize> {
    arch: Arch,
    hidden: usize,
    heads: usize,
    inner: usize,
    activation: MatmulEpilogue,
    /// `[vocabulary, hidden]`: a row for each token of the vocabulary.
    words: WordTable,
    /// `[positions, hidden]`: a row for each position of a text; the first segment is already added.
    positions: Vec<f32>,
    /// `[segments - 1, hidden]`: what every further segment has more than the first.
    segments: Vec<f32>,
    norm: LayerNorm,
    layers: Vec<EncoderLayer<M>>,
}

struct EncoderLayer<const M: usize> {
    /// `[hidden, 3 * hidden]`: queries, keys and values in one matrix.
    projection: LinearLayer<M>,
    /// `[hidden, hidden]`.
    attended: LinearLayer<M>,
    attended_norm: LayerNorm,
    /// `[hidden, inner]`.
    inner: LinearLayer<M>,
    /// `[inner, hidden]`.
    outer: LinearLayer<M>,
    outer_norm: LayerNorm,
}

impl<const M: usize, const N: usize, const C: usize, const P: usize> EncoderNetwork<M, N, C, P> {
    /// Reads a model's weights and lays them out.
    pub(crate) fn load(
        arch: Arch,
        layout: LinearLayout,
        file: &mut (impl Read + Seek),
        shape: &ModelShape,
    ) -> Result<Self, WeightsError> {
        let mut tensors = TensorFile::open(file, shape.family)?;
        let (hidden, inner) = (shape.hidden, shape.inner);
        if hidden == 0 || inner == 0 || shape.heads == 0 || !hidden.is_multiple_of(shape.heads) {
            return Err(WeightsError::Shape(*shape));
        }
        let mut positions = tensors.matrix(&tensors.positions(), shape.positions, hidden)?;
        positions.drain(..(shape.first_position * hidden).min(positions.len()));
        let mut segments = match tensors.segments() {
            Some(name) => tensors.rows(&name, hidden)?,
            None => vec![0.0; hidden],
        };
        let mut further = segments.split_off(hidden.min(segments.len()));
        for position in positions.chunks_exact_mut(hidden) {
            position.iter_mut().zip(&segments).for_each(|(number, first)| *number += first);
        }
        for segment in further.chunks_exact_mut(hidden) {
            segment.iter_mut().zip(&segments).for_each(|(number, first)| *number -= first);
        }
        let words = tensors.word_table(layout, shape.vocabulary, hidden)?;
        let norm = tensors.norm(&tensors.first_norm(), hidden, shape.epsilon)?;
        let mut layers = Vec::new();
        for number in 0..shape.layers {
            let names = tensors.layer(number);
            layers.push(EncoderLayer {
                projection: tensors.linear(layout, &names.projections, hidden, hidden)?,
                attended: tensors.linear(layout, &[names.attended], hidden, hidden)?,
                attended_norm: tensors.norm(&names.attended_norm, hidden, shape.epsilon)?,
                inner: tensors.linear(layout, &[names.inner], hidden, inner)?,
                outer: tensors.linear(layout, &[names.outer], inner, hidden)?,
                outer_norm: tensors.norm(&names.outer_norm, hidden, shape.epsilon)?,
            });
        }
        let activation = match shape.activation {
            ActivationFunction::Gelu => MatmulEpilogue::Gelu,
            ActivationFunction::GeluTanh => MatmulEpilogue::GeluTanh,
            ActivationFunction::Relu => MatmulEpilogue::Relu,
        };
        Ok(Self {
            arch,
            hidden,
            heads: shape.heads,
            inner,
            activation,
            words,
            positions,
            segments: further,
            norm,
            layers,
        })
    }

    /// Moves the token embeddings to an empty file, made for so many bytes.
    pub(crate) fn move_words_to(&mut self, file: impl FnOnce(u64) -> io::Result<File>) -> io::Result<()> {
        self.words.move_to(file)
    }

    /// The vector of a text. The tokens are the model's, and no more than it has positions.
    pub(crate) fn embed(
        &self,
        tokens: &[u32],
        pooling: PoolingMode,
        scratch: &mut EncoderScratch,
    ) -> io::Result<Vec<f32>> {
        Ok(pool(self.encode(tokens, &[], scratch)?, tokens.len(), self.hidden, pooling))
    }

    /// The last state of the first token of texts that stand one behind the other. `segments` tells for each token which text it
    /// is of; those beyond the list are of the first.
    pub(crate) fn first_state(
        &self,
        tokens: &[u32],
        segments: &[u32],
        scratch: &mut EncoderScratch,
    ) -> io::Result<Vec<f32>> {
        let states = self.encode(tokens, segments, scratch)?;
        Ok(states.iter().take(self.hidden).map(|row| row[0]).collect())
    }

    /// The last states of all tokens.
    fn encode<'s>(
        &self,
        tokens: &[u32],
        segments: &[u32],
        scratch: &'s mut EncoderScratch,
    ) -> io::Result<&'s [[f32; N]]> {
        let panels = tokens.len().div_ceil(N);
        let hidden = self.hidden;
        let states = panels_of::<N>(&mut scratch.states, panels * hidden);
        let projected = panels_of::<N>(&mut scratch.projected, panels * 3 * hidden);
        let mixed = panels_of::<N>(&mut scratch.mixed, panels * hidden);
        let inner = panels_of::<N>(&mut scratch.inner, panels * self.inner);
        let quantized = &mut scratch.quantized;
        self.look_up(tokens, segments, states, &mut scratch.word)?;
        self.normalize(&self.norm, states);
        let width = hidden / self.heads;
        for layer in &self.layers {
            layer.projection.apply::<N, C, P>(self.arch, states, projected, MatmulEpilogue::Store, quantized);
            for head in 0..self.heads {
                self.arch.dispatch(AttentionKernel::<M, N, C, P> {
                    tokens: tokens.len(),
                    projected,
                    to: mixed,
                    hidden,
                    width,
                    head,
                    work: &mut scratch.attention,
                });
            }
            layer.attended.apply::<N, C, P>(self.arch, mixed, states, MatmulEpilogue::Add, quantized);
            self.normalize(&layer.attended_norm, states);
            layer.inner.apply::<N, C, P>(self.arch, states, inner, self.activation, quantized);
            layer.outer.apply::<N, C, P>(self.arch, inner, states, MatmulEpilogue::Add, quantized);
            self.normalize(&layer.outer_norm, states);
        }
        Ok(states)
    }

    /// Writes what each token starts with; zeros for those that only fill up the last panel.
    fn look_up(
        &self,
        tokens: &[u32],
        segments: &[u32],
        states: &mut [[f32; N]],
        word: &mut Vec<u8>,
    ) -> io::Result<()> {
        let hidden = self.hidden;
        for (tokens, (number, panel)) in tokens.chunks(N).zip(states.chunks_exact_mut(hidden).enumerate()) {
            panel.fill([0.0; N]);
            for (lane, token) in tokens.iter().enumerate() {
                let position = &self.positions[(number * N + lane) * hidden..][..hidden];
                self.words.write(*token as usize, panel, lane, word)?;
                for (row, position) in panel.iter_mut().zip(position) {
                    row[lane] += position;
                }
                if let Some(segment) = self.segment(segments.get(number * N + lane)) {
                    for (row, more) in panel.iter_mut().zip(segment) {
                        row[lane] += more;
                    }
                }
            }
        }
        Ok(())
    }

    /// What a token's segment has more than the first; none for the first, and in models that do not tell segments apart.
    fn segment(&self, number: Option<&u32>) -> Option<&[f32]> {
        let further = number?.checked_sub(1)? as usize;
        self.segments.chunks_exact(self.hidden).nth(further)
    }

    fn normalize(&self, norm: &LayerNorm, states: &mut [[f32; N]]) {
        self.arch.dispatch(LayerNormKernel { states, norm });
    }
}

fn panels_of<const N: usize>(memory: &mut Vec<f32>, rows: usize) -> &mut [[f32; N]] {
    memory.resize(rows * N, 0.0);
    memory.as_chunks_mut().0
}

/// One vector of unit length from the states of all tokens.
fn pool<const N: usize>(states: &[[f32; N]], tokens: usize, hidden: usize, pooling: PoolingMode) -> Vec<f32> {
    let count = match pooling {
        PoolingMode::Mean => tokens,
        PoolingMode::FirstToken => 1,
    };
    // Their sum has the direction of their mean, and only that is left in the end.
    let mut vector = vec![0.0_f32; hidden];
    for (number, panel) in states.chunks_exact(hidden).enumerate().take(count.div_ceil(N)) {
        let lanes = N.min(count - number * N);
        for (sum, row) in vector.iter_mut().zip(panel) {
            *sum += row[..lanes].iter().sum::<f32>();
        }
    }
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let scale = 1.0 / length.max(1e-12);
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
    for number in &mut vector {
        *number = (f64::from(*number) * scale) as f32;
    }
    vector
}
