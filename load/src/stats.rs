//! What was done, how long it took, and what went wrong.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::api::RequestProblem;

/// The longest time that is told apart from longer ones, in microseconds.
const LONGEST: u64 = 600_000_000;
/// Problems that are shown in full.
const EXAMPLES: usize = 10;

/// What users do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoadOperation {
    /// POST /documents.
    Post,
    /// POST /documents/upload.
    Upload,
    /// From the POST of a document until it is seen to be searchable.
    Ingestion,
    /// GET /documents/{id}.
    Get,
    /// POST /agent-documents.
    Link,
    /// POST /search.
    Search,
    /// POST /agents/{id}/predict.
    Predict,
    /// GET of a page of a list.
    List,
    /// GET of a page of traces, which are larger than anything else.
    Traces,
    /// PATCH /documents/{id}.
    Patch,
    /// DELETE /documents/{id}.
    Delete,
    /// A request that only checks what another one did.
    Check,
}

impl LoadOperation {
    /// What it is called in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Post => "POST /documents",
            Self::Upload => "POST /documents/upload",
            Self::Ingestion => "ingestion, until searchable",
            Self::Get => "GET /documents/{id}",
            Self::Link => "POST /agent-documents",
            Self::Search => "POST /search",
            Self::Predict => "POST /agents/{id}/predict",
            Self::List => "GET a page of a list",
            Self::Traces => "GET a page of traces",
            Self::Patch => "PATCH /documents/{id}",
            Self::Delete => "DELETE /documents/{id}",
            Self::Check => "checks of PATCH and DELETE",
        }
    }
}

/// Times of one kind of request.
#[derive(Clone, Debug)]
pub(crate) struct LatencyHistogram(Option<Histogram<u64>>);

impl LatencyHistogram {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        // Microseconds, to three digits. The bounds are good ones, so this does not fail.
        Self(Histogram::new_with_bounds(1, LONGEST, 3).ok())
    }

    /// Adds a time; one beyond ten minutes counts as that.
    pub(crate) fn add(&mut self, time: Duration) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(LONGEST));
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    /// The time within which this share of them (0.95) was done, in milliseconds; 0 of none.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let micros = self.0.as_ref().map_or(0, |histogram| histogram.value_at_quantile(share));
        millis(micros)
    }

    /// The longest, in milliseconds.
    pub(crate) fn longest(&self) -> f64 {
        millis(self.0.as_ref().filter(|histogram| !histogram.is_empty()).map_or(0, Histogram::max))
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most ten minutes")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1e3
}

struct OperationStats {
    whole: LatencyHistogram,
    interval: LatencyHistogram,
    late: u64,
    errors: BTreeMap<String, u64>,
}

impl OperationStats {
    fn new() -> Self {
        Self {
            whole: LatencyHistogram::new(),
            interval: LatencyHistogram::new(),
            late: 0,
            errors: BTreeMap::new(),
        }
    }
}

#[derive(Default)]
struct RecorderState {
    lines: BTreeMap<LoadOperation, OperationStats>,
    examples: Vec<String>,
    errors: u64,
}

/// Counts what all tasks do.
#[derive(Default)]
pub(crate) struct StatsRecorder(Mutex<RecorderState>);

impl StatsRecorder {
    /// An answer that was right.
    pub(crate) fn success(&self, operation: LoadOperation, time: Duration) {
        let mut inner = self.0.lock();
        let line = inner.lines.entry(operation).or_insert_with(OperationStats::new);
        line.whole.add(time);
        line.interval.add(time);
    }

    /// No answer, or a wrong one.
    pub(crate) fn error(&self, operation: LoadOperation, problem: &RequestProblem) {
        let mut inner = self.0.lock();
        inner.errors += 1;
        let line = inner.lines.entry(operation).or_insert_with(OperationStats::new);
        let count = line.errors.entry(problem.code.clone()).or_default();
        *count += 1;
        // The first of each code tells most.
        if *count <= 2 && inner.examples.len() < EXAMPLES {
            inner.examples.push(format!("{}: {problem}", operation.name()));
        }
    }

    /// Either of the two.
    pub(crate) fn outcome<T>(
        &self,
        operation: LoadOperation,
        time: Duration,
        outcome: Result<T, RequestProblem>,
    ) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.success(operation, time);
                Some(value)
            }
            Err(problem) => {
                self.error(operation, &problem);
                None
            }
        }
    }

    /// A request that was sent later than it was due, because as many as may be were under way.
    pub(crate) fn late(&self, operation: LoadOperation) {
        self.0.lock().lines.entry(operation).or_insert_with(OperationStats::new).late += 1;
    }

    /// Begins anew.
    pub(crate) fn forget(&self) {
        *self.0.lock() = RecorderState::default();
    }

    /// How many errors there were.
    pub(crate) fn errors(&self) -> u64 {
        self.0.lock().errors
    }

    /// The first problems, in full.
    pub(crate) fn examples(&self) -> Vec<String> {
        self.0.lock().examples.clone()
    }

    /// One line about the time since this was last asked for, which took `interval`.
    pub(crate) fn interval(&self, interval: Duration) -> String {
        let mut inner = self.0.lock();
        let mut text = String::new();
        let mut late = 0;
        for (operation, line) in &mut inner.lines {
            let latency = std::mem::replace(&mut line.interval, LatencyHistogram::new());
            late += line.late;
            let short = match operation {
                LoadOperation::Ingestion => "ingested",
                LoadOperation::Search => "search",
                LoadOperation::Predict => "predict",
                LoadOperation::List => "list",
                LoadOperation::Post => "post",
                _ => continue,
            };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{short} {:.1}/s p50 {:.1} p95 {:.1} ms | ",
                rate(latency.count(), interval),
                latency.at(0.5),
                latency.at(0.95)
            );
        }
        let _ = write!(text, "errors {} | late {late}", inner.errors);
        text
    }

    /// The final table. `lasted` is how long the load lasted.
    pub(crate) fn table(&self, lasted: Duration) -> String {
        let inner = self.0.lock();
        let mut table = format!(
            "{:<29} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7}  errors\n",
            "operation", "count", "per s", "p50 ms", "p95 ms", "p99 ms", "max ms", "late"
        );
        for (operation, line) in &inner.lines {
            let errors = if line.errors.is_empty() {
                "0".to_owned()
            } else {
                let errors: Vec<_> =
                    line.errors.iter().map(|(code, count)| format!("{count} {code}")).collect();
                errors.join(", ")
            };
            let latency = &line.whole;
            let _ = writeln!(
                table,
                "{:<29} {:>8} {:>8.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>7}  {errors}",
                operation.name(),
                latency.count(),
                rate(latency.count(), lasted),
                latency.at(0.5),
                latency.at(0.95),
                latency.at(0.99),
                latency.longest(),
                line.late,
            );
        }
        table
    }
}

/// So many in so much time, a second.
#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
pub(crate) fn rate(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected / 500.0
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        let mut latency = LatencyHistogram::new();
        (1..=1_000).for_each(|millis| latency.add(Duration::from_millis(millis)));
        assert_eq!(latency.count(), 1_000);
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            assert!(near(latency.at(share), expected), "{share}: {}", latency.at(share));
        }
        assert!(near(latency.longest(), 1_000.0));
    }

    #[test]
    fn of_nothing_every_percentile_is_zero() {
        let latency = LatencyHistogram::new();
        assert!(latency.at(0.5).abs() < f64::EPSILON && latency.longest().abs() < f64::EPSILON);
        assert!(rate(5, Duration::ZERO).abs() < f64::EPSILON);
    }

    #[test]
    fn a_time_beyond_all_bounds_is_kept() {
        let mut latency = LatencyHistogram::new();
        latency.add(Duration::from_hours(1));
        latency.add(Duration::ZERO);
        assert_eq!(latency.count(), 2);
        assert!(near(latency.longest(), 600_000.0));
    }

    #[test]
    fn errors_are_counted_by_code_and_the_first_are_kept() {
        let recorder = StatsRecorder::default();
        for _ in 0..50 {
            recorder.error(LoadOperation::Search, &RequestProblem::new("fact_not_found", "nothing"));
        }
        recorder.error(LoadOperation::Post, &RequestProblem::new("timeout", "no answer"));
        recorder.success(LoadOperation::Post, Duration::from_millis(3));
        recorder.late(LoadOperation::Post);
        assert_eq!(recorder.errors(), 51);
        assert_eq!(recorder.examples().len(), 3);
        let table = recorder.table(Duration::from_secs(10));
        assert!(table.contains("50 fact_not_found"), "{table}");
        assert!(table.contains("1 timeout"), "{table}");
    }

    #[test]
    fn an_interval_begins_anew_and_the_whole_does_not() {
        let recorder = StatsRecorder::default();
        recorder.success(LoadOperation::Search, Duration::from_millis(3));
        let second = Duration::from_secs(1);
        assert!(recorder.interval(second).contains("search 1.0/s"));
        assert!(recorder.interval(second).contains("search 0.0/s"));
        assert!(recorder.table(second).contains("POST /search                         1"));
    }
}
