use std::{collections::BTreeSet, time::Duration};

use super::*;

fn shown(metrics: &Metrics) -> String {
    let mut text = String::new();
    text::encode(&mut text, &metrics.registry).unwrap();
    text
}

const DASHBOARD: &str = include_str!("../../../docs/grafana/lectern.json");
const ALERTS: &str = include_str!("../../../docs/grafana/alerts.yml");
const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// Metrics that have been told one thing of each kind.
fn told() -> Metrics {
    let metrics = Metrics::new(Timestamp::from_micros(1_700_000_000_500_000));
    metrics.request("GET", "/api/v1/documents/{id}", 200, Duration::from_millis(3));
    metrics.attempt(JobAttemptOutcome::Done, Duration::from_secs(2));
    metrics.leases_expired(2);
    metrics.mismatched(MismatchKind::Missing, 1);
    metrics.set_index_cache(&[CacheState { part: "files", bytes: 5_000_000_000, max: u64::MAX }]);
    metrics.stage(IngestionStage::Parse, Duration::from_millis(30));
    metrics.read(DocumentType::Pdf, 4_096);
    metrics.published(DocumentType::Pdf, 12, 40);
    metrics.embedded(EmbeddingPurpose::Passages, 64, true, Duration::from_secs(1));
    metrics.reranked(3, 2, Duration::from_millis(40));
    metrics.model_asked("openai", "timeout", Duration::from_secs(30));
    metrics.model_began("openai", Duration::from_millis(400));
    metrics.model_used("openai", 412, 24, Some(0.25));
    metrics.tool(ToolType::Search, false, Duration::from_millis(90));
    metrics.predicted(TerminationReason::Stop, Duration::from_secs(3));
    for state in ["due", "waiting", "running", "dead"] {
        metrics.jobs.get_or_create(&StateLabel { state }).set(1);
    }
    metrics.oldest_due.get_or_create(&Vec::new()).set(1.0);
    metrics.embedder_ready.get_or_create(&Vec::new()).set(1);
    let (pool, state) = ("main", "used");
    metrics.connections.get_or_create(&ConnectionLabels { pool, state }).set(1);
    metrics.connections_max.get_or_create(&PoolLabel { pool }).set(20);
    let labels = IndexOperationLabels { operation: "search", outcome: "ok" };
    metrics.index_seconds.get_or_create(&labels).observe(0.001);
    metrics
}

#[test]
fn what_is_told_is_shown_under_the_documented_names() {
    let metrics = told();
    let text = shown(&metrics);
    for line in [
        r#"lectern_http_requests_total{method="GET",route="/api/v1/documents/{id}",status="200"} 1"#,
        r#"lectern_http_request_duration_seconds_bucket{le="0.005",method="GET",route="/api/v1/documents/{id}"} 1"#,
        r#"lectern_job_attempts_total{outcome="done"} 1"#,
        r#"lectern_job_duration_seconds_count{outcome="done"} 1"#,
        "lectern_job_lease_expiries_total 2",
        r#"lectern_ingestion_stage_duration_seconds_count{stage="parse"} 1"#,
        r#"lectern_ingestion_documents_total{type="PDF"} 1"#,
        r#"lectern_ingestion_pages_total{type="PDF"} 12"#,
        r#"lectern_ingestion_chunks_total{type="PDF"} 40"#,
        r#"lectern_ingestion_source_bytes_total{type="PDF"} 4096"#,
        r#"lectern_embedding_texts_total{purpose="passages"} 64"#,
        r#"lectern_embedding_duration_seconds_count{purpose="passages",outcome="ok"} 1"#,
        r#"lectern_model_request_duration_seconds_count{provider="openai",outcome="timeout"} 1"#,
        r#"lectern_model_time_to_first_token_seconds_count{provider="openai"} 1"#,
        r#"lectern_model_tokens_total{provider="openai",direction="input"} 412"#,
        r#"lectern_model_cost_total{provider="openai"} 0.25"#,
        r#"lectern_tool_call_duration_seconds_count{type="SEARCH",outcome="error"} 1"#,
        r#"lectern_predict_duration_seconds_count{finish_reason="stop"} 1"#,
        r#"lectern_index_cache_bytes{part="files"} 5000000000"#,
        r#"lectern_index_cache_max_bytes{part="files"} 9223372036854775807"#,
        "process_start_time_seconds 1700000000.5",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
    assert!(text.contains(r#"lectern_build_info{version=""#));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn whoever_reads_needs_the_token_when_there_is_one() {
    let token = SecretString::from("open sesame");
    assert!(may_read(None, None));
    assert!(may_read(Some(&token), Some("Bearer open sesame")));
    for refused in [None, Some(""), Some("open sesame"), Some("Basic open sesame"), Some("Bearer open")] {
        assert!(!may_read(Some(&token), refused), "{refused:?}");
    }
}

#[test]
fn a_request_is_in_flight_until_it_is_dropped() {
    let metrics = Metrics::default();
    let request = metrics.request_began();
    assert!(shown(&metrics).contains("lectern_http_requests_in_flight 1"));
    drop(request);
    assert!(shown(&metrics).contains("lectern_http_requests_in_flight 0"));
}

#[test]
fn what_the_system_knows_of_the_process_is_read_anew_each_time() {
    let metrics = Metrics::default();
    metrics.process.lock().read();
    let value = |name: &str| -> f64 {
        let text = shown(&metrics);
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") > value("process_open_fds"));
    assert!(value("process_threads") >= 1.0);
    let before = value("process_cpu_seconds_total");
    metrics.process.lock().read();
    assert!(value("process_cpu_seconds_total") >= before);
}

/// Every word of a text that looks like the name of a metric.
fn names_in(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .filter(|word| word.starts_with("lectern_") || word.starts_with("process_"))
        .map(|word| word.trim_end_matches('_'))
        .collect()
}

#[test]
fn the_dashboard_the_alerts_and_the_manual_name_metrics_that_there_are() {
    let text = shown(&told());
    let known: BTreeSet<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    for (file, text) in [("the dashboard", DASHBOARD), ("the alerts", ALERTS)] {
        let names = names_in(text);
        assert!(names.len() > 5, "so little proves nothing: {names:?}");
        let unknown: Vec<_> = names.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}, known are {known:?}");
    }
    serde_json::from_str::<serde_json::Value>(DASHBOARD).unwrap();
    let (_, manual) = OPERATIONS.split_once("\n## Metrics\n").unwrap();
    for name in names_in(manual.split("\n## ").next().unwrap()) {
        assert!(known.iter().any(|known| known.starts_with(name)), "the manual tells of {name}");
    }
}
