//! Agents: what of them can be set and changed, their prompt, their tags, and their links to documents.

pub mod changes;
mod links;
mod tags;

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, id},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    an_agent_is_made_shown_changed_and_deleted,
    what_is_left_out_or_null_is_as_by_default,
    an_agents_prompt_is_one_of_its_owners,
    another_users_agents_do_not_exist,
    the_memory_of_a_session_is_erased_by_its_name,
);

/// An agent with nothing but what it needs.
async fn plain(client: &Client) -> Value {
    client.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await
}

fn path(agent: &Value) -> String {
    format!("/agents/{}", id(agent))
}

async fn prompt(client: &Client) -> Value {
    let body = json!({ "name": "Curt", "template": "In a word: {input}", "input_variables": ["input"] });
    client.create("/prompts", &body).await
}

async fn tag(client: &Client, name: &str) -> Value {
    client.create("/tags", &json!({ "name": name, "color": "#0e8a16" })).await
}

/// What is said of something that does not exist.
fn unknown((status, mut answer): (StatusCode, Value)) -> Value {
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer:#}");
    answer["error"].take()
}

/// The object with some fields replaced.
pub fn with(base: &Value, changes: &Value) -> Value {
    let mut whole = base.clone();
    for (name, value) in changes.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    whole
}

/// The agent as single and list answers show it while no document is linked.
fn unlinked(agent: &Value) -> Value {
    with(agent, &json!({ "documentId": "", "document": {} }))
}

async fn an_agent_is_made_shown_changed_and_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (prompt, urgent) = (prompt(&ada).await, tag(&ada, "urgent").await);
    let body = json!({
        "name": "Clerk", "type": "REACT", "description": "knows the files", "hasMemory": true,
        "llm": { "model": "any-model", "provider": "openai-chat", "temperature": 0.5, "max_tokens": 200 },
        "promptId": id(&prompt), "tags": [urgent],
    });
    let made = ada.create_agent(&body).await;
    for (field, value) in body.as_object().expect("an object") {
        assert_eq!(&made[field], value, "{field}");
    }
    assert_eq!((&made["userId"], &made["user"]), (&ada.user()["id"], &json!({})));
    assert_eq!(made["createdAt"], made["updatedAt"]);
    assert_eq!(ada.read(&path(&made)).await, unlinked(&made));
    let other = plain(&ada).await;
    assert_eq!(ada.read("/agents").await, json!([unlinked(&other), unlinked(&made)]), "newest first");

    let change = json!({
        "name": "Judge", "type": "CHATVENDOR", "description": "decides", "hasMemory": false,
        "llm": { "model": "other-model", "provider": "groq" }, "promptId": null, "tags": [],
    });
    let changed = data(ada.patch(&path(&made), &change).await);
    assert!(made["updatedAt"].as_str() < changed["updatedAt"].as_str());
    let expected = with(&with(&made, &change), &json!({ "updatedAt": changed["updatedAt"] }));
    for (field, value) in expected.as_object().expect("an object") {
        assert_eq!(&changed[field], value, "{field}");
    }
    assert_eq!(ada.read(&path(&made)).await, unlinked(&expected));
    assert_eq!(ada.read("/agents").await[0], unlinked(&other), "no other is changed");

    assert_eq!(data(ada.delete(&path(&made)).await), Value::Null);
    for answer in [
        ada.get(&path(&made)).await,
        ada.patch(&path(&made), &json!({ "name": "late" })).await,
        ada.patch(&path(&made), &json!({})).await,
        ada.delete(&path(&made)).await,
    ] {
        assert_eq!(unknown(answer)["message"], "There is no such agent.");
    }
    assert_eq!(ada.read("/agents").await, json!([unlinked(&other)]));
    assert_eq!(ada.read("/tags").await, json!([urgent]), "its tag and its prompt stay");
    assert_eq!(ada.read("/prompts").await, json!([prompt]));
}

async fn what_is_left_out_or_null_is_as_by_default(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let required = json!({ "name": "Clerk", "type": "CHATVENDOR" });
    let nulls =
        json!({ "description": null, "llm": null, "hasMemory": null, "promptId": null, "tags": null });
    // It asks no model, so it needs no name of one.
    let nameless = ["", " "].map(|name| json!({ "llm": { "provider": "extractive", "model": name } }));
    let unnamed = json!({ "llm": { "provider": "extractive" } });
    let [blank, space] = nameless.map(|llm| with(&required, &llm));
    for body in [required.clone(), with(&required, &nulls), with(&required, &unnamed), blank, space] {
        let made = ada.create_agent(&body).await;
        assert_eq!(made["llm"], json!({ "model": "extractive", "provider": "extractive" }), "{body}");
        assert_eq!((&made["description"], &made["hasMemory"]), (&json!(""), &json!(false)), "{body}");
        assert_eq!((&made["promptId"], &made["tags"]), (&Value::Null, &json!([])), "{body}");
    }
}

async fn an_agents_prompt_is_one_of_its_owners(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let (own, hers) = (prompt(&grace).await, prompt(&ada).await);
    let agent = plain(&grace).await;
    let given = data(grace.patch(&path(&agent), &json!({ "promptId": id(&own) })).await);
    assert_eq!(given["promptId"], own["id"]);
    let body = json!({ "name": "Judge", "type": "REACT" });
    for id in [id(&hers), &Uuid::now_v7().to_string(), id(&agent), "none", "", &"x".repeat(2_000)] {
        let prompt = json!({ "promptId": id });
        let answers =
            [grace.post("/agents", &with(&body, &prompt)).await, grace.patch(&path(&agent), &prompt).await];
        for answer in answers {
            assert_eq!(unknown(answer)["message"], "There is no such prompt.", "{id}");
        }
    }
    for wrong in [json!(1), json!({ "id": own["id"] }), json!([own["id"]]), json!(true)] {
        let prompt = json!({ "promptId": wrong });
        let made = grace.post("/agents", &with(&body, &prompt)).await;
        assert_eq!(Refused::by(made).paths(), ["promptId"], "{wrong}");
        let changed = grace.patch(&path(&agent), &prompt).await;
        assert_eq!(Refused::by(changed).paths(), ["promptId"], "{wrong}");
    }
    // Nothing of a change is done when a part of it cannot be.
    let refused = json!({ "name": "renamed", "tags": [], "promptId": id(&hers) });
    unknown(grace.patch(&path(&agent), &refused).await);
    assert_eq!(grace.read("/agents").await, json!([unlinked(&given)]));

    let cleared = data(grace.patch(&path(&agent), &json!({ "promptId": null })).await);
    assert_eq!(cleared["promptId"], Value::Null);
    data(grace.patch(&path(&agent), &json!({ "promptId": id(&own) })).await);
    data(grace.delete(&format!("/prompts/{}", id(&own))).await);
    assert_eq!(grace.read(&path(&agent)).await["promptId"], Value::Null, "deleted while it was used");
    assert_eq!(ada.read("/prompts").await, json!([hers]));
}

async fn another_users_agents_do_not_exist(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = plain(&ada).await;
    let nobodys = format!("/agents/{}", Uuid::now_v7());
    for change in [json!({}), json!({ "name": "mine" }), json!({ "tags": ["x"], "promptId": "x" })] {
        let answer = unknown(grace.patch(&path(&hers), &change).await);
        assert_eq!(answer, unknown(grace.patch(&nobodys, &change).await), "{change}");
        assert_eq!(answer["message"], "There is no such agent.", "{change}");
    }
    assert_eq!(unknown(grace.get(&path(&hers)).await), unknown(grace.get(&nobodys).await));
    assert_eq!(unknown(grace.delete(&path(&hers)).await), unknown(grace.delete(&nobodys).await));
    let session = |agent: &str| format!("{agent}/sessions/a");
    assert_eq!(
        unknown(grace.delete(&session(&path(&hers))).await),
        unknown(grace.delete(&session(&nobodys)).await)
    );
    assert_eq!(ada.read("/agents").await, json!([unlinked(&hers)]));
}

/// That turns are gone is shown where they are stored.
async fn the_memory_of_a_session_is_erased_by_its_name(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = plain(&ada).await;
    let longest = "%C3%A9".repeat(1_000);
    for session in ["support-4711", "a%20b%2Fc%3F%23", "%F0%9F%99%82", "...", "%25", &longest] {
        // No session was ever held, which is as good as erased.
        let answer = ada.delete(&format!("{}/sessions/{session}", path(&agent))).await;
        assert_eq!(data(answer), Value::Null, "{session}");
    }
    for session in ["a%00b", &format!("{longest}a")] {
        let answer = ada.delete(&format!("{}/sessions/{session}", path(&agent))).await;
        assert_eq!(Refused::by(answer).paths(), ["session"], "{session}");
    }
    unknown(ada.delete(&format!("{}/sessions/%ff", path(&agent))).await);
    unknown(ada.delete(&format!("{}/sessions/", path(&agent))).await);
    unknown(ada.delete("/agents/none/sessions/a").await);
}
