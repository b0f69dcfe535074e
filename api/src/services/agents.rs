//! Agents.

mod address;
mod change;
mod deletion;
mod first_links;
mod readers;
pub(crate) mod versions;

use std::sync::Arc;

use lectern_db::{self as db, Db, Tx};
use lectern_derive::RequestBody;
use lectern_jobs::JobQueue;
use lectern_runtime::Runtime;
use lectern_shared::{
    clock::Clock,
    config::Settings,
    ids::{AgentId, DocumentId, PromptId, TagId, WorkspaceId},
    model::{
        Json,
        agent::{Agent, AgentType, LlmConfig},
        audit::{AuditAction, AuditDetails},
        tag::Tag,
    },
    secrets::{CiphertextLocation, Keyring, is_mask_of, mask},
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use self::first_links::FirstLinks;
use self::{
    readers::{CountSchema, ProviderSchema, TagReference},
    versions::AgentHistory,
};
use super::{
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
};
use crate::{
    error::ApiError,
    fields::{GivenId, GivenIds},
};

/// What stands in a mask for the greater part of a key.
pub(crate) const MASKED: char = '…';

/// A model to ask.
#[derive(RequestBody, ToSchema)]
// Clients of the first version may send what they know of other services, in changes too.
#[body(open, first(provider, base_url))]
pub(crate) struct NewLlm {
    /// The model's name, sent to the provider as given.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    #[body(with = readers::model)]
    model: String,
    /// The provider. `openai-compatible` needs `base_url`; `extractive` needs no model at all: it quotes the documents.
    #[schema(value_type = ProviderSchema)]
    #[body(with = readers::provider)]
    provider: String,
    /// Where the provider is, when it is not at its usual place: an http or https address without credentials. `azure-openai`
    /// and `ollama` need it where the operator has not set theirs.
    #[schema(max_length = 2_000)]
    #[body(with = readers::base_url)]
    base_url: Option<String>,
    /// The sampling temperature; the provider's own when left out. `anthropic` is sent at most 1.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// The most tokens that the model may write in one step.
    #[schema(value_type = Option<CountSchema>)]
    max_tokens: Option<u32>,
    /// Tokens that the model has room for, read and written. Fewer passages and remembered turns are sent to one with little room.
    #[schema(value_type = Option<CountSchema>)]
    context_window: Option<u32>,
    /// Requests to the model in one predict. This and the following can only lower what the service allows.
    #[schema(value_type = Option<CountSchema>)]
    max_steps: Option<u32>,
    /// Seconds that one predict may take.
    #[schema(minimum = 0.1, maximum = 86_400)]
    max_seconds: Option<f64>,
    /// Tokens of one predict, read and written.
    #[schema(value_type = Option<CountSchema>)]
    max_total_tokens: Option<u32>,
    /// What one predict may cost, in the currency of the service's prices. Models without a price cost nothing.
    #[schema(minimum = 0, maximum = 1_000_000)]
    max_cost: Option<f64>,
    /// A key of the provider for this agent alone, of printable ASCII characters; without one it is the service's. It is shown
    /// masked from then on.
    #[schema(value_type = Option<String>, max_length = 2_000)]
    #[body(with = readers::api_key)]
    api_key: Option<SecretString>,
}

impl NewLlm {
    /// What is stored of it as it is, and the key.
    fn split(self) -> (LlmConfig, Option<SecretString>) {
        let llm = LlmConfig {
            model: self.model,
            provider: self.provider,
            base_url: self.base_url,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            context_window: self.context_window,
            max_steps: self.max_steps,
            max_seconds: self.max_seconds,
            max_total_tokens: self.max_total_tokens,
            max_cost: self.max_cost,
        };
        (llm, self.api_key)
    }
}

/// The id of the prompt that an agent is to use, if it is this workspace's.
///
/// # Errors
/// When the workspace has no such prompt.
async fn owned_prompt(
    tx: &mut Tx,
    workspace: WorkspaceId,
    given: GivenId<PromptId>,
) -> Result<PromptId, ApiError> {
    let unknown = || ApiError::not_found("prompt");
    let id = given.map_err(|_| unknown())?;
    if db::agents::owns_prompt(tx, workspace, id).await? { Ok(id) } else { Err(unknown()) }
}

/// A new agent.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
#[body(first(r#type))]
pub(crate) struct NewAgent {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// How it talks with its model: `CHATVENDOR` by function calling, `REACT` in text.
    #[schema(value_type = String, pattern = "^(CHATVENDOR|REACT)$")]
    r#type: AgentType,
    /// Anything you want to say of it.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    #[body(default)]
    description: String,
    /// Its model; the service's default when left out.
    llm: Option<NewLlm>,
    /// Whether it remembers the turns of a session. False when left out.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    has_memory: bool,
    /// Whether what it finds is put into a better order by the service's reranker, when there is one. False when left out: it takes
    /// time, and an evaluation tells whether it helps.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    rerank: bool,
    /// One of your prompts.
    #[schema(value_type = Option<String>)]
    prompt_id: Option<GivenId<PromptId>>,
    /// Your tags, each as its id or as an object with it. One that is named twice counts once.
    #[schema(value_type = Option<Vec<TagReference>>, max_items = 100)]
    #[body(with = readers::tags, default = Ok(Vec::new()))]
    tags: GivenIds<TagId>,
}

/// What is to be different about an agent. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
#[body(change, first(description, r#type))]
#[expect(clippy::option_option, reason = "a prompt is left alone, taken away or set")]
pub(crate) struct AgentChange {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    name: Option<String>,
    /// How it talks with its model: `CHATVENDOR` by function calling, `REACT` in text.
    #[schema(value_type = Option<String>, pattern = "^(CHATVENDOR|REACT)$", nullable = false)]
    r#type: Option<AgentType>,
    /// Anything you want to say of it; null empties it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// The whole new model. What it leaves out is not taken from the old one; an `api_key` that comes back masked stays as it is,
    /// for the same provider and host.
    #[schema(nullable = false)]
    llm: Option<NewLlm>,
    /// Whether it remembers the turns of a session.
    #[schema(nullable = false)]
    has_memory: Option<bool>,
    /// Whether what it finds is put into a better order by the service's reranker, when there is one.
    #[schema(nullable = false)]
    rerank: Option<bool>,
    /// One of your prompts; null for none.
    #[schema(value_type = Option<String>)]
    prompt_id: Option<Option<GivenId<PromptId>>>,
    /// All its tags from now on, each as its id or as an object with it; null for none.
    #[schema(value_type = Option<Vec<TagReference>>, max_items = 100)]
    #[body(with = readers::tags, default = Ok(Vec::new()))]
    tags: Option<GivenIds<TagId>>,
}

/// An agent, and what its row does not have.
#[derive(Clone)]
pub(crate) struct AgentDetails {
    pub(crate) agent: Agent,
    /// Its tags, in the order in which they were given.
    pub(crate) tags: Vec<Tag>,
    /// Its own key of the provider, masked.
    pub(crate) masked_key: Option<String>,
}

/// An agent as somebody sees it.
pub(crate) enum VisibleAgent {
    /// All of it, for those who build agents.
    Whole(Box<AgentDetails>),
    /// What it is called and for, for those who ask it.
    Brief(AgentSummary),
}

/// What those who ask an agent see of it.
// With more fields it is a whole agent, so that the schema of both takes either for one of them only.
#[derive(Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSummary {
    /// Its id.
    #[schema(value_type = String)]
    pub(crate) id: AgentId,
    /// What it is called.
    pub(crate) name: String,
    /// Anything that is said of it.
    pub(crate) description: String,
}

impl From<Agent> for AgentSummary {
    fn from(agent: Agent) -> Self {
        Self { id: agent.id, name: agent.name, description: agent.description }
    }
}

/// Agents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    jobs: JobQueue,
    settings: Arc<Settings>,
    creations: IdempotencyStore,
    audit: AuditService,
    history: AgentHistory,
}

/// Where an agent's provider key is sealed.
fn key_place(id: &AgentId) -> CiphertextLocation<'_> {
    CiphertextLocation::agent_key(id.as_uuid())
}

fn unknown() -> ApiError {
    ApiError::not_found("agent")
}

/// Gives an agent these tags, which have to be its owner's.
async fn set_tags(
    tx: &mut Tx,
    workspace: WorkspaceId,
    agent: AgentId,
    tags: GivenIds<TagId>,
) -> Result<(), ApiError> {
    let unknown = || ApiError::not_found("tag");
    let tags = tags.map_err(|_| unknown())?;
    if db::tags::set(tx, workspace, agent, &tags).await? { Ok(()) } else { Err(unknown()) }
}

impl AgentService {
    pub(crate) fn new(
        runtime: &Runtime,
        creations: IdempotencyStore,
        audit: AuditService,
        history: AgentHistory,
    ) -> Self {
        let Runtime { db, clock, keyring, jobs, settings, .. } = runtime.clone();
        Self { db, clock, keyring, jobs, settings, creations, audit, history }
    }

    /// Makes an agent that answers from these documents and collections: this is its first version.
    ///
    /// # Errors
    /// When nobody could ask its model, its key is a mask, or its prompt, one of its tags or what it is to answer from is not the owner's.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewAgent,
        links: FirstLinks,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<AgentDetails>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let (id, workspace) = (AgentId::generate(), owner.workspace_id);
        let (llm, key) = new.llm.map_or_else(|| (self.default_llm(), None), NewLlm::split);
        address::check(&self.settings.predict, &llm)?;
        let now = self.clock.now();
        let mut agent = Agent {
            id,
            owner,
            r#type: new.r#type,
            name: new.name,
            description: new.description,
            llm: Json(llm),
            llm_key_sealed: key.map(|key| self.seal(&id, &key)).transpose()?,
            has_memory: new.has_memory,
            rerank: new.rerank,
            prompt_id: None,
            version: 1,
            created_at: now,
            updated_at: now,
            document_id: None,
        };
        let mut tx = self.db.begin().await?;
        // What it names stays while it is made.
        db::locks::lock_workspace(&mut tx, workspace).await?;
        if let Some(prompt) = new.prompt_id {
            agent.prompt_id = Some(owned_prompt(&mut tx, workspace, prompt).await?);
        }
        db::agents::insert(&mut tx, &agent).await?;
        set_tags(&mut tx, workspace, id, new.tags).await?;
        let tags = db::tags::of_agent(&mut tx, workspace, id).await?;
        let queued = self.link_first(&mut tx, owner, id, links).await?;
        let details = AuditDetails::change(None, Some(address::told(&agent.llm.0)));
        self.audit.note_with(&mut tx, actor, AuditAction::AgentCreated, "agent", id, details).await?;
        if agent.llm_key_sealed.is_some() {
            self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "agent", id).await?;
        }
        let made = self.details(agent, tags)?;
        let created = self.creations.commit(tx, once, &made, tell).await?;
        if queued > 0 {
            self.jobs.doorbell().ring(queued);
        }
        Ok(created)
    }

    /// The agents before an id whose names have something somewhere, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        name: &str,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<VisibleAgent>, ApiError> {
        let workspace = actor.may(Permission::ListAgents)?.workspace_id;
        let agents = db::agents::list(&self.db, workspace, name, before.into(), limit).await?;
        if actor.may(Permission::BuildAgents).is_err() {
            return Ok(agents.into_iter().map(|agent| VisibleAgent::Brief(agent.into())).collect());
        }
        let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
        let mut tags = db::tags::of_agents(&self.db, workspace, &ids).await?;
        let details = |agent: Agent| {
            let tags = tags.remove(&agent.id).unwrap_or_default();
            self.details(agent, tags).map(|details| VisibleAgent::Whole(Box::new(details)))
        };
        agents.into_iter().map(details).collect()
    }

    /// One agent.
    pub(crate) async fn find(&self, actor: &Actor, id: AgentId) -> Result<VisibleAgent, ApiError> {
        let workspace = actor.may(Permission::ListAgents)?.workspace_id;
        let agent = db::agents::find(&self.db, workspace, id).await?.ok_or_else(unknown)?;
        if actor.may(Permission::BuildAgents).is_err() {
            return Ok(VisibleAgent::Brief(agent.into()));
        }
        let mut tags = db::tags::of_agents(&self.db, workspace, &[id]).await?;
        let details = self.details(agent, tags.remove(&id).unwrap_or_default())?;
        Ok(VisibleAgent::Whole(Box::new(details)))
    }

    /// The agents that answer from one of the workspace's documents, by id and name, the newest first.
    pub(crate) async fn of_document(
        &self,
        actor: &Actor,
        document: DocumentId,
    ) -> Result<Vec<(AgentId, String)>, ApiError> {
        const MOST: u32 = 100;
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::agents::of_document(&self.db, owner.workspace_id, document, MOST).await?)
    }

    /// The id of one agent, if it is there.
    pub(crate) async fn owned(&self, actor: &Actor, id: AgentId) -> Result<AgentId, ApiError> {
        let owner = actor.may(Permission::ListAgents)?;
        Ok(db::agents::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)?.id)
    }

    /// Makes an agent forget what was said in one's own session.
    pub(crate) async fn erase_session(
        &self,
        actor: &Actor,
        id: AgentId,
        session: &str,
    ) -> Result<(), ApiError> {
        let owner = actor.may_ask(id)?;
        let mut tx = self.db.begin_essential().await?;
        if !db::agents::erase_session(&mut tx, owner, id, session, self.clock.now()).await? {
            return Err(unknown());
        }
        Ok(tx.commit().await?)
    }

    /// The model of agents that name none.
    pub(crate) fn default_llm(&self) -> LlmConfig {
        let (provider, model) = self.settings.default_llm.clone();
        LlmConfig { model, provider, ..LlmConfig::default() }
    }

    /// Encrypts an agent's new key. A mask is none, unless it is that of the stored key, which is not new: the provider would
    /// be sent it.
    fn seal(&self, agent: &AgentId, key: &SecretString) -> Result<Vec<u8>, ApiError> {
        if key.expose_secret().contains(MASKED) {
            let message = "is a mask, and not of a key that this agent has; send the key itself, or none";
            return Err(ApiError::invalid_field("llm.api_key", message));
        }
        Ok(self.keyring.encrypt(key_place(agent), key.expose_secret().as_bytes())?)
    }

    /// Whether this is what is shown of an agent's key: it was read and sent back.
    fn is_mask(&self, agent: &Agent, key: &SecretString) -> Result<bool, ApiError> {
        let stored = self.stored_key(agent)?;
        Ok(stored.is_some_and(|stored| is_mask_of(key.expose_secret(), stored.expose_secret())))
    }

    fn masked_key(&self, agent: &Agent) -> Result<Option<String>, ApiError> {
        Ok(self.stored_key(agent)?.map(|key| mask(key.expose_secret())))
    }

    fn stored_key(&self, agent: &Agent) -> Result<Option<SecretString>, ApiError> {
        let Some(sealed) = &agent.llm_key_sealed else { return Ok(None) };
        Ok(Some(self.keyring.decrypt_text(key_place(&agent.id), sealed)?))
    }

    /// An agent with these tags.
    ///
    /// # Errors
    /// When the stored key cannot be read.
    fn details(&self, agent: Agent, tags: Vec<Tag>) -> Result<AgentDetails, ApiError> {
        let masked_key = self.masked_key(&agent)?;
        Ok(AgentDetails { agent, tags, masked_key })
    }
}
