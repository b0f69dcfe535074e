//! Who may do what: every operation that the service describes, tried with every role.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::join_all;
use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    NO_WORKSPACE, Team, api_token, expired_token,
    needs::{NEEDS, Need, OF_ADMINS, OF_BOUND_TOKENS},
    user_id,
};
use crate::{
    matrix::things::{Things, answer},
    support::{
        client::{Client, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(every_cell_of_the_table_of_roles_is_as_it_is_published, no_write_begins_after_a_demotion);

/// What would end the sign-in of whoever may do it.
const ENDING: [&str; 2] = ["POST /auth/sign-out", "DELETE /users/me"];
/// Codes of 403 that say that somebody may not do something.
const REFUSALS: [&str; 4] = ["role_required", "token_restricted", "sign_in_required", "forbidden"];
const BOUNDARY: &str = "----the-parts-of-a-form";

/// An operation as the service describes it.
struct Described {
    name: String,
    method: Method,
    path: String,
    secured: bool,
    body: Sent,
}

/// What an operation is sent.
enum Sent {
    Nothing,
    Json(Value),
    File,
}

/// Every operation of a running service.
async fn described(client: &Client) -> Vec<Described> {
    let answer = send(client.request_outside(Method::GET, "/openapi.json")).await;
    let document: Value = answer.json().await.expect("the description in JSON");
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let method: Method = method.to_uppercase().parse().expect("a method");
            let part = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
            let parts: Vec<String> = path.trim_start_matches("/api/v1").split('/').map(part).collect();
            let name = format!("{method} {}", parts.join("/"));
            let security = operation.get("security").unwrap_or(&document["security"]);
            let content = &operation["requestBody"]["content"];
            let example = content["application/json"].get("example");
            let body = match (content.get("multipart/form-data"), example) {
                (Some(_), _) => Sent::File,
                (None, Some(example)) => Sent::Json(body_of(&name, example)),
                (None, None) => Sent::Nothing,
            };
            let secured = security.as_array().is_some_and(|ways| !ways.is_empty());
            found.push(Described { name, method, path: path.clone(), secured, body });
        }
    }
    // What is deleted is not there for the others.
    found.sort_by_key(|operation| operation.method == Method::DELETE);
    found
}

/// The body of the description's example, but where that would reach the network, end the tests' own things, or be an admin's.
fn body_of(operation: &str, example: &Value) -> Value {
    match operation {
        "POST /documents" => json!({ "name": "Note", "type": "TXT", "content": "The gate is green." }),
        "PATCH /workspaces/{}" => json!({ "name": "The archive" }),
        "DELETE /workspaces/{}" => json!({ "name": "not what it is called" }),
        "PATCH /workspaces/{}/members/{}" => json!({ "role": "asker" }),
        "POST /invitations/accept" => json!({ "token": "inv_of-nobody" }),
        _ => example.clone(),
    }
}

fn need_of(operation: &str) -> Need {
    if OF_ADMINS.contains(&operation) {
        return Need::Admin;
    }
    let row = NEEDS.iter().find(|(name, _)| *name == operation);
    row.unwrap_or_else(|| panic!("say in tests/people/roles.rs who may {operation}")).1
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_says_who_may_and_no_other_is_named() {
    let service = Service::start().await;
    let described = described(&service.client()).await;
    for operation in &described {
        let is_open = need_of(&operation.name) == Need::Nobody;
        assert_eq!(operation.secured, !is_open, "{}", operation.name);
    }
    let names: BTreeSet<&str> = described.iter().map(|operation| operation.name.as_str()).collect();
    let stale = NEEDS.iter().map(|(name, _)| *name).chain(OF_ADMINS).chain(OF_BOUND_TOKENS).chain(ENDING);
    let stale: Vec<&str> = stale.filter(|name| !names.contains(name)).collect();
    assert!(stale.is_empty(), "these are no operations: {stale:#?}");
}

/// The ids that stand in paths.
struct Places {
    things: Things,
    workspace: String,
    member: String,
    invitation: String,
    collection: String,
    agent_collection: String,
}

impl Places {
    /// Makes one of everything in a workspace.
    async fn of(team: &Team, member: &Client) -> Self {
        let owner = &team.owner;
        let things = Things::of(owner, "The gate opens at nine.").await;
        let own = |thing: Value| id(&thing).to_owned();
        let collection = own(owner.create("/collections", &json!({ "name": "Handbooks" })).await);
        let link = json!({ "agentId": things.id("agent"), "collectionId": collection });
        let invitation = json!({ "role": "asker" });
        Self {
            agent_collection: own(owner.create("/agent-collections", &link).await),
            invitation: own(owner.create(&team.path("/invitations"), &invitation).await),
            workspace: team.workspace.clone(),
            member: user_id(member).to_owned(),
            collection,
            things,
        }
    }

    /// A path with the ids of what its parts name.
    fn fill(&self, path: &str) -> String {
        let mut filled: Vec<String> = Vec::new();
        for part in path.split('/') {
            if !part.starts_with('{') {
                filled.push(part.to_owned());
                continue;
            }
            let kind = filled.last().map(String::as_str).unwrap_or_default();
            let noun = match kind {
                "workspaces" => self.workspace.clone(),
                "members" => self.member.clone(),
                "invitations" => self.invitation.clone(),
                "collections" => self.collection.clone(),
                "agent-collections" => self.agent_collection.clone(),
                "sessions" => "a-talk".to_owned(),
                "pages" | "versions" => "1".to_owned(),
                "cases" => self.things.id("evaluation-case").to_owned(),
                "runs" | "compare" if filled.iter().any(|part| part == "evaluations") => {
                    self.things.id("evaluation-run").to_owned()
                }
                "runs" => self.things.id("source-run").to_owned(),
                "deliveries" => self.things.id("delivery").to_owned(),
                "jobs" => Uuid::now_v7().to_string(),
                "models" => self.things.id("agent").to_owned(),
                "vector_stores" => self.things.id("collection").to_owned(),
                "file_batches" => self.things.id("file-batch").to_owned(),
                "files" if filled.iter().any(|part| part == "vector_stores") => {
                    self.things.id("document").to_owned()
                }
                "documents" | "files" => self.things.id("upload").to_owned(),
                kind => self.things.id(kind.strip_suffix('s').unwrap_or(kind)).to_owned(),
            };
            filled.push(noun);
        }
        filled.join("/")
    }
}

/// Sends an operation its example about these things.
async fn try_it(operation: &Described, client: &Client, places: &Places) -> (StatusCode, Value) {
    let request = client.request_anywhere(operation.method.clone(), &places.fill(&operation.path));
    let request = match &operation.body {
        Sent::Nothing => request,
        Sent::Json(body) => request.json(body),
        Sent::File => {
            let head = "Content-Disposition: form-data; name=\"file\"; filename=\"gate.txt\"\r\nContent-Type: text/plain";
            let form = format!("--{BOUNDARY}\r\n{head}\r\n\r\nThe gate is high.\r\n--{BOUNDARY}--\r\n");
            request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}")).body(form)
        }
    };
    let (status, _, body) = answer(request).await;
    (status, body)
}

/// Somebody who is not refused: whatever else is said of the request, it is not that they may not make it.
fn assert_let_in(about: &str, status: StatusCode, body: &Value) {
    let code = body["error"]["code"].as_str().unwrap_or_default();
    assert_ne!(status, StatusCode::UNAUTHORIZED, "{about}: {body:#}");
    assert!(!REFUSALS.contains(&code), "{about}: {body:#}");
    assert_ne!(body["error"]["message"], NO_WORKSPACE, "{about}: {body:#}");
    assert!(!status.is_server_error(), "{about}: {body:#}");
}

async fn every_cell_of_the_table_of_roles_is_as_it_is_published(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    // The first account is the operator's, and nobody's below.
    service.signed_up("operator@example.com").await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let victim = team.joined(&service, "victim", "asker").await;
    let places = Places::of(&team, &victim).await;
    let stranger = service.signed_up("stranger@example.com").await.in_workspace(&team.workspace);
    let bound = json!({ "role": "owner", "agentId": places.things.id("agent") });
    let bound = ada.with_token(&api_token(&team.owner, bound).await);
    let expired = ada.with_token(&expired_token(&team.owner).await);
    let members = [
        (Need::Asker, team.joined(&service, "asker", "asker").await),
        (Need::Editor, team.joined(&service, "editor", "editor").await),
        (Need::Builder, team.joined(&service, "builder", "builder").await),
        (Need::Owner, team.owner.clone()),
    ];
    let described: Vec<Described> =
        described(&ada).await.into_iter().filter(|operation| operation.secured).collect();
    let mut cells = 0;
    // First whoever may not, so that everything is there to be refused.
    for operation in &described {
        let (name, need) = (operation.name.as_str(), need_of(&operation.name));
        let (status, body) = try_it(operation, &stranger, &places).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{name} by a stranger: {body:#}");
        assert_eq!(body["error"]["message"], NO_WORKSPACE, "{name} by a stranger: {body:#}");
        let (status, body) = try_it(operation, &expired, &places).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{name} by a token that has ended: {body:#}");
        cells += 2;
        if !OF_BOUND_TOKENS.contains(&name) {
            let (status, body) = try_it(operation, &bound, &places).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{name} by a bound token: {body:#}");
            let code = body["error"]["code"].as_str().unwrap_or_default();
            let is_right = matches!(code, "token_restricted" | "sign_in_required");
            assert!(is_right, "{name} by a bound token: {body:#}");
            cells += 1;
        }
        for (role, member) in members.iter().filter(|(role, _)| *role < need) {
            let (status, body) = try_it(operation, member, &places).await;
            let code = if need == Need::Admin { "forbidden" } else { "role_required" };
            assert_eq!(status, StatusCode::FORBIDDEN, "{name} by {role:?}: {body:#}");
            assert_eq!(body["error"]["code"], code, "{name} by {role:?}: {body:#}");
            if need != Need::Admin {
                let message = body["error"]["message"].as_str().unwrap_or_default();
                let least = format!("{need:?}").to_lowercase();
                assert!(
                    message.contains(&format!("`{least}`")),
                    "{name} by {role:?} names no role: {message}"
                );
            }
            cells += 1;
        }
    }
    // Its agent is there for it. The things of the workspace are found only where they came of its own questions.
    for operation in described.iter().filter(|operation| OF_BOUND_TOKENS.contains(&operation.name.as_str())) {
        let (status, body) = try_it(operation, &bound, &places).await;
        assert_let_in(&format!("{} by a bound token", operation.name), status, &body);
        let is_of_the_agent = ["/agents/", "/v1/models"].iter().any(|path| operation.name.contains(path));
        assert_eq!(
            status == StatusCode::OK,
            is_of_the_agent,
            "{} by a bound token: {body:#}",
            operation.name
        );
        cells += 1;
    }
    for (role, member) in &members {
        for operation in &described {
            let (name, need) = (operation.name.as_str(), need_of(&operation.name));
            if need == Need::Admin || need > *role || ENDING.contains(&name) {
                continue;
            }
            let (status, body) = try_it(operation, member, &places).await;
            assert_let_in(&format!("{name} by {role:?}"), status, &body);
            cells += 1;
        }
    }
    assert!(cells > 400, "so few cells prove nothing: {cells}");
}

async fn no_write_begins_after_a_demotion(mode: Mode) {
    const MEMBERS: usize = 20;
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Arc::new(Team::of(&ada, "Archive").await);
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        members.push(team.joined(&service, &format!("member-{number}"), "editor").await);
    }
    let write = async |member: &Client, name: &str| {
        member.post("/tags", &json!({ "name": name, "color": "#0e8a16" })).await
    };
    for member in &members {
        assert_eq!(write(member, "before").await.0, StatusCode::OK);
    }
    let all = members.into_iter().map(|member| {
        let team = Arc::clone(&team);
        let demoted = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn({
            let (member, demoted) = (member.clone(), Arc::clone(&demoted));
            async move {
                loop {
                    // Looked at before the request is sent: only what begins after the answer has to be refused.
                    let is_late = demoted.load(Ordering::SeqCst);
                    let body = json!({ "name": "during", "color": "#0e8a16" });
                    let (status, body) = member.post("/tags", &body).await;
                    if is_late {
                        assert_eq!(status, StatusCode::FORBIDDEN, "a write was accepted: {body:#}");
                        assert_eq!(body["error"]["code"], "role_required", "{body:#}");
                        return;
                    }
                    let is_known = status == StatusCode::OK || status == StatusCode::FORBIDDEN;
                    assert!(is_known, "{status}: {body:#}");
                }
            }
        });
        async move {
            team.give(&member, "asker").await;
            demoted.store(true, Ordering::SeqCst);
            writer.await.expect("a writer who is refused");
        }
    });
    join_all(all).await;
    let tags = team.owner.read("/tags?limit=200").await;
    assert!(tags.as_array().is_some_and(|tags| tags.len() >= MEMBERS), "{tags:#}");
}
