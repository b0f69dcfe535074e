//! What handlers take from a request. A handler never sees an invalid id or body.

use std::str::FromStr;

use axum::{
    RequestPartsExt,
    body::HttpBody,
    extract::{FromRef, FromRequest, FromRequestParts, Path, Request},
    http::{Uri, request::Parts},
};
use lectern_shared::ids::AgentId;
use serde_json::json;

use crate::{
    auth::Caller,
    body::BodyReader,
    error::ApiError,
    fields::{FromFields, validate},
    services::{agents::AgentService, credentials::Authenticator},
};

/// The id in the path. Text that cannot be one is an unknown id.
pub(crate) struct PathId<T>(pub(crate) T);

impl<T: FromStr, S: Send + Sync> FromRequestParts<S> for PathId<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found("id");
        let Path(text) = parts.extract::<Path<String>>().await.map_err(|_| unknown())?;
        text.parse().map(Self).map_err(|_| unknown())
    }
}

/// Two ids in the path, in the order in which they stand there. Text that cannot be one is an unknown id.
pub(crate) struct PathIds<A, B>(pub(crate) A, pub(crate) B);

impl<A: FromStr, B: FromStr, S: Send + Sync> FromRequestParts<S> for PathIds<A, B> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found("id");
        let Path((first, second)) = parts.extract::<Path<(String, String)>>().await.map_err(|_| unknown())?;
        match (first.parse::<A>(), second.parse::<B>()) {
            (Ok(first), Ok(second)) => Ok(Self(first, second)),
            (Err(_), _) | (_, Err(_)) => Err(unknown()),
        }
    }
}

/// A query parameter; the first one, if there are several.
pub(crate) fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query()?;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// The longest part of a name that is looked for, in characters: no name is longer.
pub(crate) const LONGEST_PART: usize = 1_000;

/// What the query looks for with `name`: a part of the names that are listed, empty for all of them.
pub(crate) struct NamePart(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for NamePart {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let part = parameter(&parts.uri, "name").unwrap_or_default();
        if part.contains('\0') {
            return Err(ApiError::invalid_field("name", "must not contain a NUL character"));
        }
        let part = part.trim();
        if part.chars().count() > LONGEST_PART {
            return Err(ApiError::invalid_field("name", "must have at most 1000 characters"));
        }
        Ok(Self(part.to_owned()))
    }
}

/// The caller's agent that the query names with `agentId`, if it names one. Not found, for an agent that is not the caller's.
pub(crate) struct QueriedAgent(pub(crate) Option<AgentId>);

impl<S: Send + Sync> FromRequestParts<S> for QueriedAgent
where
    Authenticator: FromRef<S>,
    AgentService: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let Some(text) = parameter(&parts.uri, "agentId") else { return Ok(Self(None)) };
        let agent = text.parse().map_err(|_| ApiError::not_found("agent"))?;
        AgentService::from_ref(state).owned(&caller.actor(), agent).await.map(|id| Self(Some(id)))
    }
}

/// A valid JSON body.
pub(crate) struct ValidJson<T>(pub(crate) T);

impl<T: FromFields + Send + 'static, S: Send + Sync> FromRequest<S> for ValidJson<T>
where
    BodyReader: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bodies = BodyReader::from_ref(state);
        bodies.read_as(request, T::SENDER, |body| validate(&body.value)).await?.map(Self)
    }
}

/// A valid JSON body, or nothing at all, which says as much as an empty object.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: FromFields + Send + 'static, S: Send + Sync> FromRequest<S> for OptionalJson<T>
where
    BodyReader: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if request.body().is_end_stream() {
            return validate(&json!({})).map(Self);
        }
        ValidJson::from_request(request, state).await.map(|ValidJson(body)| Self(body))
    }
}
