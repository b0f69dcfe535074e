//! Pages of other sites that may call the API from a browser.
//!
//! The layer is the outermost: it answers a browser's question before anything is counted against a limit or asked for
//! credentials, and says on every answer, failures included, whether its page may read it. Nothing here is about cookies, of
//! which there are none, so `Access-Control-Allow-Credentials` is never sent.

use std::time::Duration;

use axum::http::{HeaderName, Method, header};
use lectern_shared::config::CorsOrigins;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser need not ask again; some keep an answer for no more than two hours.
const MAX_AGE: Duration = Duration::from_hours(2);

/// Tells browsers whose pages may call the API; none when it is nobody's, which needs no header at all.
pub(crate) fn layer(origins: &CorsOrigins) -> Option<CorsLayer> {
    let (allowed, varies) = match origins {
        CorsOrigins::None => return None,
        CorsOrigins::Any => (AllowOrigin::any(), Vec::new()),
        // On answers to requests without an origin too: a cache must not give one of them to a page.
        CorsOrigins::Exactly(origins) => (one_of(origins.clone()), vec![header::ORIGIN]),
    };
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .vary(varies)
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            HeaderName::from_static("autorization"),
            HeaderName::from_static("x_service_api_key"),
            HeaderName::from_static("x-service-api-key"),
            header::CONTENT_TYPE,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("x-request-id"),
            HeaderName::from_static("x-workspace"),
        ])
        .expose_headers([
            HeaderName::from_static("x-request-id"),
            header::RETRY_AFTER,
            HeaderName::from_static("idempotent-replayed"),
        ])
        .max_age(MAX_AGE);
    Some(layer)
}

/// A page of one of these origins, which are as browsers write them.
fn one_of(origins: Vec<String>) -> AllowOrigin {
    AllowOrigin::predicate(move |origin, _| origins.iter().any(|known| known.as_bytes() == origin.as_bytes()))
}
