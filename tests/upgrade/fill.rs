//! An installation in which every table has rows, as a user makes them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::UPLOADED;
use crate::support::{
    client::{Client, id, send},
    command::upload,
    loopback::Gate,
    model::{Model, Reply},
    service::Service,
    web::Web,
};

/// Whose all of it is.
pub const EMAIL: &str = "ada@example.com";
/// The name of the uploaded document.
pub const UPLOAD: &str = "lift.txt";
/// The secret of a tool, and how it is shown.
const SECRET: &str = "BSA-0123456789abcdefx7Qd";
pub const MASKED: &str = "BS…x7Qd";

/// What the filled service needs until it is killed.
pub struct Filled {
    /// A token of the user's.
    pub token: String,
    _web: Web,
    _gate: Gate,
}

/// Fills a service that ingests one document at a time. In the end one is being ingested, and another waits.
pub async fn fill(service: &Service) -> Filled {
    let client = service.signed_up(EMAIL).await;
    let web = Web::start().await;
    let token = client.create("/api-tokens", &json!({"description": "kept"})).await;
    documents(&client, &web).await;
    agents(&client).await;

    let (url, gate) = web.gate("/slow", "text/plain", "Slow and steady.");
    let slow = json!({"name": "interrupted", "type": "TXT", "url": url});
    client.create_document(&slow).await;
    gate.wait_until_reached().await;
    let queued = json!({"name": "queued", "type": "TXT", "content": "Keys are with the porter."});
    client.create_document(&queued).await;
    Filled { token: token["token"].as_str().expect("a token").to_owned(), _web: web, _gate: gate }
}

async fn documents(client: &Client, web: &Web) {
    let rules = json!({
        "name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar, never in the stairwell.",
        "metadata": {"year": 2026},
    });
    client.ingest(&rules).await;
    client
        .ingest(&json!({"name": "prices", "type": "CSV", "content": "thing,price\nkey,12\nlamp,7\n"}))
        .await;
    let url = web.serve("/roof.html", "text/html", "<p>The roof is closed in winter.</p>");
    let authorization = json!({"type": "bearer", "token": "a token of the source's"});
    client.ingest(&json!({"name": "roof", "type": "URL", "url": url, "authorization": authorization})).await;
    let file = upload(client, UPLOAD, UPLOADED.as_bytes()).await;
    let change = json!({"name": UPLOAD});
    client.patch(&format!("/documents/{}", id(&file)), &change).await;
    client.wait_until_ingested(id(&file)).await;
    let nowhere = json!({"name": "nowhere", "type": "TXT", "url": web.url("/nowhere")});
    client.wait_until_ingested(id(&client.create_document(&nowhere).await)).await;
    let (url, gate) = web.gate("/cancelled", "text/plain", "Never mind.");
    let cancelled = client.create_document(&json!({"name": "cancelled", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    client.create(&format!("/documents/{}/cancel", id(&cancelled)), &json!({})).await;
    gate.release();
}

async fn agents(client: &Client) {
    let model = Model::start().await;
    let make = async |path: &str, body: Value| id(&client.create(path, &body).await).to_owned();
    let tag = make("/tags", json!({"name": "urgent", "color": "#0e8a16"})).await;
    let prompt = json!({"name": "curt", "template": "In a word: {input}", "input_variables": ["input"]});
    let prompt = make("/prompts", prompt).await;
    let agent = json!({"name": "caretaker", "type": "CHATVENDOR", "hasMemory": true, "promptId": prompt, "tags": [tag]});
    let agent = make("/agents", agent).await;
    let other = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let other = make("/agents", other).await;
    let tool = json!({"name": "web", "type": "SEARCH", "metadata": {"provider": "brave", "api_key": SECRET}});
    let tool = make("/tools", tool).await;
    make("/agent-tools", json!({"agentId": other, "toolId": tool})).await;
    let all = client.read("/documents").await;
    for name in ["rules", UPLOAD] {
        let document = all.as_array().expect("a list").iter().find(|document| document["name"] == name);
        client.link(&agent, id(document.expect("a document"))).await;
    }
    model.always(Reply::text("Hello."));
    for (agent, body) in [
        (&agent, json!({"input": {"input": "Where do bicycles belong?"}, "session": "a-talk"})),
        (&agent, json!({"input": {"input": "How many people does the lift hold?"}, "cache_ttl": 3_600})),
        (&other, json!({"input": {"input": "Hello?"}})),
    ] {
        let (status, answer) = client.ask(agent, &body).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
    }
    let again = json!({"name": "later", "color": "#d73a4a"});
    let request = client.request(Method::POST, "/tags").header("Idempotency-Key", "made once").json(&again);
    assert!(send(request).await.status().is_success());
}
