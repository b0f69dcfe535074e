//! Whether the service lives, and whether it can do its work.

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use lectern_shared::{health, runtime::Runtime};
use serde_json::json;

use crate::{error::ApiError, response::data, state::AppState};

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/health/live", get(live)).route("/health/ready", get(ready))
}

async fn live() -> Response {
    data(json!({"status": "live"}))
}

async fn ready(State(runtime): State<Runtime>) -> Response {
    let health = health::check(&runtime).await;
    if health.ready {
        return data(json!({"status": "ready", "parts": health.parts}));
    }
    let error = ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "not_ready",
        "A part of the service is down; see `data`.",
    );
    let shown = json!({"status": "not_ready", "parts": health.parts});
    ApiError { data: Some(Box::new(shown)), ..error }.into_response()
}
