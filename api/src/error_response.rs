//! Errors as answers of handlers. Their bodies are each face's own: [`crate::http`] makes them, which knows whose the request was, and
//! its id.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};

use crate::error::{ApiError, ApiErrorKind};

/// The status code of an error's answer.
pub(crate) fn status_of(error: &ApiError) -> StatusCode {
    StatusCode::from_u16(error.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
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
