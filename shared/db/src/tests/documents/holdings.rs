//! What is stored of a document besides its row, and who comes while it is deleted.

use std::collections::HashSet;

use lectern_shared::model::{receipt::DeletionReceipt, space::EmbeddingSpace};

use crate::{
    agents,
    documents::{
        self,
        deletion::delete_with_receipt,
        holdings::{DocumentHoldings, holdings},
    },
    generations, receipts,
    testing::{
        account_of, at, both, claim, commit, document, enqueue, finished_or_blocked, made_in, published,
        staged_in, workspace,
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
async fn a_document_is_deleted_once_by_its_own_workspace_and_leaves_a_receipt_of_what_there_was() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (id, generation) = published(&t.db, owner, "one", &["a", "b"], at(0)).await;
        let agent = agent(&t.db, owner, at(0)).await;
        commit!(t.db, |tx| agents::link(tx, made_in(owner), agent, id, at(0))).unwrap();
        let by = account_of(owner);
        let strangers = commit!(t.db, |tx| delete_with_receipt(tx, other, id, by, at(1)));
        assert_eq!(strangers, None, "{}", t.name);
        assert_eq!(receipts::find(&t.db, owner, id).await.unwrap(), None, "{}", t.name);
        let links = agents::links(&t.db, owner, agent).await.unwrap();
        assert_eq!(*links.documents, [id], "{}: a stranger takes nothing away", t.name);

        let held = commit!(t.db, |tx| delete_with_receipt(tx, owner, id, by, at(2))).unwrap();
        let expected = DeletionReceipt {
            document_id: id,
            name: "one".to_owned(),
            deleted_at: at(2),
            deleted_by: by,
            purged_at: None,
            passages: 2,
            index_entries: 0,
            vectors: 0,
            bytes: held.bytes,
            links: 1,
            remaining: 0,
        };
        assert_eq!(receipts::find(&t.db, owner, id).await.unwrap(), Some(expected), "{}", t.name);
        assert!(documents::find(&t.db, owner, id).await.unwrap().is_none(), "{}", t.name);
        let links = agents::links(&t.db, owner, agent).await.unwrap();
        assert!(links.documents.is_empty(), "{}", t.name);
        let to_purge = generations::purgeable(&t.db, at(3), 10).await.unwrap();
        assert_eq!(to_purge.iter().map(|g| g.retired.id()).collect::<Vec<_>>(), [generation], "{}", t.name);
        let again = commit!(t.db, |tx| delete_with_receipt(tx, owner, id, by, at(4)));
        assert_eq!(again, None, "{}", t.name);
    }
}

#[tokio::test]
async fn of_documents_that_are_named_those_are_present_that_are_ones_own_and_were_not_deleted() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let kept = document(&t.db, owner, "kept", at(0)).await;
        let deleted = document(&t.db, owner, "deleted", at(0)).await;
        let strange = document(&t.db, other, "strange", at(0)).await;
        let by = account_of(owner);
        assert!(
            commit!(t.db, |tx| delete_with_receipt(tx, owner, deleted, by, at(1))).is_some(),
            "{}",
            t.name
        );
        let found = documents::present(&t.db, owner, &[kept, deleted, strange]).await.unwrap();
        assert_eq!(found, HashSet::from([kept]), "{}", t.name);
        assert!(documents::present(&t.db, owner, &[]).await.unwrap().is_empty(), "{}", t.name);
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
