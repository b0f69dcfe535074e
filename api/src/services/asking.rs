//! Asking agents: who may ask which, by which name, and the run that answers. Every face asks here.

use std::collections::BTreeSet;

use lectern_agents::{
    run::{self, AgentParts, AgentQuestion, AgentToAsk, RunHandle},
    tools::Toolbox,
};
use lectern_db::{self as db, Db};
use lectern_shared::{
    ids::{AgentId, CollectionId},
    model::{agent::Agent, publication::Publication, workspace::RunOwner},
};

use super::{
    NAME,
    actor::{Actor, Permission},
    agents::versions::AgentHistory,
    workspaces::UsageService,
};
use crate::error::{ApiError, ApiErrorKind};

/// Agents that are read at a time: each has its instructions with it.
const PAGE: u32 = 100;
/// Characters of a description in a list.
const SUMMARY: usize = 300;

/// An agent that somebody may ask.
pub(crate) struct AskableAgent {
    asked: AgentToAsk,
    /// Whose the run will be.
    owner: RunOwner,
}

impl AskableAgent {
    /// The agent.
    pub(crate) const fn agent(&self) -> &Agent {
        &self.asked.agent
    }

    /// What the agent is for, in short.
    pub(crate) fn summary(&self) -> String {
        let description = &self.agent().description;
        let cut = description.char_indices().nth(SUMMARY).and_then(|(end, _)| description.get(..end));
        cut.map_or_else(|| description.clone(), |cut| format!("{cut}…"))
    }
}

/// Asks agents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AskService {
    db: Db,
    agents: AgentParts,
    toolbox: Toolbox,
    usage: UsageService,
    history: AgentHistory,
}

impl AskService {
    pub(crate) fn new(
        db: Db,
        agents: AgentParts,
        toolbox: Toolbox,
        usage: UsageService,
        history: AgentHistory,
    ) -> Self {
        Self { db, agents, toolbox, usage, history }
    }

    /// Agents that somebody may ask, those older than `before`, newest first: the one that their token is bound to, or at most
    /// `limit` of those of the workspace whose names have `name` somewhere.
    pub(crate) async fn askable(
        &self,
        actor: &Actor,
        name: &str,
        before: AgentId,
        limit: u32,
    ) -> Result<Vec<AskableAgent>, ApiError> {
        if let Some(bound) = actor.bound_agent() {
            let only = self.find(actor, bound).await?;
            return Ok(Some(only).filter(|only| only.agent().id < before).into_iter().collect());
        }
        let workspace = actor.may(Permission::ListAgents)?.workspace_id;
        let agents = db::agents::list(&self.db, workspace, name, before, limit).await?;
        let askable =
            |agent: Agent| Ok(AskableAgent { owner: actor.may_ask(agent.id)?, asked: agent.into() });
        agents.into_iter().map(askable).collect()
    }

    /// All agents that somebody may ask, newest first, as they are shown.
    pub(crate) async fn all_askable<T>(
        &self,
        actor: &Actor,
        shown: impl Fn(AskableAgent) -> T,
    ) -> Result<Vec<T>, ApiError> {
        let (mut all, mut before) = (Vec::new(), AgentId::from(uuid::Uuid::max()));
        loop {
            let page = self.askable(actor, "", before, PAGE).await?;
            let is_full = page.len() == usize::try_from(PAGE).unwrap_or(usize::MAX);
            let last = page.last().map(|last| last.agent().id);
            all.extend(page.into_iter().map(&shown));
            match last {
                Some(last) if is_full => before = last,
                Some(_) | None => return Ok(all),
            }
        }
    }

    /// One agent that somebody may ask.
    pub(crate) async fn find(&self, actor: &Actor, id: AgentId) -> Result<AskableAgent, ApiError> {
        let owner = actor.may_ask(id)?;
        let briefing = self.agents.briefings.of(owner.workspace_id, id).await?;
        Ok(AskableAgent { asked: briefing.ok_or_else(|| ApiError::not_found("agent"))?.into(), owner })
    }

    /// Whether these collections are what an agent answers from, all of it and nothing else.
    pub(crate) async fn answers_from(
        &self,
        asked: &AskableAgent,
        collections: &BTreeSet<CollectionId>,
    ) -> Result<bool, ApiError> {
        let (workspace, agent) = (asked.owner.workspace_id, asked.agent().id);
        let linked = db::agents::only_collections(&self.db, workspace, agent).await?;
        Ok(linked.is_some_and(|linked| linked.into_iter().collect::<BTreeSet<_>>() == *collections))
    }

    /// The names of the values that an agent's prompt takes besides the question. Whoever asks sends them along; a published page has
    /// none, and cannot ask such an agent.
    pub(crate) async fn needed_values(&self, asked: &AskableAgent) -> Result<Vec<String>, ApiError> {
        Ok(run::needed_values(&self.db, asked.asked.clone()).await?)
    }

    /// Whether a published agent cannot be asked on its page, as [`AskService::needed_values`] has it.
    pub(crate) async fn cannot_ask_on(&self, page: &Publication) -> Result<bool, ApiError> {
        let briefing = self.agents.briefings.of(page.owner.workspace_id, page.agent_id).await?;
        let briefing = briefing.ok_or_else(|| ApiError::not_found("agent"))?;
        Ok(!run::needed_values(&self.db, briefing.into()).await?.is_empty())
    }

    /// Whether a published agent remembers what was said before.
    pub(crate) async fn remembers_on(&self, page: &Publication) -> Result<bool, ApiError> {
        let briefing = self.agents.briefings.of(page.owner.workspace_id, page.agent_id).await?;
        Ok(briefing.ok_or_else(|| ApiError::not_found("agent"))?.agent.has_memory)
    }

    /// The agent that a program calls by its id, or by its name if no other one is called the same.
    pub(crate) async fn find_named(&self, actor: &Actor, name: &str) -> Result<AskableAgent, ApiError> {
        if let Ok(id) = name.parse() {
            return self.find(actor, id).await;
        }
        let workspace = actor.may(Permission::AskAgents)?.workspace_id;
        // No agent can have such a name, and PostgreSQL takes no text with a NUL.
        if name.contains('\0') || name.chars().count() > NAME {
            return Err(ApiError::not_found("agent"));
        }
        let named = db::agents::find_named(&self.db, workspace, name).await?;
        let is_askable = |agent: &Agent| actor.bound_agent().is_none_or(|bound| bound == agent.id);
        let mut askable = named.into_iter().filter(is_askable);
        match (askable.next(), askable.next()) {
            (Some(agent), None) => self.find(actor, agent.id).await,
            (Some(_), Some(_)) => {
                let message = "Several agents have this name. Use the id of the one that you mean.";
                Err(ApiError::new(ApiErrorKind::Conflict, "ambiguous_name", message))
            }
            (None, _) => Err(ApiError::not_found("agent")),
        }
    }

    /// Asks an agent as it is.
    ///
    /// # Errors
    /// What is wrong with the question, as far as it is known before anything is asked; 403 when the workspace has used what it may
    /// this month, and 429 when what is left is taken by other runs.
    pub(crate) async fn ask(
        &self,
        actor: &Actor,
        asked: AskableAgent,
        question: AgentQuestion,
    ) -> Result<RunHandle, ApiError> {
        let reservation = self.usage.admit_run(actor).await?;
        let question = AgentQuestion { reservation, ..question };
        Ok(run::start(&self.agents, &self.toolbox, asked.asked, asked.owner, question).await?)
    }

    /// [`AskService::ask`] an agent as it was when it had a number: for those who build agents.
    ///
    /// # Errors
    /// 404 too, when that is not kept.
    pub(crate) async fn ask_version(
        &self,
        actor: &Actor,
        asked: AskableAgent,
        version: i64,
        question: AgentQuestion,
    ) -> Result<RunHandle, ApiError> {
        actor.may(Permission::BuildAgents)?;
        let reservation = self.usage.admit_run(actor).await?;
        let question = AgentQuestion { reservation, ..question };
        let former = self.history.to_ask(asked.asked, version).await?;
        Ok(run::start(&self.agents, &self.toolbox, former, asked.owner, question).await?)
    }
}
