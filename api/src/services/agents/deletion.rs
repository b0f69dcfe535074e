//! Deleting agents.

use lectern_db::{self as db, DbError};
use lectern_shared::{ids::AgentId, model::audit::AuditAction};

use super::{AgentService, unknown};
use crate::{
    error::ApiError,
    services::actor::{Actor, Permission},
};

impl AgentService {
    /// Deletes an agent, with its links, its memory, its traces and the API tokens that are bound to it. From the first transaction on nobody finds or asks it, and it is noted who
    /// deleted it.
    pub(crate) async fn delete(&self, actor: &Actor, id: AgentId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin_essential().await?;
        if !db::agents::delete(&mut tx, owner.workspace_id, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "agent", id).await?;
        // They could do nothing else. No other is made meanwhile: the workspace is locked.
        let tokens = db::api_tokens::delete_bound(&mut tx, owner.workspace_id, id).await?;
        self.audit.note_tokens(&mut tx, actor, &tokens).await?;
        tx.commit().await?;
        if let Err(error) = self.forget_runs(id).await {
            // The sweeper goes on with them: the agent is deleted, and to try again would find none.
            tracing::warn!(%error, agent = %id, "what the runs of a deleted agent have left could not be removed yet");
        }
        Ok(())
    }

    /// Deletes what the runs of a deleted agent have left, in as many short transactions as it takes: in one alone nobody else could write for
    /// as long to a database in a file.
    async fn forget_runs(&self, id: AgentId) -> Result<(), DbError> {
        let mut more = true;
        while more {
            let mut tx = self.db.begin_essential_relaxed().await?;
            more = db::agents::forget_some_runs(&mut tx, id).await?;
            tx.commit().await?;
        }
        // It takes the others to the disk.
        let mut tx = self.db.begin_essential().await?;
        db::agents::forget(&mut tx, id).await?;
        tx.commit().await
    }
}
