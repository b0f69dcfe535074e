//! Prompts. Answers may be kept by their agent's version, so whatever changes what an agent is told raises it.

use lectern_shared::{
    ids::{PromptId, WorkspaceId},
    model::prompt::Prompt,
};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, documents::browse::and_has, execute, locks, on, silence};

/// Adds a prompt.
pub async fn insert(tx: &mut Tx, prompt: &Prompt) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO prompts (id, workspace_id, created_by, name, template, input_variables, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        )
        .bind(prompt.id)
        .bind(prompt.owner.workspace_id)
        .bind(prompt.owner.creator())
        .bind(prompt.name.as_str())
        .bind(prompt.template.as_str())
        .bind(&prompt.input_variables)
        .bind(prompt.created_at)
        .bind(prompt.updated_at)
    )?;
    Ok(())
}

/// One of a workspace's prompts.
pub async fn find(db: &Db, workspace: WorkspaceId, id: PromptId) -> Result<Option<Prompt>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM prompts WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's prompts older than `before`, newest first. Their names have `name` somewhere, in whichever case.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    before: PromptId,
    limit: u32,
) -> Result<Vec<Prompt>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT * FROM prompts WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND id < ").push_bind(before);
        and_has(&mut query, "name", name);
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

macro_rules! select_locked {
    ($lock:literal) => {
        concat!("SELECT * FROM prompts WHERE id = $1 AND workspace_id = $2 ", $lock)
    };
}

/// Reads one of a workspace's prompts and keeps it as it is until the transaction ends; none when there is no such prompt. No agent
/// begins or ceases to use it meanwhile. Workspaces, then prompts, then agents is the order of locks.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: PromptId) -> Result<Option<Prompt>> {
    // As the deletion of an account does, which goes on to the agents before the prompts.
    locks::lock_workspace(tx, workspace).await?;
    Ok(match tx {
        // An update would not wait for one who is just giving the prompt to an agent.
        Tx::Postgres(c) => {
            let locked = sqlx::query_as(select_locked!("FOR UPDATE")).bind(id).bind(workspace);
            silence::answered(locked.fetch_optional(&mut **c)).await?
        }
        Tx::Sqlite(c) => {
            sqlx::query_as(select_locked!("")).bind(id).bind(workspace).fetch_optional(&mut **c).await?
        }
    })
}

/// Replaces the name, the template and its variables of a prompt that is [locked](lock), and raises the version of the agents
/// that use it.
pub async fn update(tx: &mut Tx, prompt: &Prompt) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE prompts SET name = $3, template = $4, input_variables = $5, updated_at = $6
             WHERE id = $1 AND workspace_id = $2"
        )
        .bind(prompt.id)
        .bind(prompt.owner.workspace_id)
        .bind(prompt.name.as_str())
        .bind(prompt.template.as_str())
        .bind(&prompt.input_variables)
        .bind(prompt.updated_at)
    )?;
    raise_versions(tx, prompt.owner.workspace_id, prompt.id).await
}

/// Deletes one of a workspace's prompts; false when there is none. The agents that used it have none from then on.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: PromptId) -> Result<bool> {
    if lock(tx, workspace, id).await?.is_none() {
        return Ok(false);
    }
    // Before, because afterwards nobody knows which agents these were.
    raise_versions(tx, workspace, id).await?;
    execute!(
        tx,
        sqlx::query("DELETE FROM prompts WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(true)
}

async fn raise_versions(tx: &mut Tx, workspace: WorkspaceId, id: PromptId) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE agents SET version = version + 1 WHERE prompt_id = $1 AND workspace_id = $2")
            .bind(id)
            .bind(workspace)
    )?;
    Ok(())
}
