//! kill -9 at any moment of an ingestion: the document becomes searchable by itself, once, as if nothing had happened.

use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, id},
        in_both_modes, on_postgres_too,
        pdf::pdf_with_pages,
        process::POLL,
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    killed_while_fetching_it_ends_as_if_undisturbed,
    killed_while_parsing_it_ends_as_if_undisturbed,
    killed_while_splitting_it_ends_as_if_undisturbed,
    killed_while_indexing_it_ends_as_if_undisturbed,
    killed_again_and_again_it_ends_as_if_undisturbed,
    sigterm_hands_the_work_back_and_the_next_start_goes_on_at_once
);

on_postgres_too!(killed_while_fetching_it_ends_as_if_undisturbed);

/// In PostgreSQL nobody can tell that a worker is gone, so its lease has to run out: soon, but not so soon that a busy
/// machine fails to renew it.
const LEASE: &str = "6s";

async fn start(mode: Mode) -> (Service, Client, Web) {
    let setup = Service::in_mode(mode).env("LECTERN_INDEX_GRACE", "0s").env("LECTERN_JOB_MAX_ATTEMPTS", "50");
    let setup = match mode {
        // The next start knows that all leases are void.
        Mode::Embedded => setup,
        Mode::Postgres | Mode::Cluster => setup.env("LECTERN_JOB_LEASE", LEASE),
    };
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    (service, client, Web::start().await)
}

/// A text that takes a while to split and to index.
fn long_text() -> String {
    let sentences: Vec<_> = (0..40_000)
        .map(|n| format!("Sentence {n} of the chronicle tells of the year {}.\n", n * 7 % 2_000))
        .collect();
    sentences.concat()
}

/// Waits until the document is in a stage.
async fn wait_for_stage(client: &Client, document: &str, stage: &str) {
    loop {
        let ingestion = client.read(&format!("/documents/{document}")).await["ingestion"].clone();
        if ingestion["status"] == "RUNNING" && ingestion["stage"] == stage {
            return;
        }
        let ended = matches!(ingestion["status"].as_str(), Some("SUCCEEDED" | "FAILED"));
        assert!(!ended, "the ingestion ended before it was seen in {stage}: {ingestion:#}");
        tokio::time::sleep(POLL).await;
    }
}

/// After all the trouble: the passages are whole, none is double, and a run without trouble makes the same ones.
async fn assert_as_undisturbed(client: &Client, document: &str) {
    let ended = client.wait_until_ingested(document).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    let after = chunks(client, document).await;
    assert_eq!(ended["index"]["chunks"], after.len());
    for (at, passage) in after.iter().enumerate() {
        assert_eq!(passage["ordinal"], at);
    }
    client.create(&format!("/documents/{document}/ingest"), &json!({})).await;
    let again = client.wait_until_ingested(document).await;
    assert_eq!(
        (&again["ingestion"]["status"], &again["ingestion"]["attempts"]),
        (&json!("SUCCEEDED"), &json!(1))
    );
    assert_ne!(again["index"]["generation"], ended["index"]["generation"]);
    assert!(chunks(client, document).await == after, "an undisturbed run makes other passages");
}

async fn killed_while_fetching_it_ends_as_if_undisturbed(mode: Mode) {
    let (mut service, client, web) = start(mode).await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "Slow and steady wins the race.");
    let document = client.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    service.kill();
    gate.release();
    service.restart().await;
    assert_as_undisturbed(&client, id(&document)).await;
}

async fn killed_while_parsing_it_ends_as_if_undisturbed(mode: Mode) {
    let (mut service, client, web) = start(mode).await;
    let pages: Vec<String> = (0..400).map(|n| format!("Page {n} has its say.\n").repeat(30)).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let url = web.serve("/long.pdf", "application/pdf", pdf_with_pages(&pages));
    let document = client.create_document(&json!({"name": "long", "type": "PDF", "url": url})).await;
    wait_for_stage(&client, id(&document), "PARSE").await;
    service.kill();
    service.restart().await;
    assert_as_undisturbed(&client, id(&document)).await;
}

async fn killed_in(mode: Mode, stage: &str) {
    let (mut service, client, web) = start(mode).await;
    let url = web.serve("/long.txt", "text/plain", long_text());
    let document = client.create_document(&json!({"name": "long", "type": "TXT", "url": url})).await;
    wait_for_stage(&client, id(&document), stage).await;
    service.kill();
    service.restart().await;
    assert_as_undisturbed(&client, id(&document)).await;
}

async fn killed_while_splitting_it_ends_as_if_undisturbed(mode: Mode) {
    killed_in(mode, "SPLIT").await;
}

async fn killed_while_indexing_it_ends_as_if_undisturbed(mode: Mode) {
    killed_in(mode, "INDEX").await;
}

async fn killed_again_and_again_it_ends_as_if_undisturbed(mode: Mode) {
    let (mut service, client, web) = start(mode).await;
    let url = web.serve("/long.txt", "text/plain", long_text());
    let document = client.create_document(&json!({"name": "long", "type": "TXT", "url": url})).await;
    for stage in ["INDEX", "SPLIT", "INDEX"] {
        wait_for_stage(&client, id(&document), stage).await;
        service.kill();
        service.restart().await;
    }
    let ended = client.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["attempts"], 4, "each kill cost an attempt: {:#}", ended["ingestion"]);
    assert_as_undisturbed(&client, id(&document)).await;
}

async fn sigterm_hands_the_work_back_and_the_next_start_goes_on_at_once(mode: Mode) {
    let (mut service, client, web) = start(mode).await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "Slow and steady wins the race.");
    let document = client.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    let status = service.terminate().await;
    assert_eq!(status.code(), Some(0), "{status}");
    gate.release();
    service.restart().await;
    let ended = client.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED");
    assert_eq!(ended["ingestion"]["attempts"], 1, "what was handed back was no attempt");
    assert_eq!(ended["ingestion"]["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_worker_had_in_hand_is_done_by_another() {
    let mut service = Service::in_mode(Mode::Cluster)
        .workers(2)
        .env("LECTERN_JOB_LEASE", LEASE)
        .env("LECTERN_WORKER_CONCURRENCY", "1")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "Slow and steady wins the race.");
    let document = client.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    let busy: Vec<_> = (0..2).filter(|worker| service.worker_logs(*worker).contains("job started")).collect();
    assert_eq!(busy.len(), 1, "one document is in one worker's hands: {busy:?}");
    service.kill_worker(busy[0]);
    gate.release();
    // The other one is free meanwhile.
    client.ingest(&json!({"name": "other", "type": "TXT", "content": "Other words."})).await;
    let ended = client.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    assert_eq!(ended["ingestion"]["attempts"], 2, "the kill cost an attempt");
    assert_eq!(web.requests("/slow.txt").len(), 2);
}
