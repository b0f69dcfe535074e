//! Tools and their links to agents. Answers may be kept by their agent's version, so whatever changes what an agent can use raises
//! it.

use std::collections::{BTreeMap, BTreeSet};

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, AgentToolId, ToolId, WorkspaceId},
    model::{
        tool::{AgentTool, TOOLS_OF_ONE, Tool},
        workspace::RowOwner,
    },
};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, agents, documents::browse::and_has, execute, locks, on};

/// Adds a tool.
pub async fn insert(tx: &mut Tx, tool: &Tool) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO tools (id, workspace_id, created_by, type, name, description, metadata, metadata_sealed, calls_agent, return_direct,
                                created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        )
        .bind(tool.id)
        .bind(tool.owner.workspace_id)
        .bind(tool.owner.creator())
        .bind(tool.r#type)
        .bind(tool.name.as_str())
        .bind(tool.description.as_str())
        .bind(&tool.metadata)
        .bind(tool.metadata_sealed.as_deref())
        .bind(tool.calls_agent)
        .bind(tool.return_direct)
        .bind(tool.created_at)
        .bind(tool.updated_at)
    )?;
    Ok(())
}

/// Writes what can be changed of one of a workspace's tools, which is [locked](lock), and raises the version of the agents that have it.
pub async fn update(tx: &mut Tx, tool: &Tool) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE tools SET name = $3, description = $4, metadata = $5, metadata_sealed = $6, calls_agent = $7,
                              return_direct = $8, updated_at = $9
             WHERE id = $1 AND workspace_id = $2"
        )
        .bind(tool.id)
        .bind(tool.owner.workspace_id)
        .bind(tool.name.as_str())
        .bind(tool.description.as_str())
        .bind(&tool.metadata)
        .bind(tool.metadata_sealed.as_deref())
        .bind(tool.calls_agent)
        .bind(tool.return_direct)
        .bind(tool.updated_at)
    )?;
    touch_agents(tx, tool.owner.workspace_id, tool.id).await
}

/// Raises the version of every agent that has a tool: its answers may be others from now on.
async fn touch_agents(tx: &mut Tx, workspace: WorkspaceId, tool: ToolId) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE agents SET version = version + 1 WHERE workspace_id = $1
               AND id IN (SELECT agent_id FROM agent_tools WHERE tool_id = $2 AND workspace_id = $1)"
        )
        .bind(workspace)
        .bind(tool)
    )?;
    Ok(())
}

/// One of a workspace's tools.
pub async fn find(db: &Db, workspace: WorkspaceId, id: ToolId) -> Result<Option<Tool>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM tools WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// One of a workspace's tools as it is once every other change to the workspace's tools and links has ended; none of them goes on
/// before this transaction ends.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: ToolId) -> Result<Option<Tool>> {
    locks::lock_workspace(tx, workspace).await?;
    Ok(on!(tx, |c| sqlx::query_as("SELECT * FROM tools WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// The tools linked to one of a workspace's agents, first linked first.
pub async fn of_agent(db: &Db, workspace: WorkspaceId, agent: AgentId) -> Result<Vec<Tool>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT tools.* FROM agent_tools JOIN tools ON tools.id = agent_tools.tool_id
         WHERE agent_tools.agent_id = $1 AND agent_tools.workspace_id = $2 ORDER BY agent_tools.id"
    )
    .bind(agent)
    .bind(workspace)
    .fetch_all(c))?)
}

/// At most `limit` of a workspace's tools older than `before`, newest first. Their names have `name` somewhere, in whichever case.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    before: ToolId,
    limit: u32,
) -> Result<Vec<Tool>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT * FROM tools WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND id < ").push_bind(before);
        and_has(&mut query, "name", name);
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// Deletes one of a workspace's tools with its links; false when there is none.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: ToolId) -> Result<bool> {
    locks::lock_workspace(tx, workspace).await?;
    touch_agents(tx, workspace, id).await?;
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM tools WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(rows == 1)
}

/// Whether a workspace has this agent.
pub async fn owns_agent(tx: &mut Tx, workspace: WorkspaceId, agent: AgentId) -> Result<bool> {
    let found: Option<AgentId> =
        on!(tx, |c| sqlx::query_scalar("SELECT id FROM agents WHERE id = $1 AND workspace_id = $2")
            .bind(agent)
            .bind(workspace)
            .fetch_optional(c))?;
    Ok(found.is_some())
}

/// How linking ended.
#[derive(Debug)]
pub enum LinkOutcome {
    /// The link; the first one when there was one already.
    Yes(AgentTool),
    /// The agent or the tool is not the workspace's.
    Unknown,
    /// The agent would ask itself, by way of others or at once.
    Circle,
    /// The agent has as many tools as it can have.
    Full,
}

/// Links a workspace's agent and tool, unless the agent has [`TOOLS_OF_ONE`] others.
pub async fn link(
    tx: &mut Tx,
    owner: RowOwner,
    agent: AgentId,
    tool: ToolId,
    now: Timestamp,
) -> Result<LinkOutcome> {
    let workspace = owner.workspace_id;
    let Some(Tool { calls_agent, .. }) = lock(tx, workspace, tool).await? else {
        return Ok(LinkOutcome::Unknown);
    };
    if !agents::lock_row(tx, workspace, agent).await? {
        return Ok(LinkOutcome::Unknown);
    }
    if let Some(called) = calls_agent
        && reached_from(called, &calls(tx, workspace, None).await?).contains(&agent)
    {
        return Ok(LinkOutcome::Circle);
    }
    let linked: Vec<ToolId> = on!(tx, |c| sqlx::query_scalar(
        "SELECT tool_id FROM agent_tools WHERE agent_id = $1 AND workspace_id = $2"
    )
    .bind(agent)
    .bind(workspace)
    .fetch_all(c))?;
    if linked.len() >= TOOLS_OF_ONE as usize && !linked.contains(&tool) {
        return Ok(LinkOutcome::Full);
    }
    let added = execute!(
        tx,
        sqlx::query(
            "INSERT INTO agent_tools (id, workspace_id, created_by, agent_id, tool_id, created_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (agent_id, tool_id) DO NOTHING"
        )
        .bind(AgentToolId::generate())
        .bind(workspace)
        .bind(owner.creator())
        .bind(agent)
        .bind(tool)
        .bind(now)
    )?;
    if added > 0 {
        agents::raise_version(tx, workspace, agent).await?;
    }
    let link = on!(tx, |c| sqlx::query_as(
        "SELECT * FROM agent_tools WHERE agent_id = $1 AND tool_id = $2 AND workspace_id = $3"
    )
    .bind(agent)
    .bind(tool)
    .bind(workspace)
    .fetch_optional(c))?;
    Ok(link.map_or(LinkOutcome::Unknown, LinkOutcome::Yes))
}

/// Whether an agent that has `tool` would ask itself, by way of others or at once, if the tool asked `called`. The tool must
/// be locked.
pub async fn would_circle(
    tx: &mut Tx,
    workspace: WorkspaceId,
    tool: ToolId,
    called: AgentId,
) -> Result<bool> {
    let having: Vec<AgentId> = on!(tx, |c| sqlx::query_scalar(
        "SELECT agent_id FROM agent_tools WHERE tool_id = $1 AND workspace_id = $2"
    )
    .bind(tool)
    .bind(workspace)
    .fetch_all(c))?;
    let reached = reached_from(called, &calls(tx, workspace, Some(tool)).await?);
    Ok(having.iter().any(|agent| reached.contains(agent)))
}

/// Which agents each of a workspace's agents can ask.
type AgentCallGraph = BTreeMap<AgentId, Vec<AgentId>>;

/// Who can ask whom, by way of every tool but one.
async fn calls(tx: &mut Tx, workspace: WorkspaceId, except: Option<ToolId>) -> Result<AgentCallGraph> {
    let pairs: Vec<(ToolId, AgentId, AgentId)> = on!(tx, |c| sqlx::query_as(
        "SELECT tools.id, agent_tools.agent_id, tools.calls_agent
         FROM tools JOIN agent_tools ON agent_tools.tool_id = tools.id
         WHERE tools.workspace_id = $1 AND tools.calls_agent IS NOT NULL"
    )
    .bind(workspace)
    .fetch_all(c))?;
    let mut calls = AgentCallGraph::new();
    for (tool, asking, asked) in pairs {
        if Some(tool) != except {
            calls.entry(asking).or_default().push(asked);
        }
    }
    Ok(calls)
}

/// An agent and all that it can ask, by way of others too.
fn reached_from(agent: AgentId, calls: &AgentCallGraph) -> BTreeSet<AgentId> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![agent]);
    while let Some(agent) = next.pop() {
        if reached.insert(agent) {
            next.extend(calls.get(&agent).into_iter().flatten());
        }
    }
    reached
}

/// One of a workspace's links.
pub async fn find_link(db: &Db, workspace: WorkspaceId, id: AgentToolId) -> Result<Option<AgentTool>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM agent_tools WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's links older than `before`, newest first; those of one agent when it is named.
pub async fn list_links(
    db: &Db,
    workspace: WorkspaceId,
    agent: Option<AgentId>,
    before: AgentToolId,
    limit: u32,
) -> Result<Vec<AgentTool>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM agent_tools
         WHERE workspace_id = $1 AND id < $2 AND ($3 IS NULL OR agent_id = $3) ORDER BY id DESC LIMIT $4"
    )
    .bind(workspace)
    .bind(before)
    .bind(agent)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Deletes one of a workspace's links; false when there is none.
pub async fn unlink(tx: &mut Tx, workspace: WorkspaceId, id: AgentToolId) -> Result<bool> {
    locks::lock_workspace(tx, workspace).await?;
    let agent: Option<AgentId> = on!(tx, |c| sqlx::query_scalar(
        "DELETE FROM agent_tools WHERE id = $1 AND workspace_id = $2 RETURNING agent_id"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?;
    let Some(agent) = agent else { return Ok(false) };
    agents::raise_version(tx, workspace, agent).await
}
