//! Faults of the network between the service and what it stands on, one of each kind for each part. `soak::faults` has them under
//! load.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    client::{Client, envelope, id, send},
    db::Database,
    process::POLL,
    proxy::{Proxy, Way, commit::Fate},
    qdrant::QdrantServer,
    redis,
    s3::S3Server,
    service::{Mode, Service},
    within_deadline,
};

fn note(name: &str) -> Value {
    json!({"name": name, "type": "TXT", "content": format!("The gate called {name} opens at six.")})
}

/// Posts a document until it is accepted.
async fn post_until_accepted(client: &Client, name: &str) -> String {
    let accepted = async {
        loop {
            let (status, answer) = client.post("/documents", &note(name)).await;
            if status.is_success() {
                return id(&answer["data"]).to_owned();
            }
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer:#}");
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("a document to be accepted", accepted).await
}

/// The service does its work again: it is ready, and a document becomes searchable.
async fn assert_works(client: &Client, name: &str) {
    let ready = async {
        while !client.is_ready().await {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the service to be ready", ready).await;
    let document = post_until_accepted(client, name).await;
    let ended = client.wait_until_ingested(&document).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
}

/// Longer than a connection of a pool is taken for a living one without a question.
const IDLE: Duration = Duration::from_millis(1_200);

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_may_be_slow_cut_off_and_lost_without_a_word() {
    let database = Database::fresh().await;
    let (proxy, url) = Proxy::in_front_of(database.url(), 5432).await;
    let service = Service::in_mode(Mode::Cluster).database_url(&url).start().await;
    let client = service.signed_up("ada@example.com").await;
    proxy.delay(Duration::from_millis(10));
    assert_works(&client, "slow").await;
    proxy.mend();
    proxy.cut_after(Way::Back, 300);
    // Whoever asks last breaks it.
    let _ = client.post("/documents", &note("cut")).await;
    proxy.wait_until_cut(1).await;
    assert_works(&client, "mended").await;
    proxy.cut();
    assert!(!client.is_ready().await);
    proxy.mend();
    assert_works(&client, "back").await;
    // Everybody holds connections now that nobody will ever answer on.
    tokio::time::sleep(IDLE).await;
    proxy.lose_present();
    assert_works(&client, "found").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_whose_commit_never_arrives_was_not_accepted() {
    let database = Database::fresh().await;
    let (proxy, url) = Proxy::in_front_of(database.url(), 5432).await;
    let service = Service::in_mode(Mode::Cluster).workers(0).database_url(&url).start().await;
    let client = service.signed_up("ada@example.com").await;
    let caught = proxy.catch_commit(&["INSERT INTO documents"], Fate::NeverArrives);
    let (status, answer) = client.post("/documents", &note("never")).await;
    caught.wait().await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer:#}");
    assert_eq!(client.read("/documents").await, json!([]));
    // Others of its commits are left alone.
    client.create_document(&note("after")).await;
    assert_eq!(caught.times(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_may_be_stalled_cut_off_and_lost_without_a_word() {
    let (proxy, url) = Proxy::in_front_of(&redis::shared_url(), 6379).await;
    let service = Service::in_mode(Mode::Cluster).redis_url(&url).start().await;
    let client = service.signed_up("ada@example.com").await;
    for (name, trouble) in
        [("stalled", Proxy::stall as fn(&Proxy)), ("cut", Proxy::cut), ("lost", Proxy::lose)]
    {
        trouble(&proxy);
        // Redis is never needed.
        client.ingest(&note(name)).await;
        proxy.mend();
        assert_works(&client, &format!("after {name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn qdrant_may_be_stalled_cut_off_and_lost_without_a_word() {
    let Some(qdrant) = QdrantServer::named() else { return };
    let (proxy, url) = qdrant.behind_a_proxy().await;
    let setup = Service::in_mode(Mode::Cluster).env("LECTERN_QDRANT_TIMEOUT", "1s");
    let service = qdrant.used_by(setup, &url).start().await;
    let client = service.signed_up("ada@example.com").await;
    for (name, trouble) in
        [("stalled", Proxy::stall as fn(&Proxy)), ("cut", Proxy::cut), ("lost", Proxy::lose)]
    {
        trouble(&proxy);
        let late = client.create_document(&note(name)).await;
        let postponed = async {
            loop {
                let shown = client.read(&format!("/documents/{}", id(&late))).await;
                if shown["ingestion"]["error"]["code"] == "unavailable" {
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the document to be put back", postponed).await;
        proxy.mend();
        let ended = client.wait_until_ingested(id(&late)).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
        assert_works(&client, &format!("after {name}")).await;
    }
    qdrant.forget(&service).await;
}

/// Uploads a text, and tells what became of it.
pub(crate) async fn upload(client: &Client, name: &str, text: &str) -> (StatusCode, Value) {
    let body = format!(
        "--bound\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}.txt\"\r\n\r\n{text}\r\n--bound--\r\n"
    );
    let request = client.request(Method::POST, "/documents/upload");
    let request = request.header("content-type", "multipart/form-data; boundary=bound");
    envelope(send(request.body(body)).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_may_be_stalled_and_cut_off_in_the_middle_of_an_upload_and_of_an_answer() {
    let store = S3Server::start().await;
    let proxy = Proxy::to(store.address()).await;
    let setup = Service::in_mode(Mode::Cluster);
    let service = S3Server::used_by(setup, &proxy.address().to_string()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = "The harbour opens at six, and closes at nine.\n".repeat(8_000);
    let (marks, mut accepted) = (store.files(), Vec::new());
    // In the middle of what is sent, and of what comes back to the worker.
    for (cuts, way) in [(1, Way::There), (2, Way::Back)] {
        proxy.cut_after(way, 100_000);
        let (status, answer) = upload(&client, "cut", &text).await;
        proxy.wait_until_cut(cuts).await;
        if status.is_success() {
            accepted.push(id(&answer["data"]).to_owned());
        } else {
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer:#}");
        }
    }
    proxy.stall();
    let stalled = {
        let (client, text) = (client.clone(), text.clone());
        tokio::spawn(async move { upload(&client, "stalled", &text).await })
    };
    tokio::time::sleep(IDLE).await;
    proxy.mend();
    let (status, answer) = stalled.await.expect("the upload is answered");
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    accepted.push(id(&answer["data"]).to_owned());
    assert!(!accepted.is_empty());
    for document in &accepted {
        let ended = client.wait_until_ingested(document).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
        let file = send(client.request(Method::GET, &format!("/documents/{document}/source"))).await;
        assert_eq!(file.text().await.expect("the file"), text);
    }
    assert!(store.files() >= marks + accepted.len());
}
