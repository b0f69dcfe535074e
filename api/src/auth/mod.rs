//! Who is asking. Handlers take a [`Caller`] before anything of the body is read.

pub mod accounts;
pub(crate) mod in_force;
pub(crate) mod jwt;
pub(crate) mod password;
pub(crate) mod sign_in;
pub(crate) mod throttle;
pub(crate) mod token;

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{Extensions, HeaderMap, HeaderName, header, request::Parts},
};
use lectern_shared::{db, ids::UserId, model::user::User};

use self::in_force::{Credential, Opened};
use crate::{error::ApiError, state::AppState};

/// The spelling that the interface was published with.
const AUTORIZATION: HeaderName = HeaderName::from_static("autorization");
/// The API token's header, and the spelling that proxies let through.
const TOKEN_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x_service_api_key"), HeaderName::from_static("x-service-api-key")];

/// Whoever holds a valid bearer token: a JSON web token or an API token.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) User);

/// Like [`Caller`]; an API token's own header is read too.
#[derive(Clone, Debug)]
pub(crate) struct TokenCaller(pub(crate) User);

/// A [`Caller`] who may use the operator's endpoints. Looked up anew for each request, so that whoever loses it has lost it.
#[derive(Clone, Debug)]
pub(crate) struct Admin(pub(crate) User);

impl Admin {
    pub(crate) fn id(&self) -> UserId {
        self.0.id
    }
}

impl Caller {
    pub(crate) fn id(&self) -> UserId {
        self.0.id
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    AppState: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        // Another extractor of the same request may have asked.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let credential = bearer(&parts.headers)?.ok_or_else(|| ApiError::unauthorized(MISSING))?;
        let caller = Self(authenticate(&AppState::from_ref(state), credential, &parts.extensions).await?);
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Admin
where
    AppState: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Caller(user) = Caller::from_request_parts(parts, state).await?;
        if user.is_admin { Ok(Self(user)) } else { Err(ApiError::forbidden(NO_ADMIN)) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TokenCaller
where
    AppState: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let token = TOKEN_HEADERS.iter().find_map(|name| parts.headers.get(name)).map(|value| value.to_str());
        let credential = match token {
            Some(Ok(token)) => token.trim(),
            Some(Err(_)) => return Err(ApiError::unauthorized(INVALID)),
            None => bearer(&parts.headers)?.ok_or_else(|| ApiError::unauthorized(MISSING_TOKEN))?,
        };
        authenticate(&AppState::from_ref(state), credential, &parts.extensions).await.map(Self)
    }
}

const MISSING: &str =
    "Send the header `Authorization: Bearer <token>`, with a token from /auth/sign-in or an API token.";
const MISSING_TOKEN: &str = "Send the header `X_SERVICE_API_KEY` with the value of an API token.";
const NO_ADMIN: &str = "This is for admins. Your account is none.";
const INVALID: &str = "The credentials are not valid, or not valid any more. Sign in again.";

/// The credential behind `Bearer`, in either spelling of the header: a proxy may use the other one for itself.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut present = false;
    for name in [header::AUTHORIZATION, AUTORIZATION] {
        for value in headers.get_all(name) {
            present = true;
            let credential = value.to_str().ok().and_then(|value| value.split_once(' '));
            if let Some((_, credential)) =
                credential.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            {
                return Ok(Some(credential.trim()));
            }
        }
    }
    if present {
        Err(ApiError::unauthorized("The header must have the form `Bearer <token>`."))
    } else {
        Ok(None)
    }
}

/// Whose credential it is. What it was is noted in `extensions`, for answers that outlast it.
async fn authenticate(state: &AppState, credential: &str, extensions: &Extensions) -> Result<User, ApiError> {
    let (user, credential) =
        recognise(state, credential).await?.ok_or_else(|| ApiError::unauthorized(INVALID))?;
    if let Some(opened) = extensions.get::<Opened>() {
        opened.note(credential);
    }
    Ok(user)
}

async fn recognise(state: &AppState, credential: &str) -> Result<Option<(User, Credential)>, ApiError> {
    if credential.starts_with(token::PREFIX) {
        let found = token::authenticate(state, credential).await?;
        return Ok(found.map(|(id, user)| (user, Credential::Token(id))));
    }
    let Some(claims) = state.jwt.verify(credential, state.runtime.clock.now()) else { return Ok(None) };
    let user = db::accounts::find(&state.runtime.db, claims.sub).await?;
    let credential = Credential::SignIn { user: claims.sub, version: claims.ver, ends_at: claims.exp };
    Ok(user.filter(|user| user.token_version == claims.ver).map(|user| (user, credential)))
}
