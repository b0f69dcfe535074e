//! Models that run in this process, from their published files: sentence encoders, which the crate shows as an `Embedder`, and
//! cross-encoders, which it shows as a `Reranker`. They use `lectern-encoder` for the arithmetic and `ComputePool` for their threads,
//! and know nothing of documents.

mod config;
mod error;
mod languages;
mod precision;
mod prompts;
mod reranker;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tokenizer;
mod weights;

use std::{fmt, path::Path, sync::Arc};

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use lectern_encoder::{EncodeError, Encoder, EncoderScratch, PoolingMode, WeightPrecision};
use parking_lot::Mutex;

pub use self::{error::ModelError, reranker::LocalReranker};
use lectern_shared::{
    compute::ComputePool,
    config::EmbeddingPrecision,
    model::{language::Language, space::EmbeddingSpace},
};

use self::{
    config::LocalModelConfig, languages::LanguageSet, precision::EncoderLoader, prompts::EmbeddingPrompts,
    tokenizer::ModelTokenizer,
};
use super::{EmbedError, Embedder};

/// Part of every space: raised when vectors of the same files change their meaning.
const VERSION: u32 = 1;

/// A sentence encoder of the BERT family. Cheap to clone; clones share the weights and the bound on threads.
#[derive(Clone)]
pub struct LocalEmbedder {
    model: Arc<LoadedModel>,
    /// Passages: as many texts at once as were allowed, over all calls.
    passages: ComputePool,
    /// Questions do not queue behind passages.
    questions: ComputePool,
    threads: usize,
}

struct LoadedModel {
    encoder: Encoder,
    tokens: ModelTokenizer,
    pooling: PoolingMode,
    prompts: EmbeddingPrompts,
    languages: LanguageSet,
    space: EmbeddingSpace,
    precision: WeightPrecision,
    max_tokens: usize,
    /// Memory of earlier computations: no more of them than there ever were at once.
    scratch: Mutex<Vec<EncoderScratch>>,
}

impl fmt::Debug for LocalEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEmbedder")
            .field("model", &self.model.space.model)
            .field("space", &self.model.space.id)
            .field("precision", &self.model.precision)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl LocalEmbedder {
    /// Reads, checks and lays out a model's files: blocking, some tenths of a second for a small one. `name` is what people
    /// call it, `threads` the most passages that are embedded at once. `scratch_dir` is where the token embeddings are kept, in an
    /// unnamed file; in memory when there is none, or it cannot be written to.
    ///
    /// The precision is no part of the space: vectors of both are near enough to be compared (docs/decisions.md).
    ///
    /// # Errors
    /// A file is missing or damaged, or the model is of a kind that is not known. In words for the operator.
    pub fn open(
        dir: &Path,
        name: &str,
        threads: usize,
        precision: EmbeddingPrecision,
        scratch_dir: Option<&Path>,
    ) -> Result<Self, ModelError> {
        let threads = threads.max(1);
        let config = LocalModelConfig::read(dir)?;
        let prompts = EmbeddingPrompts::read(dir, &[name, &config.original_name])?;
        let tokens = ModelTokenizer::read(dir, &config, &prompts)?;
        let pooling = config::pooling(dir)?;
        tokens.check_vocabulary(config.shape.vocabulary)?;
        let loader = EncoderLoader { shape: &config.shape, tokens: &tokens, prompts: &prompts, pooling };
        let ((mut encoder, precision), weights) = weights::read(dir, |file| loader.load(file, precision))?;
        weights::keep_words(scratch_dir, |file| encoder.move_words_to(file));
        let shape = &config.shape;
        let facts: [(&str, &dyn fmt::Display); 10] = [
            ("kind", &"local"),
            ("encoder", &VERSION),
            ("weights", &weights),
            ("tokenizer", &tokens.hash()),
            (
                "shape",
                &format!(
                    "{:?} layers={} heads={} first={} epsilon={:e} {:?}",
                    shape.family,
                    shape.layers,
                    shape.heads,
                    shape.first_position,
                    shape.epsilon,
                    shape.activation
                ),
            ),
            ("pooling", &format!("{pooling:?}")),
            ("lower_case", &config.lower_case),
            ("question_prefix", &prompts.question),
            ("passage_prefix", &prompts.passage),
            ("max_tokens", &config.max_tokens),
        ];
        let space = EmbeddingSpace::new(name, shape.hidden, &facts);
        let max_tokens = tokens.passage_tokens();
        let languages = tokens.languages();
        let scratch = Mutex::default();
        let model = LoadedModel {
            encoder,
            tokens,
            pooling,
            prompts,
            languages,
            space,
            precision,
            max_tokens,
            scratch,
        };
        Ok(Self {
            model: Arc::new(model),
            passages: ComputePool::new(threads),
            questions: ComputePool::new(threads),
            threads,
        })
    }

    /// How exactly it computes.
    pub fn precision(&self) -> WeightPrecision {
        self.model.precision
    }
}

impl LoadedModel {
    /// Computes on this thread.
    fn embed(&self, prefix: &str, text: &str) -> Result<Vec<f32>, EmbedError> {
        let tokens = self.tokens.of(prefix, text).map_err(EmbedError::Refused)?;
        let mut scratch = self.scratch.lock().pop().unwrap_or_default();
        let vector = self.encoder.embed(&tokens, self.pooling, &mut scratch);
        self.scratch.lock().push(scratch);
        vector.map_err(|error| match error {
            EncodeError::Tokens(_) => EmbedError::Refused(error.to_string()),
            EncodeError::Words(_) => EmbedError::Away(error.to_string()),
        })
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn space(&self) -> &EmbeddingSpace {
        &self.model.space
    }

    fn max_tokens(&self) -> usize {
        self.model.max_tokens
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.model.tokens.count(text)
    }

    fn knows(&self, language: Language) -> bool {
        self.model.languages.contains(language)
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = vec![Vec::new(); texts.len()];
        let mut texts: Vec<_> = texts.into_iter().enumerate().collect();
        // The longest first: a long one begun last would have all other threads wait for it.
        texts.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
        // No text is handed over before a thread is free for it: those that wait go with the caller.
        let mut done = stream::iter(texts)
            .map(|(number, text)| {
                let model = Arc::clone(&self.model);
                async move {
                    let vector =
                        self.passages.run(move || model.embed(&model.prompts.passage, &text)).await??;
                    Ok::<_, EmbedError>((number, vector))
                }
            })
            .buffer_unordered(self.threads);
        while let Some((number, vector)) = done.try_next().await? {
            vectors[number] = vector;
        }
        Ok(vectors)
    }

    async fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let (model, text) = (Arc::clone(&self.model), text.to_owned());
        self.questions.run(move || model.embed(&model.prompts.question, &text)).await?
    }
}
