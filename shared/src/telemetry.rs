//! Log lines: `tracing` events on standard error, as text or as one JSON object a line.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{ConfigError, LogFormat};

/// Starts writing log lines; call it once, before anything else logs.
///
/// # Errors
/// When `filter` cannot be read.
pub fn init(filter: &str, format: LogFormat) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| ConfigError { setting: "LECTERN_LOG".to_owned(), problem: error.to_string() })?;
    // PostgreSQL tells every connection of its pool that it stops; whoever used one says so already.
    let filter = match "sqlx::postgres::notice=error".parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // The message of a panic may hold text of a document; the place is enough to find it.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panicked");
    }));
    // A second subscriber is refused: in tests, which share a process, the first one stays.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().with_current_span(true).with_span_list(false).try_init(),
    };
    Ok(())
}
