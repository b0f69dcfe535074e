//! What the service tells of itself while it works: log lines on standard error, as text or as one JSON object a line, and, when
//! a collector is set, spans by OTLP. Both are made by `tracing`: spans whose target is [`SPANS`] are exported and are not in the
//! log; everything else is in the log and is not exported.

mod otlp;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, io::IsTerminal};

use opentelemetry::{propagation::TextMapPropagator, trace::TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Span, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use self::otlp::Exporter;
use crate::config::{ConfigError, LogFormat, TracingSettings};

/// The target of spans that are exported: `tracing::info_span!(target: telemetry::SPANS, "name", …)`. Their fields are
/// OpenTelemetry's attributes. They hold ids, counts and names that the program gives; never a question, an answer, a text, an
/// address or anything that a user wrote, except the names of models and tools.
pub const SPANS: &str = "lectern_spans";

/// The header of a caller's span, as W3C defines it.
const TRACE_PARENT: &str = "traceparent";

/// Keeps spans on their way to the collector.
#[derive(Debug)]
#[must_use = "what is not sent yet is lost without `finish`"]
pub struct Telemetry(Option<Exporter>);

impl Telemetry {
    /// Sends what is not sent yet; blocks for a few seconds at most.
    pub fn finish(self) {
        if let Some(exporter) = self.0 {
            exporter.finish();
        }
    }
}

/// Starts writing log lines, and sending spans when `tracing` names a collector, which needs a tokio runtime. Call it once, before
/// anything else logs.
///
/// # Errors
/// When `filter` cannot be read.
pub fn init(
    filter: &str,
    format: LogFormat,
    tracing: Option<&TracingSettings>,
) -> Result<Telemetry, ConfigError> {
    let mut filter = EnvFilter::try_new(filter)
        .map_err(|error| ConfigError { setting: "LECTERN_LOG".to_owned(), problem: error.to_string() })?;
    // PostgreSQL tells every connection of its pool that it stops; whoever used one says so already.
    for quiet in ["sqlx::postgres::notice=error".to_owned(), format!("{SPANS}=off")] {
        if let Ok(quiet) = quiet.parse() {
            filter = filter.add_directive(quiet);
        }
    }
    // The message of a panic may hold text of a document; the place is enough to find it.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panicked");
    }));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => Box::new(lines.with_ansi(std::io::stderr().is_terminal()).with_filter(filter)),
        LogFormat::Json => {
            Box::new(lines.json().with_current_span(true).with_span_list(false).with_filter(filter))
        }
    };
    let exporter = tracing.map(Exporter::new).transpose()?.flatten();
    let spans = exporter.as_ref().map(|exporter| {
        let layer = tracing_opentelemetry::layer().with_tracer(exporter.tracer());
        let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
        layer.with_filter(Targets::new().with_target(SPANS, LevelFilter::INFO))
    });
    // A second subscriber is refused: in tests, which share a process, the first one stays.
    let _ = tracing_subscriber::registry().with(lines).with(spans).try_init();
    Ok(Telemetry(exporter))
}

/// The span that goes on here, as W3C's `traceparent`; none when no spans are exported.
pub fn trace_parent() -> Option<String> {
    let context = Span::current().context();
    let span = context.span();
    let span = span.span_context();
    span.is_valid()
        .then(|| format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8()))
}

/// Makes `span` a part of the trace that a `traceparent` names. One that makes no sense is passed over.
pub fn follow(span: &Span, trace_parent: &str) {
    if span.is_disabled() {
        return;
    }
    let carrier = HashMap::from([(TRACE_PARENT.to_owned(), trace_parent.to_owned())]);
    let context = TraceContextPropagator::new().extract(&carrier);
    if context.span().span_context().is_valid() {
        // Refused only where the layer is not installed.
        let _ = span.set_parent(context);
    }
}
