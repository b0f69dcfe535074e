//! Agents and their links. Answers may be kept by their agent's version, so whatever changes what an agent answers from
//! raises it.

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentDocumentId, AgentId, DocumentId, GenerationId, PromptId, WorkspaceId},
    model::{
        agent::{Agent, AgentDocument},
        workspace::{RowOwner, RunOwner},
    },
};
use sqlx::QueryBuilder;

use crate::{
    Db, Result, Tx,
    documents::{self, browse::and_has},
    execute,
    jobs::has_ended_unpublished,
    locks, memory, on,
};

/// Adds an agent.
pub async fn insert(tx: &mut Tx, agent: &Agent) -> Result<()> {
    execute!(tx, sqlx::query(
        "INSERT INTO agents (id, workspace_id, created_by, type, name, description, llm, llm_key_sealed, has_memory, rerank, prompt_id,
                             version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, $12)"
    )
    .bind(agent.id)
    .bind(agent.owner.workspace_id)
    .bind(agent.owner.creator())
    .bind(agent.r#type)
    .bind(agent.name.as_str())
    .bind(agent.description.as_str())
    .bind(&agent.llm)
    .bind(agent.llm_key_sealed.as_deref())
    .bind(agent.has_memory)
    .bind(agent.rerank)
    .bind(agent.prompt_id)
    .bind(agent.created_at))?;
    Ok(())
}

macro_rules! agent_columns {
    () => {
        "id, workspace_id, created_by, type, name, description, llm, llm_key_sealed, has_memory, rerank, prompt_id, version,
         created_at, updated_at,
         (SELECT document_id FROM agent_documents WHERE agent_documents.agent_id = agents.id
          ORDER BY agent_documents.id LIMIT 1) AS document_id"
    };
}

macro_rules! select_agent {
    ($where:literal) => {
        concat!("SELECT ", agent_columns!(), " FROM agents WHERE ", $where)
    };
}

/// One of a workspace's agents.
pub async fn find(db: &Db, workspace: WorkspaceId, id: AgentId) -> Result<Option<Agent>> {
    Ok(on!(db, |c| sqlx::query_as(select_agent!("id = $1 AND workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// A workspace's agents of this name, at most as many as tell that it is not the name of one alone.
pub async fn find_named(db: &Db, workspace: WorkspaceId, name: &str) -> Result<Vec<Agent>> {
    const TOLD: i64 = 100;
    Ok(on!(db, |c| sqlx::query_as(select_agent!("workspace_id = $1 AND name = $2 ORDER BY id LIMIT $3"))
        .bind(workspace)
        .bind(name)
        .bind(TOLD)
        .fetch_all(c))?)
}

/// At most `limit` of a workspace's agents older than `before`, newest first. Their names have `name` somewhere, in whichever case.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    before: AgentId,
    limit: u32,
) -> Result<Vec<Agent>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(select_agent!("workspace_id = "));
        query.push_bind(workspace).push(" AND id < ").push_bind(before);
        and_has(&mut query, "name", name);
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// Reads one of a workspace's agents and keeps it as it is until the transaction ends. Neither the workspace's prompts nor tags go
/// meanwhile.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: AgentId) -> Result<Option<Agent>> {
    locks::lock_workspace(tx, workspace).await?;
    if !lock_row(tx, workspace, id).await? {
        return Ok(None);
    }
    Ok(on!(tx, |c| sqlx::query_as(select_agent!("id = $1 AND workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// Keeps one of a workspace's agents from changing or going until the transaction ends; false when there is no such agent.
pub(super) async fn lock_row(tx: &mut Tx, workspace: WorkspaceId, id: AgentId) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE agents SET version = version WHERE id = $1 AND workspace_id = $2")
            .bind(id)
            .bind(workspace)
    )?;
    Ok(rows == 1)
}

/// Notes that something else of a workspace's agent, or of what it answers from, is so from now on; false when there is no such agent.
pub(super) async fn raise_version(tx: &mut Tx, workspace: WorkspaceId, id: AgentId) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE agents SET version = version + 1 WHERE id = $1 AND workspace_id = $2")
            .bind(id)
            .bind(workspace)
    )?;
    Ok(rows == 1)
}

/// Writes what can be changed of an agent that is [locked](lock), and raises its version.
pub async fn update(tx: &mut Tx, agent: &Agent) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE agents SET type = $3, name = $4, description = $5, llm = $6, llm_key_sealed = $7, has_memory = $8,
                               rerank = $9, prompt_id = $10, updated_at = $11, version = version + 1
             WHERE id = $1 AND workspace_id = $2"
        )
        .bind(agent.id)
        .bind(agent.owner.workspace_id)
        .bind(agent.r#type)
        .bind(agent.name.as_str())
        .bind(agent.description.as_str())
        .bind(&agent.llm)
        .bind(agent.llm_key_sealed.as_deref())
        .bind(agent.has_memory)
        .bind(agent.rerank)
        .bind(agent.prompt_id)
        .bind(agent.updated_at)
    )?;
    Ok(())
}

/// Whether a workspace has this prompt. It stays while the workspace is [locked](locks::lock_workspace).
pub async fn owns_prompt(tx: &mut Tx, workspace: WorkspaceId, prompt: PromptId) -> Result<bool> {
    let found: Option<PromptId> =
        on!(tx, |c| sqlx::query_scalar("SELECT id FROM prompts WHERE id = $1 AND workspace_id = $2")
            .bind(prompt)
            .bind(workspace)
            .fetch_optional(c))?;
    Ok(found.is_some())
}

/// Deletes what one of a workspace's agents remembers of somebody's session; false when there is no such agent.
pub async fn erase_session(
    tx: &mut Tx,
    owner: RunOwner,
    agent: AgentId,
    session: &str,
    now: Timestamp,
) -> Result<bool> {
    if !lock_row(tx, owner.workspace_id, agent).await? {
        return Ok(false);
    }
    memory::erase(tx, owner, agent, session, now).await?;
    Ok(true)
}

/// A new link, or the one that there was before.
#[derive(Debug, sqlx::FromRow)]
pub struct MadeLink {
    /// The link.
    #[sqlx(flatten)]
    pub link: AgentDocument,
    /// Whether nothing of its document [is searchable](crate::jobs::ended_unpublished), and nothing is under way to change that.
    pub ended_unpublished: bool,
}

/// Adds a link between the agent $4 and the document $5, unless they are linked already; given agents, only if it is among them.
macro_rules! insert_link {
    () => {
        insert_link!(row: "VALUES ($1, $2, $3, $4, $5, $6)")
    };
    ($agents:literal) => {
        insert_link!(row: "SELECT $1, $2, $3, id, $5, $6 FROM ", $agents, " WHERE id = $4 AND workspace_id = $2")
    };
    (row: $($row:literal),+) => {
        concat!(
            "INSERT INTO agent_documents (id, workspace_id, created_by, agent_id, document_id, created_at) ",
            $($row,)+
            " ON CONFLICT (agent_id, document_id) DO NOTHING"
        )
    };
}

/// The [`MadeLink`] of the agent $4 and the document $5.
macro_rules! select_made {
    ($links:literal) => {
        concat!(
            "SELECT *, ",
            has_ended_unpublished!("$5"),
            " AS ended_unpublished FROM ",
            $links,
            "agent_documents WHERE agent_id = $4 AND document_id = $5 AND workspace_id = $2"
        )
    };
}

/// Links a workspace's agent and document and returns the link; the first one when they are linked already. None when either
/// is not the workspace's.
pub async fn link(
    tx: &mut Tx,
    owner: RowOwner,
    agent: AgentId,
    document: DocumentId,
    now: Timestamp,
) -> Result<Option<MadeLink>> {
    /// What is added in a statement cannot be read by it, but for what it tells of that; a link that somebody took while this waited for the
    /// agent can. Nobody else adds one meanwhile, since whoever does has locked the workspace.
    const TOLD: &str = concat!(
        "WITH locked AS (SELECT id, workspace_id FROM agents WHERE id = $4 AND workspace_id = $2 FOR NO KEY UPDATE), added AS (",
        insert_link!("locked"),
        " RETURNING *), raised AS (UPDATE agents SET version = version + 1
                                   WHERE id = $4 AND workspace_id = $2 AND EXISTS (SELECT 1 FROM added)) ",
        select_made!(
            "(SELECT * FROM added UNION ALL SELECT * FROM agent_documents WHERE NOT EXISTS (SELECT 1 FROM added)) AS "
        ),
        " AND EXISTS (SELECT 1 FROM locked)"
    );
    const READ: &str = concat!(
        insert_link!("agents"),
        "; UPDATE agents SET version = version + 1 WHERE id = $4 AND workspace_id = $2 AND changes() > 0; ",
        select_made!("")
    );
    let workspace = owner.workspace_id;
    // Neither end may be on its way out at this moment. The document in a statement of its own: what is read behind a lock is as whoever
    // had it left it.
    if !documents::lock(tx, workspace, document).await? {
        return Ok(None);
    }
    // In one round trip, since others wait for the workspace's row meanwhile.
    let add_and_read = match tx {
        Tx::Postgres(_) => TOLD,
        Tx::Sqlite(_) => READ,
    };
    Ok(on!(tx, |c| sqlx::query_as(add_and_read)
        .bind(AgentDocumentId::generate())
        .bind(workspace)
        .bind(owner.creator())
        .bind(agent)
        .bind(document)
        .bind(now)
        .fetch_optional(c))?)
}

/// Links an agent that this transaction has made to a document, which makes no other version of it; false when the document is not the
/// workspace's.
pub async fn link_new(
    tx: &mut Tx,
    owner: RowOwner,
    agent: AgentId,
    document: DocumentId,
    now: Timestamp,
) -> Result<bool> {
    if !documents::lock(tx, owner.workspace_id, document).await? {
        return Ok(false);
    }
    execute!(
        tx,
        sqlx::query(insert_link!())
            .bind(AgentDocumentId::generate())
            .bind(owner.workspace_id)
            .bind(owner.creator())
            .bind(agent)
            .bind(document)
            .bind(now)
    )?;
    Ok(true)
}

/// One of a workspace's links.
pub async fn find_link(
    db: &Db,
    workspace: WorkspaceId,
    id: AgentDocumentId,
) -> Result<Option<AgentDocument>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM agent_documents WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's links older than `before`, newest first; those of one agent when it is named.
pub async fn list_links(
    db: &Db,
    workspace: WorkspaceId,
    agent: Option<AgentId>,
    before: AgentDocumentId,
    limit: u32,
) -> Result<Vec<AgentDocument>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM agent_documents
         WHERE workspace_id = $1 AND id < $2 AND ($3 IS NULL OR agent_id = $3) ORDER BY id DESC LIMIT $4"
    )
    .bind(workspace)
    .bind(before)
    .bind(agent)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Deletes one of a workspace's links; false when there is none.
pub async fn unlink(tx: &mut Tx, workspace: WorkspaceId, id: AgentDocumentId) -> Result<bool> {
    // The agent first, as whoever deletes it with its links does.
    execute!(
        tx,
        sqlx::query(
            "UPDATE agents SET version = version + 1 WHERE workspace_id = $2
               AND id = (SELECT agent_id FROM agent_documents WHERE id = $1 AND workspace_id = $2)"
        )
        .bind(id)
        .bind(workspace)
    )?;
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM agent_documents WHERE id = $1 AND workspace_id = $2")
            .bind(id)
            .bind(workspace)
    )?;
    Ok(rows == 1)
}

/// The documents of agent $1 of workspace $2, once for each way in which they are linked.
macro_rules! linked {
    () => {
        "(SELECT document_id, id, 1 AS is_direct FROM agent_documents WHERE agent_id = $1 AND workspace_id = $2
          UNION ALL
          SELECT cd.document_id, cd.document_id, 0 FROM agent_collections ac
          JOIN collection_documents cd ON cd.collection_id = ac.collection_id
          WHERE ac.agent_id = $1 AND ac.workspace_id = $2) AS linked"
    };
}

mod briefing;
mod deletion;
mod linkable;

pub use self::{
    briefing::{AgentBriefing, AgentLinks, KnownDocuments, LinkStamp, brief, links},
    deletion::{delete, forget, forget_some_runs},
    linkable::{
        LinkedDocument, NamedLink, collections_page_before, documents_page_before, linkable_collections,
        linkable_tools, linked_collections, linked_documents, linked_tools, only_collections,
    },
};

/// At most `limit` of a workspace's agents that answer from a document, by id and name, the newest first.
pub async fn of_document(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    limit: u32,
) -> Result<Vec<(AgentId, String)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, name FROM agents WHERE workspace_id = $1 AND id IN (
             SELECT agent_id FROM agent_documents WHERE document_id = $2 AND workspace_id = $1
             UNION
             SELECT ac.agent_id FROM agent_collections ac
             JOIN collection_documents cd ON cd.collection_id = ac.collection_id
             WHERE cd.document_id = $2 AND ac.workspace_id = $1)
         ORDER BY id DESC LIMIT $3"
    )
    .bind(workspace)
    .bind(document)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// The documents that one of a workspace's agents answers from, by their ids, and the generation that each is searched in.
pub async fn linked_generations(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
) -> Result<Vec<(DocumentId, Option<GenerationId>)>> {
    Ok(on!(db, |c| {
        sqlx::query_as(concat!(
        "SELECT id, active_generation FROM documents WHERE workspace_id = $2 AND id IN (SELECT document_id FROM ",
        linked!(),
        ") ORDER BY id"
    ))
    .bind(agent)
    .bind(workspace)
    .fetch_all(c)
    })?)
}
