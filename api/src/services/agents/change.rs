//! Changing an agent.

use lectern_db::{self as db, DbError, Tx};
use lectern_shared::{
    ids::AgentId,
    model::{
        Json,
        agent::Agent,
        audit::{AuditAction, AuditDetails},
    },
};

use super::{AgentChange, AgentDetails, AgentService, NewLlm, address, owned_prompt, set_tags, unknown};
use crate::{
    error::ApiError,
    services::{
        actor::{Actor, Permission},
        edits::EditBase,
    },
};

impl AgentService {
    /// Changes an agent, which is as it is returned afterwards.
    ///
    /// # Errors
    /// Those of a new one; when a key that is kept would go to another provider or host; and when it is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: AgentId,
        change: AgentChange,
        base: EditBase,
    ) -> Result<AgentDetails, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let workspace = owner.workspace_id;
        let mut tx = self.db.begin().await?;
        let before = db::agents::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        base.check(before.updated_at)?;
        let tags_before = db::tags::of_agent(&mut tx, workspace, id).await?;
        let mut agent = before.clone();
        agent.name = change.name.unwrap_or(agent.name);
        agent.description = change.description.unwrap_or(agent.description);
        agent.r#type = change.r#type.unwrap_or(agent.r#type);
        agent.has_memory = change.has_memory.unwrap_or(agent.has_memory);
        agent.rerank = change.rerank.unwrap_or(agent.rerank);
        if let Some((llm, key)) = change.llm.map(NewLlm::split) {
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
        if let Some(prompt) = change.prompt_id {
            agent.prompt_id = match prompt {
                None => None,
                Some(prompt) => Some(owned_prompt(&mut tx, workspace, prompt).await?),
            };
        }
        let mut tags = tags_before.clone();
        if let Some(ids) = change.tags {
            set_tags(&mut tx, workspace, id, ids).await?;
            tags = db::tags::of_agent(&mut tx, workspace, id).await?;
        }
        if agent != before || tags != tags_before {
            if agent != before {
                self.history.keep(&mut tx, actor, &before).await?;
            }
            (agent.version, agent.updated_at) = (before.version + 1, self.clock.now());
            db::agents::update(&mut tx, &agent).await?;
            self.note_address(&mut tx, actor, &before, &agent).await?;
            if agent.llm_key_sealed != before.llm_key_sealed {
                self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "agent", id).await?;
            }
            tx.commit().await?;
        }
        self.details(agent, tags)
    }

    /// Notes where an agent's questions go from now on, if that is elsewhere than before.
    pub(super) async fn note_address(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        before: &Agent,
        after: &Agent,
    ) -> Result<(), DbError> {
        let (from, to) = (&before.llm.0, &after.llm.0);
        if !address::is_another(from, to) {
            return Ok(());
        }
        let details = AuditDetails::moved(Some(address::told(from)), Some(address::told(to)));
        self.audit.note_with(tx, actor, AuditAction::AddressChanged, "agent", after.id, details).await
    }
}
