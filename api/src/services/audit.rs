//! The audit log of a workspace: who did what to what, from where.

use std::fmt::Display;

use lectern_db::{self as db, Db, DbError, Tx, audit::AuditEvent};
use lectern_shared::{clock::Clock, ids::AuditEventId, model::audit::AuditAction};
use uuid::Uuid;

use super::actor::{Actor, Permission};
use crate::error::ApiError;

/// The audit log. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AuditService {
    db: Db,
    clock: Clock,
}

impl AuditService {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock }
    }

    /// Notes what is done in this transaction, to something of a kind that is called by a noun.
    pub(crate) async fn note(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        action: AuditAction,
        noun: &str,
        target: impl Display,
    ) -> Result<(), DbError> {
        let origin = actor.origin();
        let event = AuditEvent {
            id: AuditEventId::generate(),
            workspace_id: actor.named_workspace(),
            at: self.clock.now(),
            user_id: actor.user,
            token_id: actor.token(),
            action,
            target_kind: noun.to_owned(),
            target_id: target.to_string(),
            address: origin.address.map(|address| address.to_string()),
            request_id: origin.request_id.as_deref().map(str::to_owned),
        };
        db::audit::insert(tx, &event).await
    }

    /// The lines before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<AuditEvent>, ApiError> {
        let owner = actor.may(Permission::ManageWorkspace)?;
        Ok(db::audit::list(&self.db, owner.workspace_id, before.into(), limit).await?)
    }
}
