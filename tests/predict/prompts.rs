//! Agents with prompts of their own.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    in_both_modes,
    model::{Model, Reply},
    service::{Mode, Service},
};

in_both_modes!(a_prompt_is_filled_in_and_is_the_system_message);

async fn agent_with(
    client: &Client,
    model: &Model,
    r#type: &str,
    template: &str,
    variables: &[&str],
) -> Value {
    let prompt = json!({"name": "p", "template": template, "input_variables": variables});
    let prompt = client.create("/prompts", &prompt).await;
    let agent = json!({
        "name": "guide", "type": r#type, "llm": model.llm("m"), "promptId": id(&prompt), "hasMemory": true,
    });
    client.create_agent(&agent).await
}

fn system(request: &Value) -> &str {
    assert_eq!(request["messages"][0]["role"], "system", "{request:#}");
    request["messages"][0]["content"].as_str().expect("a text")
}

async fn a_prompt_is_filled_in_and_is_the_system_message(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("Aye."));
    let template = "You are {role} of {{{ship}}}. Speak {language}.";
    let agent = agent_with(&client, &model, "CHATVENDOR", template, &["role", "ship", "language"]).await;
    let (status, answer) = client
        .ask(
            id(&agent),
            &json!({"input": {"input": "Well?", "role": "captain", "ship": "{Fram}", "language": 7}}),
        )
        .await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    let request = &model.bodies()[0];
    assert!(system(request).starts_with("You are captain of {{Fram}}. Speak 7."), "{}", system(request));
    assert_eq!(request["messages"][1], json!({"role": "user", "content": "Well?"}));

    let (status, answer) =
        client.ask(id(&agent), &json!({"input": {"input": "Well?", "role": "captain"}})).await;
    assert_eq!(status.as_u16(), 422);
    let paths: Vec<_> =
        answer["error"]["fields"].as_array().expect("fields").iter().map(|field| &field["path"]).collect();
    assert_eq!(paths, ["input.ship", "input.language"], "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_prompts_find_their_variables() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let template = "Tools:\n{tools}\nNames: {tool_names}\nBefore:\n{chat_history}\nQuestion: {input}\n{agent_scratchpad}";
    let variables = ["tools", "tool_names", "chat_history", "input", "agent_scratchpad"];
    let agent = agent_with(&client, &model, "REACT", template, &variables).await;
    let document =
        client.ingest(&json!({"name": "Gate", "type": "TXT", "content": "The gate is green."})).await;
    client.link(id(&agent), id(&document)).await;
    model.always(Reply::text("Final Answer: Green."));
    for question in ["First?", "Second?"] {
        client.ask(id(&agent), &json!({"input": {"input": question}, "session": "s"})).await;
    }
    let request = model.bodies().pop().expect("a request");
    let system = system(&request);
    assert!(system.contains("search_documents: Searches"), "{system}");
    assert!(
        system.contains("Names: search_documents\nBefore:\nHuman: First?\nAI: Green.\nQuestion: Second?"),
        "{system}"
    );
    let users =
        request["messages"].as_array().expect("messages").iter().filter(|m| m["role"] == "user").count();
    assert_eq!(users, 1, "what was said before is in the prompt: {request:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_given_again_only_while_nothing_has_changed() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let document =
        client.ingest(&json!({"name": "Gate", "type": "TXT", "content": "The gate is green."})).await;
    client.link(id(&agent), id(&document)).await;
    let ask = async |more: Value| {
        let mut body = json!({"input": {"input": "Which colour?"}, "cache_ttl": 3600});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let (status, answer) = client.ask(id(&agent), &body).await;
        assert_eq!(status.as_u16(), 200, "{answer:#}");
        answer
    };
    let answers = |count: usize| model.reply(Reply::text(&format!("Green, answer {count}.")));
    answers(1);
    let first = ask(json!({})).await;
    assert_eq!(first["data"], "Green, answer 1.");
    let again = ask(json!({})).await;
    assert_eq!((&again["data"], &again["trace"]), (&first["data"], &first["trace"]));
    for (count, more) in [(2, json!({"cache_ttl": 0})), (3, json!({"session": "s"}))] {
        answers(count);
        assert_eq!(ask(more).await["data"], format!("Green, answer {count}."));
    }
    answers(4);
    client.patch(&format!("/agents/{}", id(&agent)), &json!({"description": "changed"})).await;
    assert_eq!(ask(json!({})).await["data"], "Green, answer 4.", "the agent is another");
    answers(5);
    client.patch(&format!("/documents/{}", id(&document)), &json!({"content": "The gate is blue."})).await;
    client.wait_until_ingested(id(&document)).await;
    assert_eq!(ask(json!({})).await["data"], "Green, answer 5.", "the document is another");
    assert_eq!(ask(json!({})).await["data"], "Green, answer 5.");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_an_earlier_version_is_given_again_only_while_its_tools_are_the_same() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    client.patch(&format!("/agents/{}", id(&agent)), &json!({"description": "changed"})).await;
    let ask = async || {
        let body = json!({"input": {"input": "How much?"}, "cache_ttl": 3600, "version": 1});
        let (status, answer) = client.ask(id(&agent), &body).await;
        assert_eq!(status.as_u16(), 200, "{answer:#}");
        assert_eq!(answer["trace"]["agentVersion"], 1, "{answer:#}");
        answer["data"].clone()
    };
    model.reply(Reply::text("I cannot sum."));
    assert_eq!((ask().await, ask().await), (json!("I cannot sum."), json!("I cannot sum.")));
    let tool = json!({"name": "sum", "type": "COMPUTE_ALPHA", "metadata": {"app_id": "app-12345678"}});
    client.create_tool_for(id(&agent), &tool).await;
    model.reply(Reply::text("Five."));
    assert_eq!(ask().await, "Five.");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_which_something_failed_is_not_given_again() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    for number in 1..=2 {
        model.reply(Reply::tool_calls([("no_such_tool", json!({}))]));
        model.reply(Reply::text(&format!("I could not look, {number}.")));
        let body = json!({"input": {"input": "Well?"}, "cache_ttl": 3600});
        let (_, answer) = client.ask(id(&agent), &body).await;
        assert_eq!(answer["data"], format!("I could not look, {number}."));
    }
}
