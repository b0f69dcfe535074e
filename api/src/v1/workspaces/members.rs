//! Members of workspaces.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{UserId, WorkspaceId},
    model::workspace::{Member, Role},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    extract::{NamePart, PathId, PathIds, ValidJson},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::workspaces::members::{MemberChange, MemberService},
    v1::users::NullBody,
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index)).routes(routes!(change, remove))
}

/// A member of a workspace.
#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
#[serde(rename_all = "camelCase")]
struct MemberView {
    /// The account's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// The account's e-mail address.
    email: String,
    /// How its owner is called.
    name: String,
    /// What the member may do: `asker`, `editor`, `builder` or `owner`.
    #[schema(value_type = String)]
    role: Role,
    /// When the account became a member.
    #[schema(value_type = String, format = DateTime)]
    joined_at: Timestamp,
}

impl From<Member> for MemberView {
    fn from(Member { user_id, email, name, role, joined_at }: Member) -> Self {
        Self { user_id, email, name, role, joined_at }
    }
}

fn example() -> Value {
    json!({
        "userId": "019a8f42-77b0-7a31-8c05-2e4d6f8a9b1c",
        "email": "grace@example.com",
        "name": "Grace Hopper",
        "role": "editor",
        "joinedAt": "2026-01-31T08:10:00.000000+00:00",
    })
}

/// List the members
///
/// Shows every member of a workspace, those with the newest accounts first.
#[utoipa::path(
    get,
    path = "/workspaces/{id}/members",
    tag = "Workspaces",
    operation_id = "listMembers",
    params(
        ("id" = String, Path, description = "The workspace's id"),
        (
            "name" = Option<String>, Query,
            description = "Only those whose names or e-mails have this somewhere, in whichever case", max_length = 1_000
        ),
    ),
    responses(
        (
            status = 200,
            description = "The members",
            body = inline(SuccessResponse<Vec<MemberView>>),
            example = json!({"success": true, "data": [example()]}),
        ),
        (status = 403, description = "The API token is bound to an agent, or for pages"),
    ),
)]
#[handler]
async fn index(
    State(members): State<MemberService>,
    caller: Caller,
    PathId(id): PathId<WorkspaceId>,
    paging: Paging,
    NamePart(name): NamePart,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (members, actor, name) = (members.clone(), caller.actor(), name.clone());
        async move {
            let members = members.list(&actor, id, &name, before, limit).await?;
            let row = |member: Member| (*member.user_id.as_uuid(), MemberView::from(member));
            Ok(members.into_iter().map(row).collect())
        }
    })
    .await
}

/// Change a member's role
///
/// Gives a member another role, which counts from the member's next request on. For owners. The last owner stays one.
#[utoipa::path(
    patch,
    path = "/workspaces/{id}/members/{userId}",
    tag = "Workspaces",
    operation_id = "updateMember",
    params(
        ("id" = String, Path, description = "The workspace's id"),
        ("userId" = String, Path, description = "The member's account"),
    ),
    request_body(content = MemberChange, example = json!({"role": "editor"})),
    responses(
        (
            status = 200,
            description = "The member, with the new role",
            body = inline(SuccessResponse<MemberView>),
            example = json!({"success": true, "data": example()}),
        ),
        (
            status = 403,
            description = "You are not an owner, or the member owns as many workspaces as an account may (`quota_exceeded`)",
        ),
        (status = 409, description = "The workspace would have no owner"),
    ),
)]
#[handler]
async fn change(
    State(members): State<MemberService>,
    caller: Caller,
    PathIds(id, user): PathIds<WorkspaceId, UserId>,
    ValidJson(change): ValidJson<MemberChange>,
) -> ApiResult {
    Ok(data(MemberView::from(members.change(&caller.actor(), id, user, change).await?)))
}

/// Remove a member
///
/// Takes a member out of the workspace, with the API tokens that it made there. Documents, agents and what else it made stay. Owners
/// remove others; everybody may leave, but for the last owner, and not the own workspace.
#[utoipa::path(
    delete,
    path = "/workspaces/{id}/members/{userId}",
    tag = "Workspaces",
    operation_id = "deleteMember",
    params(
        ("id" = String, Path, description = "The workspace's id"),
        ("userId" = String, Path, description = "The member's account"),
    ),
    responses(
        (
            status = 200,
            description = "It is no member any more",
            body = inline(SuccessResponse<NullBody>),
            example = json!({"success": true, "data": null}),
        ),
        (status = 403, description = "You are not an owner"),
        (status = 409, description = "The workspace would have no owner, or is the account's own"),
    ),
)]
#[handler]
async fn remove(
    State(members): State<MemberService>,
    caller: Caller,
    PathIds(id, user): PathIds<WorkspaceId, UserId>,
) -> ApiResult {
    members.remove(&caller.actor(), id, user).await?;
    Ok(data(NullBody))
}
