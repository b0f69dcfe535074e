//! Collections: what is put into one counts at once, wherever it is asked for.

use futures::{StreamExt, stream};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ask, assert_refused, ingested, quoting_agent};
use crate::support::{
    client::{Client, data, id},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    what_is_added_counts_in_the_next_answer_and_search,
    new_documents_get_what_the_collection_says,
    a_collection_is_made_changed_and_deleted_without_its_documents,
);

const QUESTION: &str = "At how many degrees does the zephyrine valve open?";
const ANSWER: &str = "The zephyrine valve opens at 73 degrees.";

async fn collection(editor: &Client, name: &str) -> String {
    id(&editor.create("/collections", &json!({ "name": name })).await).to_owned()
}

/// The documents that a search in a collection finds.
async fn found(editor: &Client, collection: &str) -> Vec<String> {
    let body = json!({ "query": QUESTION, "collectionIds": [collection] });
    let hits = editor.create("/search", &body).await;
    let hits = hits.as_array().expect("a list").iter();
    hits.map(|hit| hit["documentId"].as_str().expect("a document").to_owned()).collect()
}

async fn what_is_added_counts_in_the_next_answer_and_search(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let manuals = collection(&ada, " Manuals ").await;
    let path = format!("/collections/{manuals}");
    assert_eq!(ada.read(&path).await["name"], "Manuals");
    let renamed = data(ada.patch(&path, &json!({ "name": " All manuals" })).await);
    assert_eq!(renamed["name"], "All manuals");
    let agent = quoting_agent(&ada, "Clerk").await;
    let link = json!({ "agentId": agent, "collectionId": manuals });
    let link = ada.create("/agent-collections", &link).await;
    let document = ingested(&ada, "Valves", ANSWER).await;
    let of_agent = json!({ "query": QUESTION, "agentId": agent });
    let says_it = async || {
        let (status, answer) = ask(&ada, &agent, QUESTION).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        answer["data"].as_str().expect("an answer").contains("73 degrees")
    };
    assert!(!says_it().await && found(&ada, &manuals).await.is_empty(), "it is in no collection");
    assert_eq!(ada.create("/search", &of_agent).await, json!([]));

    let place = format!("/collections/{manuals}/documents/{document}");
    for _ in 0..2 {
        data(ada.put(&place).await);
        assert!(says_it().await);
        assert_eq!(found(&ada, &manuals).await, [document.as_str()]);
        assert_eq!(ada.create("/search", &of_agent).await[0]["documentId"], document.as_str());
    }
    assert_eq!(ada.read(&format!("/collections/{manuals}")).await["documents"], 1);
    assert_eq!(ada.read(&format!("/documents/{document}")).await["collectionIds"], json!([manuals]));

    data(ada.delete(&place).await);
    assert!(!says_it().await && found(&ada, &manuals).await.is_empty(), "it was taken out");
    let path = format!("/collections/{manuals}/documents");
    data(ada.post(&path, &json!({ "documentIds": [document, document] })).await);
    assert!(says_it().await, "it is in again");
    // Answers that are kept are of what the agent answered from.
    let cached = json!({ "input": { "input": QUESTION }, "cache_ttl": 3_600 });
    let predict = format!("/agents/{agent}/predict");
    let (_, answer) = ada.post(&predict, &cached).await;
    assert!(answer["data"].as_str().expect("an answer").contains("73 degrees"), "{answer:#}");
    data(ada.delete(&format!("/agent-collections/{}", id(&link))).await);
    let (_, answer) = ada.post(&predict, &cached).await;
    assert!(!answer["data"].as_str().expect("an answer").contains("73 degrees"), "{answer:#}");
    assert!(!says_it().await, "it is linked no more");
    assert_eq!(found(&ada, &manuals).await, [document.as_str()]);
}

async fn new_documents_get_what_the_collection_says(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let defaults = json!({
        "splitter": { "type": "character", "chunk_size": 60, "chunk_overlap": 0 },
        "metadata": { "department": "people", "year": 2025 },
        "language": "de",
    });
    let body = json!({ "name": "Handbooks", "description": "of the house", "defaults": defaults });
    let made = ada.create("/collections", &body).await;
    assert_eq!(made["defaults"], defaults, "{made:#}");
    let other = collection(&ada, "Others").await;
    let text = "Die Häuser stehen am Fluss. ".repeat(8);
    let body = json!({
        "name": "Hausordnung", "type": "TXT", "content": text, "metadata": { "year": 2026 },
        "collectionIds": [id(&made), other],
    });
    let document = ada.ingest(&body).await;
    let metadata = json!({ "department": "people", "year": 2026, "language": "de" });
    assert_eq!(document["metadata"], metadata, "{document:#}");
    assert_eq!(document["splitter"], defaults["splitter"], "{document:#}");
    assert!(document["index"]["chunks"].as_u64().is_some_and(|chunks| chunks > 2), "{document:#}");
    let shown = document["collectionIds"].as_array().expect("a list");
    assert!(shown.len() == 2 && shown.contains(&made["id"]) && shown.contains(&json!(other)), "{document:#}");
    // One of another form is found by what its language makes of both.
    let search = json!({ "query": "Haus", "collectionIds": [other], "filter": { "department": "people" } });
    let hits = ada.create("/search", &search).await;
    assert_eq!(hits[0]["documentId"], document["id"], "{hits:#}");

    // What a document says itself counts, and a later change of the collection changes no document.
    let own = json!({ "type": "token", "chunk_size": 200, "chunk_overlap": 20 });
    let body = json!({
        "name": "Note", "type": "TXT", "content": "The gate opens at nine.", "splitter": own,
        "collectionIds": [id(&made)],
    });
    let note = ada.ingest(&body).await;
    assert_eq!(note["splitter"], own, "{note:#}");
    let path = format!("/collections/{}", id(&made));
    let change = json!({ "defaults": { "metadata": { "department": "law" } } });
    data(ada.patch(&path, &change).await);
    let seen = ada.read(&format!("/documents/{}", id(&document))).await;
    assert_eq!(seen["metadata"], document["metadata"], "{seen:#}");
    for (field, value) in [
        ("splitter", json!({ "type": "none" })),
        ("language", json!("german")),
        ("metadata", json!("people")),
    ] {
        let body = json!({ "name": "Handbooks", "defaults": { field: value } });
        assert_refused(&ada.post("/collections", &body).await, 422, "invalid_fields");
    }
}

async fn a_collection_is_made_changed_and_deleted_without_its_documents(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let manuals = collection(&ada, "Manuals").await;
    let path = format!("/collections/{manuals}");
    let document = ingested(&ada, "Valves", ANSWER).await;
    data(ada.put(&format!("{path}/documents/{document}")).await);
    let changed = data(ada.patch(&path, &json!({ "name": "Books", "description": "all of them" })).await);
    assert_eq!((&changed["name"], &changed["description"]), (&json!("Books"), &json!("all of them")));
    assert_eq!(changed["documents"], 1, "{changed:#}");
    assert_eq!(ada.read("/collections").await[0]["id"], manuals.as_str());

    let nobodys = Uuid::now_v7();
    for unknown in
        [format!("{path}/documents/{nobodys}"), format!("/collections/{nobodys}/documents/{document}")]
    {
        assert_refused(&ada.put(&unknown).await, 404, "not_found");
        assert_refused(&ada.delete(&unknown).await, 404, "not_found");
    }
    let many = json!({ "documentIds": [document, nobodys] });
    assert_refused(&ada.post(&format!("{path}/documents"), &many).await, 404, "not_found");
    for (field, ids) in [("documentIds", json!([nobodys])), ("collectionIds", json!([nobodys]))] {
        let answer = ada.post("/search", &json!({ "query": "gate", field: ids })).await;
        assert_refused(&answer, 404, "not_found");
    }

    data(ada.delete(&path).await);
    assert_refused(&ada.get(&path).await, 404, "not_found");
    assert_eq!(ada.read("/collections").await, json!([]));
    let left: Value = ada.read(&format!("/documents/{document}")).await;
    assert_eq!(left["collectionIds"], json!([]), "{left:#}");
    assert_eq!(
        ada.create("/search", &json!({ "query": QUESTION })).await[0]["documentId"],
        document.as_str()
    );
    data(ada.delete(&format!("/documents/{document}")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_documents_are_put_into_a_collection_at_once() {
    const MANY: usize = 1_000;
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let make = |number: usize| {
        let ada = ada.clone();
        async move {
            let body = json!({ "name": format!("Note {number}"), "type": "TXT", "content": "x" });
            id(&ada.create_document(&body).await).to_owned()
        }
    };
    let ids: Vec<String> = stream::iter((0..MANY).map(make)).buffer_unordered(8).collect().await;
    let manuals = collection(&ada, "Manuals").await;
    let path = format!("/collections/{manuals}/documents");
    data(ada.post(&path, &json!({ "documentIds": ids })).await);
    assert_eq!(ada.read(&format!("/collections/{manuals}")).await["documents"], MANY);

    let mut more = ids;
    more.push(Uuid::now_v7().to_string());
    assert_refused(&ada.post(&path, &json!({ "documentIds": more })).await, 422, "invalid_fields");
}
