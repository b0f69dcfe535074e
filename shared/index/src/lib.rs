//! The search index: which passages match a question. It is told passages generation by generation, and is asked for named
//! generations only, so it never decides what is visible; `search` does, from the relational store.

pub mod audit;
#[cfg(test)]
mod contract_tests;
pub mod lexical;
mod local;
#[cfg(test)]
mod local_tests;
pub mod metered;
mod qdrant;
mod quantize;
pub mod score;
pub mod segment;
mod spill;

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use uuid::Uuid;

pub use local::LocalIndex;
pub use qdrant::QdrantIndex;
pub use spill::SpillSpace;

use lectern_db::{DbError, generations::RetiredGeneration};
use lectern_shared::{
    compute::ComputeStopped,
    ids::{GenerationId, WorkspaceId},
    metrics::CacheState,
    model::{job::JobClaim, language::Language},
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
    /// The search engine is away or too slow; in words for the operator.
    #[error("the search engine failed: {0}")]
    Engine(String),
    /// The search engine cannot be used as it is set up; in words for the operator.
    #[error("the search engine cannot be used: {0}")]
    Refused(String),
    /// What was kept of the index on the disk cannot be read.
    #[error("what was kept of the index on the disk cannot be read: {0}")]
    Spill(#[from] std::io::Error),
    /// A computation panicked, or the process is ending.
    #[error(transparent)]
    Stopped(#[from] ComputeStopped),
}

/// A passage to be indexed.
#[derive(Clone, Debug)]
pub struct IndexEntry {
    /// The text that is searched: the passage under a short header of its context.
    pub text: String,
    /// Its vector in the target's embedding space, of unit length.
    pub vector: Option<Vec<f32>>,
}

/// Where entries go.
#[derive(Clone, Copy, Debug)]
pub struct IndexTarget<'a> {
    /// The claim under which they are written.
    pub claim: &'a JobClaim,
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
    pub workspace: WorkspaceId,
    /// The generations that are searched; nothing of any other is found.
    pub generations: Vec<GenerationId>,
    /// The workspace's other generations that could be searched and are not now. With those searched they are all that is
    /// visible of the workspace's, so that an index may name whichever are fewer.
    pub others: Vec<GenerationId>,
    /// The languages of the passages that are searched, as their writer reported them, most frequent first.
    pub languages: Vec<Language>,
    /// The question.
    pub text: String,
    /// The question's vector in each embedding space that is searched.
    pub vectors: Vec<SpaceVector>,
    /// The most candidates of each kind.
    pub depth: usize,
}

/// A passage that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchCandidate {
    /// Its generation.
    pub generation: GenerationId,
    /// Its number in the generation.
    pub ordinal: u32,
    /// How well it matches; comparable within one list only.
    pub score: f32,
}

/// What matches, best first, by words and by meaning.
#[derive(Clone, Debug, Default)]
pub struct IndexCandidates {
    /// By words (BM25).
    pub lexical: Vec<SearchCandidate>,
    /// By meaning (cosine), a list for each vector of the query, in their order.
    pub dense: Vec<Vec<SearchCandidate>>,
}

/// What a generation has become in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedGeneration {
    /// How many entries the index now holds of it, counted exactly.
    pub entries: u64,
    /// How many of them are in each language, for an index that must be told so when it is asked.
    pub languages: Vec<(Language, u64)>,
}

/// Adds the entries of one generation, in order.
#[async_trait]
pub trait IndexWriter: Send {
    /// Adds the next entries.
    async fn add(&mut self, entries: Vec<IndexEntry>) -> Result<(), IndexError>;
    /// Writes what is left.
    async fn finish(self: Box<Self>) -> Result<IndexedGeneration, IndexError>;
}

/// What an index is, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStatus {
    /// Its name, such as `embedded`.
    pub kind: &'static str,
    /// The version of the engine, where it is one of its own.
    pub version: Option<String>,
}

/// How many entries there should be of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedEntries {
    /// The generation.
    pub generation: GenerationId,
    /// Its passages.
    pub entries: u64,
    /// The embedding space in which each of them has a vector; none when they have no vectors.
    pub space: Option<Uuid>,
}

/// How the entries of a generation are not as many as there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryMismatch {
    /// Some are missing, or all.
    Missing,
    /// There are more.
    Excess,
}

impl EntryMismatch {
    /// What `held` entries are where `expected` should be; none when that is right.
    fn of(held: u64, expected: u64) -> Option<Self> {
        match held.cmp(&expected) {
            std::cmp::Ordering::Less => Some(Self::Missing),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Self::Excess),
        }
    }
}

/// A place among all entries of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexCursor {
    /// In which collection.
    pub collection: String,
    /// From which point on; none at its beginning.
    pub point: Option<String>,
}

/// Some of the generations that an index holds entries of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldGenerations {
    /// Each once, and whose it is.
    pub generations: Vec<(WorkspaceId, GenerationId)>,
    /// Where those begin that follow; none at the end.
    pub next: Option<IndexCursor>,
}

/// A search index.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Begins to add a generation.
    fn writer<'a>(&'a self, target: IndexTarget<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError>;
    /// What matches best in the generations that the query names.
    async fn search(&self, query: IndexQuery) -> Result<IndexCandidates, IndexError>;
    /// Removes everything of a generation that will never answer again; nothing happens when there is nothing.
    async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError>;
    /// How many entries it holds of a workspace's generation, of all kinds, counted exactly.
    async fn count(&self, workspace: WorkspaceId, generation: GenerationId) -> Result<u64, IndexError>;
    /// Those of these generations of which it does not hold as many entries as it should, whoever's they are; counted exactly.
    async fn mismatched(
        &self,
        expected: &[ExpectedEntries],
    ) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError>;
    /// Some of the generations that it holds entries of, whoever's, from a place on, where entries can outlast the rows that tell of
    /// them; else none at all.
    async fn held(&self, from: Option<IndexCursor>) -> Result<HeldGenerations, IndexError>;
    /// How long after its claim was lost a writer's last entries may still arrive. None when the index itself refuses them.
    fn late_write_window(&self) -> Option<Duration>;
    /// What this process keeps of it at hand, part by part; nothing where a server does. What changes it may take a moment, so it is never
    /// called on an async thread.
    fn cached(&self) -> Vec<CacheState>;
    /// Whether it can answer.
    async fn ping(&self) -> Result<IndexStatus, IndexError>;
}
