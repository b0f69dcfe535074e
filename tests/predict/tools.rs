//! Tools in the hands of agents.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    in_both_modes,
    model::{Model, Reply},
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(each_kind_of_tool_answers_or_says_why_not, agents_ask_agents_within_the_same_limits);

/// What the model is told after it has called this function.
async fn told(
    client: &Client,
    model: &Model,
    agent: &Value,
    function: &str,
    arguments: Value,
) -> (String, Value) {
    model.reply(Reply::tool_calls([(function, arguments)]));
    model.reply(Reply::text("Done."));
    let (status, answer) = client.predict(id(agent), "Well?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    let last = model.bodies().pop().expect("a request");
    let messages = last["messages"].as_array().expect("messages").clone();
    let content = messages.last().expect("a message")["content"].as_str().expect("a text").to_owned();
    (content, answer)
}

/// The services behind the tools, all on one host.
fn serve_tools(web: &Web) {
    let json_at =
        |path: &str, body: Value| web.serve(path, "application/json", body.to_string().into_bytes());

    json_at(
        "/search",
        json!({"results": [{"title": "Tides", "url": "https://tides.example/", "content": "High at six."}]}),
    );
    web.serve("/api/v1/llm-api", "text/plain", b"Result: 42 metres".to_vec());
    json_at(
        "/v1/models/owner/name/predictions",
        json!({"id": "p1", "status": "succeeded", "output": ["A ", "poem."]}),
    );
    json_at(
        "/api/v1/exposed/",
        json!({"results": [{"id": "a1", "description": "Send a letter", "params": {"to": "str"}}]}),
    );
    json_at("/api/v1/exposed/a1/execute/", json!({"status": "success", "result": {"sent": true}}));
    json_at(
        "/openapi.json",
        json!({
            "openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "servers": [{"url": "/v1"}],
            "paths": {"/pets/{id}": {"get": {
                "operationId": "getPet", "summary": "A pet",
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
                "responses": {"200": {"description": "It"}},
            }}},
        }),
    );
    json_at("/v1/pets/7", json!({"id": 7, "name": "Rex"}));
}

async fn each_kind_of_tool_answers_or_says_why_not(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let (model, web) = (Model::start().await, Web::start().await);
    let base = web.url("/").trim_end_matches('/').to_owned();
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    serve_tools(&web);
    let key = "tool-secret-123456";
    for (name, r#type, metadata, function, arguments, expected) in [
        (
            "seek",
            "SEARCH",
            json!({"provider": "searxng", "base_url": base}),
            "seek",
            json!({"query": "tides"}),
            "High at six",
        ),
        (
            "compute",
            "COMPUTE_ALPHA",
            json!({"app_id": key, "base_url": base}),
            "compute",
            json!({"input": "how deep"}),
            "42 metres",
        ),
        (
            "host",
            "MODELHOST",
            json!({"api_key": key, "model": "owner/name", "base_url": base}),
            "host",
            json!({"prompt": "rhyme"}),
            "A poem.",
        ),
        (
            "act",
            "AUTOMATION_NLA",
            json!({"automation_nla_api_key": key, "base_url": base}),
            "",
            json!({"instructions": "to Ada"}),
            "sent",
        ),
        (
            "old",
            "AUTOMATION_NLA",
            json!({"automation_nla_api_key": key}),
            "old",
            json!({"instructions": "to Ada"}),
            "retired",
        ),
        (
            "pets",
            "OPENAPI",
            json!({"openApiUrl": format!("{base}/openapi.json")}),
            "pets_getPet",
            json!({"path": {"id": 7}}),
            "Rex",
        ),
        ("lost", "OPENAPI", json!({"openApiUrl": format!("{base}/missing.json")}), "lost", json!({}), "404"),
        (
            "inner",
            "OPENAPI",
            json!({"openApiUrl": "http://169.254.169.254/latest"}),
            "inner",
            json!({}),
            "could not be reached",
        ),
    ] {
        let tool = client
            .create_tool_for(id(&agent), &json!({"name": name, "type": r#type, "metadata": metadata}))
            .await;
        let function = if function.is_empty() {
            // An action is named by its service; the model is told how.
            model.reply(Reply::text("Nothing."));
            client.predict(id(&agent), "Which?").await;
            let tools = model.bodies().pop().expect("a request")["tools"].clone();
            let named = tools
                .as_array()
                .expect("tools")
                .iter()
                .map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned());
            named.into_iter().find(|found| found.starts_with(name)).expect("an action")
        } else {
            function.to_owned()
        };
        let (text, answer) = told(&client, &model, &agent, &function, arguments).await;
        assert!(text.contains(expected), "{name}: {text}");
        assert!(!answer.to_string().contains(key), "{name}: {answer:#}");
        client.delete(&format!("/tools/{}", id(&tool))).await;
    }
    service.assert_no_secret_in_logs(&[key]);
}

async fn agents_ask_agents_within_the_same_limits(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_MAX_STEPS", "5").start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let new = async |name: &str| {
        client.create_agent(&json!({"name": name, "type": "CHATVENDOR", "llm": model.llm(name)})).await
    };
    let (asks, expert) = (new("asks").await, new("expert").await);
    let document =
        json!({"name": "Gate", "type": "TXT", "content": "The harbour gate opens at half past six."});
    client.link(id(&expert), id(&client.ingest(&document).await)).await;
    let tool = json!({"name": "Harbour expert", "type": "AGENT", "description": "Knows the harbour.", "metadata": {"agentId": id(&expert)}});
    let tool = client.create_tool_for(id(&asks), &tool).await;

    model.always(Reply::to_request(|request| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message");
        match (request["model"].as_str(), last["role"].as_str()) {
            (Some("expert"), _) => Reply::text("It \"opens at half past six\" [1]."),
            (_, Some("tool")) => {
                Reply::text(&format!("The expert says: {}", last["content"].as_str().expect("a text")))
            }
            _ => Reply::tool_calls([("harbour_expert", json!({"input": "When does the gate open?"}))]),
        }
    }));
    let (_, answer) = client.predict(id(&asks), "Well?").await;
    assert_eq!(answer["data"], "The expert says: It \"opens at half past six\".", "{answer:#}");
    assert_eq!(
        answer["trace"]["usage"]["inputTokens"],
        31 * 3,
        "the expert's tokens are counted: {answer:#}"
    );

    client.patch(&format!("/tools/{}", id(&tool)), &json!({"returnDirect": true})).await;
    let (_, answer) = client.predict(id(&asks), "Well?").await;
    assert_eq!(answer["data"], "It \"opens at half past six\".");
    assert_eq!(answer["trace"]["finishReason"], "return_direct");

    // The expert never stops searching: what it takes is taken from the one that asks.
    client.patch(&format!("/tools/{}", id(&tool)), &json!({"returnDirect": false})).await;
    let counter = std::sync::atomic::AtomicU32::new(0);
    model.always(Reply::to_request(move |request| {
        let number = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match request["model"].as_str() {
            Some("expert") => {
                Reply::tool_calls([("search_documents", json!({"query": format!("gate {number}")}))])
            }
            _ => Reply::tool_calls([("harbour_expert", json!({"input": format!("When? {number}")}))]),
        }
    }));
    let before = model.requests().len();
    let (status, answer) = client.predict(id(&asks), "Well?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    assert_eq!(answer["trace"]["finishReason"], "max_iterations", "{answer:#}");
    assert_eq!(model.requests().len() - before, 5, "all steps together");

    client.delete(&format!("/agents/{}", id(&expert))).await;
    let (text, _) = {
        model.always(Reply::text("unused"));
        told(&client, &model, &asks, "harbour_expert", json!({"input": "When?"})).await
    };
    assert!(text.contains("There is no such agent"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_failed_is_no_answer_and_is_not_given_again() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let (model, web) = (Model::start().await, Web::start().await);
    let base = web.url("/").trim_end_matches('/').to_owned();
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    serve_tools(&web);
    let tool = json!({
        "name": "pets", "type": "OPENAPI", "returnDirect": true,
        "metadata": {"openApiUrl": format!("{base}/openapi.json")},
    });
    client.create_tool_for(id(&agent), &tool).await;
    let ask = async |pet: u32, then: Reply| {
        model.reply(Reply::tool_calls([("pets_getPet", json!({"path": {"id": pet}}))]));
        model.reply(then);
        let question = json!({"input": {"input": format!("Who is {pet}?")}, "cache_ttl": 3600});
        let (status, answer) = client.ask(id(&agent), &question).await;
        assert_eq!(status.as_u16(), 200, "{answer:#}");
        answer
    };
    // Nothing is served there.
    let answer = ask(8, Reply::text("I could not find out.")).await;
    assert_eq!(answer["data"], "I could not find out.", "{answer:#}");
    let step = &answer["trace"]["steps"].as_array().expect("steps")[1];
    assert!(step["observation"].as_str().is_some_and(|told| told.starts_with("Status 404")), "{step:#}");
    assert_eq!(step["error"], step["observation"], "{step:#}");
    let again = ask(8, Reply::text("I still could not.")).await;
    assert_eq!(again["data"], "I still could not.", "{again:#}");
    let direct = ask(7, Reply::text("unused")).await;
    assert_eq!(direct["trace"]["finishReason"], "return_direct", "{direct:#}");
    assert!(direct["data"].as_str().is_some_and(|text| text.contains("Rex")), "{direct:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn brackets_in_a_tools_own_answer_cite_nothing_and_stay() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let (model, web) = (Model::start().await, Web::start().await);
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let document =
        json!({"name": "Gate", "type": "TXT", "content": "The harbour gate opens at half past six."});
    client.link(id(&agent), id(&client.ingest(&document).await)).await;
    let result = "{\"ids\": [1, 77], \"a\": \"The harbour gate opens\" [1]}";
    web.serve("/api/v1/llm-api", "text/plain", result.as_bytes().to_vec());
    let base = web.url("/").trim_end_matches('/').to_owned();
    let metadata = json!({"app_id": "app-12345678", "base_url": base});
    let tool =
        json!({"name": "compute", "type": "COMPUTE_ALPHA", "returnDirect": true, "metadata": metadata});
    client.create_tool_for(id(&agent), &tool).await;
    model.reply(Reply::tool_calls([("compute", json!({"input": "ids"}))]));
    let (_, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(answer["data"], result, "{answer:#}");
    assert_eq!(answer["trace"]["citations"], json!([]), "{answer:#}");
}
