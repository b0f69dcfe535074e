//! What a process tells Prometheus: what it counts, and what is asked for when somebody reads.

use std::{sync::Arc, time::Duration};

use lectern_db as db;
use lectern_embed::ModelState;
use lectern_shared::{metrics::CacheState, telemetry};

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
    let (metrics, index) = (Arc::clone(&runtime.metrics), Arc::clone(&runtime.index));
    let budget = runtime.cache_budget.clone();
    let tell = move || {
        let lists = CacheState { part: "lists", bytes: budget.taken(), max: budget.for_lists() };
        metrics.set_index_cache(&[index.cached(), vec![lists]].concat());
        metrics.text()
    };
    runtime.compute.run(tell).await.unwrap_or_default()
}
