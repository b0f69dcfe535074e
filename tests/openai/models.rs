//! Which agents a key may ask, as models.

use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::{Harbour, agent, assert_refused, get, ids, post, question, success};
use crate::support::{in_both_modes, service::Mode};

in_both_modes!(
    the_agents_that_one_may_ask_are_the_models,
    a_model_is_found_by_its_id_and_by_a_name_that_only_it_has,
    a_key_for_one_agent_sees_that_one,
    a_long_list_of_models_is_whole_and_short,
);

async fn the_agents_that_one_may_ask_are_the_models(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let grace = harbour.service.signed_up("grace@example.com").await;
    assert_eq!(ids(&success(get(&grace, "/models").await)), [""; 0], "another's agents are not hers");
    let script = harbour.script(json!({ "role": "asker" })).await;
    for client in [&harbour.ada, &script] {
        let list = success(get(client, "/models").await);
        assert_eq!(ids(&list), [harbour.composing.as_str(), &harbour.quoting], "newest first");
        for model in list["data"].as_array().expect("a list") {
            assert_eq!(model["object"], "model", "{model:#}");
            assert_eq!(model["owned_by"], "lectern", "{model:#}");
            assert!(model["created"].as_u64().is_some_and(|seconds| seconds > 1_600_000_000), "{model:#}");
        }
        assert_eq!(list["data"][0]["name"], "Guide");
    }
}

async fn a_model_is_found_by_its_id_and_by_a_name_that_only_it_has(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let (ada, quoting) = (&harbour.ada, harbour.quoting.as_str());
    let llm = json!({ "model": "extractive", "provider": "extractive" });
    let spaced = agent(ada, "The clerk / of Ålesund?", &llm).await;
    for (name, found) in [
        (quoting, quoting),
        ("Clerk", quoting),
        ("The%20clerk%20%2F%20of%20%C3%85lesund%3F", spaced.as_str()),
    ] {
        assert_eq!(success(get(ada, &format!("/models/{name}")).await)["id"], found, "{name}");
    }
    for name in ["Clerk", quoting] {
        let answer = success(post(ada, "/chat/completions", &question(name)).await);
        assert_eq!(answer["model"], name, "as it was asked for");
    }
    agent(ada, "Clerk", &llm).await;
    for (status, body) in
        [get(ada, "/models/Clerk").await, post(ada, "/chat/completions", &question("Clerk")).await]
    {
        assert_eq!(
            (status.as_u16(), &body["error"]["param"]),
            (400, &json!("model")),
            "two have it: {body:#}"
        );
    }
    let nobodys = Uuid::now_v7().to_string();
    let grace = harbour.service.signed_up("grace@example.com").await;
    for (client, name) in
        [(ada, "nobody"), (ada, "no%00body"), (ada, nobodys.as_str()), (&grace, quoting), (&grace, "Guide")]
    {
        let answer = get(client, &format!("/models/{name}")).await;
        assert_refused(&answer, 404, "model_not_found");
        for path in ["/chat/completions", "/responses"] {
            let mut body = question(name);
            body["input"] = json!("Well?");
            let answer = post(client, path, &body).await;
            assert_refused(&answer, 404, "model_not_found");
            assert_eq!(answer.1["error"]["param"], "model", "{:#}", answer.1);
        }
    }
}

async fn a_key_for_one_agent_sees_that_one(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let bound = harbour.script(json!({ "agentId": harbour.quoting })).await;
    assert_eq!(ids(&success(get(&bound, "/models").await)), [harbour.quoting.as_str()]);
    for name in [harbour.quoting.as_str(), "Clerk"] {
        success(get(&bound, &format!("/models/{name}")).await);
        success(post(&bound, "/chat/completions", &question(name)).await);
    }
    for name in [harbour.composing.as_str(), "Guide"] {
        for (status, body) in [
            get(&bound, &format!("/models/{name}")).await,
            post(&bound, "/chat/completions", &question(name)).await,
        ] {
            assert!(matches!(status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN), "{status}: {body:#}");
        }
    }
    for path in ["/files", "/vector_stores"] {
        assert_refused(&get(&bound, path).await, 403, "token_restricted");
    }
    let asker = harbour.script(json!({ "role": "asker" })).await;
    assert_refused(&get(&asker, "/files").await, 403, "role_required");
}

async fn a_long_list_of_models_is_whole_and_short(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let llm = json!({ "model": "extractive", "provider": "extractive" });
    let long = "x".repeat(5_000);
    // More than are read at a time.
    for number in 0..101 {
        let agent =
            json!({ "name": number.to_string(), "type": "CHATVENDOR", "llm": llm, "description": long });
        harbour.ada.create_agent(&agent).await;
    }
    let list = success(get(&harbour.ada, "/models").await);
    let models = list["data"].as_array().expect("a list");
    assert_eq!(models.len(), 103);
    assert_eq!((&models[0]["name"], &models[100]["name"]), (&json!("100"), &json!("0")), "newest first");
    let told = models[0]["description"].as_str().expect("a description");
    assert_eq!(told, format!("{}…", "x".repeat(300)));
}
