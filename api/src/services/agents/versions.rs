//! What agents were before they were changed: to be looked at, asked, and made what they are again.

use std::sync::Arc;

use lectern_agents::run::{AgentPrompt, AgentToAsk};
use lectern_db::{self as db, Db, Tx, agent_versions::KEPT};
use lectern_shared::{
    clock::{Clock, Timestamp},
    ids::{AgentId, AgentVersionId, PromptId, UserId, WorkspaceId},
    model::{
        Json,
        agent::{Agent, AgentConfig, AgentVersion, PromptConfig},
        audit::AuditAction,
        prompt::Prompt,
    },
    secrets::{CiphertextLocation, Keyring},
};
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{AgentDetails, AgentService, address, key_place, unknown};
use crate::{
    error::{ApiError, ApiErrorKind},
    services::actor::{Actor, Permission},
};

/// Stands for what an agent is now: greater than every id, and not the greatest.
const CURRENT: Uuid = Uuid::from_u128(u128::MAX - 1);

/// An agent as it is, or as it was before a change.
pub(crate) struct AgentVersionDetails {
    /// By what lists are ordered.
    pub(crate) id: Uuid,
    /// The number: the last one that it had as it was.
    pub(crate) version: i64,
    /// What it was.
    pub(crate) config: AgentConfig,
    /// Who changed it then, and when; none for what it is.
    pub(crate) replaced: Option<(Option<UserId>, Timestamp)>,
}

/// Keeps what agents were. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentHistory {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
}

fn unknown_version() -> ApiError {
    ApiError::not_found("version")
}

/// What is said of a version that can be looked at, and neither asked nor restored: without its prompt it would be another one.
fn erased_prompt() -> ApiError {
    let message = "The prompt of this version was deleted, and erased from the versions that had it.";
    ApiError::new(ApiErrorKind::NotFound, "version_not_kept", message)
}

/// The prompt of a version.
///
/// # Errors
/// 404 when it was erased.
fn prompt_of(former: &AgentVersion) -> Result<Option<&PromptConfig>, ApiError> {
    match &former.config.0.prompt {
        Some(prompt) if prompt.is_erased() => Err(erased_prompt()),
        prompt => Ok(prompt.as_ref()),
    }
}

impl AgentHistory {
    pub(crate) fn new(db: Db, clock: Clock, keyring: Arc<Keyring>) -> Self {
        Self { db, clock, keyring }
    }

    /// Keeps what an agent is that is locked and about to be changed.
    pub(crate) async fn keep(&self, tx: &mut Tx, actor: &Actor, agent: &Agent) -> Result<(), ApiError> {
        let id = AgentVersionId::generate();
        let version = AgentVersion {
            id,
            workspace_id: agent.owner.workspace_id,
            agent_id: agent.id,
            version: agent.version,
            config: Json(self.config(agent).await?),
            llm_key_sealed: self.reseal(
                agent.llm_key_sealed.as_deref(),
                key_place(&agent.id),
                CiphertextLocation::agent_version_key(id.as_uuid()),
            )?,
            replaced_by: Some(actor.user),
            replaced_at: self.clock.now(),
        };
        Ok(db::agent_versions::insert(tx, &version).await?)
    }

    /// Keeps what all agents are that use a prompt which is locked and about to be changed.
    pub(crate) async fn keep_all_with(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        workspace: WorkspaceId,
        prompt: PromptId,
    ) -> Result<(), ApiError> {
        for id in db::agent_versions::using_prompt(tx, workspace, prompt).await? {
            if let Some(agent) = db::agents::lock(tx, workspace, id).await? {
                self.keep(tx, actor, &agent).await?;
            }
        }
        Ok(())
    }

    /// What an agent is.
    async fn config(&self, agent: &Agent) -> Result<AgentConfig, ApiError> {
        let prompt = match agent.prompt_id {
            Some(id) => db::prompts::find(&self.db, agent.owner.workspace_id, id).await?,
            None => None,
        };
        Ok(AgentConfig {
            r#type: agent.r#type,
            name: agent.name.clone(),
            description: agent.description.clone(),
            llm: agent.llm.0.clone(),
            has_memory: agent.has_memory,
            rerank: agent.rerank,
            prompt: prompt.map(|prompt| PromptConfig {
                id: prompt.id,
                name: prompt.name,
                template: prompt.template,
                input_variables: prompt.input_variables.0,
            }),
        })
    }

    /// What an agent was when it had a number; none when it is as it was then.
    ///
    /// # Errors
    /// 404 when it never had it, or it is so long ago that it is not kept any more.
    pub(crate) async fn at(&self, agent: &Agent, number: i64) -> Result<Option<AgentVersion>, ApiError> {
        let workspace = agent.owner.workspace_id;
        if !(1..=agent.version).contains(&number) {
            return Err(unknown_version());
        }
        let kept = db::agent_versions::list(&self.db, workspace, agent.id, Uuid::max().into(), KEPT).await?;
        let is_forgotten =
            kept.len() >= KEPT as usize && kept.last().is_some_and(|last| number < last.version);
        if is_forgotten {
            let message = format!("Only the latest {KEPT} versions of an agent are kept.");
            return Err(ApiError::new(ApiErrorKind::NotFound, "version_not_kept", message));
        }
        Ok(kept.into_iter().rev().find(|kept| kept.version >= number))
    }

    /// An agent as it was when it had a number, to be asked.
    pub(crate) async fn to_ask(&self, asked: AgentToAsk, number: i64) -> Result<AgentToAsk, ApiError> {
        let AgentToAsk { agent, links, .. } = &asked;
        let Some(former) = self.at(agent, number).await? else {
            // With the prompt as it is now: what becomes of it later is another version.
            let prompt = match asked.prompt {
                AgentPrompt::Own => {
                    let prompt = self.config(&asked.agent).await?.prompt;
                    AgentPrompt::Template(prompt.map(|prompt| prompt.template))
                }
                told @ AgentPrompt::Template(_) => told,
            };
            return Ok(AgentToAsk { version: number, prompt, ..asked });
        };
        let prompt = AgentPrompt::Template(prompt_of(&former)?.map(|prompt| prompt.template.clone()));
        let agent = self.as_it_was(agent, &former)?;
        Ok(AgentToAsk { agent, version: number, prompt, links: links.clone() })
    }

    /// An agent with what it was before, but for its prompt and its number.
    fn as_it_was(&self, agent: &Agent, former: &AgentVersion) -> Result<Agent, ApiError> {
        let key = self.reseal(
            former.llm_key_sealed.as_deref(),
            CiphertextLocation::agent_version_key(former.id.as_uuid()),
            key_place(&agent.id),
        )?;
        let AgentConfig { r#type, name, description, llm, has_memory, rerank, .. } = former.config.0.clone();
        Ok(Agent {
            r#type,
            name,
            description,
            llm: Json(llm),
            llm_key_sealed: key,
            has_memory,
            rerank,
            ..*agent
        })
    }

    fn reseal(
        &self,
        sealed: Option<&[u8]>,
        from: CiphertextLocation<'_>,
        to: CiphertextLocation<'_>,
    ) -> Result<Option<Vec<u8>>, ApiError> {
        let Some(sealed) = sealed else { return Ok(None) };
        let key = self.keyring.decrypt_text(from, sealed)?;
        Ok(Some(self.keyring.encrypt(to, key.expose_secret().as_bytes())?))
    }
}

impl AgentService {
    /// What an agent is and was, before an id, the latest first.
    pub(crate) async fn versions(
        &self,
        actor: &Actor,
        id: AgentId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<AgentVersionDetails>, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let agent = db::agents::find(&self.db, workspace, id).await?.ok_or_else(unknown)?;
        // It has no id, and comes first.
        let current = if before > CURRENT {
            let config = self.history.config(&agent).await?;
            Some(AgentVersionDetails { id: CURRENT, version: agent.version, config, replaced: None })
        } else {
            None
        };
        let former =
            db::agent_versions::list(&self.db, workspace, id, before.into(), limit).await?.into_iter();
        let former = former.map(|former| AgentVersionDetails {
            id: *former.id.as_uuid(),
            version: former.version,
            config: former.config.0,
            replaced: Some((former.replaced_by, former.replaced_at)),
        });
        Ok(current.into_iter().chain(former).take(limit as usize).collect())
    }

    /// Makes an agent what it was when it had a number. What it is now is kept too. Its documents, tools and tags stay.
    ///
    /// # Errors
    /// When that is not kept, or nobody could ask its model now.
    pub(crate) async fn restore(
        &self,
        actor: &Actor,
        id: AgentId,
        number: i64,
    ) -> Result<AgentDetails, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let workspace = owner.workspace_id;
        let mut tx = self.db.begin().await?;
        let before = db::agents::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        let tags = db::tags::of_agent(&mut tx, workspace, id).await?;
        let Some(former) = self.history.at(&before, number).await? else { return self.details(before, tags) };
        let prompt = prompt_of(&former)?.cloned();
        address::check(&self.settings.predict, &former.config.0.llm)?;
        self.history.keep(&mut tx, actor, &before).await?;
        let mut agent = self.history.as_it_was(&before, &former)?;
        agent.prompt_id = match prompt {
            None => None,
            Some(prompt) => Some(self.restore_prompt(&mut tx, actor, prompt, former.version).await?),
        };
        (agent.version, agent.updated_at) = (before.version + 1, self.clock.now());
        db::agents::update(&mut tx, &agent).await?;
        self.note_address(&mut tx, actor, &before, &agent).await?;
        if agent.llm_key_sealed.is_some() || before.llm_key_sealed.is_some() {
            self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "agent", id).await?;
        }
        tx.commit().await?;
        self.details(agent, tags)
    }

    /// The prompt that an agent had: the one that it was, if that still says so; otherwise a new one, since others may use it as it is.
    async fn restore_prompt(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        former: PromptConfig,
        version: i64,
    ) -> Result<PromptId, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let present = db::prompts::find(&self.db, owner.workspace_id, former.id).await?;
        let is_as_it_was = |present: &Prompt| {
            present.template == former.template && present.input_variables.0 == former.input_variables
        };
        if present.as_ref().is_some_and(is_as_it_was) {
            return Ok(former.id);
        }
        let now = self.clock.now();
        let prompt = Prompt {
            id: PromptId::generate(),
            owner,
            name: format!("{} (version {version})", former.name),
            template: former.template,
            input_variables: Json(former.input_variables),
            created_at: now,
            updated_at: now,
        };
        db::prompts::insert(tx, &prompt).await?;
        Ok(prompt.id)
    }
}
