//! What a process counts and times, as Prometheus reads it. Every part that does something an operator asks about tells it
//! here; what only the database knows (how many jobs wait) is asked when somebody reads. A label never has a value that workspaces
//! can make up: no id, no name, no path.

mod labels;
mod process;
#[cfg(test)]
mod tests;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};
use secrecy::{ExposeSecret, SecretString};

use self::labels::{
    CachePartLabel, ConnectionLabels, FinishReasonLabel, IndexOperationLabels, MismatchKindLabel,
    ModelCallLabels, OutcomeLabel, PoolLabel, ProviderLabel, PurposeLabel, PurposeOutcomeLabels,
    RequestLabels, RouteLabels, SourceTypeLabel, StageLabel, StateLabel, TokenDirectionLabels,
    ToolCallLabels,
};
pub use self::labels::{EmbeddingPurpose, JobAttemptOutcome, MismatchKind};
use crate::{
    clock::Timestamp,
    model::{
        document::DocumentType,
        job::{IngestionStage, QueueDepth},
        run::TerminationReason,
        tool::ToolType,
    },
    secrets::sha256,
};

/// The content type of [`Metrics::text`]: `OpenMetrics`, which Prometheus and everything that reads its format understands.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Seconds, for what somebody waits for.
const QUICK: [f64; 14] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// Seconds, for what is done in the background or elsewhere.
const SLOW: [f64; 14] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];

fn quick() -> Histogram {
    Histogram::new(QUICK)
}

fn slow() -> Histogram {
    Histogram::new(SLOW)
}

/// No label at all; in a family, so that it can be absent.
type NoLabels = Vec<(String, String)>;
type HistogramFamily<L> = Family<L, Histogram, fn() -> Histogram>;

/// The metrics of a process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: HistogramFamily<RouteLabels>,
    requests_in_flight: Gauge,
    jobs: Family<StateLabel, Gauge>,
    oldest_due: Family<NoLabels, Gauge<f64, AtomicU64>>,
    attempts: Family<OutcomeLabel, Counter>,
    attempt_seconds: HistogramFamily<OutcomeLabel>,
    lease_expiries: Counter,
    stage_seconds: HistogramFamily<StageLabel>,
    documents: Family<SourceTypeLabel, Counter>,
    pages: Family<SourceTypeLabel, Counter>,
    chunks: Family<SourceTypeLabel, Counter>,
    source_bytes: Family<SourceTypeLabel, Counter>,
    embedding_seconds: HistogramFamily<PurposeOutcomeLabels>,
    texts: Family<PurposeLabel, Counter>,
    rerank_seconds: HistogramFamily<NoLabels>,
    reranked: Family<OutcomeLabel, Counter>,
    index_seconds: HistogramFamily<IndexOperationLabels>,
    index_mismatch: Family<MismatchKindLabel, Gauge>,
    index_cache: Family<CachePartLabel, Gauge>,
    index_cache_max: Family<CachePartLabel, Gauge>,
    model_seconds: HistogramFamily<ModelCallLabels>,
    first_token_seconds: HistogramFamily<ProviderLabel>,
    tokens: Family<TokenDirectionLabels, Counter>,
    cost: Family<ProviderLabel, Counter<f64, AtomicU64>>,
    tool_seconds: HistogramFamily<ToolCallLabels>,
    predict_seconds: HistogramFamily<FinishReasonLabel>,
    page_image_seconds: HistogramFamily<OutcomeLabel>,
    connections: Family<ConnectionLabels, Gauge>,
    connections_max: Family<PoolLabel, Gauge>,
    embedder_ready: Family<NoLabels, Gauge>,
    lost_lines: Counter,
    process: Mutex<process::ProcessMetrics>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Timestamp::from_micros(0))
    }
}

impl Metrics {
    /// Nothing counted yet, in a process that began at `started`.
    pub fn new(started: Timestamp) -> Self {
        let mut registry = Registry::default();
        let process =
            process::ProcessMetrics::register(registry.sub_registry_with_prefix("process"), started);
        let mut add = MetricRegistrar { registry: registry.sub_registry_with_prefix("lectern") };
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        add.registry.register("build", "The program's version", Info::new(version));
        let metrics = Self {
            requests: add.family("http_requests", "HTTP requests that were answered"),
            request_seconds: add.seconds(
                "http_request_duration",
                "Time until the head of an HTTP answer; a stream may go on long after it",
                quick,
            ),
            requests_in_flight: add.one("http_requests_in_flight", "HTTP requests without the head of an answer yet"),
            jobs: add.family("jobs", "Jobs in the queue of the whole installation; the same from every process"),
            oldest_due: add.family_in(
                "jobs_oldest_due",
                "How long the oldest job that is due waits for a worker; 0 when none is; the same from every process",
                Unit::Seconds,
            ),
            attempts: add.family("job_attempts", "Attempts at jobs that ended in this process"),
            attempt_seconds: add.seconds("job_duration", "Time of one attempt at a job", slow),
            lease_expiries: add.one(
                "job_lease_expiries",
                "Jobs that were taken from workers which went silent, as this process's housekeeping found",
            ),
            stage_seconds: add.seconds("ingestion_stage_duration", "Time in one stage of an ingestion", slow),
            documents: add.family("ingestion_documents", "Documents made searchable"),
            pages: add.family("ingestion_pages", "Pages of documents made searchable"),
            chunks: add.family("ingestion_chunks", "Passages of documents made searchable"),
            source_bytes: add.family_in("ingestion_source", "Size of sources that were read", Unit::Bytes),
            embedding_seconds: add.seconds("embedding_duration", "Time of one call of the embedding model", quick),
            texts: add.family("embedding_texts", "Texts that the embedding model was given"),
            rerank_seconds: add.seconds("rerank_duration", "Time of putting the passages of one search into a better order", quick),
            reranked: add.family("rerank_passages", "Passages that were to be put into a better order, by whether they were scored in time"),
            index_seconds: add.seconds("index_duration", "Time of one operation of the search index", quick),
            index_mismatch: add.family(
                "index_mismatch",
                "Searchable documents of which the last look through all found something else than was published; from the process that sweeps",
            ),
            index_cache: add.family_in(
                "index_cache",
                "What is kept at hand for searches: the embedded index, its files, and lists of what can be searched",
                Unit::Bytes,
            ),
            index_cache_max: add.family_in("index_cache_max", "The most that each part of it may take now", Unit::Bytes),
            model_seconds: add.seconds(
                "model_request_duration",
                "Time of one request to a chat model, repeated tries included",
                slow,
            ),
            first_token_seconds: add.seconds(
                "model_time_to_first_token",
                "Time until the first piece of a chat model's answer",
                slow,
            ),
            tokens: add.family("model_tokens", "Tokens that chat models read and wrote"),
            cost: add.family("model_cost", "What chat models cost, in the currency of LECTERN_PRICES"),
            tool_seconds: add.seconds("tool_call_duration", "Time of one call of an agent's tool", slow),
            predict_seconds: add.seconds("predict_duration", "Time of one run of an agent", slow),
            page_image_seconds: add.seconds("page_image_duration", "Time to draw a page of a document", quick),
            connections: add.family("database_connections", "Open connections to the database"),
            connections_max: add.family("database_connections_max", "The most connections that a pool opens"),
            embedder_ready: add.family("embedder_ready", "1 when the embedding model is there, else 0; absent when none is wanted"),
            lost_lines: add.one("log_lines_lost", "Log lines that were not written: nobody read those before them, or writing failed"),
            process: Mutex::new(process),
            registry: Registry::default(),
        };
        Self { registry, ..metrics }
    }

    /// An HTTP request came; it is in flight until the answer is told.
    pub fn request_began(&self) -> InFlightGuard {
        self.requests_in_flight.inc();
        InFlightGuard(self.requests_in_flight.clone())
    }

    /// An HTTP request was answered. `route` is the pattern of a path, never a path.
    pub fn request(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        let by = RequestLabels { method, route: route.to_owned(), status };
        self.requests.get_or_create(&by).inc();
        let RequestLabels { route, .. } = by;
        self.request_seconds.get_or_create(&RouteLabels { method, route }).observe(took.as_secs_f64());
    }

    /// An attempt at a job ended.
    pub fn attempt(&self, outcome: JobAttemptOutcome, took: Duration) {
        let outcome = OutcomeLabel { outcome: outcome.as_str() };
        self.attempts.get_or_create(&outcome).inc();
        self.attempt_seconds.get_or_create(&outcome).observe(took.as_secs_f64());
    }

    /// Jobs were taken from workers that went silent.
    pub fn leases_expired(&self, jobs: u64) {
        self.lease_expiries.inc_by(jobs);
    }

    /// A stage of an ingestion ended.
    pub fn stage(&self, stage: IngestionStage, took: Duration) {
        let stage = StageLabel { stage: stage.as_str().to_ascii_lowercase() };
        self.stage_seconds.get_or_create(&stage).observe(took.as_secs_f64());
    }

    /// A source was read.
    pub fn read(&self, r#type: DocumentType, bytes: u64) {
        self.source_bytes.get_or_create(&SourceTypeLabel { r#type: r#type.as_str() }).inc_by(bytes);
    }

    /// A document was made searchable.
    pub fn published(&self, r#type: DocumentType, pages: u64, chunks: u64) {
        let of = SourceTypeLabel { r#type: r#type.as_str() };
        self.documents.get_or_create(&of).inc();
        self.pages.get_or_create(&of).inc_by(pages);
        self.chunks.get_or_create(&of).inc_by(chunks);
    }

    /// The embedding model was asked for the vectors of `texts` texts.
    pub fn embedded(&self, purpose: EmbeddingPurpose, texts: usize, is_ok: bool, took: Duration) {
        let purpose = purpose.as_str();
        self.texts.get_or_create(&PurposeLabel { purpose }).inc_by(texts as u64);
        let labels = PurposeOutcomeLabels { purpose, outcome: labels::outcome(is_ok) };
        self.embedding_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Of the passages of a search, `scored` of `candidates` were scored by the reranker in time.
    pub fn reranked(&self, candidates: usize, scored: usize, took: Duration) {
        self.rerank_seconds.get_or_create(&NoLabels::new()).observe(took.as_secs_f64());
        let count = |is_ok, passages: usize| {
            let labels = OutcomeLabel { outcome: labels::outcome(is_ok) };
            self.reranked.get_or_create(&labels).inc_by(passages as u64);
        };
        count(true, scored);
        count(false, candidates.saturating_sub(scored));
    }

    /// The search index was asked for something.
    pub fn index(&self, operation: &'static str, is_ok: bool, took: Duration) {
        let labels = IndexOperationLabels { operation, outcome: labels::outcome(is_ok) };
        self.index_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// So many searchable documents have this mismatch.
    pub fn mismatched(&self, kind: MismatchKind, documents: u64) {
        let documents = i64::try_from(documents).unwrap_or(i64::MAX);
        self.index_mismatch.get_or_create(&MismatchKindLabel { kind: kind.as_str() }).set(documents);
    }

    /// What is kept at hand for searches at this moment.
    pub fn set_index_cache(&self, parts: &[CacheState]) {
        let shown = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        for &CacheState { part, bytes, max } in parts {
            self.index_cache.get_or_create(&CachePartLabel { part }).set(shown(bytes));
            self.index_cache_max.get_or_create(&CachePartLabel { part }).set(shown(max));
        }
    }

    /// A chat model was asked. `outcome` is `ok` or the kind of failure.
    pub fn model_asked(&self, provider: &'static str, outcome: &'static str, took: Duration) {
        self.model_seconds.get_or_create(&ModelCallLabels { provider, outcome }).observe(took.as_secs_f64());
    }

    /// A chat model's answer began.
    pub fn model_began(&self, provider: &'static str, after: Duration) {
        self.first_token_seconds.get_or_create(&ProviderLabel { provider }).observe(after.as_secs_f64());
    }

    /// What a chat model read and wrote, and what that cost where the price is known.
    pub fn model_used(&self, provider: &'static str, input: u64, output: u64, cost: Option<f64>) {
        self.tokens.get_or_create(&TokenDirectionLabels { provider, direction: "input" }).inc_by(input);
        self.tokens.get_or_create(&TokenDirectionLabels { provider, direction: "output" }).inc_by(output);
        if let Some(cost) = cost.filter(|cost| *cost > 0.0) {
            self.cost.get_or_create(&ProviderLabel { provider }).inc_by(cost);
        }
    }

    /// A tool was called.
    pub fn tool(&self, r#type: ToolType, is_ok: bool, took: Duration) {
        let labels = ToolCallLabels { r#type: r#type.as_str(), outcome: labels::outcome(is_ok) };
        self.tool_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A run of an agent ended.
    pub fn predicted(&self, reason: TerminationReason, took: Duration) {
        let label = FinishReasonLabel { finish_reason: reason.as_str() };
        self.predict_seconds.get_or_create(&label).observe(took.as_secs_f64());
    }

    /// A page of a document was drawn, or was not.
    pub fn drawn(&self, is_ok: bool, took: Duration) {
        let label = OutcomeLabel { outcome: labels::outcome(is_ok) };
        self.page_image_seconds.get_or_create(&label).observe(took.as_secs_f64());
    }

    /// What the pools of the database hold at this moment.
    pub fn set_pools(&self, pools: &[PoolState]) {
        for pool in pools {
            let set = |state, value| {
                self.connections.get_or_create(&ConnectionLabels { pool: pool.name, state }).set(value);
            };
            set("idle", pool.idle);
            set("used", pool.open - pool.idle);
            self.connections_max.get_or_create(&PoolLabel { pool: pool.name }).set(pool.max);
        }
    }

    /// Whether the embedding model is there; none when none is wanted.
    pub fn set_embedder(&self, is_ready: Option<bool>) {
        match is_ready {
            None => self.embedder_ready.clear(),
            Some(is_ready) => {
                self.embedder_ready.get_or_create(&Vec::new()).set(i64::from(is_ready));
            }
        }
    }

    /// So many log lines were lost since the process began.
    pub fn set_lost_lines(&self, lines: u64) {
        self.lost_lines.inner().store(lines, Ordering::Relaxed);
    }

    /// How much work there is; none when nobody could say.
    pub fn set_queue(&self, depth: Option<QueueDepth>, now: Timestamp) {
        // Absent is better than old.
        self.jobs.clear();
        self.oldest_due.clear();
        let Some(depth) = depth else { return };
        let counts = [
            ("due", depth.due),
            ("waiting", depth.waiting),
            ("running", depth.running),
            ("dead", depth.dead),
        ];
        for (state, count) in counts {
            self.jobs.get_or_create(&StateLabel { state }).set(count);
        }
        let oldest = depth.oldest_due.map_or(Duration::ZERO, |due| now.since(due));
        self.oldest_due.get_or_create(&Vec::new()).set(oldest.as_secs_f64());
    }

    /// Everything, as Prometheus reads it ([`CONTENT_TYPE`]). Reads the system's files about the process, and there may be
    /// thousands of series: never called on an async thread.
    pub fn text(&self) -> String {
        self.process.lock().read();
        let mut written = String::new();
        // A string takes all that is written.
        let _ = text::encode(&mut written, &self.registry);
        written
    }
}

/// Whether whoever sent this `Authorization` may read metrics; everybody may where no token is set.
pub fn may_read(token: Option<&SecretString>, authorization: Option<&str>) -> bool {
    let Some(token) = token else { return true };
    let given = authorization.and_then(|value| value.split_once(' '));
    given.is_some_and(|(scheme, given)| {
        // Hashes are compared, so that the time tells nothing of the token.
        scheme.eq_ignore_ascii_case("bearer")
            && sha256(given.trim().as_bytes()) == sha256(token.expose_secret().as_bytes())
    })
}

/// An HTTP request that has no answer yet.
#[derive(Debug)]
pub struct InFlightGuard(Gauge);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Registers metrics, and gives them back.
struct MetricRegistrar<'a> {
    registry: &'a mut Registry,
}

impl MetricRegistrar<'_> {
    fn one<M: prometheus_client::registry::Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.registry.register(name, help, metric.clone());
        metric
    }

    fn family<L, M>(&mut self, name: &str, help: &str) -> Family<L, M>
    where
        L: Clone + std::hash::Hash + Eq,
        M: Default,
        Family<L, M>: prometheus_client::registry::Metric,
    {
        let family = Family::<L, M>::default();
        self.registry.register(name, help, family.clone());
        family
    }

    fn family_in<L, M>(&mut self, name: &str, help: &str, unit: Unit) -> Family<L, M>
    where
        L: Clone + std::hash::Hash + Eq,
        M: Default,
        Family<L, M>: prometheus_client::registry::Metric,
    {
        let family = Family::<L, M>::default();
        self.registry.register_with_unit(name, help, unit, family.clone());
        family
    }

    fn seconds<L>(&mut self, name: &str, help: &str, buckets: fn() -> Histogram) -> HistogramFamily<L>
    where
        L: Clone + std::hash::Hash + Eq + EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static,
    {
        let family = HistogramFamily::<L>::new_with_constructor(buckets);
        self.registry.register_with_unit(name, help, Unit::Seconds, family.clone());
        family
    }
}

/// How full a part of a cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheState {
    /// `index`, `files` or `lists`.
    pub part: &'static str,
    /// The bytes that it takes.
    pub bytes: u64,
    /// The most that it may take now.
    pub max: u64,
}

/// How many connections a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolState {
    /// `main` and `probes`, or on SQLite `readers` and `writer`.
    pub name: &'static str,
    /// Connections.
    pub open: i64,
    /// Those of them that nobody uses.
    pub idle: i64,
    /// The most that there can be.
    pub max: i64,
}
