//! Agents that call functions, and models that do it badly.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    in_both_modes,
    model::{API_KEY, Model, Reply},
    service::{Mode, Service},
};

in_both_modes!(
    functions_are_called_at_once_and_answered_each,
    a_wrong_call_is_answered_with_what_would_be_right
);

async fn setting(service: &Service) -> (Client, Model, Value) {
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    for (name, content) in
        [("Gate", "The harbour gate opens at half past six."), ("Cook", "The cook was called Peder Lie.")]
    {
        let document = client.ingest(&json!({"name": name, "type": "TXT", "content": content})).await;
        client.link(id(&agent), id(&document)).await;
    }
    (client, model, agent)
}

/// What the model was told about its calls, by their ids.
fn results(request: &Value) -> Vec<(&str, &str)> {
    let messages = request["messages"].as_array().expect("messages");
    let tool = messages.iter().filter(|message| message["role"] == "tool");
    tool.map(|m| (m["tool_call_id"].as_str().expect("an id"), m["content"].as_str().expect("a text")))
        .collect()
}

async fn functions_are_called_at_once_and_answered_each(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    model.reply(Reply::tool_calls([
        ("search_documents", json!({"query": "harbour gate opens"})),
        ("search_documents", json!({"query": "cook called Peder"})),
    ]));
    model.reply(Reply::to_request(|request| {
        let told = results(request);
        assert_eq!(told.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["call_0", "call_1"], "{request:#}");
        let number = |text: &str| text.split(['[', ']']).nth(1).expect("a number").to_owned();
        let cook = told[1].1.split("\n\n").find(|source| source.contains("Peder")).expect("the cook");
        Reply::text(&format!("\"The cook was called Peder Lie\" [{}].", number(cook)))
    }));
    let (status, answer) = client.predict(id(&agent), "Zzyzx?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    let trace = &answer["trace"];
    assert_eq!(trace["citations"][0]["documentName"], "Cook", "{trace:#}");
    assert_eq!(trace["citations"][0]["verified"], true, "{trace:#}");
    let kinds: Vec<_> = trace["steps"].as_array().expect("steps").iter().map(|step| &step["kind"]).collect();
    assert_eq!(kinds, ["retrieval", "chat", "tool", "tool", "chat"]);
    assert_eq!(trace["usage"]["inputTokens"], 62, "the tokens of both steps: {trace:#}");
    let offered = &model.bodies()[0]["tools"];
    assert_eq!(offered[0]["function"]["name"], "search_documents");
}

async fn a_wrong_call_is_answered_with_what_would_be_right(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    let broken = json!({"tool_calls": [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "search_documents", "arguments": "{\"query\": "}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "no_such_tool", "arguments": "{}"}},
        {"index": 2, "id": "c", "type": "function", "function": {"name": "search_documents", "arguments": "{\"q\": 1}"}},
    ]});
    let choice = json!({"choices": [{"index": 0, "delta": broken, "finish_reason": "tool_calls"}]});
    model.reply(Reply::raw_stream(&format!("data: {choice}\n\ndata: [DONE]\n\n")));
    model.reply(Reply::to_request(|request| {
        let told = results(request);
        assert!(told[0].1.contains("JSON object") && told[0].1.contains("\"query\""), "{told:?}");
        assert!(told[1].1.contains("search_documents"), "{told:?}");
        assert!(told[2].1.contains("`query`"), "{told:?}");
        Reply::text("I could not look it up.")
    }));
    let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    assert_eq!(answer["data"], "I could not look it up.");
    let steps = answer["trace"]["steps"].as_array().expect("steps");
    let failed = steps.iter().filter(|step| step["kind"] == "tool" && step["error"].is_string()).count();
    assert_eq!(failed, 3, "{steps:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_giant_query_only_the_beginning_is_looked_for() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    let behind = |characters: usize| {
        ("search_documents", json!({"query": format!("{}harbour gate", "é".repeat(characters - 1) + " ")}))
    };
    model.reply(Reply::tool_calls([behind(9_000), behind(10_000)]));
    model.reply(Reply::to_request(|request| {
        let told = results(request);
        assert!(told[0].1.contains("half past six"), "{told:?}");
        assert_eq!(told[1].1, "Nothing was found.");
        Reply::text("At half past six.")
    }));
    let (_, answer) = client.predict(id(&agent), "Zzyzx?").await;
    assert_eq!(answer["data"], "At half past six.", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_is_made_twice_at_most() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    for _ in 0..3 {
        model.reply(Reply::tool_calls([("search_documents", json!({"query": "gate"}))]));
    }
    model.reply(Reply::to_request(|request| {
        let told = results(request);
        assert!(told[2].1.contains("was made before"), "{told:?}");
        Reply::text("Enough.")
    }));
    let (_, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(answer["data"], "Enough.", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_bad_moments_are_survived_or_told() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_MAX_SECONDS", "20s").start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let leak = json!({"error": {"message": format!("Bearer {API_KEY} is over its limit")}});

    model.reply(Reply::status_with_headers(429, &[("retry-after-ms", "5")], &leak));
    model.reply(Reply::text("After a wait."));
    assert_eq!(client.predict(id(&agent), "Well?").await.1["data"], "After a wait.");

    model.reply(Reply::status(500, &leak));
    model.reply(Reply::status(500, &leak));
    model.reply(Reply::text("The third time."));
    let (_, answer) = client.predict(id(&agent), "Well?").await;
    assert_eq!(answer["data"], "The third time.");
    assert_eq!(answer["trace"]["steps"][0]["attempts"], 3, "{answer:#}");

    for _ in 0..3 {
        model.reply(Reply::status_with_headers(429, &[("retry-after-ms", "5")], &leak));
    }
    let (status, answer) = client.predict(id(&agent), "Well?").await;
    assert_eq!(
        (status.as_u16(), &answer["error"]["code"]),
        (503, &json!("provider_rate_limited")),
        "{answer:#}"
    );

    model.reply(Reply::unfinished("It ends without a"));
    let (status, answer) = client.predict(id(&agent), "Well?").await;
    assert_eq!(
        (status.as_u16(), &answer["error"]["code"]),
        (502, &json!("provider_truncated")),
        "{answer:#}"
    );

    model.reply(Reply::text("Cut by the model's").finished_by("length"));
    let (_, answer) = client.predict(id(&agent), "Well?").await;
    assert_eq!(answer["trace"]["finishReason"], "length", "{answer:#}");

    let all = client.read("/traces").await.to_string();
    assert!(!all.contains(API_KEY), "{all}");
    service.assert_no_secret_in_logs(&[API_KEY]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_megabytes_of_answer_are_cut_and_do_not_fill_the_memory() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let chunk = "lorem ipsum dolor sit amet ".repeat(400);
    let long: Vec<&str> = std::iter::repeat_n(chunk.as_str(), 1_000).collect();
    model.always(Reply::chunks(long));
    client.predict(id(&agent), "Well?").await;
    let before = service.rss_bytes();
    for _ in 0..4 {
        let (status, answer) = client.predict(id(&agent), "Well?").await;
        assert_eq!(status.as_u16(), 200);
        assert_eq!(answer["trace"]["finishReason"], "length");
        assert!(answer["data"].as_str().expect("a text").len() <= 1 << 20);
    }
    let grown = service.rss_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more after four such answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_in_two_turns_stands_apart() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    let said = json!({"choices": [{"index": 0, "delta": {"content": "Searching"}}]});
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {
        "name": "search_documents", "arguments": "{\"query\": \"gate\"}",
    }}]});
    let called = json!({"choices": [{"index": 0, "delta": call, "finish_reason": "tool_calls"}]});
    model.reply(Reply::raw_stream(&format!("data: {said}\n\ndata: {called}\n\ndata: [DONE]\n\n")));
    model.reply(Reply::text("Done."));
    let (_, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(answer["data"], "Searching\n\nDone.", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_provider_could_not_read_is_asked_for_again_once() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    model.reply(Reply::text("").finished_by("malformed_function_call"));
    model.reply(Reply::to_request(|request| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message");
        assert!(last["content"].as_str().is_some_and(|text| text.contains("Answer again")), "{last}");
        Reply::text("Half past six [1].")
    }));
    let (_, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(answer["data"], "Half past six [1].", "{answer:#}");
    for _ in 0..2 {
        model.reply(Reply::text("").finished_by("malformed_function_call"));
    }
    let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!((status.as_u16(), &answer["error"]["code"]), (502, &json!("provider_empty")), "{answer:#}");
}

/// A turn of one call that is written so, with this finish reason and this usage.
fn raw_call(name: &str, arguments: &str, finish_reason: &str, usage: &Value) -> Reply {
    let call =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": arguments}}]});
    let choice = json!({"index": 0, "delta": call, "finish_reason": finish_reason});
    let chunk = json!({"choices": [choice], "usage": usage});
    Reply::raw_stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_too_deep_or_cut_off_are_not_made_and_can_be_read_again() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    let deep = format!("{{\"query\":{}{}}}", "[".repeat(120), "]".repeat(120));
    let counts = json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX});
    for (arguments, finish_reason, problem) in
        [(deep.as_str(), "tool_calls", "JSON object"), ("{\"query\":\"gate\"}", "length", "cut off")]
    {
        model.reply(raw_call("search_documents", arguments, finish_reason, &counts));
        model.reply(Reply::to_request(move |request| {
            let told = results(request);
            assert!(told[0].1.contains(problem), "{told:?}");
            Reply::text("Enough.")
        }));
        let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
        assert_eq!((status.as_u16(), &answer["data"]), (200, &json!("Enough.")), "{answer:#}");
        let stored = client.read(&format!("/traces/{}", id(&answer["trace"]))).await;
        assert_eq!(stored["trace"], answer["trace"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_turn_without_a_word_is_no_answer() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    let said = json!({"choices": [{"index": 0, "delta": {"content": "Let me check."}}]});
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {
        "name": "search_documents", "arguments": "{\"query\": \"gate\"}",
    }}]});
    let called = json!({"choices": [{"index": 0, "delta": call, "finish_reason": "tool_calls"}]});
    model.reply(Reply::raw_stream(&format!("data: {said}\n\ndata: {called}\n\ndata: [DONE]\n\n")));
    model.reply(Reply::text(""));
    let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!((status.as_u16(), &answer["error"]["code"]), (502, &json!("provider_empty")), "{answer:#}");
}
