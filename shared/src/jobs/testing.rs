//! Queues for tests.

use std::time::Duration;

use super::{Doorbell, JobQueue};
use crate::{clock::Clock, config::JobSettings, db::Db};

/// A queue whose time is set by the test.
pub fn queue(db: &Db, clock: &Clock) -> JobQueue {
    let settings = JobSettings {
        concurrency: 1,
        parsers: 1,
        timeout: Duration::from_mins(1),
        max_attempts: 3,
        lease: Duration::from_mins(1),
    };
    JobQueue::new(db.clone(), clock.clone(), settings, Doorbell::local())
}
