//! How exactly a model computes: decided when it is opened, by what the processor can and what the model stands.

use std::io::{Read, Seek};

use lectern_encoder::{
    EncodeError, Encoder, EncoderScratch, InstructionSet, ModelShape, PoolingMode, WeightPrecision,
    WeightsError,
};
use lectern_shared::config::EmbeddingPrecision;

use super::{prompts::EmbeddingPrompts, tokenizer::ModelTokenizer};

/// The least cosine of a text's vector in eight bits to its vector in `f32` with which a model is used in eight bits.
const LEAST_COSINE: f64 = 0.995;

/// What both are asked: of the lengths and kinds of what users give, in several scripts.
const SAMPLES: [&str; 8] = [
    "harbour",
    "When does the harbour master record the arrival of a vessel?",
    "Quiet hours are from ten in the evening to seven in the morning. Bicycles belong in the cellar, never in the stairwell.",
    "error E1042: connection to 10.0.0.17:5432 timed out after 30000 ms (attempt 3 of 5)",
    "Die Heizung wird im Oktober eingeschaltet und bleibt bis zum Mai in Betrieb; Störungen sind dem Hausmeister zu melden.",
    "Le contrat est conclu pour une durée de deux ans et se renouvelle par tacite reconduction, sauf préavis de trois mois.",
    "東京の天気は晴れです。 明日は雨が降るでしょう。",
    "The board met on 14 March and approved the accounts for the year. Revenue rose by 8.4 % to 312 million, mostly from \
     maintenance contracts signed in the previous period, while the cost of materials fell slightly. Two members asked for a \
     review of the supplier in the north, whose deliveries had been late four times; the chair promised a report before the \
     summer. The dividend stays at 1.20 per share. The auditors had no objections, but noted that the inventory of spare parts \
     is counted only once a year, and that the new warehouse will need a second count to be insured as planned.",
];

/// What it takes to load a model's weights and to embed texts with them.
pub(super) struct EncoderLoader<'a> {
    pub(super) shape: &'a ModelShape,
    pub(super) tokens: &'a ModelTokenizer,
    pub(super) prompts: &'a EmbeddingPrompts,
    pub(super) pooling: PoolingMode,
}

impl EncoderLoader<'_> {
    /// Loads the weights in the precision asked for.
    ///
    /// # Errors
    /// The file does not hold the model.
    pub(super) fn load(
        &self,
        file: &mut (impl Read + Seek),
        wanted: EmbeddingPrecision,
    ) -> Result<(Encoder, WeightPrecision), WeightsError> {
        let mut load = |precision| Ok((Encoder::load(precision, file, self.shape)?, precision));
        let fast =
            InstructionSet::available().first().is_some_and(|instructions| instructions.has_fast_int8());
        match wanted {
            EmbeddingPrecision::Int8 => load(WeightPrecision::Int8),
            EmbeddingPrecision::Auto if fast => {
                let (exact, _) = load(WeightPrecision::F32)?;
                let wanted = self.samples(&exact);
                // Gone before the other is loaded: only one of them is ever in memory.
                drop(exact);
                let (rounded, precision) = load(WeightPrecision::Int8)?;
                let cosine = least_cosine(&wanted, &self.samples(&rounded));
                if cosine >= LEAST_COSINE {
                    tracing::debug!(cosine, "the embedding model computes in eight bits");
                    return Ok((rounded, precision));
                }
                drop(rounded);
                tracing::info!(cosine, "the embedding model computes in f32: it does not stand eight bits");
                load(WeightPrecision::F32)
            }
            EmbeddingPrecision::Auto | EmbeddingPrecision::F32 => load(WeightPrecision::F32),
        }
    }

    /// The vectors of the samples that the model's tokenizer can read.
    fn samples(&self, encoder: &Encoder) -> Vec<Result<Vec<f32>, EncodeError>> {
        let mut scratch = EncoderScratch::default();
        let tokens = SAMPLES.iter().filter_map(|text| self.tokens.of(&self.prompts.passage, text).ok());
        tokens.map(|tokens| encoder.embed(&tokens, self.pooling, &mut scratch)).collect()
    }
}

/// The least cosine of two vectors of unit length at the same place; 0 where one is missing.
fn least_cosine(wanted: &[Result<Vec<f32>, EncodeError>], found: &[Result<Vec<f32>, EncodeError>]) -> f64 {
    let cosine = |(wanted, found): (&Result<Vec<f32>, _>, &Result<Vec<f32>, _>)| match (wanted, found) {
        (Ok(wanted), Ok(found)) => {
            wanted.iter().zip(found).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        }
        _ => 0.0,
    };
    wanted.iter().zip(found).map(cosine).fold(1.0, f64::min)
}
