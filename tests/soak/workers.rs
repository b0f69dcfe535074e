//! Workers that die.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use super::{Accepted, assert_all_searchable, below, post, wait_until_idle, wait_until_tidy};
use crate::support::{
    client::{Client, id},
    db::Database,
    service::{Mode, Service},
};

const DOCUMENTS: usize = 300;
const KILLS: usize = 40;
/// A document is ingested again every so many kills.
const ROUNDS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn workers_killed_at_random_lose_nothing_and_double_nothing() {
    let database = Database::fresh().await;
    let mut service = Service::in_mode(Mode::Cluster)
        .database_url(database.url())
        .workers(3)
        .env("LECTERN_WORKER_CONCURRENCY", "2")
        .env("LECTERN_JOB_LEASE", "3s")
        .env("LECTERN_INDEX_GRACE", "1s")
        .env("LECTERN_JOB_MAX_ATTEMPTS", "100")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let mut accepted = Accepted::new();
    for number in 0..DOCUMENTS {
        // Every third takes a while.
        let sentences = if number % 3 == 0 { 10_000 } else { 50 };
        let (id, content) = post(&client, &format!("document {number}"), sentences).await.expect("accepted");
        accepted.insert(id, content);
    }
    let mut interrupted = BTreeSet::new();
    for kill in 0..KILLS {
        // So that there is something to interrupt. Others each time: a document that is asked for again before its lease has
        // run out begins anew, and its attempts with it.
        for document in accepted.keys().skip(kill % ROUNDS).step_by(ROUNDS) {
            client.create(&format!("/documents/{document}/ingest"), &json!({})).await;
        }
        tokio::time::sleep(Duration::from_millis(below(300))).await;
        let worker = usize::try_from(below(3)).expect("a small number");
        service.kill_worker(worker);
        service.start_worker(worker).await;
        interrupted.extend(tried_again(&client).await);
    }
    wait_until_idle(&client).await;
    interrupted.extend(tried_again(&client).await);
    assert_all_searchable(&client, &accepted).await;
    eprintln!(
        "{KILLS} kills, {DOCUMENTS} documents: {} of them were seen in a second attempt",
        interrupted.len()
    );
    assert!(!interrupted.is_empty(), "no attempt was counted that a kill ended");
    wait_until_tidy(database.url()).await;
}

/// The documents that are in a later attempt than their first, or needed one.
async fn tried_again(client: &Client) -> Vec<String> {
    let listed = client.read("/documents").await;
    let again = |document: &&Value| document["ingestion"]["attempts"].as_u64() > Some(1);
    listed.as_array().expect("a list").iter().filter(again).map(|document| id(document).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn workers_asked_to_stop_hand_their_work_to_others_at_once() {
    let mut service = Service::in_mode(Mode::Cluster)
        .workers(2)
        // Longer than the test may take: a document that waited for it would be seen.
        .env("LECTERN_JOB_LEASE", "1h")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let mut accepted = Accepted::new();
    for number in 0..200 {
        let (id, content) = post(&client, &format!("document {number}"), 5_000).await.expect("accepted");
        accepted.insert(id, content);
    }
    for round in 0..10 {
        let worker = round % 2;
        let status = service.stop_worker(worker).await;
        assert_eq!(status.code(), Some(0));
        service.start_worker(worker).await;
    }
    wait_until_idle(&client).await;
    assert_all_searchable(&client, &accepted).await;
    for document in accepted.keys() {
        let shown = client.read(&format!("/documents/{document}")).await;
        assert_eq!(shown["ingestion"]["attempts"], 1, "{shown:#}");
    }
}
