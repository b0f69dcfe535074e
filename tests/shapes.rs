//! Every answer has the fields of the interface, rightly typed.

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    bodies::NOWHERE,
    support::{
        client::{PASSWORD, data, id},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    a_user_has_the_fields_of_the_interface,
    an_api_token_has_the_fields_of_the_interface,
    a_document_has_the_fields_of_the_interface,
    an_agent_has_the_fields_of_the_interface,
    a_link_has_the_fields_of_the_interface
);

/// What a field has to be.
type Kind = (&'static str, fn(&Value) -> bool);

const ID: Kind = ("an id", |value| {
    let id = value.as_str().and_then(|text| Uuid::try_parse(text).ok().map(|id| (text, id)));
    id.is_some_and(|(text, id)| id.get_version_num() == 7 && id.hyphenated().to_string() == text)
});
const TEXT: Kind = ("a string", Value::is_string);
const BOOLEAN: Kind = ("true or false", Value::is_boolean);
const NUMBER: Kind = ("a number", Value::is_u64);
const ARRAY: Kind = ("an array", Value::is_array);
const NULL: Kind = ("null", Value::is_null);
const TIMESTAMP: Kind = ("a timestamp", is_timestamp);
const EMPTY: Kind = ("an empty object", |value| value.as_object().is_some_and(Map::is_empty));

const USER: &[(&str, Kind)] = &[
    ("id", ID),
    ("email", TEXT),
    ("name", TEXT),
    ("createdAt", TIMESTAMP),
    ("updatedAt", TIMESTAMP),
    ("deletedAt", NULL),
    ("profile", NULL),
    ("Agent", NULL),
    ("ApiToken", NULL),
    ("Document", NULL),
];
const TOKEN: &[(&str, Kind)] = &[("id", ID), ("userId", ID), ("description", TEXT), ("token", TEXT)];
const DOCUMENT: &[(&str, Kind)] = &[
    ("id", ID),
    ("userId", ID),
    ("user", EMPTY),
    ("name", TEXT),
    ("type", TEXT),
    ("url", TEXT),
    ("createdAt", TIMESTAMP),
    ("updatedAt", TIMESTAMP),
    ("Agent", NULL),
];
const AGENT: &[(&str, Kind)] = &[
    ("id", ID),
    ("userId", ID),
    ("user", EMPTY),
    ("name", TEXT),
    ("type", TEXT),
    ("tags", ARRAY),
    ("llm.model", TEXT),
    ("llm.provider", TEXT),
    ("hasMemory", BOOLEAN),
    ("AgentMemory", NULL),
    ("createdAt", TIMESTAMP),
    ("updatedAt", TIMESTAMP),
];
const LINK: &[(&str, Kind)] =
    &[("id", ID), ("agentId", ID), ("agent", EMPTY), ("documentId", ID), ("document", EMPTY)];
const INDEX: &[(&str, Kind)] = &[
    ("chunks", NUMBER),
    ("tokens", NUMBER),
    ("embeddingModel", NULL),
    ("dimensions", NULL),
    ("contentHash", TEXT),
    ("generation", ID),
    ("indexedAt", TIMESTAMP),
];
const INGESTION: &[(&str, Kind)] = &[
    ("status", TEXT),
    ("attempts", NUMBER),
    ("warnings", ARRAY),
    ("queuedAt", TIMESTAMP),
    ("startedAt", TIMESTAMP),
    ("finishedAt", TIMESTAMP),
];

async fn a_user_has_the_fields_of_the_interface(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let body = json!({ "email": "ada@example.com", "password": PASSWORD });
    let session = service.client().create("/auth/sign-in", &body).await;
    assert_fields(&session, &[("token", TEXT)]);
    for user in [&session["user"], ada.user(), &ada.read("/users/me").await] {
        assert_fields(user, USER);
        assert_fields(user, &[("isAdmin", BOOLEAN)]);
    }
    let shown = session.to_string();
    assert!(!shown.contains("argon2") && !shown.contains(PASSWORD), "{shown}");
}

async fn an_api_token_has_the_fields_of_the_interface(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let created = ada.create("/api-tokens", &json!({ "description": "for the build" })).await;
    let listed = ada.read("/api-tokens").await;
    let found = ada.read(&format!("/api-tokens/{}", id(&created))).await;
    let deleted = data(ada.delete(&format!("/api-tokens/{}", id(&created))).await);
    for token in [&created, &listed[0], &found, &deleted] {
        assert_fields(token, TOKEN);
        assert_fields(&token["user"], USER);
        assert_eq!(token["userId"], ada.user()["id"]);
    }
}

async fn a_document_has_the_fields_of_the_interface(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let create = async |kind: &str| {
        let body = json!({ "name": kind, "type": kind, "url": format!("{NOWHERE}/{kind}") });
        let created = ada.create_document(&body).await;
        assert_fields(&created, DOCUMENT);
        assert_eq!((&created["type"], &created["url"]), (&body["type"], &body["url"]));
        assert_eq!(created["name"], kind);
        assert_eq!(created["index"], Value::Null, "null until it can be searched");
        created
    };
    join_all(["TXT", "PDF", "VIDEO", "CSV", "URL"].map(create)).await;

    let note = json!({ "name": "Note", "type": "TXT", "content": "The gate opens at nine." });
    let note = ada.ingest(&note).await;
    assert_fields(&note, DOCUMENT);
    assert_eq!(note["content"], "The gate opens at nine.", "one gets back what one sent");
    assert_fields(&note["index"], INDEX);
    assert_eq!(note["index"]["status"], "READY");
    assert_eq!(note["index"]["chunks"], 1);
    assert_fields(&note["ingestion"], INGESTION);

    let listed = ada.read("/documents").await;
    assert_eq!(listed.as_array().map(Vec::len), Some(6));
    for document in listed.as_array().expect("a list") {
        assert_fields(document, DOCUMENT);
        assert_eq!(document["userId"], ada.user()["id"]);
        assert_eq!(document.get("content"), None, "a list does not carry every text");
    }
    let removed = ada.delete(&format!("/documents/{}", id(&note))).await;
    assert_eq!(data(removed), Value::Null);
}

async fn an_agent_has_the_fields_of_the_interface(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let llm = json!({ "model": "any-model", "provider": "openai-chat" });
    let body = json!({ "name": "Clerk", "type": "REACT", "llm": llm, "hasMemory": true, "tags": [] });
    let created = ada.create_agent(&body).await;
    let path = format!("/agents/{}", id(&created));
    let (found, listed) = (ada.read(&path).await, ada.read("/agents").await);
    for agent in [&created, &found, &listed[0]] {
        assert_fields(agent, AGENT);
        for field in ["name", "type", "llm", "hasMemory", "tags"] {
            assert_eq!(agent[field], body[field], "{field}");
        }
        assert_eq!(agent["userId"], ada.user()["id"]);
    }
    let single = &[("document", EMPTY), ("documentId", TEXT)];
    for agent in [&found, &listed[0]] {
        assert_fields(agent, single);
        assert_eq!(agent["documentId"], "", "nothing is linked");
    }
    for field in ["document", "documentId"] {
        assert_eq!(created.get(field), None, "{field} is in single and list answers only");
    }

    let note = |text: &str| json!({ "name": text, "type": "TXT", "content": text });
    let first = ada.create_document(&note("first")).await;
    let second = ada.create_document(&note("second")).await;
    ada.link(id(&created), id(&second)).await;
    ada.link(id(&created), id(&first)).await;
    for agent in [&ada.read(&path).await, &ada.read("/agents").await[0]] {
        assert_fields(agent, single);
        assert_eq!(agent["documentId"], second["id"], "the document that was linked first");
    }
    assert_eq!(data(ada.delete(&path).await), Value::Null);
}

async fn a_link_has_the_fields_of_the_interface(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    let document = ada.create_document(&json!({ "name": "Note", "type": "TXT", "content": "text" })).await;
    let created = ada.link(id(&agent), id(&document)).await;
    assert_fields(&created, &[("user", EMPTY)]);
    let path = format!("/agent-documents/{}", id(&created));
    let found = ada.read(&path).await;
    assert_eq!(found.get("user"), None, "only the answer to a create carries it");
    let listed = ada.read(&format!("/agent-documents?agentId={}", id(&agent))).await;
    for link in [&created, &found, &listed[0]] {
        assert_fields(link, LINK);
        assert_eq!((&link["agentId"], &link["documentId"]), (&agent["id"], &document["id"]));
    }

    assert_eq!(ada.link(id(&agent), id(&document)).await["id"], created["id"], "linked twice is linked once");
    assert_eq!(data(ada.delete(&path).await), Value::Null);
    assert_eq!(ada.get(&path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ada.read("/agent-documents").await, json!([]));
}

/// Checks that the fields are there and of their kinds; a dot leads into an object.
fn assert_fields(thing: &Value, fields: &[(&str, Kind)]) {
    for (field, (kind, is_kind)) in fields {
        let value = thing.pointer(&format!("/{}", field.replace('.', "/")));
        let value = value.unwrap_or_else(|| panic!("no {field} in {thing:#}"));
        assert!(is_kind(value), "{field} is {value}, which is not {kind}");
    }
}

/// Whether it has exactly the form `2026-01-31T23:59:59.123456+00:00`.
pub fn is_timestamp(value: &Value) -> bool {
    let shape = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
    value.as_str().is_some_and(|text| shape(text) == "0000-00-00T00:00:00.000000+00:00")
}
