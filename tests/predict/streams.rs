//! Streamed answers: what a strict reader of server-sent events gets is the answer.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, envelope, id, send},
    in_both_modes,
    loopback::Gate,
    model::{API_KEY, Model, Reply},
    service::{Mode, Service},
    sse::{self, text_of},
};

in_both_modes!(
    a_streamed_answer_is_the_answer_to_the_letter,
    events_tell_what_happens_and_end_once,
    a_failure_is_an_error_before_the_first_token_and_an_event_after_it,
    a_client_that_goes_away_stops_the_model,
    a_shutdown_ends_a_stream_with_an_error,
    a_shutdown_ends_what_is_answered_whole_with_an_error
);

/// An agent without documents.
async fn agent(client: &Client, model: &Model) -> Value {
    client.create_agent(&json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")})).await
}

async fn a_streamed_answer_is_the_answer_to_the_letter(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent(&client, &model).await;
    for chunks in [
        vec!["One ", "word ", "after ", "another."],
        vec!["First line\n", "\n", "\n", "  indented\n", " ", "x", "\n\n"],
        vec!["\n", "a\n", "\nb", "\n"],
        vec!["[END]"],
        vec!["before ", "[END]", " after", "\n[END]\n"],
        vec!["data: x\n\n", "event: y\n", ": no comment\n", "id: 7"],
        vec!["C\r\nR\rL", "\r", "\nF"],
        vec!["Grüße, 世界 🌍", "\u{feff}", "\u{2028}end"],
    ] {
        let whole = chunks.concat().replace("\r\n", "\n").replace('\r', "\n");
        for _ in 0..3 {
            model.reply(Reply::chunks(chunks.clone()));
        }
        let (_, answer) = client.predict(id(&agent), "Well?").await;
        assert_eq!(answer["data"], whole, "{chunks:?}");
        let events = client.stream(id(&agent), "Well?", false).await;
        assert_eq!(text_of(&events), whole, "{chunks:?}");
        let named = client.stream(id(&agent), "Well?", true).await;
        let deltas: String = named
            .iter()
            .filter(|event| event.name == "token")
            .map(|event| event.json()["delta"].as_str().expect("a delta").to_owned())
            .collect();
        assert_eq!(deltas, whole, "{chunks:?}");
    }
}

async fn events_tell_what_happens_and_end_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent(&client, &model).await;
    let document =
        json!({"name": "Note", "type": "TXT", "content": "The harbour gate opens at half past six."});
    client.link(id(&agent), id(&client.ingest(&document).await)).await;
    model.reply(Reply::tool_calls([("search_documents", json!({"query": "harbour gate"}))]));
    model.reply(Reply::text("\"The harbour gate opens at half past six\" [1]."));
    let events = client.stream(id(&agent), "When does the gate open?", true).await;
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let without_tokens: Vec<_> = names.iter().filter(|name| **name != "token").copied().collect();
    assert_eq!(without_tokens, ["start", "retrieval", "tool_call", "tool_result", "citation", "end"]);
    let of = |name: &str| events.iter().find(|event| event.name == name).expect(name).json();
    assert_eq!(of("start")["agentId"], agent["id"]);
    assert_eq!(of("tool_call")["name"], "search_documents");
    assert_eq!(of("citation")["verified"], true);
    let end = of("end");
    assert_eq!(end["trace"]["id"], of("start")["traceId"]);
    assert_eq!(end["trace"]["output"], end["answer"]);
    let stored = client.read(&format!("/traces/{}", id(&end["trace"]))).await;
    assert_eq!(stored["trace"], end["trace"], "what was streamed is what is kept");
}

async fn a_failure_is_an_error_before_the_first_token_and_an_event_after_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent(&client, &model).await;
    let body =
        |events: bool| json!({"input": {"input": "Well?"}, "has_streaming": true, "stream_events": events});
    let leak = json!({"error": {"message": format!("Incorrect API key provided: {API_KEY}")}});

    model.reply(Reply::status(401, &leak));
    let answer = send(client.predict_request(id(&agent), &body(false)).await).await;
    let (status, error) = envelope(answer).await;
    assert_eq!(
        (status.as_u16(), &error["error"]["code"]),
        (502, &json!("provider_unauthorized")),
        "{error:#}"
    );

    model.reply(Reply::cut_after("Half an answer"));
    let events = client.stream(id(&agent), "Well?", false).await;
    assert_eq!(text_of(&events), "Half an answer");
    let errors: Vec<_> = events.iter().filter(|event| event.name == "error").collect();
    assert_eq!(errors.len(), 1, "{events:#?}");
    assert_eq!(errors[0].json()["code"], "provider_truncated");

    for reply in [Reply::cut_after("Half an answer"), Reply::status(401, &leak)] {
        model.reply(reply);
        let answer = send(client.predict_request(id(&agent), &body(true)).await).await;
        let events = sse::events(answer).await;
        let ends = events.iter().filter(|event| matches!(event.name.as_str(), "end" | "error")).count();
        assert_eq!((ends, events.last().expect("an event").name.as_str()), (1, "error"), "{events:#?}");
        assert!(!format!("{events:?}").contains(API_KEY), "{events:#?}");
    }
    service.assert_no_secret_in_logs(&[API_KEY]);
    let traces = client.read("/traces").await;
    assert_eq!(traces[0]["trace"]["finishReason"], "error", "a failure is on record: {traces:#}");
    assert!(!traces.to_string().contains(API_KEY));
}

async fn a_client_that_goes_away_stops_the_model(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent(&client, &model).await;
    for streams in [true, false] {
        model.reply(Reply::silent_after("Let me think about"));
        let body = json!({"input": {"input": "Well?"}, "has_streaming": streams});
        let request = client.predict_request(id(&agent), &body).await;
        let asking = tokio::spawn(async move {
            let mut answer = send(request).await;
            while let Ok(Some(_)) = answer.chunk().await {}
        });
        model.wait_for_requests(if streams { 1 } else { 2 }).await;
        asking.abort();
        model.wait_until_abandoned(if streams { 1 } else { 2 }).await;
    }
}

async fn a_shutdown_ends_a_stream_with_an_error(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent(&client, &model).await;
    let gate = Gate::default();
    model.reply(Reply::gated("Let me think", &gate, " no more."));
    let reading = tokio::spawn({
        let (client, agent) = (client.clone(), id(&agent).to_owned());
        async move { client.stream(&agent, "Well?", false).await }
    });
    gate.wait_until_reached().await;
    service.ask_to_stop();
    let events = reading.await.expect("a stream that ends well");
    assert_eq!(text_of(&events), "Let me think");
    let error = events.iter().find(|event| event.name == "error").expect("an error");
    assert_eq!(error.json()["code"], "shutting_down");
}

async fn a_shutdown_ends_what_is_answered_whole_with_an_error(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent(&client, &model).await;
    model.reply(Reply::hang());
    let request = client.predict_request(id(&agent), &json!({"input": {"input": "Well?"}})).await;
    let asking = tokio::spawn(async move { send(request).await });
    model.wait_for_requests(1).await;
    service.ask_to_stop();
    let answer = asking.await.expect("an answer");
    assert!(answer.headers().contains_key("retry-after"), "{answer:?}");
    let (status, error) = envelope(answer).await;
    assert_eq!((status.as_u16(), &error["error"]["code"]), (503, &json!("shutting_down")), "{error:#}");
}
