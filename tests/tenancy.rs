//! What is one user's does not exist for another. That no id of another's is known anywhere is in `matrix/tenancy.rs`.

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{
    client::{Client, data, id},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    the_lists_of_a_new_user_are_empty,
    an_owner_and_an_id_cannot_be_chosen,
    an_agent_finds_nothing_of_another_user,
    the_same_text_of_two_users_is_cited_from_ones_own_document,
);

/// Ids of one of everything.
struct Belongings {
    document: String,
    agent: String,
    link: String,
    token: String,
    trace: String,
}

impl Belongings {
    /// Makes one of everything.
    async fn of(owner: &Client, text: &str) -> Self {
        let document = owner.ingest(&json!({ "name": "Note", "type": "TXT", "content": text })).await;
        let agent = owner.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
        let link = owner.link(id(&agent), id(&document)).await;
        let token = owner.create("/api-tokens", &json!({ "description": "a script's" })).await;
        let (_, trace) = ask(owner, id(&agent), text).await;
        let own = |thing: &Value| id(thing).to_owned();
        Self {
            document: own(&document),
            agent: own(&agent),
            link: own(&link),
            token: own(&token),
            trace: own(&trace),
        }
    }
}

async fn the_lists_of_a_new_user_are_empty(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = Belongings::of(&ada, "The gate opens at nine.").await;
    // A page may be asked for from anywhere: from what is another's too.
    let from = |id: &str| format!("?limit=200&cursor={id}");
    let last = Uuid::max().to_string();
    for (list, own) in [
        ("/documents", &hers.document),
        ("/agents", &hers.agent),
        ("/agent-documents", &hers.link),
        ("/api-tokens", &hers.token),
        ("/traces", &hers.trace),
    ] {
        for query in [String::new(), from(&last), from(own)] {
            assert_eq!(grace.read(&format!("{list}{query}")).await, json!([]), "{list}{query}");
        }
        assert_eq!(ada.read(list).await[0]["id"], own.as_str(), "{list} of its owner");
    }
}

async fn an_owner_and_an_id_cannot_be_chosen(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = Belongings::of(&ada, "The gate opens at nine.").await;
    let before = everything(&ada).await;

    let adas = ada.user()["id"].clone();
    for (path, existing, mut body) in [
        ("/documents", &hers.document, json!({ "name": "Note", "type": "TXT", "content": "text" })),
        ("/agents", &hers.agent, json!({ "name": "Clerk", "type": "REACT" })),
        ("/api-tokens", &hers.token, json!({ "description": "a script's" })),
    ] {
        for (name, value) in [("id", json!(existing)), ("userId", adas.clone()), ("user_id", adas.clone())] {
            body[name] = value;
        }
        body["user"] = ada.user().clone();
        let created = grace.create(path, &body).await;
        assert_ne!(id(&created), existing, "{path}");
        assert_eq!(created["userId"], grace.user()["id"], "{path}");
    }
    assert_eq!(everything(&ada).await, before);
}

async fn an_agent_finds_nothing_of_another_user(mode: Mode) {
    const QUESTION: &str = "At how many degrees does the zephyrine valve open?";
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = Belongings::of(&ada, "The zephyrine valve opens at 73 degrees.").await;
    let own = Belongings::of(&grace, "The gate closes at six.").await;
    let bare = grace.create_agent(&json!({ "name": "Without documents", "type": "CHATVENDOR" })).await;

    let (answer, _) = ask(&ada, &hers.agent, QUESTION).await;
    assert!(answer.contains("73 degrees"), "its owner finds it: {answer}");
    for agent in [own.agent.as_str(), id(&bare)] {
        let (answer, trace) = ask(&grace, agent, QUESTION).await;
        let all = format!("{answer} {trace}");
        assert!(!all.contains("73 degrees") && !all.contains(&hers.document), "{answer}\n{trace:#}");
        assert_eq!(trace["finishReason"], "declined", "{trace:#}");
    }
    let traces = grace.read("/traces").await.to_string();
    assert!(!traces.contains("73 degrees") && !traces.contains(&hers.document), "{traces}");
}

async fn the_same_text_of_two_users_is_cited_from_ones_own_document(mode: Mode) {
    const TEXT: &str = "The zephyrine valve opens at 73 degrees.";
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let (hers, own) = (Belongings::of(&ada, TEXT).await, Belongings::of(&grace, TEXT).await);

    data(ada.delete(&format!("/documents/{}", hers.document)).await);
    let (answer, trace) = ask(&grace, &own.agent, TEXT).await;
    assert!(answer.contains("73 degrees"), "{answer}");
    assert_eq!(trace["citations"][0]["documentId"], own.document.as_str(), "{trace:#}");
    let (answer, _) = ask(&ada, &hers.agent, TEXT).await;
    assert!(!answer.contains("73 degrees"), "what is deleted is gone for its owner: {answer}");
}

/// Asks with a sign-in, so that no API token is made or used: the answer and its trace.
async fn ask(client: &Client, agent: &str, question: &str) -> (String, Value) {
    let body = json!({ "input": { "input": question } });
    let (status, mut answer) = client.post(&format!("/agents/{agent}/predict"), &body).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    (answer["data"].as_str().expect("an answer").to_owned(), answer["trace"].take())
}

/// Everything that a user can see.
async fn everything(client: &Client) -> Value {
    let mut all = json!({ "/users/me": client.read("/users/me").await });
    for list in ["/documents", "/agents", "/agent-documents", "/api-tokens", "/traces"] {
        all[list] = client.read(list).await;
        for row in all[list].as_array().expect("a list").clone() {
            let path = format!("{list}/{}", id(&row));
            all[&path] = client.read(&path).await;
        }
    }
    for document in all["/documents"].as_array().expect("a list").clone() {
        let path = format!("/documents/{}/chunks", id(&document));
        all[&path] = client.read(&path).await;
    }
    all
}
