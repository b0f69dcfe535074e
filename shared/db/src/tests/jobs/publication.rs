//! Publications of several documents at once.

use lectern_shared::{ids::WorkspaceId, model::job::JobState};

use super::{cancel, ingestion};
use crate::{
    documents,
    jobs::{self, GenerationPublication, PublishOutcome},
    testing::{TestDb, active, at, both, claim, claimed, enqueue, publication, published, staged, workspace},
};

/// Publications of these documents, each of which has two passages.
async fn finished(t: &TestDb, owner: WorkspaceId, names: &[&str]) -> Vec<GenerationPublication> {
    let mut finished = Vec::new();
    for name in names {
        let held = claimed(&t.db, owner, name, at(0)).await;
        let generation = staged(&t.db, &held, &["a", "b"], at(1)).await;
        finished.push(publication(&t.db, &held, generation, at(2)).await);
    }
    finished
}

#[tokio::test]
async fn documents_that_are_published_together_answer_and_their_jobs_end() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let mut finished = finished(t, owner, &["one", "two", "three"]).await;
        finished[1].learnt = None;
        let epoch = documents::search_epoch(&t.db, owner).await.unwrap();
        assert!(jobs::publish_together(&t.db, &finished, at(3)).await.unwrap(), "{}", t.name);
        for publication in &finished {
            let (claim, on) = (&publication.claim, t.name);
            assert_eq!(active(&t.db, owner, claim.document_id).await, Some(publication.generation), "{on}");
            let job = ingestion(&t.db, owner, claim.document_id).await;
            assert_eq!((job.state, job.finished_at), (JobState::Done, Some(at(3))), "{on}");
            let document = documents::find(&t.db, owner, claim.document_id).await.unwrap().unwrap();
            assert_eq!(document.search_index.unwrap().0, publication.index, "{on}");
            let source = documents::source(&t.db, owner, claim.document_id).await.unwrap().unwrap();
            assert_eq!(source.source_state.map(|state| state.0), publication.learnt, "{on}");
            // As each would have been by itself.
            assert_eq!(jobs::publish(&t.db, publication, at(4)).await.unwrap(), PublishOutcome::ClaimLost);
        }
        assert!(documents::search_epoch(&t.db, owner).await.unwrap() > epoch, "{}", t.name);
        let changed = documents::changed_since(&t.db, owner, epoch).await.unwrap().unwrap();
        assert_eq!(changed.len(), 3, "{}: all are told to who has an earlier list", t.name);
    }
}

#[tokio::test]
async fn what_is_in_the_way_of_one_has_none_published_together() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (document, _) = published(&t.db, owner, "again", &["old"], at(0)).await;
        enqueue(&t.db, owner, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let generation = staged(&t.db, &held, &["new"], at(1)).await;
        let replaces = publication(&t.db, &held, generation, at(2)).await;
        let elsewhere = finished(t, workspace(&t.db, at(0)).await, &["elsewhere"]).await.remove(0);
        let stopped = finished(t, owner, &["stopped"]).await.remove(0);
        cancel(&t.db, owner, stopped.claim.document_id, at(2)).await;
        let mut lacking = finished(t, owner, &["lacking"]).await.remove(0);
        lacking.index.chunks += 1;
        let changed = finished(t, owner, &["changed"]).await.remove(0);
        enqueue(&t.db, owner, changed.claim.document_id, at(2)).await;
        let ends = [
            (replaces, PublishOutcome::Yes),
            (elsewhere, PublishOutcome::Yes),
            (stopped, PublishOutcome::ClaimLost),
            (lacking, PublishOutcome::Incomplete),
            (changed, PublishOutcome::Outdated),
        ];
        let mut whole = finished(t, owner, &["one", "two"]).await;
        for (publication, by_itself) in ends {
            whole.insert(1, publication);
            assert!(
                !jobs::publish_together(&t.db, &whole, at(3)).await.unwrap(),
                "{}: {by_itself:?}",
                t.name
            );
            let publication = whole.remove(1);
            for other in &whole {
                let job = ingestion(&t.db, owner, other.claim.document_id).await;
                assert_eq!(job.state, JobState::Running, "{}: {by_itself:?}", t.name);
            }
            assert_eq!(jobs::publish(&t.db, &publication, at(3)).await.unwrap(), by_itself, "{}", t.name);
        }
        assert!(jobs::publish_together(&t.db, &whole, at(4)).await.unwrap(), "{}", t.name);
        assert!(jobs::publish_together(&t.db, &[], at(4)).await.unwrap(), "{}: nothing is done well", t.name);
    }
}
