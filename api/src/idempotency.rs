//! `Idempotency-Key` in requests and answers of the JSON interface: see [`crate::services::creation`].

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{FromRef, FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use lectern_shared::{
    ids::WorkspaceId,
    secrets::{hex, sha256},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    auth::Caller,
    body::{BodyReader, JsonBody},
    error::ApiError,
    extract::PathId,
    fields::{FromFields, SenderTrust, validate},
    openapi::SuccessResponse,
    services::{
        actor::Actor,
        creation::{CreationOutcome, IdempotentRequest, ResponseEncoder},
    },
    state::AppState,
};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Set on an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Longest key, in characters.
const LONGEST: usize = 255;

/// The valid JSON body of a request that creates something. An answer that was given to the same request before is given
/// again, and the handler is not called.
pub(crate) struct CreateRequest<T> {
    pub(crate) body: T,
    pub(crate) once: IdempotentRequest,
}

impl<T: FromFields + Send + 'static> FromRequest<AppState> for CreateRequest<T> {
    type Rejection = CreateRejection;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, CreateRejection> {
        let (mut parts, body) = request.into_parts();
        // Before the body is read. Whoever lost the credential that made something is not shown it again either.
        let caller = Caller::from_request_parts(&mut parts, state).await?;
        let key = IdempotencyKey::of(&parts.headers)?;
        let path = parts.uri.path().to_owned();
        let named = named_workspace(&mut parts).await?;
        let request = Request::from_parts(parts, body);
        let has_key = key.0.is_some();
        let read = move |sent: JsonBody| {
            let content = if has_key { canonical(&sent.value) } else { String::new() };
            (content, validate(&sent.value))
        };
        let (content, body) = BodyReader::from_ref(state).read_as(request, SenderTrust::Known, read).await?;
        let actor = acting(state, &caller, named).await?;
        let once = key.once(&actor, &path, content.as_bytes());
        // The database may take its time, for which the content is not held.
        drop(content);
        match state.services.creations.stored_response(&once).await? {
            Some(told) => Err(CreateRejection::Earlier(creation_response(CreationOutcome::Before(told)))),
            None => Ok(Self { body: body?, once }),
        }
    }
}

/// The same, whose body may be nothing at all, which says as much as an empty object.
pub(crate) struct OptionalCreateRequest<T>(pub(crate) CreateRequest<T>);

impl<T: FromFields + Send + 'static> FromRequest<AppState> for OptionalCreateRequest<T> {
    type Rejection = CreateRejection;

    async fn from_request(mut request: Request, state: &AppState) -> Result<Self, CreateRejection> {
        if request.body().is_end_stream() {
            *request.body_mut() = Body::from("{}");
            request.headers_mut().insert(header::CONTENT_TYPE, JSON);
        }
        CreateRequest::from_request(request, state).await.map(Self)
    }
}

/// A request that creates something and says all of it by its path: whatever its body is, it is not read.
pub(crate) struct BareCreateRequest(pub(crate) IdempotentRequest);

impl FromRequestParts<AppState> for BareCreateRequest {
    type Rejection = CreateRejection;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, CreateRejection> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let key = IdempotencyKey::of(&parts.headers)?;
        let named = named_workspace(parts).await?;
        let actor = acting(state, &caller, named).await?;
        let once = key.once(&actor, parts.uri.path(), &[]);
        match state.services.creations.stored_response(&once).await? {
            Some(told) => Err(CreateRejection::Earlier(creation_response(CreationOutcome::Before(told)))),
            None => Ok(Self(once)),
        }
    }
}

/// The workspace that the path is about, if it is about one.
async fn named_workspace(parts: &mut Parts) -> Result<Option<WorkspaceId>, ApiError> {
    // What handlers see of a path is behind `/api/v1`.
    if !parts.uri.path().starts_with("/workspaces/") {
        return Ok(None);
    }
    let PathId(id) = PathId::from_request_parts(parts, &()).await?;
    Ok(Some(id))
}

/// Who creates, and where: in the workspace that the path is about, if it is about one.
///
/// # Errors
/// Not found, where the caller is no member.
async fn acting(state: &AppState, caller: &Caller, named: Option<WorkspaceId>) -> Result<Actor, ApiError> {
    match named {
        None => Ok(Actor::clone(&caller.actor())),
        Some(id) => Ok(state.services.workspaces.enter(&caller.actor(), id).await?.0),
    }
}

/// The body as one text, whatever the order of its fields and the space between them.
fn canonical(body: &Value) -> String {
    let mut body = body.clone();
    body.sort_all_objects();
    body.to_string()
}

/// Why a creating handler is not called.
pub(crate) enum CreateRejection {
    Error(ApiError),
    /// It was called before.
    Earlier(Response),
}

impl IntoResponse for CreateRejection {
    fn into_response(self) -> Response {
        match self {
            Self::Error(error) => error.into_response(),
            Self::Earlier(response) => response,
        }
    }
}

impl From<ApiError> for CreateRejection {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

/// The caller's word for a request, if there is one.
pub(crate) struct IdempotencyKey(Option<String>);

impl IdempotencyKey {
    /// Reads the header.
    ///
    /// # Errors
    /// When it is there and no key, or is there twice.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut values = headers.get_all(KEY).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        let key = value.to_str().ok().filter(|key| (1..=LONGEST).contains(&key.len()) && !key.contains('\t'));
        match (key, values.next()) {
            (Some(key), None) => Ok(Self(Some(key.to_owned()))),
            (None, _) | (Some(_), Some(_)) => Err(ApiError::invalid_field(
                "Idempotency-Key",
                &format!("must be sent once, with 1 to {LONGEST} printable ASCII characters"),
            )),
        }
    }

    /// The key of a form of a page, by what the page put into it. What was changed before it was sent again is another form.
    pub(crate) fn of_form(nonce: Option<&str>, content: &str) -> Self {
        Self(nonce.map(|nonce| hex(&sha256(format!("{nonce}\n{content}").as_bytes()))))
    }

    /// Joins the key with what makes the request the same one: its path and its content.
    pub(crate) fn once(self, actor: &Actor, path: &str, content: &[u8]) -> IdempotentRequest {
        IdempotentRequest::new(actor, self.0, path, content)
    }
}

/// Tells what was made by how it is shown.
pub(crate) fn json_encoder<T, V: Serialize>(
    view: impl Fn(&T) -> Result<V, ApiError> + Send + Sync,
) -> impl ResponseEncoder<T> {
    move |made: &T| {
        serde_json::to_vec(&SuccessResponse { success: true, data: view(made)? }).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written as JSON");
            ApiError::internal()
        })
    }
}

/// The answer to a creating request.
pub(crate) fn creation_response(created: CreationOutcome) -> Response {
    let (told, replayed) = match created {
        CreationOutcome::Now(told) => (told, false),
        CreationOutcome::Before(told) => (told, true),
    };
    let mut response = Bytes::from(told).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ApiErrorKind;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        values.iter().map(|value| (KEY, HeaderValue::from_bytes(value).unwrap())).collect()
    }

    #[test]
    fn a_key_is_read_from_its_header_and_need_not_be_there() {
        assert!(IdempotencyKey::of(&HeaderMap::new()).unwrap().0.is_none());
        let longest = "k".repeat(LONGEST);
        for key in ["a", "7b0d3a52-6c1e-4f6e-9d0c-5e2f6f0f3a11", "order 17 / try \"2\"", &longest] {
            let read = IdempotencyKey::of(&headers(&[key.as_bytes()])).unwrap();
            assert_eq!(read.0.as_deref(), Some(key));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_by_the_name_of_its_header() {
        let too_long = "k".repeat(LONGEST + 1);
        let bad: [&[&[u8]]; 6] = [
            &[b""],
            &[too_long.as_bytes()],
            &["schl\u{fc}ssel".as_bytes()],
            &[b"\xff"],
            &[b"a\tb"],
            &[b"a", b"a"],
        ];
        for values in bad {
            let error = IdempotencyKey::of(&headers(values)).err().unwrap();
            assert_eq!(error.kind, ApiErrorKind::Invalid, "{values:?}");
            assert_eq!(error.fields[0].path, "Idempotency-Key", "{values:?}");
        }
    }

    #[test]
    fn bodies_are_the_same_when_they_say_the_same() {
        let read = |text: &str| canonical(&serde_json::from_str(text).unwrap());
        let body = r#"{"name":"a","llm":{"model":"m","provider":"p"},"tags":["x","y"]}"#;
        for same in [
            r#"{"llm": {"provider": "p", "model": "m"}, "tags": ["x", "y"], "name": "a"}"#,
            r#"{"name":"\u0061","llm":{"model":"m","provider":"p"},"tags":["x","y"]}"#,
        ] {
            assert_eq!(read(same), read(body));
        }
        for other in [
            json!({"name": "a", "llm": {"model": "m", "provider": "p"}, "tags": ["y", "x"]}),
            json!({"name": "a", "llm": {"model": "m", "provider": "q"}, "tags": ["x", "y"]}),
            json!({"name": "a", "llm": {"model": "m", "provider": "p"}}),
        ] {
            assert_ne!(canonical(&other), read(body));
        }
    }
}
