//! Traces: what a run did is on record, and can be run again from there.

use serde_json::{Value, json};

use crate::support::{
    client::{envelope, id, send},
    in_both_modes,
    model::{Model, Reply},
    service::{Mode, Service},
    sse,
};

in_both_modes!(a_run_is_repeated_from_its_record_without_asking_anybody);

async fn a_run_is_repeated_from_its_record_without_asking_anybody(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    for r#type in ["CHATVENDOR", "REACT"] {
        let agent = json!({"name": "guide", "type": r#type, "llm": model.llm("m")});
        let agent = client.create_agent(&agent).await;
        let document =
            json!({"name": "Gate", "type": "TXT", "content": "The harbour gate opens at half past six."});
        let document = client.ingest(&document).await;
        client.link(id(&agent), id(&document)).await;
        // Many passages: each has a score that must be read as it was written.
        for number in 0..9 {
            let content = format!("{} When it opens, gate {number} rings.", "Word. ".repeat(number));
            let other = json!({"name": format!("{number}"), "type": "TXT", "content": content});
            client.link(id(&agent), id(&client.ingest(&other).await)).await;
        }
        if r#type == "REACT" {
            model.reply(Reply::text("Thought: look\nAction: search_documents\nAction Input: gate"));
            model.reply(Reply::text("Final Answer: It \"opens at half past six\" [1]."));
        } else {
            model.reply(Reply::tool_calls([("search_documents", json!({"query": "gate"}))]));
            model.reply(Reply::text("It \"opens at half past six\" [1], see [9]."));
        }
        let events = client.stream(id(&agent), "When does it open?", true).await;
        let trace = events.last().expect("an end").json()["trace"].clone();
        // Nothing of the world is left that it could ask.
        client.delete(&format!("/documents/{}", id(&document))).await;
        let asked = model.requests().len();

        let path = format!("/traces/{}/replay", id(&trace));
        let (status, replayed) = client.post(&path, &json!({})).await;
        assert_eq!(status.as_u16(), 200, "{replayed:#}");
        assert_eq!((&replayed["data"], &replayed["trace"]), (&trace["output"], &trace));
        assert_eq!(replayed["matches"], true);
        let body = json!({"has_streaming": true, "stream_events": true});
        let again = send(client.request(reqwest::Method::POST, &path).json(&body)).await;
        assert_eq!(sse::events(again).await, events, "the same events");
        assert_eq!(model.requests().len(), asked, "nobody was asked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_failed_fails_again_in_the_same_way() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::scripted([Reply::cut_after("Half an answer")]).await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let (status, error) = client.predict(id(&agent), "Well?").await;
    let traces = client.read("/traces").await;
    let trace = &traces[0]["trace"];
    assert_eq!((&trace["finishReason"], &trace["output"]), (&json!("error"), &json!("")), "{trace:#}");
    assert_eq!(trace["steps"][0]["observation"], "Half an answer", "{trace:#}");
    let (again, replayed) = client.post(&format!("/traces/{}/replay", id(trace)), &json!({})).await;
    assert_eq!((again, &replayed["error"]), (status, &error["error"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_was_cut_is_not_repeated() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let long = "word ".repeat(60_000);
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let document =
        client.ingest(&json!({"name": "Gate", "type": "TXT", "content": "The gate is green."})).await;
    client.link(id(&agent), id(&document)).await;
    for number in 0..4 {
        let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {
            "name": "search_documents", "arguments": json!({"query": format!("gate {number}")}).to_string(),
        }}]});
        let said = json!({"choices": [{"index": 0, "delta": {"content": long}}]});
        let called = json!({"choices": [{"index": 0, "delta": call, "finish_reason": "tool_calls"}]});
        model.reply(Reply::raw_stream(&format!("data: {said}\n\ndata: {called}\n\ndata: [DONE]\n\n")));
    }
    model.reply(Reply::text("Green."));
    let (status, answer) = client.predict(id(&agent), "Which colour?").await;
    assert_eq!(status.as_u16(), 200);
    let stored = client.read(&format!("/traces/{}", id(&answer["trace"]))).await;
    assert_eq!(stored["complete"], false);
    assert!(stored.to_string().len() < 5 << 18);
    let request = client.request(reqwest::Method::POST, &format!("/traces/{}/replay", id(&answer["trace"])));
    let (status, refused) = envelope(send(request.json(&json!({}))).await).await;
    assert_eq!((status.as_u16(), &refused["error"]["code"]), (409, &json!("conflict")), "{refused:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_repeats_the_runs_of_others() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_SIGN_UP", "open").start().await;
    let (ada, grace) =
        (service.signed_up("ada@example.com").await, service.signed_up("grace@example.com").await);
    let agent = ada.create_agent(&json!({"name": "a", "type": "REACT"})).await;
    let (_, answer) = ada.predict(id(&agent), "Well?").await;
    let path = format!("/traces/{}/replay", id(&answer["trace"]));
    let replayed: Value = ada.post(&path, &json!({})).await.1;
    assert_eq!(replayed["data"], answer["data"]);
    assert_eq!(grace.post(&path, &json!({})).await.0.as_u16(), 404);
}
