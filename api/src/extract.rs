//! What handlers take from a request. A handler never sees an invalid id or body.

use std::str::FromStr;

use axum::{
    RequestPartsExt,
    extract::{FromRef, FromRequest, FromRequestParts, Path, Request},
    http::{Uri, request::Parts},
};
use lectern_shared::ids::AgentId;
use serde_json::Value;

pub(crate) use crate::fields::JsonFields;
use crate::{
    auth::Caller,
    body::{BodyReader, SenderTrust},
    error::ApiError,
    fields,
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

/// A query parameter; the first one, if there are several.
pub(crate) fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query()?;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
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
        AgentService::from_ref(state).owned(caller.actor(), agent).await.map(|id| Self(Some(id)))
    }
}

/// A body that can be read from JSON fields.
pub(crate) trait FromFields: Sized {
    /// Who sends it. What a stranger may send is read before any credential is looked at, so it has to be small.
    const SENDER: SenderTrust = SenderTrust::Known;

    /// Reads the fields. What is wrong is noted in `fields`; the value is used only when nothing is.
    fn from_fields(fields: &mut JsonFields<'_>) -> Self;
}

/// A valid JSON body.
pub(crate) struct ValidJson<T>(pub(crate) T);

impl<T: FromFields, S: Send + Sync> FromRequest<S> for ValidJson<T>
where
    BodyReader: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = BodyReader::from_ref(state).read(request, T::SENDER).await?;
        validate(&body.value).map(Self)
    }
}

/// Makes a valid value of a body.
pub(crate) fn validate<T: FromFields>(body: &Value) -> Result<T, ApiError> {
    fields::read(body, T::from_fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What takes only a name.
    #[derive(Debug)]
    struct Named;

    impl FromFields for Named {
        fn from_fields(fields: &mut JsonFields<'_>) -> Self {
            fields.only(&["name"]);
            fields.nested("name", |fields| fields.only(&[]));
            Self
        }
    }

    #[test]
    fn of_many_wrong_fields_a_hundred_are_named() {
        let many = |name: &dyn Fn(usize) -> String| {
            Value::Object((0..100_000).map(|number| (name(number), json!(number))).collect())
        };
        let (unknown, nul) = (many(&|number| number.to_string()), many(&|number| format!("\0{number}")));
        let texts = json!({"name": {"texts": vec!["\0"; 100_000]}});
        for body in [json!({"name": unknown.clone()}), unknown, nul, texts] {
            let error = validate::<Named>(&body).unwrap_err();
            assert_eq!((error.kind.status(), error.fields.len()), (422, 100));
            assert!(error.message.contains("100"), "{}", error.message);
        }
    }

    #[test]
    fn a_name_that_is_very_long_is_not_repeated_whole() {
        let long = "ä".repeat(500_000);
        for body in [json!({long.clone(): 1}), json!({"name": {long.clone(): 1}}), json!({long: "\0"})] {
            let error = validate::<Named>(&body).unwrap_err();
            let longest = error.fields.iter().map(|field| field.path.len()).max().unwrap();
            assert!((100..1_000).contains(&longest), "{longest}");
        }
    }
}
