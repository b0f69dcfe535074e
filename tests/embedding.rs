//! Where vectors come from: a server, a local model or none, changes from one to another, and what happens when a model is away.

use std::process::Command;

use axum::{http::StatusCode as Status, response::IntoResponse};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, data, id},
        embeddings::Embeddings,
        in_both_modes,
        process::POLL,
        service::{Mode, Service},
        setup::{Program, Setup},
        within_deadline,
    },
};

in_both_modes!(
    passages_are_found_by_what_they_mean,
    documents_from_before_the_first_model_are_embedded_from_what_is_stored,
    another_model_takes_over_document_by_document_when_it_is_told_to,
    what_was_embedded_once_is_not_embedded_again,
    a_server_that_is_away_delays_a_document_and_loses_none,
    a_server_that_refuses_is_said_so_without_its_key
);

const KEY: &str = "sk-embedding-key-of-these-tests";

fn with_server(setup: Setup, server: &Embeddings, model: &str) -> Setup {
    setup
        .env("LECTERN_EMBEDDER", "openai-compatible")
        .env("LECTERN_EMBEDDING_URL", &server.url())
        .env("LECTERN_EMBEDDING_MODEL", model)
        .env("LECTERN_EMBEDDING_API_KEY", KEY)
}

/// Starts a service whose model is there.
pub async fn start(mode: Mode, server: &Embeddings) -> (Service, Client) {
    let service = with_server(Service::in_mode(mode), server, "synonyms").start().await;
    let client = service.signed_up("ada@example.com").await;
    model_is_there(&service).await;
    (service, client)
}

/// What `/health/ready` says of the embedder.
pub async fn embedder(service: &Service) -> Value {
    let url = format!("{}/health/ready", service.base_url());
    let answer: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
    answer["data"]["parts"]["embedder"].clone()
}

pub async fn model_is_there(service: &Service) {
    let there = async {
        while embedder(service).await["status"] != "up" {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the model", there).await;
}

pub async fn search(client: &Client, query: &str, mode: &str) -> Vec<Value> {
    let body = json!({"query": query, "mode": mode});
    let found = data(client.post("/search", &body).await);
    found.as_array().unwrap_or_else(|| panic!("{found:#}")).clone()
}

fn texts(found: &[Value]) -> Vec<&str> {
    found.iter().map(|passage| passage["text"].as_str().unwrap()).collect()
}

pub async fn text(client: &Client, name: &str, content: &str) -> Value {
    client.ingest(&json!({"name": name, "type": "TXT", "content": content})).await
}

/// The document, once it is answered by a model.
pub async fn embedded_by(client: &Client, document: &Value, model: &str) -> Value {
    let path = format!("/documents/{}", id(document));
    let embedded = async {
        loop {
            let shown = client.read(&path).await;
            if shown["index"]["embeddingModel"] == model {
                return shown;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the vectors of a document", embedded).await
}

async fn passages_are_found_by_what_they_mean(mode: Mode) {
    let server = Embeddings::start().await;
    let (service, client) = start(mode, &server).await;
    let document = text(&client, "Garage", "The automobile needs new tyres.").await;
    text(&client, "Clinic", "The physician is away in August.").await;
    assert_eq!(document["index"]["embeddingModel"], "synonyms", "{document:#}");
    assert_eq!(document["index"]["dimensions"], 5);

    let found = search(&client, "car", "hybrid").await;
    assert_eq!(found[0]["documentId"], document["id"], "{found:#?}");
    assert_eq!(found[0]["scores"]["lexical"], Value::Null);
    assert!(found[0]["scores"]["dense"].as_f64().unwrap() > 0.9, "{found:#?}");
    assert!(search(&client, "car", "lexical").await.is_empty());
    let both = search(&client, "automobile", "hybrid").await;
    assert!(both[0]["scores"]["lexical"].is_f64() && both[0]["scores"]["dense"].is_f64(), "{both:#?}");

    // The document's name is searched, and is no part of the passage.
    assert!(server.texts().iter().any(|text| text == "Garage\nThe automobile needs new tyres."));
    assert_eq!(found[0]["text"], "The automobile needs new tyres.");
    assert_eq!(server.authorization().unwrap(), format!("Bearer {KEY}"));
    service.assert_no_secret_in_logs(&[KEY]);

    // Its vectors go with it.
    assert_eq!(client.delete(&format!("/documents/{}", id(&document))).await.0, StatusCode::OK);
    assert!(!texts(&search(&client, "car", "dense").await).contains(&"The automobile needs new tyres."));
}

async fn documents_from_before_the_first_model_are_embedded_from_what_is_stored(mode: Mode) {
    let server = Embeddings::start().await;
    let mut service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let before = text(&client, "Garage", "The automobile needs new tyres.").await;
    assert_eq!(before["index"]["embeddingModel"], Value::Null, "{before:#}");
    assert_eq!(embedder(&service).await["status"], "off");
    let (status, refusal) = client.post("/search", &json!({"query": "car", "mode": "dense"})).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{refusal:#}");
    assert_eq!(texts(&search(&client, "automobile", "hybrid").await).len(), 1);
    service.terminate().await;

    let service = with_server(service.sibling(), &server, "synonyms").start().await;
    let client = service.client().sign_in("ada@example.com", crate::support::client::PASSWORD).await;
    let after = embedded_by(&client, &before, "synonyms").await;
    assert_eq!(after["index"]["contentHash"], before["index"]["contentHash"]);
    assert_eq!(after["index"]["chunks"], before["index"]["chunks"]);
    assert_eq!(search(&client, "car", "hybrid").await[0]["documentId"], before["id"]);
}

/// Runs `lectern reembed`, which in the cluster leaves the work to the workers.
async fn reembed(setup: &Setup) -> String {
    let mut command = Command::new(Program::Lectern.path());
    command.arg("reembed").env_clear().envs(setup.environment()).current_dir(setup.data_dir());
    let ended = tokio::task::spawn_blocking(move || command.output().expect("it starts"));
    let output = within_deadline("the documents to be embedded anew", ended).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn another_model_takes_over_document_by_document_when_it_is_told_to(mode: Mode) {
    let server = Embeddings::start().await;
    let (mut service, client) = start(mode, &server).await;
    let old = text(&client, "Garage", "The automobile needs new tyres.").await;
    service.terminate().await;

    let mut service = with_server(service.sibling(), &server, "synonyms-2").start().await;
    let client = service.client().sign_in("ada@example.com", crate::support::client::PASSWORD).await;
    model_is_there(&service).await;
    let new = text(&client, "Workshop", "An automobile is repaired here.").await;
    assert_eq!(new["index"]["embeddingModel"], "synonyms-2");
    let unchanged = client.read(&format!("/documents/{}", id(&old))).await;
    assert_eq!(unchanged["index"], old["index"], "nobody asked for it");
    // Each is found by its own model, at the same server.
    let found = search(&client, "car", "dense").await;
    assert_eq!(found.len(), 2, "{found:#?}");
    if mode == Mode::Embedded {
        service.terminate().await;
    }
    let told = reembed(&service.sibling()).await;
    assert!(told.starts_with("every document is embedded"), "{told}");
    if mode == Mode::Embedded {
        service.restart().await;
    }
    let after = embedded_by(&client, &old, "synonyms-2").await;
    assert_eq!(after["index"]["contentHash"], old["index"]["contentHash"]);
    assert_eq!(client.read(&format!("/documents/{}", id(&new))).await["index"], new["index"]);
    model_is_there(&service).await;
    assert_eq!(search(&client, "car", "dense").await.len(), 2);
}

async fn what_was_embedded_once_is_not_embedded_again(mode: Mode) {
    let server = Embeddings::start().await;
    let (_service, client) = start(mode, &server).await;
    let paragraph =
        |n: usize| format!("Paragraph {n} is about the dog. {}", "It barks at night. ".repeat(40));
    let content = (0..20).map(paragraph).collect::<Vec<_>>().join("\n\n");
    let document = text(&client, "Dogs", &content).await;
    let count = chunks(&client, id(&document)).await.len();
    assert!(count > 10, "{count}");
    let asked = || server.texts().iter().filter(|text| text.starts_with("Dogs\n")).count();
    assert_eq!(asked(), count);

    client.create(&format!("/documents/{}/ingest", id(&document)), &json!({})).await;
    let again = client.wait_until_ingested(id(&document)).await;
    assert_ne!(again["index"]["generation"], document["index"]["generation"]);
    assert_eq!(asked(), count, "nothing changed");

    // One more paragraph at the end costs no more than the passages that it changes.
    let changed = json!({"content": format!("{content}\n\n{}", paragraph(20))});
    data(client.patch(&format!("/documents/{}", id(&document)), &changed).await);
    client.wait_until_ingested(id(&document)).await;
    let more = asked() - count;
    assert!((1..=3).contains(&more), "{more} of {count}");
}

async fn a_server_that_is_away_delays_a_document_and_loses_none(mode: Mode) {
    let server = Embeddings::start().await;
    let (_service, client) = start(mode, &server).await;
    let document = text(&client, "Garage", "The automobile needs new tyres.").await;
    server.trouble(|_| Some((Status::INTERNAL_SERVER_ERROR, "out of memory").into_response()));
    let waiting = json!({"name": "Late", "type": "TXT", "content": "The puppy sleeps."});
    let late = client.create_document(&waiting).await;
    // Questions are answered by words meanwhile.
    let found = search(&client, "automobile", "hybrid").await;
    assert_eq!(found[0]["documentId"], document["id"], "{found:#?}");
    assert_eq!(found[0]["scores"]["dense"], Value::Null);
    server.well();
    let late = client.wait_until_ingested(id(&late)).await;
    assert_eq!(late["ingestion"]["status"], "SUCCEEDED", "{late:#}");
    assert_eq!(late["index"]["embeddingModel"], "synonyms");
    // A model that was silent is not asked by every question that follows.
    let meant = async {
        while search(&client, "dog", "hybrid").await.first().map(|first| &first["documentId"])
            != Some(&late["id"])
        {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the model to be asked again", meant).await;
}

async fn a_server_that_refuses_is_said_so_without_its_key(mode: Mode) {
    let server = Embeddings::start().await;
    server.trouble(|_| {
        Some((Status::UNAUTHORIZED, format!("{{\"error\": \"the key {KEY} is wrong\"}}")).into_response())
    });
    let service = with_server(Service::in_mode(mode), &server, "synonyms").start().await;
    let refused = async {
        loop {
            let said = embedder(&service).await;
            if said["status"] == "none" {
                return said;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let said = within_deadline("the refusal to be told", refused).await;
    assert!(said["reason"].as_str().unwrap().contains("LECTERN_EMBEDDING_API_KEY"), "{said:#}");
    assert!(!said.to_string().contains(KEY), "{said:#}");
    // The service does its work by words.
    let client = service.signed_up("ada@example.com").await;
    let document = text(&client, "Garage", "The automobile needs new tyres.").await;
    assert_eq!(document["index"]["embeddingModel"], Value::Null);
    assert_eq!(search(&client, "automobile", "hybrid").await.len(), 1);
    service.assert_no_secret_in_logs(&[KEY]);
}
