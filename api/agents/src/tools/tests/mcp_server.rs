//! Servers of the Model Context Protocol in both revisions, well behaved but for what a test makes of their calls.

use serde_json::{Value, json};

use super::support::*;

/// The session of a server that has one.
pub(super) const SESSION: &str = "session-0123456789";

pub(super) fn method(seen: &Seen) -> String {
    if seen.body.is_empty() {
        return seen.line.split(' ').next().unwrap_or_default().to_owned();
    }
    seen.json()["method"].as_str().unwrap_or_default().to_owned()
}

fn message(seen: &Seen, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result})
}

/// The answer to a request with this result.
pub(super) fn answer(seen: &Seen, result: &Value) -> Reply {
    json(&message(seen, result))
}

/// The same as a stream of events, after others.
pub(super) fn streamed(seen: &Seen, before: &[Value], result: &Value) -> Reply {
    let all = before.iter().cloned().chain([message(seen, result)]);
    // The first event only says where the stream could be taken up.
    let events = all.map(|message| format!("event: message\r\ndata: {message}\r\n\r\n"));
    let body = format!(": hello\n\nid: 1\ndata:\n\n{}", events.collect::<String>());
    Reply::Body(200, "text/event-stream", body.into())
}

pub(super) fn error(seen: &Seen, code: i64, message: &str) -> Reply {
    json(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": {"code": code, "message": message}}))
}

/// What a tool says.
pub(super) fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A tool with one argument.
pub(super) fn tool(name: &str) -> Value {
    json!({
        "name": name, "description": format!("Does {name}."),
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"],
        },
    })
}

/// A server of the newest revision.
pub(super) fn stateless(
    tools: Value,
    call: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    move |seen| match method(seen).as_str() {
        "server/discover" => answer(
            seen,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }),
        ),
        "tools/list" => answer(
            seen,
            &json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}),
        ),
        "tools/call" => call(seen),
        _ => text(404, "there is no such method"),
    }
}

/// A server of an older revision, which knows whoever has shaken hands by a session.
pub(super) fn with_handshake(
    tools: Value,
    call: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    move |seen| match (method(seen).as_str(), seen.header("mcp-session-id")) {
        ("initialize", None) => {
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"},
            });
            let line = "Mcp-Session-Id: session-0123456789";
            Reply::Headed(line, "application/json", message(seen, &result).to_string().into())
        }
        ("DELETE", Some(SESSION)) => text(200, ""),
        ("tools/list", Some(SESSION)) => answer(seen, &json!({"tools": tools})),
        ("tools/call", Some(SESSION)) => call(seen),
        ("notifications/initialized" | "", Some(SESSION)) => Reply::Body(202, "text/plain", Vec::new()),
        _ => text(400, "Bad Request: Server not initialized"),
    }
}
