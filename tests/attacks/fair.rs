//! One user's work keeps another's waiting.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    in_both_modes,
    service::{Mode, Service},
    setup::Setup,
    web::Web,
    within_deadline,
};

in_both_modes!(
    a_newcomers_line_does_not_wait_for_anothers_slow_documents,
    a_list_of_slow_addresses_has_one_budget_of_time,
    a_name_at_a_refused_address_is_told_like_one_that_does_not_exist
);

fn one_slot(mode: Mode) -> Setup {
    Service::in_mode(mode).env("LECTERN_WORKER_CONCURRENCY", "1").env("LECTERN_JOB_MAX_ATTEMPTS", "1")
}

async fn ingestion(client: &Client, document: &Value) -> Value {
    client.read(&format!("/documents/{}", id(document))).await["ingestion"].clone()
}

async fn a_newcomers_line_does_not_wait_for_anothers_slow_documents(mode: Mode) {
    // Each document takes three seconds, and its place in the queue was one second after the one before.
    let service = one_slot(mode).env("LECTERN_FETCH_TIMEOUT", "3s").start().await;
    let slow = service.signed_up("slow@example.com").await;
    let quick = service.signed_up("quick@example.com").await;
    let web = Web::start().await;
    let mut documents = Vec::new();
    for number in 0..20 {
        let url = web.hang(&format!("/{number}"));
        let document = json!({"name": format!("slow {number}"), "type": "TXT", "url": url});
        documents.push(slow.create_document(&document).await);
    }
    slow.wait_until_ingested(id(&documents[0])).await;
    let runs = async {
        while ingestion(&slow, &documents[1]).await["status"] != "RUNNING" {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    within_deadline("the second document to run", runs).await;

    let only = quick.ingest(&json!({"name": "only", "type": "TXT", "content": "One line."})).await;
    let started = only["ingestion"]["startedAt"].as_str().expect("a time").to_owned();
    for document in &documents[2..] {
        let after = ingestion(&slow, document).await["startedAt"].clone();
        assert!(after.as_str().is_none_or(|after| after > started.as_str()), "{after} is before {started}");
    }
}

async fn a_list_of_slow_addresses_has_one_budget_of_time(mode: Mode) {
    const ADDRESSES: usize = 12;
    let service = one_slot(mode).env("LECTERN_FETCH_TIMEOUT", "2s").start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let page = "<html><body><p>A page that was long in coming.</p></body></html>";
    let slow = |number| web.slow(&format!("/{number}"), "text/html", page, Duration::from_millis(600));
    let addresses: Vec<String> = (0..ADDRESSES).map(slow).collect();
    let document = json!({"name": "slow", "type": "URL", "url": addresses.join(",")});
    let document = client.create_document(&document).await;
    let ended = client.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "FAILED", "{ended:#}");
    assert_eq!(ended["ingestion"]["error"]["code"], "timeout", "{ended:#}");
    let asked = (0..ADDRESSES).filter(|number| web.hits(&format!("/{number}")) > 0).count();
    assert!(asked < ADDRESSES, "it went on asking");

    // A list that is quick enough is read to its end.
    let addresses: Vec<String> =
        (0..ADDRESSES).map(|number| web.serve(&format!("/quick/{number}"), "text/html", page)).collect();
    client.ingest(&json!({"name": "quick", "type": "URL", "url": addresses.join(",")})).await;
}

async fn a_name_at_a_refused_address_is_told_like_one_that_does_not_exist(mode: Mode) {
    let service = one_slot(mode).without("LECTERN_EGRESS_ALLOW").start().await;
    let client = service.signed_up("ada@example.com").await;
    let nowhere = format!("{}.invalid", "x".repeat(64));
    let mut told = Vec::new();
    for host in ["localhost", &nowhere] {
        let document = json!({"name": "probe", "type": "TXT", "url": format!("http://{host}:9/")});
        let document = client.create_document(&document).await;
        let ended = client.wait_until_ingested(id(&document)).await;
        let error = ended["ingestion"]["error"].clone();
        assert_eq!(error["code"], "refused_address", "{ended:#}");
        told.push((error.to_string().replace(host, "HOST"), ended["ingestion"]["attempts"].clone()));
    }
    assert_eq!(told[0], told[1]);
}
