//! The interface that OpenAI's clients speak, by its bytes and by the clients themselves.

mod chat;
mod clients;
mod embeddings;
mod errors;
mod files;
mod linked_batch;
mod models;
mod pages;
mod responses;
mod stores;
mod streams;

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::support::{
    client::{Client, id, send},
    model::{Model, Reply},
    service::{Mode, Service},
    within_deadline,
};

/// A sentence of the document that the agents know, and what it answers.
const FACT: &str = "The harbour gate opens at half past six.";
const QUESTION: &str = "When does the harbour gate open?";
/// How the model answers, in the pieces that it writes: letters of several bytes, of several UTF-16 units, and of several code
/// points stand before the markers.
const PIECES: [&str; 5] = [
    "👩‍🚀 Cafe\u{301}: \"The harbour",
    " gate opens at half past six\" [",
    "1]. 世界",
    " 🌍 again [1]",
    ", e\u{301}.",
];

/// A service with somebody's two agents over one document: one quotes, the other has a model.
struct Harbour {
    service: Service,
    ada: Client,
    model: Model,
    document: String,
    quoting: String,
    composing: String,
}

impl Harbour {
    async fn start(mode: Mode) -> Self {
        let service = Service::in_mode(mode).start().await;
        let ada = service.signed_up("ada@example.com").await;
        let model = Model::start().await;
        model.always(Reply::chunks(PIECES));
        let text = format!("{FACT} The keeper is called Solveig Aas.");
        let document = ada.ingest(&json!({ "name": "Harbour", "type": "TXT", "content": text })).await;
        let quoting = agent(&ada, "Clerk", &json!({ "model": "extractive", "provider": "extractive" })).await;
        let composing = agent(&ada, "Guide", &model.llm("m")).await;
        for agent in [&quoting, &composing] {
            ada.link(agent, id(&document)).await;
        }
        let document = id(&document).to_owned();
        Self { service, ada, model, document, quoting, composing }
    }

    /// A client with an API token, made with these fields.
    async fn script(&self, fields: Value) -> Client {
        script(&self.ada, fields).await
    }
}

/// Makes an agent, and returns its id.
async fn agent(maker: &Client, name: &str, llm: &Value) -> String {
    id(&maker.create_agent(&json!({ "name": name, "type": "CHATVENDOR", "llm": llm })).await).to_owned()
}

/// A client with an API token of somebody's, made with these fields.
async fn script(maker: &Client, mut fields: Value) -> Client {
    fields["description"] = json!("a script's");
    let token = maker.create("/api-tokens", &fields).await;
    maker.with_token(token["token"].as_str().expect("the token's value"))
}

/// A question by itself, as a chat.
fn question(agent: &str) -> Value {
    json!({ "model": agent, "messages": [{ "role": "user", "content": QUESTION }] })
}

/// A request to a path below `/v1`.
fn request(client: &Client, method: Method, path: &str) -> RequestBuilder {
    client.request_anywhere(method, &format!("/v1{path}"))
}

async fn get(client: &Client, path: &str) -> (StatusCode, Value) {
    read(send(request(client, Method::GET, path)).await).await
}

async fn post(client: &Client, path: &str, body: &Value) -> (StatusCode, Value) {
    read(send(request(client, Method::POST, path).json(body)).await).await
}

async fn delete(client: &Client, path: &str) -> (StatusCode, Value) {
    read(send(request(client, Method::DELETE, path)).await).await
}

/// The body of an answer that has to be a success.
#[track_caller]
fn success((status, body): (StatusCode, Value)) -> Value {
    assert_eq!(status, StatusCode::OK, "{body:#}");
    body
}

/// The id in an answer that has to be a success.
#[track_caller]
fn id_of(answer: (StatusCode, Value)) -> String {
    id(&success(answer)).to_owned()
}

/// Reads an answer, and checks what every one has: the request's id, how long it took, JSON, and in a failure the form that the SDKs read.
async fn read(answer: Response) -> (StatusCode, Value) {
    let (status, url) = (answer.status(), answer.url().clone());
    assert!(answer.headers().contains_key("x-request-id"), "no x-request-id from {url}");
    let took = answer.headers().get("openai-processing-ms").and_then(|took| took.to_str().ok());
    assert!(took.is_some_and(|took| took.parse::<u64>().is_ok()), "{took:?} from {url}");
    let text = answer.text().await.unwrap_or_else(|error| panic!("a broken answer from {url}: {error:?}"));
    let body: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{status} from {url} is not JSON ({error}): {text}"));
    if !status.is_success() {
        assert_error_form(&body);
    }
    (status, body)
}

#[track_caller]
fn assert_error_form(body: &Value) {
    let error = body["error"].as_object().unwrap_or_else(|| panic!("no error in {body:#}"));
    let mut names: Vec<&str> = error.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["code", "message", "param", "type"], "{body:#}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body:#}");
    assert!(error["type"].is_string(), "{body:#}");
    for name in ["code", "param"] {
        assert!(error[name].is_null() || error[name].is_string(), "{body:#}");
    }
}

/// Fails unless an answer is a refusal with this status and code.
#[track_caller]
fn assert_refused((status, body): &(StatusCode, Value), expected: u16, code: &str) {
    assert_eq!((status.as_u16(), &body["error"]["code"]), (expected, &json!(code)), "{body:#}");
}

/// The ids of a list, in its order.
fn ids(list: &Value) -> Vec<String> {
    assert_eq!(list["object"], "list", "{list:#}");
    list["data"].as_array().expect("a list").iter().map(|entry| id(entry).to_owned()).collect()
}

/// Where the markers of a text stand, in code points.
fn marker_places(text: &str) -> Vec<(u64, u64)> {
    let count = |part: &str| u64::try_from(part.chars().count()).expect("a length");
    text.match_indices("[1]").map(|(at, _)| (count(&text[..at]), count(&text[..at]) + 3)).collect()
}

/// Uploads a file, and returns it as the service does.
async fn upload(client: &Client, name: &str, text: &str) -> Value {
    success(try_upload(client, &[("purpose", "assistants")], Some((name, text))).await)
}

/// Sends a form of these fields and this file.
async fn try_upload(
    client: &Client,
    fields: &[(&str, &str)],
    file: Option<(&str, &str)>,
) -> (StatusCode, Value) {
    const BOUNDARY: &str = "----a-boundary-of-these-tests";
    let head = |rest: &str| format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {rest}\r\n");
    let mut parts: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{}\r\n{value}\r\n", head(&format!("name=\"{name}\""))))
        .collect();
    if let Some((name, text)) = file {
        let head = head(&format!("name=\"file\"; filename=\"{name}\""));
        parts.push(format!("{head}Content-Type: text/plain\r\n\r\n{text}\r\n"));
    }
    parts.push(format!("--{BOUNDARY}--\r\n"));
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    read(send(request(client, Method::POST, "/files").header(CONTENT_TYPE, kind).body(parts.concat())).await)
        .await
}

/// Reads a thing again until its status is another than `in_progress`.
async fn settled(client: &Client, path: &str) -> Value {
    let waiting = async {
        loop {
            let thing = success(get(client, path).await);
            if thing["status"] != "in_progress" {
                return thing;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    within_deadline(path, waiting).await
}
