//! What is no message, or no request that the server knows: an answer in words, and never a failure of the service.

use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, ALLOW, CONTENT_TYPE},
};
use serde_json::{Value, json};

use super::{MCP, Revision, call, messages, post, request, text_of};
use crate::support::{
    client::{Client, send},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    what_is_no_message_is_refused_in_words,
    clients_that_take_anything_or_write_a_slash_behind_the_path_are_answered,
    methods_and_versions_that_nobody_knows_are_refused,
    there_are_no_streams_to_open_and_no_sessions_to_end,
    a_body_is_taken_up_to_its_limit,
    messages_that_would_be_far_larger_in_memory_are_refused,
    what_an_error_repeats_is_cut,
);

/// The answer to these bytes: its status and its JSON.
async fn answer_to(person: &Client, body: &str) -> (StatusCode, Value) {
    let request = person.request_anywhere(Method::POST, MCP).header(CONTENT_TYPE, "application/json");
    let answer =
        send(request.header(ACCEPT, "application/json, text/event-stream").body(body.to_owned())).await;
    let status = answer.status();
    let text = answer.text().await.expect("a whole answer");
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

async fn what_is_no_message_is_refused_in_words(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    for garbage in ["", "{", "\u{0}", "tools/list", "{\"jsonrpc\":\"2.0\",", "[".repeat(10_000).as_str()] {
        let (status, told) = answer_to(&ada, garbage).await;
        assert_eq!(
            (status, &told["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!(-32_700)),
            "{garbage:.40}"
        );
    }
    for wrong in [
        json!([]),
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }, { "jsonrpc": "2.0", "id": 2, "method": "ping" }]),
        json!({}),
        json!(null),
        json!("ping"),
        json!({ "id": 1, "method": "ping" }),
        json!({ "jsonrpc": "1.0", "id": 1, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 1 }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }),
        json!({ "jsonrpc": "2.0", "id": { "a": 1 }, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": "x".repeat(257), "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 1.5, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
    ] {
        let (status, told) = answer_to(&ada, &wrong.to_string()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}: {told:#}");
        assert_eq!(
            (&told["error"]["code"], &told["id"]),
            (&json!(-32_600), &Value::Null),
            "{wrong}: {told:#}"
        );
        assert!(!told["error"]["message"].as_str().expect("words").is_empty());
    }
    for (headers, status) in [
        (vec![(CONTENT_TYPE, "text/plain"), (ACCEPT, "application/json, text/event-stream")], 415),
        (vec![(CONTENT_TYPE, "application/json"), (ACCEPT, "application/json, */*;q=0")], 406),
        (vec![(CONTENT_TYPE, "application/json"), (ACCEPT, "application/json")], 406),
        (vec![(CONTENT_TYPE, "application/json"), (ACCEPT, "text/html")], 406),
    ] {
        let mut request = ada.request_anywhere(Method::POST, MCP);
        for (name, value) in &headers {
            request = request.header(name, *value);
        }
        let message = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
        let answer = send(request.body(message.to_string())).await;
        assert_eq!(answer.status().as_u16(), status, "{headers:?}");
        let told: Value = answer.json().await.expect("JSON");
        assert!(told["error"]["message"].is_string(), "{told:#}");
    }
}

async fn clients_that_take_anything_or_write_a_slash_behind_the_path_are_answered(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let message = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    for (path, accepted) in
        [("/mcp", "*/*"), ("/mcp", "text/html, */*; q=.2"), ("/mcp/", "application/json, text/event-stream")]
    {
        let request = ada.request_anywhere(Method::POST, path).json(&message).header(ACCEPT, accepted);
        let request = request.header("MCP-Protocol-Version", Revision::Handshake.version());
        let (status, told) = messages(send(request).await).await;
        assert_eq!(status, StatusCode::OK, "{path} {accepted}: {told:#?}");
        assert!(told[0]["result"]["tools"].is_array(), "{path} {accepted}: {told:#?}");
    }
}

async fn methods_and_versions_that_nobody_knows_are_refused(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    for revision in Revision::BOTH {
        for (method, params, code) in [
            ("tools/call", json!({ "name": "no_such_tool", "arguments": {} }), -32_602),
            ("tools/call", json!({ "name": "search", "arguments": "x" }), -32_602),
            ("tools/call", json!({ "arguments": {} }), -32_602),
            ("resources/list", json!({ "cursor": "x" }), -32_602),
            ("prompts/get", json!({ "name": "x" }), -32_601),
            ("prompts/list", json!({}), -32_601),
            ("no/such/method", json!({}), -32_601),
        ] {
            let (status, told) = messages(send(request(&ada, revision, method, params.clone())).await).await;
            assert!(status.as_u16() < 500, "{method} {params}: {told:#?}");
            assert_eq!(told[0]["error"]["code"], code, "{revision:?} {method} {params}: {told:#?}");
            let words = told[0]["error"]["message"].as_str().expect("words");
            assert!(words.contains(' '), "{method} is answered in no words: {words}");
        }
    }
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let answer = send(post(&ada, &list).header("MCP-Protocol-Version", "2099-01-01")).await;
    let (status, told) = messages(answer).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(told[0]["error"]["message"].as_str().expect("words").contains("2099-01-01"), "{told:#?}");
    // What the newest revision demands of each message.
    let answer = send(post(&ada, &list).header("MCP-Protocol-Version", "2026-07-28")).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let asked = call(&ada, Revision::Stateless, "search", &json!({ "query": "gate" })).await;
    assert_eq!(text_of(&asked), "{\"results\":[]}");
}

async fn there_are_no_streams_to_open_and_no_sessions_to_end(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let request = ada.request_anywhere(method.clone(), MCP).header(ACCEPT, "text/event-stream");
        let answer = send(request.header("Mcp-Session-Id", "7")).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(answer.headers()[ALLOW], "POST", "{method}");
        let told: Value = answer.json().await.expect("JSON");
        assert_eq!(told["jsonrpc"], "2.0", "{told:#}");
    }
}

async fn a_body_is_taken_up_to_its_limit(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_MAX_BODY", "4MiB").start().await;
    let ada = service.signed_up("ada@example.com").await;
    // A question has its own limit, and is told so.
    let long = json!({ "query": "gate ".repeat(400_000) });
    let refused = call(&ada, Revision::Stateless, "search", &long).await;
    super::assert_told(&refused, "`query` must have at most 10000 characters");
    let text = json!({ "name": "Long", "text": "gate ".repeat(400_000) });
    let added = call(&ada, Revision::Stateless, "add_document", &text).await;
    assert_eq!(added["isError"], false, "{added:#}");
    let (status, told) = answer_to(&ada, &format!("\"{}\"", "x".repeat(5 << 20))).await;
    assert_eq!(
        (status, &told["error"]["data"]["code"]),
        (StatusCode::PAYLOAD_TOO_LARGE, &json!("too_large"))
    );
}

async fn messages_that_would_be_far_larger_in_memory_are_refused(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let many = format!("[{}]", vec![nested(100); 9_000].join(","));
    let call = |meta: &str, arguments: &str| {
        let params = format!(r#"{{"name":"search","_meta":{{"a":{meta}}},"arguments":{arguments}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    };
    let query = r#"{"query":"gate"}"#;
    let (deep, long) = (nested(60), format!("\"{}\"", "x".repeat(100_000)));
    let asked = |value: &str| format!(r#"{{"query":"gate","a":{value}}}"#);
    let (asked_many, asked_deep) = (asked(&many), asked(&deep));
    for (meta, arguments) in [
        (many.as_str(), query),
        (deep.as_str(), query),
        (long.as_str(), query),
        ("0", asked_many.as_str()),
        ("0", asked_deep.as_str()),
    ] {
        let (status, told) = answer_to(&ada, &call(meta, arguments)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{meta:.80} {arguments:.80}: {told:#}");
        assert_eq!(told["error"]["data"]["code"], "invalid_message", "{told:#}");
    }
    let (status, told) = answer_to(&ada, &call(&nested(10), query)).await;
    assert_eq!((status, &told["result"]["isError"]), (StatusCode::OK, &json!(false)), "{told:#}");
}

async fn what_an_error_repeats_is_cut(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let long = "x".repeat(50_000);
    for (method, params) in [
        ("resources/read", json!({ "uri": long })),
        ("tools/call", json!({ "name": long, "arguments": {} })),
        (long.as_str(), json!({})),
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (_, told) = answer_to(&ada, &message.to_string()).await;
        assert!(told["error"]["code"].is_i64(), "{method:.40}: {told:#}");
        assert!(told.to_string().len() < 1_000, "{method:.40}");
    }
}
