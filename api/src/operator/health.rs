//! Whether the service lives, whether it can do its work, and what it has counted.

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use lectern_derive::handler;
use lectern_runtime::{Runtime, health};
use lectern_shared::metrics::{self, CONTENT_TYPE};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    error::{ApiError, ApiErrorKind},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::data,
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(live)).routes(routes!(ready)).routes(routes!(read_metrics))
}

/// A process that answers.
#[derive(Serialize, ToSchema)]
#[schema(as = Liveness)]
struct LivenessView {
    /// `live`.
    status: &'static str,
}

/// What the service's work depends on.
#[derive(Serialize, ToSchema)]
#[schema(as = Readiness)]
struct ReadinessView {
    /// `ready`, or `not_ready` when a part that is needed is down.
    status: &'static str,
    /// Each part by its name; `status` is `up` or `down`, and what else is known of the part stands beside it. Of the embedding
    /// model it is `up`, `off` (none is wanted), `opening`, `downloading` or `none` (`reason` says why); the service is ready without it.
    #[schema(value_type = Object)]
    parts: Value,
}

/// Whether the process lives
///
/// Answers as long as the process can answer at all, whatever else is down.
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "Service",
    operation_id = "getLiveness",
    security(()),
    responses((
        status = 200,
        description = "It does",
        body = inline(SuccessResponse<LivenessView>),
        example = json!({"success": true, "data": {"status": "live"}}),
    )),
)]
async fn live() -> Response {
    data(LivenessView { status: "live" })
}

/// Whether the service can do its work
///
/// Asks every part that the service depends on. For alarms, and not for a balancer's choice: all processes share these parts, so
/// none would be left.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "Service",
    operation_id = "getReadiness",
    security(()),
    responses(
        (
            status = 200,
            description = "It can",
            body = inline(SuccessResponse<ReadinessView>),
            example = json!({"success": true, "data": {"status": "ready", "parts": {
                "database": {"kind": "sqlite", "status": "up"},
                "queue": {"kind": "in-process", "due": 0, "oldestDueSeconds": null, "waiting": 0, "running": 0, "dead": 0, "status": "up"},
                "index": {"kind": "embedded", "status": "up"},
                "blobs": {"kind": "folder", "status": "up"},
                "embedder": {"status": "up", "search": "hybrid", "model": "sentence-transformers/all-MiniLM-L6-v2", "dimensions": 384},
            }}}),
        ),
        (status = 503, description = "A part that is needed is down; `data` is the state of all of them"),
    ),
)]
#[handler]
async fn ready(State(runtime): State<Runtime>) -> Response {
    let health = Box::pin(health::check(&runtime)).await;
    if health.ready {
        return data(ReadinessView { status: "ready", parts: health.parts });
    }
    let error =
        ApiError::new(ApiErrorKind::Unavailable, "not_ready", "A part of the service is down; see `data`.");
    let shown = json!(ReadinessView { status: "not_ready", parts: health.parts });
    ApiError { data: Some(Box::new(shown)), ..error }.into_response()
}

/// What this process has counted and timed
///
/// The metrics of Prometheus, in its text format. Where the operator has set `LECTERN_METRICS_TOKEN`, that is the bearer token
/// to send; an account's is none.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "Service",
    operation_id = "getMetrics",
    security(()),
    responses(
        (
            status = 200,
            description = "The metrics",
            body = String,
            content_type = "application/openmetrics-text",
            example = "# TYPE lectern_jobs gauge\nlectern_jobs{state=\"due\"} 0\n",
        ),
        (status = 401, description = "A token is set, and it was not sent"),
    ),
)]
#[handler]
async fn read_metrics(State(runtime): State<Runtime>, headers: HeaderMap) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if !metrics::may_read(runtime.settings.metrics_token.as_ref(), authorization) {
        let message = "Send the service's metrics token as `Authorization: Bearer …`.";
        return ApiError::new(ApiErrorKind::Unauthenticated, "unauthorized", message).into_response();
    }
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], lectern_runtime::metrics::text(&runtime).await).into_response()
}
