//! Cross-encoders that run in this process.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use lectern_encoder::{CrossEncoder, EncodeError, EncoderScratch};
use lectern_shared::{compute::ComputePool, model::language::Language};
use parking_lot::Mutex;

use super::{
    ModelError, config::LocalModelConfig, languages::LanguageSet, prompts::EmbeddingPrompts,
    tokenizer::ModelTokenizer, weights,
};
use crate::{PassageScore, RerankError, Reranker};

/// A cross-encoder of the BERT family. Cheap to clone; clones share the weights and the bound on threads.
#[derive(Clone)]
pub struct LocalReranker {
    model: Arc<LoadedCrossEncoder>,
    /// As many pairs at once as were allowed, over all calls.
    pairs: ComputePool,
    threads: usize,
    /// What the operator knows better than the vocabulary tells.
    languages: Option<Arc<[Language]>>,
}

struct LoadedCrossEncoder {
    name: String,
    encoder: CrossEncoder,
    tokens: ModelTokenizer,
    languages: LanguageSet,
    /// Memory of earlier computations: no more of them than there ever were at once.
    scratch: Mutex<Vec<EncoderScratch>>,
}

impl fmt::Debug for LocalReranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalReranker")
            .field("model", &self.model.name)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl LocalReranker {
    /// Reads, checks and lays out a model's files: blocking, some tenths of a second for a small one. `name` is what people
    /// call it, `threads` the most pairs that are scored at once. `scratch_dir` is where the token embeddings are kept, in an unnamed
    /// file; in memory when there is none, or it cannot be written to.
    ///
    /// # Errors
    /// A file is missing or damaged, or the model is of a kind that is not known or gives no single score. In words for the
    /// operator.
    pub fn open(
        dir: &Path,
        name: &str,
        threads: usize,
        scratch_dir: Option<&Path>,
    ) -> Result<Self, ModelError> {
        let threads = threads.max(1);
        let config = LocalModelConfig::read(dir)?;
        let tokens = ModelTokenizer::read(dir, &config, &EmbeddingPrompts::default())?;
        let (mut encoder, _) = weights::read(dir, |file| CrossEncoder::load(file, &config.shape))?;
        tokens.check_vocabulary(config.shape.vocabulary)?;
        weights::keep_words(scratch_dir, |file| encoder.move_words_to(file));
        let languages = tokens.languages();
        let (name, scratch) = (name.to_owned(), Mutex::default());
        let model = LoadedCrossEncoder { name, encoder, tokens, languages, scratch };
        Ok(Self { model: Arc::new(model), pairs: ComputePool::new(threads), threads, languages: None })
    }

    /// The same, knowing these languages, whatever its vocabulary tells.
    #[must_use]
    pub fn knowing(self, languages: Vec<Language>) -> Self {
        Self { languages: Some(languages.into()), ..self }
    }
}

impl LoadedCrossEncoder {
    /// Computes on this thread.
    fn score(&self, question: &str, passage: &str) -> Result<f32, RerankError> {
        let (tokens, segments) = self.tokens.pair(question, passage).map_err(RerankError::Refused)?;
        let mut scratch = self.scratch.lock().pop().unwrap_or_default();
        let score = self.encoder.score(&tokens, &segments, &mut scratch);
        self.scratch.lock().push(scratch);
        score.map_err(|error| match error {
            EncodeError::Tokens(_) => RerankError::Refused(error.to_string()),
            EncodeError::Words(_) => RerankError::Away(error.to_string()),
        })
    }
}

impl Reranker for LocalReranker {
    fn name(&self) -> &str {
        &self.model.name
    }

    fn knows(&self, language: Language) -> bool {
        match &self.languages {
            Some(known) => known.contains(&language),
            None => self.model.languages.contains(language),
        }
    }

    fn score(
        &self,
        question: String,
        passages: Vec<String>,
        _within: Duration,
    ) -> BoxStream<'static, Result<PassageScore, RerankError>> {
        let (this, question) = (self.clone(), Arc::<str>::from(question));
        let threads = self.threads;
        // No pair is handed over before a thread is free for it: those that wait go with the caller.
        stream::iter(passages.into_iter().enumerate())
            .map(move |(place, passage)| {
                let (this, question) = (this.clone(), Arc::clone(&question));
                async move {
                    let model = Arc::clone(&this.model);
                    let score = this.pairs.run(move || model.score(&question, &passage)).await??;
                    Ok(PassageScore { place, score })
                }
            })
            .buffered(threads)
            .boxed()
    }
}
