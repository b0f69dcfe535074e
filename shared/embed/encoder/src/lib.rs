//! Encoders of the BERT family, in safe Rust, with the vector instructions that the processor turns out to have: from the numbers
//! of tokens to a vector of unit length ([`Encoder`]), or from those of two texts to how well the second answers the first
//! ([`CrossEncoder`]).
//!
//! A crate of its own, because it is the one place where tests spend their time unless it is optimised; it knows nothing of
//! texts, files' names or threads. `lectern_embed`'s module `local` does, and is the only one that calls it.

mod cross;
mod int8;
mod kernel;
mod linear;
mod math;
mod network;
mod shape;
#[cfg(test)]
mod tests;
mod weights;

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek},
};

pub use self::{
    cross::CrossEncoder,
    linear::WeightPrecision,
    network::EncoderScratch,
    shape::{ActivationFunction, ModelFamily, ModelShape, PoolingMode},
    weights::WeightsError,
};
use self::{int8::IntegerDot, linear::LinearLayout, network::EncoderNetwork};

/// The processor's instructions for which a network can be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// Registers of 512 bits, and products of bytes (AVX-512 with VNNI).
    Vnni,
    /// Registers of 512 bits (AVX-512).
    Wide,
    /// Registers of 256 bits (AVX2 with fused multiply-add), or of 128 bits but twice as many (NEON).
    Narrow,
    /// What every processor has.
    Plain,
}

impl InstructionSet {
    /// Those that this processor has, the fastest first.
    pub fn available() -> Vec<Self> {
        kernel::available().into_iter().map(|(instructions, _)| instructions).collect()
    }

    /// Whether products of whole numbers of eight bits are faster than those of `f32`.
    pub fn has_fast_int8(self) -> bool {
        IntegerDot::of(self).is_fast()
    }
}

/// Why tokens could not be embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// There are none, or more than the model has positions.
    #[error("a text of {0} tokens, where the model takes 1 to {1}")]
    Count(usize, usize),
    /// The model has no such token.
    #[error("the model's vocabulary has {1} tokens, and none with the number {0}")]
    Unknown(u32, usize),
}

/// Why a model could not compute.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The tokens are not what it takes.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The file with its token embeddings cannot be read.
    #[error("the model's token embeddings cannot be read: {0}")]
    Words(#[from] io::Error),
}

/// A model, ready to embed. Immutable: any number of threads may use it at once, each with a [`EncoderScratch`] of its own.
pub struct Encoder {
    layout: NetworkLayout,
    shape: ModelShape,
}

/// Registers in which a row of a panel of 16 numbers fits.
const NARROW: usize = if cfg!(target_arch = "aarch64") { 4 } else { 2 };

/// The network, laid out for the instructions of this processor. The numbers are the height of a block, the width of a panel,
/// the registers that a row of a panel takes, and how many panels a block is multiplied with at once: as many sums as there are
/// registers, but for those that the factors need.
enum NetworkLayout {
    Wide(EncoderNetwork<12, 16, 1, 2>),
    Narrow(EncoderNetwork<6, 16, NARROW, 1>),
    Plain(EncoderNetwork<4, 4, 4, 1>),
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl NetworkLayout {
    /// Reads the weights and lays them out for these instructions.
    fn load(
        instructions: InstructionSet,
        precision: WeightPrecision,
        file: &mut (impl Read + Seek),
        shape: &ModelShape,
    ) -> Result<Self, WeightsError> {
        let found = kernel::available().into_iter().find(|(available, _)| *available == instructions);
        let (_, arch) = found.ok_or(WeightsError::Instructions)?;
        let layout = match precision {
            WeightPrecision::F32 => LinearLayout::F32,
            WeightPrecision::Int8 => LinearLayout::Int8(IntegerDot::of(instructions)),
        };
        Ok(match instructions {
            InstructionSet::Vnni | InstructionSet::Wide => {
                Self::Wide(EncoderNetwork::load(arch, layout, file, shape)?)
            }
            InstructionSet::Narrow => Self::Narrow(EncoderNetwork::load(arch, layout, file, shape)?),
            InstructionSet::Plain => Self::Plain(EncoderNetwork::load(arch, layout, file, shape)?),
        })
    }

    fn move_words_to(&mut self, file: impl FnOnce(u64) -> io::Result<File>) -> io::Result<()> {
        match self {
            Self::Wide(network) => network.move_words_to(file),
            Self::Narrow(network) => network.move_words_to(file),
            Self::Plain(network) => network.move_words_to(file),
        }
    }
}

impl ModelShape {
    /// Refuses tokens that a model of this shape cannot take.
    fn check(&self, tokens: &[u32]) -> Result<(), TokensError> {
        let most = self.max_tokens();
        if tokens.is_empty() || tokens.len() > most {
            return Err(TokensError::Count(tokens.len(), most));
        }
        match tokens.iter().find(|token| **token as usize >= self.vocabulary) {
            Some(token) => Err(TokensError::Unknown(*token, self.vocabulary)),
            None => Ok(()),
        }
    }
}

impl Encoder {
    /// Reads the weights of a model (a `safetensors` file) and lays them out for this processor. Memory: what the model
    /// holds as `f32`, a quarter of that as `int8`, and one matrix more while it reads.
    ///
    /// # Errors
    /// The file is none, or does not hold a model of this shape.
    pub fn load(
        precision: WeightPrecision,
        file: &mut (impl Read + Seek),
        shape: &ModelShape,
    ) -> Result<Self, WeightsError> {
        Self::load_for(InstructionSet::available()[0], precision, file, shape)
    }

    /// The same for instructions that are not the best of this processor, to compare their results.
    ///
    /// # Errors
    /// As [`Encoder::load`]. Instructions that this processor lacks are [`WeightsError::Instructions`].
    pub fn load_for(
        instructions: InstructionSet,
        precision: WeightPrecision,
        file: &mut (impl Read + Seek),
        shape: &ModelShape,
    ) -> Result<Self, WeightsError> {
        Ok(Self { layout: NetworkLayout::load(instructions, precision, file, shape)?, shape: *shape })
    }

    /// Its shape.
    pub fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// Moves the token embeddings, which are half of a small model and most of a multilingual one, to an empty file that nobody else
    /// writes to, made for so many bytes. A text reads those of its own tokens from there.
    ///
    /// # Errors
    /// The file cannot be had or written; they stay in memory.
    pub fn move_words_to(&mut self, file: impl FnOnce(u64) -> io::Result<File>) -> io::Result<()> {
        self.layout.move_words_to(file)
    }

    /// The vector of a text, given its tokens with those that the model's tokenizer adds. Of unit length.
    ///
    /// Computes on this thread only, for some milliseconds. Memory grows with the tokens, not with their square.
    ///
    /// # Errors
    /// The tokens are none, too many, or not the model's; or the token embeddings cannot be read.
    pub fn embed(
        &self,
        tokens: &[u32],
        pooling: PoolingMode,
        scratch: &mut EncoderScratch,
    ) -> Result<Vec<f32>, EncodeError> {
        self.shape.check(tokens)?;
        let vector = match &self.layout {
            NetworkLayout::Wide(network) => network.embed(tokens, pooling, scratch),
            NetworkLayout::Narrow(network) => network.embed(tokens, pooling, scratch),
            NetworkLayout::Plain(network) => network.embed(tokens, pooling, scratch),
        };
        Ok(vector?)
    }
}
