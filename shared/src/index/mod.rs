//! The search index: which passages match a question. It is told passages generation by generation, and is asked for named
//! generations only, so it never decides what is visible; `search` does, from the relational store.

pub mod lexical;
mod local;
#[cfg(test)]
mod local_tests;
pub mod score;
pub mod segment;

use async_trait::async_trait;
use uuid::Uuid;

pub use local::LocalIndex;

use crate::{
    compute::Stopped,
    db::DbError,
    ids::{GenerationId, UserId},
    model::job::Claim,
};

/// Why the index could not do something.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The claim under which entries are added is no longer held.
    #[error("the claim is no longer held")]
    ClaimLost,
    /// A passage cannot be indexed.
    #[error("a passage cannot be indexed: {0}")]
    Rejected(#[from] segment::BuildError),
    /// The store under it failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A computation panicked, or the process is ending.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A passage to be indexed.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The text that is searched: the passage under a short header of its context.
    pub text: String,
    /// Its vector in the target's embedding space, of unit length.
    pub vector: Option<Vec<f32>>,
}

/// Where entries go.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The claim under which they are written.
    pub claim: &'a Claim,
    /// The generation that they make up.
    pub generation: GenerationId,
    /// The embedding space of the entries' vectors and its dimension; none when they have no vectors.
    pub space: Option<(Uuid, usize)>,
}

/// A vector and the embedding space in which it means something.
#[derive(Clone, Debug)]
pub struct SpaceVector {
    /// The space.
    pub space: Uuid,
    /// The vector, of unit length.
    pub vector: Vec<f32>,
}

/// A question to the index.
#[derive(Clone, Debug)]
pub struct IndexQuery {
    /// Whose passages.
    pub user: UserId,
    /// The generations that are searched; frequencies are counted over exactly these.
    pub generations: Vec<GenerationId>,
    /// The question.
    pub text: String,
    /// The question's vector in each embedding space that is searched.
    pub vectors: Vec<SpaceVector>,
    /// The most candidates of each kind.
    pub depth: usize,
}

/// A passage that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its generation.
    pub generation: GenerationId,
    /// Its number in the generation.
    pub ordinal: u32,
    /// How well it matches; comparable within one list only.
    pub score: f32,
}

/// What matches, best first, by words and by meaning.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// By words (BM25).
    pub lexical: Vec<Candidate>,
    /// By meaning (cosine), a list for each vector of the query, in their order.
    pub dense: Vec<Vec<Candidate>>,
}

/// Adds the entries of one generation, in order.
#[async_trait]
pub trait IndexWriter: Send {
    /// Adds the next entries.
    async fn add(&mut self, entries: Vec<Entry>) -> Result<(), IndexError>;
    /// Writes what is left, and returns how many entries the index now holds of the generation, counted exactly.
    async fn finish(self: Box<Self>) -> Result<u64, IndexError>;
}

/// A search index.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Begins to add a generation.
    fn writer<'a>(&'a self, target: Target<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError>;
    /// What matches best in the generations that the query names.
    async fn search(&self, query: IndexQuery) -> Result<Candidates, IndexError>;
    /// Removes everything of a user's generation; nothing happens when there is nothing.
    async fn remove(&self, user: UserId, generation: GenerationId) -> Result<(), IndexError>;
    /// Whether it can answer.
    async fn ping(&self) -> Result<(), IndexError>;
}
