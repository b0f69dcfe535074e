//! Any mix of embedded parts and servers works; what cannot work is refused at the start, with a reason.

use std::{process::Command, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    client::{Client, data, envelope, id, send},
    db::PostgresServer,
    redis,
    service::{Mode, Service},
    setup::Program,
};

async fn health(client: &Client) -> Value {
    data(envelope(send(client.request_outside(Method::GET, "/health/ready")).await).await)["parts"].clone()
}

/// A document becomes searchable, and an agent answers from it.
async fn assert_it_works(service: &Service) {
    let client = service.signed_up("ada@example.com").await;
    let document = client
        .ingest(&json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."}))
        .await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
    let agent = client.create_agent(&json!({"name": "caretaker", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&document)).await;
    let (status, answer) = client.predict(id(&agent), "Where do bicycles belong?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["verified"], true, "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_work_without_redis() {
    let service = Service::in_mode(Mode::Cluster).without("REDIS_URL").start().await;
    assert_it_works(&service).await;
    assert_eq!(health(&service.client()).await["queue"]["kind"], "in-process");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_single_program_works_with_sqlite_and_redis() {
    let service = Service::in_mode(Mode::Embedded).redis_url(&redis::shared_url()).start().await;
    assert_it_works(&service).await;
    let health = health(&service.client()).await;
    assert_eq!((&health["database"]["kind"], &health["queue"]["kind"]), (&json!("sqlite"), &json!("redis")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_single_program_works_with_postgresql_beside_parts() {
    let service = Service::in_mode(Mode::Cluster).start().await;
    assert_it_works(&service).await;
    let status = Command::new(Program::Lectern.path())
        .args(["migrate"])
        .env_clear()
        .envs(service.sibling().environment())
        .status()
        .expect("it starts");
    assert!(status.success(), "an operator's command runs beside the service");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_fails_while_redis_was_never_there() {
    // Nothing listens on port 1.
    let service = Service::in_mode(Mode::Cluster)
        .redis_url("redis://127.0.0.1:1")
        .env("LECTERN_RATE_LIMIT", "1000/s")
        .start()
        .await;
    assert_it_works(&service).await;
    assert_eq!(health(&service.client()).await["queue"]["redis"]["status"], "down");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_on_a_sqlite_file_are_refused() {
    let refusal = Service::in_mode(Mode::Cluster).without("DATABASE_URL").start_refused().await;
    for (name, status, log) in &refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("DATABASE_URL") && log.contains("PostgreSQL"), "{name}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_lets_nobody_in_is_told_with_its_setting_and_what_to_correct() {
    let postgres = PostgresServer::start().await;
    let setup = Service::in_mode(Mode::Cluster).database_url(&format!("{}_gone", postgres.url()));
    let refusal = setup.start_refused().await;
    for (name, status, log) in &refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("DATABASE_URL: ") && log.contains("does not exist: see"), "{name}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_blobs_are_elsewhere_is_refused() {
    let service = Service::in_mode(Mode::Cluster).start().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", elsewhere.path().display());
    let refusal = service.sibling().env("LECTERN_BLOBS", &url).start_refused().await;
    for (name, status, log) in &refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        let place = elsewhere.path().to_str().expect("a path of plain text");
        assert!(log.contains(place) && log.contains("LECTERN_BLOBS"), "{name}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_another_key_is_refused_and_does_not_show_it() {
    let service = Service::in_mode(Mode::Cluster).start().await;
    let key = "quite another key, which opens nothing";
    let refusal = service.sibling().env("LECTERN_SECRET_KEY", key).start_refused().await;
    for (name, status, log) in &refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("LECTERN_SECRET_KEY") && !log.contains(key), "{name}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_start_at_once_on_an_empty_database() {
    let service = Service::in_mode(Mode::Cluster).workers(4).start().await;
    assert_it_works(&service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_wait_for_a_database_that_starts_later_than_they() {
    let mut postgres = PostgresServer::start().await;
    let url = postgres.url();
    postgres.stop().await;
    let start = Service::in_mode(Mode::Cluster).database_url(&url).start();
    let late = async {
        // Long enough for them to find nobody there.
        tokio::time::sleep(Duration::from_secs(1)).await;
        postgres.start_again().await;
    };
    let (service, ()) = tokio::join!(start, late);
    assert_it_works(&service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_how_it_is_where_it_was_told_to() {
    let service = Service::in_mode(Mode::Cluster).env("LECTERN_WORKER_ADDR", "127.0.0.1:0").start().await;
    let url = service.worker_url(0).expect("it listens");
    let ask = async |method: Method, path: &str| {
        let answer = send(reqwest::Client::new().request(method, format!("{url}{path}"))).await;
        (answer.status(), answer.json::<Value>().await.expect("JSON"))
    };
    assert_eq!(ask(Method::GET, "/health/live").await.1["data"]["status"], "live");
    let (status, ready) = ask(Method::GET, "/health/ready").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ready["data"]["parts"]["database"]["status"], "up", "{ready:#}");
    assert_eq!(ask(Method::GET, "/api/v1/documents").await.0, StatusCode::NOT_FOUND);
    assert_eq!(ask(Method::POST, "/health/live").await.0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_command_tells_a_ready_process_from_one_that_is_not_there() {
    let mut service = Service::in_mode(Mode::Cluster).env("LECTERN_WORKER_ADDR", "127.0.0.1:0").start().await;
    let address = |url: String| url.trim_start_matches("http://").to_owned();
    let api = (Program::Api, "LECTERN_ADDR", address(service.base_url()));
    let worker =
        (Program::Worker, "LECTERN_WORKER_ADDR", address(service.worker_url(0).expect("it listens")));
    let ask = |(program, setting, address): &(Program, &str, String)| {
        let asked = Command::new(program.path()).arg("health").env_clear().env(setting, address).output();
        asked.expect("it starts").status.success()
    };
    assert!(ask(&api) && ask(&worker));
    service.kill();
    assert!(!ask(&api) && !ask(&worker));
}
