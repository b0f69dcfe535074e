//! How many requests one credential and one address may make, and how many of one address are worked on at once. Decided before
//! anything of the body is read and without the database, so that a refusal costs next to nothing.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use lectern_shared::clock::Clock;

use crate::{
    auth::headers::presented_credentials,
    dashboard,
    error::ApiError,
    limits::{LimitKey, RateLimiter},
};

/// Besides the pages.
const LIMITED: [&str; 5] = ["/api/v1", "/admin", "/v1", "/mcp", "/cite"];

/// Passes requests on, but answers 429 to those that are too many, of those that cost anything. A refused one counts for nothing.
pub(crate) async fn limit(
    State(limits): State<RateLimiter>,
    State(clock): State<Clock>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if !limits.limits_requests() || !(is_limited(path) || dashboard::is_page(path)) {
        return next.run(request).await;
    }
    let address = LimitKey::address(peer.ip());
    let answer = async {
        // Its address, its bearer token, its API token: as many as there are, and in no allocation of their own.
        let mut keys = [address; 3];
        let mut count = 1;
        for (slot, credential) in keys.iter_mut().skip(count).zip(presented_credentials(request.headers())) {
            *slot = LimitKey::credential(credential);
            count += 1;
        }
        let keys = keys.get(..count).unwrap_or(&keys);
        if let Err(wait) = limits.admit(keys, clock.now()).await {
            let message = "Too many requests. Wait before you send more.";
            return ApiError::too_many("rate_limited", message, wait).into_response();
        }
        next.run(request).await
    };
    limits.in_turn(address, answer).await
}

fn is_limited(path: &str) -> bool {
    LIMITED.iter().any(|limited| {
        path.strip_prefix(limited).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_takes_credentials_is_limited_and_nothing_else() {
        for path in [
            "/api/v1",
            "/api/v1/",
            "/api/v1/agents",
            "/api/v1/no/such/path",
            "/admin/jobs",
            "/v1/models",
            "/mcp",
            "/cite/x",
        ] {
            assert!(is_limited(path), "{path}");
        }
        for path in ["/health/live", "/health/ready", "/api/v10", "/api", "/administration", "/v10", "/mcpx"]
        {
            assert!(!is_limited(path), "{path}");
        }
    }
}
