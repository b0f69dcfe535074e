//! Pages of other sites that may call the API from a browser.
//!
//! Two layers: [`preflight`] answers a browser's question before anything is counted against a limit or asked for
//! credentials, and [`headers`], the outermost, says on every answer, failures included, whether its page may read it.
//! Nothing here is about cookies, of which there are none, so `Access-Control-Allow-Credentials` is never sent.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use lectern_shared::config::CorsOrigins;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Autorization, X_SERVICE_API_KEY, X-Service-Api-Key, Content-Type, Idempotency-Key, X-Request-Id",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("X-Request-Id, Retry-After, Idempotent-Replayed");
/// Seconds for which a browser need not ask again; some keep an answer for no more than two hours.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const ANY: HeaderValue = HeaderValue::from_static("*");

/// Whose pages may call the API.
#[derive(Clone)]
pub(crate) enum CorsPolicy {
    Any,
    Exactly(Arc<[String]>),
}

impl CorsPolicy {
    /// None when it is nobody's, which needs no header at all.
    pub(crate) fn new(origins: &CorsOrigins) -> Option<Self> {
        match origins {
            CorsOrigins::None => None,
            CorsOrigins::Any => Some(Self::Any),
            CorsOrigins::Exactly(origins) => Some(Self::Exactly(origins.as_slice().into())),
        }
    }

    /// What to answer a page of `origin`: who may read.
    fn allowed(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        match self {
            Self::Any => Some(ANY),
            Self::Exactly(origins) => {
                origins.iter().any(|known| known.as_bytes() == origin.as_bytes()).then(|| origin.clone())
            }
        }
    }
}

/// Whether a browser asks what it may send.
fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers browsers' questions, at any path: what is not there is a matter of the request that follows.
pub(crate) async fn preflight(request: Request, next: Next) -> Response {
    if is_preflight(request.method(), request.headers()) {
        return StatusCode::NO_CONTENT.into_response();
    }
    next.run(request).await
}

/// Adds to each answer what a browser needs to show it to the page that asked.
pub(crate) async fn headers(State(cors): State<CorsPolicy>, request: Request, next: Next) -> Response {
    let preflight = is_preflight(request.method(), request.headers());
    let allowed = request.headers().get(header::ORIGIN).and_then(|origin| cors.allowed(origin));
    let mut response = next.run(request).await;
    let mut set = |name: HeaderName, value: HeaderValue| {
        response.headers_mut().append(name, value);
    };
    // Without an origin too: a cache must not give that answer to a page.
    if matches!(cors, CorsPolicy::Exactly(_)) {
        set(header::VARY, HeaderValue::from_static("Origin"));
    }
    let Some(allowed) = allowed else { return response };
    set(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    if preflight {
        set(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        set(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        set(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    } else {
        set(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}
