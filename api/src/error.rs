//! The one error of the API, and its form. Causes go to the log; a client sees a code and a sentence.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use lectern_shared::{
    compute::Stopped, db::DbError, db::storage::OverQuota, embed::EmbedError, limits::RetryAfter,
    search::SearchError, secrets::SecretError,
};
use serde::Serialize;

use crate::llm::{ChatError, ChatErrorKind, ModelConfigError};

/// Wrong fields that are named, at most: nobody reads more, and an answer must not be larger than what it answers.
pub(crate) const NAMED_ERRORS: usize = 100;
/// Bytes that are shown of a wrong field's path, which callers make up.
const LONGEST_PATH: usize = 200;
/// Bytes that are shown of what would be right, which can repeat something of the request.
const LONGEST_MESSAGE: usize = 2_000;

/// A field of the request that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    /// Where it stands, such as `llm.model`.
    pub(crate) path: String,
    /// What would be right.
    pub(crate) message: String,
}

impl FieldError {
    /// Both are cut where they are too long.
    pub(crate) fn new(path: &str, message: &str) -> Self {
        Self { path: beginning(path, LONGEST_PATH), message: beginning(message, LONGEST_MESSAGE) }
    }
}

fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

/// Why a request was not answered with success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) fields: Vec<FieldError>,
    /// Seconds after which the same request may work.
    pub(crate) retry_after: Option<u64>,
    /// What is shown although the request failed.
    pub(crate) data: Option<Box<serde_json::Value>>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), fields: Vec::new(), retry_after: None, data: None }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed_json", message)
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// For an unknown id and for any id of another user alike.
    pub(crate) fn not_found(noun: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("There is no such {noun}."))
    }

    pub(crate) fn conflict(message: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// Names the first [`NAMED_ERRORS`] of the fields.
    pub(crate) fn invalid(fields: Vec<FieldError>) -> Self {
        let message = match fields.len() {
            0..NAMED_ERRORS => "Some fields are not valid; see `fields`.",
            _ => "Many fields are not valid; see `fields`, which names 100 of them.",
        };
        let named = fields.into_iter().take(NAMED_ERRORS);
        let fields = named.map(|field| FieldError::new(&field.path, &field.message)).collect();
        Self { fields, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_fields", message) }
    }

    pub(crate) fn internal() -> Self {
        let message = "Something failed inside the service. The request id finds it in the log.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub(crate) fn too_many(code: &'static str, message: &str, wait: RetryAfter) -> Self {
        Self { retry_after: Some(wait.seconds()), ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, message) }
    }

    pub(crate) fn storage_full() -> Self {
        let message =
            "The service has no room left to store this. What is stored can be read, searched and deleted.";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "storage_full", message)
    }

    pub(crate) fn unavailable() -> Self {
        let message = "A part of the service is away; try again shortly.";
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message) }
    }
}

/// The body is made by [`crate::http::observe`], which knows the request's id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// What is told when a commit's answer was lost and the database is away.
const OUTCOME_UNKNOWN: &str = "The database went away while this was stored, so it may or may not have been done. Look before you \
                               try again, or send it again with the same Idempotency-Key.";

impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Duplicate => Self::conflict("This exists already."),
            DbError::Full(_) => {
                tracing::warn!(%error, "refused: the database has no room");
                Self::storage_full()
            }
            DbError::Failed(_) => {
                tracing::error!(%error, "the database failed");
                Self::unavailable()
            }
            DbError::CommitUnknown(_) => {
                tracing::error!(%error, "the outcome of a commit is not known");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "outcome_unknown", OUTCOME_UNKNOWN)
            }
            DbError::Unreadable(_) => {
                tracing::error!(%error, "a stored value cannot be read");
                Self::internal()
            }
        }
    }
}

impl From<OverQuota> for ApiError {
    fn from(over: OverQuota) -> Self {
        Self::new(StatusCode::FORBIDDEN, "quota_exceeded", format!("{over}."))
    }
}

impl From<Stopped> for ApiError {
    fn from(_: Stopped) -> Self {
        Self::internal()
    }
}

impl From<SecretError> for ApiError {
    fn from(error: SecretError) -> Self {
        tracing::error!(%error, "a stored secret cannot be read");
        Self::internal()
    }
}

impl From<ChatError> for ApiError {
    fn from(error: ChatError) -> Self {
        let status = StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::BAD_GATEWAY);
        let retry_after = match error.kind {
            ChatErrorKind::RateLimited { retry_after } => {
                Some(retry_after.map_or(1, |wait| wait.as_secs().max(1)))
            }
            _ => None,
        };
        Self { retry_after, ..Self::new(status, error.kind.code(), error.to_string()) }
    }
}

impl From<ModelConfigError> for ApiError {
    fn from(error: ModelConfigError) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "provider_not_available", error.to_string())
    }
}

impl From<EmbedError> for ApiError {
    fn from(error: EmbedError) -> Self {
        let failed = |retry_after, message: &str| Self {
            retry_after,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "embedding_model_unavailable", message)
        };
        match error {
            EmbedError::Away(_) => {
                tracing::warn!(%error, "the embedding model is away");
                let message =
                    "The embedding model is away; try again shortly, or set `mode` to `lexical` or `hybrid`.";
                failed(Some(1), message)
            }
            EmbedError::Refused(_) => {
                tracing::error!(%error, "the embedding model cannot be used");
                let message = "The embedding model cannot be used as the service is set up. Set `mode` to `lexical` \
                               or `hybrid`, or leave it out.";
                failed(None, message)
            }
            EmbedError::Stopped(error) => error.into(),
        }
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Db(error) => error.into(),
            SearchError::Index(error) => {
                tracing::error!(%error, "the index failed");
                Self::unavailable()
            }
            SearchError::NoModel => {
                let message = "The service has no embedding model, so it cannot search by meaning. Set `mode` to \
                               `lexical` or `hybrid`, or leave it out.";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "no_embedding_model", message)
            }
            SearchError::Embed(error) => error.into(),
            SearchError::Stopped(error) => error.into(),
        }
    }
}
