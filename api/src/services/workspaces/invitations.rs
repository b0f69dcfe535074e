//! Invitations to workspaces: links that work once, without a mail server.

use std::time::Duration;

use lectern_db::{self as db, Db};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Clock,
    ids::{InvitationId, WorkspaceId},
    model::{
        audit::{AuditAction, AuditDetails},
        user::email_key,
        workspace::{Invitation, InvitationOffer, JoinedWorkspace, Role},
    },
    secrets::sha256,
};
use secrecy::{ExposeSecret, SecretString};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{WorkspaceService, members};
use crate::{
    error::ApiError,
    fields::{FieldRule, JsonFields},
    services::{
        accounts::email_problem,
        actor::{Actor, Permission},
        audit::AuditService,
        creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
        tokens::random_token,
    },
};

/// How long an invitation can be accepted.
const OPEN: Duration = Duration::from_hours(7 * 24);
/// What every invitation's token begins with.
const PREFIX: &str = "inv_";

/// A new invitation.
#[derive(Debug, RequestBody, ToSchema)]
pub(crate) struct NewInvitation {
    /// The only e-mail whose account may accept it; without one, whoever has the link.
    #[schema(format = "email", max_length = 254)]
    #[body(with = read_email)]
    pub(crate) email: Option<String>,
    /// What whoever accepts it may do.
    #[schema(value_type = String, pattern = "^(asker|editor|builder|owner)$")]
    pub(crate) role: Role,
}

fn read_email(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let email = fields.optional_text(rule.name, rule.max_length)?;
    if let Some(problem) = email_problem(&email) {
        fields.refuse(rule.name, problem);
    }
    Some(email.trim().to_owned())
}

/// The token of an invitation that is accepted.
#[derive(RequestBody, ToSchema)]
pub(crate) struct InvitationAnswer {
    /// The token, from the link.
    #[schema(value_type = String, min_length = 1, max_length = 1_000)]
    pub(crate) token: SecretString,
}

/// An invitation and its token, which is shown once.
pub(crate) struct RevealedInvitation {
    pub(crate) invitation: Invitation,
    pub(crate) token: SecretString,
}

/// Invitations. Cheap to clone.
#[derive(Clone)]
pub(crate) struct InvitationService {
    db: Db,
    clock: Clock,
    workspaces: WorkspaceService,
    creations: IdempotencyStore,
    audit: AuditService,
}

fn unknown() -> ApiError {
    ApiError::not_found("invitation")
}

impl InvitationService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        workspaces: WorkspaceService,
        creations: IdempotencyStore,
        audit: AuditService,
    ) -> Self {
        Self { db, clock, workspaces, creations, audit }
    }

    /// Invites somebody.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        new: NewInvitation,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<RevealedInvitation>,
    ) -> Result<CreationOutcome, ApiError> {
        let (actor, _) = self.workspaces.enter(actor, workspace).await?;
        actor.may(Permission::ManageWorkspace)?;
        // Who is invited stays when the token has ended.
        actor.may_handle_tokens()?;
        let now = self.clock.now();
        let token = random_token(PREFIX);
        let invitation = Invitation {
            id: InvitationId::generate(),
            workspace_id: workspace,
            role: new.role,
            email: new.email,
            created_by: actor.user,
            created_at: now,
            expires_at: now.plus(OPEN),
        };
        let key = invitation.email.as_deref().map(email_key);
        let mut tx = self.db.begin().await?;
        // Whoever ceases to be an owner at this moment leaves no invitation behind.
        members::lock_asking(&mut tx, &actor, workspace).await?;
        let hash = sha256(token.expose_secret().as_bytes());
        db::workspaces::invitations::insert(&mut tx, &invitation, key.as_deref(), &hash).await?;
        let (id, details) = (invitation.id, AuditDetails::change(None, Some(invitation.role)));
        self.audit.note_with(&mut tx, &actor, AuditAction::MemberInvited, "invitation", id, details).await?;
        let once = once.for_role(Role::Owner);
        self.creations.commit(tx, once, &RevealedInvitation { invitation, token }, tell).await
    }

    /// The open invitations before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<Invitation>, ApiError> {
        let (actor, _) = self.workspaces.enter(actor, workspace).await?;
        let owner = actor.may(Permission::ManageWorkspace)?;
        let (workspace, now) = (owner.workspace_id, self.clock.now());
        Ok(db::workspaces::invitations::list(&self.db, workspace, now, before.into(), limit).await?)
    }

    /// Withdraws an invitation.
    pub(crate) async fn delete(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        id: InvitationId,
    ) -> Result<(), ApiError> {
        let (actor, _) = self.workspaces.enter(actor, workspace).await?;
        actor.may(Permission::ManageWorkspace)?;
        let mut tx = self.db.begin_essential().await?;
        if !db::workspaces::invitations::delete(&mut tx, workspace, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, &actor, AuditAction::InvitationWithdrawn, "invitation", id).await?;
        Ok(tx.commit().await?)
    }

    /// What an invitation is to, for whoever is signed in and may accept it.
    ///
    /// # Errors
    /// When there is no such invitation, it was accepted or has ended, or it is for another account.
    pub(crate) async fn offer(
        &self,
        actor: &Actor,
        email: &str,
        answer: &InvitationAnswer,
    ) -> Result<InvitationOffer, ApiError> {
        actor.signed_in()?;
        let hash = sha256(answer.token.expose_secret().as_bytes());
        let now = self.clock.now();
        let found = db::workspaces::invitations::offer(&self.db, &hash, &email_key(email), now).await?;
        found.ok_or_else(unknown)
    }

    /// Makes whoever is signed in a member. Whoever is one keeps the higher of both roles.
    ///
    /// # Errors
    /// When there is no such invitation, it was accepted or has ended, or it is for another account; and when the account would own
    /// more workspaces than it may.
    pub(crate) async fn accept(
        &self,
        actor: &Actor,
        email: &str,
        answer: InvitationAnswer,
    ) -> Result<JoinedWorkspace, ApiError> {
        let (user, now) = (actor.signed_in()?, self.clock.now());
        let hash = sha256(answer.token.expose_secret().as_bytes());
        let mut tx = self.db.begin().await?;
        // In the order of locks: the workspace first.
        let workspace =
            db::workspaces::invitations::workspace_of(&mut tx, &hash).await?.ok_or_else(unknown)?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        let taken = db::workspaces::invitations::take(&mut tx, &hash, &email_key(email), now).await?;
        let invitation = taken.ok_or_else(unknown)?;
        if !db::workspaces::is_active(&mut tx, workspace).await? {
            return Err(unknown());
        }
        let member = db::workspaces::members::find(&mut tx, workspace, user).await?;
        let before = member.map(|member| member.role);
        let role = before.filter(|role| role.includes(invitation.role)).unwrap_or(invitation.role);
        if role == Role::Owner && before != Some(Role::Owner) {
            super::admit_owner_of(&mut tx, workspace, user).await?;
        }
        let disabled = db::workspaces::members::put(&mut tx, workspace, user, role, now).await?;
        let actor = actor.clone().within(workspace, role);
        let details = AuditDetails::change(before, Some(role));
        self.audit.note_with(&mut tx, &actor, AuditAction::MemberJoined, "user", user, details).await?;
        self.audit.note_disabled(&mut tx, &actor, &disabled).await?;
        tx.commit().await?;
        self.workspaces.find(&actor, workspace).await
    }
}
