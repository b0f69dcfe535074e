//! How the ingestions of several documents go.

use lectern_shared::{ids::DocumentId, model::job::JobState};

use super::delete;
use crate::{
    DbError,
    documents::{self, DocumentIngestion},
    testing::{at, both, claimed, commit, damage_job, document, published, workspace},
};

#[tokio::test]
async fn the_ingestions_of_several_documents_are_those_of_each() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (done, _) = published(&t.db, owner, "done", &["a"], at(0)).await;
        let running = claimed(&t.db, other, "running", at(1)).await.document_id;
        let gone = document(&t.db, owner, "gone", at(2)).await;
        delete(&t.db, owner, gone, 3).await;
        let asked = [(owner, done), (other, running), (owner, gone), (owner, DocumentId::generate())];
        let mut found: Vec<_> = documents::ingestions(&t.db, &asked)
            .await
            .unwrap()
            .into_iter()
            .map(|found| (found.workspace_id, found.id, found.ingestion.unwrap().state))
            .collect();
        found.sort_unstable_by_key(|(_, id, _)| *id);
        let expected = [(owner, done, JobState::Done), (other, running, JobState::Running)];
        assert_eq!(found, expected, "{}", t.name);
        assert!(documents::ingestions(&t.db, &[(other, done)]).await.unwrap().is_empty(), "{}", t.name);
        assert!(documents::ingestions(&t.db, &[]).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn an_ingestion_that_cannot_be_read_hides_no_other() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let damaged = document(&t.db, owner, "damaged", at(0)).await;
        let other = document(&t.db, owner, "other", at(0)).await;
        commit!(t.db, |tx| damage_job(tx, damaged));
        let found = documents::ingestions(&t.db, &[(owner, damaged), (owner, other)]).await.unwrap();
        assert_eq!(found.len(), 2, "{}", t.name);
        for DocumentIngestion { id, ingestion, .. } in found {
            match ingestion {
                Ok(ingestion) => assert_eq!((id, ingestion.state), (other, JobState::Queued), "{}", t.name),
                Err(error) => assert!(id == damaged && matches!(error, DbError::Unreadable(_)), "{error}"),
            }
        }
    }
}
