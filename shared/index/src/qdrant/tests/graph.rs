//! The graph that Qdrant makes of many vectors, in place of a look at each.

use qdrant_client::qdrant::{
    CollectionStatus, HnswConfigDiffBuilder, OptimizersConfigDiffBuilder, UpdateCollectionBuilder,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::*;
use crate::SearchCandidate;

/// So long that a graph is used of a few: 625 of these are the 10,000 kB that Qdrant goes through one by one.
const DIMENSION: usize = 4_096;
const DOCUMENTS: usize = 40;
const PASSAGES: usize = 50;

/// A document's generation, and the vector of its first passage.
type Written = (GenerationId, Vec<f32>);

/// A vector of few directions: among those a graph finds the very nearest.
fn vector(random: &mut StdRng) -> Vec<f32> {
    let vector: Vec<f32> = (0..8).map(|_| random.random_range(-1.0..1.0)).collect();
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    let mut vector: Vec<f32> = vector.into_iter().map(|number| number / length).collect();
    vector.resize(DIMENSION, 0.0);
    vector
}

/// Writes a document.
async fn write_document(t: &TestQdrant, claim: &JobClaim, random: &mut StdRng) -> Written {
    let generation = GenerationId::generate();
    let vectors: Vec<Vec<f32>> = (0..PASSAGES).map(|_| vector(random)).collect();
    let first = vectors[0].clone();
    let entry = |vector| IndexEntry { text: String::new(), vector: Some(vector) };
    let target = IndexTarget { claim, generation, space: Some((SPACE, DIMENSION)) };
    let mut writer = t.index.writer(target).unwrap();
    writer.add(vectors.into_iter().map(entry).collect()).await.unwrap();
    assert_eq!(writer.finish().await.unwrap().entries, PASSAGES as u64);
    (generation, first)
}

/// Has Qdrant make a single graph when there is more than this; none when it is 0.
async fn make_graphs_from(t: &TestQdrant, kilobytes: u64) {
    let name = t.index.inner.names.dense(SPACE);
    let optimizers = OptimizersConfigDiffBuilder::default().default_segment_number(1);
    let optimizers = optimizers.indexing_threshold(kilobytes);
    let request = UpdateCollectionBuilder::new(name).optimizers_config(optimizers);
    t.qdrant().update_collection(request).await.unwrap();
}

/// Waits until most vectors are in a graph, and nothing is done about the others.
async fn wait_for_graphs(t: &TestQdrant) {
    let name = t.index.inner.names.dense(SPACE);
    let made = async {
        loop {
            let info = t.qdrant().collection_info(name.as_str()).await.unwrap().result.unwrap();
            let is_done = info.status == i32::from(CollectionStatus::Green);
            if is_done && info.indexed_vectors_count >= Some((DOCUMENTS * PASSAGES * 3 / 4) as u64) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(3), made).await.expect("there is a graph");
}

/// How many first passages of the documents are not found when these are searched, and the others are left out.
async fn missed(t: &TestQdrant, claim: &JobClaim, searched: &[&Written], left_out: &[&Written]) -> usize {
    let generations = |documents: &[&Written]| documents.iter().map(|(generation, _)| *generation).collect();
    let question = |(_, vector): &&Written| SpaceVector { space: SPACE, vector: vector.clone() };
    let query = IndexQuery {
        workspace: claim.workspace_id,
        generations: generations(searched),
        others: generations(left_out),
        languages: Vec::new(),
        text: String::new(),
        vectors: searched.iter().map(question).collect(),
        depth: 10,
    };
    let found = t.index.search(query).await.unwrap().dense;
    assert_eq!(found.len(), searched.len());
    let best = |list: &[SearchCandidate]| list.first().map(|best| (best.generation, best.ordinal));
    searched.iter().zip(&found).filter(|((wanted, _), list)| best(list) != Some((*wanted, 0))).count()
}

#[tokio::test]
async fn passages_are_found_by_their_vectors_whichever_documents_are_left_out() {
    let Some(t) = testing::index().await else { return };
    let (claim, mut random) = (claim(), StdRng::seed_from_u64(5));
    // The first one makes the collection.
    let mut documents = vec![write_document(&t, &claim, &mut random).await];
    make_graphs_from(&t, 0).await;
    for _ in 1..DOCUMENTS {
        documents.push(write_document(&t, &claim, &mut random).await);
    }
    make_graphs_from(&t, 1).await;
    wait_for_graphs(&t).await;
    // Each by itself, and all but those that are just enough for the graph.
    let each = (0..DOCUMENTS).map(|at| (at, at + 1));
    for (first, end) in each.chain([(0, DOCUMENTS - 14), (14, DOCUMENTS)]) {
        let left_out: Vec<_> = documents[first..end].iter().collect();
        let searched: Vec<_> = documents[..first].iter().chain(&documents[end..]).collect();
        let missed = missed(&t, &claim, &searched, &left_out).await;
        // A graph may miss one now and then.
        assert!(missed <= 2, "without {first} to {end}, {missed} of {} are not found", searched.len());
    }
}

#[tokio::test]
async fn vectors_that_are_linked_within_workspaces_only_are_linked_otherwise_by_the_next_start() {
    let Some(t) = testing::index().await else { return };
    add(&t.index, &claim(), GenerationId::generate(), 1).await;
    let name = t.index.inner.names.dense(SPACE);
    let request =
        UpdateCollectionBuilder::new(name.as_str()).hnsw_config(HnswConfigDiffBuilder::default().m(0));
    t.qdrant().update_collection(request).await.unwrap();
    // Several processes at once.
    futures::future::join_all((0..4).map(|_| t.reopen())).await;
    let info = t.qdrant().collection_info(name).await.unwrap().result.unwrap();
    let links = info.config.unwrap().hnsw_config.unwrap();
    assert_eq!((links.m, links.payload_m), (Some(16), Some(16)));
}
