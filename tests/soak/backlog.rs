//! More work than can be done soon.

use tokio::time::Instant;

use super::{post, wait_until_idle};
use crate::support::{
    client::Client,
    service::{Mode, Service},
};

const BACKLOG: usize = 20_000;
const POSTERS: usize = 8;

async fn post_many(client: &Client, count: usize) {
    let posters = (0..POSTERS).map(|poster| {
        let client = client.clone();
        tokio::spawn(async move {
            for number in 0..count / POSTERS {
                post(&client, &format!("document {poster} {number}"), 1).await.expect("accepted");
            }
        })
    });
    for poster in posters.collect::<Vec<_>>() {
        poster.await.expect("a poster does not panic");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn twenty_thousand_documents_of_one_user_do_not_keep_another_waiting() {
    let mut service = Service::in_mode(Mode::Cluster).workers(0).start().await;
    let busy = service.signed_up("busy@example.com").await;
    let began = Instant::now();
    post_many(&busy, BACKLOG).await;
    eprintln!("{BACKLOG} documents posted in {:.1} s", began.elapsed().as_secs_f64());
    let small = service.signed_up("small@example.com").await;
    let (only, _) = post(&small, "the only one", 1).await.expect("accepted");
    let began = Instant::now();
    for _ in 0..2 {
        service.add_worker().await;
    }
    let only = small.wait_until_ingested(&only).await;
    let waited = began.elapsed();
    assert_eq!(only["ingestion"]["status"], "SUCCEEDED", "{only:#}");
    eprintln!("one user's only document was ready {:.2} s after the workers started", waited.as_secs_f64());
    assert!(due(&busy).await > BACKLOG / 2, "it waited for the other user's documents");
    wait_until_idle(&busy).await;
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{BACKLOG} documents worked off in {seconds:.1} s by two workers");
    let listed = busy.read("/documents").await;
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), BACKLOG);
    assert!(listed.iter().all(|document| document["ingestion"]["status"] == "SUCCEEDED"));
}

async fn due(client: &Client) -> usize {
    let answer =
        client.request_outside(reqwest::Method::GET, "/health/ready").send().await.expect("an answer");
    let health: serde_json::Value = answer.json().await.expect("JSON");
    let due = health["data"]["parts"]["queue"]["due"].as_u64().expect("a number");
    usize::try_from(due).expect("a number")
}
