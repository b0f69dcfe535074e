//! Traces: what a collector gets to see, and what it does not.

use lectern_shared::secrets::hex;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{
    client::{id, send},
    collector::Collector,
    in_both_modes,
    model::{API_KEY, INPUT_TOKENS, Model, OUTPUT_TOKENS, Reply},
    service::{Mode, Service, Setup},
};

in_both_modes!(
    a_document_is_one_trace_from_the_request_to_its_publication,
    a_predict_is_one_trace_with_the_names_for_generative_ai_and_without_texts,
    a_collector_that_is_away_costs_nothing_but_the_spans
);

const TEXT: &str = "The harbour gate opens at half past six.";

fn exporting(mode: Mode, endpoint: &str) -> Setup {
    // The collector gets what there is soon, not after some seconds.
    Service::in_mode(mode)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=open-sesame")
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
}

async fn a_document_is_one_trace_from_the_request_to_its_publication(mode: Mode) {
    let collector = Collector::start().await;
    let service = exporting(mode, &collector.endpoint()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let body = json!({"name": "Note", "type": "TXT", "content": TEXT});
    let request = client
        .request(Method::POST, "/documents")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("x-request-id", "from-the-caller")
        .json(&body);
    let answer = send(request).await;
    assert_eq!(answer.status(), StatusCode::OK);

    let job = collector.wait_for("the job", |span| span.name == "ingest").await;
    let request = collector
        .wait_for("the request", |span| span.attribute("lectern.request.id") == Some("from-the-caller"))
        .await;
    assert_eq!(hex(&request.trace), "0af7651916cd43dd8448eb211c80319c", "the caller's own trace goes on");
    assert_eq!(request.name, "POST /api/v1/documents");
    assert_eq!(request.attribute("http.response.status_code"), Some("200"));
    assert_eq!((&job.trace, &job.parent), (&request.trace, &request.id), "{job:?}");
    assert_eq!(job.attribute("lectern.job.outcome"), Some("done"));
    for stage in ["fetch", "split", "index"] {
        let stage = collector.wait_for(stage, |span| span.name == stage && span.trace == job.trace).await;
        assert_eq!(stage.parent, job.id, "{stage:?}");
    }
    match mode {
        Mode::Embedded | Mode::Postgres => assert_eq!(request.service, "lectern"),
        Mode::Cluster => {
            assert_eq!((request.service.as_str(), job.service.as_str()), ("lectern-api", "lectern-worker"));
        }
    }
    assert!(collector.keys().iter().all(|key| key.as_deref() == Some("open-sesame")));
    service.assert_no_secret_in_logs(&["open-sesame"]);
}

async fn a_predict_is_one_trace_with_the_names_for_generative_ai_and_without_texts(mode: Mode) {
    let collector = Collector::start().await;
    let service = exporting(mode, &collector.endpoint()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m-1")});
    let agent = client.create_agent(&agent).await;
    let document = client.ingest(&json!({"name": "Note", "type": "TXT", "content": TEXT})).await;
    client.link(id(&agent), id(&document)).await;
    model.reply(Reply::tool_calls([("search_documents", json!({"query": "harbour"}))]));
    model.reply(Reply::text("\"The harbour gate opens at half past six\" [1]."));
    let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");

    let run = collector.wait_for("the run", |span| span.name == "invoke_agent").await;
    let request = collector.wait_for("the request", |span| span.id == run.parent).await;
    assert_eq!(request.name, "POST /api/v1/agents/{id}/predict");
    assert_eq!(run.attribute("gen_ai.operation.name"), Some("invoke_agent"));
    assert_eq!(run.attribute("gen_ai.agent.id"), agent["id"].as_str());
    assert_eq!(run.attribute("lectern.trace.id"), answer["trace"]["id"].as_str());
    assert_eq!(run.attribute("gen_ai.usage.input_tokens"), Some((2 * INPUT_TOKENS).to_string().as_str()));
    let below: Vec<_> = collector.spans().into_iter().filter(|span| span.parent == run.id).collect();
    let mut names: Vec<_> = below.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["chat m-1", "chat m-1", "retrieval", "retrieval"]);
    let chat = below.iter().find(|span| span.name == "chat m-1").expect("a request to the model");
    assert_eq!(chat.attribute("gen_ai.request.model"), Some("m-1"));
    assert_eq!(chat.attribute("gen_ai.provider.name"), Some("openai-compatible"));
    assert_eq!(chat.attribute("gen_ai.usage.output_tokens"), Some(OUTPUT_TOKENS.to_string().as_str()));

    let everything = format!("{:?}", collector.spans());
    for text in ["harbour", "half past six", "When does", API_KEY, "ada@example.com", client.token()] {
        assert!(!everything.contains(text), "{text:?} was exported");
    }
}

async fn a_collector_that_is_away_costs_nothing_but_the_spans(mode: Mode) {
    // A port that nobody listens on.
    let endpoint = Collector::start().await.endpoint();
    let mut service = exporting(mode, &endpoint).start().await;
    let client = service.signed_up("ada@example.com").await;
    client.ingest(&json!({"name": "Note", "type": "TXT", "content": TEXT})).await;
    client.ingest(&json!({"name": "Another", "type": "TXT", "content": TEXT})).await;
    let status = service.terminate().await;
    assert_eq!(status.code(), Some(0), "{status}");
    let said = service.logs().lines().filter(|line| line.contains("the collector of spans fails")).count();
    let processes = 1 + service.worker_count();
    assert!((1..=processes).contains(&said), "{said} lines for one outage");
}
