//! Pages of other sites that may call the API from a browser.
//!
//! The layer is the outermost: it answers a browser's question before anything is counted against a limit or asked for
//! credentials, and says on every answer, failures included, whether its page may read it. Nothing here is about cookies, of
//! which there are none, so `Access-Control-Allow-Credentials` is never sent.

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderName, HeaderValue, Method, header};
use lectern_shared::config::CorsOrigins;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::services::tokens::PageOrigins;

/// How long a browser need not ask again; some keep an answer for no more than two hours.
const MAX_AGE: Duration = Duration::from_hours(2);

/// Tells browsers whose pages may call the API: those that the settings name, and those that API tokens are for.
pub(crate) fn layer(origins: &CorsOrigins, pages: PageOrigins) -> CorsLayer {
    let (allowed, varies) = match origins {
        CorsOrigins::Any => (AllowOrigin::any(), Vec::new()),
        // On answers to requests without an origin too: a cache must not give one of them to a page.
        CorsOrigins::None => (one_of(Vec::new(), pages), vec![header::ORIGIN]),
        CorsOrigins::Exactly(origins) => (one_of(origins.clone(), pages), vec![header::ORIGIN]),
    };
    CorsLayer::new()
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
        .max_age(MAX_AGE)
}

/// A page of one of these origins, which are as browsers write them, or of one that an API token is for.
fn one_of(origins: Vec<String>, pages: PageOrigins) -> AllowOrigin {
    let origins: Arc<[String]> = origins.into();
    AllowOrigin::async_predicate(move |origin: HeaderValue, _| async move {
        let Ok(origin) = origin.to_str() else { return false };
        origins.iter().any(|known| known == origin) || pages.allows(origin).await
    })
}
