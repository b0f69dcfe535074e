//! What the service tells of itself while it works: log lines on standard error, as text or as one JSON object a line, and, when
//! a collector is set, spans by OTLP. Both are made by `tracing`. Every span of the service is exported; those whose target is
//! [`SPANS`] are not in the log. Log lines are not exported.

mod lines;
mod otlp;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    io::{IsTerminal, stderr},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use opentelemetry::{
    Value,
    propagation::TextMapPropagator,
    trace::{Status, TraceContextExt},
};
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracer};
use tracing::{Metadata, Span, level_filters::LevelFilter};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::FilterFn, fmt, layer::SubscriberExt, registry::LookupSpan,
    util::SubscriberInitExt,
};

use self::{lines::CountingWriter, otlp::OtlpExporter};
use crate::config::{ConfigError, LogFormat, TracingSettings};

/// The target of spans that are exported and not in the log: `tracing::info_span!(target: telemetry::SPANS, "name", …)`. Their
/// fields are OpenTelemetry's attributes. They hold ids, counts and names that the program gives; never a question, an answer, a
/// text, an address or anything that a workspace wrote, except the names of models and tools. What is spawned below such a span loses the
/// span of the log: only spans of the log are carried to other tasks.
pub const SPANS: &str = "lectern_spans";

/// The header of a caller's span, as W3C defines it.
const TRACE_PARENT: &str = "traceparent";

/// Log lines on their way to standard error, at most. Whoever reads them may stand still (a terminal in which somebody selects a word,
/// a pipe that nobody empties): the lines after these are lost then, and nothing waits.
const WAITING_LINES: usize = 10_000;

/// Counts the log lines that were lost because there were so many on their way.
static LOST_LINES: OnceLock<ErrorCounter> = OnceLock::new();
/// Counts those that could not be written: to a file on a full disk, or for a reader that has gone.
static FAILED_LINES: AtomicU64 = AtomicU64::new(0);

/// Keeps spans on their way to the collector, and log lines on theirs. When it is dropped, the lines that wait are written, which
/// blocks for about a second at most.
#[derive(Debug)]
#[must_use = "spans that are not sent yet are lost without `finish`, and no line is written after it is dropped"]
pub struct Telemetry {
    exporter: Option<OtlpExporter>,
    _lines: WorkerGuard,
}

impl Telemetry {
    /// Sends the spans that are not sent yet; blocks for a few seconds at most.
    pub fn finish(&mut self) {
        if let Some(exporter) = self.exporter.take() {
            exporter.finish();
        }
    }
}

/// How many log lines were lost because nobody read them, or because they could not be written.
pub fn lost_lines() -> u64 {
    let crowded_out = LOST_LINES.get().map_or(0, |lost| lost.dropped_lines() as u64);
    crowded_out + FAILED_LINES.load(Ordering::Relaxed)
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
    // The library that reads MCP messages tells of the beginning and end of each one.
    // The driver repeats what it does not know of the database's address, with its value; we name it (`db::connect`).
    for quiet in [
        "sqlx::postgres::notice=error".to_owned(),
        "sqlx_postgres::options::parse=error".to_owned(),
        "rmcp=error".to_owned(),
        format!("{SPANS}=off"),
    ] {
        if let Ok(quiet) = quiet.parse() {
            filter = filter.add_directive(quiet);
        }
    }
    // The message of a panic may hold text of a document; the place is enough to find it.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panicked");
    }));
    let lines = NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).thread_name("log");
    let (writer, guard) = lines.finish(CountingWriter::new(stderr(), &FAILED_LINES));
    LOST_LINES.get_or_init(|| writer.error_counter());
    let lines = fmt::layer().with_writer(writer);
    // As many layers as there are: one that is not there would count as one that wants every span.
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = vec![match format {
        LogFormat::Text => Box::new(lines.with_ansi(stderr().is_terminal()).with_filter(filter)),
        LogFormat::Json => {
            Box::new(lines.json().with_current_span(true).with_span_list(false).with_filter(filter))
        }
    }];
    let exporter = tracing.map(OtlpExporter::new).transpose()?.flatten();
    if let Some(exporter) = &exporter {
        layers.push(Box::new(exports(exporter.tracer())));
    }
    // A second subscriber is refused: in tests, which share a process, the first one stays.
    let _ = tracing_subscriber::registry().with(layers).try_init();
    Ok(Telemetry { exporter, _lines: guard })
}

/// The layer that exports spans of the service, and nothing else.
fn exports<S>(tracer: SdkTracer) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let is_ours = |metadata: &Metadata<'_>| metadata.is_span() && metadata.target().starts_with("lectern");
    let layer = tracing_opentelemetry::layer().with_tracer(tracer);
    let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
    layer.with_filter(FilterFn::new(is_ours).with_max_level_hint(LevelFilter::INFO))
}

/// Whether spans are exported. Fields of the log's spans that are for the collector alone are left out otherwise.
pub fn is_exporting() -> bool {
    tracing::span_enabled!(target: SPANS, tracing::Level::INFO)
}

/// Notes an attribute of an exported span. It is not in the log.
pub fn note(span: &Span, key: &'static str, value: impl Into<Value>) {
    span.set_attribute(key, value);
}

/// Notes that what a span stands for has failed.
pub fn note_failure(span: &Span) {
    // What went wrong is in the log.
    span.set_status(Status::error(""));
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
    if !is_exporting() {
        return;
    }
    let carrier = HashMap::from([(TRACE_PARENT.to_owned(), trace_parent.to_owned())]);
    let context = TraceContextPropagator::new().extract(&carrier);
    if context.span().span_context().is_valid() {
        // Refused only where the layer is not installed.
        let _ = span.set_parent(context);
    }
}
