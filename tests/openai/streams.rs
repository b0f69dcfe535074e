//! Streamed chat completions, event by event.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Harbour, PIECES, assert_error_form, marker_places, post, question, read, request, success};
use crate::support::{
    client::{Client, send},
    in_both_modes,
    loopback::Gate,
    model::{API_KEY, INPUT_TOKENS, OUTPUT_TOKENS, Reply},
    service::Mode,
    sse::{self, SseEvent},
};

in_both_modes!(
    a_stream_says_the_answer_once_and_cites_it_at_the_end,
    usage_is_told_when_it_is_asked_for,
    a_failure_is_an_error_whenever_it_comes,
    a_client_that_goes_away_ends_the_run,
    a_shutdown_ends_a_chat_with_an_error,
);

async fn stream(client: &Client, body: &Value) -> Vec<SseEvent> {
    sse::events(send(request(client, Method::POST, "/chat/completions").json(body)).await).await
}

fn streamed(agent: &str) -> Value {
    let mut body = question(agent);
    body["stream"] = json!(true);
    body
}

/// What a chunk is about.
fn kind(event: &SseEvent) -> &'static str {
    assert_eq!(event.name, "message", "chunks have no name: {event:?}");
    if event.data == "[DONE]" {
        return "done";
    }
    let chunk = event.json();
    assert_eq!(chunk["object"], "chat.completion.chunk", "{chunk:#}");
    let Some(choice) = chunk["choices"].get(0) else { return "usage" };
    let delta = &choice["delta"];
    match choice["finish_reason"].as_str() {
        Some(_) => "finish",
        None if delta["annotations"].is_array() => "annotations",
        None if delta["role"] == "assistant" => "role",
        None => "content",
    }
}

/// What a stream is about, in its order.
fn kinds(events: &[SseEvent]) -> Vec<&'static str> {
    let mut kinds: Vec<_> = events.iter().map(kind).collect();
    kinds.dedup();
    kinds
}

/// The text of a stream.
fn text_of(events: &[SseEvent]) -> String {
    let chunks = events.iter().filter(|event| event.data != "[DONE]").map(SseEvent::json);
    chunks
        .map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn a_stream_says_the_answer_once_and_cites_it_at_the_end(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    for agent in [&harbour.quoting, &harbour.composing] {
        let whole = success(post(&harbour.ada, "/chat/completions", &question(agent)).await);
        let message = &whole["choices"][0]["message"];
        let events = stream(&harbour.ada, &streamed(agent)).await;
        assert_eq!(kinds(&events), ["role", "content", "annotations", "finish", "done"], "{events:#?}");
        assert_eq!(text_of(&events), message["content"].as_str().expect("an answer"));
        let chunks: Vec<Value> = events[..events.len() - 1].iter().map(SseEvent::json).collect();
        for chunk in &chunks {
            for name in ["id", "created", "model"] {
                assert_eq!(chunk[name], chunks[0][name], "{name} stays the same: {chunk:#}");
            }
            assert_eq!(chunk["choices"][0]["index"], 0, "{chunk:#}");
            assert_eq!(chunk.get("usage"), None, "nobody asked for it: {chunk:#}");
        }
        let of = |wanted: &str| {
            let mut found = events.iter().filter(|event| kind(event) == wanted).map(SseEvent::json);
            let chunk = found.next().expect(wanted);
            assert_eq!(found.next(), None, "{wanted} comes once");
            chunk["choices"][0].clone()
        };
        assert_eq!(of("finish")["finish_reason"], "stop");
        let place = |annotation: &Value| {
            json!([annotation["url_citation"]["start_index"], annotation["url_citation"]["end_index"]])
        };
        let places = |list: &Value| list.as_array().expect("a list").iter().map(place).collect::<Vec<_>>();
        let annotations = &of("annotations")["delta"]["annotations"];
        assert_eq!(places(annotations), places(&message["annotations"]));
        let mut found = places(annotations);
        found.dedup();
        if agent == &harbour.composing {
            let markers = marker_places(&PIECES.concat()).into_iter().map(|(start, end)| json!([start, end]));
            assert_eq!(found, markers.collect::<Vec<_>>());
        }
    }
}

async fn usage_is_told_when_it_is_asked_for(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let mut body = streamed(&harbour.composing);
    body["stream_options"] = json!({ "include_usage": true, "include_obfuscation": false });
    let events = stream(&harbour.ada, &body).await;
    assert_eq!(kinds(&events), ["role", "content", "annotations", "finish", "usage", "done"], "{events:#?}");
    let chunks: Vec<Value> = events[..events.len() - 1].iter().map(SseEvent::json).collect();
    let (last, before) = chunks.split_last().expect("a chunk");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], INPUT_TOKENS + OUTPUT_TOKENS, "{last:#}");
    for chunk in before {
        assert_eq!(chunk.get("usage"), Some(&Value::Null), "{chunk:#}");
    }
}

async fn a_failure_is_an_error_whenever_it_comes(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let leak = json!({"error": {"message": format!("Incorrect API key provided: {API_KEY}")}});
    harbour.model.reply(Reply::status(401, &leak));
    let (status, body) = post(&harbour.ada, "/chat/completions", &question(&harbour.composing)).await;
    assert_eq!(
        (status, &body["error"]["type"]),
        (StatusCode::BAD_GATEWAY, &json!("server_error")),
        "{body:#}"
    );
    assert!(!body.to_string().contains(API_KEY), "{body:#}");

    harbour.model.reply(Reply::cut_after("Half an answer that breaks off"));
    let events = stream(&harbour.ada, &streamed(&harbour.composing)).await;
    let (last, before) = events.split_last().expect("an event");
    assert_error_form(&last.json());
    assert_eq!(text_of(before), "Half an answer that breaks off");
    assert!(before.iter().all(|event| event.data != "[DONE]"), "what fails is not done: {events:#?}");
    harbour.service.assert_no_secret_in_logs(&[API_KEY]);
}

async fn a_client_that_goes_away_ends_the_run(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    for (times, (path, streams)) in [
        ("/chat/completions", true),
        ("/chat/completions", false),
        ("/responses", true),
        ("/responses", false),
    ]
    .into_iter()
    .enumerate()
    {
        harbour.model.reply(Reply::silent_after("Let me think about"));
        let mut body = question(&harbour.composing);
        body["input"] = body["messages"].clone();
        body["stream"] = json!(streams);
        let request = request(&harbour.ada, Method::POST, path).json(&body);
        let asking = tokio::spawn(async move {
            let mut answer = send(request).await;
            while let Ok(Some(_)) = answer.chunk().await {}
        });
        harbour.model.wait_for_requests(times + 1).await;
        asking.abort();
        harbour.model.wait_until_abandoned(times + 1).await;
    }
}

async fn a_shutdown_ends_a_chat_with_an_error(mode: Mode) {
    let mut harbour = Harbour::start(mode).await;
    let gate = Gate::default();
    harbour.model.reply(Reply::gated("Let me think", &gate, " no more."));
    let reading = tokio::spawn({
        let (ada, body) = (harbour.ada.clone(), streamed(&harbour.composing));
        async move { stream(&ada, &body).await }
    });
    gate.wait_until_reached().await;
    harbour.service.ask_to_stop();
    let events = reading.await.expect("a stream that ends well");
    let (last, before) = events.split_last().expect("an event");
    assert_eq!(last.json()["error"]["code"], "shutting_down", "{last:?}");
    assert_eq!(text_of(before), "Let me think");
}

#[tokio::test(flavor = "multi_thread")]
async fn streaming_is_asked_for() {
    let harbour = Harbour::start(Mode::Embedded).await;
    for stream in [Value::Null, json!(false)] {
        let mut body = question(&harbour.quoting);
        body["stream"] = stream;
        let answer = send(request(&harbour.ada, Method::POST, "/chat/completions").json(&body)).await;
        assert_eq!(answer.headers()["content-type"], "application/json");
        success(read(answer).await);
    }
}
