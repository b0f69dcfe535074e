//! Who is in a workspace: members, invitations, and new workspaces.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::handler;
use lectern_runtime::Runtime;
use lectern_shared::{
    clock::Timestamp,
    config::SignUp,
    ids::{InvitationId, UserId},
    model::workspace::{Invitation, InvitationOffer, JoinedWorkspace, Member, Role},
};
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{
    PagePolicy, ROLES,
    choices::ListPlace,
    confirm::{Confirmed, ConfirmedForm},
    frame::{Frame, SubmittedForm, Visitor},
    html,
    sign_in::CookieJar,
    text::filters,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    extract::{PathId, parameter},
    public_address::PublicAddress,
    response::ApiResult,
    services::{
        accounts::{AccountService, SignUpOffer},
        actor::Permission,
        creation::CreationOutcome,
        workspaces::{
            NewWorkspace, WorkspaceRemoval, WorkspaceService,
            invitations::{InvitationAnswer, InvitationService, NewInvitation, RevealedInvitation},
            members::{MemberChange, MemberService},
        },
    },
};

/// Members of a page, and invitations.
const ROWS: u32 = 200;

#[derive(Template)]
#[template(path = "members.html")]
struct MembersPage {
    frame: Frame,
    /// Whose own workspace it is, if it is somebody's: they stay its owner. In a shared one nobody has this id.
    keeper: UserId,
    is_personal: bool,
    /// It is the visitor's own.
    is_own: bool,
    members: Vec<Member>,
    place: ListPlace,
    /// The query of the next page of members, if there is one.
    next: Option<String>,
    invitations: Vec<Invitation>,
    /// The invitation behind which their list begins; none where it begins with the newest.
    after_invitation: Option<Uuid>,
    /// The last invitation, when there are further ones.
    next_invitations: Option<InvitationId>,
    roles: [(&'static str, &'static str); 4],
    /// A new invitation's link, which is shown once.
    link: Option<String>,
    /// Whoever is invited has to be given an account.
    needs_account: bool,
}

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    frame: Frame,
    /// Its code, where it was looked at.
    token: String,
    /// What it is to.
    offer: Option<InvitationWords>,
    /// It was looked at, and is none that its reader can accept.
    is_refused: bool,
}

/// Where the lists of a page begin.
#[derive(Default)]
struct ListPlaces {
    members: ListPlace,
    /// Behind which invitation; none where they begin with the newest.
    invitations: Option<Uuid>,
}

impl ListPlaces {
    /// As an address has them.
    fn of(uri: &Uri) -> Self {
        let invitations = parameter(uri, "invitations").and_then(|after| after.parse().ok());
        Self { members: ListPlace::of(uri), invitations }
    }
}

/// What an invitation is to, in words.
struct InvitationWords {
    workspace: String,
    role: Role,
    /// What the role is for.
    does: &'static str,
    inviter: String,
    expires_at: Timestamp,
}

impl From<InvitationOffer> for InvitationWords {
    fn from(offer: InvitationOffer) -> Self {
        let InvitationOffer { workspace, role, inviter, expires_at } = offer;
        let does = ROLES.iter().find(|(name, _)| *name == role.as_str()).map_or("", |(_, does)| does);
        let inviter = if inviter.trim().is_empty() { "One of its owners".to_owned() } else { inviter };
        Self { workspace, role, does, inviter, expires_at }
    }
}

/// Shows the members.
#[handler]
pub(super) async fn show(
    State(workspaces): State<WorkspaceService>,
    State(members): State<MemberService>,
    State(invitations): State<InvitationService>,
    State(accounts): State<AccountService>,
    State(runtime): State<Runtime>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    let needs_account = needs_account(&accounts, &runtime).await?;
    let places = ListPlaces::of(&uri);
    page(&workspaces, &members, &invitations, visitor, places, None, needs_account).await
}

/// Whether whoever is invited has to be given an account: they cannot make one, and the provider of OpenID Connect makes them none.
async fn needs_account(accounts: &AccountService, runtime: &Runtime) -> ApiResult<bool> {
    let settings = &runtime.settings;
    let is_made_by_provider = settings.oidc.is_some() && settings.sign_up == SignUp::Open;
    Ok(!is_made_by_provider && accounts.sign_up_offer().await? == SignUpOffer::Nobody)
}

async fn page(
    workspaces: &WorkspaceService,
    members: &MemberService,
    invitations: &InvitationService,
    visitor: Visitor,
    mut places: ListPlaces,
    link: Option<String>,
    needs_account: bool,
) -> ApiResult {
    let actor = visitor.actor();
    actor.may(Permission::ManageWorkspace)?;
    let id = visitor.frame.workspace_id;
    let is_personal = workspaces.find(&actor, id).await?.workspace.is_personal;
    let keeper = UserId::from(*id.as_uuid());
    let mut place = places.members;
    let mut listed = members.list(&actor, id, &place.name, place.before(), ROWS + 1).await?;
    // All that stood on it may be gone.
    if listed.is_empty() && place.after.take().is_some() {
        listed = members.list(&actor, id, &place.name, place.before(), ROWS + 1).await?;
    }
    let next = place.next(cut(&mut listed, |member| *member.user_id.as_uuid()));
    let behind = places.invitations.unwrap_or_else(Uuid::max);
    let mut open = invitations.list(&actor, id, behind, ROWS + 1).await?;
    // Those on a further page may have been withdrawn, as members may have left.
    if open.is_empty() && places.invitations.take().is_some() {
        open = invitations.list(&actor, id, Uuid::max(), ROWS + 1).await?;
    }
    let next_invitations = cut(&mut open, |invitation| invitation.id);
    let page = MembersPage {
        keeper,
        is_personal,
        is_own: keeper == visitor.caller.user.id,
        members: listed,
        place,
        next,
        invitations: open,
        after_invitation: places.invitations,
        next_invitations,
        roles: ROLES,
        link,
        needs_account,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Leaves the rows of a page, of which one more was read. The last of them, when there are further ones.
fn cut<T, I>(rows: &mut Vec<T>, id: impl Fn(&T) -> I) -> Option<I> {
    let has_more = rows.len() > ROWS as usize;
    rows.truncate(ROWS as usize);
    rows.last().map(id).filter(|_| has_more)
}

/// Invites somebody, and shows the link.
#[handler]
pub(super) async fn invite(
    State(workspaces): State<WorkspaceService>,
    State(members): State<MemberService>,
    State(invitations): State<InvitationService>,
    State(accounts): State<AccountService>,
    State(runtime): State<Runtime>,
    address: PublicAddress,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewInvitation>,
) -> ApiResult {
    let actor = visitor.actor();
    let token_of = |made: &RevealedInvitation| Ok(made.token.expose_secret().as_bytes().to_vec());
    let made = invitations.create(&actor, visitor.frame.workspace_id, body, once, token_of).await?;
    let (CreationOutcome::Now(token) | CreationOutcome::Before(token)) = made;
    let link = address.link(&format!("/#/invitations/{}", String::from_utf8_lossy(&token)));
    let needs_account = needs_account(&accounts, &runtime).await?;
    page(&workspaces, &members, &invitations, visitor, ListPlaces::default(), Some(link), needs_account).await
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
    uri: Uri,
    SubmittedForm { visitor, body, .. }: SubmittedForm<MemberChange>,
) -> ApiResult {
    members.change(&visitor.actor(), visitor.frame.workspace_id, user, body).await?;
    // Whoever gave a role up themselves may not see the members any more.
    let is_own = user == visitor.caller.user.id;
    Ok(if is_own { visitor.go("?said=saved") } else { visitor.go_to_list("members", "saved", &uri) })
}

/// Removes a member, who may be the visitor.
#[handler]
pub(super) async fn remove(
    State(members): State<MemberService>,
    jar: CookieJar,
    PathId(user): PathId<UserId>,
    uri: Uri,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    members.remove(&visitor.actor(), visitor.frame.workspace_id, user).await?;
    if user == visitor.caller.user.id {
        return Ok(visitor.go_with("?said=left", [jar.choose_own()?]));
    }
    Ok(visitor.go_to_list("members", "removed", &uri))
}

/// Shows where the code of an invitation is taken.
pub(super) async fn show_invitation(visitor: Visitor) -> ApiResult {
    let page = InvitationPage { frame: visitor.frame, token: String::new(), offer: None, is_refused: false };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Shows what an invitation is to, before it is accepted. Its code is a secret, so no address names it.
#[handler]
pub(super) async fn look_at_invitation(
    State(invitations): State<InvitationService>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<InvitationAnswer>,
) -> ApiResult {
    let (status, offer) = match invitations.offer(&visitor.actor(), &visitor.frame.email, &body).await {
        Ok(offer) => (StatusCode::OK, Some(InvitationWords::from(offer))),
        Err(error) if error.kind == ApiErrorKind::NotFound => (StatusCode::NOT_FOUND, None),
        Err(error) => return Err(error),
    };
    let token = body.token.expose_secret().to_owned();
    let page = InvitationPage { frame: visitor.frame, token, is_refused: offer.is_none(), offer };
    html(&PagePolicy::Own, status, &page)
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

/// Deletes the workspace of the page, and goes to the account's own.
#[handler]
pub(super) async fn delete_workspace(
    State(workspaces): State<WorkspaceService>,
    jar: CookieJar,
    ConfirmedForm(SubmittedForm { visitor, body, .. }): ConfirmedForm<WorkspaceRemoval>,
) -> ApiResult {
    workspaces.delete(&visitor.actor(), visitor.frame.workspace_id, body).await?;
    Ok(visitor.go_with("?said=workspace-deleted", [jar.choose_own()?]))
}
