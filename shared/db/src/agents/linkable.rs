//! What an agent is linked to, with its name, and what could be linked to it.

use lectern_shared::{
    ids::{AgentCollectionId, AgentDocumentId, AgentId, CollectionId, ToolId, WorkspaceId},
    model::document::Document,
};
use uuid::Uuid;

use crate::{Db, Result, documents::select_document, on};

/// A link, and the document that it leads to.
#[derive(Debug, sqlx::FromRow)]
pub struct LinkedDocument {
    /// Of the link.
    pub link_id: AgentDocumentId,
    /// What is linked.
    #[sqlx(flatten)]
    pub document: Document,
}

/// A link, and what the collection or tool that it leads to is called.
#[derive(Debug, sqlx::FromRow)]
pub struct NamedLink {
    /// Of the link.
    pub id: Uuid,
    /// Of what is linked.
    pub target: Uuid,
    /// Its name.
    pub name: String,
}

/// At most `limit` of the documents that one of a workspace's agents is linked to itself, by links older than `before`, the last
/// linked first.
pub async fn linked_documents(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    before: AgentDocumentId,
    limit: u32,
) -> Result<Vec<LinkedDocument>> {
    Ok(on!(db, |c| sqlx::query_as(select_document!(
        ", l.id AS link_id",
        "JOIN agent_documents l ON l.document_id = d.id",
        "l.workspace_id = $1 AND l.agent_id = $2 AND l.id < $3 ORDER BY l.id DESC LIMIT $4"
    ))
    .bind(workspace)
    .bind(agent)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// At most `limit` of the collections that one of a workspace's agents is linked to, by links older than `before`, the last linked
/// first.
pub async fn linked_collections(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    before: AgentCollectionId,
    limit: u32,
) -> Result<Vec<NamedLink>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT l.id, l.collection_id AS target, t.name FROM agent_collections l
         JOIN collections t ON t.id = l.collection_id
         WHERE l.workspace_id = $1 AND l.agent_id = $2 AND l.id < $3 ORDER BY l.id DESC LIMIT $4"
    )
    .bind(workspace)
    .bind(agent)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// At most `limit` of a workspace's collections that one of its agents is not linked to, the newest first.
pub async fn linkable_collections(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    limit: u32,
) -> Result<Vec<(CollectionId, String)>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT id, name FROM collections WHERE workspace_id = $1
           AND id NOT IN (SELECT collection_id FROM agent_collections WHERE agent_id = $2 AND workspace_id = $1)
         ORDER BY id DESC LIMIT $3"
    )
    .bind(workspace)
    .bind(agent)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// The tools that one of a workspace's agents is linked to, the last linked first.
pub async fn linked_tools(db: &Db, workspace: WorkspaceId, agent: AgentId) -> Result<Vec<NamedLink>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT l.id, l.tool_id AS target, t.name FROM agent_tools l JOIN tools t ON t.id = l.tool_id
         WHERE l.workspace_id = $1 AND l.agent_id = $2 ORDER BY l.id DESC"
    )
    .bind(workspace)
    .bind(agent)
    .fetch_all(c))?)
}

/// At most `limit` of a workspace's tools that one of its agents is not linked to, the newest first.
pub async fn linkable_tools(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    limit: u32,
) -> Result<Vec<(ToolId, String)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, name FROM tools WHERE workspace_id = $1
           AND id NOT IN (SELECT tool_id FROM agent_tools WHERE agent_id = $2 AND workspace_id = $1)
         ORDER BY id DESC LIMIT $3"
    )
    .bind(workspace)
    .bind(agent)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}
