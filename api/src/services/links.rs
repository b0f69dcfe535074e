//! What an agent has: links to documents, to collections, and to tools.

use lectern_db::{
    self as db, Db,
    agents::{LinkedDocument, MadeLink, NamedLink},
    choices::NamedChoices,
    tools::LinkOutcome,
};
use lectern_derive::RequestBody;
use lectern_jobs::JobQueue;
use lectern_shared::{
    clock::Clock,
    ids::{AgentCollectionId, AgentDocumentId, AgentId, AgentToolId, CollectionId, DocumentId, ToolId},
    model::{
        agent::AgentDocument,
        collection::AgentCollection,
        tool::{AgentTool, TOOLS_OF_ONE},
    },
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    actor::{Actor, Permission},
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    tools::circle,
};
use crate::{error::ApiError, fields::GivenId};

/// A new link.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewAgentDocument {
    /// One of your agents.
    #[schema(value_type = String)]
    agent_id: GivenId<AgentId>,
    /// One of your documents.
    #[schema(value_type = String)]
    document_id: GivenId<DocumentId>,
}

/// A new link.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewAgentCollection {
    /// One of your agents.
    #[schema(value_type = String)]
    agent_id: GivenId<AgentId>,
    /// One of your collections.
    #[schema(value_type = String)]
    collection_id: GivenId<CollectionId>,
}

/// A new link.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewAgentTool {
    /// One of your agents.
    #[schema(value_type = String)]
    agent_id: GivenId<AgentId>,
    /// One of your tools.
    #[schema(value_type = String)]
    tool_id: GivenId<ToolId>,
}

/// Links between agents and documents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentDocumentService {
    db: Db,
    clock: Clock,
    jobs: JobQueue,
    creations: IdempotencyStore,
}

impl AgentDocumentService {
    pub(crate) fn new(db: Db, clock: Clock, jobs: JobQueue, creations: IdempotencyStore) -> Self {
        Self { db, clock, jobs, creations }
    }

    /// Links an agent and a document; the first link stays when they are linked already. A document of which nothing can be
    /// searched, and whose ingestion has ended, is ingested again.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewAgentDocument,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<AgentDocument>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let agent = new.agent_id.map_err(|_| ApiError::not_found("agent"))?;
        let document = new.document_id.map_err(|_| ApiError::not_found("document"))?;
        let mut tx = self.db.begin().await?;
        let made = db::agents::link(&mut tx, owner, agent, document, self.clock.now()).await?;
        let MadeLink { link, ended_unpublished } =
            made.ok_or_else(|| ApiError::not_found("agent or document"))?;
        // Whoever links it means to ask it.
        let queued =
            ended_unpublished && self.jobs.enqueue_ingest(&mut tx, owner.workspace_id, document).await?;
        let created = self.creations.commit(tx, once, &link, tell).await?;
        if queued {
            self.jobs.doorbell().ring(1);
        }
        Ok(created)
    }

    /// What an agent is linked to, by links before an id, the last linked first.
    pub(crate) async fn of_agent(
        &self,
        actor: &Actor,
        agent: AgentId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<LinkedDocument>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(db::agents::linked_documents(&self.db, owner.workspace_id, agent, before.into(), limit).await?)
    }

    /// Behind which link the page of so many begins that is before one; none where that is the first page.
    pub(crate) async fn page_before(
        &self,
        actor: &Actor,
        agent: AgentId,
        before: Uuid,
        size: u32,
    ) -> Result<Option<Uuid>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let (workspace, before) = (owner.workspace_id, before.into());
        let found = db::agents::documents_page_before(&self.db, workspace, agent, before, size).await?;
        Ok(found.map(|link| *link.as_uuid()))
    }
}

/// Links between agents and collections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentCollectionService {
    db: Db,
    clock: Clock,
    creations: IdempotencyStore,
}

impl AgentCollectionService {
    pub(crate) fn new(db: Db, clock: Clock, creations: IdempotencyStore) -> Self {
        Self { db, clock, creations }
    }

    /// Links an agent and a collection; the first link stays when they are linked already.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewAgentCollection,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<AgentCollection>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let agent = new.agent_id.map_err(|_| ApiError::not_found("agent"))?;
        let collection = new.collection_id.map_err(|_| ApiError::not_found("collection"))?;
        let mut tx = self.db.begin().await?;
        let link = db::collections::link(&mut tx, owner, agent, collection, self.clock.now()).await?;
        let link = link.ok_or_else(|| ApiError::not_found("agent or collection"))?;
        self.creations.commit(tx, once, &link, tell).await
    }

    /// What an agent is linked to, by links before an id, the last linked first.
    pub(crate) async fn of_agent(
        &self,
        actor: &Actor,
        agent: AgentId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<NamedLink>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(db::agents::linked_collections(&self.db, owner.workspace_id, agent, before.into(), limit).await?)
    }

    /// Behind which link the page of so many begins that is before one; none where that is the first page.
    pub(crate) async fn page_before(
        &self,
        actor: &Actor,
        agent: AgentId,
        before: Uuid,
        size: u32,
    ) -> Result<Option<Uuid>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let (workspace, before) = (owner.workspace_id, before.into());
        let found = db::agents::collections_page_before(&self.db, workspace, agent, before, size).await?;
        Ok(found.map(|link| *link.as_uuid()))
    }

    /// The newest collections that an agent is not linked to, and whose names have something somewhere.
    pub(crate) async fn linkable(
        &self,
        actor: &Actor,
        agent: AgentId,
        name: &str,
        limit: u32,
    ) -> Result<NamedChoices<CollectionId>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(db::agents::linkable_collections(&self.db, owner.workspace_id, agent, name, limit).await?)
    }
}

/// Links between agents and tools. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentToolService {
    db: Db,
    clock: Clock,
    creations: IdempotencyStore,
}

impl AgentToolService {
    pub(crate) fn new(db: Db, clock: Clock, creations: IdempotencyStore) -> Self {
        Self { db, clock, creations }
    }

    /// Links an agent and a tool; the first link stays when they are linked already.
    ///
    /// # Errors
    /// When the agent could come to ask itself, or has as many tools as it can have.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewAgentTool,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<AgentTool>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let agent = new.agent_id.map_err(|_| ApiError::not_found("agent"))?;
        let tool = new.tool_id.map_err(|_| ApiError::not_found("tool"))?;
        let mut tx = self.db.begin().await?;
        match db::tools::link(&mut tx, owner, agent, tool, self.clock.now()).await? {
            LinkOutcome::Yes(link) => self.creations.commit(tx, once, &link, tell).await,
            LinkOutcome::Unknown => Err(ApiError::not_found("agent or tool")),
            LinkOutcome::Circle => Err(circle("toolId")),
            LinkOutcome::Full => {
                let message = format!("is one too many: an agent can have {TOOLS_OF_ONE} tools");
                Err(ApiError::invalid_field("toolId", &message))
            }
        }
    }

    /// What an agent is linked to, the last linked first.
    pub(crate) async fn of_agent(&self, actor: &Actor, agent: AgentId) -> Result<Vec<NamedLink>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(db::agents::linked_tools(&self.db, owner.workspace_id, agent).await?)
    }

    /// The newest tools that an agent is not linked to, and whose names have something somewhere.
    pub(crate) async fn linkable(
        &self,
        actor: &Actor,
        agent: AgentId,
        name: &str,
        limit: u32,
    ) -> Result<NamedChoices<ToolId>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(db::agents::linkable_tools(&self.db, owner.workspace_id, agent, name, limit).await?)
    }
}

/// What is the same for every kind of link: `$table` is the module of the repository that stores it.
macro_rules! stored_links {
    ($service:ident: $table:ident, $link:ident, $id:ident) => {
        impl $service {
            /// The links before an id, newest first; those of one agent when it is named.
            pub(crate) async fn list(
                &self,
                actor: &Actor,
                agent: Option<AgentId>,
                before: Uuid,
                limit: u32,
            ) -> Result<Vec<$link>, ApiError> {
                let owner = actor.may(Permission::BuildAgents)?;
                Ok(db::$table::list_links(&self.db, owner.workspace_id, agent, before.into(), limit).await?)
            }

            /// One link.
            pub(crate) async fn find(&self, actor: &Actor, id: $id) -> Result<$link, ApiError> {
                let owner = actor.may(Permission::BuildAgents)?;
                let link = db::$table::find_link(&self.db, owner.workspace_id, id).await?;
                link.ok_or_else(|| ApiError::not_found("link"))
            }

            /// Deletes a link. Both ends stay.
            pub(crate) async fn delete(&self, actor: &Actor, id: $id) -> Result<(), ApiError> {
                let owner = actor.may(Permission::BuildAgents)?;
                let mut tx = self.db.begin_essential().await?;
                if !db::$table::unlink(&mut tx, owner.workspace_id, id).await? {
                    return Err(ApiError::not_found("link"));
                }
                Ok(tx.commit().await?)
            }
        }
    };
}

stored_links!(AgentDocumentService: agents, AgentDocument, AgentDocumentId);
stored_links!(AgentCollectionService: collections, AgentCollection, AgentCollectionId);
stored_links!(AgentToolService: tools, AgentTool, AgentToolId);
