//! One of everything that a user can have.

use std::collections::BTreeMap;

use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::rows::{BOUNDARY, form};
use crate::{
    receipts::closed_receipt,
    support::{
        client::{Client, PASSWORD, data, envelope, id, send},
        command,
        pdf::pdf_with_pages,
        process::POLL,
        web::Web,
        within_deadline,
    },
};

/// What has an id. A `booklet` is an uploaded PDF; `deleted` is a document that was deleted, and of which nothing is left; a `helper` is an agent that nothing is linked to but what an `AGENT` tool of the other asks; an `upload` is
/// a document with a stored file; the `workspace` is the account's own, and `shared` is another one of which it is the owner.
pub const NOUNS: [&str; 31] = [
    "agent",
    "agent-collection",
    "agent-document",
    "agent-tool",
    "api-token",
    "booklet",
    "collection",
    "deleted",
    "delivery",
    "document",
    "evaluation",
    "evaluation-case",
    "evaluation-run",
    "file-batch",
    "helper",
    "invitation",
    "job",
    "leaflet",
    "member",
    "prompt",
    "second-tag",
    "shared",
    "shelf",
    "source",
    "source-run",
    "tag",
    "tool",
    "trace",
    "upload",
    "webhook",
    "workspace",
];

/// What stands for each `<noun>` in a row: ids of one of everything that a user can have.
#[derive(Clone)]
pub struct Things(BTreeMap<&'static str, String>);

impl Things {
    /// Makes one of everything.
    pub async fn of(owner: &Client, text: &str) -> Self {
        let make = async |path: &str, body: Value| id(&owner.create(path, &body).await).to_owned();
        let agent = json!({ "name": "Clerk", "type": "CHATVENDOR" });
        let agent = make("/agents", agent).await;
        let helper = make("/agents", json!({ "name": "Helper", "type": "CHATVENDOR" })).await;
        let document = json!({ "name": "Note", "type": "TXT", "content": text });
        let document = id(&owner.ingest(&document).await).to_owned();
        let upload = id(&upload(owner, text).await).to_owned();
        let booklet = command::upload(owner, "booklet.pdf", &pdf_with_pages(&[text])).await;
        let booklet = id(&owner.wait_until_ingested(id(&booklet)).await).to_owned();
        let tool = json!({ "name": "Colleague", "type": "AGENT", "metadata": { "agentId": helper } });
        let tool = make("/tools", tool).await;
        let prompt =
            json!({ "name": "Curt", "template": "In a word: {input}", "input_variables": ["input"] });
        let link = json!({ "agentId": agent, "documentId": document });
        let tool_link = json!({ "agentId": agent, "toolId": tool });
        let tag = async |name: &str| make("/tags", json!({ "name": name, "color": "#0e8a16" })).await;
        let collection = make("/collections", json!({ "name": "Handbooks" })).await;
        let leaflet = json!({ "name": "Leaflet", "type": "TXT", "content": text });
        let of_collection = json!({ "agentId": agent, "collectionId": collection });
        let workspace = id(owner.user()).to_owned();
        let invitations = format!("/workspaces/{workspace}/invitations");
        let invite = async || owner.create(&invitations, &json!({ "role": "asker" })).await;
        publish(owner, &agent).await;
        let (webhook, delivery) = told(owner).await;
        let (source, source_run) = asked(owner).await;
        let (evaluation, case, run) = evaluated(owner, &document).await;
        let things = [
            ("evaluation", evaluation),
            ("evaluation-case", case),
            ("evaluation-run", run),
            ("file-batch", batch(owner, &collection, &document).await),
            ("shelf", make("/collections", json!({ "name": "Shelf" })).await),
            ("leaflet", id(&owner.ingest(&leaflet).await).to_owned()),
            ("agent-collection", make("/agent-collections", of_collection).await),
            ("collection", collection),
            ("shared", make("/workspaces", json!({ "name": "Shared" })).await),
            ("invitation", id(&invite().await).to_owned()),
            ("invitation-token", token_of(&invite().await)),
            ("member", member(owner, &token_of(&invite().await)).await),
            ("workspace", workspace),
            ("prompt", make("/prompts", prompt).await),
            ("tag", tag("urgent").await),
            ("second-tag", tag("later").await),
            ("api-token", make("/api-tokens", json!({ "description": "a script's" })).await),
            ("agent-document", make("/agent-documents", link).await),
            ("agent-tool", make("/agent-tools", tool_link).await),
            // With a sign-in, so that no API token is used.
            ("trace", ask(owner, &agent, text).await),
            ("agent", agent),
            ("helper", helper),
            ("document", document),
            ("deleted", deleted(owner, text).await),
            ("delivery", delivery),
            ("source", source),
            ("source-run", source_run),
            ("webhook", webhook),
            ("job", job_of(owner, &upload).await),
            ("upload", upload),
            ("booklet", booklet),
            ("tool", tool),
            // By a name that is the user's choice, so that another's is no secret.
            ("session", "a-talk".to_owned()),
            ("email", owner.user()["email"].as_str().expect("an e-mail").to_owned()),
            ("new-email", format!("{}@example.com", Uuid::now_v7())),
        ];
        Self(things.into())
    }

    /// The same things, one of them exchanged.
    #[must_use]
    pub fn with(&self, noun: &'static str, id: &str) -> Self {
        let mut things = self.clone();
        things.0.insert(noun, id.to_owned());
        things
    }

    /// The id of one of the things.
    pub fn id(&self, noun: &str) -> &str {
        &self.0[noun]
    }

    pub(super) fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (noun, id)| text.replace(&format!("<{noun}>"), id))
    }

    pub(super) fn fill_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill_in(item)).collect(),
            Value::Object(object) => {
                object.iter().map(|(name, value)| (name.clone(), self.fill_in(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// A document that was deleted.
async fn deleted(owner: &Client, text: &str) -> String {
    let document = json!({ "name": "Draft", "type": "TXT", "content": text });
    let document = id(&owner.create_document(&document).await).to_owned();
    data(owner.delete(&format!("/documents/{document}")).await);
    closed_receipt(owner, &document).await;
    document
}

/// A webhook that is off, and a delivery to it, which was tried once and is not any more.
async fn told(owner: &Client) -> (String, String) {
    let webhook = json!({ "url": "http://127.0.0.1:9/told", "events": ["document.succeeded"] });
    let webhook = id(&owner.create("/webhooks", &webhook).await).to_owned();
    // Nothing is deleted for it: until nothing is left of what was, the workspace's bytes change by themselves.
    owner.ingest(&json!({ "name": "Slip", "type": "TXT", "content": "A slip." })).await;
    let deliveries = format!("/webhooks/{webhook}/deliveries");
    let trying = async {
        loop {
            let found = owner.read(&deliveries).await;
            if !found[0]["error"].is_null() {
                return id(&found[0]).to_owned();
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let delivery = within_deadline("the first attempt", trying).await;
    data(owner.patch(&format!("/webhooks/{webhook}"), &json!({ "active": false })).await);
    (webhook, delivery)
}

/// A source, and a run of it that asks whether its only document is to be deleted.
pub async fn asked(owner: &Client) -> (String, String) {
    let web = Web::start().await;
    web.serve("/page", "text/html", "<title>Page</title><p>A page of a site.</p>");
    web.serve("/sitemap.xml", "text/plain", web.url("/page"));
    let config = json!({ "url": web.url("/"), "discover": "sitemap" });
    let source = owner.create("/sources", &json!({ "name": "Site", "type": "site", "config": config })).await;
    let source = id(&source).to_owned();
    let run = async |wanted: &str| {
        let run = owner.create(&format!("/sources/{source}/run"), &json!({})).await;
        let run = id(&run).to_owned();
        let path = format!("/sources/{source}/runs/{run}");
        let running = async {
            while owner.read(&path).await["state"] != wanted {
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the run", running).await;
        run
    };
    let first = run("succeeded").await;
    let items = owner.read(&format!("/sources/{source}/runs/{first}/items")).await;
    owner.wait_until_ingested(items[0]["documentId"].as_str().expect("an id")).await;
    web.status("/page", 410);
    (source.clone(), run("waiting").await)
}

/// An evaluation with a case and a run that has ended.
pub async fn evaluated(owner: &Client, document: &str) -> (String, String, String) {
    let evaluation = owner.create("/evaluations", &json!({ "name": "Questions" })).await;
    let path = format!("/evaluations/{}", id(&evaluation));
    let case = json!({ "question": "When does the gate open?", "expect": [{ "documentId": document }] });
    let case = owner.create(&format!("{path}/cases"), &case).await;
    let run = owner.create(&format!("{path}/runs"), &json!({})).await;
    let run_path = format!("{path}/runs/{}", id(&run));
    let running = async {
        while owner.read(&run_path).await["state"] != "succeeded" {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the run", running).await;
    (id(&evaluation).to_owned(), id(&case[0]).to_owned(), id(&run).to_owned())
}

/// Gives an agent a page, by a link, since no two pages have the same address.
async fn publish(owner: &Client, agent: &str) {
    let page = owner.request(Method::PUT, &format!("/agents/{agent}/publication"));
    let page = page.json(&json!({ "slug": "clerk", "access": "link" }));
    data(envelope(send(page).await).await);
}

/// The id of a document's job, which admins alone can know; anything, for the others.
async fn job_of(owner: &Client, document: &str) -> String {
    if owner.user()["isAdmin"] != true {
        return Uuid::now_v7().to_string();
    }
    let path = format!("/admin/jobs?document={document}");
    let jobs = owner.request_anywhere(Method::GET, &path);
    id(&data(envelope(send(jobs).await).await)[0]).to_owned()
}

/// The token of an invitation.
fn token_of(invitation: &Value) -> String {
    invitation["token"].as_str().expect("the invitation's token").to_owned()
}

/// Makes an account that accepts an invitation, and returns its id.
async fn member(owner: &Client, token: &str) -> String {
    let person = owner.sign_up(&format!("{}@example.com", Uuid::now_v7()), PASSWORD).await;
    person.create("/invitations/accept", &json!({ "token": token })).await;
    id(person.user()).to_owned()
}

/// Puts a document into a vector store, and returns the id of the batch.
async fn batch(owner: &Client, collection: &str, document: &str) -> String {
    let path = format!("/v1/vector_stores/{collection}/file_batches");
    let request = owner.request_anywhere(Method::POST, &path).json(&json!({ "file_ids": [document] }));
    let (status, batch) = envelope(send(request).await).await;
    assert_eq!(status, StatusCode::OK, "{batch:#}");
    id(&batch).to_owned()
}

/// Uploads a text and waits until it is ingested.
async fn upload(owner: &Client, text: &str) -> Value {
    let request = owner.request(Method::POST, "/documents/upload");
    let request = request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"));
    let uploaded = data(envelope(send(request.body(form(&[("file", text)]))).await).await);
    owner.wait_until_ingested(id(&uploaded)).await
}

async fn ask(owner: &Client, agent: &str, question: &str) -> String {
    let body = json!({ "input": { "input": question } });
    let (status, answer) = owner.post(&format!("/agents/{agent}/predict"), &body).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    id(&answer["trace"]).to_owned()
}

/// An answer of any kind: what is streamed without end is not waited for.
pub async fn answer(request: RequestBuilder) -> (StatusCode, HeaderMap, Value) {
    let answer = send(request).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/json") {
        let (status, body) = envelope(answer).await;
        return (status, headers, body);
    }
    assert!(status.is_success(), "{status} that is no envelope");
    let is_stream = kind.starts_with("text/event-stream");
    let body = if is_stream { Value::Null } else { answer.text().await.expect("a body").into() };
    (status, headers, body)
}
