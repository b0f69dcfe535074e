//! One client of each kind attacks, each from an address of its own, while others do their work: they notice next to nothing.

use std::{
    future::Future,
    net::Ipv4Addr,
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use axum::body::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    task::JoinSet,
};

use super::text;
use crate::{
    attacks::{memory::metadata, server::sent, splitting::deepening},
    support::{
        client::{Client, PASSWORD, id},
        service::{Mode, Service},
    },
};

const MIB: usize = 1024 * 1024;
/// How long the others work before anybody attacks, for comparison.
const QUIET: Duration = Duration::from_mins(2);
/// How long an attacker takes between two requests at least: the way to a service is not shorter for most.
const ROUND_TRIP: Duration = Duration::from_millis(30);
/// How often attackers have tried anything.
static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
/// What of `lectern-load` stands for the work of others: its operations with the 95th percentile in this column.
const P95: usize = 4;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a quarter of an hour: scripts/soak.sh attackers"]
async fn others_do_their_work_while_everybody_attacks_the_embedded_service() {
    others_do_their_work_while_everybody_attacks(Mode::Embedded).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a quarter of an hour: scripts/soak.sh attackers"]
async fn others_do_their_work_while_everybody_attacks_the_cluster() {
    others_do_their_work_while_everybody_attacks(Mode::Cluster).await;
}

async fn others_do_their_work_while_everybody_attacks(mode: Mode) {
    let service = Service::in_mode(mode)
        .env("LECTERN_SIGN_UP", "open")
        .env("LECTERN_EMBEDDER", "none")
        .env("LECTERN_MAX_STORAGE", "64MiB")
        // As it is without being set: what is attacked is the service as it is delivered.
        .env("LECTERN_RATE_LIMIT", "200/s")
        .without("LECTERN_REFUSAL_RATE")
        .start()
        .await;
    let minutes = std::env::var("LECTERN_SOAK_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let lasting = Duration::from_mins(minutes.unwrap_or(10));
    let quiet = work(&service, QUIET.min(lasting)).await;
    let attacked = {
        let _attackers = Attackers::begin(&service).await;
        work(&service, lasting).await
    };
    eprintln!("attackers tried {} times", ATTEMPTS.load(Ordering::Relaxed));
    let mut slowed = Vec::new();
    for (operation, before) in &quiet {
        let Some((_, now)) = attacked.iter().find(|(other, _)| other == operation) else { continue };
        eprintln!("{operation}: p95 {before} ms, attacked {now} ms");
        if *now > 2.0 * before {
            slowed.push(operation);
        }
    }
    assert!(slowed.is_empty(), "more than twice as slow: {slowed:?}");
}

/// Has the load program do what users do; fails when one of its answers was wrong. Its operations with their 95th percentile.
async fn work(service: &Service, duration: Duration) -> Vec<(String, f64)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lectern-load"));
    let seconds = format!("{}s", duration.as_secs());
    command.args(["mix", "--url", &service.base_url(), "--duration", &seconds, "--max-growth", "1GiB"]);
    let mut load = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("the load program");
    let mut lines = BufReader::new(load.stdout.take().expect("its output")).lines();
    let mut report = Vec::new();
    while let Some(line) = lines.next_line().await.expect("a line") {
        eprintln!("{line}");
        report.push(line);
    }
    assert!(load.wait().await.expect("its end").success(), "others were disturbed");
    report
        .iter()
        .skip_while(|line| !line.starts_with("operation"))
        .skip(1)
        .map_while(|line| {
            // Names of operations have single blanks in them.
            let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
            Some(((*cells.first()?).to_owned(), cells.get(P95)?.parse().ok()?))
        })
        .collect()
}

/// The attackers, until this is dropped.
struct Attackers(#[expect(dead_code, reason = "they end with it")] JoinSet<()>);

impl Attackers {
    async fn begin(service: &Service) -> Self {
        let mut all = JoinSet::new();
        let mut number = 10;
        let mut somebody = async || {
            number += 1;
            let address = Ipv4Addr::new(127, 0, 0, number);
            let client = service.client().at(address);
            client.sign_up(&format!("mallory{number}@example.com"), PASSWORD).await
        };
        let only = std::env::var("LECTERN_SOAK_ATTACK").ok();
        let mut attack = |name: &str, attack: BoxFuture<'static, ()>| {
            if only.as_ref().is_none_or(|only| only.split(',').any(|part| name.contains(part))) {
                all.spawn(attack);
            }
        };
        attack("fills_the_disk", fills_the_disk(somebody().await).boxed());
        attack("queues_without_end", queues_without_end(somebody().await).boxed());
        attack("filters_by_large_metadata", filters_by_large_metadata(somebody().await).boxed());
        attack("sends_wrong_fields", sends_wrong_fields(somebody().await).boxed());
        attack("nests_quotes", nests_quotes(somebody().await).boxed());
        attack("guesses", guesses(somebody().await).boxed());
        attack("opens_streams", opens_streams(somebody().await).boxed());
        let url = service.base_url();
        attack("begins_bodies", begins_bodies(url.clone(), Ipv4Addr::new(127, 0, 0, 2)).boxed());
        let token = somebody().await.token().to_owned();
        attack("never_reads", never_reads(url, Ipv4Addr::new(127, 0, 0, 3), token).boxed());
        Self(all)
    }
}

/// Goes on although it is refused.
async fn tries(request: impl Future<Output = reqwest::Result<reqwest::Response>>) {
    if let Ok(answer) = request.await {
        let _ = answer.bytes().await;
    }
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(ROUND_TRIP).await;
}

/// Sends what was written once: attackers bring processors of their own, so theirs should cost this machine little.
async fn sends(client: &Client, method: Method, path: &str, body: Bytes) {
    let request = client.request(method, path).header(CONTENT_TYPE, "application/json");
    tries(request.body(body).send()).await;
}

async fn creates(client: &Client, body: Bytes) {
    sends(client, Method::POST, "/documents", body).await;
}

fn written(body: &Value) -> Bytes {
    serde_json::to_vec(body).expect("JSON").into()
}

async fn fills_the_disk(client: Client) {
    let filler = text("filler", 15_000);
    for number in 0.. {
        let content = format!("{number}. {filler}");
        creates(&client, written(&json!({"name": "filler", "type": "TXT", "content": content}))).await;
    }
}

async fn queues_without_end(client: Client) {
    for number in 0.. {
        let content = text(&format!("another {number}"), 200);
        creates(&client, written(&json!({"name": "another", "type": "TXT", "content": content}))).await;
    }
}

async fn filters_by_large_metadata(client: Client) {
    for number in 0..500 {
        let content = format!("Gate {number} opens at nine.");
        let gate = json!({"name": "gate", "type": "TXT", "content": content, "metadata": metadata("legal")});
        creates(&client, written(&gate)).await;
    }
    let search = written(&json!({"query": "gate", "limit": 50, "filter": {"team": "legal", "7": 7}}));
    loop {
        sends(&client, Method::POST, "/search", search.clone()).await;
    }
}

async fn sends_wrong_fields(client: Client) {
    let document = client.create_document(&json!({"name": "one", "type": "TXT", "content": "One."})).await;
    let wrong: Map<String, Value> = (0..100_000).map(|number| (format!("f{number}"), json!(1))).collect();
    let (path, wrong) = (format!("/documents/{}", id(&document)), written(&wrong.into()));
    loop {
        sends(&client, Method::PATCH, &path, wrong.clone()).await;
    }
}

async fn nests_quotes(client: Client) {
    let splitter = json!({"type": "markdown", "chunk_size": 1000, "chunk_overlap": 0});
    let content = deepening(">", 700_000);
    let body = written(&json!({"name": "quotes", "type": "TXT", "content": content, "splitter": splitter}));
    loop {
        creates(&client, body.clone()).await;
    }
}

async fn guesses(client: Client) {
    let stranger = client.signed_out();
    for round in 0.. {
        let guesses = (0..16).map(|number| {
            let email = format!("victim{}@example.com", round * 16 + number);
            let body = json!({"email": email, "password": "correct horse battery"});
            tries(stranger.request(Method::POST, "/auth/sign-in").json(&body).send())
        });
        join_all(guesses).await;
    }
}

async fn opens_streams(client: Client) {
    let document = client.create_document(&json!({"name": "one", "type": "TXT", "content": "One."})).await;
    loop {
        let path = format!("/documents/{}/events", id(&document));
        let streams = (0..50).map(|_| tries(client.request(Method::GET, &path).send()));
        join_all(streams).await;
    }
}

async fn begins_bodies(url: String, from: Ipv4Addr) {
    let half = vec![b' '; MIB];
    let begun = [format!("Content-Length: {}\r\n\r\n", 2 * MIB).as_bytes(), &half].concat();
    loop {
        let all = (0..100).map(|_| sent(&url, from, "POST /api/v1/auth/sign-in HTTP/1.1", &begun));
        let held = join_all(all).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(held);
    }
}

async fn never_reads(url: String, from: Ipv4Addr, token: String) {
    loop {
        let asks = (0..100).map(async |_| {
            let head = format!("GET /api/v1/openapi.json HTTP/1.1\r\nAuthorization: Bearer {token}");
            let mut stream = sent(&url, from, &head, b"\r\n").await;
            let again = format!("{head}\r\nHost: x\r\n\r\n").repeat(20);
            let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(again.as_bytes())).await;
            stream
        });
        let held = join_all(asks).await;
        tokio::time::sleep(Duration::from_secs(40)).await;
        drop(held);
    }
}
