//! How a client is let in: RFC 9728. There is no authorization server yet: tokens are made in the service, and sent as bearers.

use axum::{Json, Router, http::HeaderValue, routing::get};
use serde_json::{Value, json};

use super::PATH;
use crate::{public_address::PublicAddress, state::AppState};

/// Where clients look that know the server's address alone.
const OF_HOST: &str = "/.well-known/oauth-protected-resource";
/// Where they look that know its path.
const OF_SERVER: &str = "/.well-known/oauth-protected-resource/mcp";

#[expect(clippy::disallowed_methods, reason = "the paths and the form are those of another document")]
pub(super) fn router() -> Router<AppState> {
    Router::new().route(OF_HOST, get(describe)).route(OF_SERVER, get(describe))
}

/// The server, as a protected resource.
async fn describe(address: PublicAddress) -> Json<Value> {
    Json(json!({
        "resource": address.link(PATH),
        "bearer_methods_supported": ["header"],
        "resource_name": "Lectern",
        "resource_documentation": address.link("/docs/"),
    }))
}

/// What is said to whoever has no credential.
pub(super) fn challenge(address: &PublicAddress) -> HeaderValue {
    let challenge = format!("Bearer resource_metadata=\"{}\"", address.link(OF_SERVER));
    HeaderValue::try_from(challenge).unwrap_or(HeaderValue::from_static("Bearer"))
}
