//! `Idempotency-Key`: a creating request that is sent again creates nothing again, and is answered as the first time. The
//! answer is kept in the transaction that creates, encrypted, because it can hold a token.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use lectern_shared::{
    db::{self, Tx, idempotency::StoredAnswer},
    ids::UserId,
    runtime::Runtime,
    secrets::{Place, sha256},
};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::{
    auth::Caller,
    error::{ApiError, FieldError},
    extract::{FromFields, read_json, validate},
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

/// The valid JSON body of a request that creates something. An answer that was given to the same request before is given
/// again, and the handler is not called.
pub(crate) struct Create<T> {
    pub(crate) body: T,
    pub(crate) once: Once,
}

impl<T: FromFields> FromRequest<AppState> for Create<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        // Before the body is read.
        let caller = Caller::from_request_parts(&mut parts, state).await?;
        let key = IdempotencyKey::of(&parts.headers)?;
        let target = parts.uri.path().to_owned();
        let request = Request::from_parts(parts, body);
        let body = read_json(request, state.runtime.settings.limits.body_bytes).await?;
        let once = key.once(&caller, &target, body.to_string().as_bytes());
        match once.earlier(&state.runtime).await? {
            Some(answer) => Err(Refusal::Earlier(answer)),
            None => Ok(Self { body: validate(&body)?, once }),
        }
    }
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
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let Some(value) = headers.get(KEY) else { return Ok(Self(None)) };
        match value.to_str() {
            Ok(key) if (1..=LONGEST).contains(&key.len()) => Ok(Self(Some(key.to_owned()))),
            Ok(_) | Err(_) => Err(ApiError::invalid(vec![FieldError {
                path: "Idempotency-Key".to_owned(),
                message: format!("must have between 1 and {LONGEST} visible ASCII characters"),
            }])),
        }
    }

    /// Joins the key with what makes the request the same one: its path and its content.
    pub(crate) fn once(self, caller: &Caller, path: &str, content: &[u8]) -> Once {
        Once(self.0.map(|key| {
            let hash = sha256(&[path.as_bytes(), b"\n", content].concat());
            Keyed { user: caller.id(), key, hash }
        }))
    }
}

/// A creating request that is to be answered once.
pub(crate) struct Once(Option<Keyed>);

struct Keyed {
    user: UserId,
    key: String,
    hash: [u8; 32],
}

fn place(row: &Uuid) -> Place<'_> {
    Place { table: "idempotency", row, column: "answer" }
}

impl Once {
    /// The answer that was given to this request before.
    ///
    /// # Errors
    /// A conflict when the key was used for another request.
    pub(crate) async fn earlier(&self, runtime: &Runtime) -> Result<Option<Response>, ApiError> {
        let Some(Keyed { user, key, hash }) = &self.0 else { return Ok(None) };
        let Some(stored) = db::idempotency::find(&runtime.db, *user, key, runtime.jobs.now()).await? else {
            return Ok(None);
        };
        if stored.request_hash != hash {
            let message =
                "This Idempotency-Key was used for another request within the last 24 hours. Use a new one.";
            return Err(ApiError::conflict(message));
        }
        let body = runtime.keyring.decrypt(place(&stored.row_id), &stored.answer_sealed)?;
        let mut response = json_response(body);
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        Ok(Some(response))
    }

    /// Commits what was created and answers with `view`. When the same request was quicker on another connection, nothing is
    /// created and its answer is given.
    pub(crate) async fn commit(self, runtime: &Runtime, mut tx: Tx, view: &impl Serialize) -> Answer {
        let body = serde_json::to_vec(&json!({"success": true, "data": view}));
        let body = body.map_err(|_| ApiError::internal())?;
        if let Some(Keyed { user, key, hash }) = &self.0 {
            let row_id = Uuid::now_v7();
            let answer = StoredAnswer {
                row_id,
                request_hash: hash.to_vec(),
                answer_sealed: runtime.keyring.encrypt(place(&row_id), &body)?,
            };
            let now = runtime.jobs.now();
            if !db::idempotency::insert(&mut tx, *user, key, &answer, now, now.plus(KEPT)).await? {
                drop(tx);
                let earlier = self.earlier(runtime).await?;
                return earlier.ok_or_else(|| ApiError::conflict("The same request is being answered; try again."));
            }
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
