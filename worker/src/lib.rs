//! The worker: takes jobs from the queue and makes documents searchable. It shares the relational store with the API and
//! nothing else.

mod consumer;
pub mod health;
mod hold;
mod ingest;
pub mod loaders;
pub mod sandbox;
mod splitter;
mod sweeper;

use std::{io, time::Duration};

use lectern_shared::{
    clock::Timestamp,
    db::{self, Location},
    runtime::Runtime,
    shutdown::Shutdown,
};

use crate::{
    ingest::Ingester,
    sandbox::{Sandbox, SandboxConfig},
};

/// How long a parser may work on one file in all, as a multiple of its longest silence.
const PARSER_PATIENCE: u32 = 60;

/// Why the worker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program cannot find itself, which it must to run its parsers.
    #[error("the running program cannot be found: {0}")]
    NoBinary(io::Error),
    /// The store failed.
    #[error(transparent)]
    Db(#[from] db::DbError),
}

/// Starts the worker in the background; it ends with `shutdown`.
pub async fn start(runtime: &Runtime, shutdown: &Shutdown) -> Result<(), StartError> {
    let settings = &runtime.settings;
    let mut config = SandboxConfig::for_this_binary().map_err(StartError::NoBinary)?;
    config.memory_bytes = settings.limits.parser_memory;
    config.page_wall = settings.limits.parser_timeout;
    config.total_wall = settings.limits.parser_timeout.saturating_mul(PARSER_PATIENCE);
    config.cpu_seconds = config.total_wall.as_secs().max(1);
    config.max_parallel = settings.jobs.concurrency;
    let ingester = Ingester::new(runtime.clone(), Sandbox::new(config));
    if matches!(settings.database, Location::Sqlite(_)) {
        // This process has the data directory for itself: whoever held a job before is gone.
        sweeper::release_all(runtime, Timestamp::from_micros(i64::MAX)).await?;
    }
    consumer::start(runtime, ingester, shutdown);
    sweeper::start(runtime.clone(), shutdown);
    Ok(())
}

/// `base` shortened or lengthened by up to a fifth at random, so that processes started together do not act together.
fn jitter(base: Duration) -> Duration {
    base.mul_f64(0.8 + 0.4 * rand::random::<f64>())
}
