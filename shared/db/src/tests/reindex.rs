//! Documents that are indexed again from their stored passages.

use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::job::{IngestionError, JobState},
};

use crate::{
    Db, checkup, chunks, documents,
    jobs::{self, JobProgress, PublishOutcome, ReindexTarget},
    testing::{
        active, at, both, claim, commit, document, enqueue, passages, publish, published, staged, workspace,
    },
};

/// How a document's ingestion stands, and what its error says.
async fn standing(db: &Db, workspace: WorkspaceId, document: DocumentId) -> (JobState, Option<String>) {
    let found = documents::ingestion(db, workspace, document).await.unwrap().unwrap();
    (found.state, found.last_error.map(|error| error.0.code))
}

#[tokio::test]
async fn searchable_documents_are_queued_to_be_indexed_from_what_is_stored() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut documents = Vec::new();
        for (number, owner) in [ada, ada, ada, grace].into_iter().enumerate() {
            let (document, _) = published(&t.db, owner, &format!("{number}"), &["a", "b"], at(1)).await;
            documents.push(document);
        }
        let (deleted, _) = published(&t.db, grace, "deleted", &["a"], at(3)).await;
        assert!(commit!(t.db, |tx| documents::delete(tx, grace, deleted, at(4), at(4))));
        document(&t.db, grace, "waiting", at(5)).await;

        assert_eq!(
            commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::All, at(1_000))),
            4,
            "{}",
            t.name
        );
        assert_eq!(
            commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::All, at(1_000))),
            0,
            "{}: they wait already",
            t.name
        );
        // What is added now comes first, and nobody waits for all of another workspace's documents.
        let added = document(&t.db, ada, "added", at(1_000)).await;
        let mut order = Vec::new();
        while let Some(claim) = claim(&t.db, at(1_001)).await {
            order.push((claim.document_id, claim.from_stored));
        }
        let place = |wanted| order.iter().position(|(document, _)| *document == wanted).unwrap();
        assert_eq!(order.len(), 6, "{}", t.name);
        assert!(
            place(added) < place(documents[0]) && place(documents[3]) < place(documents[1]),
            "{}",
            t.name
        );
        for (claimed, from_stored) in order {
            assert_eq!(from_stored, documents.contains(&claimed), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_document_that_is_to_be_ingested_is_not_only_indexed() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (document, _) = published(&t.db, workspace, "one", &["a"], at(1)).await;
        assert_eq!(commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::All, at(2))), 1, "{}", t.name);
        assert!(enqueue(&t.db, workspace, document, at(3)).await);
        assert!(!claim(&t.db, at(10)).await.unwrap().from_stored, "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_that_failed_is_indexed_again_and_still_says_so() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (document, _) = published(&t.db, owner, "one", &["old"], at(1)).await;
        let fail = async |code: &str, now| {
            let claim = claim(&t.db, at(now)).await.expect(t.name);
            let error = IngestionError { code: code.to_owned(), message: String::new(), retryable: false };
            let report = JobProgress::default();
            commit!(t.db, |tx| jobs::fail(tx, &claim, &error, None, &report, at(now)));
        };
        let finish = async |from_stored: bool, now| {
            let claim = claim(&t.db, at(now)).await.expect(t.name);
            assert_eq!(claim.from_stored, from_stored, "{}", t.name);
            let generation = staged(&t.db, &claim, &["old"], at(now)).await;
            assert_eq!(publish(&t.db, &claim, generation, at(now)).await, PublishOutcome::Yes, "{}", t.name);
            assert_eq!(active(&t.db, owner, document).await, Some(generation), "{}", t.name);
        };
        let again = async |now| commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::All, at(now)));
        let failed = (JobState::Dead, Some("no_text".to_owned()));

        // Its source was replaced by one that cannot be read.
        assert!(enqueue(&t.db, owner, document, at(2)).await, "{}", t.name);
        fail("no_text", 3).await;
        assert_eq!(again(4).await, 1, "{}", t.name);
        finish(true, 5).await;
        assert_eq!(standing(&t.db, owner, document).await, failed, "{}", t.name);
        // Indexing it fails too, once; that is what is shown until it is done.
        assert_eq!(again(6).await, 1, "{}", t.name);
        fail("embedder_failed", 7).await;
        assert_eq!(
            standing(&t.db, owner, document).await.1.as_deref(),
            Some("embedder_failed"),
            "{}",
            t.name
        );
        assert_eq!(commit!(t.db, |tx| checkup::index_again(tx, &[document], at(8))), 1, "{}", t.name);
        finish(true, 9).await;
        assert_eq!(standing(&t.db, owner, document).await, failed, "{}", t.name);
        // One that was stopped stays stopped, and one that is ingested from its source is mended.
        assert!(enqueue(&t.db, owner, document, at(10)).await, "{}", t.name);
        assert!(commit!(t.db, |tx| jobs::cancel(tx, owner, document, at(11))), "{}", t.name);
        assert_eq!(again(12).await, 1, "{}", t.name);
        finish(true, 13).await;
        assert_eq!(standing(&t.db, owner, document).await, (JobState::Cancelled, None), "{}", t.name);
        assert_eq!(again(14).await, 1, "{}", t.name);
        assert!(enqueue(&t.db, owner, document, at(15)).await, "{}", t.name);
        finish(false, 16).await;
        assert_eq!(again(17).await, 1, "{}", t.name);
        finish(true, 18).await;
        assert_eq!(standing(&t.db, owner, document).await, (JobState::Done, None), "{}", t.name);
    }
}

#[tokio::test]
async fn stored_passages_are_read_back_as_they_were_added() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let texts: Vec<String> = (0..chunks::BATCH + 5).map(|number| format!("passage {number}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (document, generation) = published(&t.db, owner, "one", &texts, at(1)).await;
        let first = chunks::stored(&t.db, owner, generation, 0).await.unwrap();
        assert_eq!(first.len(), chunks::BATCH, "{}", t.name);
        let from = i64::from(first.last().unwrap().ordinal) + 1;
        let rest = chunks::stored(&t.db, owner, generation, from).await.unwrap();
        let read: Vec<_> = first.into_iter().chain(rest).collect();
        let shown = |chunks: &[chunks::NewChunk]| format!("{chunks:?}");
        assert_eq!(shown(&read), shown(&passages(document, &texts)), "{}", t.name);
        let other = workspace(&t.db, at(0)).await;
        assert!(chunks::stored(&t.db, other, generation, 0).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(active(&t.db, owner, document).await, Some(generation), "{}", t.name);
        assert_eq!(active(&t.db, other, document).await, None, "{}", t.name);
    }
}
