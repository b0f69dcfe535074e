//! What is one user's does not exist for another.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::client::{Client, data, envelope, id, send};
use crate::support::in_both_modes;
use crate::support::service::{Mode, Service};

in_both_modes!(
    another_users_ids_are_unknown_in_every_path_and_body,
    ones_own_things_cannot_be_joined_with_another_users,
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

    /// Ids of nothing.
    fn of_nobody() -> Self {
        let [document, agent, link, token, trace] = std::array::from_fn(|_| Uuid::now_v7().to_string());
        Self { document, agent, link, token, trace }
    }

    /// Every request that names one of the ids, in an order in which their owner can make all of them.
    fn requests(&self) -> Vec<(Method, String, Option<Value>)> {
        let Self { document, agent, link, token, trace } = self;
        let question = json!({ "input": { "input": "Well?" } });
        let pair = json!({ "agentId": agent, "documentId": document });
        vec![
            (Method::GET, format!("/documents/{document}"), None),
            (Method::GET, format!("/documents/{document}/chunks"), None),
            (Method::GET, format!("/agents/{agent}"), None),
            (Method::GET, format!("/agent-documents/{link}"), None),
            (Method::GET, format!("/agent-documents?agentId={agent}"), None),
            (Method::GET, format!("/api-tokens/{token}"), None),
            (Method::GET, format!("/traces/{trace}"), None),
            (Method::GET, format!("/traces?agentId={agent}"), None),
            (Method::POST, format!("/agents/{agent}/predict"), Some(question)),
            (Method::POST, "/agent-documents".to_owned(), Some(pair)),
            (Method::POST, format!("/documents/{document}/ingest"), Some(json!({}))),
            (Method::POST, format!("/documents/{document}/cancel"), Some(json!({}))),
            (Method::DELETE, format!("/agent-documents/{link}"), None),
            (Method::DELETE, format!("/api-tokens/{token}"), None),
            (Method::DELETE, format!("/documents/{document}"), None),
            (Method::DELETE, format!("/agents/{agent}"), None),
        ]
    }
}

async fn another_users_ids_are_unknown_in_every_path_and_body(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = Belongings::of(&ada, "The gate opens at nine.").await;
    Belongings::of(&grace, "The gate closes at six.").await;
    let before = everything(&ada).await;

    let token = grace.create("/api-tokens", &json!({ "description": "another script's" })).await;
    let script = grace.with_token(token["token"].as_str().expect("a value"));
    for other in [&grace, &script] {
        for (request, unknown) in hers.requests().iter().zip(Belongings::of_nobody().requests()) {
            let (method, path, _) = request;
            let (status, answer) = make(other, request).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {answer:#}");
            let (_, nobodys) = make(other, &unknown).await;
            assert_eq!(answer["error"], nobodys["error"], "{method} {path} tells that it is somebody's");
        }
        let (status, _) = other.predict(&hers.agent, "Well?").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    assert_eq!(everything(&ada).await, before, "and nothing has changed");

    for request in hers.requests() {
        let (status, answer) = make(&ada, &request).await;
        assert_eq!(status, StatusCode::OK, "its owner can {} {}: {answer:#}", request.0, request.1);
    }
}

async fn ones_own_things_cannot_be_joined_with_another_users(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = Belongings::of(&ada, "The gate opens at nine.").await;
    let own = Belongings::of(&grace, "The gate closes at six.").await;
    let (adas, graces) = (everything(&ada).await, everything(&grace).await);

    for (agent, document) in [
        (&hers.agent, &own.document),
        (&own.agent, &hers.document),
        (&hers.agent, &hers.document),
        // An id of another kind is as unknown as one of nobody's.
        (&own.document, &own.agent),
        (&own.agent, &hers.link),
    ] {
        let pair = json!({ "agentId": agent, "documentId": document });
        let (status, answer) = grace.post("/agent-documents", &pair).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{pair}: {answer:#}");
    }
    assert_eq!((everything(&ada).await, everything(&grace).await), (adas, graces));
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

async fn make(
    client: &Client,
    (method, path, body): &(Method, String, Option<Value>),
) -> (StatusCode, Value) {
    let request = client.request(method.clone(), path);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    envelope(send(request).await).await
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
