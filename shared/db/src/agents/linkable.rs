//! What an agent is linked to, with its name, and what could be linked to it.

use lectern_shared::{
    ids::{AgentCollectionId, AgentDocumentId, AgentId, CollectionId, ToolId, WorkspaceId},
    model::document::Document,
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{
    Db, Result,
    documents::{browse::and_has, select_document},
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

/// What could be linked to an agent.
#[derive(Debug)]
pub struct LinkChoices<I> {
    /// By id and name, the newest first: as many as were asked for.
    pub newest: Vec<(I, String)>,
    /// How many there are.
    pub count: u64,
}

impl<I: From<Uuid>> LinkChoices<I> {
    /// From rows that each tell how many there are.
    fn of(rows: Vec<(Uuid, String, i64)>) -> Self {
        let count = rows.first().map_or(0, |(_, _, count)| count.unsigned_abs());
        Self { newest: rows.into_iter().map(|(id, name, _)| (id.into(), name)).collect(), count }
    }
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

/// At most `limit` of a workspace's collections that one of its agents is not linked to, the newest first, and how many these are.
/// Their names have `name` somewhere, in whichever case.
pub async fn linkable_collections(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    name: &str,
    limit: u32,
) -> Result<LinkChoices<CollectionId>> {
    linkable(db, ["collections", "agent_collections", "collection_id"], workspace, agent, name, limit).await
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
) -> Result<LinkChoices<ToolId>> {
    linkable(db, ["tools", "agent_tools", "tool_id"], workspace, agent, name, limit).await
}

/// What no link of an agent leads to: of the table of these things, by the table of links to them and its column of the thing.
async fn linkable<I: From<Uuid>>(
    db: &Db,
    [things, links, thing]: [&'static str; 3],
    workspace: WorkspaceId,
    agent: AgentId,
    name: &str,
    limit: u32,
) -> Result<LinkChoices<I>> {
    let rows = on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT id, name, COUNT(*) OVER () FROM ");
        query.push(things).push(" WHERE workspace_id = ").push_bind(workspace);
        query.push(" AND id NOT IN (SELECT ").push(thing).push(" FROM ").push(links);
        query.push(" WHERE agent_id = ").push_bind(agent);
        query.push(" AND workspace_id = ").push_bind(workspace).push(")");
        and_has(&mut query, "name", name);
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?;
    Ok(LinkChoices::of(rows))
}
