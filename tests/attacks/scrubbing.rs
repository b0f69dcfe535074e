//! Index entries that are gone although their document counts as searchable: the service finds out, and mends it by itself.

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};

use crate::support::{
    client::{Client, id},
    db::Database,
    qdrant::QdrantServer,
    service::{Mode, Service},
    within_deadline,
};

async fn found(client: &Client) -> Value {
    client.create("/search", &json!({"query": "bicycles"})).await
}

/// Waits until the passage is found again; the metric tells of it.
async fn assert_heals(service: &Service, client: &Client, document: &Value) {
    let healed = async {
        loop {
            let shown = client.read(&format!("/documents/{}", id(document))).await;
            if shown["index"]["generation"] != document["index"]["generation"] {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let healed = within_deadline("the document to be indexed again", healed).await;
    assert_eq!(healed["ingestion"]["status"], "SUCCEEDED", "{healed:#}");
    assert_eq!(found(client).await[0]["documentId"], document["id"]);
    let url = service.worker_url(0).expect("the worker tells its metrics");
    let metrics =
        reqwest::get(format!("{url}/metrics")).await.expect("an answer").text().await.expect("text");
    assert!(metrics.contains(r#"lectern_index_mismatch{kind="missing"} 1"#), "{metrics}");
}

async fn cluster(database: &Database, qdrant: Option<&QdrantServer>) -> (Service, Client, Value) {
    let setup = Service::in_mode(Mode::Cluster)
        .database_url(database.url())
        .env("LECTERN_WORKER_ADDR", "127.0.0.1:0")
        // The source cannot be read again: only what is stored can mend it.
        .env("LECTERN_EGRESS_ALLOW", "");
    let setup = match qdrant {
        Some(qdrant) => qdrant.used_by(setup, qdrant.url()),
        None => setup,
    };
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."});
    let document = client.ingest(&document).await;
    (service, client, document)
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_entries_of_the_embedded_index_are_made_again() {
    let database = Database::fresh().await;
    let (mut service, client, document) = cluster(&database, None).await;
    // As after the defect: lost by a program that did not look.
    service.stop_worker(0).await;
    let mut connection = PgConnection::connect(database.url()).await.expect("the database is up");
    connection.execute("DELETE FROM index_segments").await.expect("it can be damaged");
    service.start_worker(0).await;
    assert_heals(&service, &client, &document).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_points_of_qdrant_are_made_again() {
    let Some(qdrant) = QdrantServer::named() else { return };
    let database = Database::fresh().await;
    let (mut service, client, document) = cluster(&database, Some(&qdrant)).await;
    service.stop_worker(0).await;
    qdrant.remove_points(&service).await;
    assert_eq!(found(&client).await, json!([]), "the passage is lost");
    service.start_worker(0).await;
    assert_heals(&service, &client, &document).await;
    qdrant.forget(&service).await;
}
