//! Evaluations: whether what answers is found and cited, over the running service.

mod agents;
mod cases;
mod numbers;
mod removed;
mod runs;
mod versions;

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    process::POLL,
    service::{Mode, Service},
    within_deadline,
};

async fn signed_up(mode: Mode) -> (Service, Client) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    (service, client)
}

/// A document that can be searched.
async fn document(client: &Client, name: &str, content: &str) -> String {
    let document = json!({"name": name, "type": "TXT", "content": content});
    id(&client.ingest(&document).await).to_owned()
}

pub async fn evaluation(client: &Client, more: Value) -> String {
    let mut body = json!({"name": "Questions"});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    id(&client.create("/evaluations", &body).await).to_owned()
}

/// Adds a case, and returns its id.
pub async fn case(client: &Client, evaluation: &str, question: &str, expect: Value) -> String {
    let case = json!({"question": question, "expect": expect});
    let made = client.create(&format!("/evaluations/{evaluation}/cases"), &case).await;
    id(&made[0]).to_owned()
}

/// A run as it is when it has ended.
async fn ended(client: &Client, evaluation: &str, run: &Value) -> Value {
    let path = format!("/evaluations/{evaluation}/runs/{}", id(run));
    let mut seen = json!(null);
    loop {
        let progress = async {
            loop {
                let now = client.read(&path).await;
                if now["done"] != seen["done"] || now["state"] != seen["state"] {
                    return now;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        seen = within_deadline("the run to go on", progress).await;
        if !matches!(seen["state"].as_str(), Some("queued" | "running")) {
            return seen;
        }
    }
}

/// Has an evaluation run, and waits for its end.
pub async fn run(client: &Client, evaluation: &str, how: Value) -> Value {
    let started = client.create(&format!("/evaluations/{evaluation}/runs"), &how).await;
    let ended = ended(client, evaluation, &started).await;
    assert_eq!(ended["state"], "succeeded", "{ended:#}");
    ended
}

/// What came of a question.
fn result<'a>(run: &'a Value, question: &str) -> &'a Value {
    let results = run["results"].as_array().expect("a list");
    results
        .iter()
        .find(|result| result["question"] == question)
        .unwrap_or_else(|| panic!("{question}: {run:#}"))
}

/// A metric of a way of searching.
pub fn metric(run: &Value, mode: &str, name: &str) -> f64 {
    run["metrics"]["retrieval"][mode][name]["value"]
        .as_f64()
        .unwrap_or_else(|| panic!("{mode} {name}: {run:#}"))
}
