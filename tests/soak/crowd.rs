//! A machine that is too busy, and workers that die on it: whatever was published is in the index, passage by passage.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};

use super::{below, patiently, text, wait_until_idle, wait_until_tidy};
use crate::{
    ingestion::chunks,
    support::{
        client::{Client, id},
        db::Database,
        qdrant::QdrantServer,
        service::{Mode, Service},
    },
};

const DOCUMENTS: usize = 300;
/// Sentences of a document, two a passage.
const SENTENCES: usize = 100;
const PASSAGES: usize = 50;
const WORKERS: usize = 3;
/// Threads that do nothing but work beside the service.
const BUSY_LOOPS: usize = 4;
/// A worker is killed whenever so many documents were posted,
const KILL_EVERY: usize = 30;
/// and then after this, or up to twice of it.
const KILL_PAUSE_MS: u64 = 4_000;
/// What the scrubber says when something published is not in the index. It would mend it, and hide what this looks for.
const MISSED: &str = "the index does not hold what was published";

/// How often each is repeated: `LECTERN_SOAK_ROUNDS`.
fn rounds() -> usize {
    std::env::var("LECTERN_SOAK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh crowd"]
async fn what_was_published_is_in_qdrant_however_busy_the_machine_is() {
    let Some(qdrant) = QdrantServer::named() else { return };
    for round in 1..=rounds() {
        crowd(round, Some(&qdrant)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh crowd"]
async fn what_was_published_is_in_the_embedded_index_however_busy_the_machine_is() {
    for round in 1..=rounds() {
        crowd(round, None).await;
    }
}

async fn crowd(round: usize, qdrant: Option<&QdrantServer>) {
    let database = Database::fresh().await;
    let setup = Service::in_mode(Mode::Cluster)
        .database_url(database.url())
        .workers(WORKERS)
        .env("LECTERN_WORKER_CONCURRENCY", "2")
        .env("LECTERN_JOB_LEASE", "3s")
        .env("LECTERN_INDEX_GRACE", "1s")
        .env("LECTERN_JOB_MAX_ATTEMPTS", "100");
    let setup = match qdrant {
        Some(qdrant) => qdrant.used_by(setup, qdrant.url()),
        None => setup,
    };
    let mut service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let busy = Busy::begin(BUSY_LOOPS);
    let (mut documents, mut kills) = (Vec::new(), 0);
    for number in 0..DOCUMENTS {
        let content = text(&format!("document {number}"), SENTENCES);
        let splitter = json!({"type": "recursive", "chunk_size": 100, "chunk_overlap": 0});
        let body = json!({"name": "crowd", "type": "TXT", "content": content, "splitter": splitter});
        documents.push(id(&client.create_document(&body).await).to_owned());
        if number % KILL_EVERY == KILL_EVERY - 1 {
            kill_any(&mut service).await;
            kills += 1;
        }
    }
    while !is_idle(&client).await {
        // What is killed at once again has no time to publish anything.
        tokio::time::sleep(Duration::from_millis(KILL_PAUSE_MS + below(KILL_PAUSE_MS))).await;
        kill_any(&mut service).await;
        kills += 1;
    }
    drop(busy);
    wait_until_idle(&client).await;
    let missed =
        (0..WORKERS).map(|worker| service.worker_logs(worker).matches(MISSED).count()).sum::<usize>();
    let mut incomplete = 0;
    for document in &documents {
        incomplete += usize::from(!is_all_found(&client, document).await);
    }
    let kind = if qdrant.is_some() { "Qdrant" } else { "embedded" };
    eprintln!(
        "{kind}, round {round}: {kills} kills, {incomplete} of {DOCUMENTS} documents not found whole, {missed} missed"
    );
    assert_eq!((incomplete, missed), (0, 0));
    // An undisturbed run makes the same passages.
    for document in documents.iter().step_by(10) {
        let before = chunks(&client, document).await;
        client.create(&format!("/documents/{document}/ingest"), &json!({})).await;
        client.wait_until_ingested(document).await;
        assert!(
            chunks(&client, document).await == before,
            "{document}: an undisturbed run makes other passages"
        );
    }
    wait_until_tidy(database.url()).await;
    if let Some(qdrant) = qdrant {
        let points = async {
            while qdrant.points(&service).await != (DOCUMENTS * PASSAGES) as u64 {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        patiently("what nobody reads to be removed from Qdrant", points).await;
        qdrant.forget(&service).await;
    }
}

/// Kills one of the workers and starts it again.
async fn kill_any(service: &mut Service) {
    let worker = usize::try_from(below(WORKERS as u64)).expect("a small number");
    service.kill_worker(worker);
    service.start_worker(worker).await;
}

/// Whether a search finds each passage of a document that succeeded.
async fn is_all_found(client: &Client, document: &str) -> bool {
    let shown = client.read(&format!("/documents/{document}")).await;
    assert_eq!(shown["ingestion"]["status"], "SUCCEEDED", "{shown:#}");
    let passages = chunks(client, document).await;
    assert_eq!(passages.len(), PASSAGES, "{document}");
    let stored: BTreeSet<&str> = passages.iter().filter_map(|passage| passage["chunkId"].as_str()).collect();
    let question = json!({"query": "sheep", "documentIds": [document], "mode": "lexical", "limit": PASSAGES});
    let request = client.request(Method::POST, "/search").json(&question);
    let found: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    let hits = found["data"].as_array().expect("a list");
    let found: BTreeSet<&str> = hits.iter().filter_map(|hit| hit["chunkId"].as_str()).collect();
    found == stored
}

async fn is_idle(client: &Client) -> bool {
    let listed = client.read("/documents").await;
    listed.as_array().expect("a list").iter().all(|document| document["ingestion"]["status"] == "SUCCEEDED")
}

/// Threads that keep the cores from everybody else.
struct Busy {
    stop: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl Busy {
    fn begin(loops: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self { loops: (0..loops).map(spin).collect(), stop }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for one in self.loops.drain(..) {
            let _ = one.join();
        }
    }
}
