//! Which documents answer.

use lectern_shared::ids::{DocumentId, WorkspaceId};

use super::delete;
use crate::{
    Db,
    documents::{self, NewDocumentRow},
    testing::{at, both, claimed, commit, plain, publish, published, staged, workspace},
};

#[tokio::test]
async fn only_documents_that_answer_are_active() {
    for t in &both().await {
        let (workspace, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (first, generation) = published(&t.db, workspace, "first", &["text"], at(0)).await;
        published(&t.db, other, "another's", &["text"], at(0)).await;
        let epoch = documents::search_epoch(&t.db, workspace).await.unwrap();

        let held = claimed(&t.db, workspace, "second", at(0)).await;
        let second = staged(&t.db, &held, &["text"], at(0)).await;
        let active = documents::active(&t.db, workspace).await.unwrap();
        assert_eq!(
            active.iter().map(|d| d.active_generation).collect::<Vec<_>>(),
            [generation],
            "{}",
            t.name
        );
        assert_eq!(active[0].id, first, "{}", t.name);
        assert_eq!(
            documents::search_epoch(&t.db, workspace).await.unwrap(),
            epoch,
            "{}: nothing to see yet",
            t.name
        );

        publish(&t.db, &held, second, at(1)).await;
        let active = documents::active(&t.db, workspace).await.unwrap();
        let generations: Vec<_> = active.iter().map(|d| d.active_generation).collect();
        assert_eq!(generations, [generation, second], "{}", t.name);
        let published = documents::search_epoch(&t.db, workspace).await.unwrap();
        assert!(published > epoch, "{}", t.name);
        delete(&t.db, workspace, first, 2).await;
        assert!(documents::search_epoch(&t.db, workspace).await.unwrap() > published, "{}", t.name);
        assert_eq!(documents::active(&t.db, workspace).await.unwrap().len(), 1, "{}", t.name);
    }
}

/// The documents that have changed since an epoch, and whether each can be searched.
async fn changed_since(db: &Db, workspace: WorkspaceId, epoch: i64) -> Option<Vec<(DocumentId, bool)>> {
    let changed = documents::changed_since(db, workspace, epoch).await.unwrap()?;
    Some(changed.into_iter().map(|changed| (changed.id, changed.active.is_some())).collect())
}

#[tokio::test]
async fn what_has_changed_since_an_epoch_can_be_read_alone() {
    for t in &both().await {
        let (workspace, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let epoch = async || documents::search_epoch(&t.db, workspace).await.unwrap();
        let (first, _) = published(&t.db, workspace, "first", &["text"], at(0)).await;
        published(&t.db, other, "another's", &["text"], at(0)).await;
        claimed(&t.db, workspace, "not yet", at(0)).await;
        let one = epoch().await;
        assert_eq!(changed_since(&t.db, workspace, one).await, Some(vec![]), "{}", t.name);

        let (second, generation) = published(&t.db, workspace, "second", &["text"], at(3)).await;
        let changed = documents::changed_since(&t.db, workspace, one).await.unwrap().unwrap();
        let active = changed[0].active.as_ref().unwrap();
        assert_eq!(
            (changed.len(), active.id, active.active_generation),
            (1, second, generation),
            "{}",
            t.name
        );

        // Metadata count for filters; what is deleted is told until its row is gone.
        let two = epoch().await;
        let mut tx = t.db.begin().await.unwrap();
        documents::bump_search_epoch(&mut tx, workspace).await.unwrap();
        documents::update(&mut tx, &NewDocumentRow { id: first, ..plain(workspace, "first") }, at(4))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        delete(&t.db, workspace, second, 5).await;
        let told = Some(vec![(first, true), (second, false)]);
        assert_eq!(changed_since(&t.db, workspace, two).await, told, "{}", t.name);
        let three = epoch().await;
        assert_eq!(changed_since(&t.db, workspace, three).await, Some(vec![]), "{}", t.name);

        commit!(t.db, |tx| documents::drop_tombstone(tx, second, at(6)));
        assert_eq!(changed_since(&t.db, workspace, two).await, None, "{}: what is gone is unknown", t.name);
        assert_eq!(changed_since(&t.db, workspace, three).await, Some(vec![]), "{}", t.name);
    }
}

/// Else each search while documents are ingested would take the longer the more there are.
#[tokio::test]
async fn what_has_changed_is_read_without_what_has_not() {
    let by_epoch = |step: &String| step.contains("documents_changed (workspace_id=? AND changed_epoch>?)");
    let t = &both().await[0];
    for changed in [documents::CHANGED, documents::metadata::CHANGED] {
        let plan = t.query_plan(changed).await;
        assert!(plan.iter().any(by_epoch), "{plan:#?}");
    }
}
