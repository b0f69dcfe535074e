//! How quick the queue and the lists are. Nothing is asserted: it prints.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{post, wait_until_idle};
use crate::support::{
    client::Client,
    service::{Mode, Service},
};

const SINGLE: usize = 300;
const MANY: usize = 4_000;
const POSTERS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: scripts/soak.sh"]
async fn the_queue_is_measured() {
    for (name, mode) in [("embedded", Mode::Embedded), ("cluster", Mode::Cluster)] {
        let service = Service::in_mode(mode).start().await;
        let client = service.signed_up("ada@example.com").await;
        let mut posted = Vec::new();
        let mut waits = Vec::new();
        for number in 0..SINGLE {
            let began = Instant::now();
            let (id, _) = post(&client, &format!("single {number}"), 1).await.expect("accepted");
            posted.push(began.elapsed());
            let ended = client.wait_until_ingested(&id).await;
            waits.push(between(&ended["ingestion"]["queuedAt"], &ended["ingestion"]["startedAt"]));
        }
        print(name, "POST to its answer", posted);
        print(name, "POST to claim, when idle", waits);
        let began = Instant::now();
        let posters: Vec<_> = (0..POSTERS)
            .map(|poster| tokio::spawn(post_many(client.clone(), poster, MANY / POSTERS)))
            .collect();
        for poster in posters {
            poster.await.expect("a poster does not panic");
        }
        let posted = began.elapsed().as_secs_f64();
        wait_until_idle(&client).await;
        let done = began.elapsed().as_secs_f64();
        let rate = |seconds: f64| f64::from(u32::try_from(MANY).unwrap_or(u32::MAX)) / seconds;
        eprintln!(
            "{name}: {MANY} documents of one sentence, {POSTERS} at a time: posted in {posted:.1} s ({:.0}/s), searchable after {done:.1} s ({:.0}/s)",
            rate(posted),
            rate(done)
        );
    }
}

async fn post_many(client: Client, poster: usize, count: usize) {
    for number in 0..count {
        post(&client, &format!("many {poster} {number}"), 1).await.expect("accepted");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: scripts/soak.sh"]
async fn a_page_of_a_list_is_measured() {
    // Without workers, lists can be measured at once: nothing else goes on.
    let modes = [
        ("cluster", Service::in_mode(Mode::Cluster).workers(0)),
        ("embedded", Service::in_mode(Mode::Embedded)),
    ];
    for (name, setup) in modes {
        let service = setup.start().await;
        let client = service.signed_up("ada@example.com").await;
        let mut there = 0;
        for size in [1_000, 50_000] {
            let posters: Vec<_> = (0..POSTERS)
                .map(|poster| tokio::spawn(post_many(client.clone(), poster, (size - there) / POSTERS)))
                .collect();
            for poster in posters {
                poster.await.expect("a poster does not panic");
            }
            there = size;
            if name == "embedded" {
                wait_until_idle(&client).await;
            }
            let mut times = Vec::new();
            for _ in 0..SINGLE {
                let began = Instant::now();
                let (_, page) = client.get("/documents?limit=100").await;
                times.push(began.elapsed());
                assert_eq!(page["data"].as_array().map(Vec::len), Some(100));
            }
            print(name, &format!("a page of 100 of {size} documents"), times);
        }
    }
}

pub(super) fn print(mode: &str, what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    eprintln!("{mode}: {what}: p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms", at(50), at(95), at(99));
}

/// The time between two moments of one day, as the interface writes them.
fn between(from: &Value, to: &Value) -> Duration {
    let micros = |moment: &Value| {
        let text = moment.as_str().expect("a time");
        let number = |range: std::ops::Range<usize>| text[range].parse::<u64>().expect("digits");
        ((number(11..13) * 60 + number(14..16)) * 60 + number(17..19)) * 1_000_000 + number(20..26)
    };
    Duration::from_micros(micros(to).saturating_sub(micros(from)))
}
