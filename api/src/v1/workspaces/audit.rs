//! What was done in workspaces.

use axum::{extract::State, http::Uri};
use lectern_db::audit::AuditEvent;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{ApiTokenId, AuditEventId, UserId, WorkspaceId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    audit_query::audit_filter,
    auth::Caller,
    extract::{PathId, parameter},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, list},
    services::{audit::AuditService, workspaces::WorkspaceService},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index))
}

/// Something that was done.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEvent)]
#[serde(rename_all = "camelCase")]
struct AuditEventView {
    /// Its id.
    #[schema(value_type = String)]
    id: AuditEventId,
    /// When it was done.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Who did it.
    actor: AuditActorView,
    /// What was done: `account_created`, `signed_in`, `signed_out`, `password_changed`, `email_changed`, `identity_linked`,
    /// `workspace_created`, `workspace_changed`, `workspace_deleted`, `member_invited`, `invitation_withdrawn`, `member_joined`,
    /// `role_changed`, `member_removed`, `token_created`, `token_deleted`, `secret_changed`, `webhook_created`, `webhook_enabled`,
    /// `webhook_disabled`, `agent_created`, `tool_created`, `source_created`, `address_changed`, `published`, `unpublished`, `deleted` or
    /// `exported`; later versions may have more.
    #[schema(value_type = String)]
    action: AuditAction,
    /// What it was done to.
    target: AuditTargetView,
    /// The network address that the request came from; null when it came from none.
    #[schema(required = true)]
    address: Option<String>,
    /// The request's id, as its `x-request-id` was; null when it was no request but a command, or a run of a source.
    #[schema(required = true)]
    request_id: Option<String>,
    /// What is said further, texts by names, such as the roles `from` and `to` of a member, the e-mails of an account, or `name.from` and
    /// `name.to` of a workspace (`none` where something was or is not set); null when there is nothing. Of addresses it has the scheme, host
    /// and port alone; where these stay, `differs` says that the rest changed.
    #[schema(value_type = Option<Object>, required = true)]
    details: Option<AuditDetails>,
}

/// Who did something.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditActor)]
#[serde(rename_all = "camelCase")]
struct AuditActorView {
    /// The account; only zeros for the operator at the service's shell.
    #[schema(value_type = String)]
    user_id: UserId,
    /// The API token that was used; null when it was none.
    #[schema(value_type = Option<String>, required = true)]
    token_id: Option<ApiTokenId>,
}

/// What something was done to.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditTarget)]
struct AuditTargetView {
    /// What sort of thing it is, such as `document`.
    kind: String,
    /// Its id.
    id: String,
}

impl From<AuditEvent> for AuditEventView {
    fn from(event: AuditEvent) -> Self {
        Self {
            id: event.id,
            at: event.at,
            actor: AuditActorView { user_id: event.user_id, token_id: event.token_id },
            action: event.action,
            target: AuditTargetView { kind: event.target_kind, id: event.target_id },
            address: event.address,
            request_id: event.request_id,
            details: event.details.map(|Json(details)| details),
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f45-8c9d-7f21-b3e4-0a1b2c3d4e5f",
        "at": "2026-01-31T08:12:00.000000+00:00",
        "actor": {"userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55", "tokenId": null},
        "action": "role_changed",
        "target": {"kind": "user", "id": "019a8f42-77b0-7a31-8c05-2e4d6f8a9b1c"},
        "address": "203.0.113.7",
        "requestId": "019a8f45-8c9d-7f21-b3e4-09f8e7d6c5b4",
        "details": {"from": "editor", "to": "builder"},
    })
}

/// List the audit log
///
/// Shows who did what to what in the workspace, and from where, newest first: members, invitations, API tokens, secrets, where agents,
/// tools, sources and webhooks lead, published pages, deletions and exports. That of your own workspace has your sign-ins too. Nothing in
/// it can be changed. Without `limit` all of it comes, for an export. For owners.
#[utoipa::path(
    get,
    path = "/workspaces/{id}/audit",
    tag = "Workspaces",
    operation_id = "listAuditEvents",
    params(
        ("id" = String, Path, description = "The workspace's id"),
        ("actor" = Option<String>, Query, description = "Only what this account did, by its id"),
        ("action" = Option<String>, Query, description = "Only this action"),
        ("target" = Option<String>, Query, description = "Only what was done to the thing with this id"),
        ("since" = Option<String>, Query, description = "Only from this day (in UTC) or time on"),
        ("until" = Option<String>, Query, description = "Only to the end of this day (in UTC), or before this time"),
    ),
    responses(
        (
            status = 200,
            description = "What was done",
            body = inline(SuccessResponse<Vec<AuditEventView>>),
            example = json!({"success": true, "data": [example()]}),
        ),
        (status = 403, description = "You are not an owner"),
        (status = 422, description = "A filter is not valid"),
    ),
)]
#[handler]
async fn index(
    State(workspaces): State<WorkspaceService>,
    State(audit): State<AuditService>,
    caller: Caller,
    PathId(id): PathId<WorkspaceId>,
    paging: Paging,
    uri: Uri,
) -> ApiResult {
    let filter = audit_filter(|name| parameter(&uri, name))?;
    list(paging, move |before, limit| {
        let (workspaces, audit, caller) = (workspaces.clone(), audit.clone(), caller.actor());
        async move {
            // For each page anew: a long export ends with the role that it needs.
            let (actor, _) = workspaces.enter(&caller, id).await?;
            let events = audit.list(&actor, filter, before, limit).await?;
            let row = |event: AuditEvent| (*event.id.as_uuid(), AuditEventView::from(event));
            Ok(events.into_iter().map(row).collect())
        }
    })
    .await
}
