//! Limits of a run: it ends there with what it has, and says so.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    model::{INPUT_TOKENS, Model, OUTPUT_TOKENS, Reply},
    service::{Mode, Service},
};

async fn agent(client: &Client, model: &Model, llm: Value) -> Value {
    let mut with_limits = model.llm("m");
    with_limits.as_object_mut().expect("an object").extend(llm.as_object().expect("an object").clone());
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": with_limits});
    let agent = client.create_agent(&agent).await;
    let document =
        json!({"name": "Gate", "type": "TXT", "content": "The harbour gate opens at half past six."});
    client.link(id(&agent), id(&client.ingest(&document).await)).await;
    agent
}

/// A model that never stops searching.
fn searches(model: &Model) {
    let counter = std::sync::atomic::AtomicU32::new(0);
    model.always(Reply::to_request(move |_| {
        let number = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Reply::tool_calls([("search_documents", json!({"query": format!("gate {number}")}))])
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_at_each_of_its_limits() {
    let service = Service::in_mode(Mode::Embedded)
        .env("LECTERN_MAX_STEPS", "6")
        .env("LECTERN_PRICES", "openai-compatible/m=1000:2000")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let tokens_a_step = INPUT_TOKENS + OUTPUT_TOKENS;
    for (limits, reason, steps) in [
        (json!({}), "max_iterations", 6),
        (json!({"max_steps": 20}), "max_iterations", 6),
        (json!({"max_steps": 2}), "max_iterations", 2),
        (json!({"max_total_tokens": tokens_a_step * 3 - 1}), "max_tokens", 3),
        (json!({"max_cost": 0.1}), "max_cost", 2),
    ] {
        searches(&model);
        let before = model.requests().len();
        let agent = agent(&client, &model, limits.clone()).await;
        let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
        assert_eq!(status.as_u16(), 200, "{limits}: {answer:#}");
        assert_eq!(answer["trace"]["finishReason"], reason, "{limits}: {answer:#}");
        assert_eq!(model.requests().len() - before, steps, "{limits}");
        assert!(answer["data"].as_str().expect("a text").contains("limit"), "{limits}: {answer:#}");
        let cost = answer["trace"]["usage"]["cost"].as_f64().expect("a cost");
        let steps = u32::try_from(steps).expect("few");
        assert!((cost - f64::from(steps) * 0.065).abs() < 1e-9, "{limits}: {cost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_a_model_thinks_away_are_a_limit_like_any_other() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("").finished_by("length"));
    let limited = agent(&client, &model, json!({"max_total_tokens": 500})).await;
    let (status, answer) = client.predict(id(&limited), "When does the gate open?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    assert_eq!(answer["trace"]["finishReason"], "max_tokens", "{answer:#}");
    assert!(answer["data"].as_str().is_some_and(|told| told.contains("its limit of tokens")), "{answer:#}");
    // What a model may write in one step is for whoever has set it up.
    let short = agent(&client, &model, json!({"max_tokens": 50})).await;
    let (status, answer) = client.predict(id(&short), "When does the gate open?").await;
    assert_eq!((status.as_u16(), &answer["error"]["code"]), (502, &json!("provider_empty")), "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_time_is_up_what_was_said_is_the_answer() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent(&client, &model, json!({"max_seconds": 1.5})).await;
    model.reply(Reply::silent_after("The gate opens at"));
    let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    assert_eq!(
        (&answer["data"], &answer["trace"]["finishReason"]),
        (&json!("The gate opens at"), &json!("max_time"))
    );
    model.reply(Reply::hang());
    let (status, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!((status.as_u16(), &answer["error"]["code"]), (504, &json!("provider_timeout")), "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_limits_are_checked_and_shown() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let limits = json!({
        "provider": "openai", "model": "m", "context_window": 8000, "max_steps": 3, "max_seconds": 2.5,
        "max_total_tokens": 9000, "max_cost": 0.25,
    });
    let agent = client.create_agent(&json!({"name": "a", "type": "REACT", "llm": limits})).await;
    assert_eq!(agent["llm"], limits);
    for (name, value) in [("max_steps", json!(0)), ("max_seconds", json!(-1)), ("max_cost", json!("much"))] {
        let mut llm = limits.clone();
        llm[name] = value;
        let (status, answer) =
            client.post("/agents", &json!({"name": "a", "type": "REACT", "llm": llm})).await;
        assert_eq!(status.as_u16(), 422, "{name}");
        assert_eq!(answer["error"]["fields"][0]["path"], format!("llm.{name}"));
    }
}
