//! Members of workspaces.

use lectern_db::{self as db, Db, Tx};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Clock,
    ids::{UserId, WorkspaceId},
    model::{
        audit::{AuditAction, AuditDetails},
        workspace::{Member, Role},
    },
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::WorkspaceService;
use crate::{
    error::{ApiError, ApiErrorKind},
    services::{
        actor::{Actor, Permission},
        audit::AuditService,
    },
};

/// Another role for a member.
#[derive(Debug, RequestBody, ToSchema)]
#[body(change)]
pub(crate) struct MemberChange {
    /// What the member may do from now on.
    #[schema(value_type = Option<String>, pattern = "^(asker|editor|builder|owner)$", nullable = false)]
    pub(crate) role: Option<Role>,
}

/// Members. Cheap to clone.
#[derive(Clone)]
pub(crate) struct MemberService {
    db: Db,
    clock: Clock,
    workspaces: WorkspaceService,
    audit: AuditService,
}

pub(super) fn unknown() -> ApiError {
    ApiError::not_found("member")
}

pub(super) fn last_owner() -> ApiError {
    let message = "This is the workspace's last owner. Make another member an owner first.";
    ApiError::new(ApiErrorKind::Conflict, "last_owner", message)
}

pub(super) fn own_workspace() -> ApiError {
    let message = "This is the account's own workspace, of which it stays a member and an owner.";
    ApiError::new(ApiErrorKind::Conflict, "personal_workspace", message)
}

/// Makes changes to a workspace wait, and looks again at whoever asks: another may have taken the role away.
///
/// # Errors
/// Not found, when it is gone.
pub(in crate::services) async fn lock_asking(
    tx: &mut Tx,
    actor: &Actor,
    workspace: WorkspaceId,
) -> Result<(), ApiError> {
    db::locks::lock_workspace(tx, workspace).await?;
    let asking = db::workspaces::members::find(tx, workspace, actor.user).await?;
    let is_still = asking.is_some_and(|asking| asking.role.includes(actor.role()));
    if is_still { Ok(()) } else { Err(super::unknown()) }
}

impl MemberService {
    pub(crate) fn new(db: Db, clock: Clock, workspaces: WorkspaceService, audit: AuditService) -> Self {
        Self { db, clock, workspaces, audit }
    }

    /// The members before an id whose names or e-mails have something somewhere, those with the newest accounts first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        name: &str,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<Member>, ApiError> {
        let (actor, _) = self.workspaces.enter(actor, workspace).await?;
        let owner = actor.may(Permission::ListMembers)?;
        Ok(db::workspaces::members::list(&self.db, owner.workspace_id, name, before.into(), limit).await?)
    }

    /// Gives a member another role. With one that builds nothing, the webhooks that it answers for are switched off.
    ///
    /// # Errors
    /// When the workspace would have no owner, or the member more workspaces than an account may own.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        user: UserId,
        change: MemberChange,
    ) -> Result<Member, ApiError> {
        let (actor, joined) = self.workspaces.enter(actor, workspace).await?;
        actor.may(Permission::ManageWorkspace)?;
        // A role stays when the token has ended.
        actor.may_handle_tokens()?;
        let mut tx = self.db.begin().await?;
        let member = self.lock(&mut tx, &actor, workspace, user).await?;
        let Some(role) = change.role.filter(|role| *role != member.role) else { return Ok(member) };
        if joined.workspace.is_personal && *user.as_uuid() == *workspace.as_uuid() {
            return Err(own_workspace());
        }
        if member.role == Role::Owner
            && !db::workspaces::members::has_other_owner(&mut tx, workspace, user).await?
        {
            return Err(last_owner());
        }
        if role == Role::Owner {
            super::admit_owner_of(&mut tx, workspace, user).await?;
        }
        let disabled = db::workspaces::members::put(&mut tx, workspace, user, role, self.clock.now()).await?;
        let details = AuditDetails::change(Some(member.role), Some(role));
        self.audit.note_with(&mut tx, &actor, AuditAction::RoleChanged, "user", user, details).await?;
        self.audit.note_disabled(&mut tx, &actor, &disabled).await?;
        tx.commit().await?;
        Ok(Member { role, ..member })
    }

    /// Removes a member, with the API tokens that it made, and switches off the webhooks that it answers for. Everybody may leave; others
    /// are for owners to remove.
    ///
    /// # Errors
    /// When the workspace would have no owner, or is the member's own.
    pub(crate) async fn remove(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        user: UserId,
    ) -> Result<(), ApiError> {
        let (actor, _) = self.workspaces.enter(actor, workspace).await?;
        let leaves = actor.user == user && actor.token().is_none();
        if !leaves {
            actor.may(Permission::ManageWorkspace)?;
        }
        if *user.as_uuid() == *workspace.as_uuid() {
            return Err(own_workspace());
        }
        let mut tx = self.db.begin_essential().await?;
        let member = self.lock(&mut tx, &actor, workspace, user).await?;
        if member.role == Role::Owner
            && !db::workspaces::members::has_other_owner(&mut tx, workspace, user).await?
        {
            return Err(last_owner());
        }
        let removed = db::workspaces::members::remove(&mut tx, workspace, user, self.clock.now()).await?;
        self.audit.note_removal(&mut tx, &actor, user, member.role, &removed).await?;
        Ok(tx.commit().await?)
    }

    /// A member, while changes to the workspace wait.
    async fn lock(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        workspace: WorkspaceId,
        user: UserId,
    ) -> Result<Member, ApiError> {
        lock_asking(tx, actor, workspace).await?;
        db::workspaces::members::find(tx, workspace, user).await?.ok_or_else(unknown)
    }
}
