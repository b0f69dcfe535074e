//! Invitations to workspaces.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{InvitationId, UserId, WorkspaceId},
    model::workspace::{Invitation, Role},
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::WorkspaceView;
use crate::{
    auth::Caller,
    extract::{PathId, PathIds, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    public_address::PublicAddress,
    response::{ApiResult, Paging, data, list},
    services::workspaces::invitations::{
        InvitationAnswer, InvitationService, NewInvitation, RevealedInvitation,
    },
    v1::users::NullBody,
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(remove)).routes(routes!(accept))
}

/// An invitation to a workspace.
#[derive(Serialize, ToSchema)]
#[schema(as = Invitation)]
#[serde(rename_all = "camelCase")]
struct InvitationView {
    /// Its id.
    #[schema(value_type = String)]
    id: InvitationId,
    /// The workspace.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// What whoever accepts it may do: `asker`, `editor`, `builder` or `owner`.
    #[schema(value_type = String)]
    role: Role,
    /// The only e-mail address whose account may accept it; null when whoever has the link may.
    #[schema(required = true)]
    email: Option<String>,
    /// The link to give to whoever is invited, in the answer that made it; null afterwards. It begins with the address that the operator
    /// has set for the service, or else with the one of the request.
    #[schema(required = true)]
    url: Option<String>,
    /// What accepts it, in the answer that made it; null afterwards.
    #[schema(required = true)]
    token: Option<String>,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// The account that invites.
    #[schema(value_type = String)]
    created_by: UserId,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The same: an invitation does not change.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<Invitation> for InvitationView {
    fn from(invitation: Invitation) -> Self {
        let Invitation { id, workspace_id, role, email, created_by, created_at, expires_at } = invitation;
        Self {
            id,
            workspace_id,
            role,
            email,
            url: None,
            token: None,
            expires_at,
            created_by,
            created_at,
            updated_at: created_at,
        }
    }
}

impl InvitationView {
    /// With what is shown once.
    fn revealed(
        RevealedInvitation { invitation, token }: &RevealedInvitation,
        address: &PublicAddress,
    ) -> Self {
        let token = token.expose_secret();
        Self {
            url: Some(address.link(&format!("/#/invitations/{token}"))),
            token: Some(token.to_owned()),
            ..Self::from(invitation.clone())
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f43-1d2e-7b60-8f17-5a6b7c8d9e0f",
        "workspaceId": "019a8f41-3c5d-7e10-9b42-6d8e1f2a3b4c",
        "role": "editor",
        "email": "grace@example.com",
        "url": null,
        "token": null,
        "expiresAt": "2026-02-07T08:08:00.000000+00:00",
        "createdBy": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "createdAt": "2026-01-31T08:08:00.000000+00:00",
        "updatedAt": "2026-01-31T08:08:00.000000+00:00",
    })
}

fn revealed_example() -> Value {
    let mut invitation = example();
    let token = "inv_3Lp8gYxQz4XwVoAs9TuMnD6iK3cE0hYbF7vRjUoPzWxf";
    invitation["url"] = json!(format!("https://lectern.example.com/#/invitations/{token}"));
    invitation["token"] = json!(token);
    invitation
}

/// Invite somebody
///
/// Makes a link for somebody to become a member. It works once and for 7 days, and is shown in this answer only: give it to whoever is
/// invited, since nothing is sent. With `email`, only the account with that e-mail address may accept it. For owners.
#[utoipa::path(
    post,
    path = "/workspaces/{id}/invitations",
    tag = "Workspaces",
    operation_id = "createInvitation",
    params(("id" = String, Path, description = "The workspace's id")),
    request_body(content = NewInvitation, example = json!({"email": "grace@example.com", "role": "editor"})),
    responses(
        (
            status = 200,
            description = "The new invitation with its link and token",
            body = inline(SuccessResponse<InvitationView>),
            example = json!({"success": true, "data": revealed_example()}),
        ),
        (status = 403, description = "You are not an owner"),
    ),
)]
#[handler]
async fn create(
    State(invitations): State<InvitationService>,
    address: PublicAddress,
    caller: Caller,
    PathId(id): PathId<WorkspaceId>,
    CreateRequest { body, once }: CreateRequest<NewInvitation>,
) -> ApiResult {
    let show = json_encoder(move |made: &RevealedInvitation| Ok(InvitationView::revealed(made, &address)));
    invitations.create(&caller.actor(), id, body, once, show).await.map(creation_response)
}

/// List open invitations
///
/// Shows every invitation to the workspace that can still be accepted, newest first, without links and tokens. For owners.
#[utoipa::path(
    get,
    path = "/workspaces/{id}/invitations",
    tag = "Workspaces",
    operation_id = "listInvitations",
    params(("id" = String, Path, description = "The workspace's id")),
    responses(
        (
            status = 200,
            description = "The open invitations",
            body = inline(SuccessResponse<Vec<InvitationView>>),
            example = json!({"success": true, "data": [example()]}),
        ),
        (status = 403, description = "You are not an owner"),
    ),
)]
#[handler]
async fn index(
    State(invitations): State<InvitationService>,
    caller: Caller,
    PathId(id): PathId<WorkspaceId>,
    paging: Paging,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (invitations, actor) = (invitations.clone(), caller.actor());
        async move {
            let open = invitations.list(&actor, id, before, limit).await?;
            let row = |invitation: Invitation| (*invitation.id.as_uuid(), InvitationView::from(invitation));
            Ok(open.into_iter().map(row).collect())
        }
    })
    .await
}

/// Withdraw an invitation
///
/// Ends an invitation: its link is not accepted any more. For owners.
#[utoipa::path(
    delete,
    path = "/workspaces/{id}/invitations/{invitationId}",
    tag = "Workspaces",
    operation_id = "deleteInvitation",
    params(
        ("id" = String, Path, description = "The workspace's id"),
        ("invitationId" = String, Path, description = "The invitation's id (not its token)"),
    ),
    responses(
        (
            status = 200,
            description = "It is gone",
            body = inline(SuccessResponse<NullBody>),
            example = json!({"success": true, "data": null}),
        ),
        (status = 403, description = "You are not an owner"),
    ),
)]
#[handler]
async fn remove(
    State(invitations): State<InvitationService>,
    caller: Caller,
    PathIds(id, invitation): PathIds<WorkspaceId, InvitationId>,
) -> ApiResult {
    invitations.delete(&caller.actor(), id, invitation).await?;
    Ok(data(NullBody))
}

/// Accept an invitation
///
/// Makes you a member of the workspace that you are invited to. If you are one already, you keep the higher of both roles. An invitation
/// is accepted once; one that was accepted, has ended or is for another account is not found.
#[utoipa::path(
    post,
    path = "/invitations/accept",
    tag = "Workspaces",
    operation_id = "acceptInvitation",
    request_body(
        content = InvitationAnswer,
        example = json!({"token": "inv_3Lp8gYxQz4XwVoAs9TuMnD6iK3cE0hYbF7vRjUoPzWxf"}),
    ),
    responses(
        (
            status = 200,
            description = "The workspace that you are a member of now",
            body = inline(SuccessResponse<WorkspaceView>),
            example = json!({"success": true, "data": joined_example()}),
        ),
        (
            status = 403,
            description = "An API token accepts no invitations, or you own as many workspaces as you may (`quota_exceeded`)",
        ),
        (status = 404, description = "There is no such invitation for you, or not any more"),
    ),
)]
#[handler]
async fn accept(
    State(invitations): State<InvitationService>,
    caller: Caller,
    ValidJson(answer): ValidJson<InvitationAnswer>,
) -> ApiResult {
    let joined = invitations.accept(&caller.actor(), &caller.user.email, answer).await?;
    Ok(data(WorkspaceView::from(joined)))
}

fn joined_example() -> Value {
    let mut workspace = super::example();
    workspace["role"] = json!("editor");
    workspace
}
