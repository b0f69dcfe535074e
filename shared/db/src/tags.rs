//! Tags, and which agents have them.

use std::collections::HashMap;

use lectern_shared::{
    ids::{AgentId, TagId, WorkspaceId},
    model::tag::Tag,
};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, execute, locks, on};

/// Adds a tag.
pub async fn insert(tx: &mut Tx, tag: &Tag) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO tags (id, workspace_id, created_by, name, color, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)"
        )
        .bind(tag.id)
        .bind(tag.owner.workspace_id)
        .bind(tag.owner.creator())
        .bind(tag.name.as_str())
        .bind(tag.color.as_str())
        .bind(tag.created_at)
        .bind(tag.updated_at)
    )?;
    Ok(())
}

/// One of a workspace's tags.
pub async fn find(db: &Db, workspace: WorkspaceId, id: TagId) -> Result<Option<Tag>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM tags WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's tags older than `before`, newest first.
pub async fn list(db: &Db, workspace: WorkspaceId, before: TagId, limit: u32) -> Result<Vec<Tag>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM tags WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
    )
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Reads one of a workspace's tags and keeps it as it is until the transaction ends.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: TagId) -> Result<Option<Tag>> {
    Ok(on!(tx, |c| sqlx::query_as(
        "UPDATE tags SET updated_at = updated_at WHERE id = $1 AND workspace_id = $2 RETURNING *"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?)
}

/// Replaces the name and the color of a tag that is [locked](lock).
pub async fn update(tx: &mut Tx, tag: &Tag) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE tags SET name = $3, color = $4, updated_at = $5 WHERE id = $1 AND workspace_id = $2"
        )
        .bind(tag.id)
        .bind(tag.owner.workspace_id)
        .bind(tag.name.as_str())
        .bind(tag.color.as_str())
        .bind(tag.updated_at)
    )?;
    Ok(())
}

/// Deletes one of a workspace's tags, and takes it from the agents that have it; false when there is none.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: TagId) -> Result<bool> {
    // Nobody gives it to an agent meanwhile, and the account does not go with its agents and tags.
    locks::lock_workspace(tx, workspace).await?;
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM tags WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(rows == 1)
}

/// Gives an agent these tags, in this order, in place of those that it had. False when one of them is not the workspace's.
pub async fn set(tx: &mut Tx, workspace: WorkspaceId, agent: AgentId, tags: &[TagId]) -> Result<bool> {
    execute!(
        tx,
        sqlx::query("DELETE FROM agent_tags WHERE agent_id = $1 AND workspace_id = $2")
            .bind(agent)
            .bind(workspace)
    )?;
    for (position, tag) in (0_i64..).zip(tags) {
        let rows = execute!(
            tx,
            sqlx::query(
                "INSERT INTO agent_tags (agent_id, tag_id, workspace_id, position)
                 SELECT $1, tags.id, tags.workspace_id, $4 FROM tags WHERE tags.id = $2 AND tags.workspace_id = $3"
            )
            .bind(agent)
            .bind(tag)
            .bind(workspace)
            .bind(position)
        )?;
        if rows == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[derive(sqlx::FromRow)]
struct AgentTagRow {
    agent_id: AgentId,
    #[sqlx(flatten)]
    tag: Tag,
}

macro_rules! tags_of {
    ($on:ident, $workspace:expr, $agents:expr) => {
        on!($on, |c| async {
            let mut query = QueryBuilder::new(
                "SELECT agent_tags.agent_id, tags.id, tags.workspace_id, tags.created_by, tags.name, tags.color, tags.created_at, tags.updated_at
                 FROM agent_tags JOIN tags ON tags.id = agent_tags.tag_id WHERE tags.workspace_id = ",
            );
            query.push_bind($workspace).push(" AND agent_tags.agent_id IN (");
            let mut ids = query.separated(", ");
            for agent in $agents {
                ids.push_bind(*agent);
            }
            query.push(") ORDER BY agent_tags.agent_id, agent_tags.position");
            query.build_query_as::<AgentTagRow>().fetch_all(c).await
        })
    };
}

/// The tags of a workspace's agents, each agent's in their order.
pub async fn of_agents(
    db: &Db,
    workspace: WorkspaceId,
    agents: &[AgentId],
) -> Result<HashMap<AgentId, Vec<Tag>>> {
    if agents.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(by_agent(tags_of!(db, workspace, agents)?))
}

/// The tags of one of a workspace's agents, in their order, as this transaction sees them.
pub async fn of_agent(tx: &mut Tx, workspace: WorkspaceId, agent: AgentId) -> Result<Vec<Tag>> {
    let rows = tags_of!(tx, workspace, &[agent])?;
    Ok(by_agent(rows).remove(&agent).unwrap_or_default())
}

fn by_agent(rows: Vec<AgentTagRow>) -> HashMap<AgentId, Vec<Tag>> {
    let mut tags: HashMap<AgentId, Vec<Tag>> = HashMap::new();
    for AgentTagRow { agent_id, tag } in rows {
        tags.entry(agent_id).or_default().push(tag);
    }
    tags
}
