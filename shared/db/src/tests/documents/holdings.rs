//! What is stored of a document besides its row, and who comes while it is deleted.

use lectern_shared::model::space::EmbeddingSpace;

use crate::{
    agents,
    documents::{
        self,
        deletion::{DocumentHoldings, holdings},
    },
    testing::{
        at, both, claim, commit, document, enqueue, finished_or_blocked, made_in, published, staged_in,
        workspace,
    },
    tests::agents::agent,
};

#[tokio::test]
async fn what_a_document_holds_is_counted_over_all_its_generations() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (id, _) = published(&t.db, owner, "one", &["a", "b"], at(0)).await;
        let (another, _) = published(&t.db, owner, "another", &["x", "y", "z"], at(0)).await;
        let agent = agent(&t.db, owner, at(0)).await;
        for linked in [id, another] {
            commit!(t.db, |tx| agents::link(tx, made_in(owner), agent, linked, at(0))).unwrap();
        }
        enqueue(&t.db, owner, id, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let space = EmbeddingSpace::new("tiny", 2, &[]);
        staged_in(&t.db, &held, Some(&space), &["c"], at(1)).await;

        let expected = DocumentHoldings {
            name: "one".to_owned(),
            generations: 2,
            chunks: 3,
            vectors: 1,
            bytes: i64::try_from("content".len()).unwrap(),
            blobs: 0,
            links: 1,
        };
        assert_eq!(commit!(t.db, |tx| holdings(tx, owner, id)), Some(expected), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| holdings(tx, other, id)), None, "{}", t.name);
    }
}

#[tokio::test]
async fn whoever_waits_for_a_document_that_is_being_deleted_does_not_find_it() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let id = document(&t.db, owner, "one", at(0)).await;
        let mut deleting = t.db.begin().await.unwrap();
        assert!(documents::delete(&mut deleting, owner, id, at(1), at(1)).await.unwrap(), "{}", t.name);
        let db = t.db.clone();
        let changing = tokio::spawn(async move { commit!(db, |tx| documents::find_locked(tx, owner, id)) });
        finished_or_blocked(&t.db, &changing).await;
        deleting.commit().await.unwrap();
        assert!(changing.await.unwrap().is_none(), "{}", t.name);
    }
}
