//! The blobs of the embedded index.

use std::collections::HashMap;

use lectern_shared::ids::GenerationId;

use crate::{
    DbError,
    generations::RetiredGeneration,
    index_segments,
    testing::{at, both, commit, workspace},
};

#[tokio::test]
async fn blobs_are_read_in_order_by_their_owner_until_they_are_removed() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (a, b, empty) = (GenerationId::generate(), GenerationId::generate(), GenerationId::generate());
        for (generation, part, chunks, data) in
            [(a, 1, 20, &b"second"[..]), (a, 0, 4_096, b"\x00first\xff"), (b, 0, 1, b"other")]
        {
            commit!(t.db, |tx| index_segments::insert(tx, owner, generation, part, chunks, data));
        }
        for (generation, count) in [(a, 4_116), (b, 1), (empty, 0)] {
            assert_eq!(index_segments::count(&t.db, generation).await.unwrap(), count, "{}", t.name);
        }
        let sizes: HashMap<_, _> =
            index_segments::sizes(&t.db, owner, &[a, b, empty]).await.unwrap().into_iter().collect();
        assert_eq!(sizes, HashMap::from([(a, 13), (b, 5)]), "{}", t.name);
        let fetched = index_segments::fetch(&t.db, owner, &[a, empty]).await.unwrap();
        let seen: Vec<_> = fetched.iter().map(|blob| (blob.generation_id, blob.part, &*blob.data)).collect();
        assert_eq!(seen, [(a, 0, &b"\x00first\xff"[..]), (a, 1, b"second")], "{}", t.name);

        assert!(index_segments::sizes(&t.db, other, &[a, b]).await.unwrap().is_empty(), "{}", t.name);
        assert!(index_segments::fetch(&t.db, other, &[a, b]).await.unwrap().is_empty(), "{}", t.name);

        let mut tx = t.db.begin().await.unwrap();
        let again = index_segments::insert(&mut tx, owner, a, 0, 1, b"again").await;
        assert!(matches!(again, Err(DbError::Duplicate)), "{}: {again:?}", t.name);
        drop(tx);
        commit!(t.db, |tx| index_segments::delete(tx, RetiredGeneration::assumed(owner, a)));
        assert_eq!(index_segments::count(&t.db, a).await.unwrap(), 0, "{}", t.name);
        assert_eq!(index_segments::count(&t.db, b).await.unwrap(), 1, "{}", t.name);
    }
}

#[tokio::test]
async fn more_generations_than_one_query_asks_for_are_all_found() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let generations: Vec<_> = (0..1_201).map(|_| GenerationId::generate()).collect();
        let mut tx = t.db.begin().await.unwrap();
        for generation in &generations {
            index_segments::insert(&mut tx, owner, *generation, 0, 1, b"blob").await.unwrap();
        }
        tx.commit().await.unwrap();
        let fetched = index_segments::fetch(&t.db, owner, &generations).await.unwrap();
        assert_eq!(
            fetched.iter().map(|blob| blob.generation_id).collect::<Vec<_>>(),
            generations,
            "{}",
            t.name
        );
        assert_eq!(
            index_segments::sizes(&t.db, owner, &generations).await.unwrap().len(),
            1_201,
            "{}",
            t.name
        );
        for nothing in [
            index_segments::fetch(&t.db, owner, &[]).await.unwrap().len(),
            index_segments::sizes(&t.db, owner, &[]).await.unwrap().len(),
        ] {
            assert_eq!(nothing, 0, "{}", t.name);
        }
    }
}
