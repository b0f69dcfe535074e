//! `/metrics`: what Prometheus reads of each process.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{
    client::{Client, id, send},
    in_both_modes,
    model::{INPUT_TOKENS, Model, Reply},
    service::{Mode, Service},
};

in_both_modes!(
    what_a_user_does_is_counted,
    no_label_holds_what_a_user_made_up,
    metrics_ask_for_the_token_that_is_set
);

/// The metrics at an address, by name and labels.
async fn read(url: &str) -> BTreeMap<String, f64> {
    let answer = reqwest::get(format!("{url}/metrics")).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    let content_type = answer.headers()["content-type"].to_str().expect("text").to_owned();
    assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"), "{content_type}");
    let text = answer.text().await.expect("a body");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        (name.to_owned(), value.parse().expect("a number"))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(value).collect()
}

/// Where the process that ingests answers.
fn worker_url(service: &Service) -> String {
    let worker = (service.worker_count() > 0).then(|| service.worker_url(0)).flatten();
    worker.unwrap_or_else(|| service.base_url())
}

/// A service that has done one thing of each kind.
async fn used(mode: Mode) -> (Service, Client) {
    let setup = Service::in_mode(mode).env("LECTERN_PRICES", "openai-compatible/m-1=1000:2000");
    let setup = if mode == Mode::Cluster { setup.env("LECTERN_WORKER_ADDR", "127.0.0.1:0") } else { setup };
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m-1")});
    let agent = client.create_agent(&agent).await;
    let body = json!({"name": "Note", "type": "TXT", "content": "The harbour gate opens at half past six."});
    let document = client.ingest(&body).await;
    client.link(id(&agent), id(&document)).await;
    let tool = json!({"name": "web", "type": "SEARCH", "metadata": {"provider": "searxng", "base_url": model.base_url()}});
    client.create_tool_for(id(&agent), &tool).await;
    model.reply(Reply::tool_calls([("web", json!({"query": "gates"}))]));
    model.reply(Reply::text("Half past six."));
    let (status, answer) = client.predict(id(&agent), "When?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    (service, client)
}

async fn what_a_user_does_is_counted(mode: Mode) {
    let (service, client) = used(mode).await;
    let (status, _) = client.get("/documents/00000000-0000-7000-8000-000000000000").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let api = read(&service.base_url()).await;
    let worker = read(&worker_url(&service)).await;

    let count = |from: &BTreeMap<String, f64>, name: &str| from.get(name).copied().unwrap_or_default();
    let created = r#"lectern_http_requests_total{method="POST",route="/api/v1/documents",status="200"}"#;
    assert!((count(&api, created) - 1.0).abs() < 0.1, "{api:#?}");
    let missing = r#"lectern_http_requests_total{method="GET",route="/api/v1/documents/{id}",status="404"}"#;
    assert!((count(&api, missing) - 1.0).abs() < 0.1, "{api:#?}");
    let input = r#"lectern_model_tokens_total{provider="openai-compatible",direction="input"}"#;
    let tokens = f64::from(u32::try_from(2 * INPUT_TOKENS).expect("few"));
    assert!((count(&api, input) - tokens).abs() < 0.1, "{api:#?}");
    for name in [
        r#"lectern_model_cost_total{provider="openai-compatible"}"#,
        r#"lectern_model_request_duration_seconds_count{provider="openai-compatible",outcome="ok"}"#,
        r#"lectern_model_time_to_first_token_seconds_count{provider="openai-compatible"}"#,
        r#"lectern_tool_call_duration_seconds_count{type="SEARCH",outcome="error"}"#,
        r#"lectern_predict_duration_seconds_count{finish_reason="stop"}"#,
        r#"lectern_index_duration_seconds_count{operation="search",outcome="ok"}"#,
        r#"lectern_index_cache_bytes{part="index"}"#,
        r#"lectern_index_cache_bytes{part="lists"}"#,
        r#"lectern_index_cache_max_bytes{part="files"}"#,
        "process_resident_memory_bytes",
    ] {
        assert!(count(&api, name) > 0.0, "{name} is not in {api:#?}");
    }
    for name in [
        r#"lectern_job_attempts_total{outcome="done"}"#,
        r#"lectern_ingestion_documents_total{type="TXT"}"#,
        r#"lectern_ingestion_chunks_total{type="TXT"}"#,
        r#"lectern_ingestion_source_bytes_total{type="TXT"}"#,
        r#"lectern_ingestion_stage_duration_seconds_count{stage="index"}"#,
        r#"lectern_index_duration_seconds_count{operation="write",outcome="ok"}"#,
        "process_resident_memory_bytes",
    ] {
        assert!(count(&worker, name) > 0.0, "{name} is not in {worker:#?}");
    }
    for metrics in [&api, &worker] {
        for state in ["due", "waiting", "running", "dead"] {
            assert!(metrics.contains_key(&format!(r#"lectern_jobs{{state="{state}"}}"#)), "{metrics:#?}");
        }
    }
}

async fn no_label_holds_what_a_user_made_up(mode: Mode) {
    let (service, client) = used(mode).await;
    let before = read(&service.base_url()).await.len();
    for made_up in ["/nowhere/at-all", "/documents/not-an-id", "/agents/%F0%9F%8C%8D"] {
        client.get(made_up).await;
    }
    let invented = Method::from_bytes(b"INVENTED").expect("a method");
    let answer = send(client.request(invented, "/documents")).await;
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    let metrics = read(&service.base_url()).await;
    let text = metrics.keys().cloned().collect::<Vec<_>>().join("\n");
    for word in ["nowhere", "not-an-id", "%F0", "INVENTED", "guide", "m-1", "ada", "harbour"] {
        assert!(!text.contains(word), "{word} is a label:\n{text}");
    }
    assert!(metrics.len() < before + 120, "{before} became {}", metrics.len());
}

async fn metrics_ask_for_the_token_that_is_set(mode: Mode) {
    let setup = Service::in_mode(mode).env("LECTERN_METRICS_TOKEN", "a token of the operator's");
    let setup = if mode == Mode::Cluster { setup.env("LECTERN_WORKER_ADDR", "127.0.0.1:0") } else { setup };
    let service = setup.start().await;
    let user = service.signed_up("ada@example.com").await;
    for url in [service.base_url(), worker_url(&service)] {
        let get = |token: &str| reqwest::Client::new().get(format!("{url}/metrics")).bearer_auth(token);
        for refused in ["", "another", user.token()] {
            let answer = get(refused).send().await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{refused:?}");
            let body = answer.text().await.expect("a body");
            assert!(!body.contains("lectern_jobs") && body.contains("unauthorized"), "{body}");
        }
        let answer = get("a token of the operator's").send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    }
    service.assert_no_secret_in_logs(&["a token of the operator's"]);
}
