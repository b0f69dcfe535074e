//! Workspaces: their members, invitations to them, and what was done in them.

mod audit;
mod invitations;
mod members;

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::WorkspaceId,
    model::{
        Json,
        workspace::{JoinedWorkspace, Role, Workspace, WorkspaceQuotas},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::users::NullBody;
use crate::{
    auth::Caller,
    extract::{PathId, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::workspaces::{
        ChangedWorkspace, NewWorkspace, UsageService, WorkspaceChange, WorkspaceRemoval, WorkspaceService,
        WorkspaceUsage,
    },
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .merge(members::router())
        .merge(invitations::router())
        .merge(audit::router())
}

/// A workspace.
#[derive(Serialize, ToSchema)]
#[schema(as = Workspace)]
#[serde(rename_all = "camelCase")]
struct WorkspaceView {
    /// Its id. An account's own workspace has the account's id.
    #[schema(value_type = String)]
    id: WorkspaceId,
    /// What its owners call it.
    name: String,
    /// Whether it is an account's own, which lasts as long as the account.
    personal: bool,
    /// What you may do in it: `asker`, `editor`, `builder` or `owner`; null for an admin who is no member.
    #[schema(value_type = Option<String>, required = true)]
    role: Option<Role>,
    /// What it may hold and use.
    quotas: QuotaView,
    /// What it holds and has used; only where one workspace is asked for, or changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    used: Option<UsedView>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// What a workspace may hold and use, as its operator has set it. What is null has no limit but the service's.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaLimits)]
#[serde(rename_all = "camelCase")]
struct QuotaView {
    /// Documents.
    #[schema(required = true)]
    documents: Option<u64>,
    /// Bytes that are stored: files, texts, and the passages made of them.
    #[schema(required = true)]
    bytes: Option<u64>,
    /// Tokens of models, read and written, in a calendar month in UTC.
    #[schema(required = true)]
    tokens_per_month: Option<u64>,
    /// What models may cost in a calendar month in UTC, in the currency of the service's prices.
    #[schema(required = true)]
    cost_per_month: Option<f64>,
}

/// What a workspace holds, and has used in this calendar month in UTC.
#[derive(Serialize, ToSchema)]
#[schema(as = WorkspaceUse)]
#[serde(rename_all = "camelCase")]
struct UsedView {
    /// Documents.
    documents: u64,
    /// Bytes that are stored; those of deleted documents count until they are purged.
    bytes: u64,
    /// Tokens of models, read and written.
    tokens_this_month: u64,
    /// What they cost, in the currency of the service's prices.
    cost_this_month: f64,
}

impl From<WorkspaceQuotas> for QuotaView {
    fn from(quotas: WorkspaceQuotas) -> Self {
        let WorkspaceQuotas { documents, bytes, tokens_per_month, cost_per_month } = quotas;
        Self { documents, bytes, tokens_per_month, cost_per_month }
    }
}

impl From<WorkspaceUsage> for UsedView {
    fn from(usage: WorkspaceUsage) -> Self {
        let WorkspaceUsage { documents, bytes, tokens_this_month, cost_this_month } = usage;
        Self { documents, bytes, tokens_this_month, cost_this_month }
    }
}

impl WorkspaceView {
    fn new(workspace: Workspace, role: Option<Role>) -> Self {
        let Workspace { id, name, is_personal, quotas, created_at, updated_at } = workspace;
        let quotas = quotas.map(|Json(quotas)| quotas).unwrap_or_default();
        Self {
            id,
            name,
            personal: is_personal,
            role,
            quotas: quotas.into(),
            used: None,
            created_at,
            updated_at,
        }
    }
}

impl From<JoinedWorkspace> for WorkspaceView {
    fn from(JoinedWorkspace { workspace, role }: JoinedWorkspace) -> Self {
        Self::new(workspace, Some(role))
    }
}

impl From<ChangedWorkspace> for WorkspaceView {
    fn from(ChangedWorkspace { workspace, role }: ChangedWorkspace) -> Self {
        Self::new(workspace, role)
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f41-3c5d-7e10-9b42-6d8e1f2a3b4c",
        "name": "Support team",
        "personal": false,
        "role": "owner",
        "quotas": {"documents": null, "bytes": null, "tokensPerMonth": null, "costPerMonth": null},
        "createdAt": "2026-01-31T08:04:00.000000+00:00",
        "updatedAt": "2026-01-31T08:04:00.000000+00:00",
    })
}

/// Create a workspace
///
/// Makes a workspace, of which you are the owner. Send its id as `X-Workspace` with requests that are about what is in it. Only
/// somebody who is signed in can make one: an API token is for one workspace.
#[utoipa::path(
    post,
    path = "/workspaces",
    tag = "Workspaces",
    operation_id = "createWorkspace",
    request_body(content = NewWorkspace, example = json!({"name": "Support team"})),
    responses(
        (
            status = 200,
            description = "The new workspace",
            body = inline(SuccessResponse<WorkspaceView>),
            example = json!({"success": true, "data": example()}),
        ),
        (
            status = 403,
            description = "An API token makes no workspaces, or you own as many as you may (`quota_exceeded`)",
        ),
    ),
)]
#[handler]
async fn create(
    State(workspaces): State<WorkspaceService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewWorkspace>,
) -> ApiResult {
    let show = json_encoder(|made: &JoinedWorkspace| Ok(WorkspaceView::from(made.clone())));
    workspaces.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List your workspaces
///
/// Shows every workspace that you are a member of, newest first, with your role in each. An API token sees its own.
#[utoipa::path(
    get,
    path = "/workspaces",
    tag = "Workspaces",
    operation_id = "listWorkspaces",
    responses(
        (
            status = 200,
            description = "Your workspaces",
            body = inline(SuccessResponse<Vec<WorkspaceView>>),
            example = json!({"success": true, "data": [example()]}),
        ),
        (status = 403, description = "The API token is bound to an agent, or for pages"),
    ),
)]
#[handler]
async fn index(State(workspaces): State<WorkspaceService>, caller: Caller, paging: Paging) -> ApiResult {
    list(paging, move |before, limit| {
        let (workspaces, actor) = (workspaces.clone(), caller.actor());
        async move {
            let joined = workspaces.list(&actor, before, limit).await?;
            let row = |joined: JoinedWorkspace| (*joined.workspace.id.as_uuid(), WorkspaceView::from(joined));
            Ok(joined.into_iter().map(row).collect())
        }
    })
    .await
}

/// Get a workspace
///
/// Shows one workspace, with what it holds and has used this month.
#[utoipa::path(
    get,
    path = "/workspaces/{id}",
    tag = "Workspaces",
    operation_id = "getWorkspace",
    params(("id" = String, Path, description = "The workspace's id")),
    responses(
        (
            status = 200,
            description = "The workspace",
            body = inline(SuccessResponse<WorkspaceView>),
            example = json!({"success": true, "data": used_example()}),
        ),
        (status = 403, description = "The API token is bound to an agent, or for pages"),
    ),
)]
#[handler]
async fn find(
    State(workspaces): State<WorkspaceService>,
    State(usage): State<UsageService>,
    caller: Caller,
    PathId(id): PathId<WorkspaceId>,
) -> ApiResult {
    let (actor, joined) = workspaces.enter(&caller.actor(), id).await?;
    let used = Some(usage.of(&actor).await?.into());
    Ok(data(WorkspaceView { used, ..WorkspaceView::from(joined) }))
}

fn used_example() -> Value {
    let mut workspace = example();
    workspace["used"] =
        json!({"documents": 12, "bytes": 48_213_004, "tokensThisMonth": 81_220, "costThisMonth": 0.42});
    workspace
}

/// Change a workspace
///
/// Changes the name, which owners may, or the quotas, which the operator's admins may, members or not. New quotas take the place
/// of all the old ones: what is left out of them has no limit but the service's. The answer says what the workspace holds and has
/// used this month.
#[utoipa::path(
    patch,
    path = "/workspaces/{id}",
    tag = "Workspaces",
    operation_id = "updateWorkspace",
    params(("id" = String, Path, description = "The workspace's id")),
    request_body(content = WorkspaceChange, example = json!({"name": "Help desk"})),
    responses(
        (
            status = 200,
            description = "The workspace as it is now",
            body = inline(SuccessResponse<WorkspaceView>),
            example = json!({"success": true, "data": changed_example()}),
        ),
        (status = 403, description = "Your role is too small for a new name, or your account is no admin's"),
    ),
)]
#[handler]
async fn change(
    State(workspaces): State<WorkspaceService>,
    State(usage): State<UsageService>,
    caller: Caller,
    PathId(id): PathId<WorkspaceId>,
    ValidJson(change): ValidJson<WorkspaceChange>,
) -> ApiResult {
    let changed = workspaces.change(&caller.actor(), caller.user.is_admin, id, change).await?;
    let used = Some(usage.of_workspace(id).await?.into());
    Ok(data(WorkspaceView { used, ..WorkspaceView::from(changed) }))
}

fn changed_example() -> Value {
    let mut workspace = used_example();
    workspace["name"] = json!("Help desk");
    workspace["updatedAt"] = json!("2026-01-31T08:06:30.500000+00:00");
    workspace
}

/// Delete a workspace
///
/// Deletes a workspace with everything in it: documents, agents, tools, tags, prompts, API tokens, traces and the audit log. There is
/// no way back, so its name has to be said again. An account's own workspace goes with the account only.
#[utoipa::path(
    delete,
    path = "/workspaces/{id}",
    tag = "Workspaces",
    operation_id = "deleteWorkspace",
    params(("id" = String, Path, description = "The workspace's id")),
    request_body(content = WorkspaceRemoval, example = json!({"name": "Support team"})),
    responses(
        (
            status = 200,
            description = "It is gone",
            body = inline(SuccessResponse<NullBody>),
            example = json!({"success": true, "data": null}),
        ),
        (status = 403, description = "You are not its owner"),
        (status = 409, description = "It is an account's own"),
    ),
)]
#[handler]
async fn remove(
    State(workspaces): State<WorkspaceService>,
    caller: Caller,
    PathId(id): PathId<WorkspaceId>,
    ValidJson(removal): ValidJson<WorkspaceRemoval>,
) -> ApiResult {
    workspaces.delete(&caller.actor(), id, removal).await?;
    Ok(data(NullBody))
}
