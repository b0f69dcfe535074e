//! Invitations to workspaces. The token is found by its hash, and works once.

use lectern_shared::{
    clock::Timestamp,
    ids::{InvitationId, WorkspaceId},
    model::workspace::{Invitation, InvitationOffer},
};

use crate::{Db, Result, Tx, execute, on};

/// Adds an invitation. `email_key` is its e-mail, folded by [`lectern_shared::model::user::email_key`].
pub async fn insert(
    tx: &mut Tx,
    invitation: &Invitation,
    email_key: Option<&str>,
    token_hash: &[u8],
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO invitations (id, workspace_id, role, email, email_key, token_hash, created_by, created_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        )
        .bind(invitation.id)
        .bind(invitation.workspace_id)
        .bind(invitation.role)
        .bind(invitation.email.as_deref())
        .bind(email_key)
        .bind(token_hash)
        .bind(invitation.created_by)
        .bind(invitation.created_at)
        .bind(invitation.expires_at)
    )?;
    Ok(())
}

/// At most `limit` of a workspace's invitations older than `before` that have not ended, newest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    now: Timestamp,
    before: InvitationId,
    limit: u32,
) -> Result<Vec<Invitation>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT * FROM invitations WHERE workspace_id = $1 AND id < $2 AND expires_at > $3 ORDER BY id DESC LIMIT $4"
    )
    .bind(workspace)
    .bind(before)
    .bind(now)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// To which workspace the invitation with this token is, whether or not it can be accepted.
pub async fn workspace_of(tx: &mut Tx, token_hash: &[u8]) -> Result<Option<WorkspaceId>> {
    Ok(on!(tx, |c| sqlx::query_scalar("SELECT workspace_id FROM invitations WHERE token_hash = $1")
        .bind(token_hash)
        .fetch_optional(c))?)
}

/// What the invitation with this token is to, if it has not ended and is for anybody or for this folded e-mail.
pub async fn offer(
    db: &Db,
    token_hash: &[u8],
    email_key: &str,
    now: Timestamp,
) -> Result<Option<InvitationOffer>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT w.name AS workspace, i.role, COALESCE(u.name, '') AS inviter, i.expires_at
         FROM invitations AS i
         JOIN workspaces AS w ON w.id = i.workspace_id AND w.deleted_at IS NULL
         LEFT JOIN users AS u ON u.id = i.created_by AND u.deleted_at IS NULL
         WHERE i.token_hash = $1 AND i.expires_at > $3 AND (i.email_key IS NULL OR i.email_key = $2)"
    )
    .bind(token_hash)
    .bind(email_key)
    .bind(now)
    .fetch_optional(c))?)
}

/// Takes the invitation with this token, if it has not ended and is for anybody or for this folded e-mail. It is gone then.
pub async fn take(
    tx: &mut Tx,
    token_hash: &[u8],
    email_key: &str,
    now: Timestamp,
) -> Result<Option<Invitation>> {
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "DELETE FROM invitations WHERE token_hash = $1 AND expires_at > $3 AND (email_key IS NULL OR email_key = $2)
         RETURNING *"
    )
    .bind(token_hash)
    .bind(email_key)
    .bind(now)
    .fetch_optional(c)
    })?)
}

/// Withdraws one of a workspace's invitations; false when there is none.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: InvitationId) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM invitations WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(rows == 1)
}

/// Forgets what has ended; at most `limit`, so that it never holds the store for long.
pub async fn expire(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM invitations WHERE id IN (SELECT id FROM invitations WHERE expires_at <= $1 LIMIT $2)"
        )
        .bind(now)
        .bind(i64::from(limit))
    )
}
