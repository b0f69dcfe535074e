//! The one error of everything that can be asked of the service. Causes go to the log; a client sees a code and a sentence. How
//! it is told is each face's own: see [`crate::http`].

use lectern_agents::{
    AgentError,
    models::{ChatError, ChatErrorKind},
    search::SearchError,
    tools::secrets::RevealError,
};
use lectern_db::{DbError, storage::OverQuota};
use lectern_shared::{compute::ComputeStopped, failure::ServiceFailure, secrets::SecretError};
use serde::Serialize;

use crate::limits::RetryAfter;

/// Wrong fields that are named, at most: nobody reads more, and an answer must not be larger than what it answers.
pub(crate) const NAMED_ERRORS: usize = 100;
/// Bytes that are shown of a wrong field's path, which callers make up.
const LONGEST_PATH: usize = 200;
/// Bytes that are shown of what would be right, which can repeat something of the request.
const LONGEST_MESSAGE: usize = 2_000;

/// What the paths of values for an agent's prompt begin with, in a predict request.
const VALUES: &str = "input.";

/// A field of the request that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    /// Where it stands, such as `llm.model`.
    pub(crate) path: String,
    /// What would be right.
    pub(crate) message: String,
    /// What else than its value is wrong, for a face that says it in words of its own.
    #[serde(skip)]
    pub(crate) cause: FieldErrorCause,
}

/// Why a field is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldErrorCause {
    /// Such a value is never right.
    Value,
    /// It names a document that is not there, or is one of several.
    UnknownDocument,
}

impl FieldError {
    /// Both are cut where they are too long.
    pub(crate) fn new(path: &str, message: &str) -> Self {
        let (path, message) = (truncate(path, LONGEST_PATH), truncate(message, LONGEST_MESSAGE));
        Self { path, message, cause: FieldErrorCause::Value }
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
        Self::unauthorized(
            "The credentials are not valid, or not valid any more. Sign in again, or use another API token.",
        )
    }

    /// What is said when an API token opens nothing, or nothing any more.
    pub(crate) fn token_ended() -> Self {
        Self::unauthorized(
            "The API token is not valid, or not valid any more: it may have been deleted, or have expired.",
        )
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
        let within = |field: FieldError| FieldError {
            cause: field.cause,
            ..FieldError::new(&field.path, &field.message)
        };
        let fields = named.map(within).collect();
        Self { fields, ..Self::new(ApiErrorKind::Invalid, "invalid_fields", message) }
    }

    /// For one field.
    pub(crate) fn invalid_field(path: &str, message: &str) -> Self {
        Self::invalid(vec![FieldError::new(path, message)])
    }

    /// The same of a face where values for an agent's prompt stand in another place than predict's `input`.
    #[must_use]
    pub(crate) fn with_values_in(mut self, place: &str) -> Self {
        for field in &mut self.fields {
            if let Some(name) = field.path.strip_prefix(VALUES) {
                field.path = format!("{place}.{name}");
            }
        }
        self
    }

    pub(crate) fn internal() -> Self {
        ServiceFailure::Internal.into()
    }

    pub(crate) fn too_many(code: &'static str, message: &str, wait: RetryAfter) -> Self {
        Self { retry_after: Some(wait.seconds()), ..Self::new(ApiErrorKind::RateLimited, code, message) }
    }
}

impl From<ServiceFailure> for ApiError {
    fn from(failure: ServiceFailure) -> Self {
        let (kind, retry_after) = match failure {
            ServiceFailure::Duplicate => (ApiErrorKind::Conflict, None),
            ServiceFailure::StorageFull => (ApiErrorKind::StorageFull, None),
            ServiceFailure::Unavailable => (ApiErrorKind::Unavailable, Some(1)),
            ServiceFailure::OutcomeUnknown => (ApiErrorKind::Unavailable, None),
            ServiceFailure::Internal => (ApiErrorKind::Internal, None),
        };
        Self { retry_after, ..Self::new(kind, failure.code(), failure.to_string()) }
    }
}

impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        ServiceFailure::from(error).into()
    }
}

impl From<ComputeStopped> for ApiError {
    fn from(error: ComputeStopped) -> Self {
        ServiceFailure::from(error).into()
    }
}

impl From<SecretError> for ApiError {
    fn from(error: SecretError) -> Self {
        ServiceFailure::from(error).into()
    }
}

impl From<OverQuota> for ApiError {
    fn from(over: OverQuota) -> Self {
        Self::new(ApiErrorKind::Forbidden, "quota_exceeded", format!("{over}."))
    }
}

impl From<RevealError> for ApiError {
    fn from(error: RevealError) -> Self {
        match error {
            RevealError::Secret(error) => error.into(),
            // It is in the log already, with the tool's id.
            RevealError::Unreadable => Self::internal(),
        }
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        AgentError::from(error).into()
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        let (kind, retry_after) = match &error {
            AgentError::Service(failure) => return (*failure).into(),
            AgentError::UnknownAgent => return Self::not_found("agent"),
            AgentError::MissingValues(names) => {
                return Self::invalid(names.iter().map(|name| missing_value(name)).collect());
            }
            AgentError::PromptTooLong(limit) => {
                let message = format!("makes the agent's prompt longer than {limit} bytes");
                return Self::invalid_field("input", &message);
            }
            AgentError::Model(error) => of_model(error),
            AgentError::UnknownProvider | AgentError::ModelSetup(_) => (ApiErrorKind::Upstream, None),
            AgentError::NotRepeatable(_) => (ApiErrorKind::Conflict, None),
            AgentError::EmbedderAway => (ApiErrorKind::Unavailable, Some(1)),
            AgentError::NoEmbedder | AgentError::EmbedderRefused | AgentError::StreamNotRead => {
                (ApiErrorKind::Unavailable, None)
            }
        };
        Self { retry_after, ..Self::new(kind, error.code(), error.to_string()) }
    }
}

fn missing_value(name: &str) -> FieldError {
    FieldError::new(&format!("{VALUES}{name}"), "is required: the agent's prompt uses it")
}

/// The kind of a model's failure, and the seconds after which it may answer.
fn of_model(error: &ChatError) -> (ApiErrorKind, Option<u64>) {
    match error.kind {
        ChatErrorKind::RateLimited { retry_after } => {
            (ApiErrorKind::Unavailable, Some(retry_after.map_or(1, |wait| wait.as_secs().max(1))))
        }
        // No time is known after which there is credit again.
        ChatErrorKind::NoCredit { status: 429 } => (ApiErrorKind::Unavailable, None),
        ChatErrorKind::Timeout => (ApiErrorKind::UpstreamTimeout, None),
        _ => (ApiErrorKind::Upstream, None),
    }
}
