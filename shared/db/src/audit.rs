//! Who did what to what, from where. Rows are added, and go with their workspace; nothing changes them.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::{ApiTokenId, AuditEventId, UserId, WorkspaceId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
    },
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{Db, Result, Tx, execute, on};

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AuditEvent {
    /// Its id.
    pub id: AuditEventId,
    /// Where it happened.
    pub workspace_id: WorkspaceId,
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub user_id: UserId,
    /// The API token that was used, if it was one.
    pub token_id: Option<ApiTokenId>,
    /// What was done.
    pub action: AuditAction,
    /// What sort of thing it was done to.
    pub target_kind: String,
    /// The id of that.
    pub target_id: String,
    /// The address of the client.
    pub address: Option<String>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// What is said further, when there is something.
    pub details: Option<Json<AuditDetails>>,
}

/// Adds a line.
pub async fn insert(tx: &mut Tx, event: &AuditEvent) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO audit_events (id, workspace_id, at, user_id, token_id, action, target_kind, target_id, address,
                                       request_id, details)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        )
        .bind(event.id)
        .bind(event.workspace_id)
        .bind(event.at)
        .bind(event.user_id)
        .bind(event.token_id)
        .bind(event.action)
        .bind(event.target_kind.as_str())
        .bind(event.target_id.as_str())
        .bind(event.address.as_deref())
        .bind(event.request_id.as_deref())
        .bind(event.details.as_ref())
    )?;
    Ok(())
}

/// How long a line is kept.
pub const KEPT_FOR: Duration = Duration::from_hours(400 * 24);

/// Forgets lines from before `before`; at most `limit`, so that it never holds the store for long.
pub async fn expire(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events WHERE at < $1 ORDER BY at LIMIT $2)"
        )
        .bind(before)
        .bind(i64::from(limit))
    )
}

/// Which lines are wanted; what is none does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Who did it.
    pub actor: Option<UserId>,
    /// What was done.
    pub action: Option<AuditAction>,
    /// What it was done to.
    pub target: Option<Uuid>,
    /// The first moment.
    pub since: Option<Timestamp>,
    /// The moment before which it was.
    pub until: Option<Timestamp>,
}

/// At most `limit` of a workspace's lines older than `before` that pass a filter, newest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    filter: AuditFilter,
    before: AuditEventId,
    limit: u32,
) -> Result<Vec<AuditEvent>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM audit_events
         WHERE workspace_id = $1 AND id < $2 AND ($4 IS NULL OR user_id = $4) AND ($5 IS NULL OR action = $5)
           AND ($6 IS NULL OR target_id = $6) AND ($7 IS NULL OR at >= $7) AND ($8 IS NULL OR at < $8)
         ORDER BY id DESC LIMIT $3"
    )
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .bind(filter.actor)
    .bind(filter.action)
    .bind(filter.target.map(|target| target.to_string()))
    .bind(filter.since)
    .bind(filter.until)
    .fetch_all(c))?)
}

/// What those of these things are called that a workspace has still, by their ids; `kind` is what lines call such a thing. Things of
/// other kinds have no names, and webhooks are called after their addresses, which are sealed.
pub async fn names(db: &Db, workspace: WorkspaceId, kind: &str, ids: &[Uuid]) -> Result<Vec<(Uuid, String)>> {
    let select = match kind {
        // What somebody asked is called after them.
        "user" | "traces" => {
            "SELECT id, email FROM members JOIN users ON users.id = members.user_id WHERE members.workspace_id = "
        }
        "agent" => "SELECT id, name FROM agents WHERE workspace_id = ",
        "api_token" => "SELECT id, description FROM api_tokens WHERE workspace_id = ",
        "collection" => "SELECT id, name FROM collections WHERE workspace_id = ",
        "document" => "SELECT id, name FROM documents WHERE deleted_at IS NULL AND workspace_id = ",
        "evaluation" => "SELECT id, name FROM evaluations WHERE workspace_id = ",
        // One that is for whoever has its link is for nobody who could be named.
        "invitation" => "SELECT id, email FROM invitations WHERE email IS NOT NULL AND workspace_id = ",
        "prompt" => "SELECT id, name FROM prompts WHERE workspace_id = ",
        "source" => "SELECT id, name FROM sources WHERE workspace_id = ",
        "tag" => "SELECT id, name FROM tags WHERE workspace_id = ",
        "tool" => "SELECT id, name FROM tools WHERE workspace_id = ",
        "workspace" => "SELECT id, name FROM workspaces WHERE id = ",
        _ => return Ok(Vec::new()),
    };
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(select);
        query.push_bind(workspace).push(" AND id IN (");
        let mut list = query.separated(", ");
        for id in ids {
            list.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?)
}
