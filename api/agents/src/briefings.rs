//! What questions have to know of agents, as a process remembers it.

use std::sync::Arc;

use lectern_db::{
    self as db, Db, DbError,
    agents::{AgentBriefing, KnownDocuments, LinkStamp},
};
use lectern_shared::{
    cache_budget::CacheBudget,
    ids::{AgentId, DocumentId, WorkspaceId},
};
use parking_lot::Mutex;

use crate::stamped_cache::StampedCache;

/// The agents' documents take one of so many parts of what all lists may take, besides the lists of what can be searched: with the
/// default, about half a million.
const PART: u64 = 16;
/// Those of one agent take one of so many parts of that.
const SHARE: u64 = 4;

/// Reads agents for questions, and remembers the documents of those who were asked last: an agent may have thousands, which hardly ever
/// change between two questions. Cheap to clone.
#[derive(Clone)]
pub struct AgentBriefings {
    db: Db,
    known: Arc<Mutex<StampedCache<AgentId, LinkStamp, [DocumentId]>>>,
}

impl AgentBriefings {
    /// What it remembers counts against `budget`.
    pub fn new(db: Db, budget: &CacheBudget) -> Self {
        Self { db, known: Arc::new(Mutex::new(StampedCache::new(budget, budget.for_lists() / PART, SHARE))) }
    }

    /// One of a workspace's agents, as it is now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn of(&self, workspace: WorkspaceId, agent: AgentId) -> Result<Option<AgentBriefing>, DbError> {
        let known = self.known.lock().get(&agent);
        let known = known.map(|(stamp, documents)| KnownDocuments { stamp, documents });
        let briefing = db::agents::brief(&self.db, workspace, agent, known.as_ref()).await?;
        if let Some(briefing) = &briefing {
            let stamp = briefing.stamp();
            if known.is_none_or(|known| known.stamp != stamp) {
                let documents = Arc::clone(&briefing.links.documents);
                let bytes = size_of_val::<[_]>(&documents) as u64;
                self.known.lock().put(agent, stamp, documents, bytes);
            }
        }
        Ok(briefing)
    }
}
