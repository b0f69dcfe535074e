//! A batch that is cancelled while one of its files is linked to an agent.

use futures::FutureExt;
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::{id_of, post, success};
use crate::support::{
    client::{data, envelope, id, send},
    db::{Database, waits_for_a_lock},
    service::{Mode, Service},
    web::Web,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_linked_while_its_batch_is_cancelled_is_ingested() {
    let database = Database::fresh().await;
    let service = Service::in_mode(Mode::Postgres).database_url(database.url()).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "Slowly.");
    let document = ada.create_document(&json!({ "name": "Slow", "type": "TXT", "url": url })).await;
    gate.wait_until_reached().await;
    let agent = ada.create_agent(&json!({ "name": "Keeper", "type": "CHATVENDOR" })).await;
    let store = id_of(post(&ada, "/vector_stores", &json!({ "name": "Lighthouse" })).await);
    let path = format!("/vector_stores/{store}/file_batches");
    let batch = id_of(post(&ada, &path, &json!({ "file_ids": [document["id"]] })).await);

    // The link has seen that the file is being ingested, and is held up before it is there.
    let mut holding = PgConnection::connect(database.url()).await.expect("the service's database");
    let mut beside = PgConnection::connect(database.url()).await.expect("the service's database");
    let mut held = holding.begin().await.expect("a transaction");
    let lock = sqlx::query("LOCK TABLE idempotency IN SHARE MODE");
    lock.execute(&mut *held).await.expect("a lock");
    let link = json!({ "agentId": id(&agent), "documentId": id(&document) });
    let link = ada.request(Method::POST, "/agent-documents").header("Idempotency-Key", "once").json(&link);
    let linking = async { envelope(send(link).await).await }.shared();
    tokio::select! {
        () = waits_for_a_lock(&mut beside, "INSERT INTO idempotency") => {}
        answer = linking.clone() => panic!("it was not held up: {answer:?}"),
    }
    let (cancel, nothing) = (format!("{path}/{batch}/cancel"), json!({}));
    let cancelling = post(&ada, &cancel, &nothing).shared();
    tokio::select! {
        () = waits_for_a_lock(&mut beside, "UPDATE workspaces SET fair_at = fair_at WHERE") => {}
        // Then it did not wait for the link.
        _ = cancelling.clone() => {}
    }
    held.rollback().await.expect("an end of it");

    let (linked, cancelled) = tokio::join!(linking, cancelling);
    data(linked);
    success(cancelled);
    gate.release();
    let ended = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{:#}", ended["ingestion"]);
}
