//! The one error of everything that can be asked of the service. Causes go to the log; a client sees a code and a sentence. How
//! it is told is each face's own: see [`crate::http`].

use lectern_embed::EmbedError;
use lectern_shared::{
    compute::ComputeStopped,
    db::{DbError, storage::OverQuota},
    secrets::SecretError,
};
use serde::Serialize;

use crate::{
    limits::RetryAfter,
    llm::{ChatError, ChatErrorKind, ModelConfigError},
    search::SearchError,
};

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
        Self { path: truncate(path, LONGEST_PATH), message: truncate(message, LONGEST_MESSAGE) }
    }
}

fn truncate(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

/// What sort of failure it is: what a client can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiErrorKind {
    /// What was sent cannot be read.
    Malformed,
    /// Nobody knows who asks.
    Unauthenticated,
    /// Whoever asks may not.
    Forbidden,
    /// It is not there, or is somebody else's.
    NotFound,
    /// This cannot be done to what the path names.
    MethodNotAllowed,
    /// The request did not come to its end in time.
    TooSlow,
    /// Something else stands against it.
    Conflict,
    /// More than is taken.
    TooLarge,
    /// Of a type that is not taken.
    UnsupportedType,
    /// It can be read, and some of it cannot be meant.
    Invalid,
    /// Too often.
    RateLimited,
    /// Something broke here.
    Internal,
    /// A model's provider failed.
    Upstream,
    /// Not now.
    Unavailable,
    /// A model's provider took too long.
    UpstreamTimeout,
    /// There is no room to store it.
    StorageFull,
}

impl ApiErrorKind {
    /// The status code of HTTP for it.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::TooSlow => 408,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedType => 415,
            Self::Invalid => 422,
            Self::RateLimited => 429,
            Self::Internal => 500,
            Self::Upstream => 502,
            Self::Unavailable => 503,
            Self::UpstreamTimeout => 504,
            Self::StorageFull => 507,
        }
    }
}

/// Why a request was not answered with success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) kind: ApiErrorKind,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) fields: Vec<FieldError>,
    /// Seconds after which the same request may work.
    pub(crate) retry_after: Option<u64>,
    /// What is shown although the request failed.
    pub(crate) data: Option<Box<serde_json::Value>>,
}

impl ApiError {
    pub(crate) fn new(kind: ApiErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), fields: Vec::new(), retry_after: None, data: None }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ApiErrorKind::Malformed, "malformed_json", message)
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self::new(ApiErrorKind::Unauthenticated, "unauthorized", message)
    }

    /// What is said when a credential has ended.
    pub(crate) fn credential_ended() -> Self {
        Self::unauthorized("The credentials are not valid, or not valid any more. Sign in again.")
    }

    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(ApiErrorKind::Forbidden, "forbidden", message)
    }

    /// For an unknown id and for any id of another user alike.
    pub(crate) fn not_found(noun: &str) -> Self {
        Self::new(ApiErrorKind::NotFound, "not_found", format!("There is no such {noun}."))
    }

    pub(crate) fn conflict(message: &str) -> Self {
        Self::new(ApiErrorKind::Conflict, "conflict", message)
    }

    /// Names the first [`NAMED_ERRORS`] of the fields.
    pub(crate) fn invalid(fields: Vec<FieldError>) -> Self {
        let message = match fields.len() {
            0..NAMED_ERRORS => "Some fields are not valid; see `fields`.",
            _ => "Many fields are not valid; see `fields`, which names 100 of them.",
        };
        let named = fields.into_iter().take(NAMED_ERRORS);
        let fields = named.map(|field| FieldError::new(&field.path, &field.message)).collect();
        Self { fields, ..Self::new(ApiErrorKind::Invalid, "invalid_fields", message) }
    }

    pub(crate) fn internal() -> Self {
        let message = "Something failed inside the service. The request id finds it in the log.";
        Self::new(ApiErrorKind::Internal, "internal", message)
    }

    pub(crate) fn too_many(code: &'static str, message: &str, wait: RetryAfter) -> Self {
        Self { retry_after: Some(wait.seconds()), ..Self::new(ApiErrorKind::RateLimited, code, message) }
    }

    pub(crate) fn storage_full() -> Self {
        let message =
            "The service has no room left to store this. What is stored can be read, searched and deleted.";
        Self::new(ApiErrorKind::StorageFull, "storage_full", message)
    }

    pub(crate) fn unavailable() -> Self {
        let message = "A part of the service is away; try again shortly.";
        Self { retry_after: Some(1), ..Self::new(ApiErrorKind::Unavailable, "unavailable", message) }
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
                Self::new(ApiErrorKind::Unavailable, "outcome_unknown", OUTCOME_UNKNOWN)
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
        Self::new(ApiErrorKind::Forbidden, "quota_exceeded", format!("{over}."))
    }
}

impl From<ComputeStopped> for ApiError {
    fn from(_: ComputeStopped) -> Self {
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
        let kind = match error.kind {
            ChatErrorKind::RateLimited { .. } => ApiErrorKind::Unavailable,
            ChatErrorKind::Timeout => ApiErrorKind::UpstreamTimeout,
            _ => ApiErrorKind::Upstream,
        };
        let retry_after = match error.kind {
            ChatErrorKind::RateLimited { retry_after } => {
                Some(retry_after.map_or(1, |wait| wait.as_secs().max(1)))
            }
            _ => None,
        };
        Self { retry_after, ..Self::new(kind, error.kind.code(), error.to_string()) }
    }
}

impl From<ModelConfigError> for ApiError {
    fn from(error: ModelConfigError) -> Self {
        Self::new(ApiErrorKind::Upstream, "provider_not_available", error.to_string())
    }
}

impl From<EmbedError> for ApiError {
    fn from(error: EmbedError) -> Self {
        let failed = |retry_after, message: &str| Self {
            retry_after,
            ..Self::new(ApiErrorKind::Unavailable, "embedding_model_unavailable", message)
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
                Self::new(ApiErrorKind::Unavailable, "no_embedding_model", message)
            }
            SearchError::Embed(error) => error.into(),
            SearchError::Stopped(error) => error.into(),
        }
    }
}
