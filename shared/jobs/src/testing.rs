//! Queues for tests.

use std::time::Duration;

use lectern_db::Db;
use lectern_shared::{clock::Clock, config::JobSettings};

use super::{Doorbell, JobQueue};

/// A queue whose time is set by the test.
pub fn queue(db: &Db, clock: &Clock) -> JobQueue {
    let settings = JobSettings {
        concurrency: 1,
        parsers: 1,
        timeout: Duration::from_mins(1),
        max_attempts: 3,
        lease: Duration::from_mins(1),
    };
    JobQueue::new(db, clock.clone(), settings, Doorbell::local())
}
