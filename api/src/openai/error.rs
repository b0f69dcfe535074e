//! Errors in OpenAI's form. Their SDKs go by the status, and try 408, 409, 429 and everything from 500 on again unless they are told
//! not to; so they are, where it cannot help or might do something twice.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    error::{ApiError, ApiErrorKind},
    error_response::status_of,
};

/// Whether an SDK tries again, whatever the status is.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The same as `Retry-After`, in milliseconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The code of an unknown model, whose field is named.
const MODEL_NOT_FOUND: &str = "model_not_found";
/// The code of what a workspace has used up.
const QUOTA: &str = "quota_exceeded";

/// What is wrong, as these clients are told.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ErrorDetail {
    message: String,
    r#type: &'static str,
    /// The field that is wrong.
    param: Option<String>,
    pub(super) code: Option<&'static str>,
}

impl From<&ApiError> for ErrorDetail {
    fn from(error: &ApiError) -> Self {
        let (r#type, code) = type_and_code(error);
        let named = (error.code == MODEL_NOT_FOUND).then(|| "model".to_owned());
        let param = error.fields.first().map(|field| field.path.clone()).or(named);
        Self { message: message(error), r#type, param, code }
    }
}

impl ErrorDetail {
    /// `{"error": …}`, as it is answered and as a stream ends with it.
    pub(super) fn body(&self) -> Value {
        json!({"error": self})
    }

    /// What went wrong, in one sentence.
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

fn type_and_code(error: &ApiError) -> (&'static str, Option<&'static str>) {
    match error.kind {
        ApiErrorKind::Unauthenticated => ("invalid_request_error", Some("invalid_api_key")),
        ApiErrorKind::Forbidden if is_quota(error) => ("insufficient_quota", Some("insufficient_quota")),
        ApiErrorKind::Forbidden => ("permission_error", Some(error.code)),
        ApiErrorKind::RateLimited => ("requests", Some("rate_limit_exceeded")),
        ApiErrorKind::Malformed
        | ApiErrorKind::NotFound
        | ApiErrorKind::MethodNotAllowed
        | ApiErrorKind::TooSlow
        | ApiErrorKind::Conflict
        | ApiErrorKind::TooLarge
        | ApiErrorKind::UnsupportedType
        | ApiErrorKind::Invalid => ("invalid_request_error", Some(error.code)),
        ApiErrorKind::Internal
        | ApiErrorKind::Upstream
        | ApiErrorKind::Unavailable
        | ApiErrorKind::UpstreamTimeout
        | ApiErrorKind::StorageFull => ("server_error", Some(error.code)),
    }
}

/// One text that names every wrong field: these clients show nothing else.
fn message(error: &ApiError) -> String {
    if error.fields.is_empty() {
        return error.message.clone();
    }
    let fields = error.fields.iter().map(|field| format!("`{}` {}", field.path, field.message));
    format!("{}.", fields.collect::<Vec<_>>().join("; "))
}

fn is_quota(error: &ApiError) -> bool {
    error.kind == ApiErrorKind::Forbidden && error.code == QUOTA
}

/// The status that their SDKs have a class for.
fn status(error: &ApiError) -> StatusCode {
    match error.kind {
        ApiErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ApiErrorKind::Forbidden if is_quota(error) => StatusCode::TOO_MANY_REQUESTS,
        _ => status_of(error),
    }
}

/// Whether the same request would be tried again for nothing.
fn is_final(error: &ApiError) -> bool {
    match error.kind {
        // A run has tried its model again itself; what is away for a while says how long.
        ApiErrorKind::Conflict
        | ApiErrorKind::Upstream
        | ApiErrorKind::Unavailable
        | ApiErrorKind::UpstreamTimeout
        | ApiErrorKind::StorageFull => error.retry_after.is_none(),
        ApiErrorKind::Forbidden => is_quota(error),
        ApiErrorKind::Malformed
        | ApiErrorKind::Unauthenticated
        | ApiErrorKind::NotFound
        | ApiErrorKind::MethodNotAllowed
        | ApiErrorKind::TooSlow
        | ApiErrorKind::TooLarge
        | ApiErrorKind::UnsupportedType
        | ApiErrorKind::Invalid
        | ApiErrorKind::RateLimited
        | ApiErrorKind::Internal => false,
    }
}

/// The answer to a request of such a client that failed.
pub(crate) fn error_response(error: &ApiError) -> Response {
    let mut response = (status(error), Json(ErrorDetail::from(error).body())).into_response();
    if let Some(seconds) = error.retry_after {
        let milliseconds = HeaderValue::from(seconds.saturating_mul(1_000));
        response.headers_mut().insert(RETRY_AFTER_MS, milliseconds);
    }
    if is_final(error) {
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// What is said of a model that is not there, or that the caller may not use.
pub(super) fn unknown_model(name: &str, known: &str) -> ApiError {
    let message = format!("The model `{name}` does not exist, or you do not have access to it.{known}");
    ApiError::new(ApiErrorKind::NotFound, MODEL_NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FieldError;

    fn told(error: &ApiError) -> (u16, Value) {
        (status(error).as_u16(), ErrorDetail::from(error).body()["error"].clone())
    }

    fn header<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
        response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn a_wrong_field_is_a_bad_request_that_names_it_and_all_others() {
        let fields = vec![
            FieldError::new("messages.3.content.1.type", "is `image_url`"),
            FieldError::new("n", "must be 1"),
        ];
        let (status, error) = told(&ApiError::invalid(fields));
        assert_eq!(status, 400);
        assert_eq!(error["param"], "messages.3.content.1.type");
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(error["message"], "`messages.3.content.1.type` is `image_url`; `n` must be 1.");
    }

    #[test]
    fn each_kind_is_told_by_the_status_and_the_code_that_sdks_know() {
        let new = |kind, code| ApiError::new(kind, code, "Words.");
        for (error, status, r#type, code) in [
            (ApiError::unauthorized("Who?"), 401, "invalid_request_error", "invalid_api_key"),
            (new(ApiErrorKind::Forbidden, "role_required"), 403, "permission_error", "role_required"),
            (new(ApiErrorKind::Forbidden, QUOTA), 429, "insufficient_quota", "insufficient_quota"),
            (unknown_model("x", ""), 404, "invalid_request_error", MODEL_NOT_FOUND),
            (new(ApiErrorKind::RateLimited, "rate_limited"), 429, "requests", "rate_limit_exceeded"),
            (new(ApiErrorKind::TooLarge, "too_large"), 413, "invalid_request_error", "too_large"),
            (new(ApiErrorKind::Upstream, "model_refused"), 502, "server_error", "model_refused"),
            (new(ApiErrorKind::StorageFull, "storage_full"), 507, "server_error", "storage_full"),
        ] {
            let (answered, body) = told(&error);
            assert_eq!(answered, status, "{error:?}");
            assert_eq!(
                (body["type"].as_str(), body["code"].as_str()),
                (Some(r#type), Some(code)),
                "{error:?}"
            );
        }
        assert_eq!(told(&unknown_model("x", "")).1["param"], "model");
    }

    #[test]
    fn an_sdk_tries_again_only_where_that_can_help() {
        let new = |kind, code| ApiError::new(kind, code, "Words.");
        for error in [
            new(ApiErrorKind::Forbidden, QUOTA),
            new(ApiErrorKind::StorageFull, "storage_full"),
            new(ApiErrorKind::Conflict, "conflict"),
            new(ApiErrorKind::Upstream, "model_refused"),
        ] {
            assert_eq!(header(&error_response(&error), &SHOULD_RETRY), Some("false"), "{error:?}");
        }
        let limited = ApiError { retry_after: Some(7), ..new(ApiErrorKind::RateLimited, "rate_limited") };
        let response = error_response(&limited);
        assert_eq!(header(&response, &SHOULD_RETRY), None);
        assert_eq!(header(&response, &RETRY_AFTER_MS), Some("7000"));
        let away = ApiError { retry_after: Some(1), ..new(ApiErrorKind::Unavailable, "unavailable") };
        assert_eq!(header(&error_response(&away), &SHOULD_RETRY), None);
    }
}
