//! Agents.

mod address;

use std::sync::Arc;

use lectern_shared::{
    clock::Clock,
    config::Settings,
    db::{self, Db, Json, Tx},
    ids::{AgentId, PromptId, TagId, UserId},
    model::{
        agent::{Agent, AgentType, LlmConfig},
        tag::Tag,
    },
    secrets::{CiphertextLocation, Keyring, mask},
};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::{
    Actor,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
};
use crate::error::{ApiError, FieldError};

/// What stands in a mask for the greater part of a key.
pub(crate) const MASKED: char = '…';

/// A model that was checked, and its key.
pub(crate) struct NewLlm {
    pub(crate) llm: LlmConfig,
    pub(crate) key: Option<SecretString>,
}

/// The prompt that an agent is to use. Text that cannot be an id names an unknown one.
pub(crate) struct PromptRef(pub(crate) Option<PromptId>);

impl PromptRef {
    /// Its id, if it is this user's.
    ///
    /// # Errors
    /// When the user has no such prompt.
    async fn owned(self, tx: &mut Tx, user: UserId) -> Result<PromptId, ApiError> {
        let unknown = || ApiError::not_found("prompt");
        let id = self.0.ok_or_else(unknown)?;
        if db::agents::owns_prompt(tx, user, id).await? { Ok(id) } else { Err(unknown()) }
    }
}

/// The tags that an agent is to have, each once; none when one of them cannot be anybody's.
pub(crate) type TagIds = Option<Vec<TagId>>;

/// A new agent.
pub(crate) struct NewAgent {
    pub(crate) r#type: AgentType,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Its model; the service's default when there is none.
    pub(crate) llm: Option<NewLlm>,
    pub(crate) has_memory: bool,
    pub(crate) prompt: Option<PromptRef>,
    pub(crate) tags: TagIds,
}

/// What is to be different about an agent. What is left out stays as it is.
#[expect(clippy::option_option, reason = "a prompt is left alone, taken away or set")]
pub(crate) struct AgentChange {
    pub(crate) r#type: Option<AgentType>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) llm: Option<NewLlm>,
    pub(crate) has_memory: Option<bool>,
    pub(crate) prompt: Option<Option<PromptRef>>,
    pub(crate) tags: Option<TagIds>,
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

/// Agents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    settings: Arc<Settings>,
    creations: IdempotencyStore,
}

/// Where an agent's provider key is sealed.
fn key_place(id: &AgentId) -> CiphertextLocation<'_> {
    CiphertextLocation::agent_key(id.as_uuid())
}

fn unknown() -> ApiError {
    ApiError::not_found("agent")
}

/// Gives an agent these tags, which have to be its owner's.
async fn set_tags(tx: &mut Tx, user: UserId, agent: AgentId, tags: TagIds) -> Result<(), ApiError> {
    let unknown = || ApiError::not_found("tag");
    let tags = tags.ok_or_else(unknown)?;
    if db::tags::set(tx, user, agent, &tags).await? { Ok(()) } else { Err(unknown()) }
}

impl AgentService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        keyring: Arc<Keyring>,
        settings: Arc<Settings>,
        creations: IdempotencyStore,
    ) -> Self {
        Self { db, clock, keyring, settings, creations }
    }

    /// Makes an agent.
    ///
    /// # Errors
    /// When nobody could ask its model, its key is a mask, or its prompt or one of its tags is not the owner's.
    pub(crate) async fn create(
        &self,
        actor: Actor,
        new: NewAgent,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<AgentDetails>,
    ) -> Result<CreationOutcome, ApiError> {
        let (id, user) = (AgentId::generate(), actor.user);
        let NewLlm { llm, key } = new.llm.unwrap_or_else(|| NewLlm { llm: self.default_llm(), key: None });
        address::check(&self.settings.predict, &llm)?;
        let now = self.clock.now();
        let mut agent = Agent {
            id,
            user_id: user,
            r#type: new.r#type,
            name: new.name,
            description: new.description,
            llm: Json(llm),
            llm_key_sealed: key.map(|key| self.seal(&id, &key)).transpose()?,
            has_memory: new.has_memory,
            prompt_id: None,
            version: 1,
            created_at: now,
            updated_at: now,
            document_id: None,
        };
        let mut tx = self.db.begin().await?;
        // What it names stays while it is made.
        db::locks::lock_user(&mut tx, user).await?;
        if let Some(prompt) = new.prompt {
            agent.prompt_id = Some(prompt.owned(&mut tx, user).await?);
        }
        db::agents::insert(&mut tx, &agent).await?;
        set_tags(&mut tx, user, id, new.tags).await?;
        let tags = db::tags::of_agent(&mut tx, user, id).await?;
        let made = self.details(agent, tags)?;
        self.creations.commit(tx, once, &made, tell).await
    }

    /// The agents before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<AgentDetails>, ApiError> {
        let agents = db::agents::list(&self.db, actor.user, before.into(), limit).await?;
        let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
        let mut tags = db::tags::of_agents(&self.db, actor.user, &ids).await?;
        let details = |agent: Agent| {
            let tags = tags.remove(&agent.id).unwrap_or_default();
            self.details(agent, tags)
        };
        agents.into_iter().map(details).collect()
    }

    /// One agent.
    pub(crate) async fn find(&self, actor: Actor, id: AgentId) -> Result<AgentDetails, ApiError> {
        let agent = db::agents::find(&self.db, actor.user, id).await?.ok_or_else(unknown)?;
        let mut tags = db::tags::of_agents(&self.db, actor.user, &[id]).await?;
        self.details(agent, tags.remove(&id).unwrap_or_default())
    }

    /// The id of one agent, if it is there.
    pub(crate) async fn owned(&self, actor: Actor, id: AgentId) -> Result<AgentId, ApiError> {
        Ok(db::agents::find(&self.db, actor.user, id).await?.ok_or_else(unknown)?.id)
    }

    /// Changes an agent, which is as it is returned afterwards.
    ///
    /// # Errors
    /// Those of a new one; and when a key that is kept would go to another provider or host.
    pub(crate) async fn change(
        &self,
        actor: Actor,
        id: AgentId,
        change: AgentChange,
    ) -> Result<AgentDetails, ApiError> {
        let user = actor.user;
        let mut tx = self.db.begin().await?;
        let before = db::agents::lock(&mut tx, user, id).await?.ok_or_else(unknown)?;
        let tags_before = db::tags::of_agent(&mut tx, user, id).await?;
        let mut agent = before.clone();
        agent.name = change.name.unwrap_or(agent.name);
        agent.description = change.description.unwrap_or(agent.description);
        agent.r#type = change.r#type.unwrap_or(agent.r#type);
        agent.has_memory = change.has_memory.unwrap_or(agent.has_memory);
        if let Some(NewLlm { llm, key }) = change.llm {
            let predict = &self.settings.predict;
            address::check(predict, &llm)?;
            agent.llm_key_sealed = match key {
                None => None,
                Some(key) if self.is_mask(&before, &key)? => {
                    address::check_kept_key(predict, &before.llm.0, &llm)?;
                    before.llm_key_sealed.clone()
                }
                Some(key) => Some(self.seal(&id, &key)?),
            };
            agent.llm = Json(llm);
        }
        if let Some(prompt) = change.prompt {
            agent.prompt_id = match prompt {
                None => None,
                Some(prompt) => Some(prompt.owned(&mut tx, user).await?),
            };
        }
        let mut tags = tags_before.clone();
        if let Some(ids) = change.tags {
            set_tags(&mut tx, user, id, ids).await?;
            tags = db::tags::of_agent(&mut tx, user, id).await?;
        }
        if agent != before || tags != tags_before {
            agent.updated_at = self.clock.now();
            db::agents::update(&mut tx, &agent).await?;
            tx.commit().await?;
        }
        self.details(agent, tags)
    }

    /// Deletes an agent, with its links, its memory and its traces.
    pub(crate) async fn delete(&self, actor: Actor, id: AgentId) -> Result<(), ApiError> {
        let mut tx = self.db.begin_essential().await?;
        if !db::agents::delete(&mut tx, actor.user, id).await? {
            return Err(unknown());
        }
        Ok(tx.commit().await?)
    }

    /// Makes an agent forget what was said in a session.
    pub(crate) async fn erase_session(
        &self,
        actor: Actor,
        id: AgentId,
        session: &str,
    ) -> Result<(), ApiError> {
        let mut tx = self.db.begin_essential().await?;
        if !db::agents::erase_session(&mut tx, actor.user, id, session).await? {
            return Err(unknown());
        }
        Ok(tx.commit().await?)
    }

    fn default_llm(&self) -> LlmConfig {
        let (provider, model) = self.settings.default_llm.clone();
        LlmConfig { model, provider, ..LlmConfig::default() }
    }

    /// Encrypts an agent's new key. A mask is none, unless it is that of the stored key, which is not new: the provider would
    /// be sent it.
    fn seal(&self, agent: &AgentId, key: &SecretString) -> Result<Vec<u8>, ApiError> {
        if key.expose_secret().contains(MASKED) {
            let message =
                "is a mask, and not of a key that this agent has; send the key itself, or none".to_owned();
            return Err(ApiError::invalid(vec![FieldError { path: "llm.api_key".to_owned(), message }]));
        }
        Ok(self.keyring.encrypt(key_place(agent), key.expose_secret().as_bytes())?)
    }

    /// Whether this is what is shown of an agent's key: it was read and sent back.
    fn is_mask(&self, agent: &Agent, key: &SecretString) -> Result<bool, ApiError> {
        Ok(self.masked_key(agent)?.is_some_and(|mask| mask == key.expose_secret()))
    }

    fn masked_key(&self, agent: &Agent) -> Result<Option<String>, ApiError> {
        let Some(sealed) = &agent.llm_key_sealed else { return Ok(None) };
        let key = self.keyring.decrypt_text(key_place(&agent.id), sealed)?;
        Ok(Some(mask(key.expose_secret())))
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
