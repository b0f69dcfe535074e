//! Signing up, in and out in a browser, and choosing a workspace.

use std::{convert::Infallible, net::SocketAddr};

use askama::Template;
use axum::{
    extract::{ConnectInfo, FromRef, FromRequestParts, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header, request::Parts},
    response::Response,
};
use lectern_derive::{RequestBody, handler};
use lectern_runtime::Runtime;
use lectern_shared::{config::PasswordPolicy, ids::WorkspaceId};
use utoipa::ToSchema;

use super::{
    PagePolicy,
    cookies::CookieNames,
    frame::{StrangersForm, SubmittedForm, own_path, see_other},
    html,
    text::Notice,
};
use crate::{
    error::ApiError,
    extract::parameter,
    public_address::PublicAddress,
    response::ApiResult,
    services::{
        accounts::{AccountService, NewAccount, SignUpOffer},
        actor::RequestOrigin,
        sign_in::{
            PasswordSignIn, SignInService, SignedInUser,
            oidc::{OidcService, RedeemedCode, SignInCode},
        },
        workspaces::WorkspaceService,
    },
    v1::{forget_oidc_cookie, oidc_cookies},
};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    next: &'a str,
    passwords: bool,
    /// What the button of the provider of OpenID Connect says.
    provider: Option<&'a str>,
    /// Who may make an account with a password.
    offer: SignUpOffer,
    /// What was done just now, or was not.
    said: Option<Notice>,
}

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUpPage<'a> {
    next: &'a str,
    /// Who may make one.
    offer: SignUpOffer,
}

/// The page for signing in.
#[handler]
pub(super) async fn show(
    State(runtime): State<Runtime>,
    State(accounts): State<AccountService>,
    uri: Uri,
) -> ApiResult {
    let settings = &runtime.settings;
    let next = own_path(parameter(&uri, "next"));
    let page = SignInPage {
        next: &next,
        passwords: settings.passwords != PasswordPolicy::Off,
        provider: settings.oidc.as_ref().map(|oidc| oidc.name.as_str()),
        offer: accounts.sign_up_offer().await?,
        said: parameter(&uri, "said").and_then(|said| notice(&said)),
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// What is said above the form about what led here, by the word in the address: the text is never the address's own.
fn notice(said: &str) -> Option<Notice> {
    let words = match said {
        "signed-out" => "You are signed out.",
        "password-changed" => {
            "Your password is changed. Every sign-in has ended, in this browser and in all others; API tokens go on. Sign in with the new password."
        }
        "account-deleted" => "Your account is deleted, with all that was yours alone.",
        "undone" => {
            let words = "Your sign-in had ended, so nothing was done. Sign in, and do it again.";
            return Some(Notice::undone(words));
        }
        _ => return None,
    };
    Some(Notice::done(words))
}

/// The page for making an account.
#[handler]
pub(super) async fn show_sign_up(State(accounts): State<AccountService>, uri: Uri) -> ApiResult {
    let offer = accounts.sign_up_offer().await?;
    let status = match offer {
        SignUpOffer::Nobody => StatusCode::FORBIDDEN,
        SignUpOffer::FirstAccount | SignUpOffer::Anybody => StatusCode::OK,
    };
    let next = own_path(parameter(&uri, "next"));
    html(&PagePolicy::Own, status, &SignUpPage { next: &next, offer })
}

/// What a browser is given by which it is known from then on.
#[derive(Clone)]
pub(super) struct CookieJar {
    names: CookieNames,
    /// The workspace that was chosen in this browser, by whoever was signed in.
    chosen: Option<WorkspaceId>,
    seconds: u64,
}

impl<S: Send + Sync> FromRequestParts<S> for CookieJar
where
    Runtime: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let address = PublicAddress::from_request_parts(parts, state).await?;
        let runtime = Runtime::from_ref(state);
        let names = CookieNames::at(&address);
        let (_, chosen) = names.read(&parts.headers);
        let chosen = chosen.and_then(|id| id.parse().ok());
        Ok(Self { names, chosen, seconds: runtime.settings.jwt_ttl.as_secs() })
    }
}

impl CookieJar {
    /// Keeps a sign-in. Whoever it is goes on in the workspace that was chosen, unless that is none of theirs.
    async fn keep(
        &self,
        workspaces: &WorkspaceService,
        signed_in: &SignedInUser,
    ) -> ApiResult<Vec<HeaderValue>> {
        let mut cookies = vec![self.names.sign_in(&signed_in.token, self.seconds)?];
        if let Some(chosen) = self.chosen
            && !workspaces.has_member(chosen, signed_in.user.id).await?
        {
            cookies.push(self.choose_own()?);
        }
        Ok(cookies)
    }

    /// Takes the sign-in away again.
    pub(super) fn sign_out(&self) -> ApiResult<HeaderValue> {
        self.names.sign_out()
    }

    /// Has the pages be about the account's own workspace.
    pub(super) fn choose_own(&self) -> ApiResult<HeaderValue> {
        self.names.choose(None)
    }

    /// Keeps which workspace the pages are about.
    pub(super) fn choose(&self, workspace: WorkspaceId) -> ApiResult<HeaderValue> {
        self.names.choose(Some(workspace))
    }
}

/// Signs in with a password.
#[handler]
pub(super) async fn sign_in(
    State(sign_ins): State<SignInService>,
    State(workspaces): State<WorkspaceService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    origin: RequestOrigin,
    jar: CookieJar,
    StrangersForm { body, redirect }: StrangersForm<PasswordSignIn>,
) -> ApiResult {
    let signed_in = sign_ins.sign_in(body, peer.ip(), origin).await?;
    Ok(redirect.go_with(jar.keep(&workspaces, &signed_in).await?))
}

/// Signs in with what the provider of OpenID Connect has sent the browser back with.
#[handler]
pub(super) async fn redeem(
    State(oidc): State<OidcService>,
    State(workspaces): State<WorkspaceService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    origin: RequestOrigin,
    jar: CookieJar,
    StrangersForm { body, redirect }: StrangersForm<SignInCode>,
) -> ApiResult {
    let scope = oidc.cookie_scope()?;
    let shown = oidc_cookies(&headers, &scope);
    let RedeemedCode { signed_in, cookie } = oidc.redeem(body, &shown, peer.ip(), origin).await?;
    let mut response = redirect.go_with(jar.keep(&workspaces, &signed_in).await?);
    forget_oidc_cookie(&mut response, &cookie, &scope)?;
    Ok(response)
}

/// Makes an account, and signs in to it.
#[handler]
pub(super) async fn sign_up(
    State(accounts): State<AccountService>,
    State(workspaces): State<WorkspaceService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    origin: RequestOrigin,
    jar: CookieJar,
    StrangersForm { body, redirect }: StrangersForm<NewAccount>,
) -> ApiResult {
    let signed_in = accounts.sign_up(body, peer.ip(), origin).await?;
    Ok(redirect.go_with(jar.keep(&workspaces, &signed_in).await?))
}

/// Takes the sign-in out of this browser. Others stay signed in: ending those is on the page of the account.
pub(super) async fn sign_out(jar: CookieJar) -> ApiResult {
    let mut response = see_other("sign-in?said=signed-out", false);
    response.headers_mut().append(header::SET_COOKIE, jar.sign_out()?);
    Ok(response)
}

/// Which workspace the pages are to be about.
#[derive(RequestBody, ToSchema)]
pub(super) struct WorkspaceSelection {
    #[schema(max_length = 100)]
    workspace: String,
    /// Where to go on to there, from the root.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    #[body(default)]
    next: String,
}

/// Chooses a workspace.
#[handler]
pub(super) async fn choose(
    State(workspaces): State<WorkspaceService>,
    jar: CookieJar,
    SubmittedForm { visitor, body, .. }: SubmittedForm<WorkspaceSelection>,
) -> Result<Response, ApiError> {
    let id: WorkspaceId = body.workspace.parse().map_err(|_| ApiError::not_found("workspace"))?;
    workspaces.find(&visitor.actor(), id).await?;
    Ok(visitor.go_with(&own_path(Some(body.next)), [jar.choose(id)?]))
}
