//! A connection to PostgreSQL that breaks while something is committed: what took place is told, and nothing of it is lost.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    db::Database,
    loopback::Gate,
    proxy::{Proxy, commit::Fate},
    qdrant::QdrantServer,
    service::{Mode, Service},
    within_deadline,
};

/// What a transaction does that publishes, accepts, deletes.
const PUBLISHES: &[&str] = &["SET state = 'active'"];
const ACCEPTS: &[&str] = &["INSERT INTO documents", "INSERT INTO jobs"];
const DELETES: &[&str] = &["SET deleted_at", "active_generation = NULL"];

const LEASE: Duration = Duration::from_secs(3);

/// A cluster whose way to PostgreSQL breaks when it is told to.
struct Cluster {
    service: Service,
    client: Client,
    proxy: Proxy,
    qdrant: Option<QdrantServer>,
    _database: Database,
}

impl Cluster {
    async fn start() -> Self {
        let database = Database::fresh().await;
        let (proxy, url) = Proxy::in_front_of(database.url(), 5432).await;
        let lease = format!("{}s", LEASE.as_secs());
        let setup = Service::in_mode(Mode::Cluster).database_url(&url).env("LECTERN_JOB_LEASE", &lease);
        // Over Qdrant, where there is one: it cannot refuse what a writer does that has lost its claim.
        let qdrant = QdrantServer::named();
        let setup = match &qdrant {
            Some(qdrant) => qdrant.used_by(setup, qdrant.url()),
            None => setup,
        };
        let service = setup.start().await;
        let client = service.signed_up("ada@example.com").await;
        Self { service, client, proxy, qdrant, _database: database }
    }

    /// A document is searchable by its one passage, after one attempt, and nobody gave its job up.
    async fn assert_published(&self, document: &Value) {
        let ended = self.client.wait_until_ingested(id(document)).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
        assert_eq!(ended["ingestion"]["attempts"], 1, "{ended:#}");
        assert_eq!(found(&self.client, document).await, 1);
        let events = self.service.worker_logs(0);
        assert!(!events.contains("given up"), "{events}");
    }

    async fn end(self) {
        if let Some(qdrant) = &self.qdrant {
            qdrant.forget(&self.service).await;
        }
    }
}

fn rules() -> Value {
    json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."})
}

/// How many of a document's passages a search finds.
async fn found(client: &Client, document: &Value) -> usize {
    let question = json!({"query": "bicycles", "documentIds": [id(document)]});
    client.create("/search", &question).await.as_array().expect("a list").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_whose_answer_is_late_is_not_taken_for_a_lost_claim() {
    let cluster = Cluster::start().await;
    let gate = Gate::default();
    let caught = cluster.proxy.catch_commit(PUBLISHES, Fate::AnswerWaits(gate.clone()));
    let document = cluster.client.create_document(&rules()).await;
    caught.wait().await;
    // The worker has every occasion to find its claim gone: it would renew it three times meanwhile.
    tokio::time::sleep(LEASE).await;
    gate.release();
    let done = async {
        while !cluster.service.worker_logs(0).contains("job done") {
            assert!(!cluster.service.worker_logs(0).contains("given up"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within_deadline("the job to be done", done).await;
    cluster.assert_published(&document).await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_whose_answer_is_lost_took_place() {
    let cluster = Cluster::start().await;
    let caught = cluster.proxy.catch_commit(PUBLISHES, Fate::AnswerIsLost);
    let document = cluster.client.create_document(&rules()).await;
    caught.wait().await;
    cluster.assert_published(&document).await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_never_arrived_is_made_again() {
    let cluster = Cluster::start().await;
    let caught = cluster.proxy.catch_commit(PUBLISHES, Fate::NeverArrives);
    let document = cluster.client.create_document(&rules()).await;
    caught.wait().await;
    let ended = cluster.client.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    assert_eq!(found(&cluster.client, &document).await, 1);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_whose_answer_is_lost_is_told_as_what_it_became() {
    let cluster = Cluster::start().await;
    let caught = cluster.proxy.catch_commit(ACCEPTS, Fate::AnswerIsLost);
    let document = cluster.client.create_document(&rules()).await;
    assert_eq!(caught.times(), 1);
    cluster.assert_published(&document).await;
    let caught = cluster.proxy.catch_commit(ACCEPTS, Fate::NeverArrives);
    let (status, answer) = cluster.client.post("/documents", &rules()).await;
    assert_eq!((caught.times(), status), (1, StatusCode::SERVICE_UNAVAILABLE), "{answer:#}");
    let listed = cluster.client.read("/documents").await;
    assert_eq!(
        listed.as_array().expect("a list").len(),
        1,
        "what was told to have failed is not there: {listed:#}"
    );
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_whose_answer_is_lost_is_told_as_what_it_became() {
    let cluster = Cluster::start().await;
    let document = cluster.client.ingest(&rules()).await;
    let path = format!("/documents/{}", id(&document));
    let caught = cluster.proxy.catch_commit(DELETES, Fate::NeverArrives);
    let (status, answer) = cluster.client.delete(&path).await;
    assert_eq!((caught.times(), status), (1, StatusCode::SERVICE_UNAVAILABLE), "{answer:#}");
    assert_eq!(found(&cluster.client, &document).await, 1, "what was told to have failed did not take place");
    let caught = cluster.proxy.catch_commit(DELETES, Fate::AnswerIsLost);
    let (status, answer) = cluster.client.delete(&path).await;
    assert_eq!((caught.times(), status), (1, StatusCode::OK), "{answer:#}");
    let (status, _) = cluster.client.get(&path).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    cluster.end().await;
}
