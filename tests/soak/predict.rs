//! What a predict takes beside its model: nothing is asserted, it prints.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::measure::print;
use crate::support::{
    client::{Client, id, send},
    model::{Model, Reply},
    service::{Mode, Service},
};

const SINGLE: usize = 500;
const AT_ONCE: usize = 50;
const EACH: usize = 20;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: scripts/soak.sh"]
async fn predict_is_measured() {
    for (name, mode) in [("embedded", Mode::Embedded), ("cluster", Mode::Cluster)] {
        let service = Service::in_mode(mode).env("LECTERN_RATE_LIMIT", "off").start().await;
        let client = service.signed_up("ada@example.com").await;
        let model = Model::start().await;
        model.always(Reply::text("It opens at half past six [1]."));
        let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
        let agent = client.create_agent(&agent).await;
        let content = "The harbour gate opens at half past six. ".repeat(200);
        let document = client.ingest(&json!({"name": "Gate", "type": "TXT", "content": content})).await;
        client.link(id(&agent), id(&document)).await;
        let bare = bare(&model).await;
        let alone = ask(client.clone(), agent.clone(), SINGLE, false).await;
        let streamed = ask(client.clone(), agent.clone(), SINGLE, true).await;
        let askers: Vec<_> =
            (0..AT_ONCE).map(|_| tokio::spawn(ask(client.clone(), agent.clone(), EACH, true))).collect();
        let mut together = Vec::new();
        let began = Instant::now();
        for asker in askers {
            together.extend(asker.await.expect("an asker does not panic"));
        }
        let rate =
            f64::from(u32::try_from(together.len()).unwrap_or(u32::MAX)) / began.elapsed().as_secs_f64();
        print(name, "the model alone", bare);
        print(name, "predict", alone);
        print(name, "predict as a stream", streamed);
        print(name, &format!("{AT_ONCE} streams at once ({rate:.0}/s)"), together);
        eprintln!("{name}: {} MiB resident", service.rss_bytes() >> 20);
    }
}

/// How long the model takes when it is asked without the service.
async fn bare(model: &Model) -> Vec<Duration> {
    let http = reqwest::Client::new();
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "When?"}]});
    let mut times = Vec::new();
    for _ in 0..SINGLE {
        let began = Instant::now();
        let answer = send(http.post(format!("{}chat/completions", model.base_url())).json(&body)).await;
        answer.bytes().await.expect("an answer");
        times.push(began.elapsed());
    }
    times
}

async fn ask(client: Client, agent: Value, count: usize, streams: bool) -> Vec<Duration> {
    let body = json!({"input": {"input": "When does the gate open?"}, "has_streaming": streams});
    let mut times = Vec::new();
    for _ in 0..count {
        let request = client.predict_request(id(&agent), &body).await;
        let began = Instant::now();
        let answer = send(request).await;
        assert!(answer.status().is_success());
        answer.bytes().await.expect("an answer");
        times.push(began.elapsed());
    }
    times
}
