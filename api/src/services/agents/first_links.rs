//! What an agent answers from when it is made.

use lectern_db::{self as db, Tx};
use lectern_shared::{
    ids::{AgentId, CollectionId, DocumentId},
    model::workspace::RowOwner,
};

use super::AgentService;
use crate::error::ApiError;

/// Documents and collections that a new agent is linked to.
#[derive(Default)]
pub(crate) struct FirstLinks {
    pub(crate) documents: Vec<DocumentId>,
    pub(crate) collections: Vec<CollectionId>,
}

impl AgentService {
    /// Links an agent that is made in this transaction, and tells how many documents are to be ingested for that. Nobody else knows the
    /// agent yet: that its row is locked before the documents keeps nobody waiting.
    pub(super) async fn link_first(
        &self,
        tx: &mut Tx,
        owner: RowOwner,
        agent: AgentId,
        links: FirstLinks,
    ) -> Result<usize, ApiError> {
        let now = self.clock.now();
        for collection in links.collections {
            if !db::collections::link_new(tx, owner, agent, collection, now).await? {
                return Err(ApiError::not_found("collection"));
            }
        }
        let mut queued = 0;
        for document in links.documents {
            // Who meant all of them named none: one that is gone meanwhile is not missed.
            if !db::agents::link_new(tx, owner, agent, document, now).await? {
                continue;
            }
            // Whoever links it means to ask it.
            let is_queued = db::jobs::ended_unpublished(tx, document).await?
                && self.jobs.enqueue_ingest(tx, owner.workspace_id, document).await?;
            queued += usize::from(is_queued);
        }
        Ok(queued)
    }
}
