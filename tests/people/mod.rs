//! Several people in one workspace: what each of them may do there, sees of the others, and loses when their role or their
//! membership ends.

mod collections;
mod needs;
mod quotas;
mod roles;
mod sharing;
mod tokens;
mod traces;
mod webhooks;
mod workspaces;

use std::time::Duration;

use lectern_shared::clock::Clock;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    client::{Client, data, id},
    service::Service,
    within_deadline,
};

/// A workspace that somebody has made for several people.
pub(crate) struct Team {
    /// Its id.
    workspace: String,
    /// Whoever made it, in it.
    owner: Client,
}

impl Team {
    /// Makes a workspace.
    pub(crate) async fn of(founder: &Client, name: &str) -> Self {
        let made = founder.create("/workspaces", &json!({ "name": name })).await;
        let workspace = id(&made).to_owned();
        Self { owner: founder.in_workspace(&workspace), workspace }
    }

    /// A path below the workspace's own.
    fn path(&self, rest: &str) -> String {
        format!("/workspaces/{}{rest}", self.workspace)
    }

    /// The path of a member.
    fn member(&self, person: &Client) -> String {
        self.path(&format!("/members/{}", user_id(person)))
    }

    /// Invites whoever has the token, which is returned.
    async fn invite(&self, role: &str) -> String {
        let invitation = self.owner.create(&self.path("/invitations"), &json!({ "role": role })).await;
        invitation["token"].as_str().expect("the invitation's token").to_owned()
    }

    /// Makes somebody a member, who is in the workspace then.
    async fn join(&self, person: &Client, role: &str) -> Client {
        accept(person, &self.invite(role).await).await;
        person.in_workspace(&self.workspace)
    }

    /// Makes an account, and a member of it.
    pub(crate) async fn joined(&self, service: &Service, name: &str, role: &str) -> Client {
        let person = service.signed_up(&format!("{name}@example.com")).await;
        self.join(&person, role).await
    }

    /// Gives a member another role.
    pub(crate) async fn give(&self, person: &Client, role: &str) {
        let changed = data(self.owner.patch(&self.member(person), &json!({ "role": role })).await);
        assert_eq!(changed["role"], role, "{changed:#}");
    }

    /// Removes a member.
    async fn remove(&self, person: &Client) {
        data(self.owner.delete(&self.member(person)).await);
    }
}

/// The id of somebody's account.
fn user_id(person: &Client) -> &str {
    id(person.user())
}

/// Accepts an invitation, and returns the workspace.
async fn accept(person: &Client, token: &str) -> Value {
    person.create("/invitations/accept", &json!({ "token": token })).await
}

/// Makes an API token, and returns its value.
async fn api_token(maker: &Client, fields: Value) -> String {
    let mut body = json!({ "description": "a script's" });
    for (name, value) in fields.as_object().expect("fields") {
        body[name] = value.clone();
    }
    let token = maker.create("/api-tokens", &body).await;
    token["token"].as_str().expect("the token's value").to_owned()
}

/// An API token that was good for a moment.
async fn expired_token(maker: &Client) -> String {
    let end = Clock::system().now().plus(Duration::from_secs(1));
    let token = api_token(maker, json!({ "expiresAt": end.to_string() })).await;
    let script = maker.with_token(&token);
    let ended = async {
        while script.get("/agents").await.0 != StatusCode::UNAUTHORIZED {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    within_deadline("an API token to end", ended).await;
    token
}

/// Fails unless an answer is a refusal with this status and code.
#[track_caller]
fn assert_refused((status, body): &(StatusCode, Value), expected: u16, code: &str) {
    assert_eq!((status.as_u16(), &body["error"]["code"]), (expected, &json!(code)), "{body:#}");
}

/// Fails unless an answer says that there is no such workspace as the request's header names, or its path.
#[track_caller]
fn assert_no_workspace((status, body): &(StatusCode, Value)) {
    assert_eq!(*status, StatusCode::NOT_FOUND, "{body:#}");
    assert_eq!(body["error"]["message"], NO_WORKSPACE, "{body:#}");
}

/// What is said to whoever is no member.
const NO_WORKSPACE: &str = "There is no such workspace.";

/// An agent that answers with what its documents say.
async fn quoting_agent(maker: &Client, name: &str) -> String {
    let llm = json!({ "model": "extractive", "provider": "extractive" });
    id(&maker.create_agent(&json!({ "name": name, "type": "CHATVENDOR", "llm": llm })).await).to_owned()
}

/// Puts a text among the documents, and returns its id once it can be searched.
async fn ingested(editor: &Client, name: &str, text: &str) -> String {
    id(&editor.ingest(&json!({ "name": name, "type": "TXT", "content": text })).await).to_owned()
}

/// A question in the body of a request.
fn question(text: &str) -> Value {
    json!({ "input": { "input": text } })
}

/// Asks an agent with the credentials of the client.
async fn ask(person: &Client, agent: &str, text: &str) -> (StatusCode, Value) {
    person.post(&format!("/agents/{agent}/predict"), &question(text)).await
}
