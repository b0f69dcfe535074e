//! A model whose languages the operator knows better than its vocabulary tells.

use async_trait::async_trait;
use lectern_shared::model::{language::Language, space::EmbeddingSpace};

use super::{EmbedError, Embedder};

/// A model that is said to know certain languages.
#[derive(Debug)]
pub(super) struct LimitedEmbedder<E> {
    embedder: E,
    languages: Vec<Language>,
}

impl<E> LimitedEmbedder<E> {
    /// `embedder`, knowing `languages`.
    pub(super) fn new(embedder: E, languages: Vec<Language>) -> Self {
        Self { embedder, languages }
    }
}

#[async_trait]
impl<E: Embedder> Embedder for LimitedEmbedder<E> {
    fn space(&self) -> &EmbeddingSpace {
        self.embedder.space()
    }

    fn max_tokens(&self) -> usize {
        self.embedder.max_tokens()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.embedder.count_tokens(text)
    }

    fn knows(&self, language: Language) -> bool {
        self.languages.contains(&language)
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embedder.embed_passages(texts).await
    }

    async fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        self.embedder.embed_question(text).await
    }
}
