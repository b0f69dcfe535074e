//! Cross-encoders: the same network with a head on top, which reads two texts at once and says how well they go together. Source:
//! R. Nogueira and K. Cho, "Passage Re-ranking with BERT" (2019); heads as the families' sequence classifiers have them.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek},
};

use crate::{
    EncodeError, EncoderScratch, InstructionSet, ModelShape, NetworkLayout, WeightPrecision, WeightsError,
    weights::TensorFile,
};

/// A model that scores pairs of texts. Immutable: any number of threads may use it at once, each with an [`EncoderScratch`] of its
/// own.
pub struct CrossEncoder {
    layout: NetworkLayout,
    shape: ModelShape,
    head: ClassificationHead,
}

impl fmt::Debug for CrossEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrossEncoder").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// What is done to the inner numbers of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadActivation {
    Tanh,
    Relu,
}

/// Two products on top of the first token's state. Small beside a layer, so they are computed plainly, in f64.
struct ClassificationHead {
    /// `[hidden, hidden]`, and its bias.
    inner: (Vec<f32>, Vec<f32>),
    activation: HeadActivation,
    /// `[1, hidden]`, and its bias.
    outer: (Vec<f32>, Vec<f32>),
}

impl ClassificationHead {
    /// Reads the head of whichever family the file is of.
    fn load(file: &mut (impl Read + Seek), shape: &ModelShape) -> Result<Self, WeightsError> {
        let mut tensors = TensorFile::open(file, shape.family)?;
        let has = |name: &str| tensors.has(&format!("{name}.weight"));
        let (inner, activation, outer) = if has("pre_classifier") {
            // DistilBERT.
            ("pre_classifier".to_owned(), HeadActivation::Relu, "classifier")
        } else if has("classifier.dense") {
            // RoBERTa and its kin.
            ("classifier.dense".to_owned(), HeadActivation::Tanh, "classifier.out_proj")
        } else {
            (tensors.prefixed("pooler.dense"), HeadActivation::Tanh, "classifier")
        };
        let inner = tensors.dense(&inner, shape.hidden, shape.hidden)?;
        Ok(Self { inner, activation, outer: tensors.dense(outer, shape.hidden, 1)? })
    }

    /// The score of a state.
    fn apply(&self, state: &[f32]) -> f32 {
        let product = |row: &[f32], bias: f32, from: &[f64]| {
            row.iter().zip(from).map(|(weight, number)| f64::from(*weight) * number).sum::<f64>()
                + f64::from(bias)
        };
        let state: Vec<f64> = state.iter().copied().map(f64::from).collect();
        let (weights, biases) = &self.inner;
        let rows = weights.chunks_exact(state.len()).zip(biases);
        let inner: Vec<f64> = rows
            .map(|(row, bias)| match self.activation {
                HeadActivation::Tanh => product(row, *bias, &state).tanh(),
                HeadActivation::Relu => product(row, *bias, &state).max(0.0),
            })
            .collect();
        let (weights, biases) = &self.outer;
        #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
        let score = product(weights, biases.first().copied().unwrap_or_default(), &inner) as f32;
        score
    }
}

impl CrossEncoder {
    /// Reads the weights of a model (a `safetensors` file) and lays them out for this processor. Memory: what the model
    /// holds as f32, and one matrix more while it reads.
    ///
    /// # Errors
    /// The file is none, or does not hold a model of this shape with a head that gives one score.
    pub fn load(file: &mut (impl Read + Seek), shape: &ModelShape) -> Result<Self, WeightsError> {
        Self::load_for(InstructionSet::available()[0], file, shape)
    }

    /// The same for instructions that are not the best of this processor, to compare their results.
    ///
    /// # Errors
    /// As [`CrossEncoder::load`]. Instructions that this processor lacks are [`WeightsError::Instructions`].
    pub fn load_for(
        instructions: InstructionSet,
        file: &mut (impl Read + Seek),
        shape: &ModelShape,
    ) -> Result<Self, WeightsError> {
        let layout = NetworkLayout::load(instructions, WeightPrecision::F32, file, shape)?;
        Ok(Self { layout, shape: *shape, head: ClassificationHead::load(file, shape)? })
    }

    /// Moves the token embeddings to a file; see [`Encoder::move_words_to`](super::Encoder::move_words_to).
    ///
    /// # Errors
    /// The file cannot be had or written; they stay in memory.
    pub fn move_words_to(&mut self, file: impl FnOnce(u64) -> io::Result<File>) -> io::Result<()> {
        self.layout.move_words_to(file)
    }

    /// How well two texts go together, as the model's raw score (a logit: any number, the larger the better), given their tokens
    /// one behind the other with those that the model's tokenizer adds, and of each token the segment that it is of.
    ///
    /// Computes on this thread only, for some milliseconds. Memory grows with the tokens, not with their square.
    ///
    /// # Errors
    /// The tokens are none, too many, or not the model's; or the token embeddings cannot be read.
    pub fn score(
        &self,
        tokens: &[u32],
        segments: &[u32],
        scratch: &mut EncoderScratch,
    ) -> Result<f32, EncodeError> {
        self.shape.check(tokens)?;
        let state = match &self.layout {
            NetworkLayout::Wide(network) => network.first_state(tokens, segments, scratch),
            NetworkLayout::Narrow(network) => network.first_state(tokens, segments, scratch),
            NetworkLayout::Plain(network) => network.first_state(tokens, segments, scratch),
        }?;
        Ok(self.head.apply(&state))
    }
}
