//! Searching passages.

use std::collections::HashSet;

use lectern_agents::search::{MetadataFilter, PassageHit, SearchEngine, SearchRequest};
use lectern_shared::{
    db::{self, Db},
    ids::{AgentId, DocumentId, InvalidId},
    model::search::SearchMode,
};

use super::Actor;
use crate::error::ApiError;

/// What to search for, and in what.
pub(crate) struct PassageQuery {
    /// The question.
    pub(crate) query: String,
    /// The documents that are named. Text that cannot be an id names an unknown one.
    pub(crate) documents: Option<Result<Vec<DocumentId>, InvalidId>>,
    /// The agent that is named.
    pub(crate) agent: Option<Result<AgentId, InvalidId>>,
    pub(crate) filter: MetadataFilter,
    pub(crate) limit: usize,
    pub(crate) mode: SearchMode,
}

/// Search. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SearchService {
    db: Db,
    search: SearchEngine,
}

fn unknown_document() -> ApiError {
    ApiError::not_found("document")
}

fn unknown_agent() -> ApiError {
    ApiError::not_found("agent")
}

impl SearchService {
    pub(crate) fn new(db: Db, search: SearchEngine) -> Self {
        Self { db, search }
    }

    /// The passages that answer best, best first.
    ///
    /// # Errors
    /// Not found, for a document or an agent that is not the caller's.
    pub(crate) async fn search(
        &self,
        actor: Actor,
        asked: PassageQuery,
    ) -> Result<Vec<PassageHit>, ApiError> {
        let PassageQuery { query, documents, agent, filter, limit, mode } = asked;
        let documents = self.documents(actor, documents, agent).await?;
        let request = SearchRequest { user: actor.user, query, documents, filter, mode, limit };
        Ok(self.search.search(&request).await?)
    }

    /// The documents that are to be searched, in the order in which they are named; none for all.
    async fn documents(
        &self,
        actor: Actor,
        named: Option<Result<Vec<DocumentId>, InvalidId>>,
        agent: Option<Result<AgentId, InvalidId>>,
    ) -> Result<Option<Vec<DocumentId>>, ApiError> {
        let named = named.transpose().map_err(|_| unknown_document())?;
        if let Some(named) = &named
            && !db::documents::has_all(&self.db, actor.user, named).await?
        {
            return Err(unknown_document());
        }
        let Some(agent) = agent else { return Ok(named) };
        let agent = agent.map_err(|_| unknown_agent())?;
        let agent = db::agents::find(&self.db, actor.user, agent).await?.ok_or_else(unknown_agent)?;
        let linked = db::agents::linked_documents(&self.db, actor.user, agent.id).await?;
        let Some(named) = named else { return Ok(Some(linked)) };
        let linked: HashSet<DocumentId> = linked.into_iter().collect();
        Ok(Some(named.into_iter().filter(|id| linked.contains(id)).collect()))
    }
}
