//! Errors as answers of handlers. Their bodies are each face's own: [`crate::http`] makes them, which knows whose the request was, and
//! its id.

use axum::{
    http::{StatusCode, Uri},
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

/// What OpenAI's clients ask for first, behind the address that they are given.
const OF_OPENAI_CLIENTS: [&str; 6] =
    ["/chat/completions", "/responses", "/embeddings", "/models", "/files", "/vector_stores"];

/// Answers for paths that no route has. Clients whose address lacks the `/v1`, or has more than that, are told so.
pub(crate) async fn unrouted_path(uri: Uri) -> ApiError {
    let unknown = unknown_path().await;
    if !OF_OPENAI_CLIENTS.iter().any(|path| uri.path().ends_with(path)) {
        return unknown;
    }
    let message =
        format!("{} OpenAI's clients want the service's address with `/v1` behind it.", unknown.message);
    ApiError { message, ..unknown }
}

/// Answers for methods that a path does not have.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(
        ApiErrorKind::MethodNotAllowed,
        "method_not_allowed",
        "This path does not take this method.",
    )
}
