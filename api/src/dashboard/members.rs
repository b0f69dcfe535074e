//! Who is in a workspace: members, invitations, and new workspaces.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use lectern_shared::{
    ids::{InvitationId, UserId},
    model::workspace::{Invitation, JoinedWorkspace, Member},
};
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{
    PagePolicy, ROLES,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    sign_in::CookieJar,
    text::filters,
};
use crate::{
    error::ApiError,
    extract::PathId,
    public_address::PublicAddress,
    response::ApiResult,
    services::{
        actor::Permission,
        creation::CreationOutcome,
        workspaces::{
            NewWorkspace, WorkspaceService,
            invitations::{InvitationAnswer, InvitationService, NewInvitation, RevealedInvitation},
            members::{MemberChange, MemberService},
        },
    },
};

/// Members and invitations that are shown.
const SHOWN: u32 = 200;

#[derive(Template)]
#[template(path = "members.html")]
struct MembersPage {
    frame: Frame,
    is_personal: bool,
    members: Vec<Member>,
    invitations: Vec<Invitation>,
    roles: [(&'static str, &'static str); 4],
    /// A new invitation's link, which is shown once.
    link: Option<String>,
}

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    frame: Frame,
}

/// Shows the members.
#[handler]
pub(super) async fn show(
    State(workspaces): State<WorkspaceService>,
    State(members): State<MemberService>,
    State(invitations): State<InvitationService>,
    visitor: Visitor,
) -> ApiResult {
    page(&workspaces, &members, &invitations, visitor, None).await
}

async fn page(
    workspaces: &WorkspaceService,
    members: &MemberService,
    invitations: &InvitationService,
    visitor: Visitor,
    link: Option<String>,
) -> ApiResult {
    let actor = visitor.actor();
    actor.may(Permission::ManageWorkspace)?;
    let id = visitor.frame.workspace_id;
    let is_personal = workspaces.find(&actor, id).await?.workspace.is_personal;
    let invitations =
        if is_personal { Vec::new() } else { invitations.list(&actor, id, Uuid::max(), SHOWN).await? };
    let page = MembersPage {
        is_personal,
        members: members.list(&actor, id, Uuid::max(), SHOWN).await?,
        invitations,
        roles: ROLES,
        link,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Invites somebody, and shows the link.
#[handler]
pub(super) async fn invite(
    State(workspaces): State<WorkspaceService>,
    State(members): State<MemberService>,
    State(invitations): State<InvitationService>,
    address: PublicAddress,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewInvitation>,
) -> ApiResult {
    let actor = visitor.actor();
    let token_of = |made: &RevealedInvitation| Ok(made.token.expose_secret().as_bytes().to_vec());
    let made = invitations.create(&actor, visitor.frame.workspace_id, body, once, token_of).await?;
    let (CreationOutcome::Now(token) | CreationOutcome::Before(token)) = made;
    let link = address.link(&format!("/#/invitations/{}", String::from_utf8_lossy(&token)));
    page(&workspaces, &members, &invitations, visitor, Some(link)).await
}

/// Withdraws an invitation.
#[handler]
pub(super) async fn withdraw(
    State(invitations): State<InvitationService>,
    visitor: Visitor,
    PathId(id): PathId<InvitationId>,
) -> ApiResult {
    invitations.delete(&visitor.actor(), visitor.frame.workspace_id, id).await?;
    Ok(visitor.go("members?said=removed"))
}

/// Gives a member another role.
#[handler]
pub(super) async fn change(
    State(members): State<MemberService>,
    PathId(user): PathId<UserId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<MemberChange>,
) -> ApiResult {
    members.change(&visitor.actor(), visitor.frame.workspace_id, user, body).await?;
    Ok(visitor.go("members?said=saved"))
}

/// Removes a member.
#[handler]
pub(super) async fn remove(
    State(members): State<MemberService>,
    visitor: Visitor,
    PathId(user): PathId<UserId>,
) -> ApiResult {
    members.remove(&visitor.actor(), visitor.frame.workspace_id, user).await?;
    Ok(visitor.go("members?said=removed"))
}

/// Shows where the code of an invitation is taken.
pub(super) async fn show_invitation(visitor: Visitor) -> ApiResult {
    html(&PagePolicy::Own, StatusCode::OK, &InvitationPage { frame: visitor.frame })
}

/// Accepts an invitation, and goes to its workspace.
#[handler]
pub(super) async fn accept(
    State(invitations): State<InvitationService>,
    jar: CookieJar,
    SubmittedForm { visitor, body, .. }: SubmittedForm<InvitationAnswer>,
) -> ApiResult {
    let joined = invitations.accept(&visitor.actor(), &visitor.frame.email, body).await?;
    Ok(visitor.go_with("?said=joined", [jar.choose(joined.workspace.id)?]))
}

/// Makes a workspace, and goes to it.
#[handler]
pub(super) async fn create_workspace(
    State(workspaces): State<WorkspaceService>,
    jar: CookieJar,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewWorkspace>,
) -> Result<axum::response::Response, ApiError> {
    let id_of = |made: &JoinedWorkspace| Ok(made.workspace.id.to_string().into_bytes());
    let made = workspaces.create(&visitor.actor(), body, once, id_of).await?;
    let (CreationOutcome::Now(id) | CreationOutcome::Before(id)) = made;
    let id = String::from_utf8_lossy(&id).parse().map_err(|_| ApiError::internal())?;
    Ok(visitor.go_with("members?said=added", [jar.choose(id)?]))
}
