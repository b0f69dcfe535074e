//! How large things may be, how many, and how long they may take.

use std::time::Duration;

use super::{
    ConfigError, SettingsSource,
    parse::{at_least, at_most, duration, number, size},
};

/// The most that one request, caller or document takes.
#[derive(Clone, Debug)]
pub struct ServiceLimits {
    /// Largest JSON body, in bytes.
    pub body_bytes: u64,
    /// Memory for JSON bodies that are arriving, in bytes.
    pub body_memory: u64,
    /// Connections that one address may have.
    pub connections: usize,
    /// Largest fetched source, in bytes.
    pub source_bytes: u64,
    /// What one workspace may store, in bytes.
    pub storage_bytes: Option<u64>,
    /// Uploads that go on at once in a process.
    pub uploads: usize,
    /// Most pages of a document.
    pub pages: u32,
    /// Most characters of a document.
    pub characters: u64,
    /// Time to fetch a source.
    pub fetch_timeout: Duration,
    /// Address space of a parser, in bytes.
    pub parser_memory: u64,
    /// Longest silence of a parser.
    pub parser_timeout: Duration,
    /// Most passages of a document.
    pub passages: usize,
    /// Processor time for parsing and cutting a document.
    pub processor_time: Duration,
}

impl ServiceLimits {
    pub(super) fn load(source: &SettingsSource) -> Result<Self, ConfigError> {
        Ok(Self {
            body_bytes: source.parse("LECTERN_MAX_BODY", "2MiB", at_least(1 << 10, size))?,
            body_memory: source.parse("LECTERN_BODY_MEMORY", "64MiB", at_least(1 << 20, size))?,
            connections: source.parse("LECTERN_MAX_CONNECTIONS", "256", number(1, 1_000_000))?,
            source_bytes: source.parse("LECTERN_MAX_SOURCE", "100MiB", at_least(1 << 10, size))?,
            storage_bytes: source.optional("LECTERN_MAX_STORAGE", size)?,
            uploads: source.parse("LECTERN_MAX_UPLOADS", "32", number(1, 4_000))?,
            pages: source.parse("LECTERN_MAX_PAGES", "5000", number(1, 1_000_000))?,
            characters: source.parse("LECTERN_MAX_CHARACTERS", "20000000", number(1, u64::MAX))?,
            fetch_timeout: source.parse(
                "LECTERN_FETCH_TIMEOUT",
                "2m",
                at_least(Duration::from_secs(1), duration),
            )?,
            parser_memory: source.parse("LECTERN_PARSER_MEMORY", "2GiB", at_least(128 << 20, size))?,
            parser_timeout: source.parse(
                "LECTERN_PARSER_TIMEOUT",
                "30s",
                at_least(Duration::from_secs(1), at_most(Duration::from_hours(24), duration)),
            )?,
            passages: source.parse("LECTERN_MAX_PASSAGES", "100000", number(1, 10_000_000))?,
            processor_time: source.parse(
                "LECTERN_PROCESSOR_TIME",
                "10m",
                at_least(Duration::from_secs(1), duration),
            )?,
        })
    }
}
