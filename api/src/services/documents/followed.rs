//! How ingestions go on that somebody follows. The worker may be another process, so the database is asked: every so often one question
//! about all of them, however many follow.

use std::{collections::HashMap, time::Duration};

use lectern_db::{self as db, Db, documents::DocumentIngestion};
use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::job::IngestionSummary,
};
use tokio::time::Instant;

use crate::{
    error::{ApiError, ApiErrorKind},
    watched::{NewsSubscription, WatchList},
};

/// How often the database is asked.
const EVERY: Duration = Duration::from_millis(500);
/// Documents that one question is about, at most.
const BATCH: usize = 500;

/// A document, and whose it is.
type FollowedDocument = (WorkspaceId, DocumentId);

/// How an ingestion goes; none when its document was deleted.
type IngestionNews = Result<Option<IngestionSummary>, ApiError>;

/// The ingestions that somebody follows. Cheap to clone; clones share them.
#[derive(Clone)]
pub(super) struct IngestionMonitor {
    db: Db,
    /// What was found of each the last time, and when that was asked for.
    followed: WatchList<FollowedDocument, Option<(Instant, IngestionNews)>>,
}

/// An ingestion that somebody follows.
pub(crate) struct FollowedIngestion {
    subscription: NewsSubscription<FollowedDocument, Option<(Instant, IngestionNews)>>,
    since: Instant,
}

/// What those are told who follow what cannot be asked for.
fn unavailable() -> ApiError {
    let message = "A part of the service is away; connect again shortly.";
    ApiError::new(ApiErrorKind::Unavailable, "unavailable", message)
}

impl IngestionMonitor {
    pub(super) fn new(db: Db) -> Self {
        Self { db, followed: WatchList::default() }
    }

    /// Follows an ingestion from now on.
    pub(super) fn follow(&self, workspace: WorkspaceId, id: DocumentId) -> FollowedIngestion {
        let watch = || {
            tokio::spawn(self.clone().watch());
        };
        FollowedIngestion {
            subscription: self.followed.subscribe((workspace, id), watch),
            since: Instant::now(),
        }
    }

    /// Asks for what is followed until nothing is.
    async fn watch(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(followed) = self.followed.keys() else { return };
            for some in followed.chunks(BATCH) {
                let asked = Instant::now();
                let mut found = self.read(some).await;
                self.followed.tell(some.iter().map(|document| {
                    let news = match &mut found {
                        Ok(found) => found.remove(document).transpose(),
                        Err(error) => Err(error.clone()),
                    };
                    (*document, Some((asked, news)))
                }));
            }
        }
    }

    /// How each of these goes that there is still.
    async fn read(
        &self,
        documents: &[FollowedDocument],
    ) -> Result<HashMap<FollowedDocument, Result<IngestionSummary, ApiError>>, ApiError> {
        match db::documents::ingestions(&self.db, documents).await {
            Ok(found) => {
                let read = |DocumentIngestion { id, workspace_id, ingestion }| {
                    let ingestion = ingestion.map_err(|error| {
                        tracing::error!(%error, document = %id, "an ingestion that is followed cannot be read");
                        ApiError::internal()
                    });
                    ((workspace_id, id), ingestion)
                };
                Ok(found.into_iter().map(read).collect())
            }
            Err(error) => {
                let documents = documents.len();
                tracing::warn!(%error, documents, "ingestions cannot be followed any more");
                Err(unavailable())
            }
        }
    }
}

impl FollowedIngestion {
    /// How it goes the next time that it is asked for; none when its document was deleted.
    ///
    /// # Errors
    /// When it cannot be followed any more.
    pub(crate) async fn next(&mut self) -> IngestionNews {
        loop {
            if self.subscription.news.changed().await.is_err() {
                return Err(unavailable());
            }
            let news = self.subscription.news.borrow_and_update().clone();
            // What was asked for before may be older than what is known.
            if let Some((asked, news)) = news
                && asked >= self.since
            {
                return news;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;
    use lectern_db::testing::{at, both, commit, damage_job, document, workspace};
    use lectern_shared::model::job::JobState;

    use super::*;

    #[tokio::test]
    async fn what_cannot_be_read_of_one_ingestion_ends_nobody_elses_stream() {
        for t in &both().await {
            let owner = workspace(&t.db, at(0)).await;
            let damaged = document(&t.db, owner, "damaged", at(0)).await;
            let other = document(&t.db, owner, "other", at(0)).await;
            commit!(t.db, |tx| damage_job(tx, damaged));
            let monitor = IngestionMonitor::new(t.db.clone());
            let [mut damaged, mut other] = [damaged, other].map(|id| monitor.follow(owner, id));
            assert_eq!(damaged.next().await.err().map(|error| error.code), Some("internal"), "{}", t.name);
            let news = other.next().await.unwrap().map(|ingestion| ingestion.state);
            assert_eq!(news, Some(JobState::Queued), "{}", t.name);
        }
    }

    #[tokio::test]
    async fn what_was_asked_for_before_somebody_followed_is_no_news_to_them() {
        let list = WatchList::default();
        let document = (WorkspaceId::generate(), DocumentId::generate());
        let before = Instant::now();
        let since = before + Duration::from_millis(1);
        let mut following = FollowedIngestion { subscription: list.subscribe(document, || {}), since };
        let mut next = pin!(following.next());
        list.tell([(document, Some((before, Ok(None))))]);
        assert!(poll!(&mut next).is_pending(), "it may have been read before what is known");
        list.tell([(document, Some((since, Err(unavailable()))))]);
        assert_eq!(next.await.err().map(|error| error.code), Some("unavailable"));
    }
}
