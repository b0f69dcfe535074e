//! Which documents answer.

use super::delete;
use crate::{
    db::{
        documents,
        testing::{at, both, claimed, publish, published, staged, workspace},
    },
    ids::DocumentId,
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

#[tokio::test]
async fn what_is_active_can_be_told_at_a_glance_and_read_singly() {
    for t in &both().await {
        let (workspace, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        assert!(documents::active_versions(&t.db, workspace).await.unwrap().is_empty(), "{}", t.name);
        let (first, _) = published(&t.db, workspace, "first", &["text"], at(0)).await;
        let (second, _) = published(&t.db, workspace, "second", &["text"], at(3)).await;
        let (gone, _) = published(&t.db, workspace, "gone", &["text"], at(0)).await;
        let (others, _) = published(&t.db, other, "another's", &["text"], at(0)).await;
        claimed(&t.db, workspace, "not yet", at(0)).await;
        delete(&t.db, workspace, gone, 2).await;

        let active = documents::active(&t.db, workspace).await.unwrap();
        let versions = documents::active_versions(&t.db, workspace).await.unwrap();
        let expected: Vec<_> = active
            .iter()
            .map(|document| documents::ActiveVersion {
                id: document.id,
                generation: document.active_generation,
                updated_at: document.updated_at,
            })
            .collect();
        assert_eq!(versions, expected, "{}", t.name);
        assert_eq!(
            versions.iter().map(|version| version.id).collect::<Vec<_>>(),
            [first, second],
            "{}",
            t.name
        );

        let named = [second, gone, others, DocumentId::generate()];
        let named = documents::active_among(&t.db, workspace, &named).await.unwrap();
        assert_eq!(named.iter().map(|document| document.id).collect::<Vec<_>>(), [second], "{}", t.name);
        assert!(documents::active_among(&t.db, workspace, &[]).await.unwrap().is_empty(), "{}", t.name);
    }
}
