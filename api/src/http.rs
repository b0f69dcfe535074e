//! What holds for every request: an id, one log line, the form of errors, no panic that gets out, no cache that keeps what it was not told
//! to, and no browser that guesses what an answer is.

use std::{panic::AssertUnwindSafe, time::Instant};

use axum::{
    Extension, Json,
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use lectern_runtime::Runtime;
use lectern_shared::telemetry;
use serde_json::json;
use tracing::{Instrument, Span};

use crate::{
    dashboard::{self, FailureFrame},
    error::{ApiError, ApiErrorKind},
    error_response::{is_not_set_up, status_of},
    leftover::DrainableBody,
    mcp, openai,
    request_id::{self, RequestId},
};

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// Noted with an answer whose status counts it to the failures although nothing has failed.
#[derive(Clone, Copy)]
struct ExpectedFailure;

/// Gives the request an id, its answer the headers that all of them have, and writes one log line.
pub(crate) async fn observe(State(runtime): State<Runtime>, request: Request, next: Next) -> Response {
    let id = RequestId::of(&request);
    let method = request.method().clone();
    let face = ResponseFace::of(&request);
    // The pattern, not the path: paths hold ids.
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let started = Instant::now();
    let in_flight = runtime.metrics.request_began();
    let span = span(&request, route.as_deref(), id.as_str());
    let (parts, body) = request.into_parts();
    let leftover = DrainableBody::new(body);
    let mut request = Request::from_parts(parts, Body::new(leftover.clone()));
    request.extensions_mut().insert(id.clone());
    let answer = async {
        let mut response = next.run(request).await;
        leftover.drain();
        let is_expected = response.extensions_mut().remove::<ExpectedFailure>().is_some();
        let status = response.status().as_u16();
        let took = started.elapsed();
        let milliseconds = took.as_secs_f64() * 1000.0;
        let route = route.as_deref().unwrap_or("unknown");
        drop(in_flight);
        runtime.metrics.request(known(&method), route, status, took);
        telemetry::note(&Span::current(), "http.response.status_code", i64::from(status));
        if status >= 500 && !is_expected {
            telemetry::note_failure(&Span::current());
            tracing::error!(%method, route, status, milliseconds, "request");
        } else {
            tracing::info!(%method, route, status, milliseconds, "request");
        }
        if let Ok(value) = HeaderValue::from_str(id.as_str()) {
            response.headers_mut().insert(request_id::HEADER, value);
        }
        protect(response.headers_mut());
        if face == ResponseFace::OpenAi {
            openai::add_headers(&mut response, took);
        }
        response
    };
    answer.instrument(span).await
}

/// Says how an answer is kept and read, where it does not say so itself.
fn protect(headers: &mut HeaderMap) {
    // A cache between us and the clients may know only one of the headers that credentials stand in.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-store"));
    // What users wrote is nowhere taken for a page or a script, whatever it looks like.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Answers errors and panics in the form of whose the request was.
pub(crate) async fn answer_failures(
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let face = ResponseFace::of(&request);
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut answer = answered.unwrap_or_else(|_| {
        tracing::error!("the handler panicked");
        ApiError::internal().into_response()
    });
    let Some(error) = answer.extensions_mut().remove::<ApiError>() else { return answer };
    let frame = answer.extensions_mut().remove::<FailureFrame>();
    let mut response = face.error_response(&error, id.as_str(), frame.as_ref());
    if let Some(allow) = answer.headers_mut().remove(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    if is_not_set_up(&error) {
        response.extensions_mut().insert(ExpectedFailure);
    }
    response
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
    fn of(request: &Request) -> Self {
        let (path, headers) = (request.uri().path(), request.headers());
        let is_known = request.extensions().get::<MatchedPath>().is_some();
        let is_under =
            |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match () {
            () if is_under("/v1") => Self::OpenAi,
            () if is_under("/mcp") => Self::Mcp,
            // The scripts of a page read its answers as programs do.
            () if dashboard::is_page(path) && dashboard::wants_json(headers) => Self::Json,
            () if dashboard::is_page(path) || is_under("/cite") => Self::page(path),
            // Whoever typed an address wants words; programs do not ask for pages.
            () if !is_known && !is_under("/api") && !is_under("/admin") && dashboard::wants_page(headers) => {
                Self::page(path)
            }
            () => Self::Json,
        }
    }

    fn page(path: &str) -> Self {
        Self::Page { depth: path.matches('/').count().saturating_sub(1) }
    }

    /// The answer to a request that failed. On a page, the menu stands around it where that is known.
    fn error_response(self, error: &ApiError, request_id: &str, frame: Option<&FailureFrame>) -> Response {
        let mut response = match self {
            Self::Json => error_body(error, request_id),
            Self::OpenAi => openai::error_response(error),
            Self::Mcp => mcp::error_response(error),
            Self::Page { depth } => dashboard::error_response(error, request_id, depth, frame),
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
