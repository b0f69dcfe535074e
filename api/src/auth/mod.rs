//! Who is asking, in terms of HTTP: the headers that credentials stand in, the extractors, and the layer that ends long answers
//! together with their credential. Routes and layers use it; of the service it knows [`Authenticator`] alone, and nothing of the
//! state, from which its extractors take that.

pub(crate) mod headers;
pub(crate) mod in_force;

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{Extensions, request::Parts},
};
use lectern_shared::{ids::UserId, model::user::User};

use self::{
    headers::{api_token, bearer},
    in_force::RequestCredential,
};
use crate::{
    error::ApiError,
    services::{Actor, credentials::Authenticator},
};

/// Whoever holds a valid bearer token: a JSON web token or an API token.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) User);

/// Like [`Caller`]; an API token's own header is read too.
#[derive(Clone, Debug)]
pub(crate) struct TokenCaller(pub(crate) User);

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
    pub(crate) fn actor(&self) -> Actor {
        Actor { user: self.0.id }
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
        let authenticator = Authenticator::from_ref(state);
        let caller = Self(authenticate(&authenticator, credential, &parts.extensions).await?);
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
        let Caller(user) = Caller::from_request_parts(parts, state).await?;
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
            Ok(Some(token)) => token,
            Ok(None) => bearer(&parts.headers)?.ok_or_else(|| ApiError::unauthorized(MISSING_TOKEN))?,
            Err(_) => return Err(ApiError::credential_ended()),
        };
        authenticate(&Authenticator::from_ref(state), credential, &parts.extensions).await.map(Self)
    }
}

const MISSING: &str =
    "Send the header `Authorization: Bearer <token>`, with a token from /auth/sign-in or an API token.";
const MISSING_TOKEN: &str = "Send the header `X_SERVICE_API_KEY` with the value of an API token.";
const NO_ADMIN: &str = "This is for admins. Your account is none.";

/// Whose credential it is. What it was is noted in `extensions`, for answers that outlast it.
async fn authenticate(
    authenticator: &Authenticator,
    credential: &str,
    extensions: &Extensions,
) -> Result<User, ApiError> {
    let (credential, user) = authenticator.authenticate(credential).await?;
    if let Some(opened) = extensions.get::<RequestCredential>() {
        opened.note(credential);
    }
    Ok(user)
}
