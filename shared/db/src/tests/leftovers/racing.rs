//! What is added at the moment in which its account or workspace is deleted.

use super::{columns_with, sweep};
use crate::{
    accounts, documents, known_addresses, locks,
    testing::{
        account_of, at, both, commit, finished_or_blocked, finished_or_blocked_beside, plain, workspace,
    },
    workspaces,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_added_while_the_account_is_deleted_is_noticed_before_it_is_there() {
    for t in &both().await {
        let gone = workspace(&t.db, at(0)).await;
        let mut deleting = t.db.begin().await.unwrap();
        accounts::delete(&mut deleting, account_of(gone), at(1)).await.unwrap();
        let adding = tokio::spawn({
            let db = t.db.clone();
            async move {
                let mut tx = db.begin().await.unwrap();
                known_addresses::remember(&mut tx, account_of(gone), b"home", at(1), 20).await.unwrap();
                workspaces::is_active(&mut tx, gone).await.unwrap()
            }
        });
        finished_or_blocked(&t.db, &adding).await;
        deleting.commit().await.unwrap();
        assert!(!adding.await.unwrap(), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_added_before_the_account_is_deleted_goes_with_it() {
    for t in &both().await {
        let gone = workspace(&t.db, at(0)).await;
        let mut adding = t.db.begin().await.unwrap();
        known_addresses::remember(&mut adding, account_of(gone), b"home", at(1), 20).await.unwrap();
        assert!(workspaces::is_active(&mut adding, gone).await.unwrap(), "{}", t.name);
        let deleting = tokio::spawn({
            let db = t.db.clone();
            async move { commit!(db, |tx| accounts::delete(tx, account_of(gone), at(1))) }
        });
        finished_or_blocked(&t.db, &deleting).await;
        adding.commit().await.unwrap();
        deleting.await.unwrap();
        assert_eq!(columns_with(&t.db, gone).await, [], "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_that_waits_for_what_is_added_keeps_nobody_else_waiting() {
    for t in both().await.iter().filter(|t| t.name == "PostgreSQL") {
        let gone = workspace(&t.db, at(0)).await;
        let added = plain(gone, "added");
        let mut adding = t.db.begin().await.unwrap();
        documents::insert(&mut adding, &added, at(0)).await.unwrap();
        let mut changing = t.db.begin().await.unwrap();
        locks::lock_workspace(&mut changing, gone).await.unwrap();
        let deleting = tokio::spawn({
            let db = t.db.clone();
            async move { commit!(db, |tx| workspaces::delete(tx, gone, at(1))) }
        });
        finished_or_blocked(&t.db, &deleting).await;
        let behind = tokio::spawn({
            let db = t.db.clone();
            async move { commit!(db, |tx| locks::lock_workspace(tx, gone)) }
        });
        finished_or_blocked_beside(&t.db, &behind, 1).await;
        changing.commit().await.unwrap();
        // Of those who add something, some come to wait for such a one themselves.
        behind.await.unwrap();
        assert!(!deleting.is_finished(), "something is being added still");
        adding.commit().await.unwrap();
        deleting.await.unwrap();
        sweep(&t.db, at(2)).await;
        assert_eq!(columns_with(&t.db, gone).await, [], "it goes with the workspace");
    }
}
