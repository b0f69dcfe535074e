//! Writes and counts of a collection, those of several documents at once.

use std::sync::Arc;

use lectern_shared::{combine::RequestCombiner, ids::GenerationId};
use qdrant_client::qdrant::{PointStruct, UpsertPointsBuilder};

use super::{
    client::{QdrantClient, QdrantErrorKind, QdrantFailure, QdrantRetryPolicy},
    finished, points,
};

/// The most points that one request writes, and the most generations whose points one counts. A document's own batch is smaller.
const TOGETHER: usize = 512;

/// A generation, and how many points of it a collection should hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenGeneration {
    pub(super) generation: GenerationId,
    pub(super) points: u64,
}

/// The writes and counts of one collection.
#[derive(Debug)]
pub(super) struct CollectionBatches {
    writes: RequestCombiner<(), Vec<PointStruct>, Result<(), QdrantFailure>>,
    counts: RequestCombiner<(), WrittenGeneration, Result<u64, QdrantFailure>>,
}

/// What came to a bad end in this process.
fn broken() -> QdrantFailure {
    QdrantFailure::refused("asking Qdrant panicked")
}

impl CollectionBatches {
    pub(super) fn new(client: &Arc<QdrantClient>, collection: &str) -> Self {
        let collection: Arc<str> = collection.into();
        let to = (Arc::clone(client), Arc::clone(&collection));
        let writes = RequestCombiner::new(TOGETHER, Vec::len, move |(), writes| {
            let (client, collection) = to.clone();
            async move { write(&client, &collection, writes).await }
        });
        let of = (Arc::clone(client), collection);
        let counts = RequestCombiner::new(
            TOGETHER,
            |_| 1,
            move |(), written| {
                let (client, collection) = of.clone();
                async move { count(&client, &collection, written).await }
            },
        );
        Self { writes, counts }
    }

    /// Writes points, and waits until searches see them.
    pub(super) async fn upsert(&self, points: Vec<PointStruct>) -> Result<(), QdrantFailure> {
        self.writes.ask((), points).await.unwrap_or_else(|| Err(broken()))
    }

    /// How many points of a generation there are, counted exactly.
    pub(super) async fn count(&self, written: WrittenGeneration) -> Result<u64, QdrantFailure> {
        self.counts.ask((), written).await.unwrap_or_else(|| Err(broken()))
    }
}

/// Does writes in one request.
async fn write(
    client: &QdrantClient,
    collection: &str,
    writes: Vec<Vec<PointStruct>>,
) -> Vec<Result<(), QdrantFailure>> {
    let sizes: Vec<usize> = writes.iter().map(Vec::len).collect();
    let points: Vec<PointStruct> = writes.into_iter().flatten().collect();
    let again = (sizes.len() > 1).then(|| points.clone());
    match (upsert(client, collection, points).await, again) {
        // What is refused may be refused for one of them.
        (Err(failure), Some(points)) if failure.kind == QdrantErrorKind::Refused => {
            let (mut points, mut done) = (points.into_iter(), Vec::with_capacity(sizes.len()));
            for size in sizes {
                done.push(upsert(client, collection, points.by_ref().take(size).collect()).await);
            }
            done
        }
        (end, _) => vec![end; sizes.len()],
    }
}

async fn upsert(
    client: &QdrantClient,
    collection: &str,
    points: Vec<PointStruct>,
) -> Result<(), QdrantFailure> {
    let request = UpsertPointsBuilder::new(collection, points).wait(true).build();
    let write = || async { finished(&client.qdrant().upsert_points(request.clone()).await?) };
    client.call("a write", QdrantRetryPolicy::Write, write).await
}

/// Counts the points of all together, and of each by itself only where that is not the right number.
async fn count(
    client: &QdrantClient,
    collection: &str,
    written: Vec<WrittenGeneration>,
) -> Vec<Result<u64, QdrantFailure>> {
    let all: Vec<GenerationId> = written.iter().map(|written| written.generation).collect();
    let held = super::count(client, collection, points::of_any(&all)).await;
    match held {
        Ok(held) if held == written.iter().map(|written| written.points).sum::<u64>() => {
            written.iter().map(|written| Ok(written.points)).collect()
        }
        Err(failure) => written.iter().map(|_| Err(failure.clone())).collect(),
        Ok(_) => {
            let mut counts = Vec::with_capacity(all.len());
            for generation in all {
                counts.push(super::count(client, collection, points::of_any(&[generation])).await);
            }
            counts
        }
    }
}
