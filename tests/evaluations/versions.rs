//! Versions of agents.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{case, document, evaluation, result, run, signed_up};
use crate::support::{
    client::{Client, data, envelope, id, send},
    in_both_modes,
    model::{API_KEY, Model, Reply},
    service::Mode,
};

in_both_modes!(
    every_change_keeps_what_was_before_which_can_be_asked_and_restored,
    traces_and_runs_tell_the_number_that_was_asked_for,
    only_the_latest_versions_are_kept
);

async fn versions(client: &Client, agent: &Value) -> Vec<Value> {
    client.read(&format!("/agents/{}/versions", id(agent))).await.as_array().expect("a list").clone()
}

async fn restore(client: &Client, agent: &Value, version: &Value) -> (StatusCode, Value) {
    let path = format!("/agents/{}/versions/{version}/restore", id(agent));
    envelope(send(client.request(Method::POST, &path)).await).await
}

async fn every_change_keeps_what_was_before_which_can_be_asked_and_restored(mode: Mode) {
    let (service, client) = signed_up(mode).await;
    let model = Model::start().await;
    model.always(Reply::text("Aye."));
    let prompt = json!({"name": "Mate", "template": "You are a mate.", "input_variables": []});
    let prompt = client.create("/prompts", &prompt).await;
    let agent =
        json!({"name": "Mate", "type": "CHATVENDOR", "llm": model.llm("small"), "promptId": id(&prompt)});
    let agent = client.create_agent(&agent).await;
    let path = format!("/agents/{}", id(&agent));
    let only = versions(&client, &agent).await;
    assert_eq!((only.len(), &only[0]["isCurrent"], &only[0]["replacedAt"]), (1, &json!(true), &Value::Null));

    data(client.patch(&path, &json!({"name": "First mate"})).await);
    data(
        client
            .patch(&format!("/prompts/{}", id(&prompt)), &json!({"template": "You are the first mate."}))
            .await,
    );
    let other_model =
        json!({"llm": {"provider": "openai-compatible", "model": "large", "base_url": model.base_url()}});
    data(client.patch(&path, &other_model).await);
    let all = versions(&client, &agent).await;
    let told: Vec<_> = all
        .iter()
        .map(|one| {
            (
                one["name"].as_str().unwrap(),
                one["prompt"]["template"].as_str().unwrap(),
                one["llm"]["model"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("First mate", "You are the first mate.", "large"),
        ("First mate", "You are the first mate.", "small"),
        ("First mate", "You are a mate.", "small"),
        ("Mate", "You are a mate.", "small"),
    ];
    assert_eq!(told, expected, "{all:#?}");
    assert_eq!(all[3]["replacedBy"], client.user()["id"]);
    assert!(!json!(all).to_string().contains(API_KEY), "no key is told");

    // What it was is asked with the key and the prompt that it had.
    let ask = async |version: &Value| {
        let body = json!({"input": {"input": "Ready?"}, "version": version});
        let (status, answer) = client.ask(id(&agent), &body).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        model.requests().pop().expect("a request")
    };
    let first = ask(&all[3]["version"]).await;
    let body: Value = serde_json::from_slice(&first.body).expect("JSON");
    assert_eq!(
        (&body["model"], first.header("authorization")),
        (&json!("small"), Some(format!("Bearer {API_KEY}").as_str()))
    );
    assert!(
        body["messages"][0]["content"].as_str().expect("a text").starts_with("You are a mate."),
        "{body:#}"
    );
    let now = ask(&all[0]["version"]).await;
    let body: Value = serde_json::from_slice(&now.body).expect("JSON");
    assert_eq!((&body["model"], now.header("authorization")), (&json!("large"), None));
    let (status, _) = client.ask(id(&agent), &json!({"input": {"input": "x"}, "version": 99})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    let restored = data(restore(&client, &agent, &all[3]["version"]).await);
    assert_eq!((&restored["name"], &restored["llm"]["model"]), (&json!("Mate"), &json!("small")));
    assert_eq!(restored["llm"]["api_key"], agent["llm"]["api_key"], "with its key");
    assert_ne!(
        restored["promptId"], prompt["id"],
        "the prompt says something else now, and others may use it"
    );
    let prompt_now =
        client.read(&format!("/prompts/{}", restored["promptId"].as_str().expect("an id"))).await;
    assert_eq!(prompt_now["template"], "You are a mate.");
    assert_eq!(versions(&client, &agent).await.len(), 5, "what it was before that is kept too");
    // To what it is already: nothing happens.
    let current = versions(&client, &agent).await[0]["version"].clone();
    data(restore(&client, &agent, &current).await);
    assert_eq!(versions(&client, &agent).await.len(), 5);
    assert_eq!(restore(&client, &agent, &json!(0)).await.0, StatusCode::NOT_FOUND);

    let asker = json!({"description": "asks", "role": "asker"});
    let asker =
        client.with_token(client.create("/api-tokens", &asker).await["token"].as_str().expect("a token"));
    let body = json!({"input": {"input": "x"}, "version": 1});
    let (status, answer) = asker.post(&format!("{path}/predict"), &body).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::FORBIDDEN, &json!("role_required")));
    service.assert_no_secret_in_logs(&[API_KEY]);
}

async fn traces_and_runs_tell_the_number_that_was_asked_for(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let agent = client.create_agent(&json!({"name": "clerk", "type": "CHATVENDOR"})).await;
    let hours = document(&client, "Hours", "The office opens at nine.").await;
    let prices = document(&client, "Prices", "A key costs five euros.").await;
    for document in [&hours, &prices] {
        client.link(id(&agent), document).await;
    }
    let question = "When does the office open?";
    let ask = async |version: i64| {
        client.ask(id(&agent), &json!({"input": {"input": question}, "version": version})).await
    };
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    case(&client, &set, question, json!([{"documentId": hours}])).await;
    // Of the first three numbers two are those of links, of which nothing is kept; the change comes before the second round.
    for latest in [3, 4] {
        for version in 1..=latest {
            let (status, answer) = ask(version).await;
            assert_eq!(status, StatusCode::OK, "{answer:#}");
            assert_eq!(answer["trace"]["agentVersion"], version, "{latest}");
        }
        assert_eq!(ask(latest + 1).await.0, StatusCode::NOT_FOUND);
        let done = run(&client, &set, json!({"mode": "lexical", "agentVersion": 1})).await;
        assert_eq!(done["agentVersion"], 1, "{done:#}");
        let trace = result(&done, question)["answer"]["traceId"].as_str().expect("an id");
        let trace = client.read(&format!("/traces/{trace}")).await;
        assert_eq!(trace["trace"]["agentVersion"], 1, "{trace:#}");
        data(client.patch(&format!("/agents/{}", id(&agent)), &json!({"name": latest.to_string()})).await);
    }
}

async fn only_the_latest_versions_are_kept(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let agent = client.create_agent(&json!({"name": "0", "type": "CHATVENDOR"})).await;
    for number in 1..=103 {
        data(client.patch(&format!("/agents/{}", id(&agent)), &json!({"name": number.to_string()})).await);
    }
    let kept = versions(&client, &agent).await;
    assert_eq!((kept.len(), &kept[0]["name"], &kept[100]["name"]), (101, &json!("103"), &json!("3")));
    let (status, body) = restore(&client, &agent, &json!(1)).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::NOT_FOUND, &json!("version_not_kept")));
}
