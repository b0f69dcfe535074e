//! Members of workspaces.

use lectern_shared::{
    clock::Timestamp,
    ids::{ApiTokenId, UserId, WebhookId, WorkspaceId},
    model::workspace::{Member, Role},
};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, documents::browse::and_any_has, execute, on, webhooks};

/// Why a webhook is off that whoever was removed had answered for.
const OFF_WITH_MEMBER: &str =
    "Whoever set it up is a member no more. Look where it leads, and switch it on if it is still wanted.";
/// Why a webhook is off that somebody had answered for whose role is too low for that now.
const OFF_WITH_ROLE: &str =
    "Whoever set it up builds here no more. Look where it leads, and switch it on if it is still wanted.";

/// What went, and what was switched off, with a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedMember {
    /// The API tokens that it had made, which are deleted.
    pub tokens: Vec<ApiTokenId>,
    /// The webhooks that it had answered for, which are off: what it set up tells nobody of what happens here any more.
    pub webhooks: Vec<WebhookId>,
}

/// Makes an account a member, or gives a member another role. Invitations of whoever may invite nobody any more are withdrawn, and webhooks
/// that it answers for are switched off if it may set up none any more, which are returned.
pub async fn put(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: Timestamp,
) -> Result<Vec<WebhookId>> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role"
        )
        .bind(workspace)
        .bind(user)
        .bind(role)
        .bind(now)
    )?;
    if role != Role::Owner {
        withdraw_invitations(tx, workspace, user).await?;
    }
    if role.includes(Role::Builder) {
        return Ok(Vec::new());
    }
    webhooks::disable_of_member(tx, workspace, user, OFF_WITH_ROLE, now).await
}

macro_rules! select_members {
    ($where:literal) => {
        concat!(
            "SELECT m.user_id, u.email, u.name, m.role, m.joined_at
             FROM members m JOIN users u ON u.id = m.user_id
             WHERE u.deleted_at IS NULL AND ",
            $where
        )
    };
}

/// At most `limit` members whose accounts are older than `before`, newest first. Their names or their e-mails have `name` somewhere, in
/// whichever case.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    before: UserId,
    limit: u32,
) -> Result<Vec<Member>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(select_members!("m.workspace_id = "));
        query.push_bind(workspace).push(" AND m.user_id < ").push_bind(before);
        and_any_has(&mut query, &["u.name", "u.email"], name);
        query.push(" ORDER BY m.user_id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// One member, as this transaction sees it.
pub async fn find(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<Option<Member>> {
    Ok(on!(tx, |c| sqlx::query_as(select_members!("m.workspace_id = $1 AND m.user_id = $2"))
        .bind(workspace)
        .bind(user)
        .fetch_optional(c))?)
}

/// Whether a workspace has an owner besides this member. It stays so while the workspace is
/// [locked](crate::locks::lock_workspace).
pub async fn has_other_owner(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<bool> {
    let others: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM members m JOIN users u ON u.id = m.user_id
         WHERE u.deleted_at IS NULL AND m.workspace_id = $1 AND m.user_id <> $2 AND m.role = 'owner'"
    )
    .bind(workspace)
    .bind(user)
    .fetch_one(c))?;
    Ok(others > 0)
}

/// Whether a workspace has members besides this one.
pub async fn has_others(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<bool> {
    let others: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM members m JOIN users u ON u.id = m.user_id
         WHERE u.deleted_at IS NULL AND m.workspace_id = $1 AND m.user_id <> $2"
    )
    .bind(workspace)
    .bind(user)
    .fetch_one(c))?;
    Ok(others > 0)
}

/// How many workspaces an account owns besides its own.
pub async fn count_owned(tx: &mut Tx, user: UserId) -> Result<i64> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM members m JOIN workspaces w ON w.id = m.workspace_id
         WHERE m.user_id = $1 AND m.role = 'owner' AND NOT w.is_personal AND w.deleted_at IS NULL"
    )
    .bind(user)
    .fetch_one(c))?)
}

/// The workspaces that an account is a member of besides its own, by their ids.
pub async fn joined_by(tx: &mut Tx, user: UserId) -> Result<Vec<WorkspaceId>> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "SELECT w.id FROM members m JOIN workspaces w ON w.id = m.workspace_id
         WHERE m.user_id = $1 AND w.deleted_at IS NULL AND NOT w.is_personal ORDER BY w.id"
    )
    .bind(user)
    .fetch_all(c))?)
}

/// Withdraws the invitations that a member made: whoever may not invite any more has invited nobody.
async fn withdraw_invitations(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<()> {
    execute!(
        tx,
        sqlx::query("DELETE FROM invitations WHERE workspace_id = $1 AND created_by = $2")
            .bind(workspace)
            .bind(user)
    )?;
    Ok(())
}

/// Removes a member, if there is one, with the invitations and the API tokens that it made there, and switches off the webhooks that it
/// answers for.
pub async fn remove(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
    now: Timestamp,
) -> Result<RemovedMember> {
    withdraw_invitations(tx, workspace, user).await?;
    execute!(
        tx,
        sqlx::query("DELETE FROM members WHERE workspace_id = $1 AND user_id = $2")
            .bind(workspace)
            .bind(user)
    )?;
    let tokens = on!(tx, |c| sqlx::query_scalar(
        "DELETE FROM api_tokens WHERE workspace_id = $1 AND COALESCE(created_by, workspace_id) = $2
         RETURNING id"
    )
    .bind(workspace)
    .bind(user)
    .fetch_all(c))?;
    let webhooks = webhooks::disable_of_member(tx, workspace, user, OFF_WITH_MEMBER, now).await?;
    Ok(RemovedMember { tokens, webhooks })
}
