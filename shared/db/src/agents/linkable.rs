//! What an agent is linked to, with its name, and what could be linked to it.

use lectern_shared::{
    ids::{AgentCollectionId, AgentDocumentId, AgentId, CollectionId, ToolId, WorkspaceId},
    model::document::Document,
};
use uuid::Uuid;

use crate::{
    Db, Result,
    choices::{LinkTable, NamedChoices, named},
    documents::select::select_document,
    on,
};

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

/// Where the page of `size` links to documents begins that ends with the newest link which is not older than `before`: behind
/// which link. None where that is the first page.
pub async fn documents_page_before(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    before: AgentDocumentId,
    size: u32,
) -> Result<Option<AgentDocumentId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM agent_documents WHERE workspace_id = $1 AND agent_id = $2 AND id >= $3
         ORDER BY id LIMIT 1 OFFSET $4"
    )
    .bind(workspace)
    .bind(agent)
    .bind(before)
    .bind(i64::from(size))
    .fetch_optional(c))?)
}

/// The same of links to collections.
pub async fn collections_page_before(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    before: AgentCollectionId,
    size: u32,
) -> Result<Option<AgentCollectionId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM agent_collections WHERE workspace_id = $1 AND agent_id = $2 AND id >= $3
         ORDER BY id LIMIT 1 OFFSET $4"
    )
    .bind(workspace)
    .bind(agent)
    .bind(before)
    .bind(i64::from(size))
    .fetch_optional(c))?)
}

/// The collections that one of a workspace's agents is linked to, when it answers from nothing else; none when it is linked to documents that
/// are in none of them.
pub async fn only_collections(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
) -> Result<Option<Vec<CollectionId>>> {
    let has_others: bool = on!(db, |c| {
        sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM agent_documents l
                        JOIN documents d ON d.id = l.document_id AND d.deleted_at IS NULL
                        WHERE l.workspace_id = $1 AND l.agent_id = $2 AND NOT EXISTS (
                            SELECT 1 FROM agent_collections ac
                            JOIN collection_documents cd ON cd.collection_id = ac.collection_id
                            WHERE ac.workspace_id = $1 AND ac.agent_id = $2 AND cd.document_id = l.document_id))"
    )
    .bind(workspace)
    .bind(agent)
    .fetch_one(c)
    })?;
    if has_others {
        return Ok(None);
    }
    let linked = on!(db, |c| sqlx::query_scalar(
        "SELECT collection_id FROM agent_collections WHERE workspace_id = $1 AND agent_id = $2"
    )
    .bind(workspace)
    .bind(agent)
    .fetch_all(c))?;
    Ok(Some(linked))
}

/// At most `limit` of a workspace's collections that one of its agents is not linked to, the newest first, and how many these are.
/// Their names have `name` somewhere, in whichever case.
pub async fn linkable_collections(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    name: &str,
    limit: u32,
) -> Result<NamedChoices<CollectionId>> {
    let linked = LinkTable { agent, links: "agent_collections", thing: "collection_id" };
    named(db, "collections", Some(linked), workspace, name, limit).await
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

/// At most `limit` of a workspace's tools that one of its agents is not linked to, the newest first, and how many these are. Their
/// names have `name` somewhere, in whichever case.
pub async fn linkable_tools(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    name: &str,
    limit: u32,
) -> Result<NamedChoices<ToolId>> {
    let linked = LinkTable { agent, links: "agent_tools", thing: "tool_id" };
    named(db, "tools", Some(linked), workspace, name, limit).await
}
