//! The search index, timed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::Instant;

use super::{Metrics, labels};
use crate::{
    db::generations::RetiredGeneration,
    ids::{GenerationId, UserId},
    index::{
        Candidates, Entry, ExpectedEntries, IndexError, IndexQuery, IndexStatus, IndexWriter, Indexed,
        Mismatch, SearchIndex, Target,
    },
};

/// An index whose every operation is timed.
pub(crate) struct MeteredIndex<I> {
    inner: I,
    metrics: Arc<Metrics>,
}

impl<I> MeteredIndex<I> {
    /// `inner`, timed in `metrics`.
    pub(crate) fn new(inner: I, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

impl Metrics {
    async fn timed<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, IndexError>>,
    ) -> Result<T, IndexError> {
        let began = Instant::now();
        let done = work.await;
        let labels = labels::ByIndexOperation { operation, outcome: labels::outcome(done.is_ok()) };
        self.index_seconds.get_or_create(&labels).observe(began.elapsed().as_secs_f64());
        done
    }
}

#[async_trait]
impl<I: SearchIndex> SearchIndex for MeteredIndex<I> {
    fn writer<'a>(&'a self, target: Target<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
        let inner = self.inner.writer(target)?;
        Ok(Box::new(MeteredWriter { inner, metrics: &self.metrics }))
    }

    async fn search(&self, query: IndexQuery) -> Result<Candidates, IndexError> {
        self.metrics.timed("search", self.inner.search(query)).await
    }

    async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError> {
        self.metrics.timed("remove", self.inner.remove(retired)).await
    }

    async fn count(&self, user: UserId, generation: GenerationId) -> Result<u64, IndexError> {
        self.metrics.timed("count", self.inner.count(user, generation)).await
    }

    async fn mismatched(
        &self,
        expected: &[ExpectedEntries],
    ) -> Result<BTreeMap<GenerationId, Mismatch>, IndexError> {
        self.metrics.timed("count", self.inner.mismatched(expected)).await
    }

    fn straggle(&self) -> Option<Duration> {
        self.inner.straggle()
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
    async fn add(&mut self, entries: Vec<Entry>) -> Result<(), IndexError> {
        self.metrics.timed("write", self.inner.add(entries)).await
    }

    async fn finish(self: Box<Self>) -> Result<Indexed, IndexError> {
        let Self { inner, metrics } = *self;
        metrics.timed("write", inner.finish()).await
    }
}
