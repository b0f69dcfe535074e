//! What holds for every request: an id, one log line, the form of errors, and no panic that gets out.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    Json,
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use lectern_runtime::Runtime;
use lectern_shared::telemetry;
use serde_json::json;
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::{
    dashboard,
    error::{ApiError, ApiErrorKind},
    leftover::DrainableBody,
    mcp, openai,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The id of a request, for whoever notes it. It goes with every request.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// Longest caller-made request id that is taken over.
const LONGEST_ID: usize = 128;

/// The caller's own id, if it is a sane one; else a new one.
fn request_id(request: &Request) -> String {
    let sane = |id: &&str| {
        (1..=LONGEST_ID).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
    };
    let own = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(sane);
    own.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

/// Gives the request an id, answers errors and panics in the one form, and writes one log line.
pub(crate) async fn observe(State(runtime): State<Runtime>, request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let method = request.method().clone();
    // The pattern, not the path: paths hold ids.
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let face = ResponseFace::of(request.uri().path(), request.headers());
    let started = Instant::now();
    let in_flight = runtime.metrics.request_began();
    let span = span(&request, route.as_deref(), &id);
    let (parts, body) = request.into_parts();
    let leftover = DrainableBody::new(body);
    let mut request = Request::from_parts(parts, Body::new(leftover.clone()));
    request.extensions_mut().insert(RequestId(id.as_str().into()));
    let answer = async {
        let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
        let mut response = answered.unwrap_or_else(|_| {
            tracing::error!("the handler panicked");
            ApiError::internal().into_response()
        });
        leftover.drain();
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            let allow = response.headers_mut().remove(header::ALLOW);
            response = face.error_response(&error, &id);
            if let Some(allow) = allow {
                response.headers_mut().insert(header::ALLOW, allow);
            }
        }
        let status = response.status().as_u16();
        let took = started.elapsed();
        let milliseconds = took.as_secs_f64() * 1000.0;
        let route = route.as_deref().unwrap_or("unknown");
        drop(in_flight);
        runtime.metrics.request(known(&method), route, status, took);
        telemetry::note(&Span::current(), "http.response.status_code", i64::from(status));
        if status >= 500 {
            telemetry::note_failure(&Span::current());
        }
        match status {
            500.. => tracing::error!(%method, route, status, milliseconds, "request"),
            _ => tracing::info!(%method, route, status, milliseconds, "request"),
        }
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        if face == ResponseFace::OpenAi {
            openai::add_headers(&mut response, took);
        }
        response
    };
    answer.instrument(span).await
}

/// The method, if it is one that a path can have: others are whatever callers make up.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("OTHER")
}

/// The span of a request, in the caller's trace if it sends one.
fn span(request: &Request, route: Option<&str>, id: &str) -> Span {
    if !telemetry::is_exporting() {
        return tracing::info_span!("request", id);
    }
    let method = known(request.method());
    let name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    let span = tracing::info_span!("request", id, otel.kind = "server", otel.name = name);
    if let Some(parent) = request.headers().get(TRACE_PARENT).and_then(|value| value.to_str().ok()) {
        telemetry::follow(&span, parent);
    }
    telemetry::note(&span, "lectern.request.id", id.to_owned());
    telemetry::note(&span, "http.request.method", method);
    if let Some(route) = route {
        telemetry::note(&span, "http.route", route.to_owned());
    }
    span
}

/// The status code of an error's answer.
pub(crate) fn status_of(error: &ApiError) -> StatusCode {
    StatusCode::from_u16(error.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The body is made by [`observe`], which knows the request's id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = status_of(&self).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Whose form an answer has, by the path that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseFace {
    /// The service's own interface, and everything that is no face's.
    Json,
    OpenAi,
    Mcp,
    /// So many folders below the root.
    Page {
        depth: usize,
    },
}

impl ResponseFace {
    fn of(path: &str, headers: &HeaderMap) -> Self {
        let is_under =
            |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match () {
            () if is_under("/v1") => Self::OpenAi,
            () if is_under("/mcp") => Self::Mcp,
            // The scripts of a page read its answers as programs do.
            () if dashboard::is_page(path) && dashboard::wants_json(headers) => Self::Json,
            () if dashboard::is_page(path) || is_under("/cite") => {
                Self::Page { depth: path.matches('/').count().saturating_sub(1) }
            }
            () => Self::Json,
        }
    }

    /// The answer to a request that failed.
    fn error_response(self, error: &ApiError, request_id: &str) -> Response {
        let mut response = match self {
            Self::Json => error_body(error, request_id),
            Self::OpenAi => openai::error_response(error),
            Self::Mcp => mcp::error_response(error),
            Self::Page { depth } => dashboard::error_response(error, request_id, depth),
        };
        if let Some(seconds) = error.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if error.kind == ApiErrorKind::Unauthenticated
            && !response.headers().contains_key(header::WWW_AUTHENTICATE)
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

fn error_body(error: &ApiError, request_id: &str) -> Response {
    let mut body = json!({
        "success": false,
        "data": error.data,
        "error": {"code": error.code, "message": error.message},
        "requestId": request_id,
    });
    if !error.fields.is_empty()
        && let Some(object) = body.get_mut("error").and_then(|error| error.as_object_mut())
    {
        object.insert("fields".to_owned(), json!(error.fields));
    }
    (status_of(error), Json(body)).into_response()
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
