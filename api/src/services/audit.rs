//! The audit log of a workspace: who did what to what, from where.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Display,
    sync::Arc,
};

use lectern_db::{
    self as db, Db, DbError, Tx,
    audit::{AuditEvent, AuditFilter},
    workspaces::members::RemovedMember,
};
use lectern_shared::{
    address,
    clock::Clock,
    ids::{ApiTokenId, AuditEventId, UserId, WebhookId, WorkspaceId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        webhook::Webhook,
        workspace::Role,
    },
    secrets::Keyring,
};
use uuid::Uuid;

use super::actor::{Actor, Permission};
use crate::error::ApiError;

/// What an account is called in the log.
const ACCOUNT: &str = "user";
/// What a webhook is called there.
const WEBHOOK: &str = "webhook";

/// What things of the log are called today, by their kind and id.
#[derive(Debug, Default)]
pub(crate) struct AuditNames(HashMap<(String, Uuid), String>);

impl AuditNames {
    /// The e-mail of whoever did it, if they are a member.
    pub(crate) fn of_user(&self, event: &AuditEvent) -> Option<&str> {
        self.find(ACCOUNT, *event.user_id.as_uuid())
    }

    /// What it was done to is called so, if it is there still.
    pub(crate) fn of_target(&self, event: &AuditEvent) -> Option<&str> {
        self.find(&event.target_kind, event.target_id.parse().ok()?)
    }

    fn find(&self, kind: &str, id: Uuid) -> Option<&str> {
        self.0.get(&(kind.to_owned(), id)).map(String::as_str)
    }
}

/// The audit log. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AuditService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
}

impl AuditService {
    pub(crate) fn new(db: Db, clock: Clock, keyring: Arc<Keyring>) -> Self {
        Self { db, clock, keyring }
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
        self.note_with(tx, actor, action, noun, target, AuditDetails::default()).await
    }

    /// [`Self::note`], with what is said further.
    pub(crate) async fn note_with(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        action: AuditAction,
        noun: &str,
        target: impl Display,
        details: AuditDetails,
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
            details: Some(details).filter(|details| !details.is_empty()).map(Json),
        };
        db::audit::insert(tx, &event).await
    }

    /// Notes that a member was removed, or left, who had this role, with the API tokens that went along and the webhooks that were switched
    /// off.
    pub(crate) async fn note_removal(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        member: UserId,
        role: Role,
        removed: &RemovedMember,
    ) -> Result<(), DbError> {
        let details = AuditDetails::change(Some(role), None);
        self.note_with(tx, actor, AuditAction::MemberRemoved, ACCOUNT, member, details).await?;
        self.note_tokens(tx, actor, &removed.tokens).await?;
        self.note_disabled(tx, actor, &removed.webhooks).await
    }

    /// Notes webhooks that were switched off, since whoever answered for them may set up none any more.
    pub(crate) async fn note_disabled(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        webhooks: &[WebhookId],
    ) -> Result<(), DbError> {
        for webhook in webhooks {
            self.note(tx, actor, AuditAction::WebhookDisabled, WEBHOOK, webhook).await?;
        }
        Ok(())
    }

    /// Notes API tokens that went with something else.
    pub(crate) async fn note_tokens(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        tokens: &[ApiTokenId],
    ) -> Result<(), DbError> {
        for token in tokens {
            self.note(tx, actor, AuditAction::TokenDeleted, "api_token", token).await?;
        }
        Ok(())
    }

    /// The lines before an id that pass a filter, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        filter: AuditFilter,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<AuditEvent>, ApiError> {
        let owner = actor.may(Permission::ManageWorkspace)?;
        Ok(db::audit::list(&self.db, owner.workspace_id, filter, before.into(), limit).await?)
    }

    /// The names of what these lines are about: they note ids alone. One query finds those of a kind.
    pub(crate) async fn names(&self, actor: &Actor, events: &[AuditEvent]) -> Result<AuditNames, ApiError> {
        let owner = actor.may(Permission::ManageWorkspace)?;
        let mut wanted: BTreeMap<&str, BTreeSet<Uuid>> = BTreeMap::new();
        for event in events {
            wanted.entry(ACCOUNT).or_default().insert(*event.user_id.as_uuid());
            if let Ok(target) = event.target_id.parse::<Uuid>() {
                wanted.entry(event.target_kind.as_str()).or_default().insert(target);
            }
        }
        let mut names = HashMap::new();
        for (kind, ids) in wanted {
            let ids: Vec<Uuid> = ids.into_iter().collect();
            let found = match kind {
                WEBHOOK => self.origins(owner.workspace_id, &ids).await?,
                _ => db::audit::names(&self.db, owner.workspace_id, kind, &ids).await?,
            };
            names.extend(found.into_iter().map(|(id, name)| ((kind.to_owned(), id), name)));
        }
        Ok(AuditNames(names))
    }

    /// Where those of these webhooks lead that a workspace has still, without what may be a key. One whose address cannot be read has no name.
    async fn origins(&self, workspace: WorkspaceId, ids: &[Uuid]) -> Result<Vec<(Uuid, String)>, DbError> {
        let named = |webhook: Webhook| {
            let url = webhook.address.open(&self.keyring, webhook.id).ok()?;
            Some((*webhook.id.as_uuid(), address::origin(&url)?))
        };
        let found = db::webhooks::find_all(&self.db, workspace, ids).await?;
        Ok(found.into_iter().filter_map(named).collect())
    }
}
