//! `Idempotency-Key`: a creating request that is sent again creates nothing again, and is answered as the first time. The
//! answer is kept in the transaction that creates, encrypted, because it can hold a token. A request that fails keeps nothing.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{FromRef, FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use lectern_shared::{
    db::{self, Tx},
    ids::UserId,
    runtime::Runtime,
    secrets::{Place, idempotency_row, sha256},
};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    auth::{Caller, in_force::over},
    body::{Bodies, Sender},
    error::{ApiError, FieldError},
    extract::{FromFields, validate},
    openapi::Data,
    response::Answer,
    state::AppState,
};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Set on an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// How long an answer is kept.
const KEPT: Duration = Duration::from_hours(24);
/// Longest key, in characters.
const LONGEST: usize = 255;
/// Bytes of the hash that tells one request from another.
const HASH: usize = 32;

/// The valid JSON body of a request that creates something. An answer that was given to the same request before is given
/// again, and the handler is not called.
pub(crate) struct Create<T> {
    pub(crate) body: T,
    pub(crate) once: Once,
}

impl<T: FromFields + Send> FromRequest<AppState> for Create<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        // Before the body is read. Whoever lost the credential that made something is not shown it again either.
        let caller = Caller::from_request_parts(&mut parts, state).await?;
        let key = IdempotencyKey::of(&parts.headers)?;
        let path = parts.uri.path().to_owned();
        let request = Request::from_parts(parts, body);
        let sent = Bodies::from_ref(state).read(request, Sender::Known).await?;
        let content = if key.0.is_some() { canonical(&sent.value) } else { String::new() };
        let once = key.once(&caller, &path, content.as_bytes());
        let body = validate(&sent.value);
        // The database may take its time, for which the memory of the whole body is not held.
        drop((sent, content));
        match once.earlier(&state.runtime).await? {
            Some(answer) => Err(Refusal::Earlier(answer)),
            None => Ok(Self { body: body?, once }),
        }
    }
}

/// The body as one text, whatever the order of its fields and the space between them.
fn canonical(body: &Value) -> String {
    let mut body = body.clone();
    body.sort_all_objects();
    body.to_string()
}

/// Why a creating handler is not called.
pub(crate) enum Refusal {
    Error(ApiError),
    /// It was called before.
    Earlier(Response),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Error(error) => error.into_response(),
            Self::Earlier(response) => response,
        }
    }
}

impl From<ApiError> for Refusal {
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
            (None, _) | (Some(_), Some(_)) => Err(ApiError::invalid(vec![FieldError {
                path: "Idempotency-Key".to_owned(),
                message: format!("must be sent once, with 1 to {LONGEST} printable ASCII characters"),
            }])),
        }
    }

    /// Joins the key with what makes the request the same one: its path and its content.
    pub(crate) fn once(self, caller: &Caller, path: &str, content: &[u8]) -> Once {
        let user = caller.id();
        let keyed = self.0.map(|key| {
            // No path has a line break in it.
            let hash = sha256(&[path.as_bytes(), b"\n", content].concat());
            Keyed { user, key, hash }
        });
        Once { user, keyed }
    }
}

/// A creating request that is to be answered once.
pub(crate) struct Once {
    user: UserId,
    keyed: Option<Keyed>,
}

struct Keyed {
    user: UserId,
    key: String,
    hash: [u8; HASH],
}

impl Keyed {
    fn row(&self) -> Uuid {
        idempotency_row(self.user, &self.key)
    }

    /// Encrypts an answer together with the hash of what was asked, which could tell a password that was in it.
    fn seal(&self, runtime: &Runtime, answer: &[u8]) -> Result<Vec<u8>, ApiError> {
        Ok(runtime.keyring.encrypt(place(&self.row()), &[&self.hash, answer].concat())?)
    }

    /// The answer, if it was given to this request.
    fn open(&self, runtime: &Runtime, sealed: &[u8]) -> Result<Vec<u8>, ApiError> {
        let mut hash = runtime.keyring.decrypt(place(&self.row()), sealed)?;
        let answer = hash.split_off(HASH.min(hash.len()));
        if hash == self.hash {
            return Ok(answer);
        }
        let message =
            "This Idempotency-Key was used for another request within the last 24 hours. Use a new one.";
        Err(ApiError::new(StatusCode::CONFLICT, "idempotency_key_reused", message))
    }
}

fn place(row: &Uuid) -> Place<'_> {
    Place::idempotent_answer(row)
}

impl Once {
    /// The answer that was given to this request before.
    ///
    /// # Errors
    /// A conflict when the key was used for another request.
    pub(crate) async fn earlier(&self, runtime: &Runtime) -> Result<Option<Response>, ApiError> {
        let Some(keyed) = &self.keyed else { return Ok(None) };
        let stored = db::idempotency::find(&runtime.db, keyed.user, &keyed.key, runtime.jobs.now()).await?;
        let Some(sealed) = stored else { return Ok(None) };
        let mut response = json_response(keyed.open(runtime, &sealed)?);
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        Ok(Some(response))
    }

    /// Commits what was created and answers with `view`. When the same request was quicker on another connection, nothing is
    /// created and its answer is given; nothing is created either for an account that was deleted meanwhile.
    pub(crate) async fn commit(self, runtime: &Runtime, mut tx: Tx, view: &impl Serialize) -> Answer {
        let body = serde_json::to_vec(&Data { success: true, data: view }).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written as JSON");
            ApiError::internal()
        })?;
        if let Some(keyed) = &self.keyed {
            let (sealed, now) = (keyed.seal(runtime, &body)?, runtime.jobs.now());
            let expires_at = now.plus(KEPT);
            if !db::idempotency::insert(&mut tx, keyed.user, &keyed.key, &sealed, now, expires_at).await? {
                // Rolls back, and gives its connection back for the look at the other's answer.
                drop(tx);
                let earlier = self.earlier(runtime).await?;
                return earlier
                    .ok_or_else(|| ApiError::conflict("The same request is being answered; try again."));
            }
        }
        // At last: what was added points to the account, so that it cannot go any more before this ends.
        if !db::accounts::is_active(&mut tx, self.user).await? {
            return Err(over());
        }
        tx.commit().await?;
        Ok(json_response(body))
    }
}

fn json_response(body: Vec<u8>) -> Response {
    let mut response = Bytes::from(body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            assert_eq!(error.status, StatusCode::UNPROCESSABLE_ENTITY, "{values:?}");
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
