//! What people take along of what is kept of them.

use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::text;
use crate::support::{
    client::{Client, data, envelope, id, send},
    in_both_modes, on_postgres_too,
    service::{Mode, Service},
};

in_both_modes!(one_takes_along_what_is_kept_of_oneself_and_nothing_of_others);
on_postgres_too!(one_takes_along_what_is_kept_of_oneself_and_nothing_of_others);

const EXPORT: &str = "/users/me/export";

/// Everything that an export says.
async fn exported(client: &Client) -> String {
    let answer = send(client.request(Method::GET, EXPORT)).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/x-ndjson");
    answer.text().await.expect("lines")
}

/// The lines of an export that are of one type.
fn of_type(lines: &str, kind: &str) -> Vec<Value> {
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    lines.filter(|line| line["type"] == kind).collect()
}

async fn ask(client: &Client, agent: &str, session: &str, question: &str) -> String {
    let body = json!({ "input": { "input": question }, "session": session });
    let (status, answer) = client.post(&format!("/agents/{agent}/predict"), &body).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    text(&answer["trace"]["id"]).to_owned()
}

async fn one_takes_along_what_is_kept_of_oneself_and_nothing_of_others(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let bob = service.signed_up("bob@example.com").await;
    let team = ada.create("/workspaces", &json!({ "name": "Harbour" })).await;
    let inside = ada.in_workspace(id(&team));
    let path = format!("/workspaces/{}/invitations", id(&team));
    let invitation = inside.create(&path, &json!({ "role": "builder" })).await;
    data(bob.post("/invitations/accept", &json!({ "token": invitation["token"] })).await);
    let bob = bob.in_workspace(id(&team));
    let agent = json!({ "name": "Clerk", "type": "CHATVENDOR", "hasMemory": true });
    let agent = inside.create_agent(&agent).await;
    let document = json!({ "name": "Gate", "type": "TXT", "content": "The gate opens at nine." });
    inside.link(id(&agent), id(&inside.ingest(&document).await)).await;
    let token = inside.create("/api-tokens", &json!({ "description": "Ada's script" })).await;
    bob.create("/api-tokens", &json!({ "description": "Bob's script" })).await;
    let trace = ask(&inside, id(&agent), "a-talk", "When does the gate open?").await;
    ask(&bob, id(&agent), "a-talk", "Who opens the gate for Bob?").await;
    let feedback = json!({ "rating": 1, "text": "At once." });
    data(inside.post(&format!("/traces/{trace}/feedback"), &feedback).await);

    let lines = exported(&ada).await;
    let account = of_type(&lines, "account");
    assert_eq!(account[0]["email"], "ada@example.com", "{lines}");
    let workspaces = of_type(&lines, "workspace");
    assert_eq!(workspaces.len(), 2, "{lines}");
    assert!(workspaces.iter().any(|line| line["name"] == "Harbour" && line["role"] == "owner"), "{lines}");
    let tokens = of_type(&lines, "apiToken");
    assert_eq!((tokens.len(), &tokens[0]["description"]), (1, &json!("Ada's script")), "{lines}");
    assert!(!lines.contains(text(&token["token"])), "the value of a token opens what it is for");
    let turns = of_type(&lines, "turn");
    assert_eq!((turns.len(), &turns[0]["session"]), (1, &json!("a-talk")), "{lines}");
    assert_eq!(turns[0]["question"], "When does the gate open?", "{lines}");
    let traces = of_type(&lines, "trace");
    assert_eq!((traces.len(), &traces[0]["id"]), (1, &json!(trace)), "{lines}");
    assert_eq!(traces[0]["question"], "When does the gate open?", "{lines}");
    assert_eq!(traces[0]["feedback"]["text"], "At once.", "{lines}");
    assert!(!lines.contains("Bob") && !lines.contains("bob@"), "{lines}");

    let by_token = inside.with_token(text(&token["token"]));
    let (status, refused) = envelope(send(by_token.request(Method::GET, EXPORT)).await).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (StatusCode::FORBIDDEN, &json!("sign_in_required")),
        "{refused:#}"
    );
    let log = ada.read(&format!("/workspaces/{}/audit", id(ada.user()))).await;
    let is_export = |line: &Value| line["action"] == "exported" && line["target"]["kind"] == "user";
    assert!(log.as_array().expect("a list").iter().any(is_export), "{log:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_in_an_export_once_however_much_there_is() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = json!({ "name": "Clerk", "type": "CHATVENDOR", "hasMemory": true });
    let agent = ada.create_agent(&agent).await;
    let document = json!({ "name": "Gate", "type": "TXT", "content": "The gate opens at nine." });
    ada.link(id(&agent), id(&ada.ingest(&document).await)).await;
    // More than are read at a time, and no multiple of that.
    let sessions: Vec<_> = (0..13).map(|number| format!("talk {number}")).collect();
    for session in &sessions {
        ask(&ada, id(&agent), session, "When does the gate open?").await;
    }
    let lines = exported(&ada).await;
    for kind in ["turn", "trace"] {
        let told = of_type(&lines, kind);
        let told: Vec<_> = told.iter().rev().map(|line| text(&line["session"])).collect();
        assert_eq!(told, sessions, "every {kind}, the newest first");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_cannot_be_begun_without_end() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let bob = service.signed_up("bob@example.com").await;
    let mut statuses = Vec::new();
    // As many as one may begin in a minute, and as many again, which take no minute.
    for _ in 0..20 {
        statuses.push(send(ada.request(Method::GET, EXPORT)).await.status());
    }
    assert_eq!(statuses[..10], [StatusCode::OK; 10]);
    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    exported(&bob).await;
}
