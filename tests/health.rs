//! Starting, being healthy, and ending.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use crate::support::{
    client::{Client, data, envelope, send},
    command::meddle,
    db::PostgresServer,
    in_both_modes, on_postgres_too,
    redis::RedisServer,
    service::{Mode, Service},
};

in_both_modes!(
    a_started_service_is_live_and_ready,
    sigterm_ends_it_with_exit_code_0,
    a_killed_service_starts_again,
    a_service_with_another_key_is_refused
);

on_postgres_too!(a_started_service_is_live_and_ready);

async fn health(client: &Client, path: &str) -> (StatusCode, Value) {
    envelope(send(client.request_outside(Method::GET, path)).await).await
}

async fn a_started_service_is_live_and_ready(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.client();

    let live = data(health(&client, "/health/live").await);
    assert_eq!(live["status"], "live");

    let ready = data(health(&client, "/health/ready").await);
    assert_eq!(ready["status"], "ready");
    for part in ["database", "queue", "index", "blobs"] {
        assert_eq!(ready["parts"][part]["status"], "up", "{part} in {ready:#}");
    }
    // The tests run without an embedding model, which an operator has to be able to see.
    assert_eq!(ready["parts"]["embedder"]["status"], "off", "{ready:#}");
}

async fn sigterm_ends_it_with_exit_code_0(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let status = service.terminate().await;
    assert_eq!(status.code(), Some(0), "{status}");
}

async fn a_killed_service_starts_again(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let client = service.client();
    service.kill();
    assert!(!client.is_ready().await);
    service.restart().await;
    assert_eq!(data(health(&client, "/health/ready").await)["status"], "ready");
}

async fn a_service_with_another_key_is_refused(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    service.terminate().await;
    let another = "another key, of thirty-two bytes or more";
    let refusal = service.sibling().env("LECTERN_SECRET_KEY", another).start_refused().await;
    for (name, status, log) in refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("LECTERN_SECRET_KEY_PREVIOUS"), "{name} does not help: {log}");
    }
    service.restart().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_can_only_be_read_is_noticed_at_the_start() {
    let mut service = Service::in_mode(Mode::Cluster).start().await;
    service.terminate().await;
    let setup = service.sibling();
    let read_only = "DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
    END $$";
    meddle(Mode::Cluster, &setup, read_only).await;
    let refusal = setup.start_refused().await;
    for (name, status, log) in refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("read-only"), "{name} does not say why: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_service_whose_database_is_gone() {
    let mut server = PostgresServer::start().await;
    let mut service = Service::in_mode(Mode::Postgres).database_url(&server.url()).start().await;
    let says = |words: &'static str| {
        move |event: &Value| event["fields"]["message"].as_str().is_some_and(|text| text.contains(words))
    };
    server.crash().await;
    service.logged("that the database is missed", says("trying again")).await;
    service.ask_to_stop();
    service.logged("the first signal", says("stopping: no new work is taken")).await;
    let status = service.terminate().await;
    assert_eq!(status.code(), Some(0), "{status}");
    let ran_out = service.log_events().iter().any(says("the time to stop is over"));
    assert!(!ran_out, "nothing waits for the database until that is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_database_that_cannot_store_every_text_is_refused() {
    let server = PostgresServer::start().await;
    let setup = Service::in_mode(Mode::Postgres).database_url(&server.url());
    let make = "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    meddle(Mode::Postgres, &setup, make).await;
    let mut url = Url::parse(&server.url()).expect("an address");
    url.set_path("latin");
    let refusal = setup.database_url(url.as_str()).start_refused().await;
    assert!(refusal.log.contains("LATIN1") && refusal.log.contains("UTF8"), "{}", refusal.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_says_why_a_database_that_is_down_cannot_be_reached() {
    let mut server = PostgresServer::start().await;
    let service = Service::in_mode(Mode::Postgres).database_url(&server.url()).start().await;
    server.crash().await;
    let ready = send(service.client().request_outside(Method::GET, "/health/ready")).await;
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    let says_why = |event: &Value| {
        let field = |name: &str| event["fields"][name].as_str().unwrap_or_default();
        field("message").contains("lets no connection be made") && field("error").contains("refused")
    };
    service.logged("why there is no connection", says_why).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_says_why_no_parser_can_be_started() {
    let service = Service::in_mode(Mode::Embedded).env("TMPDIR", "/nowhere").start().await;
    let says_why = |event: &Value| {
        let field = |name: &str| event["fields"][name].as_str().unwrap_or_default();
        field("message").contains("the sandbox could not be tried") && field("error").contains("/nowhere")
    };
    service.logged("why no parser starts", says_why).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_data_directory_is_refused() {
    let first = Service::start().await;

    let refusal = first.sibling().start_refused().await;
    assert_ne!(refusal.status.code(), Some(0));
    let directory = first.data_dir().to_str().expect("a path of plain text");
    assert!(refusal.log.contains(directory), "the message names no directory: {}", refusal.log);

    assert!(first.client().is_ready().await, "the first process goes on undisturbed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_setting_stops_the_start_and_is_named() {
    let refusal = Service::in_mode(Mode::Embedded).env("LECTERN_JWT_TTL", "soon").start_refused().await;
    assert_ne!(refusal.status.code(), Some(0));
    assert!(refusal.log.contains("LECTERN_JWT_TTL"), "the message names no setting: {}", refusal.log);
    assert!(refusal.log.contains("soon"), "the message does not quote the value: {}", refusal.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_model_that_nobody_could_ask_stops_the_start() {
    for (default, setting) in
        [("ollama/llama3.2", "OLLAMA_HOST"), ("azure-openai/mine", "AZURE_OPENAI_ENDPOINT")]
    {
        let setup = || Service::in_mode(Mode::Embedded).env("LECTERN_DEFAULT_LLM", default);
        let refusal = setup().start_refused().await;
        assert_ne!(refusal.status.code(), Some(0));
        assert!(
            refusal.log.contains("LECTERN_DEFAULT_LLM") && refusal.log.contains(setting),
            "{}",
            refusal.log
        );
        let service = setup().env(setting, "http://127.0.0.1:11434").start().await;
        let ada = service.signed_up("ada@example.com").await;
        let agent = ada.create_agent(&serde_json::json!({ "name": "Clerk", "type": "REACT" })).await;
        assert_eq!(agent["llm"]["provider"], default.split('/').next().expect("a provider"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_of_a_provider_that_there_is_not_stops_the_start() {
    let setup = Service::in_mode(Mode::Embedded).env("LECTERN_PRICES", "openai/m=1:2,foo/x=1:2");
    let refusal = setup.start_refused().await;
    assert_ne!(refusal.status.code(), Some(0));
    for words in ["LECTERN_PRICES", "foo/x", "openai-compatible"] {
        assert!(refusal.log.contains(words), "{words}: {}", refusal.log);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_services_run_beside_each_other() {
    let (one, other) = tokio::join!(Service::start(), Service::start());
    assert_ne!(one.base_url(), other.base_url());
    assert!(one.client().is_ready().await && other.client().is_ready().await);
}

// --- the cluster's programs ------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_a_cluster_refuse_to_share_a_sqlite_file() {
    let refusal = Service::in_mode(Mode::Cluster).without("DATABASE_URL").start_refused().await;
    for (name, status, log) in refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("DATABASE_URL") && log.contains("PostgreSQL"), "{name} does not help: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_a_cluster_make_no_secret_of_their_own() {
    let refusal = Service::in_mode(Mode::Cluster).without("LECTERN_SECRET_KEY").start_refused().await;
    for (name, status, log) in refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("LECTERN_SECRET_KEY"), "{name} names no setting: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_does_not_see_the_others_blobs_is_refused() {
    let service = Service::in_mode(Mode::Cluster).start().await;
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let directory = elsewhere.path().to_str().expect("a path of plain text");
    let refusal = service.sibling().env("LECTERN_DATA_DIR", directory).start_refused().await;
    for (name, status, log) in refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("LECTERN_BLOBS") && log.contains(directory), "{name} does not help: {log}");
    }
    assert!(service.client().is_ready().await, "the others go on undisturbed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_redis_is_ready_and_ingests() {
    let service = Service::in_mode(Mode::Cluster).without("REDIS_URL").start().await;
    let ada = service.signed_up("ada@example.com").await;
    ada.ingest(&json!({ "name": "Note", "type": "TXT", "content": "Nobody rang." })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_takes_no_writes_is_not_up() {
    let server = RedisServer::start().await;
    let service = Service::in_mode(Mode::Cluster).redis_url(&server.url()).start().await;
    let client = service.client();
    let redis = async || {
        let ready = data(health(&client, "/health/ready").await);
        assert_eq!(ready["status"], "ready", "nothing needs Redis: {ready:#}");
        ready["parts"]["queue"]["redis"]["status"].clone()
    };
    assert_eq!(redis().await, "up");
    // As after a failover that the address did not follow. It answers and can be read.
    assert_eq!(server.command("REPLICAOF 127.0.0.1 1").await, "+OK");
    assert_eq!(redis().await, "down");
    assert_eq!(server.command("REPLICAOF NO ONE").await, "+OK");
    assert_eq!(redis().await, "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_tells_its_health_where_it_was_told_to() {
    let setup = Service::in_mode(Mode::Cluster).workers(2).env("LECTERN_WORKER_ADDR", "127.0.0.1:0");
    let mut service = setup.start().await;
    for worker in 0..service.worker_count() {
        let url = service.worker_url(worker).expect("an address in its log");
        for (path, state) in [("live", "live"), ("ready", "ready")] {
            let answer = reqwest::get(format!("{url}/health/{path}")).await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::OK);
            let answer: Value = serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
            assert_eq!(answer["data"]["status"], state, "{answer:#}");
        }
        let elsewhere = reqwest::get(format!("{url}/api/v1/documents")).await.expect("an answer");
        assert_eq!(elsewhere.status(), StatusCode::NOT_FOUND, "a worker answers nothing else");
    }
    let status = service.stop_worker(1).await;
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(service.client().is_ready().await, "the API does not depend on a worker");
}
