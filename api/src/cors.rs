//! Pages of other sites that may call the API from a browser.
//!
//! Only the layer that observes is outside of this one: it answers a browser's question before anything is counted against a limit or
//! asked for credentials, whether or not there is something at the path, and says on every answer, failures included, whether its page
//! may read it. Cookies are for this service's own pages
//! alone, so `Access-Control-Allow-Credentials` is never sent.

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderName, HeaderValue, Method, header};
use lectern_shared::config::CorsOrigins;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::services::tokens::PageOrigins;

/// How long a browser need not ask again; some keep an answer for no more than two hours.
const MAX_AGE: Duration = Duration::from_hours(2);

/// Headers that pages may send: the service's own,
const OF_SERVICE: [&str; 8] = [
    "authorization",
    "autorization",
    "x_service_api_key",
    "x-service-api-key",
    "content-type",
    "idempotency-key",
    "x-request-id",
    "x-workspace",
];
/// what OpenAI's packages add in a browser,
const OF_OPENAI_CLIENTS: [&str; 17] = [
    // Some browsers let pages set it, and then ask.
    "user-agent",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "x-stainless-arch",
    "x-stainless-async",
    "x-stainless-custom-poll-interval",
    "x-stainless-helper-method",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-poll-helper",
    "x-stainless-read-timeout",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
    "x-stainless-timeout",
];
/// and what clients of the Model Context Protocol do.
const OF_MCP_CLIENTS: [&str; 5] =
    ["last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"];
/// Headers of answers that pages may read.
const READABLE: [&str; 11] = [
    "x-request-id",
    "etag",
    "lectern-page-boxes",
    "retry-after",
    "retry-after-ms",
    "idempotent-replayed",
    "openai-poll-after-ms",
    "openai-processing-ms",
    "x-should-retry",
    "mcp-session-id",
    "www-authenticate",
];

fn names(names: &[&'static str]) -> Vec<HeaderName> {
    names.iter().copied().map(HeaderName::from_static).collect()
}

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
        .allow_headers(names(&[&OF_SERVICE[..], &OF_OPENAI_CLIENTS, &OF_MCP_CLIENTS].concat()))
        .expose_headers(names(&READABLE))
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
