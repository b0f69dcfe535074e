//! What agents were before they were changed.

use lectern_shared::{
    ids::{AgentId, AgentVersionId, PromptId, WorkspaceId},
    model::{
        Json,
        agent::{AgentConfig, AgentVersion, PromptConfig},
    },
};

use crate::{Db, Result, Tx, execute, on};

/// Versions of one agent that are kept, the latest.
pub const KEPT: u32 = 100;

/// Keeps what an agent was that is [locked](crate::agents::lock).
pub async fn insert(tx: &mut Tx, version: &AgentVersion) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO agent_versions (id, workspace_id, agent_id, version, config, llm_key_sealed, replaced_by, replaced_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (agent_id, version) DO NOTHING"
        )
        .bind(version.id)
        .bind(version.workspace_id)
        .bind(version.agent_id)
        .bind(version.version)
        .bind(&version.config)
        .bind(version.llm_key_sealed.as_deref())
        .bind(version.replaced_by)
        .bind(version.replaced_at)
    )?;
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM agent_versions WHERE agent_id = $1 AND version NOT IN (
                 SELECT version FROM agent_versions WHERE agent_id = $1 ORDER BY version DESC LIMIT $2)"
        )
        .bind(version.agent_id)
        .bind(i64::from(KEPT))
    )?;
    Ok(())
}

/// At most `limit` of what one of a workspace's agents was, kept before `before`, the latest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    before: AgentVersionId,
    limit: u32,
) -> Result<Vec<AgentVersion>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT * FROM agent_versions WHERE agent_id = $1 AND workspace_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    )
    .bind(agent)
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// The workspace's agents that use a prompt.
pub async fn using_prompt(tx: &mut Tx, workspace: WorkspaceId, prompt: PromptId) -> Result<Vec<AgentId>> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "SELECT id FROM agents WHERE prompt_id = $1 AND workspace_id = $2 ORDER BY id"
    )
    .bind(prompt)
    .bind(workspace)
    .fetch_all(c))?)
}

/// Takes what a prompt said, and what it was called, out of all that a workspace's agents were; it is [locked](crate::prompts::lock), be it there
/// or not. How many versions those are.
pub async fn erase_prompt(tx: &mut Tx, workspace: WorkspaceId, prompt: PromptId) -> Result<u64> {
    // As it stands between quotation marks in the JSON.
    let named = format!("\"{prompt}\"");
    let ids: Vec<AgentVersionId> = on!(tx, |c| sqlx::query_scalar(
        "SELECT id FROM agent_versions WHERE agent_id IN (SELECT id FROM agents WHERE workspace_id = $1)
           AND REPLACE(config, $2, '') <> config ORDER BY id"
    )
    .bind(workspace)
    .bind(named.as_str())
    .fetch_all(c))?;
    let mut erased = 0;
    // One after the other: a template can be long.
    for id in ids {
        let found: Option<Json<AgentConfig>> =
            on!(tx, |c| sqlx::query_scalar("SELECT config FROM agent_versions WHERE id = $1")
                .bind(id)
                .fetch_optional(c))?;
        let Some(Json(mut config)) = found else { continue };
        let said = |kept: &PromptConfig| kept.id == prompt && !kept.is_erased();
        if config.prompt.as_ref().is_some_and(said) {
            config.prompt = Some(PromptConfig::erased(prompt));
            let config = Json(config);
            let update = "UPDATE agent_versions SET config = $2 WHERE id = $1";
            erased += execute!(tx, sqlx::query(update).bind(id).bind(&config))?;
        }
    }
    Ok(erased)
}
