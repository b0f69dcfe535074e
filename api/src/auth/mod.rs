//! Who is asking, in terms of HTTP: the headers that credentials stand in, the extractors, and the layer that ends long answers
//! together with their credential. Routes and layers use it; of the service it knows [`Authenticator`] alone, and nothing of the
//! state, from which its extractors take that.

pub(crate) mod headers;
pub(crate) mod in_force;

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, FromRef, FromRequestParts},
    http::{HeaderName, HeaderValue, header, request::Parts},
};
use lectern_shared::{
    ids::{UserId, WorkspaceId},
    model::user::User,
};

use self::{
    headers::{api_token, bearer, is_bearer},
    in_force::RequestCredential,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    request_id::RequestId,
    services::{
        actor::{Actor, RequestOrigin},
        credentials::{Authenticator, RequestContext},
    },
};

/// Names the workspace that a request is about.
pub(crate) const WORKSPACE: HeaderName = HeaderName::from_static("x-workspace");

/// The workspace of the page that sent a request, where the page says so; the layer that reads cookies notes it. The cookie tells
/// only which one was chosen last, be it in another tab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageWorkspace(pub(crate) WorkspaceId);

/// Whoever holds a valid bearer token: a JSON web token or an API token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) user: User,
    actor: Arc<Actor>,
}

/// Like [`Caller`]; an API token's own header is read too.
#[derive(Clone, Debug)]
pub(crate) struct TokenCaller(pub(crate) Caller);

/// A [`Caller`] who may use the operator's endpoints. Looked up anew for each request, so that whoever loses it has lost it.
#[derive(Clone, Debug)]
pub(crate) struct AdminCaller(pub(crate) User);

impl AdminCaller {
    pub(crate) fn id(&self) -> UserId {
        self.0.id
    }
}

impl Caller {
    /// On whose behalf this request is made.
    pub(crate) fn actor(&self) -> Arc<Actor> {
        Arc::clone(&self.actor)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    Authenticator: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        // Another extractor of the same request may have asked.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let credential = bearer(&parts.headers)?.ok_or_else(|| ApiError::unauthorized(MISSING))?;
        let caller = authenticate(&Authenticator::from_ref(state), credential, parts).await?;
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for AdminCaller
where
    Authenticator: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Caller { user, actor } = Caller::from_request_parts(parts, state).await?;
        actor.account()?;
        if user.is_admin { Ok(Self(user)) } else { Err(ApiError::forbidden(NO_ADMIN)) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TokenCaller
where
    Authenticator: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let credential = match api_token(&parts.headers) {
            Ok(Some(token)) if is_bearer(token) => return Err(ApiError::unauthorized(TOKEN_ALONE)),
            Ok(Some(token)) => token,
            Ok(None) => bearer(&parts.headers)?.ok_or_else(|| ApiError::unauthorized(MISSING_TOKEN))?,
            Err(_) => return Err(ApiError::credential_ended()),
        };
        authenticate(&Authenticator::from_ref(state), credential, parts).await.map(Self)
    }
}

const MISSING: &str =
    "Send the header `Authorization: Bearer <token>`, with a token from /auth/sign-in or an API token.";
const MISSING_TOKEN: &str = "Send the header `X_SERVICE_API_KEY` with the value of an API token.";
const TOKEN_ALONE: &str =
    "Send the API token alone in `X_SERVICE_API_KEY`: `Bearer` belongs before it in `Authorization` only.";
const OTHER_WORKSPACE: &str = "This page was opened in another workspace than the one you are in now. Change back to it, and send again.";
const NO_ADMIN: &str = "This is for admins. Your account is none.";

/// Whose credential it is, and what it may do in the workspace that the request names. What it was is noted, for answers that
/// outlast it. What a page of another workspace sends is refused here, before anything of its body is read.
async fn authenticate(
    authenticator: &Authenticator,
    credential: &str,
    parts: &Parts,
) -> Result<Caller, ApiError> {
    let known = authenticator.authenticate(credential, context(parts)).await?;
    if let Some(opened) = parts.extensions.get::<RequestCredential>() {
        opened.note(known.credential);
    }
    if let Some(PageWorkspace(of_page)) = parts.extensions.get::<PageWorkspace>()
        && *of_page != known.actor.named_workspace()
    {
        return Err(ApiError::new(ApiErrorKind::Conflict, "other_workspace", OTHER_WORKSPACE));
    }
    Ok(Caller { user: known.user, actor: Arc::new(known.actor) })
}

/// What the request says of itself.
fn context(parts: &Parts) -> RequestContext {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().trim().to_owned();
    RequestContext {
        workspace: parts.headers.get(WORKSPACE).map(|named| text(named).parse()),
        page_origin: parts.headers.get(header::ORIGIN).map(text),
        origin: origin(parts),
    }
}

/// Where a request came from.
fn origin(parts: &Parts) -> RequestOrigin {
    let client = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    RequestOrigin {
        address: client.map(|ConnectInfo(client)| client.ip()),
        request_id: parts.extensions.get::<RequestId>().map(|RequestId(id)| Arc::clone(id)),
    }
}

/// For those who are not known yet.
impl<S: Sync> FromRequestParts<S> for RequestOrigin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(origin(parts))
    }
}
