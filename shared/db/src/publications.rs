//! Pages on which agents are asked.

use lectern_shared::{
    ids::{AgentId, WorkspaceId},
    model::publication::Publication,
};

use crate::{Db, Result, Tx, execute, on};

/// The page of one of a workspace's agents.
pub async fn find(db: &Db, workspace: WorkspaceId, agent: AgentId) -> Result<Option<Publication>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM publications WHERE agent_id = $1 AND workspace_id = $2")
        .bind(agent)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// [`find`] within a transaction.
pub async fn find_in(tx: &mut Tx, workspace: WorkspaceId, agent: AgentId) -> Result<Option<Publication>> {
    Ok(on!(tx, |c| sqlx::query_as("SELECT * FROM publications WHERE agent_id = $1 AND workspace_id = $2")
        .bind(agent)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// The page with this address, whosever it is.
pub async fn find_by_slug(db: &Db, slug: &str) -> Result<Option<Publication>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM publications WHERE slug = $1")
        .bind(slug)
        .fetch_optional(c))?)
}

/// Keeps a page in the place of its agent's earlier one. False when its address is another page's.
pub async fn put(tx: &mut Tx, page: &Publication) -> Result<bool> {
    execute!(
        tx,
        sqlx::query("DELETE FROM publications WHERE agent_id = $1 AND workspace_id = $2")
            .bind(page.agent_id)
            .bind(page.owner.workspace_id)
    )?;
    let added = execute!(
        tx,
        sqlx::query(
            "INSERT INTO publications (id, workspace_id, created_by, agent_id, slug, access, title, greeting, questions, accent,
                                       origins, token_id, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (slug) DO NOTHING"
        )
        .bind(page.id)
        .bind(page.owner.workspace_id)
        .bind(page.owner.creator())
        .bind(page.agent_id)
        .bind(page.slug.as_str())
        .bind(page.access)
        .bind(page.title.as_str())
        .bind(page.greeting.as_str())
        .bind(&page.questions)
        .bind(page.accent.as_str())
        .bind(&page.origins)
        .bind(page.token_id)
        .bind(page.created_at)
        .bind(page.updated_at)
    )?;
    Ok(added == 1)
}

/// Takes away the page of one of a workspace's agents, and returns it.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, agent: AgentId) -> Result<Option<Publication>> {
    Ok(on!(tx, |c| sqlx::query_as(
        "DELETE FROM publications WHERE agent_id = $1 AND workspace_id = $2 RETURNING *"
    )
    .bind(agent)
    .bind(workspace)
    .fetch_optional(c))?)
}
