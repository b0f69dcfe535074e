//! Starting, being healthy, and ending.

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::support::client::{Client, data, envelope, send};
use crate::support::in_both_modes;
use crate::support::service::{Mode, Service};

in_both_modes!(
    a_started_service_is_live_and_ready,
    sigterm_ends_it_with_exit_code_0,
    a_killed_service_starts_again
);

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
async fn two_services_run_beside_each_other() {
    let (one, other) = tokio::join!(Service::start(), Service::start());
    assert_ne!(one.base_url(), other.base_url());
    assert!(one.client().is_ready().await && other.client().is_ready().await);
}
