//! Whether the service can do its work, part by part. The API and a worker that runs by itself answer alike.

mod coalesced;
mod writes;

use std::{fmt::Display, time::Duration};

use serde_json::{Value, json};

pub(crate) use self::writes::WriteProbe;
use lectern_db::{self as db, Db, DbError};
use lectern_embed::{ModelState, Reranker};
use lectern_jobs::JobQueue;
use lectern_shared::redis::Redis;

use crate::Runtime;

/// A part that does not answer within this is down.
const PATIENCE: Duration = Duration::from_secs(3);

/// The state of every part.
#[derive(Clone, Debug)]
pub struct HealthReport {
    /// Whether every part that is needed is up.
    pub ready: bool,
    /// Each part by its name: `status`, and what else is known of it.
    pub parts: Value,
}

/// Whether the parts are up: asks all of them, or waits for the answers when somebody has asked already. Takes little more than three
/// seconds, and a fourth when the database is down.
pub async fn check(runtime: &Runtime) -> HealthReport {
    let looked_at = runtime.clone();
    runtime.writes.looks.share(async move { Box::pin(look(&looked_at)).await }).await
}

/// Asks every part, all at once.
async fn look(runtime: &Runtime) -> HealthReport {
    let database = probe("database", async {
        let (read, written) =
            tokio::join!(runtime.db.ping(), runtime.writes.check(&runtime.db, &runtime.jobs));
        read?;
        let kind = match runtime.db {
            Db::Postgres { .. } => "postgresql",
            Db::Sqlite { .. } => "sqlite",
        };
        Ok::<_, DbError>(match written {
            Ok(()) => json!({"kind": kind}),
            // What is stored can be read, so this is said of it.
            Err(reason) => json!({"kind": kind, "status": "down", "reason": reason}),
        })
    });
    let queue = probe("queue", queue(&runtime.db, &runtime.jobs, runtime.redis.as_ref()));
    let index = probe("index", async {
        let status = runtime.index.ping().await?;
        let mut shown = json!({"kind": status.kind});
        if let (Some(shown), Some(version)) = (shown.as_object_mut(), status.version) {
            shown.insert("version".to_owned(), json!(version));
        }
        Ok::<_, lectern_index::IndexError>(shown)
    });
    let blobs =
        probe("blobs", async { runtime.blobs.ping().await.map(|()| json!({"kind": runtime.blobs.kind()})) });
    let ((database, database_up), (queue, queue_up), (index, index_up), (blobs, blobs_up)) =
        tokio::join!(database, queue, index, blobs);
    if !database_up && let Some(error) = runtime.db.refusal().await {
        tracing::warn!(%error, "PostgreSQL lets no connection be made");
    }
    let embedder = embedder(&runtime.models.state());
    let mut parts =
        json!({"database": database, "queue": queue, "index": index, "blobs": blobs, "embedder": embedder});
    if let Some(reranker) = reranker(&runtime.reranker.state()) {
        parts["reranker"] = reranker;
    }
    HealthReport { ready: database_up && queue_up && index_up && blobs_up, parts }
}

/// The service does its work without a model too, so none of this makes it unready.
fn embedder(state: &ModelState) -> Value {
    match state {
        ModelState::Off => json!({"status": "off", "search": "lexical"}),
        ModelState::Opening => json!({"status": "opening", "search": "lexical"}),
        ModelState::Downloading(progress) => {
            json!({"status": "downloading", "search": "lexical", "bytes": progress.bytes, "ofBytes": progress.total})
        }
        ModelState::Missing(reason) => json!({"status": "none", "search": "lexical", "reason": reason}),
        ModelState::Ready(embedder, _) => {
            let space = embedder.space();
            json!({"status": "up", "search": "hybrid", "model": space.model, "dimensions": space.dimensions})
        }
    }
}

/// Nothing where none is wanted. Searches do their work without it, so none of this makes the service unready.
fn reranker(state: &ModelState<dyn Reranker>) -> Option<Value> {
    Some(match state {
        ModelState::Off => return None,
        ModelState::Opening => json!({"status": "opening"}),
        ModelState::Downloading(progress) => {
            json!({"status": "downloading", "bytes": progress.bytes, "ofBytes": progress.total})
        }
        ModelState::Missing(reason) => json!({"status": "none", "reason": reason}),
        ModelState::Ready(reranker, _) => json!({"status": "up", "model": reranker.name()}),
    })
}

/// What a part answers: what is to be shown of it, or that it is down.
async fn probe<E: Display>(part: &str, answer: impl Future<Output = Result<Value, E>>) -> (Value, bool) {
    let problem = match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(mut shown)) => {
            if let Some(shown) = shown.as_object_mut() {
                shown.entry("status").or_insert(json!("up"));
            }
            let is_up = shown["status"] == "up";
            return (shown, is_up);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    tracing::warn!(part, problem, "a part is down");
    (json!({"status": "down"}), false)
}

/// The queue is in the database. Redis only makes workers hear of it sooner, so without it the queue is up all the same.
async fn queue(db: &Db, jobs: &JobQueue, redis: Option<&Redis>) -> Result<Value, DbError> {
    let now = jobs.now();
    let depth = db::jobs::depth(&db.probes(), now).await?;
    let oldest = depth.oldest_due.map(|due| now.since(due).as_secs());
    let mut shown = json!({
        "kind": if redis.is_some() { "redis" } else { "in-process" },
        "due": depth.due,
        "oldestDueSeconds": oldest,
        "waiting": depth.waiting,
        "running": depth.running,
        "dead": depth.dead,
    });
    if let (Some(shown), Some(redis)) = (shown.as_object_mut(), redis) {
        shown.insert("redis".to_owned(), json!({"status": if answers(redis).await { "up" } else { "down" }}));
    }
    Ok(shown)
}

async fn answers(redis: &Redis) -> bool {
    // Shorter than the part's own patience, which is for what is needed.
    matches!(tokio::time::timeout(PATIENCE / 2, redis.ping()).await, Ok(Ok(())))
}
