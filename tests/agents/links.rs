//! Which documents an agent answers from.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{plain, unknown};
use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, envelope, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    a_document_is_linked_shown_and_unlinked,
    the_same_pair_is_linked_once,
    links_are_listed_for_all_agents_or_one,
    neither_end_of_a_link_is_another_users,
    a_link_that_is_created_again_with_the_same_key_is_the_first_one,
    an_agent_has_sixty_four_tools_at_most,
);

async fn note(client: &Client) -> Value {
    let body = json!({ "name": "Note", "type": "TXT", "content": "The gate opens at nine." });
    client.create_document(&body).await
}

fn path(link: &Value) -> String {
    format!("/agent-documents/{}", id(link))
}

fn pair(agent: &Value, document: &Value) -> Value {
    json!({ "agentId": agent["id"], "documentId": document["id"] })
}

/// The link as every answer but the first shows it.
fn without_user(mut link: Value) -> Value {
    let user = link.as_object_mut().expect("an object").remove("user");
    assert_eq!(user, Some(json!({})), "the answer to a create carries it");
    link
}

async fn a_document_is_linked_shown_and_unlinked(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (agent, document) = (plain(&ada).await, note(&ada).await);
    let made = without_user(ada.create("/agent-documents", &pair(&agent, &document)).await);
    let mut fields: Vec<_> = made.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["agent", "agentId", "createdAt", "document", "documentId", "id", "userId"]);
    assert_eq!((&made["agentId"], &made["documentId"]), (&agent["id"], &document["id"]));
    assert_eq!((&made["agent"], &made["document"]), (&json!({}), &json!({})));
    assert_eq!(made["userId"], ada.user()["id"]);
    assert_eq!(ada.read(&path(&made)).await, made);
    assert_eq!(ada.read("/agent-documents").await, json!([made]));
    let agent_path = format!("/agents/{}", id(&agent));
    let linked = ada.read(&agent_path).await;
    assert_eq!(linked["documentId"], document["id"]);
    assert_eq!(linked["updatedAt"], agent["updatedAt"], "its owner has changed nothing of it");

    assert_eq!(data(ada.delete(&path(&made)).await), Value::Null);
    for answer in [ada.get(&path(&made)).await, ada.delete(&path(&made)).await] {
        unknown(answer);
    }
    assert_eq!(ada.patch(&path(&made), &json!({})).await.0, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(ada.read(&agent_path).await["documentId"], "");
    ada.read(&format!("/documents/{}", id(&document))).await;

    // A link goes with either of its ends.
    let again = ada.create("/agent-documents", &pair(&agent, &document)).await;
    assert_ne!(again["id"], made["id"]);
    data(ada.delete(&agent_path).await);
    unknown(ada.get(&path(&again)).await);
    let other = plain(&ada).await;
    let last = ada.create("/agent-documents", &pair(&other, &document)).await;
    data(ada.delete(&format!("/documents/{}", id(&document))).await);
    unknown(ada.get(&path(&last)).await);
    assert_eq!(ada.read("/agent-documents").await, json!([]));
}

async fn the_same_pair_is_linked_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (agent, document) = (plain(&ada).await, note(&ada).await);
    let pair = pair(&agent, &document);
    let links = join_all((0..8).map(|_| ada.create("/agent-documents", &pair))).await;
    for link in &links {
        assert_eq!(link, &links[0]);
    }
    assert_eq!(ada.create("/agent-documents", &pair).await, links[0]);
    assert_eq!(ada.read("/agent-documents").await.as_array().map(Vec::len), Some(1));
}

async fn links_are_listed_for_all_agents_or_one(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (a, b) = (plain(&ada).await, plain(&ada).await);
    let mut links = Vec::new();
    for agent in [&a, &b, &a] {
        let made = ada.create("/agent-documents", &pair(agent, &note(&ada).await)).await;
        links.push(without_user(made));
    }
    let [first, second, third] = &links[..] else { panic!("{links:?}") };
    assert_eq!(ada.read("/agent-documents").await, json!([third, second, first]), "newest first");
    let of = |agent: &Value| format!("/agent-documents?agentId={}", id(agent));
    assert_eq!(ada.read(&of(&a)).await, json!([third, first]));
    assert_eq!(ada.read(&of(&b)).await, json!([second]));
    let (_, page) = ada.get(&format!("{}&limit=1", of(&a))).await;
    assert_eq!(page["data"], json!([third]));
    let cursor = page["nextCursor"].as_str().expect("a cursor");
    assert_eq!(ada.read(&format!("{}&limit=1&cursor={cursor}", of(&a))).await, json!([first]));
}

async fn neither_end_of_a_link_is_another_users(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let (her_agent, her_document) = (plain(&ada).await, note(&ada).await);
    let hers = without_user(ada.create("/agent-documents", &pair(&her_agent, &her_document)).await);
    let (agent, document) = (plain(&grace).await, note(&grace).await);
    let nobody = json!({ "id": Uuid::now_v7().to_string() });
    let none = json!({ "id": "none" });
    for (agent, document) in [
        (&her_agent, &document),
        (&agent, &her_document),
        (&her_agent, &her_document),
        (&nobody, &document),
        (&agent, &nobody),
        (&none, &document),
        (&agent, &none),
        (&document, &agent),
    ] {
        unknown(grace.post("/agent-documents", &pair(agent, document)).await);
    }
    for (body, named) in [
        (json!({}), &["agentId", "documentId"][..]),
        (json!({ "agentId": null, "documentId": 5 }), &["agentId", "documentId"]),
        (json!({ "agentId": agent["id"], "documentId": [document["id"]] }), &["documentId"]),
    ] {
        assert_eq!(Refused::by(grace.post("/agent-documents", &body).await).paths(), named, "{body}");
    }
    assert_eq!(grace.read("/agent-documents").await, json!([]));
    let nobodys = path(&nobody);
    assert_eq!(unknown(grace.get(&path(&hers)).await), unknown(grace.get(&nobodys).await));
    assert_eq!(unknown(grace.delete(&path(&hers)).await), unknown(grace.delete(&nobodys).await));
    for agent in [id(&her_agent), id(&nobody), "none", ""] {
        unknown(grace.get(&format!("/agent-documents?agentId={agent}")).await);
    }
    assert_eq!(ada.read("/agent-documents").await, json!([hers]));
}

async fn a_link_that_is_created_again_with_the_same_key_is_the_first_one(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (agent, document) = (plain(&ada).await, note(&ada).await);
    let create = async |body: &Value| {
        let request = ada.request(Method::POST, "/agent-documents").header("Idempotency-Key", "once");
        envelope(send(request.json(body)).await).await
    };
    let made = data(create(&pair(&agent, &document)).await);
    data(ada.delete(&path(&made)).await);
    assert_eq!(data(create(&pair(&agent, &document)).await), made);
    assert_eq!(ada.read("/agent-documents").await, json!([]), "it is answered, not linked again");
    assert_eq!(create(&pair(&agent, &note(&ada).await)).await.0, StatusCode::CONFLICT);
}

async fn an_agent_has_sixty_four_tools_at_most(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = plain(&ada).await;
    let tool = json!({ "name": "sum", "type": "COMPUTE_ALPHA", "metadata": { "app_id": "key" } });
    let mut links = Vec::new();
    for _ in 0..64 {
        let made = ada.create("/tools", &tool).await;
        let pair = json!({ "agentId": agent["id"], "toolId": made["id"] });
        links.push((ada.create("/agent-tools", &pair).await, pair));
    }
    let made = ada.create("/tools", &tool).await;
    let pair = json!({ "agentId": agent["id"], "toolId": made["id"] });
    let refused = Refused::by(ada.post("/agent-tools", &pair).await);
    assert_eq!(refused.paths(), ["toolId"]);
    assert!(refused.message("toolId").contains("64"), "{refused:?}");
    // One that is linked already stays so, and one that goes makes room.
    let (first, same) = &links[0];
    assert_eq!(ada.create("/agent-tools", same).await["id"], first["id"]);
    data(ada.delete(&format!("/agent-tools/{}", id(first))).await);
    ada.create("/agent-tools", &pair).await;
}
