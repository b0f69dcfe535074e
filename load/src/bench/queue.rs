//! Whether what was sent has been ingested.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::api::{ApiClient, RequestProblem};

/// A queue in which nothing changes for so long will not become empty any more.
const STALLED: Duration = Duration::from_mins(5);
/// How often the service is asked whether it has finished, when it soon has.
const POLL: Duration = Duration::from_millis(20);
/// How often while much is left: each time it counts its jobs.
const SELDOM: Duration = Duration::from_millis(500);
/// More jobs than are done between two of these questions.
const MANY: u64 = 500;

/// Waits until no job is left.
pub(crate) async fn until_idle(api: &ApiClient) -> Result<(), RequestProblem> {
    let (mut known, mut changed) = (Value::Null, Instant::now());
    loop {
        let (_, health) = api.health().await?;
        let queue = &health["data"]["parts"]["queue"];
        let left = ["due", "waiting", "running"].map(|state| queue[state].as_u64());
        // A queue that does not say counts as one with much in it.
        let left: u64 = left.into_iter().map(|jobs| jobs.unwrap_or(MANY)).sum();
        if left == 0 {
            return Ok(());
        }
        if *queue != known {
            (known, changed) = (queue.clone(), Instant::now());
        }
        if changed.elapsed() > STALLED {
            return Err(RequestProblem::new("stuck", format!("for {STALLED:?} the queue has been {queue}")));
        }
        tokio::time::sleep(if left < MANY { POLL } else { SELDOM }).await;
    }
}

/// Refuses a document that was not ingested.
pub(crate) fn searchable(document: &Value) -> Result<(), RequestProblem> {
    let ingestion = &document["ingestion"];
    if ingestion["status"] == "SUCCEEDED" {
        return Ok(());
    }
    Err(RequestProblem::new("not_searchable", format!("{}: {ingestion}", document["name"])))
}
