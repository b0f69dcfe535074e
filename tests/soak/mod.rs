//! Long runs under load, with parts killed, stopped and emptied meanwhile. Too long for every change: `scripts/soak.sh` runs
//! them, and prints what it measured.

mod attackers;
mod backlog;
mod crowd;
mod faults;
mod measure;
mod members;
mod outages;
mod predict;
mod workers;

use std::{collections::BTreeMap, future::Future, time::Duration};

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::time::Instant;

use crate::{
    ingestion::chunks,
    support::client::{Client, id},
};

/// Longer than any of these runs should take to settle.
const PATIENCE: Duration = Duration::from_mins(10);

/// A whole number below `end`, at random.
fn below(end: u64) -> u64 {
    let random = uuid::Uuid::now_v7().as_u128();
    u64::try_from(random & u128::from(u32::MAX)).unwrap_or(0) % end
}

/// What a document says: sentences that no other document has, so that what is lost or doubled is seen.
fn text(name: &str, sentences: usize) -> String {
    let sentences = (0..sentences).map(|n| format!("Sentence {n} of {name} counts {} sheep.", n * 31 % 997));
    sentences.collect::<Vec<_>>().join("\n")
}

/// The documents that were accepted: each id with its text.
type Accepted = BTreeMap<String, String>;

/// Posts a document with so many sentences, and tells whether it was accepted.
async fn post(client: &Client, name: &str, sentences: usize) -> Result<(String, String), String> {
    let content = text(name, sentences);
    let body = json!({"name": name, "type": "TXT", "content": content});
    let request = client.request(reqwest::Method::POST, "/documents").json(&body);
    // An answer that never comes would be the one thing that is not allowed.
    let sent = tokio::time::timeout(Duration::from_mins(1), request.send()).await;
    let answer = sent.expect("a request is never left without an answer");
    let answer = answer.map_err(|error| error.to_string())?;
    let status = answer.status();
    let body: Value = answer.json().await.map_err(|error| error.to_string())?;
    if status.is_success() {
        Ok((id(&body["data"]).to_owned(), content))
    } else {
        assert_eq!(body["success"], false, "{body:#}");
        Err(status.to_string())
    }
}

/// Waits, longer than a test does.
async fn patiently<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

/// Waits until no job waits or runs any more.
async fn wait_until_idle(client: &Client) {
    let idle = async {
        loop {
            let (_, health) = crate::support::client::envelope(
                crate::support::client::send(client.request_outside(reqwest::Method::GET, "/health/ready"))
                    .await,
            )
            .await;
            let queue = &health["data"]["parts"]["queue"];
            if ["due", "waiting", "running"].iter().all(|count| queue[count] == 0) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    patiently("the queue to be worked off", idle).await;
}

/// Every document became searchable: whole, and nothing of it twice.
async fn assert_all_searchable(client: &Client, accepted: &Accepted) {
    for (document, content) in accepted {
        let ended = client.wait_until_ingested(document).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
        let passages = chunks(client, document).await;
        assert_eq!(ended["index"]["chunks"], passages.len(), "{ended:#}");
        let mut covered = 0;
        for (at, passage) in passages.iter().enumerate() {
            assert_eq!(passage["ordinal"], at, "{document}");
            let place = |name: &str| usize::try_from(passage["place"][name].as_u64().unwrap()).unwrap();
            let (start, end) = (place("charStart"), place("charEnd"));
            assert!(start <= covered + 1, "{document}: something is missing before passage {at}");
            assert_eq!(passage["text"], content[start..end], "{document}: passage {at}");
            covered = end;
        }
        assert!(covered >= content.trim_end().len(), "{document}: its end is missing");
    }
}

/// Waits until the database holds nothing that no search reads.
async fn wait_until_tidy(database: &str) {
    let mut connection = PgConnection::connect(database).await.expect("the database is up");
    let tidy = async {
        loop {
            let left: i64 = sqlx::query_scalar(
                "SELECT (SELECT COUNT(*) FROM generations WHERE state <> 'active')
                      + (SELECT COUNT(*) FROM chunks WHERE generation_id NOT IN (SELECT active_generation FROM documents WHERE active_generation IS NOT NULL))
                      + (SELECT COUNT(*) FROM index_segments WHERE generation_id NOT IN (SELECT active_generation FROM documents WHERE active_generation IS NOT NULL))",
            )
            .fetch_one(&mut connection)
            .await
            .expect("the database answers");
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    patiently("the leftovers to be purged", tidy).await;
}

/// Posts documents at a steady pace until told to stop; returns those accepted, and the errors.
async fn post_steadily(
    client: Client,
    every: Duration,
    stop: tokio::sync::watch::Receiver<bool>,
) -> (Accepted, Vec<String>) {
    let (mut accepted, mut errors) = (Accepted::new(), Vec::new());
    let mut next = Instant::now();
    let mut number = 0;
    while !*stop.borrow() {
        number += 1;
        match post(&client, &format!("document {number}"), 40).await {
            Ok((id, content)) => {
                accepted.insert(id, content);
            }
            Err(error) => errors.push(error),
        }
        next += every;
        tokio::time::sleep_until(next).await;
    }
    (accepted, errors)
}
