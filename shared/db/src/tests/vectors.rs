//! Vectors of passages, and the documents that wait for some.

use lectern_shared::{
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::space::EmbeddingSpace,
};

use crate::{
    jobs::{self, ReindexTarget},
    testing::{active, at, both, claim, claimed, commit, enqueue, publish, published, staged_in, workspace},
    vectors::{self, TextHash},
};

fn space(name: &str) -> EmbeddingSpace {
    EmbeddingSpace::new(name, 2, &[("kind", &"test"), ("name", &name)])
}

fn hash(n: u8) -> TextHash {
    [n; 32]
}

#[tokio::test]
async fn vectors_come_back_as_they_were_stored_and_only_in_their_space_and_to_their_owner() {
    for t in &both().await {
        let (owner, stranger) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (document, generation) = published(&t.db, owner, "one", &["a"], at(1)).await;
        let (here, there) = (space("here"), space("there"));
        let stored = [(hash(1), vec![0.6, -0.8]), (hash(2), vec![1.0, f32::MIN_POSITIVE])];
        commit!(t.db, |tx| vectors::insert(tx, document, generation, &here, &stored));
        // The same again is no conflict.
        commit!(t.db, |tx| vectors::insert(tx, document, generation, &here, &stored[..1]));
        let wanted = [hash(1), hash(2), hash(3)];
        let found = vectors::fetch(&t.db, owner, document, &here, &wanted).await.unwrap();
        assert_eq!(found, stored.into_iter().collect(), "{}", t.name);
        for (workspace, document, space) in
            [(owner, document, &there), (stranger, document, &here), (owner, DocumentId::generate(), &here)]
        {
            let found = vectors::fetch(&t.db, workspace, document, space, &wanted).await.unwrap();
            assert!(found.is_empty(), "{}", t.name);
        }
        assert!(vectors::fetch(&t.db, owner, document, &here, &[]).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_vector_of_another_length_is_taken_for_none() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (document, generation) = published(&t.db, owner, "one", &["a"], at(1)).await;
        let here = space("here");
        commit!(t.db, |tx| vectors::insert(tx, document, generation, &here, &[(hash(1), vec![1.0; 3])]));
        let found = vectors::fetch(&t.db, owner, document, &here, &[hash(1)]).await.unwrap();
        assert!(found.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_vector_that_is_not_finite_is_taken_for_none_until_it_is_made_again() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (document, generation) = published(&t.db, owner, "one", &["a"], at(1)).await;
        let here = space("here");
        let damaged = [(hash(1), vec![f32::NAN, 0.0]), (hash(2), vec![0.0, f32::INFINITY])];
        commit!(t.db, |tx| vectors::insert(tx, document, generation, &here, &damaged));
        let wanted = [hash(1), hash(2)];
        assert!(
            vectors::fetch(&t.db, owner, document, &here, &wanted).await.unwrap().is_empty(),
            "{}",
            t.name
        );
        let again = [(hash(1), vec![1.0, 0.0])];
        commit!(t.db, |tx| vectors::insert(tx, document, generation, &here, &again));
        let found = vectors::fetch(&t.db, owner, document, &here, &wanted).await.unwrap();
        assert_eq!(found, again.into_iter().collect(), "{}", t.name);
    }
}

#[tokio::test]
async fn what_the_new_generation_does_not_use_is_pruned() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (document, old) = published(&t.db, owner, "one", &["a"], at(1)).await;
        let (other, elsewhere) = published(&t.db, owner, "two", &["a"], at(1)).await;
        let here = space("here");
        let many: Vec<_> = (0..3).map(|n| (hash(n), vec![1.0, 0.0])).collect();
        commit!(t.db, |tx| vectors::insert(tx, document, old, &here, &many));
        commit!(t.db, |tx| vectors::insert(tx, other, elsewhere, &here, &many));
        let new = GenerationId::generate();
        commit!(t.db, |tx| vectors::used(tx, document, new, &here, &[hash(1), hash(9)]));
        vectors::remove(&t.db, document, Some(new)).await.unwrap();
        let all = [hash(0), hash(1), hash(2)];
        let left = vectors::fetch(&t.db, owner, document, &here, &all).await.unwrap();
        assert_eq!(left.keys().copied().collect::<Vec<_>>(), [hash(1)], "{}", t.name);
        assert_eq!(vectors::fetch(&t.db, owner, other, &here, &all).await.unwrap().len(), 3, "{}", t.name);
        vectors::remove(&t.db, other, None).await.unwrap();
        assert!(vectors::fetch(&t.db, owner, other, &here, &all).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_space_is_recorded_once_and_found_again() {
    for t in &both().await {
        let here = EmbeddingSpace::new("a model", 384, &[("kind", &"local"), ("prefix", &"query: \nx")]);
        for moment in 0..2 {
            commit!(t.db, |tx| vectors::record_space(tx, &here, at(moment)));
        }
        let found = vectors::space(&t.db, here.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(&here), "{}", t.name);
        assert_eq!(found.unwrap().fact("kind"), Some("local"), "{}", t.name);
        assert_eq!(vectors::space(&t.db, space("another").id).await.unwrap(), None, "{}", t.name);
    }
}

/// A document that is searchable, with vectors in a space or without.
async fn embedded(
    t: &crate::testing::TestDb,
    workspace: WorkspaceId,
    space: Option<&EmbeddingSpace>,
    second: u64,
) -> DocumentId {
    let held = claimed(&t.db, workspace, "document", at(second)).await;
    let generation = staged_in(&t.db, &held, space, &["a"], at(second)).await;
    publish(&t.db, &held, generation, at(second)).await;
    held.document_id
}

#[tokio::test]
async fn documents_without_vectors_wait_for_the_first_model_and_others_only_when_they_are_asked_to() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (now, former) = (space("now"), space("former"));
        let without = embedded(t, workspace, None, 1).await;
        let current = embedded(t, workspace, Some(&now), 2).await;
        let outdated = embedded(t, workspace, Some(&former), 3).await;
        let late = embedded(t, workspace, None, 50).await;
        for (space, counts) in [(&now, (1, 3)), (&former, (1, 3)), (&self::space("none"), (0, 4))] {
            assert_eq!(vectors::documents_in_space(&t.db, space).await.unwrap(), counts, "{}", t.name);
        }

        assert!(!jobs::any_without_vectors(&t.db, at(1)).await.unwrap(), "{}", t.name);
        assert!(jobs::any_without_vectors(&t.db, at(10)).await.unwrap(), "{}", t.name);
        let queued =
            commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::WithoutVectors(at(10)), at(60)));
        assert_eq!(queued, 1, "{}", t.name);
        assert!(!jobs::any_without_vectors(&t.db, at(10)).await.unwrap(), "{}: it waits already", t.name);
        let held = claim(&t.db, at(100)).await.unwrap();
        assert!(held.document_id == without && held.from_stored, "{}", t.name);

        let queued =
            commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::OutsideSpace(now.id), at(100)));
        assert_eq!(queued, 2, "{}", t.name);
        let mut next = Vec::new();
        while let Some(held) = claim(&t.db, at(200)).await {
            assert!(held.from_stored, "{}", t.name);
            next.push(held.document_id);
        }
        assert_eq!(next, [outdated, late], "{}", t.name);
        assert!(!next.contains(&current), "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_whose_last_ingestion_failed_is_not_embedded_unasked() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let document = embedded(t, workspace, None, 1).await;
        enqueue(&t.db, workspace, document, at(2)).await;
        assert!(commit!(t.db, |tx| jobs::cancel(tx, workspace, document, at(3))), "{}", t.name);
        assert!(!jobs::any_without_vectors(&t.db, at(10)).await.unwrap(), "{}", t.name);
        let queued =
            commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::WithoutVectors(at(10)), at(11)));
        assert_eq!(queued, 0, "{}", t.name);
        assert!(active(&t.db, workspace, document).await.is_some(), "{}", t.name);
    }
}
