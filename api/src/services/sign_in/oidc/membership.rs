//! What groups at the provider may do here: whoever signs in becomes a member, gets another role, or is one no more.

use lectern_db::{self as db, DbError, Tx};
use lectern_shared::{
    clock::Timestamp,
    config::OidcRoleMap,
    ids::WorkspaceId,
    model::{
        audit::{AuditAction, AuditDetails},
        workspace::Role,
    },
};

use crate::services::{actor::Actor, audit::AuditService};

/// Makes the membership of somebody what their groups are worth. The last owner of a workspace stays its owner.
pub(super) async fn apply(
    tx: &mut Tx,
    audit: &AuditService,
    map: &OidcRoleMap,
    groups: &[String],
    actor: &Actor,
    now: Timestamp,
) -> Result<(), DbError> {
    let (user, workspace) = (actor.user, map.workspace);
    // One's own workspace is one's own.
    if WorkspaceId::from(user) == workspace {
        return Ok(());
    }
    db::locks::lock_workspace(tx, workspace).await?;
    if !db::workspaces::is_active(tx, workspace).await? {
        warn_of_no_workspace(workspace);
        return Ok(());
    }
    let member = db::workspaces::members::find(tx, workspace, user).await?;
    let (before, after) = (member.map(|member| member.role), map.role_of(groups));
    if before == after {
        return Ok(());
    }
    if before == Some(Role::Owner) && !db::workspaces::members::has_other_owner(tx, workspace, user).await? {
        tracing::warn!(%user, %workspace, "the last owner stays, whatever the provider says");
        return Ok(());
    }
    let role = after.or(before).unwrap_or(Role::Asker);
    let there = actor.clone().within(workspace, role);
    let Some(role) = after else {
        let removed = db::workspaces::members::remove(tx, workspace, user, now).await?;
        return audit.note_removal(tx, &there, user, role, &removed).await;
    };
    let disabled = db::workspaces::members::put(tx, workspace, user, role, now).await?;
    let action = if before.is_some() { AuditAction::RoleChanged } else { AuditAction::MemberJoined };
    audit.note_with(tx, &there, action, "user", user, AuditDetails::change(before, Some(role))).await?;
    audit.note_disabled(tx, &there, &disabled).await
}

/// Says that the setting names nothing.
pub(super) fn warn_of_no_workspace(workspace: WorkspaceId) {
    tracing::warn!(%workspace, "LECTERN_OIDC_WORKSPACE is no workspace, so nobody gets a role in it");
}
