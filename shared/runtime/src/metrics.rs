//! What a process tells Prometheus: what it counts, and what is asked for when somebody reads.

use std::{sync::Arc, time::Duration};

use lectern_db as db;
use lectern_embed::ModelState;
use lectern_shared::telemetry;

use crate::Runtime;

/// The longest that a reader waits for what the database knows; then it is left out.
const DATABASE_WITHIN: Duration = Duration::from_secs(2);

/// Everything, as Prometheus reads it. What the database knows is left out while it does not answer.
pub async fn text(runtime: &Runtime) -> String {
    let now = runtime.jobs.now();
    let depth = tokio::time::timeout(DATABASE_WITHIN, db::jobs::depth(&runtime.db, now)).await;
    runtime.metrics.set_queue(depth.ok().and_then(Result::ok), now);
    runtime.metrics.set_pools(&runtime.db.pools());
    runtime.metrics.set_embedder(match runtime.models.state() {
        ModelState::Off => None,
        state => Some(matches!(state, ModelState::Ready(..))),
    });
    runtime.metrics.set_lost_lines(telemetry::lost_lines());
    let metrics = Arc::clone(&runtime.metrics);
    runtime.compute.run(move || metrics.text()).await.unwrap_or_default()
}
