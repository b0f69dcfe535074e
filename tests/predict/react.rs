//! Agents that think and act in text.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    in_both_modes,
    model::{Model, Reply},
    service::{Mode, Service},
    sse::text_of,
};

in_both_modes!(
    an_agent_thinks_acts_and_answers_in_text,
    prose_is_accepted_when_the_format_was_asked_for_once
);

async fn setting(service: &Service) -> (Client, Model, Value) {
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "REACT", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let document =
        json!({"name": "Gate", "type": "TXT", "content": "The harbour gate opens at half past six."});
    client.link(id(&agent), id(&client.ingest(&document).await)).await;
    (client, model, agent)
}

fn last_message(request: &Value) -> &str {
    request["messages"].as_array().and_then(|all| all.last()).expect("a message")["content"]
        .as_str()
        .expect("a text")
}

async fn an_agent_thinks_acts_and_answers_in_text(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    let script = || {
        model.reply(Reply::text(
            "Thought: I have to look.\nAction: Search Documents\nAction Input: \"harbour gate\"\nObservation: it is open all day\nFinal Answer: all day",
        ));
        model.reply(Reply::to_request(|request| {
            let told = last_message(request);
            assert!(told.starts_with("Observation: [1]") && told.contains("half past six"), "{told}");
            assert!(!request.to_string().contains("open all day"), "what it invented is forgotten");
            Reply::text("Thought: now I know.\nFinal Answer: It \"opens at half past six\" [1].\nEvery day.")
        }));
    };
    script();
    let (status, answer) = client.predict(id(&agent), "When does it open?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    assert_eq!(answer["data"], "It \"opens at half past six\" [1].\nEvery day.");
    let trace = &answer["trace"];
    assert_eq!((&trace["finishReason"], &trace["citations"][0]["verified"]), (&json!("stop"), &json!(true)));
    assert_eq!(trace["steps"][1]["log"], "I have to look.", "{trace:#}");
    assert_eq!(trace["steps"][2]["action"], "Search Documents", "{trace:#}");
    let request = &model.bodies()[0];
    assert!(request["stop"].as_array().is_some_and(|stop| !stop.is_empty()), "{request:#}");
    assert!(request.get("tools").is_none_or(Value::is_null), "it acts in text: {request:#}");

    script();
    let events = client.stream(id(&agent), "When does it open?", false).await;
    assert_eq!(
        text_of(&events),
        "It \"opens at half past six\" [1].\nEvery day.",
        "only the answer is streamed"
    );
}

async fn prose_is_accepted_when_the_format_was_asked_for_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    model.reply(Reply::text("The gate opens at half past six [1]."));
    model.reply(Reply::to_request(|request| {
        let told = last_message(request);
        assert!(told.starts_with("Observation: ") && told.contains("Final Answer:"), "{told}");
        Reply::text("As I said, it opens at half past six [1].")
    }));
    let (_, answer) = client.predict(id(&agent), "When does it open?").await;
    assert_eq!(answer["data"], "As I said, it opens at half past six [1].");
    assert_eq!(answer["trace"]["finishReason"], "unformatted", "{answer:#}");

    model.reply(Reply::text("Thought: hm\nAction: Telephone\nAction Input: the harbour"));
    model.reply(Reply::to_request(|request| {
        assert!(last_message(request).contains("search_documents"), "{}", last_message(request));
        Reply::text("Final Answer: I do not know.")
    }));
    let (_, answer) = client.predict(id(&agent), "When does it open?").await;
    assert_eq!(answer["data"], "I do not know.", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_asked_for_again_and_then_a_failure() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    model.reply(Reply::text(""));
    model.reply(Reply::text("Final Answer: Half past six [1]."));
    let (_, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(answer["data"], "Half past six [1].", "{answer:#}");
    let messages = &model.bodies()[1]["messages"];
    let roles: Vec<_> = messages.as_array().expect("messages").iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["system", "user", "user"], "providers refuse a message without a word: {messages:#}");
    let steps = answer["trace"]["steps"].as_array().expect("steps");
    let last = &steps.last().expect("a step")["input"][0]["content"];
    assert!(last.as_str().is_some_and(|told| told.starts_with("Observation: ")), "{steps:#?}");
    model.reply(Reply::text(""));
    model.reply(Reply::text(""));
    let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!((status.as_u16(), &answer["error"]["code"]), (502, &json!("provider_empty")), "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_was_cut_off_is_not_carried_out() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    model.reply(
        Reply::text("Thought: look\nAction: search_documents\nAction Input: harb").finished_by("length"),
    );
    model.reply(Reply::to_request(|request| {
        assert!(last_message(request).contains("cut off"), "{}", last_message(request));
        Reply::text("Final Answer: Half past six [1].")
    }));
    let (_, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(answer["data"], "Half past six [1].", "{answer:#}");
    let steps = answer["trace"]["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|step| step["kind"] != "tool"), "{steps:#?}");
}
