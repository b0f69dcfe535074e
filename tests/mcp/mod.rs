//! The service as a server of the Model Context Protocol, over plain HTTP: what each tool gives, to whom, and what is refused.

mod asking;
mod clients;
mod reading;
mod refusals;
mod rights;

use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::{Map, Value, json};

use crate::support::{
    client::{Client, id, send},
    sse,
};

/// The path of the server.
const MCP: &str = "/mcp";

/// The two ways in which clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Revision {
    /// `initialize`, and then messages that name the version in a header.
    Handshake,
    /// Every message says everything.
    Stateless,
}

impl Revision {
    const BOTH: [Self; 2] = [Self::Handshake, Self::Stateless];

    const fn version(self) -> &'static str {
        match self {
            Self::Handshake => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

/// A message with the headers that every client sends.
fn post(person: &Client, message: &Value) -> RequestBuilder {
    let request = person.request_anywhere(Method::POST, MCP).json(message);
    request.header(ACCEPT, "application/json, text/event-stream")
}

/// A request of the protocol, with the headers and the metadata of its revision.
fn request(person: &Client, revision: Revision, method: &str, mut params: Value) -> RequestBuilder {
    let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).map(str::to_owned);
    if revision == Revision::Stateless {
        let meta = params["_meta"].as_object().cloned().unwrap_or_else(Map::new);
        params["_meta"] = meta.into();
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(revision.version());
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = post(person, &message).header("MCP-Protocol-Version", revision.version());
    if revision == Revision::Stateless {
        request = request.header("Mcp-Method", method);
        if let Some(name) = name {
            request = request.header("Mcp-Name", name);
        }
    }
    request
}

/// A call of a tool.
fn call_request(person: &Client, revision: Revision, tool: &str, arguments: &Value) -> RequestBuilder {
    request(person, revision, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// Every message of an answer, which is one JSON or a stream of them.
async fn messages(answer: Response) -> (StatusCode, Vec<Value>) {
    let status = answer.status();
    assert!(answer.headers().contains_key("x-request-id"), "{answer:?}");
    if answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
        return (status, sse::events(answer).await.iter().map(sse::SseEvent::json).collect());
    }
    let text = answer.text().await.expect("a whole answer");
    let message = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (status, vec![message])
}

/// Does the handshake, and returns the session that it names.
async fn session_of(person: &Client) -> String {
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": Revision::Handshake.version(), "capabilities": {}, "clientInfo": client });
    let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let answer = send(post(person, &message)).await;
    let session = answer.headers().get("mcp-session-id").and_then(|name| name.to_str().ok());
    session.unwrap_or_else(|| panic!("no session in {answer:?}")).to_owned()
}

/// The last message of an answer: the response to the request.
async fn response(request: RequestBuilder) -> Value {
    last_of(send(request).await).await
}

async fn last_of(answer: Response) -> Value {
    let (status, mut messages) = messages(answer).await;
    let last = messages.pop().expect("a message");
    assert_eq!((status, &last["jsonrpc"]), (StatusCode::OK, &json!("2.0")), "{last:#}");
    last
}

/// The result of a request that succeeds.
async fn result(person: &Client, revision: Revision, method: &str, params: Value) -> Value {
    let answer = send(request(person, revision, method, params)).await;
    assert!(!answer.headers().contains_key("mcp-session-id"), "the handshake alone names one: {answer:?}");
    let mut response = last_of(answer).await;
    assert_eq!((&response["id"], response.get("error")), (&json!(1), None), "{response:#}");
    response["result"].take()
}

/// What a tool gives, be it an error of its own.
async fn call(person: &Client, revision: Revision, tool: &str, arguments: &Value) -> Value {
    result(person, revision, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// The only text of a result.
fn text_of(result: &Value) -> &str {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("no content in {result:#}"));
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result:#}");
    content[0]["text"].as_str().expect("a text")
}

/// The JSON in the only text of a result that is a success.
fn json_of(result: &Value) -> Value {
    assert_eq!(result["isError"], false, "{result:#}");
    serde_json::from_str(text_of(result)).unwrap_or_else(|error| panic!("{error}: {result:#}"))
}

/// Fails unless a tool has said that this is wrong.
#[track_caller]
fn assert_told(result: &Value, words: &str) {
    assert_eq!(result["isError"], true, "{result:#}");
    assert!(text_of(result).contains(words), "{words:?} is not in {result:#}");
}

/// The names of the tools that somebody is offered.
async fn tools_of(person: &Client, revision: Revision) -> Vec<String> {
    let listed = result(person, revision, "tools/list", json!({})).await;
    let tools = listed["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

/// A text among the documents, and an agent that answers with it.
async fn agent_with_text(builder: &Client, text: &str) -> (String, String) {
    let document = builder.ingest(&json!({ "name": "Rules", "type": "TXT", "content": text })).await;
    let llm = json!({ "model": "extractive", "provider": "extractive" });
    let agent = builder.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR", "llm": llm })).await;
    builder.link(id(&agent), id(&document)).await;
    (id(&agent).to_owned(), id(&document).to_owned())
}

/// A client with an API token of these fields.
async fn with_api_token(maker: &Client, mut fields: Value) -> Client {
    fields["description"] = json!("an assistant's");
    let token = maker.create("/api-tokens", &fields).await;
    maker.with_token(token["token"].as_str().expect("a value"))
}
