//! The search index, timed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use lectern_db::generations::RetiredGeneration;
use lectern_shared::{
    ids::{GenerationId, WorkspaceId},
    metrics::{CacheState, Metrics},
};
use tokio::time::Instant;

use crate::{
    EntryMismatch, ExpectedEntries, HeldGenerations, IndexCandidates, IndexCursor, IndexEntry, IndexError,
    IndexQuery, IndexStatus, IndexTarget, IndexWriter, IndexedGeneration, SearchIndex,
};

/// An index whose every operation is timed.
pub struct MeteredIndex<I> {
    inner: I,
    metrics: Arc<Metrics>,
}

impl<I> MeteredIndex<I> {
    /// `inner`, timed in `metrics`.
    pub fn new(inner: I, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

async fn timed<T>(
    metrics: &Metrics,
    operation: &'static str,
    work: impl Future<Output = Result<T, IndexError>>,
) -> Result<T, IndexError> {
    let began = Instant::now();
    let done = work.await;
    metrics.index(operation, done.is_ok(), began.elapsed());
    done
}

#[async_trait]
impl<I: SearchIndex> SearchIndex for MeteredIndex<I> {
    fn writer<'a>(&'a self, target: IndexTarget<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
        let inner = self.inner.writer(target)?;
        Ok(Box::new(MeteredWriter { inner, metrics: &self.metrics }))
    }

    async fn search(&self, query: IndexQuery) -> Result<IndexCandidates, IndexError> {
        timed(&self.metrics, "search", self.inner.search(query)).await
    }

    async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError> {
        timed(&self.metrics, "remove", self.inner.remove(retired)).await
    }

    async fn count(&self, workspace: WorkspaceId, generation: GenerationId) -> Result<u64, IndexError> {
        timed(&self.metrics, "count", self.inner.count(workspace, generation)).await
    }

    async fn mismatched(
        &self,
        expected: &[ExpectedEntries],
    ) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError> {
        timed(&self.metrics, "count", self.inner.mismatched(expected)).await
    }

    async fn held(&self, from: Option<IndexCursor>) -> Result<HeldGenerations, IndexError> {
        timed(&self.metrics, "held", self.inner.held(from)).await
    }

    fn late_write_window(&self) -> Option<Duration> {
        self.inner.late_write_window()
    }

    fn cached(&self) -> Vec<CacheState> {
        self.inner.cached()
    }

    async fn ping(&self) -> Result<IndexStatus, IndexError> {
        self.inner.ping().await
    }
}

struct MeteredWriter<'a> {
    inner: Box<dyn IndexWriter + 'a>,
    metrics: &'a Metrics,
}

#[async_trait]
impl IndexWriter for MeteredWriter<'_> {
    async fn add(&mut self, entries: Vec<IndexEntry>) -> Result<(), IndexError> {
        timed(self.metrics, "write", self.inner.add(entries)).await
    }

    async fn finish(self: Box<Self>) -> Result<IndexedGeneration, IndexError> {
        let Self { inner, metrics } = *self;
        timed(metrics, "write", inner.finish()).await
    }
}
