//! The search index can be made again from what is stored, and is the same one for every process.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, id},
        command::lectern,
        in_both_modes,
        qdrant::QdrantServer,
        service::{Mode, Service},
        setup::Setup,
        web::Web,
        within_deadline,
    },
};

in_both_modes!(
    documents_are_indexed_again_although_their_sources_are_gone,
    a_process_with_another_index_is_refused,
    documents_move_to_qdrant_and_back,
    a_qdrant_that_lost_its_data_is_noticed_and_filled_again
);

/// Runs the command that queues all documents; what it answered.
fn reindex(setup: &Setup) -> String {
    lectern(setup, &["reindex"]).well().out
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_for_an_installation_make_none() {
    for arguments in [
        &["reindex"][..],
        &["reembed"],
        &["reencrypt"],
        &["migrate"],
        &["jobs", "list"],
        &["workspace", "list"],
        &["user", "add", "ada@example.com"],
        &["user", "admin", "ada@example.com"],
        &["backup", "copy"],
    ] {
        // As whoever names no folder is in a wrong one.
        let setup = Service::in_mode(Mode::Embedded).without("LECTERN_DATA_DIR");
        let ran = lectern(&setup, arguments);
        let looked = setup.data_dir().join("data/lectern.db");
        let told = format!("there is no database at {}", looked.display());
        assert!(!ran.status.success() && ran.log.contains(&told), "{arguments:?}: {ran:#?}");
        assert!(ran.log.contains("LECTERN_DATA_DIR"), "{arguments:?}: {ran:#?}");
        let made: Vec<_> = setup.data_dir().read_dir().expect("a folder").collect();
        assert!(made.is_empty(), "{arguments:?}: {made:?}");
    }
}

/// The document, when it is answered from another generation than `before`.
async fn indexed_anew(client: &Client, before: &Value) -> Value {
    let path = format!("/documents/{}", id(before));
    let anew = async {
        loop {
            let shown = client.read(&path).await;
            if shown["index"]["generation"] != before["index"]["generation"] {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    within_deadline("a new generation", anew).await
}

async fn agent_over(client: &Client, document: &Value) -> String {
    let agent = client.create_agent(&json!({"name": "caretaker", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(document)).await;
    id(&agent).to_owned()
}

async fn assert_cited(client: &Client, agent: &str, question: &str, document: &Value) {
    let (status, answer) = client.predict(agent, question).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["documentId"], document["id"], "{answer:#}");
}

async fn documents_are_indexed_again_although_their_sources_are_gone(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let text = "Bicycles belong in the cellar. ".repeat(500);
    let url = web.serve("/rules.txt", "text/plain", text);
    let before = client.ingest(&json!({"name": "rules", "type": "TXT", "url": url})).await;
    let nowhere = json!({"name": "none", "type": "TXT", "url": web.url("/nowhere")});
    let failed = client.wait_until_ingested(id(&client.create_document(&nowhere).await)).await;
    let passages = chunks(&client, id(&before)).await;
    assert!(passages.len() > 1);
    let agent = agent_over(&client, &before).await;
    web.status("/rules.txt", 404);
    service.terminate().await;

    let told = reindex(&service.sibling());
    assert!(told.starts_with("queued: 1;"), "one can be searched: {told}");
    service.restart().await;
    let after = indexed_anew(&client, &before).await;

    assert_eq!(after["ingestion"]["status"], "SUCCEEDED", "{after:#}");
    assert_eq!(after["ingestion"]["attempts"], 1);
    for kept in ["chunks", "tokens", "contentHash"] {
        assert_eq!(after["index"][kept], before["index"][kept], "{kept}");
    }
    assert_eq!(after["ingestion"]["source"], before["ingestion"]["source"]);
    assert_eq!(chunks(&client, id(&before)).await, passages);
    assert_eq!(web.hits("/rules.txt"), 1, "the source was left alone");
    assert_cited(&client, &agent, "Where do bicycles belong?", &before).await;
    assert_eq!(client.read(&format!("/documents/{}", id(&failed))).await, failed);

    // Asked to ingest it, the service goes to the source as ever.
    client.create(&format!("/documents/{}/ingest", id(&before)), &json!({})).await;
    let asked = client.wait_until_ingested(id(&before)).await;
    assert_eq!(asked["ingestion"]["error"]["code"], "not_found", "{asked:#}");
}

async fn a_process_with_another_index_is_refused(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    service.terminate().await;
    let refusal = service.sibling().env("QDRANT_URL", "http://127.0.0.1:1").start_refused().await;
    for (name, status, log) in &refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("QDRANT_URL") && log.contains("lectern reindex"), "{name}: {log}");
    }
}

async fn documents_move_to_qdrant_and_back(mode: Mode) {
    let Some(qdrant) = QdrantServer::named() else { return };
    let mut service = Service::in_mode(mode).env("LECTERN_INDEX_GRACE", "0s").start().await;
    let client = service.signed_up("ada@example.com").await;
    let rules = json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."});
    let before = client.ingest(&rules).await;
    let agent = agent_over(&client, &before).await;
    service.terminate().await;

    let with_qdrant = qdrant.used_by(service.sibling(), qdrant.url());
    reindex(&with_qdrant);
    let mut moved = with_qdrant.start().await;
    let client = moved.client().sign_in("ada@example.com", crate::support::client::PASSWORD).await;
    let there = indexed_anew(&client, &before).await;
    assert_eq!(qdrant.points(&moved).await, 1);
    assert_cited(&client, &agent, "Where do bicycles belong?", &before).await;
    moved.terminate().await;

    reindex(&service.sibling());
    service.restart().await;
    let client = service.client().sign_in("ada@example.com", crate::support::client::PASSWORD).await;
    indexed_anew(&client, &there).await;
    assert_cited(&client, &agent, "Where do bicycles belong?", &before).await;
    qdrant.forget(&service).await;
}

async fn a_qdrant_that_lost_its_data_is_noticed_and_filled_again(mode: Mode) {
    let Some(qdrant) = QdrantServer::named() else { return };
    let mut service = qdrant.used_by(Service::in_mode(mode), qdrant.url()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let rules = json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."});
    let before = client.ingest(&rules).await;
    let agent = agent_over(&client, &before).await;
    qdrant.forget(&service).await;
    service.terminate().await;

    let refusal = service.sibling().start_refused().await;
    for (name, status, log) in &refusal.processes {
        assert_ne!(status.code(), Some(0), "{name}");
        assert!(log.contains("is gone") && log.contains("lectern reindex"), "{name}: {log}");
    }
    reindex(&service.sibling());
    service.restart().await;
    indexed_anew(&client, &before).await;
    assert_cited(&client, &agent, "Where do bicycles belong?", &before).await;
    qdrant.forget(&service).await;
}
