//! The model side of search: which model turns texts into vectors, what its vectors may be compared with, how its tokens
//! are counted, and which model puts passages into a better order. `search` asks for the vectors of questions and for the order, the
//! worker for the vectors of passages; neither knows which model it is.

mod earlier;
mod hub;
mod limited;
mod local;
mod models;
mod openai;
mod rerank;
mod retry;
#[cfg(test)]
mod scripted;
mod server;
mod slot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tokens;

use std::fmt;

use async_trait::async_trait;
use lectern_shared::model::space::EmbeddingSpace;

pub use self::{
    hub::{CachedModel, HubError, ModelHub, ModelId, PullProgress},
    local::{LocalEmbedder, LocalReranker, ModelError},
    models::{EmbeddingModels, OpenError, altered, at_hand},
    openai::{OpenAiConfig, OpenAiEmbedder},
    rerank::{
        PassageScore, RerankError, RerankModel, Reranker, ServerReranker, ServerRerankerConfig,
        reranker_at_hand,
    },
    slot::ModelState,
    tokens::approximate_tokens,
};
use lectern_shared::{compute::ComputeStopped, model::language::Language};

/// Why a model could not embed.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// It is away, too slow, or asked too often; the next try may succeed. In words for the operator, without secrets and
    /// without what was embedded.
    #[error("the embedding model failed: {0}")]
    Away(String),
    /// It will fail again until the operator changes something. In words for the operator.
    #[error("the embedding model cannot be used: {0}")]
    Refused(String),
    /// A computation panicked, or the process is ending.
    #[error(transparent)]
    Stopped(#[from] ComputeStopped),
}

/// A model that turns texts into vectors of unit length. Texts longer than its limit are cut at it.
#[async_trait]
pub trait Embedder: fmt::Debug + Send + Sync {
    /// What its vectors mean.
    fn space(&self) -> &EmbeddingSpace;
    /// The most tokens that a text may have, those that the model adds itself not counted.
    fn max_tokens(&self) -> usize;
    /// How many tokens a text has, those that the model adds itself not counted. Computes: never called on an async thread.
    fn count_tokens(&self, text: &str) -> usize;
    /// Whether its vectors of texts in this language mean something.
    fn knows(&self, language: Language) -> bool;
    /// A vector for each passage, in their order. An empty list gives an empty list.
    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError>;
    /// The vector of a question.
    async fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError>;
}
