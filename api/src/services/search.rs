//! Searching passages.

pub(crate) mod expression;
mod files;
mod readers;

use std::{collections::HashSet, sync::Arc};

use lectern_agents::{
    briefings::AgentBriefings,
    search::{MetadataFilter, RerankPatience, SearchAnswer, SearchEngine, SearchRequest},
};
use lectern_db::{self as db, Db};
use lectern_derive::RequestBody;
use lectern_shared::{
    ids::{AgentId, CollectionId, DocumentId, WorkspaceId},
    model::search::SearchMode,
};
use utoipa::ToSchema;

pub(crate) use self::files::{FilePassage, FileQuery};
use self::readers::{FilterSchema, ModeSchema};
use super::actor::{Actor, Permission};
use crate::{
    error::ApiError,
    fields::{GivenId, GivenIds},
};

/// What to search for, and in what.
#[derive(RequestBody, ToSchema)]
#[schema(as = Search, rename_all = "camelCase")]
pub(crate) struct PassageQuery {
    /// The question, in any words.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    query: String,
    /// Only these of your documents are searched; none of them, when the list is empty. All when left out.
    #[schema(value_type = Option<Vec<String>>, max_items = 1_000)]
    document_ids: Option<GivenIds<DocumentId>>,
    /// Only the documents of these of your collections are searched; none, when the list is empty.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    collection_ids: Option<GivenIds<CollectionId>>,
    /// Only the documents that are linked to this agent of yours are searched.
    #[schema(value_type = Option<String>)]
    agent_id: Option<GivenId<AgentId>>,
    /// Only documents whose `metadata` meets every condition are searched. A change of metadata counts at once.
    #[schema(value_type = Option<FilterSchema>)]
    #[body(with = readers::filter)]
    filter: MetadataFilter,
    /// The most passages that are wanted; 10 when left out.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 50)]
    #[body(default = 10)]
    limit: usize,
    /// How to search; `hybrid` when left out.
    #[schema(value_type = Option<ModeSchema>)]
    #[body(default = SearchMode::Hybrid)]
    mode: SearchMode,
    /// Whether the best passages are put into a better order by the service's reranker, when there is one. False when left out.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    rerank: bool,
}

/// Search. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SearchService {
    db: Db,
    search: SearchEngine,
    briefings: AgentBriefings,
}

fn unknown_document() -> ApiError {
    ApiError::not_found("document")
}

fn unknown_collection() -> ApiError {
    ApiError::not_found("collection")
}

fn unknown_agent() -> ApiError {
    ApiError::not_found("agent")
}

impl SearchService {
    pub(crate) fn new(db: Db, search: SearchEngine, briefings: AgentBriefings) -> Self {
        Self { db, search, briefings }
    }

    /// Whether what is found can be put into a better order.
    pub(crate) fn has_reranker(&self) -> bool {
        self.search.has_reranker()
    }

    /// The passages that answer best, best first.
    ///
    /// # Errors
    /// Not found, for a document, a collection or an agent that is not the caller's.
    pub(crate) async fn search(&self, actor: &Actor, asked: PassageQuery) -> Result<SearchAnswer, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let PassageQuery { query, document_ids, collection_ids, agent_id, filter, limit, mode, rerank } =
            asked;
        let workspace = owner.workspace_id;
        let epoch = self.epoch(actor, workspace);
        let documents = self.documents(actor, document_ids, collection_ids, agent_id);
        let (epoch, documents) = tokio::try_join!(epoch, documents)?;
        let rerank = rerank.then_some(RerankPatience::Budget);
        let request = SearchRequest { workspace, query, documents, filter, mode, limit, rerank, epoch };
        Ok(self.search.search(&request).await?)
    }

    /// That of the moment when the request came, which was read with its credential. Else it is asked for, beside what else a search has to
    /// know, so that nothing waits for it.
    async fn epoch(&self, actor: &Actor, workspace: WorkspaceId) -> Result<Option<i64>, ApiError> {
        match actor.search_epoch() {
            Some(epoch) => Ok(Some(epoch)),
            None => Ok(Some(db::documents::search_epoch(&self.db, workspace).await?)),
        }
    }

    /// The documents of these collections.
    ///
    /// # Errors
    /// Not found, for a collection that is not the workspace's.
    async fn collected(
        &self,
        workspace: WorkspaceId,
        collections: &[CollectionId],
    ) -> Result<Vec<DocumentId>, ApiError> {
        let has_all = db::collections::has_all(&self.db, workspace, collections);
        let collected = db::collections::documents_of(&self.db, workspace, collections);
        let (has_all, collected) = tokio::try_join!(has_all, collected)?;
        if has_all { Ok(collected) } else { Err(unknown_collection()) }
    }

    /// The documents that are to be searched, in the order in which they are named; none for all.
    async fn documents(
        &self,
        actor: &Actor,
        named: Option<GivenIds<DocumentId>>,
        collections: Option<GivenIds<CollectionId>>,
        agent: Option<GivenId<AgentId>>,
    ) -> Result<Option<Arc<[DocumentId]>>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let named = named.transpose().map_err(|_| unknown_document())?;
        if let Some(named) = &named
            && !db::documents::has_all(&self.db, owner.workspace_id, named).await?
        {
            return Err(unknown_document());
        }
        let named = match collections {
            Some(collections) => {
                let collections = collections.map_err(|_| unknown_collection())?;
                let collected = self.collected(owner.workspace_id, &collections).await?;
                Some(match named {
                    Some(named) => among(named, &collected),
                    None => collected,
                })
            }
            None => named,
        };
        let Some(agent) = agent else { return Ok(named.map(Arc::from)) };
        let agent = agent.map_err(|_| unknown_agent())?;
        let agent = self.briefings.of(owner.workspace_id, agent).await?.ok_or_else(unknown_agent)?;
        let allowed = agent.links.documents;
        Ok(Some(match named {
            Some(named) => among(named, &allowed).into(),
            None => allowed,
        }))
    }
}

/// Those of the named documents that are allowed ones too.
fn among(named: Vec<DocumentId>, allowed: &[DocumentId]) -> Vec<DocumentId> {
    let allowed: HashSet<&DocumentId> = allowed.iter().collect();
    named.into_iter().filter(|id| allowed.contains(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_and_allowed_is_searched_in_the_order_in_which_it_is_named() {
        let [one, two, three] = [(); 3].map(|()| DocumentId::generate());
        assert_eq!(among(vec![three, one], &[one, two, three]), [three, one]);
        assert_eq!(among(vec![three], &[one]), []);
        assert_eq!(among(Vec::new(), &[one]), []);
    }
}
