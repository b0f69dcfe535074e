//! How documents are ingested.

use std::time::Duration;

use super::{
    ConfigError, SettingsSource,
    parse::{at_least, duration, number},
};

/// Documents ingested at once on a machine of few cores: each waits for servers most of the time.
const LEAST_CONCURRENCY: usize = 8;

/// How jobs are worked on.
#[derive(Clone, Debug)]
pub struct JobSettings {
    /// Documents ingested at once by this process.
    pub concurrency: usize,
    /// Of them, those that keep a core busy: that are parsed, cut or embedded.
    pub parsers: usize,
    /// Longest time without progress.
    pub timeout: Duration,
    /// Attempts before a document fails for good.
    pub max_attempts: u32,
    /// How long a claim lasts without renewal.
    pub lease: Duration,
}

impl JobSettings {
    pub(super) fn load(source: &SettingsSource, cores: usize) -> Result<Self, ConfigError> {
        let at_once = cores.max(LEAST_CONCURRENCY).to_string();
        let concurrency = source.parse("LECTERN_WORKER_CONCURRENCY", &at_once, number(1, 1024))?;
        let busy = cores.min(concurrency).to_string();
        Ok(Self {
            concurrency,
            parsers: source.parse("LECTERN_PARSERS", &busy, number(1, 1024))?,
            timeout: source.parse(
                "LECTERN_JOB_TIMEOUT",
                "15m",
                at_least(Duration::from_secs(1), duration),
            )?,
            max_attempts: source.parse("LECTERN_JOB_MAX_ATTEMPTS", "5", number(1, 1000))?,
            lease: source.parse("LECTERN_JOB_LEASE", "60s", at_least(Duration::from_secs(3), duration))?,
        })
    }
}
