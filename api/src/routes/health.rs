//! Whether the service lives, and whether it can do its work.

use std::time::Duration;

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use lectern_shared::{config::EmbedderKind, db, runtime::Runtime};
use serde_json::{Value, json};

use crate::{error::ApiError, response::data, state::AppState};

/// A part that does not answer within this is down.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/health/live", get(live)).route("/health/ready", get(ready))
}

async fn live() -> Response {
    data(json!({"status": "live"}))
}

/// What a part answers: what is to be shown of it, or that it is down.
async fn probe<E: std::fmt::Display>(
    part: &str,
    answer: impl Future<Output = Result<Value, E>>,
) -> (Value, bool) {
    let problem = match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(mut shown)) => {
            if let Some(shown) = shown.as_object_mut() {
                shown.entry("status").or_insert(json!("up"));
            }
            return (shown, true);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    tracing::warn!(part, problem, "a part is down");
    (json!({"status": "down"}), false)
}

async fn ready(State(runtime): State<Runtime>) -> Response {
    let (database, database_up) = probe("database", async {
        runtime.db.ping().await?;
        let kind = match runtime.db {
            db::Db::Postgres(_) => "postgresql",
            db::Db::Sqlite { .. } => "sqlite",
        };
        Ok::<_, db::DbError>(json!({"kind": kind}))
    })
    .await;
    let (queue, queue_up) = probe("queue", async {
        let now = runtime.jobs.now();
        let depth = db::jobs::depth(&runtime.db, now).await?;
        let oldest = depth.oldest_due.map(|due| now.since(due).as_secs());
        Ok::<_, db::DbError>(json!({
            "kind": "in-process",
            "due": depth.due,
            "oldestDueSeconds": oldest,
            "waiting": depth.waiting,
            "running": depth.running,
            "dead": depth.dead,
        }))
    })
    .await;
    let (index, index_up) =
        probe("index", async { runtime.index.ping().await.map(|()| json!({"kind": "embedded"})) }).await;
    let (blobs, blobs_up) =
        probe("blobs", async { runtime.blobs.ping().await.map(|()| json!({"kind": "folder"})) }).await;
    let embedder = match runtime.settings.embedder {
        EmbedderKind::None => json!({"status": "off", "search": "lexical"}),
        EmbedderKind::Auto => {
            json!({"status": "none", "search": "lexical", "reason": "no embedding model is available"})
        }
    };
    let up = database_up && queue_up && index_up && blobs_up;
    let parts =
        json!({"database": database, "queue": queue, "index": index, "blobs": blobs, "embedder": embedder});
    if up {
        return data(json!({"status": "ready", "parts": parts}));
    }
    let error = ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "not_ready",
        "A part of the service is down; see `data`.",
    );
    ApiError { data: Some(Box::new(json!({"status": "not_ready", "parts": parts}))), ..error }.into_response()
}
