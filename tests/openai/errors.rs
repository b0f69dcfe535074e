//! What is refused is refused in OpenAI's form, with the status that their SDKs have a class for.

use reqwest::{
    Method, StatusCode,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Harbour, QUESTION, assert_refused, get, post, question, read, request, success, try_upload};
use crate::support::{
    client::{data, id, send},
    in_both_modes,
    service::Mode,
};

in_both_modes!(
    fields_that_are_wrong_are_named,
    bodies_that_are_none_are_refused,
    whoever_is_not_known_may_not_and_whoever_asks_too_often_waits,
    what_a_workspace_has_used_up_is_not_tried_again,
);

/// A question with one field as it must not be.
fn with(field: &str, value: Value) -> Value {
    let mut body = question("Clerk");
    body["input"] = json!(QUESTION);
    body[field] = value;
    body
}

fn messages(messages: Value) -> Value {
    with("messages", messages)
}

fn said(content: &Value) -> Value {
    messages(json!([{ "role": "user", "content": content }]))
}

async fn fields_that_are_wrong_are_named(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let image = json!([{ "type": "image_url", "image_url": { "url": "https://example.com/a.png" } }]);
    let audio = json!([{ "type": "text", "text": "x" }, { "type": "input_audio", "input_audio": {} }]);
    let item = json!([{ "type": "item_reference", "id": "msg_1" }]);
    let chat = "/chat/completions";
    for (path, body, param) in [
        (chat, with("model", Value::Null), "model"),
        (chat, with("model", json!(5)), "model"),
        (chat, messages(Value::Null), "messages"),
        (chat, messages(json!([])), "messages"),
        (chat, messages(json!("Well?")), "messages"),
        (chat, messages(json!([QUESTION])), "messages.0"),
        (chat, messages(json!([{ "content": QUESTION }])), "messages.0"),
        (chat, messages(json!([{ "role": "king", "content": QUESTION }])), "messages.0"),
        (chat, messages(json!([{ "role": "assistant", "content": "Yes." }])), "messages"),
        (chat, said(&json!(7)), "messages.0.content"),
        (chat, said(&image), "messages.0.content.0"),
        (chat, said(&audio), "messages.0.content.1"),
        (chat, with("n", json!(2)), "n"),
        (chat, with("stream", json!("yes")), "stream"),
        (chat, with("max_tokens", json!("many")), "max_tokens"),
        (chat, with("response_format", json!({ "type": "json_object" })), "response_format"),
        ("/responses", with("input", Value::Null), "input"),
        ("/responses", with("input", json!(5)), "input"),
        ("/responses", with("input", item), "input"),
        ("/responses", with("previous_response_id", json!("resp_1")), "previous_response_id"),
        ("/responses", with("conversation", json!("conv_1")), "conversation"),
        ("/responses", with("background", json!(true)), "background"),
        (
            "/responses",
            with("tools", json!([{ "type": "file_search", "vector_store_ids": [Uuid::nil()] }])),
            "tools.0.vector_store_ids",
        ),
    ] {
        let (status, answer) = post(&harbour.ada, path, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {body}: {answer:#}");
        assert_eq!(answer["error"]["type"], "invalid_request_error", "{answer:#}");
        let named = answer["error"]["param"].as_str().unwrap_or_else(|| panic!("{body}: {answer:#}"));
        assert!(named.starts_with(param), "{named} is not {param}: {answer:#}");
    }
    assert_eq!(harbour.model.requests().len(), 0);
    for (fields, file, param) in [
        (vec![], Some(("a.txt", "x")), "purpose"),
        (vec![("purpose", "assistants")], None, "file"),
        (vec![("purpose", "fine-tune")], Some(("a.txt", "x")), "purpose"),
    ] {
        let (status, answer) = try_upload(&harbour.ada, &fields, file).await;
        assert_eq!((status.as_u16(), &answer["error"]["param"]), (400, &json!(param)), "{answer:#}");
    }
}

async fn bodies_that_are_none_are_refused(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let nested = format!("{{\"model\":\"Clerk\",\"messages\":{deep}}}");
    for path in ["/chat/completions", "/responses", "/embeddings", "/vector_stores"] {
        for body in [
            b"".to_vec(),
            b"{".to_vec(),
            b"null".to_vec(),
            b"[]".to_vec(),
            b"\"Well?\"".to_vec(),
            b"{\"model\": \"\xff\xfe\"}".to_vec(),
            b"model=Clerk&messages=Well".to_vec(),
            deep.clone().into_bytes(),
            nested.clone().into_bytes(),
        ] {
            let start = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
            let request = request(&harbour.ada, Method::POST, path);
            let (status, answer) =
                read(send(request.header(CONTENT_TYPE, "application/json").body(body)).await).await;
            assert!(status.is_client_error(), "{path} {start}: {status}: {answer:#}");
            assert_eq!(answer["error"]["type"], "invalid_request_error", "{path} {start}: {answer:#}");
        }
    }
    for (method, path, expected) in [
        (Method::GET, "/nothing", StatusCode::NOT_FOUND),
        (Method::POST, "/completions", StatusCode::NOT_FOUND),
        (Method::GET, "/chat/completions", StatusCode::METHOD_NOT_ALLOWED),
        (Method::GET, "", StatusCode::NOT_FOUND),
    ] {
        let answer = send(request(&harbour.ada, method, path)).await;
        assert_eq!(
            answer.headers().contains_key(ALLOW),
            expected == StatusCode::METHOD_NOT_ALLOWED,
            "{path}"
        );
        let (status, body) = read(answer).await;
        assert_eq!(status, expected, "{path}: {body:#}");
    }
    // The address that the client was given lacks the `/v1`, or has more than that.
    for path in ["/chat/completions", "/api/v1/chat/completions"] {
        let lost = harbour.ada.request_anywhere(Method::POST, path).json(&question("Clerk"));
        let answer = send(lost).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        let body: Value = answer.json().await.expect("JSON");
        let told = body["error"]["message"].as_str().expect("words");
        assert!(told.contains("address with `/v1`"), "{path}: {told}");
    }
    success(post(&harbour.ada, "/chat/completions", &question("Clerk")).await);
}

async fn whoever_is_not_known_may_not_and_whoever_asks_too_often_waits(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let nobody = harbour.ada.signed_out();
    for client in [&nobody, &nobody.with_token("sk-nobody")] {
        for path in ["/models", "/files", "/vector_stores"] {
            assert_refused(&get(client, path).await, 401, "invalid_api_key");
        }
        assert_refused(&post(client, "/chat/completions", &question("Clerk")).await, 401, "invalid_api_key");
    }
    // The key of another service, as many have it in their environment.
    let (_, answer) = get(&nobody.with_token("sk-nobody"), "/models").await;
    assert!(answer["error"]["message"].as_str().expect("words").contains("API token"), "{answer:#}");
    let limited = harbour.script(json!({ "ratePerMinute": 1 })).await;
    success(get(&limited, "/models").await);
    let answer = send(request(&limited, Method::GET, "/models")).await;
    let header = |name: &str| {
        let value = answer.headers().get(name)?.to_str().expect("text");
        Some(value.parse::<u64>().expect("a whole number"))
    };
    let (seconds, milliseconds) = (header(RETRY_AFTER.as_str()), header("retry-after-ms"));
    assert!(seconds.is_some_and(|seconds| (1..=60).contains(&seconds)), "{seconds:?}");
    assert_eq!(milliseconds, seconds.map(|seconds| seconds * 1_000));
    assert!(!answer.headers().contains_key("x-should-retry"), "waiting helps");
    assert_refused(&read(answer).await, 429, "rate_limit_exceeded");
}

async fn what_a_workspace_has_used_up_is_not_tried_again(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let grace = harbour.service.signed_up("grace@example.com").await;
    let workspace = grace.create("/workspaces", &json!({ "name": "Archive" })).await;
    let path = format!("/workspaces/{}", id(&workspace));
    let team = grace.in_workspace(id(&workspace));
    // The first account is the operator's.
    data(harbour.ada.patch(&path, &json!({ "quotas": { "documents": 1 } })).await);
    success(try_upload(&team, &[("purpose", "assistants")], Some(("a.txt", "One."))).await);
    let second = try_upload(&team, &[("purpose", "assistants")], Some(("b.txt", "Two."))).await;
    assert_refused(&second, 429, "insufficient_quota");
    assert!(
        second.1["error"]["message"].as_str().is_some_and(|text| text.contains("1 of 1")),
        "{:#}",
        second.1
    );
}
