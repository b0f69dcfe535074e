//! Search through a real Qdrant server.

use reqwest::StatusCode;
use serde_json::{Value, json};
use url::Url;

use crate::{
    embedding::model_is_there,
    receipts::closed_receipt,
    support::{
        client::{Client, id},
        embeddings::Embeddings,
        in_both_modes,
        proxy::Proxy,
        qdrant::QdrantServer,
        service::{Mode, Service},
        within_deadline,
    },
};

in_both_modes!(
    passages_are_found_replaced_and_removed,
    what_is_found_by_words_and_by_meaning_is_narrowed_and_removed,
    users_do_not_find_each_others_passages,
    an_outage_only_delays
);

async fn agent_over(client: &Client, documents: &[&Value]) -> String {
    let agent = client.create_agent(&json!({"name": "caretaker", "type": "CHATVENDOR"})).await;
    for document in documents {
        client.link(id(&agent), id(document)).await;
    }
    id(&agent).to_owned()
}

fn rules(content: &str) -> Value {
    json!({"name": "rules", "type": "TXT", "content": content})
}

async fn wait_for_points(qdrant: &QdrantServer, service: &Service, wanted: u64) {
    let there = async {
        while qdrant.points(service).await != wanted {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    within_deadline(&format!("{wanted} points in Qdrant"), there).await;
}

async fn passages_are_found_replaced_and_removed(mode: Mode) {
    let Some(qdrant) = QdrantServer::named() else { return };
    let setup = Service::in_mode(mode).env("LECTERN_INDEX_GRACE", "0s").env("LECTERN_JOB_LEASE", "3s");
    let service = qdrant.used_by(setup, qdrant.url()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = client.ingest(&rules("Bicycles belong in the cellar, never in the stairwell.")).await;
    let other = client.ingest(&rules("Quiet hours begin at ten in the evening.")).await;
    let agent = agent_over(&client, &[&document, &other]).await;
    let (status, answer) = client.predict(&agent, "Where do bicycles belong?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["documentId"], document["id"], "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["verified"], true, "{answer:#}");
    client.create(&format!("/documents/{}/ingest", id(&document)), &json!({})).await;
    client.wait_until_ingested(id(&document)).await;
    // The generation that was replaced goes, in two passes.
    wait_for_points(&qdrant, &service, 2).await;
    let (_, answer) = client.predict(&agent, "Where do bicycles belong?").await;
    assert_eq!(answer["trace"]["citations"][0]["documentId"], document["id"], "{answer:#}");
    client.delete(&format!("/documents/{}", id(&document))).await;
    let (_, answer) = client.predict(&agent, "Where do bicycles belong?").await;
    assert_eq!(answer["trace"]["citations"], json!([]), "{answer:#}");
    wait_for_points(&qdrant, &service, 1).await;
    let receipt = closed_receipt(&client, id(&document)).await;
    // Those of the edition that was replaced go with it, unless they were purged before: that takes a second pass over Qdrant.
    assert!(receipt["removed"]["passages"].as_u64() >= Some(1), "{receipt:#}");
    assert_eq!(receipt["remaining"], 0, "{receipt:#}");
    assert!(receipt["removed"]["indexEntries"].as_u64() >= Some(1), "{receipt:#}");
    qdrant.forget(&service).await;
}

/// A document of 2024 and two of 2025, all about cars.
async fn about_cars(client: &Client) -> Vec<String> {
    let mut ids = Vec::new();
    for (name, year, content) in [
        ("north", 2024, "The automobile in the north yard is red."),
        ("south", 2025, "A puppy sleeps beside the automobile."),
        ("east", 2025, "Nobody may park an automobile here after nine."),
    ] {
        let body = json!({"name": name, "type": "TXT", "content": content, "metadata": {"year": year}});
        ids.push(id(&client.ingest(&body).await).to_owned());
    }
    ids
}

/// The names of the documents that a search finds, sorted.
async fn found(client: &Client, body: &Value) -> String {
    let passages = client.create("/search", body).await;
    let passages = passages.as_array().expect("a list");
    let mut names: Vec<&str> =
        passages.iter().filter_map(|passage| passage["documentName"].as_str()).collect();
    names.sort_unstable();
    names.join(" ")
}

async fn what_is_found_by_words_and_by_meaning_is_narrowed_and_removed(mode: Mode) {
    let Some(qdrant) = QdrantServer::named() else { return };
    let server = Embeddings::start().await;
    let setup = Service::in_mode(mode)
        .env("LECTERN_INDEX_GRACE", "0s")
        .env("LECTERN_JOB_LEASE", "3s")
        .env("LECTERN_EMBEDDER", "openai-compatible")
        .env("LECTERN_EMBEDDING_URL", &server.url())
        .env("LECTERN_EMBEDDING_MODEL", "synonyms");
    let service = qdrant.used_by(setup, qdrant.url()).start().await;
    let client = service.signed_up("ada@example.com").await;
    model_is_there(&service).await;
    let ids = about_cars(&client).await;
    let [north, south, east] = &ids[..] else { panic!("three documents") };
    assert_eq!(qdrant.points(&service).await, 6, "one of the words of each, and one of its vector");
    for (by, query) in [("lexical", "automobile"), ("dense", "car"), ("hybrid", "automobile")] {
        // Qdrant is told what is searched, or what is left out.
        for (narrowed, expected) in [
            (json!({}), "east north south"),
            (json!({"filter": {"year": 2024}}), "north"),
            (json!({"filter": {"year": 2025}}), "east south"),
            (json!({"documentIds": [east]}), "east"),
            (json!({"documentIds": [north, south]}), "north south"),
            (json!({"documentIds": [north, south], "filter": {"year": 2025}}), "south"),
            (json!({"documentIds": [east], "filter": {"year": 2024}}), ""),
        ] {
            let mut body = json!({"query": query, "mode": by});
            for (field, value) in narrowed.as_object().expect("an object") {
                body[field] = value.clone();
            }
            assert_eq!(found(&client, &body).await, expected, "{body}");
        }
    }
    client.delete(&format!("/documents/{north}")).await;
    for (by, query) in [("lexical", "automobile"), ("dense", "car")] {
        assert_eq!(found(&client, &json!({"query": query, "mode": by})).await, "east south", "{by}");
    }
    wait_for_points(&qdrant, &service, 4).await;
    let receipt = closed_receipt(&client, north).await;
    let removed = (&receipt["removed"]["passages"], &receipt["removed"]["indexEntries"]);
    assert_eq!(removed, (&json!(1), &json!(2)), "{receipt:#}");
    qdrant.forget(&service).await;
}

async fn users_do_not_find_each_others_passages(mode: Mode) {
    let Some(qdrant) = QdrantServer::named() else { return };
    let service = qdrant.used_by(Service::in_mode(mode), qdrant.url()).start().await;
    let (ada, bob) = (service.signed_up("ada@example.com").await, service.signed_up("bob@example.com").await);
    let secret = ada.ingest(&rules("The safe opens with the number 4711.")).await;
    let own = bob.ingest(&rules("The laundry opens on weekdays.")).await;
    let agent = agent_over(&bob, &[&own]).await;
    let (_, answer) = bob.predict(&agent, "What opens the safe, which number?").await;
    assert!(!answer.to_string().contains("4711"), "{answer:#}");
    let agent = agent_over(&ada, &[&secret]).await;
    let (_, answer) = ada.predict(&agent, "What opens the safe, which number?").await;
    assert!(answer.to_string().contains("4711"), "{answer:#}");
    qdrant.forget(&service).await;
}

async fn an_outage_only_delays(mode: Mode) {
    let Some(qdrant) = QdrantServer::named() else { return };
    let target = Url::parse(qdrant.url()).expect("an address");
    let port = target.port().unwrap_or(6334);
    let proxy = Proxy::to(&format!("{}:{port}", target.host_str().expect("a host"))).await;
    let setup = Service::in_mode(mode).env("LECTERN_QDRANT_TIMEOUT", "1s");
    let service = qdrant.used_by(setup, &format!("http://{}", proxy.address())).start().await;
    let client = service.signed_up("ada@example.com").await;
    let before = client.ingest(&rules("Bicycles belong in the cellar.")).await;
    let agent = agent_over(&client, &[&before]).await;
    proxy.cut();
    let late = client.create_document(&rules("Quiet hours begin at ten.")).await;
    let (status, answer) = client.predict(&agent, "Where do bicycles belong?").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer:#}");
    assert!(!client.is_ready().await);
    let postponed = async {
        loop {
            let shown = client.read(&format!("/documents/{}", id(&late))).await;
            if shown["ingestion"]["error"]["code"] == "unavailable" {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let shown = within_deadline("the document to be put back", postponed).await;
    assert_eq!(shown["ingestion"]["attempts"], 0, "an outage is no attempt: {shown:#}");
    proxy.mend();
    let late = client.wait_until_ingested(id(&late)).await;
    assert_eq!(late["ingestion"]["status"], "SUCCEEDED", "{late:#}");
    let (status, answer) = client.predict(&agent, "Where do bicycles belong?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    qdrant.forget(&service).await;
}
