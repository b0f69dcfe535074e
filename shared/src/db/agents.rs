//! Agents and their links. Answers may be kept by their agent's version, so whatever changes what an agent answers from
//! raises it.

use uuid::Uuid;

use crate::{
    clock::Timestamp,
    db::{Db, Result, Tx, documents, execute, from_hex, locks, on, silence},
    ids::{AgentDocumentId, AgentId, DocumentId, GenerationId, PromptId, UserId},
    model::agent::{Agent, AgentDocument},
};

/// Adds an agent.
pub async fn insert(tx: &mut Tx, agent: &Agent) -> Result<()> {
    execute!(tx, sqlx::query(
        "INSERT INTO agents (id, user_id, type, name, description, llm, llm_key_sealed, has_memory, prompt_id, version,
                             created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $10)"
    )
    .bind(agent.id)
    .bind(agent.user_id)
    .bind(agent.r#type)
    .bind(agent.name.as_str())
    .bind(agent.description.as_str())
    .bind(&agent.llm)
    .bind(agent.llm_key_sealed.as_deref())
    .bind(agent.has_memory)
    .bind(agent.prompt_id)
    .bind(agent.created_at))?;
    Ok(())
}

macro_rules! select_agent {
    ($where:literal) => {
        concat!(
            "SELECT id, user_id, type, name, description, llm, llm_key_sealed, has_memory, prompt_id, version,
                    created_at, updated_at,
                    (SELECT document_id FROM agent_documents WHERE agent_documents.agent_id = agents.id
                     ORDER BY agent_documents.id LIMIT 1) AS document_id
             FROM agents WHERE ",
            $where
        )
    };
}

/// One of a user's agents.
pub async fn find(db: &Db, user: UserId, id: AgentId) -> Result<Option<Agent>> {
    Ok(on!(db, |c| sqlx::query_as(select_agent!("id = $1 AND user_id = $2"))
        .bind(id)
        .bind(user)
        .fetch_optional(c))?)
}

/// At most `limit` of a user's agents older than `before`, newest first.
pub async fn list(db: &Db, user: UserId, before: AgentId, limit: u32) -> Result<Vec<Agent>> {
    Ok(on!(db, |c| sqlx::query_as(select_agent!("user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"))
        .bind(user)
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(c))?)
}

/// Reads one of a user's agents and keeps it as it is until the transaction ends. Neither the user's prompts nor tags go
/// meanwhile.
pub async fn lock(tx: &mut Tx, user: UserId, id: AgentId) -> Result<Option<Agent>> {
    locks::lock_user(tx, user).await?;
    if !lock_row(tx, user, id).await? {
        return Ok(None);
    }
    Ok(on!(tx, |c| sqlx::query_as(select_agent!("id = $1 AND user_id = $2"))
        .bind(id)
        .bind(user)
        .fetch_optional(c))?)
}

/// Keeps one of a user's agents from changing or going until the transaction ends; false when there is no such agent.
async fn lock_row(tx: &mut Tx, user: UserId, id: AgentId) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE agents SET version = version WHERE id = $1 AND user_id = $2").bind(id).bind(user)
    )?;
    Ok(rows == 1)
}

/// Writes what can be changed of an agent that is [locked](lock), and raises its version.
pub async fn update(tx: &mut Tx, agent: &Agent) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE agents SET type = $3, name = $4, description = $5, llm = $6, llm_key_sealed = $7, has_memory = $8,
                               prompt_id = $9, updated_at = $10, version = version + 1
             WHERE id = $1 AND user_id = $2"
        )
        .bind(agent.id)
        .bind(agent.user_id)
        .bind(agent.r#type)
        .bind(agent.name.as_str())
        .bind(agent.description.as_str())
        .bind(&agent.llm)
        .bind(agent.llm_key_sealed.as_deref())
        .bind(agent.has_memory)
        .bind(agent.prompt_id)
        .bind(agent.updated_at)
    )?;
    Ok(())
}

/// Whether a user has this prompt. It stays while the user is [locked](locks::lock_user).
pub async fn owns_prompt(tx: &mut Tx, user: UserId, prompt: PromptId) -> Result<bool> {
    let found: Option<PromptId> =
        on!(tx, |c| sqlx::query_scalar("SELECT id FROM prompts WHERE id = $1 AND user_id = $2")
            .bind(prompt)
            .bind(user)
            .fetch_optional(c))?;
    Ok(found.is_some())
}

/// Deletes what one of a user's agents remembers of a session; false when there is no such agent.
pub async fn erase_session(tx: &mut Tx, user: UserId, agent: AgentId, session: &str) -> Result<bool> {
    if !lock_row(tx, user, agent).await? {
        return Ok(false);
    }
    execute!(
        tx,
        sqlx::query("DELETE FROM agent_memory WHERE agent_id = $1 AND session = $2 AND user_id = $3")
            .bind(agent)
            .bind(session)
            .bind(user)
    )?;
    Ok(true)
}

/// Deletes one of a user's agents with its links, memory and traces; false when there is none.
pub async fn delete(tx: &mut Tx, user: UserId, id: AgentId) -> Result<bool> {
    let rows =
        execute!(tx, sqlx::query("DELETE FROM agents WHERE id = $1 AND user_id = $2").bind(id).bind(user))?;
    Ok(rows == 1)
}

/// Links a user's agent and document and returns the link; the first one when they are linked already. None when either
/// is not the user's.
pub async fn link(
    tx: &mut Tx,
    user: UserId,
    agent: AgentId,
    document: DocumentId,
    now: Timestamp,
) -> Result<Option<AgentDocument>> {
    // Neither end may be on its way out at this moment.
    if !documents::lock(tx, user, document).await? || !lock_row(tx, user, agent).await? {
        return Ok(None);
    }
    let added = execute!(
        tx,
        sqlx::query(
            "INSERT INTO agent_documents (id, user_id, agent_id, document_id, created_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (agent_id, document_id) DO NOTHING"
        )
        .bind(AgentDocumentId::generate())
        .bind(user)
        .bind(agent)
        .bind(document)
        .bind(now)
    )?;
    if added > 0 {
        execute!(
            tx,
            sqlx::query("UPDATE agents SET version = version + 1 WHERE id = $1 AND user_id = $2")
                .bind(agent)
                .bind(user)
        )?;
    }
    Ok(on!(tx, |c| sqlx::query_as(
        "SELECT * FROM agent_documents WHERE agent_id = $1 AND document_id = $2 AND user_id = $3"
    )
    .bind(agent)
    .bind(document)
    .bind(user)
    .fetch_optional(c))?)
}

/// One of a user's links.
pub async fn find_link(db: &Db, user: UserId, id: AgentDocumentId) -> Result<Option<AgentDocument>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM agent_documents WHERE id = $1 AND user_id = $2")
        .bind(id)
        .bind(user)
        .fetch_optional(c))?)
}

/// At most `limit` of a user's links older than `before`, newest first; those of one agent when it is named.
pub async fn list_links(
    db: &Db,
    user: UserId,
    agent: Option<AgentId>,
    before: AgentDocumentId,
    limit: u32,
) -> Result<Vec<AgentDocument>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM agent_documents
         WHERE user_id = $1 AND id < $2 AND ($3 IS NULL OR agent_id = $3) ORDER BY id DESC LIMIT $4"
    )
    .bind(user)
    .bind(before)
    .bind(agent)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Deletes one of a user's links; false when there is none.
pub async fn unlink(tx: &mut Tx, user: UserId, id: AgentDocumentId) -> Result<bool> {
    // The agent first, as whoever deletes it with its links does.
    execute!(
        tx,
        sqlx::query(
            "UPDATE agents SET version = version + 1 WHERE user_id = $2
               AND id = (SELECT agent_id FROM agent_documents WHERE id = $1 AND user_id = $2)"
        )
        .bind(id)
        .bind(user)
    )?;
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM agent_documents WHERE id = $1 AND user_id = $2").bind(id).bind(user)
    )?;
    Ok(rows == 1)
}

/// The documents linked to one of a user's agents, first linked first.
pub async fn linked_documents(db: &Db, user: UserId, agent: AgentId) -> Result<Vec<DocumentId>> {
    // In one row: an agent may have thousands, every question asks for them, and a row each takes most of its time.
    match db {
        Db::Postgres { pool, .. } => {
            let ids = sqlx::query_scalar(
                "SELECT array_agg(document_id ORDER BY id) FROM agent_documents WHERE agent_id = $1 AND user_id = $2",
            )
            .bind(agent)
            .bind(user)
            .fetch_one(pool);
            let ids: Option<Vec<Uuid>> = silence::answered(ids).await?;
            Ok(ids.unwrap_or_default().into_iter().map(DocumentId::from).collect())
        }
        Db::Sqlite { readers, .. } => {
            let ids: Option<String> = sqlx::query_scalar(
                "SELECT group_concat(hex(document_id), '' ORDER BY id) FROM agent_documents
                 WHERE agent_id = $1 AND user_id = $2",
            )
            .bind(agent)
            .bind(user)
            .fetch_one(readers)
            .await?;
            let ids = ids.unwrap_or_default();
            (0..ids.len()).step_by(32).map(|at| Ok(from_hex(ids.get(at..at + 32))?.into())).collect()
        }
    }
}

/// The documents linked to one of a user's agents, first linked first, and the generation that each is searched in.
pub async fn linked_generations(
    db: &Db,
    user: UserId,
    agent: AgentId,
) -> Result<Vec<(DocumentId, Option<GenerationId>)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT documents.id, documents.active_generation
         FROM agent_documents JOIN documents ON documents.id = agent_documents.document_id
         WHERE agent_documents.agent_id = $1 AND agent_documents.user_id = $2 ORDER BY agent_documents.id"
    )
    .bind(agent)
    .bind(user)
    .fetch_all(c))?)
}
