//! The index in Qdrant, for installations of several processes or of more passages than the embedded index is made for.
//!
//! All workspaces share the collections: one of words, and one of vectors for each embedding space. Every point carries its workspace,
//! document, generation and ordinal and nothing else, and every request names the workspace. A point's id tells its generation and ordinal too,
//! so that a search needs nothing else of what it finds. Passages are read from the relational store.
//!
//! Qdrant cannot be told which claims are still held. A worker that is paused between the check of its claim and the write
//! that follows may add points to a generation after that was removed. They are never found, since a search names the
//! generations that are visible; and [`SearchIndex::late_write_window`] says how long to wait before a generation is removed for the
//! last time.

mod batches;
mod client;
mod collections;
mod inspect;
mod points;
mod search;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::{try_join, try_join_all};
use lectern_db::generations::RetiredGeneration;
use lectern_shared::{
    compute::ComputePool,
    config::QdrantConfig,
    ids::{GenerationId, WorkspaceId},
    metrics::CacheState,
};
use parking_lot::Mutex;
use qdrant_client::qdrant::{
    CountPointsBuilder, DeletePointsBuilder, Filter, PointsOperationResponse, UpdateStatus,
};
use uuid::Uuid;

use self::{
    batches::CollectionBatches,
    client::{CallError, QdrantClient, QdrantErrorKind, QdrantFailure, QdrantRetryPolicy},
    collections::{CollectionContent, CollectionNames, SpaceDimensions},
    writer::QdrantIndexWriter,
};
use super::{
    EntryMismatch, ExpectedEntries, HeldGenerations, IndexCandidates, IndexCursor, IndexError, IndexQuery,
    IndexStatus, IndexTarget, IndexWriter, SearchIndex,
};

/// What the names of all collections begin with; the installation's id follows, so that several can share a server.
const PREFIX: &str = "lectern";

/// The index in Qdrant. Cheap to clone.
#[derive(Clone, Debug)]
pub struct QdrantIndex {
    inner: Arc<QdrantIndexState>,
}

#[derive(Debug)]
struct QdrantIndexState {
    client: Arc<QdrantClient>,
    names: CollectionNames,
    instance: String,
    /// The embedding spaces whose collections were seen.
    spaces: Mutex<SpaceDimensions>,
    /// What is written into the collection of words.
    lexical: CollectionBatches,
    /// What is written into that of each embedding space.
    dense: Mutex<HashMap<Uuid, Arc<CollectionBatches>>>,
    /// Whether points were found whose ids tell nothing: then what they carry is read.
    reads_payload: AtomicBool,
    /// Held while such a collection is made.
    making: tokio::sync::Mutex<()>,
    /// Texts are analysed as many at once as there are cores.
    compute: ComputePool,
}

impl QdrantIndex {
    /// Connects. `instance` is the id of this installation. The collection of words is made when it is not there, unless it
    /// `must_exist` because documents are known to be in it.
    ///
    /// # Errors
    /// [`IndexError::Engine`] when the server is away, [`IndexError::Refused`] when it is too old, refuses the key, does not
    /// have the collection that must exist, or holds collections of another installation under these names.
    pub async fn open(config: &QdrantConfig, instance: &str, must_exist: bool) -> Result<Self, IndexError> {
        let prefix = format!("{PREFIX}_{}", instance.replace('-', ""));
        Self::open_as(config, instance, &prefix, must_exist).await
    }

    /// Like [`Self::open`], in collections whose names begin with `prefix`.
    async fn open_as(
        config: &QdrantConfig,
        instance: &str,
        prefix: &str,
        must_exist: bool,
    ) -> Result<Self, IndexError> {
        let client = QdrantClient::new(config)?;
        let names = CollectionNames::new(prefix);
        let version = collections::version(&client).await?;
        collections::check_version(&version)?;
        if must_exist && !collections::exists(&client, &names.lexical).await? {
            return Err(gone(&names).into());
        }
        collections::ensure(&client, &names.lexical, CollectionContent::Words, instance).await?;
        if let Err(failure) = collections::link_across(&client, &names, instance).await {
            let error = IndexError::from(failure);
            tracing::warn!(%error, "vectors in Qdrant could not be linked as they should be; the next start tries it again");
        }
        tracing::debug!(version, collection = names.lexical, "Qdrant is there");
        Ok(Self { inner: Arc::new(QdrantIndexState::new(client, names, instance)) })
    }
}

impl QdrantIndexState {
    fn new(client: QdrantClient, names: CollectionNames, instance: &str) -> Self {
        let client = Arc::new(client);
        Self {
            lexical: CollectionBatches::new(&client, &names.lexical),
            dense: Mutex::default(),
            client,
            names,
            instance: instance.to_owned(),
            spaces: Mutex::default(),
            reads_payload: AtomicBool::new(false),
            making: tokio::sync::Mutex::default(),
            compute: ComputePool::per_core(),
        }
    }

    /// What is written into the collection of an embedding space.
    fn dense(&self, space: Uuid) -> Arc<CollectionBatches> {
        let mut dense = self.dense.lock();
        let made = || Arc::new(CollectionBatches::new(&self.client, &self.names.dense(space)));
        Arc::clone(dense.entry(space).or_insert_with(made))
    }

    /// Makes the collection of an embedding space when it is not there.
    async fn ensure_space(&self, space: Uuid, dimension: usize) -> Result<(), QdrantFailure> {
        if self.spaces.lock().get(&space) == Some(&dimension) {
            return Ok(());
        }
        let _one_at_a_time = self.making.lock().await;
        if self.spaces.lock().get(&space) == Some(&dimension) {
            return Ok(());
        }
        let name = self.names.dense(space);
        collections::ensure(&self.client, &name, CollectionContent::Vectors(dimension), &self.instance)
            .await?;
        self.spaces.lock().insert(space, dimension);
        Ok(())
    }

    /// The dimension of an embedding space; none when it has no collection.
    async fn dimension(&self, space: Uuid) -> Result<Option<usize>, QdrantFailure> {
        if let Some(dimension) = self.spaces.lock().get(&space) {
            return Ok(Some(*dimension));
        }
        let name = self.names.dense(space);
        match collections::content(&self.client, &name, &self.instance).await? {
            Some(CollectionContent::Vectors(dimension)) => {
                self.spaces.lock().insert(space, dimension);
                Ok(Some(dimension))
            }
            Some(CollectionContent::Words) | None => Ok(None),
        }
    }

    /// Somebody deleted the collection of an embedding space.
    fn forget(&self, space: Uuid) {
        self.spaces.lock().remove(&space);
    }

    /// How many points of a collection match, counted exactly; of a collection that does not exist, none.
    async fn count(&self, collection: &str, filter: Filter) -> Result<u64, QdrantFailure> {
        count(&self.client, collection, filter).await
    }

    /// Removes all points of a collection that match; of a collection that does not exist, none.
    async fn remove(&self, collection: &str, filter: Filter) -> Result<(), QdrantFailure> {
        let request = DeletePointsBuilder::new(collection).points(filter).wait(true);
        let delete = || async { finished(&self.client.qdrant().delete_points(request.clone()).await?) };
        match self.client.call("a removal", QdrantRetryPolicy::Write, delete).await {
            Err(failure) if failure.kind != QdrantErrorKind::Missing => Err(failure),
            _ => Ok(()),
        }
    }
}

/// How many points of a collection match, counted exactly; of a collection that does not exist, none.
async fn count(client: &QdrantClient, collection: &str, filter: Filter) -> Result<u64, QdrantFailure> {
    let request = CountPointsBuilder::new(collection).filter(filter).exact(true);
    let count = || async { Ok(client.qdrant().count(request.clone()).await?) };
    match client.call("a count", QdrantRetryPolicy::Read, count).await {
        Ok(answer) => Ok(answer.result.map_or(0, |result| result.count)),
        Err(failure) if failure.kind == QdrantErrorKind::Missing => Ok(0),
        Err(failure) => Err(failure),
    }
}

/// Whether a write can be seen by every search that follows.
fn finished(response: &PointsOperationResponse) -> Result<(), CallError> {
    match &response.result {
        Some(result) if result.status == i32::from(UpdateStatus::Completed) => Ok(()),
        _ => Err(QdrantFailure::unfinished().into()),
    }
}

#[async_trait]
impl SearchIndex for QdrantIndex {
    fn writer<'a>(&'a self, target: IndexTarget<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
        Ok(Box::new(QdrantIndexWriter::new(&self.inner, target)?))
    }

    async fn search(&self, query: IndexQuery) -> Result<IndexCandidates, IndexError> {
        Ok(search::search(&self.inner, query).await?)
    }

    async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError> {
        // Another process may have made one since.
        let collections = collections::list(&self.inner.client, &self.inner.names).await?;
        let points = || points::of_generation(retired.workspace_id(), retired.id());
        let removals = collections.iter().map(|name| self.inner.remove(name, points()));
        try_join_all(removals).await?;
        Ok(())
    }

    async fn count(&self, workspace: WorkspaceId, generation: GenerationId) -> Result<u64, IndexError> {
        let collections = collections::list(&self.inner.client, &self.inner.names).await?;
        let counts = collections
            .iter()
            .map(|name| self.inner.count(name, points::of_generation(workspace, generation)));
        Ok(try_join_all(counts).await?.into_iter().sum())
    }

    async fn mismatched(
        &self,
        expected: &[ExpectedEntries],
    ) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError> {
        inspect::mismatched(self, expected).await
    }

    async fn held(&self, from: Option<IndexCursor>) -> Result<HeldGenerations, IndexError> {
        Ok(inspect::held(self, from).await?)
    }

    /// Twice the longest write: what a writer has given up, the server may still be doing. What waits for others' writes is not begun any more
    /// once its writer is gone.
    fn late_write_window(&self) -> Option<Duration> {
        Some(self.inner.client.longest_write * 2)
    }

    fn cached(&self) -> Vec<CacheState> {
        Vec::new()
    }

    async fn ping(&self) -> Result<IndexStatus, IndexError> {
        let QdrantIndexState { client, names, .. } = &*self.inner;
        // The version is told to everybody; what is asked of the collection needs the key.
        let (version, exists) =
            try_join(collections::version(client), collections::exists(client, &names.lexical)).await?;
        if !exists {
            return Err(gone(names).into());
        }
        Ok(IndexStatus { kind: "qdrant", version: Some(version) })
    }
}

/// Somebody deleted the collection of words, or this is another server.
fn gone(names: &CollectionNames) -> QdrantFailure {
    QdrantFailure::refused(format!(
        "the Qdrant collection {}, which the documents are in, is gone: check QDRANT_URL; restore a snapshot; or stop every process and run `lectern reindex`, which fills a new one",
        names.lexical
    ))
}
