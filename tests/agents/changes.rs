//! What a change of an agent does, and what it leaves alone.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{path, plain, prompt, tag, unlinked, with};
use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, envelope, id, send},
        in_both_modes,
        model::{API_KEY, Model, Reply},
        service::{Mode, Service},
    },
};

in_both_modes!(
    each_field_is_changed_alone,
    what_cannot_be_set_or_emptied_is_refused_by_name,
    a_model_is_replaced_whole_and_checked_as_a_new_one,
    a_masked_key_that_comes_back_is_the_stored_one,
    changes_of_different_fields_at_once_are_all_kept,
    whatever_goes_while_it_is_given_to_an_agent_is_unknown,
);

async fn each_field_is_changed_alone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (prompt, urgent, later) = (prompt(&ada).await, tag(&ada, "urgent").await, tag(&ada, "later").await);
    let body = json!({
        "name": "Clerk", "type": "REACT", "description": "knows the files", "hasMemory": true,
        "llm": { "model": "any-model", "provider": "openai-chat" }, "promptId": id(&prompt), "tags": [urgent],
    });
    let mut agent = ada.create_agent(&body).await;
    assert_eq!(
        unlinked(&data(ada.patch(&path(&agent), &json!({})).await)),
        unlinked(&agent),
        "nothing of it, the time neither"
    );
    for (field, value, shown) in [
        ("name", json!("Ünders"), json!("Ünders")),
        ("type", json!("CHATVENDOR"), json!("CHATVENDOR")),
        ("description", json!("decides"), json!("decides")),
        ("description", Value::Null, json!("")),
        ("hasMemory", json!(false), json!(false)),
        (
            "llm",
            json!({ "model": "m", "provider": "groq", "base_url": null, "temperature": 1, "max_tokens": "20" }),
            json!({ "model": "m", "provider": "groq", "temperature": 1.0, "max_tokens": 20 }),
        ),
        ("llm", json!({ "model": "n", "provider": "groq" }), json!({ "model": "n", "provider": "groq" })),
        ("promptId", Value::Null, Value::Null),
        ("promptId", prompt["id"].clone(), prompt["id"].clone()),
        ("tags", json!([later["id"], urgent]), json!([later, urgent])),
        ("tags", Value::Null, json!([])),
    ] {
        let changed = data(ada.patch(&path(&agent), &json!({ field: value })).await);
        assert_eq!(changed[field], shown, "{field}");
        assert!(agent["updatedAt"].as_str() < changed["updatedAt"].as_str(), "{field}");
        let expected = with(&agent, &json!({ field: shown, "updatedAt": changed["updatedAt"] }));
        assert_eq!(unlinked(&changed), unlinked(&expected), "{field}");
        assert_eq!(ada.read(&path(&agent)).await, unlinked(&expected), "{field}");
        agent = expected;
    }
}

async fn what_cannot_be_set_or_emptied_is_refused_by_name(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = plain(&ada).await;
    let too_long = "x".repeat(10_001);
    for (change, named) in [
        (json!({ "id": agent["id"] }), &["id"][..]),
        (json!({ "userId": agent["userId"], "user": {} }), &["user", "userId"]),
        (
            json!({ "createdAt": agent["createdAt"], "updatedAt": agent["updatedAt"] }),
            &["createdAt", "updatedAt"],
        ),
        (
            json!({ "AgentMemory": null, "documentId": "", "document": {}, "version": 7 }),
            &["AgentMemory", "document", "documentId", "version"],
        ),
        (json!({ "has_memory": true, "name": "renamed" }), &["has_memory"]),
        (json!({ "a\0b": 1 }), &["a\0b", "a\u{fffd}b"]),
        (
            json!({ "name": null, "type": null, "llm": null, "hasMemory": null }),
            &["hasMemory", "llm", "name", "type"],
        ),
        (
            json!({ "name": " ", "type": "OTHER", "llm": "m", "hasMemory": "yes", "description": 5, "tags": 1 }),
            &["description", "hasMemory", "llm", "name", "tags", "type"],
        ),
        (json!({ "description": too_long }), &["description"]),
    ] {
        assert_eq!(Refused::by(ada.patch(&path(&agent), &change).await).paths(), named, "{change}");
    }
    for body in ["[]", "5", "null", "\"name\""] {
        let request = ada.request(Method::PATCH, &path(&agent)).header("Content-Type", "application/json");
        let (status, answer) = envelope(send(request.body(body)).await).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {answer:#}");
    }
    assert_eq!(ada.read(&path(&agent)).await, unlinked(&agent));
}

async fn a_model_is_replaced_whole_and_checked_as_a_new_one(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let llm = json!({
        "model": "m", "provider": "openai-compatible", "base_url": "https://models.example/v1/", "temperature": 0.5,
        "max_tokens": 200,
    });
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "REACT", "llm": llm })).await;
    assert_eq!(agent["llm"], llm);
    for (llm, named) in [
        (json!({}), &["llm.model", "llm.provider"][..]),
        (json!({ "model": "other" }), &["llm.provider"]),
        (json!({ "provider": "groq" }), &["llm.model"]),
        (json!({ "model": "other", "provider": "openai-compatible" }), &["llm.base_url"]),
        (json!({ "model": "other", "provider": "nobody" }), &["llm.provider"]),
        (
            json!({ "model": " ", "provider": "groq", "temperature": 3, "max_tokens": 0, "api_key": 5 }),
            &["llm.api_key", "llm.max_tokens", "llm.model", "llm.temperature"],
        ),
    ] {
        let refused = Refused::by(ada.patch(&path(&agent), &json!({ "llm": llm })).await);
        assert_eq!(refused.paths(), named, "{llm}");
    }
    assert_eq!(ada.read(&path(&agent)).await["llm"], llm);
    let other = json!({ "model": "other", "provider": "groq" });
    let changed = data(ada.patch(&path(&agent), &json!({ "llm": other })).await);
    assert_eq!(changed["llm"], other, "what the new one does not say is gone");
}

/// The key that the model was sent, when it was asked last.
pub async fn key_sent(ada: &Client, model: &Model, agent: &Value) -> Option<String> {
    model.reply(Reply::text("Well."));
    let (status, answer) = ada.predict(id(agent), "Anything?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    let asked = model.requests().pop().expect("a request");
    let bearer = asked.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    bearer.map(ToOwned::to_owned).filter(|key| !key.is_empty())
}

async fn a_masked_key_that_comes_back_is_the_stored_one(mode: Mode) {
    const NEW: &str = "sk-test-aaaabbbbccccdddd";
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let body = json!({ "name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m") });
    let agent = ada.create_agent(&body).await;
    assert_eq!(agent["llm"]["api_key"], "sk…4b0c");
    assert_eq!(key_sent(&ada, &model, &agent).await.as_deref(), Some(API_KEY));

    let change =
        async |llm: &Value| data(ada.patch(&path(&agent), &json!({ "llm": llm })).await)["llm"].take();
    // Read, changed and sent back.
    let read = ada.read(&path(&agent)).await["llm"].take();
    let kept = change(&with(&read, &json!({ "model": "other" }))).await;
    assert_eq!((&kept["model"], &kept["api_key"]), (&json!("other"), &json!("sk…4b0c")));
    assert_eq!(key_sent(&ada, &model, &agent).await.as_deref(), Some(API_KEY));
    assert_eq!(model.bodies().pop().expect("a request")["model"], "other");
    // As an earlier version masked it.
    let kept = change(&with(&read, &json!({ "api_key": "sk-…4b0c" }))).await;
    assert_eq!(kept["api_key"], read["api_key"]);
    assert_eq!(key_sent(&ada, &model, &agent).await.as_deref(), Some(API_KEY));

    let replaced = change(&with(&read, &json!({ "api_key": NEW }))).await;
    assert_eq!(replaced["api_key"], "sk…dddd", "a new one is masked anew");
    assert_eq!(key_sent(&ada, &model, &agent).await.as_deref(), Some(NEW));
    data(ada.patch(&path(&agent), &json!({ "name": "renamed" })).await);
    assert_eq!(key_sent(&ada, &model, &agent).await.as_deref(), Some(NEW), "other changes leave it alone");

    for without in [json!({ "api_key": null }), json!({ "api_key": " " })] {
        change(&with(&read, &json!({ "api_key": NEW }))).await;
        let dropped = change(&with(&read, &without)).await;
        assert_eq!(dropped.get("api_key"), None, "{without}");
    }
    assert_ne!(key_sent(&ada, &model, &agent).await.as_deref(), Some(NEW));
    assert_eq!(ada.read(&path(&agent)).await["llm"].get("api_key"), None);
    // The mask of a key that is not there any more, or never was, is no key.
    let other = json!({ "name": "Judge", "type": "REACT", "llm": read });
    for refused in [
        ada.patch(&path(&agent), &json!({ "llm": read })).await,
        ada.post("/agents", &other).await,
        ada.patch(&path(&agent), &json!({ "llm": with(&read, &json!({ "api_key": "sk-\n" })) })).await,
        ada.patch(&path(&agent), &json!({ "llm": with(&read, &json!({ "api_key": "schlüssel" })) })).await,
    ] {
        assert_eq!(Refused::by(refused).paths(), ["llm.api_key"]);
    }
    service.assert_no_secret_in_logs(&[API_KEY, NEW]);
}

async fn changes_of_different_fields_at_once_are_all_kept(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (prompt, urgent) = (prompt(&ada).await, tag(&ada, "urgent").await);
    let agent = plain(&ada).await;
    for round in 0..5 {
        let odd = round % 2 == 1;
        let changes = [
            json!({ "name": format!("round {round}") }),
            json!({ "description": format!("{round}") }),
            json!({ "type": if odd { "REACT" } else { "CHATVENDOR" } }),
            json!({ "hasMemory": odd }),
            json!({ "llm": { "model": format!("model-{round}"), "provider": "groq" } }),
            json!({ "promptId": if odd { Value::Null } else { prompt["id"].clone() } }),
            json!({ "tags": if odd { json!([]) } else { json!([urgent]) } }),
        ];
        let agent = path(&agent);
        join_all(changes.iter().map(async |change| data(ada.patch(&agent, change).await))).await;
        let read = ada.read(&agent).await;
        for change in &changes {
            for (field, value) in change.as_object().expect("an object") {
                assert_eq!(&read[field], value, "{field} in round {round}");
            }
        }
    }
}

/// Whoever is quicker, nobody is told that the service failed.
async fn whatever_goes_while_it_is_given_to_an_agent_is_unknown(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let note = json!({ "name": "Note", "type": "TXT", "content": "The gate opens at nine." });
    for _ in 0..5 {
        let (prompt, urgent) = (prompt(&ada).await, tag(&ada, "urgent").await);
        let (agent, other) = (plain(&ada).await, plain(&ada).await);
        let document = ada.create_document(&note).await;
        let kept = ada.link(id(&other), id(&document)).await;
        let given = json!({ "promptId": prompt["id"], "tags": [urgent] });
        let new = with(&json!({ "name": "Judge", "type": "REACT" }), &given);
        let link = json!({ "agentId": agent["id"], "documentId": document["id"] });
        let (tag, prompt) = (format!("/tags/{}", id(&urgent)), format!("/prompts/{}", id(&prompt)));
        let requests = [
            (Method::PATCH, path(&agent), given.clone()),
            (Method::PATCH, path(&other), given),
            (Method::DELETE, tag.clone(), Value::Null),
            (Method::POST, "/agents".to_owned(), new.clone()),
            (Method::PATCH, prompt.clone(), json!({ "name": "renamed" })),
            (Method::PATCH, path(&other), json!({ "tags": [] })),
            (Method::POST, "/agent-documents".to_owned(), link.clone()),
            (Method::DELETE, prompt, Value::Null),
            (Method::PATCH, tag, json!({ "name": "renamed" })),
            (Method::DELETE, path(&agent), Value::Null),
            (Method::DELETE, format!("/agent-documents/{}", id(&kept)), Value::Null),
            (Method::POST, "/agents".to_owned(), new),
            (Method::POST, "/agent-documents".to_owned(), link),
            (Method::DELETE, path(&other), Value::Null),
        ];
        let answers = join_all(requests.iter().map(async |(method, path, body)| {
            let request = ada.request(method.clone(), path);
            let request = if body.is_null() { request } else { request.json(body) };
            envelope(send(request).await).await
        }))
        .await;
        for ((method, path, _), (status, answer)) in requests.iter().zip(answers) {
            assert!(matches!(status.as_u16(), 200 | 404), "{method} {path}: {answer:#}");
        }
        let agents = ada.read("/agents").await;
        for agent in agents.as_array().expect("a list") {
            assert_eq!((&agent["promptId"], &agent["tags"]), (&Value::Null, &json!([])), "{agent:#}");
        }
    }
    let errors: Vec<_> = service.log_events().into_iter().filter(|event| event["level"] == "ERROR").collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
