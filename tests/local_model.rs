//! A sentence encoder in the process: from a folder, from a hub, and the real one.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Once,
};

use lectern_shared::secrets::{hex, sha256};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    embedding::{embedded_by, embedder, model_is_there, search, text},
    ingestion::chunks,
    support::{
        client::{Client, id},
        command::lectern,
        in_both_modes,
        process::POLL,
        service::{Mode, Service},
        tiny_model,
        web::Web,
        within_deadline,
    },
};

in_both_modes!(
    a_model_in_a_folder_embeds_what_is_ingested,
    no_passage_is_larger_than_the_model_takes_in,
    a_folder_without_a_model_is_said_so_and_search_goes_on_by_words,
    a_model_is_downloaded_while_documents_are_found_by_words,
    a_hub_that_may_not_be_asked_is_not_and_health_says_so,
    the_real_model_finds_what_is_meant_and_leaves_other_languages_to_the_words
);

const WORDS: [&str; 8] = ["ship", "harbour", "captain", "bread", "oven", "baker", "the", "in"];

fn folder(service: &Path, name: &str) -> PathBuf {
    service.join("model-folders").join(name)
}

/// A service with a small model, made by the test, in a folder named `tiny`.
async fn start(mode: Mode) -> (Service, Client) {
    let setup = Service::in_mode(mode);
    let folder = folder(setup.data_dir(), "tiny");
    tiny_model::write(&folder, &WORDS);
    let setup = setup
        .env("LECTERN_EMBEDDER", "local")
        .env("LECTERN_EMBEDDING_LANGUAGES", "all")
        .env("LECTERN_EMBEDDING_MODEL_DIR", folder.to_str().unwrap());
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    model_is_there(&service).await;
    (service, client)
}

async fn a_model_in_a_folder_embeds_what_is_ingested(mode: Mode) {
    let (service, client) = start(mode).await;
    let said = embedder(&service).await;
    assert_eq!((&said["model"], &said["dimensions"]), (&json!("tiny"), &json!(32)), "{said:#}");
    let ship = text(&client, "ship", "the captain in the harbour").await;
    text(&client, "bread", "the baker in the oven").await;
    assert_eq!(ship["index"]["embeddingModel"], "tiny", "{ship:#}");
    assert_eq!(ship["index"]["dimensions"], 32);
    let found = search(&client, "the captain", "dense").await;
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[0]["documentId"], ship["id"], "{found:#?}");
    let found = search(&client, "the captain", "hybrid").await;
    assert!(found[0]["scores"]["dense"].is_f64() && found[0]["scores"]["lexical"].is_f64(), "{found:#?}");
}

async fn no_passage_is_larger_than_the_model_takes_in(mode: Mode) {
    let (_service, client) = start(mode).await;
    let content = "the ship in the harbour and the captain in the ship. ".repeat(400);
    for splitter in [
        Value::Null,
        json!({"type": "token", "chunk_size": 5000, "chunk_overlap": 0}),
        json!({"type": "character", "chunk_size": 9000, "chunk_overlap": 0}),
    ] {
        let body = json!({"name": "ship", "type": "TXT", "content": content, "splitter": splitter});
        let document = client.ingest(&body).await;
        let passages = chunks(&client, id(&document)).await;
        assert!(passages.len() > 10, "{splitter}: {}", passages.len());
        for passage in passages {
            assert!(passage["tokens"].as_u64().unwrap() <= 220, "{splitter}: {passage:#}");
        }
    }
}

async fn a_folder_without_a_model_is_said_so_and_search_goes_on_by_words(mode: Mode) {
    let setup = Service::in_mode(mode);
    let empty = folder(setup.data_dir(), "empty");
    std::fs::create_dir_all(&empty).unwrap();
    let setup = setup.env("LECTERN_EMBEDDER", "local");
    let service = setup.env("LECTERN_EMBEDDING_MODEL_DIR", empty.to_str().unwrap()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = text(&client, "ship", "the captain in the harbour").await;
    assert_eq!(document["index"]["embeddingModel"], Value::Null);
    assert_eq!(search(&client, "captain", "hybrid").await.len(), 1);
    let said = within_deadline("the reason", async {
        loop {
            let said = embedder(&service).await;
            if said["status"] == "none" {
                return said;
            }
            tokio::time::sleep(POLL).await;
        }
    });
    let said = said.await;
    assert!(said["reason"].as_str().unwrap().contains("config.json"), "{said:#}");
}

#[test]
fn a_model_in_a_folder_is_not_asked_of_the_hub_by_the_folders_name() {
    let setup = Service::in_mode(Mode::Embedded).env("LECTERN_EMBEDDING_MODEL_DIR", "/models/tiny");
    let ran = lectern(&setup, &["model", "pull"]);
    assert!(!ran.status.success() && ran.log.contains("LECTERN_EMBEDDING_MODEL_DIR is set"), "{ran:#?}");
}

/// A hub with one model, `tests/tiny`, whose weights are held back until they are released.
async fn hub(folder: &Path) -> (Web, crate::support::loopback::Gate) {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let web = Web::start().await;
    let mut listed = Vec::new();
    let mut weights = None;
    for path in [
        "config.json",
        "tokenizer.json",
        "modules.json",
        "sentence_bert_config.json",
        "1_Pooling/config.json",
        "model.safetensors",
    ] {
        let bytes = std::fs::read(folder.join(path)).unwrap();
        listed.push(json!({
            "type": "file", "path": path, "size": bytes.len(), "oid": "0".repeat(40),
            "lfs": {"oid": hex(&sha256(&bytes)), "size": bytes.len(), "pointerSize": 130},
        }));
        let at = format!("/tests/tiny/resolve/{COMMIT}/{path}");
        if path == "model.safetensors" {
            weights = Some(web.gate(&at, "application/octet-stream", bytes).1);
        } else {
            web.serve(&at, "application/octet-stream", bytes);
        }
    }
    let json = "application/json";
    web.serve("/api/models/tests/tiny/revision/main", json, json!({"sha": COMMIT}).to_string());
    web.serve(&format!("/api/models/tests/tiny/tree/{COMMIT}"), json, Value::from(listed).to_string());
    (web, weights.unwrap())
}

async fn a_model_is_downloaded_while_documents_are_found_by_words(mode: Mode) {
    let setup = Service::in_mode(mode);
    let files = folder(setup.data_dir(), "published");
    tiny_model::write(&files, &WORDS);
    let (web, weights) = hub(&files).await;
    let setup = setup
        .env("LECTERN_EMBEDDER", "auto")
        .env("LECTERN_EMBEDDING_LANGUAGES", "all")
        .env("LECTERN_EMBEDDING_MODEL", "tests/tiny")
        .env("LECTERN_MODEL_HUB", &web.url(""));
    let mut service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    weights.wait_until_reached().await;
    let downloading = async {
        // In a cluster it may be the worker that fetches it.
        while embedder(&service).await["status"] != "downloading" {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the download to be told", downloading).await;
    let document = text(&client, "ship", "the captain in the harbour").await;
    assert_eq!(document["index"]["embeddingModel"], Value::Null, "{document:#}");
    assert_eq!(search(&client, "captain", "hybrid").await[0]["documentId"], document["id"]);
    let (status, refusal) = client.post("/search", &json!({"query": "captain", "mode": "dense"})).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{refusal:#}");
    assert_eq!(refusal["error"]["code"], "embedding_model_unavailable", "it passes: {refusal:#}");

    weights.release();
    embedded_by(&client, &document, "tests/tiny").await;
    model_is_there(&service).await;
    assert_eq!(search(&client, "captain", "dense").await[0]["documentId"], document["id"]);
    let asked = |web: &Web| web.requests("/api/models/tests/tiny/revision/main").len();
    let before = asked(&web);

    // It is kept: the hub is not asked again.
    service.restart().await;
    model_is_there(&service).await;
    assert_eq!(asked(&web), before);
}

async fn a_hub_that_may_not_be_asked_is_not_and_health_says_so(mode: Mode) {
    let web = Web::start().await;
    let service = Service::in_mode(mode)
        .env("LECTERN_EMBEDDER", "auto")
        .env("LECTERN_EMBEDDING_MODEL", "tests/tiny")
        .env("LECTERN_MODEL_HUB", &web.url(""))
        .env("HF_HUB_OFFLINE", "1")
        .start()
        .await;
    let said = within_deadline("the reason", async {
        loop {
            let said = embedder(&service).await;
            if said["status"] == "none" {
                return said;
            }
            tokio::time::sleep(POLL).await;
        }
    });
    let said = said.await;
    assert!(said["reason"].as_str().unwrap().contains("HF_HUB_OFFLINE"), "{said:#}");
    let client = service.signed_up("ada@example.com").await;
    let document = text(&client, "ship", "the captain in the harbour").await;
    assert_eq!(search(&client, "captain", "hybrid").await[0]["documentId"], document["id"]);
    assert!(web.requests("/api/models/tests/tiny/revision/main").is_empty());
}

/// The files of all-MiniLM-L6-v2 that the test command names; without them it is said, once, what did not run.
fn real_model() -> Option<PathBuf> {
    static MISSING: Once = Once::new();
    let named = std::env::var_os("TEST_MODEL_DIR").filter(|named| !named.is_empty()).map(PathBuf::from);
    if named.is_none() {
        // Not by `eprintln!`, which is shown of failed tests only.
        MISSING.call_once(|| {
            let text =
                "\n!!! TEST_MODEL_DIR is not set: the tests with a real sentence encoder did NOT run !!!\n\n";
            let _ = std::io::stderr().write_all(text.as_bytes());
        });
    }
    named
}

async fn the_real_model_finds_what_is_meant_and_leaves_other_languages_to_the_words(mode: Mode) {
    let Some(folder) = real_model() else { return };
    let setup = Service::in_mode(mode).env("LECTERN_EMBEDDER", "local");
    let service = setup.env("LECTERN_EMBEDDING_MODEL_DIR", folder.to_str().unwrap()).start().await;
    let client = service.signed_up("ada@example.com").await;
    model_is_there(&service).await;
    let mut documents = Vec::new();
    for (name, content) in [
        ("Refunds", "We return what you have paid when you send the goods back within two weeks."),
        ("Parking", "Vehicles may be left behind the building on weekdays only."),
        ("Holidays", "The office is closed between Christmas and New Year."),
        ("退款", "如果您在两周内退回商品，我们将退还您支付的款项。"),
        ("休暇", "事務所はクリスマスから正月まで休業します。"),
    ] {
        documents.push(text(&client, name, content).await["id"].clone());
    }
    for (question, expected) in [
        ("How do I get my money back?", 0),
        ("Where can I put my car?", 1),
        ("Is anybody there in the last week of December?", 2),
    ] {
        assert!(
            search(&client, question, "hybrid").await[0]["documentId"] == documents[expected],
            "{question}"
        );
    }
    for (question, expected) in [("退回商品", 3), ("事務所の休業", 4)] {
        let found = search(&client, question, "hybrid").await;
        assert_eq!(found[0]["documentId"], documents[expected], "{question}: {found:#?}");
        assert!(found.iter().all(|passage| passage["scores"]["dense"].is_null()), "{question}: {found:#?}");
    }
}
