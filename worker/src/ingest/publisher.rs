//! Publications. Those of one workspace that come at the same time are one transaction.

use futures::future::join_all;
use lectern_db::{
    self as db, Db, DbError,
    jobs::{GenerationPublication, PublishOutcome},
};
use lectern_jobs::JobQueue;
use lectern_shared::{combine::RequestCombiner, ids::WorkspaceId};

use crate::failure::IngestFailure;

/// The most documents that are published in one transaction.
const TOGETHER: usize = 64;

/// Publishes generations. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct GenerationPublisher {
    together: RequestCombiner<WorkspaceId, GenerationPublication, Result<PublishOutcome, DbError>>,
}

impl GenerationPublisher {
    pub(super) fn new(db: &Db, jobs: &JobQueue) -> Self {
        let (db, jobs) = (db.clone(), jobs.clone());
        let publish = move |workspace: WorkspaceId, publications| {
            let (db, jobs) = (db.on_behalf_of(workspace), jobs.clone());
            async move { publish_all(&db, &jobs, publications).await }
        };
        Self { together: RequestCombiner::new(TOGETHER, |_| 1, publish) }
    }

    /// Makes a generation the one that answers, and ends its job. It goes on when nobody waits for it any more: the claim decides whether it may.
    pub(super) async fn publish(
        &self,
        publication: GenerationPublication,
    ) -> Result<PublishOutcome, IngestFailure> {
        let published = self.together.ask(publication.claim.workspace_id, publication).await;
        Ok(published.ok_or(IngestFailure::Panicked)??)
    }
}

/// Publishes generations of one workspace: together, or each by itself where something is in the way of one of them. By itself a
/// publication finds out too what became of it, when that could not be told of all.
async fn publish_all(
    db: &Db,
    jobs: &JobQueue,
    publications: Vec<GenerationPublication>,
) -> Vec<Result<PublishOutcome, DbError>> {
    if publications.len() > 1 {
        match db::jobs::publish_together(db, &publications, jobs.now()).await {
            Ok(true) => return publications.iter().map(|_| Ok(PublishOutcome::Yes)).collect(),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "documents are published one by one"),
        }
    }
    join_all(publications.iter().map(|publication| db::jobs::publish(db, publication, jobs.now()))).await
}

#[cfg(test)]
mod tests {
    use lectern_db::testing::{at, both, claimed, enqueue, publication, staged, workspace};
    use lectern_jobs::testing::queue;
    use lectern_shared::clock::Clock;

    use super::*;

    #[tokio::test]
    async fn one_that_cannot_be_published_keeps_no_other() {
        for t in &both().await {
            let jobs = queue(&t.db, &Clock::manual(at(9)));
            let publisher = GenerationPublisher::new(&t.db, &jobs);
            let mut publications = Vec::new();
            for (name, owner) in [("a", 0), ("b", 0), ("changed", 0), ("c", 0), ("other", 1)] {
                let owner = match publications.first() {
                    Some(GenerationPublication { claim, .. }) if owner == 0 => claim.workspace_id,
                    _ => workspace(&t.db, at(0)).await,
                };
                let held = claimed(&t.db, owner, name, at(0)).await;
                let generation = staged(&t.db, &held, &["a"], at(1)).await;
                publications.push(publication(&t.db, &held, generation, at(2)).await);
            }
            let claim = publications[2].claim.clone();
            enqueue(&t.db, claim.workspace_id, claim.document_id, at(3)).await;
            let ends =
                join_all(publications.into_iter().map(|publication| publisher.publish(publication))).await;
            let ends: Vec<PublishOutcome> = ends.into_iter().map(|end| end.expect("an outcome")).collect();
            let [yes, outdated] = [PublishOutcome::Yes, PublishOutcome::Outdated];
            assert_eq!(ends, [yes, yes, outdated, yes, yes], "{}", t.name);
        }
    }
}
