//! The embedded index: immutable segments of each generation in the relational store, searched in a cache of bounded
//! size. Exact, and transactional with everything else.
//!
//! A search whose generations are all in the cache asks the store nothing. Others bring in what is missing, if all that they
//! search fits into it: in memory, or what is too much for that in files, of which a search reads what it needs. What is too much
//! for both is read from the store in pieces and not kept.

mod arena;
mod cache;
mod hash;
mod read;
mod scan;
#[cfg(test)]
mod tests;
mod writer;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use lectern_db::{Db, checkup, generations::RetiredGeneration, index_segments};
use lectern_shared::{
    cache_budget::CacheBudget,
    compute::ComputePool,
    ids::{GenerationId, WorkspaceId},
    metrics::CacheState,
};

use self::{
    arena::ResolvedBlocks,
    cache::IndexCache,
    read::KeepPolicy,
    scan::{RankedHits, ScanQuery},
    writer::LocalIndexWriter,
};
use super::{
    EntryMismatch, ExpectedEntries, HeldGenerations, IndexCandidates, IndexCursor, IndexError, IndexQuery,
    IndexStatus, IndexTarget, IndexWriter, SearchCandidate, SearchIndex, SpillSpace, score::ScoredHit,
};

/// The embedded index. Cheap to clone.
#[derive(Clone)]
pub struct LocalIndex {
    inner: Arc<LocalIndexState>,
}

struct LocalIndexState {
    db: Db,
    cache: Arc<IndexCache>,
    /// Scans and builds at once: as many as there are cores.
    compute: ComputePool,
    /// The most threads of one search.
    threads: usize,
    /// What is not in memory is read by one search at a time, so that memory stays bounded when many come at once.
    read: tokio::sync::Mutex<()>,
}

/// How far a search has come at the first look.
enum CacheLookup {
    Done(RankedHits),
    Begun(ResolvedBlocks, ScanQuery),
}

impl LocalIndex {
    /// An index over `db` that caches at most `cache_bytes`.
    pub fn new(db: Db, cache_bytes: u64) -> Self {
        Self::within(db, CacheBudget::new(cache_bytes), None)
    }

    /// An index over `db` that caches as much as others leave of a budget, and on the disk, if it may, what is more.
    pub fn within(db: Db, budget: CacheBudget, spill: Option<SpillSpace>) -> Self {
        Self {
            inner: Arc::new(LocalIndexState {
                db,
                cache: Arc::new(IndexCache::new(budget, spill)),
                compute: ComputePool::per_core(),
                threads: std::thread::available_parallelism().map_or(2, std::num::NonZero::get),
                read: tokio::sync::Mutex::new(()),
            }),
        }
    }

    /// The memory that its cache takes now, in bytes.
    pub fn cached_bytes(&self) -> u64 {
        self.inner.cache.bytes()
    }

    async fn hits(
        &self,
        workspace: WorkspaceId,
        generations: Arc<[GenerationId]>,
        question: ScanQuery,
    ) -> Result<RankedHits, IndexError> {
        match self.find(workspace, Arc::clone(&generations), question.clone()).await {
            Err(IndexError::Spill(error)) => {
                let inner = Arc::clone(&self.inner);
                self.inner.compute.run(move || inner.cache.give_up_files(&error)).await?;
                self.find(workspace, generations, question).await
            }
            found => found,
        }
    }

    async fn find(
        &self,
        workspace: WorkspaceId,
        generations: Arc<[GenerationId]>,
        question: ScanQuery,
    ) -> Result<RankedHits, IndexError> {
        let since = self.inner.cache.now();
        let (resolved, question) = match self.look(workspace, Arc::clone(&generations), question).await? {
            CacheLookup::Done(hits) => return Ok(hits),
            CacheLookup::Begun(resolved, question) => (resolved, question),
        };
        if resolved.missing.is_empty() {
            return self.scan(resolved, question).await;
        }
        let missing: Vec<_> = resolved.missing.iter().map(|place| generations[*place]).collect();
        let sizes = self.sizes(workspace, &missing).await?;
        let stored = sizes.values().sum::<u64>();
        let needed = stored + resolved.byte_len() + arena::HOME * missing.len() as u64;
        // Codes take a quarter more than the vectors in the store do. To write what does not fit would be for nothing.
        let with_codes = needed + stored / 3;
        let outlines = arena::OUTLINE * generations.len() as u64;
        let keep = if needed <= self.inner.cache.capacity() {
            KeepPolicy::InsteadOfOthers
        } else if self.inner.cache.fits(with_codes, outlines) {
            KeepPolicy::BesideOthers { since }
        } else {
            return self.stream(workspace, &generations, resolved, question, &sizes).await;
        };
        drop(resolved);
        self.load(workspace, &missing, &sizes, keep).await?;
        let (resolved, question) = match self.look(workspace, Arc::clone(&generations), question).await? {
            CacheLookup::Done(hits) => return Ok(hits),
            CacheLookup::Begun(resolved, question) => (resolved, question),
        };
        if resolved.missing.is_empty() {
            return self.scan(resolved, question).await;
        }
        // Others needed the room meanwhile, or it was removed.
        let missing: Vec<_> = resolved.missing.iter().map(|place| generations[*place]).collect();
        let sizes = self.sizes(workspace, &missing).await?;
        self.stream(workspace, &generations, resolved, question, &sizes).await
    }

    /// Finds out what is in the cache and, if that is all and not much, searches it at once.
    async fn look(
        &self,
        workspace: WorkspaceId,
        generations: Arc<[GenerationId]>,
        question: ScanQuery,
    ) -> Result<CacheLookup, IndexError> {
        let inner = Arc::clone(&self.inner);
        let look = move || {
            let resolved = inner.cache.resolve(workspace, &generations);
            if resolved.missing.is_empty() && scan::is_small(&question, &resolved) {
                Ok(CacheLookup::Done(scan::scan_here(question, resolved)?))
            } else {
                Ok(CacheLookup::Begun(resolved, question))
            }
        };
        self.inner.compute.run(look).await?
    }

    async fn scan(&self, resolved: ResolvedBlocks, question: ScanQuery) -> Result<RankedHits, IndexError> {
        scan::scan(&self.inner.compute, self.inner.threads, question, resolved).await
    }
}

#[async_trait]
impl SearchIndex for LocalIndex {
    fn writer<'a>(&'a self, target: IndexTarget<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
        Ok(Box::new(LocalIndexWriter::new(self, target)?))
    }

    async fn search(&self, query: IndexQuery) -> Result<IndexCandidates, IndexError> {
        let IndexQuery { workspace, generations, text, vectors, depth, .. } = query;
        let generations: Arc<[GenerationId]> = generations.into();
        let hits = self.hits(workspace, Arc::clone(&generations), ScanQuery { text, vectors, depth }).await?;
        if self.inner.cache.is_over() {
            let inner = Arc::clone(&self.inner);
            self.inner.compute.run(move || inner.cache.make_room_unless_busy()).await?;
        }
        if self.inner.cache.reads_files_often(workspace) {
            let inner = Arc::clone(&self.inner);
            self.inner.compute.run(move || inner.cache.bring_back(workspace)).await?;
        }
        let named = |hits: Vec<ScoredHit>| -> Vec<SearchCandidate> {
            let named = |hit: ScoredHit| {
                let generation = *generations.get(usize::try_from(hit.place).ok()?)?;
                Some(SearchCandidate { generation, ordinal: hit.ordinal, score: hit.score })
            };
            hits.into_iter().filter_map(named).collect()
        };
        Ok(IndexCandidates {
            lexical: named(hits.lexical),
            dense: hits.dense.into_iter().map(named).collect(),
        })
    }

    async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError> {
        let mut tx = self.inner.db.begin_essential().await?;
        index_segments::delete(&mut tx, retired).await?;
        tx.commit().await?;
        self.inner.cache.remove(retired.workspace_id(), retired.id());
        Ok(())
    }

    async fn count(&self, _: WorkspaceId, generation: GenerationId) -> Result<u64, IndexError> {
        let count = index_segments::count(&self.inner.db, generation).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// A segment holds its passages' words and vectors together, so they are counted together. What could not be read has none.
    async fn mismatched(
        &self,
        expected: &[ExpectedEntries],
    ) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError> {
        let generations: Vec<_> = expected.iter().map(|expected| expected.generation).collect();
        let held = checkup::indexed(&self.inner.db, &generations).await?;
        let mismatch = |expected: &ExpectedEntries| {
            let held = held.get(&expected.generation).copied().unwrap_or(0);
            let mismatch = EntryMismatch::of(u64::try_from(held).unwrap_or(0), expected.entries)?;
            Some((expected.generation, mismatch))
        };
        Ok(expected.iter().filter_map(mismatch).collect())
    }

    /// Segments are written in the transaction that checks the claim.
    async fn held(&self, _: Option<IndexCursor>) -> Result<HeldGenerations, IndexError> {
        Ok(HeldGenerations::default())
    }

    fn late_write_window(&self) -> Option<Duration> {
        None
    }

    fn cached(&self) -> Vec<CacheState> {
        self.inner.cache.parts()
    }

    async fn ping(&self) -> Result<IndexStatus, IndexError> {
        self.inner.db.ping().await?;
        Ok(IndexStatus { kind: "embedded", version: None })
    }
}
