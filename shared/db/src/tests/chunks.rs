//! Passages.

use lectern_shared::{ids::GenerationId, model::document::DocumentType};

use crate::{
    chunks::{self, BATCH},
    documents,
    generations::RetiredGeneration,
    receipts,
    testing::{at, both, claim, claimed, commit, enqueue, passages, publish, published, staged, workspace},
};

#[tokio::test]
async fn passages_are_read_as_they_were_written_in_the_order_of_the_source() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let texts = ["zero", "one\ntwo", "", "drei 😀"];
        let (document, _) = published(&t.db, workspace, "one", &texts, at(0)).await;
        let read = chunks::list(&t.db, workspace, document, 0, 10).await.unwrap();
        let written = passages(document, &texts);
        assert_eq!(read.len(), written.len(), "{}", t.name);
        for (read, written) in read.iter().zip(&written) {
            assert_eq!((read.ordinal, &read.text), (i64::from(written.ordinal), &written.text), "{}", t.name);
            assert_eq!((read.chunk_id, read.document_id), (written.chunk_id, document), "{}", t.name);
            assert_eq!(
                (read.tokens, &read.place.0),
                (i64::from(written.tokens), &written.place),
                "{}",
                t.name
            );
        }
        for (from, limit, expected) in [(0, 2, 0..2), (2, 2, 2..4), (3, 9, 3..4), (4, 9, 4..4)] {
            let page: Vec<_> = chunks::list(&t.db, workspace, document, from, limit)
                .await
                .unwrap()
                .iter()
                .map(|c| c.ordinal)
                .collect();
            assert_eq!(page, expected.collect::<Vec<_>>(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_passage_is_found_by_its_id_in_the_generation_that_answers_and_in_its_own_workspace() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (document, _) = published(&t.db, owner, "one", &["zero", "one", "two"], at(0)).await;
        let ids: Vec<_> =
            passages(document, &["zero", "one", "two"]).into_iter().map(|chunk| chunk.chunk_id).collect();
        let ordinal = async |workspace, document, chunk| {
            chunks::ordinal(&t.db, workspace, document, chunk).await.unwrap()
        };
        assert_eq!(ordinal(owner, document, ids[2]).await, Some(2), "{}", t.name);
        assert_eq!(ordinal(other, document, ids[2]).await, None, "{}", t.name);
        let some = [ids[2], ids[0]];
        let texts = async |workspace, document| -> Vec<String> {
            let found = chunks::of_ids(&t.db, workspace, document, &some).await.unwrap();
            found.into_iter().map(|chunk| chunk.text).collect()
        };
        assert_eq!(texts(owner, document).await, ["zero", "two"], "{}: in the order of the source", t.name);
        assert!(texts(other, document).await.is_empty(), "{}", t.name);
        assert!(chunks::of_ids(&t.db, owner, document, &[]).await.unwrap().is_empty(), "{}", t.name);
        let (another, _) = published(&t.db, owner, "another", &["zero"], at(0)).await;
        assert_eq!(ordinal(owner, another, ids[0]).await, None, "{}", t.name);
        assert!(texts(owner, another).await.is_empty(), "{}", t.name);

        enqueue(&t.db, owner, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let generation = staged(&t.db, &held, &["zero", "uno"], at(1)).await;
        publish(&t.db, &held, generation, at(1)).await;
        assert_eq!(ordinal(owner, document, ids[0]).await, Some(0), "{}: what stayed as it was", t.name);
        assert_eq!(ordinal(owner, document, ids[1]).await, None, "{}: what changed", t.name);
        assert_eq!(texts(owner, document).await, ["zero"], "{}: what answers", t.name);
        commit!(t.db, |tx| documents::delete(tx, owner, document, at(2), at(2)));
        assert_eq!(ordinal(owner, document, ids[0]).await, None, "{}: what was deleted", t.name);
        assert!(texts(owner, document).await.is_empty(), "{}: what was deleted", t.name);
    }
}

#[tokio::test]
async fn a_passage_is_found_by_its_id_without_reading_the_others() {
    let plan = both().await[0].query_plan(chunks::SELECT_ORDINAL).await;
    let by_id = |step: &String| step.contains("chunks_by_id (generation_id=? AND chunk_id=?)");
    assert!(plan.iter().any(by_id), "{plan:#?}");
    assert!(plan.iter().all(|step| !step.contains("SCAN")), "{plan:#?}");
}

/// Else each deletion would hold up all who write for as long as reading all passages takes.
#[tokio::test]
async fn a_deleted_document_is_forgotten_without_reading_the_passages_of_others() {
    let plan = both().await[0].query_plan(receipts::CLOSE).await;
    assert!(plan.iter().all(|step| !step.contains("SCAN")), "{plan:#?}");
}

#[tokio::test]
async fn the_list_shows_the_generation_that_answers_and_no_other() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let document = held.document_id;
        let texts = async || -> Vec<String> {
            chunks::list(&t.db, workspace, document, 0, 9)
                .await
                .unwrap()
                .into_iter()
                .map(|c| c.text)
                .collect()
        };
        let generation = staged(&t.db, &held, &["old"], at(0)).await;
        assert!(texts().await.is_empty(), "{}: not before it is published", t.name);
        publish(&t.db, &held, generation, at(0)).await;
        assert_eq!(texts().await, ["old"], "{}", t.name);
        enqueue(&t.db, workspace, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let generation = staged(&t.db, &held, &["new", "newer"], at(1)).await;
        assert_eq!(texts().await, ["old"], "{}", t.name);
        publish(&t.db, &held, generation, at(1)).await;
        assert_eq!(texts().await, ["new", "newer"], "{}", t.name);
    }
}

#[tokio::test]
async fn passages_are_fetched_by_generation_and_number_for_their_owner_until_their_document_is_deleted() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (document, a) = published(&t.db, owner, "a", &["a0", "a1", "a2"], at(0)).await;
        let (_, b) = published(&t.db, owner, "b", &["b0", "b1"], at(0)).await;
        let (_, theirs) = published(&t.db, other, "c", &["c0"], at(0)).await;
        let keys = [(b, 1), (a, 0), (a, 2), (theirs, 0), (a, 3), (GenerationId::generate(), 0)];
        let fetch = async |workspace| -> Vec<String> {
            let fetched = chunks::fetch(&t.db, workspace, &keys).await.unwrap();
            for found in &fetched {
                let ordinal = u32::try_from(found.chunk.ordinal).unwrap();
                assert!(keys.contains(&(found.generation_id, ordinal)), "{}", t.name);
                assert!(found.chunk.text.starts_with(&found.name), "{}: its document's name", t.name);
                assert_eq!((found.r#type, &*found.url), (DocumentType::Txt, ""), "{}", t.name);
            }
            let mut texts: Vec<_> = fetched.into_iter().map(|found| found.chunk.text).collect();
            texts.sort();
            texts
        };
        assert_eq!(fetch(owner).await, ["a0", "a2", "b1"], "{}", t.name);
        assert_eq!(fetch(other).await, ["c0"], "{}", t.name);
        assert!(chunks::fetch(&t.db, owner, &[]).await.unwrap().is_empty(), "{}", t.name);
        commit!(t.db, |tx| documents::delete(tx, owner, document, at(1), at(2)));
        assert_eq!(fetch(owner).await, ["b1"], "{}", t.name);
    }
}

#[tokio::test]
async fn a_generation_is_purged_in_batches_and_no_other_is_touched() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let texts = vec!["text"; BATCH * 2 + 50];
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let (gone, kept) =
            (staged(&t.db, &held, &texts, at(0)).await, staged(&t.db, &held, &["text"], at(0)).await);
        let count = async |generation| chunks::count(&t.db, generation).await.unwrap();
        assert_eq!((count(gone).await, count(kept).await), (250, 1), "{}", t.name);
        for (more, left) in [(true, 150), (true, 50), (false, 0), (false, 0)] {
            assert_eq!(
                commit!(t.db, |tx| chunks::purge_some(tx, RetiredGeneration::assumed(workspace, gone))),
                more,
                "{}",
                t.name
            );
            assert_eq!(count(gone).await, left, "{}", t.name);
        }
        assert_eq!(count(kept).await, 1, "{}", t.name);
        assert_eq!(count(GenerationId::generate()).await, 0, "{}", t.name);
    }
}

#[tokio::test]
async fn an_empty_batch_is_nothing() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &[], at(0)).await;
        commit!(t.db, |tx| chunks::insert(tx, workspace, held.document_id, generation, &[]));
        assert_eq!(chunks::count(&t.db, generation).await.unwrap(), 0, "{}", t.name);
    }
}
