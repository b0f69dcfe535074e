//! Errors as answers of handlers. Their bodies are each face's own: [`crate::http`] makes them, which knows whose the request was, and
//! its id.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use lectern_agents::AgentError;

use crate::error::{ApiError, ApiErrorKind};

/// The status code of an error's answer.
pub(crate) fn status_of(error: &ApiError) -> StatusCode {
    StatusCode::from_u16(error.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Whether an error says that something is not set up here. Its status counts it to the failures, but nothing has failed that the
/// operator should look at.
pub(crate) fn is_not_set_up(error: &ApiError) -> bool {
    error.code == AgentError::NoEmbedder.code()
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = status_of(&self).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Answers for paths that do not exist.
pub(crate) async fn unknown_path() -> ApiError {
    ApiError::new(ApiErrorKind::NotFound, "not_found", "There is nothing at this path.")
}

/// Answers for methods that a path does not have.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(
        ApiErrorKind::MethodNotAllowed,
        "method_not_allowed",
        "This path does not take this method.",
    )
}
