//! How to make a request of each operation with things of one's own.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::{Value, json};
use uuid::Uuid;

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

/// The boundary of the forms that are sent.
const BOUNDARY: &str = "----the-parts-of-a-form";

/// A request of an operation. `<noun>` in its path and in the texts of its body stands for the id of the user's thing of
/// that name, see [`Things`].
pub struct Row {
    pub method: Method,
    /// The path below `/api/v1`, or that of a question about the service or of the operator, and the query.
    pub target: &'static str,
    pub body: Body,
}

pub enum Body {
    None,
    Json(Value),
    /// The text parts of a form, by name. The one called `file` is a file.
    Form(&'static [(&'static str, &'static str)]),
}

/// Every request, in an order in which a user can make all of them with things of their own.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn rows() -> Vec<Row> {
    use Body::{Form, Json, None};
    let llm = json!({ "model": "extractive", "provider": "extractive" });
    let nla = json!({ "automation_nla_api_key": "nla-key-1234" });
    vec![
        row("GET /health/live", None),
        row("GET /health/ready", None),
        row("GET /metrics", None),
        row("POST /auth/sign-up", Json(json!({ "email": "<new-email>", "password": PASSWORD }))),
        row("POST /auth/sign-in", Json(json!({ "email": "<email>", "password": PASSWORD }))),
        row("GET /users/me", None),
        row("PATCH /users/me", Json(json!({ "name": "Somebody" }))),
        // API tokens
        row("POST /api-tokens", Json(json!({ "description": "for the build" }))),
        row("POST /api-tokens", Json(json!({ "description": "for a page", "agentId": "<helper>" }))),
        row("GET /api-tokens", None),
        row("GET /api-tokens/<api-token>", None),
        // Workspaces
        row("POST /workspaces", Json(json!({ "name": "Library" }))),
        row("GET /workspaces", None),
        row("GET /workspaces/<workspace>", None),
        row("PATCH /workspaces/<workspace>", Json(json!({ "name": "Study" }))),
        row("GET /workspaces/<workspace>/members", None),
        row("PATCH /workspaces/<workspace>/members/<member>", Json(json!({ "role": "asker" }))),
        row("POST /workspaces/<workspace>/invitations", Json(json!({ "role": "editor" }))),
        row("GET /workspaces/<workspace>/invitations", None),
        row("POST /invitations/accept", Json(json!({ "token": "<invitation-token>" }))),
        row("GET /workspaces/<workspace>/audit", None),
        // Documents
        row(
            "POST /documents",
            Json(json!({
                "name": "Note", "type": "TXT", "content": "The gate is green.", "description": "of the gate",
                "metadata": { "year": 2026 }, "splitter": { "type": "token", "chunk_size": 200 },
                "collectionIds": ["<collection>"],
            })),
        ),
        row(
            "POST /documents/upload",
            Form(&[("file", "The gate is high."), ("metadata", r#"{"year": 2026}"#)]),
        ),
        row("GET /documents", None),
        row("GET /documents/<document>", None),
        row("GET /documents/<document>/chunks", None),
        row("GET /documents/<deleted>/receipt", None),
        row(
            "POST /webhooks",
            Json(json!({ "url": "http://127.0.0.1:9/told", "events": ["document.deleted"] })),
        ),
        row("GET /webhooks", None),
        row("GET /webhooks/<webhook>", None),
        row("PATCH /webhooks/<webhook>", Json(json!({ "active": false }))),
        row("POST /webhooks/<webhook>/rotate", None),
        row("POST /webhooks/<webhook>/test", None),
        row("GET /webhooks/<webhook>/deliveries", None),
        row("POST /webhooks/<webhook>/deliveries/<delivery>/replay", None),
        row("DELETE /webhooks/<webhook>", None),
        row(
            "POST /sources",
            Json(json!({
                "name": "Bucket",
                "type": "s3",
                "config": { "bucket": "b" },
                "collectionId": "<collection>",
            })),
        ),
        row("GET /sources", None),
        row("GET /sources/<source>", None),
        row("PATCH /sources/<source>", Json(json!({ "deleteLimit": 10, "collectionId": "<collection>" }))),
        row("GET /sources/<source>/runs", None),
        row("GET /sources/<source>/runs/<source-run>", None),
        row("GET /sources/<source>/runs/<source-run>/items", None),
        row("POST /sources/<source>/runs/<source-run>/confirm", None),
        row("POST /sources/<source>/runs/<source-run>/cancel", None),
        row("POST /sources/<source>/run", Json(json!({ "dryRun": true }))),
        row("DELETE /sources/<source>", None),
        row("GET /documents/duplicates", None),
        row("GET /documents/<document>/events", None),
        row("GET /documents/<upload>/source", None),
        row("GET /documents/<booklet>/pages", None),
        row("GET /documents/<booklet>/pages/1?width=200&highlight=0-8&format=webp", None),
        row("PATCH /documents/<document>", Json(json!({ "description": "changed", "metadata": null }))),
        row("POST /documents/<document>/ingest", None),
        row("POST /documents/<document>/cancel", None),
        // Collections
        row("POST /collections", Json(json!({ "name": "Handbooks", "defaults": { "language": "en" } }))),
        row("GET /collections", None),
        row("GET /collections/<collection>", None),
        row("PATCH /collections/<collection>", Json(json!({ "name": "Manuals" }))),
        row("GET /collections/<collection>/documents", None),
        row("PUT /collections/<collection>/documents/<document>", None),
        row(
            "POST /collections/<collection>/documents",
            Json(json!({ "documentIds": ["<document>", "<upload>"] })),
        ),
        // Tags and prompts
        row("POST /tags", Json(json!({ "name": "later", "color": "#0e8a16" }))),
        row("GET /tags", None),
        row("GET /tags/<tag>", None),
        row("PATCH /tags/<tag>", Json(json!({ "name": "soon", "color": "#d73a4a" }))),
        row(
            "POST /prompts",
            Json(
                json!({ "name": "Curt", "template": "Say it in a word: {input}", "input_variables": ["input"] }),
            ),
        ),
        row("GET /prompts", None),
        row("GET /prompts/<prompt>", None),
        row("PATCH /prompts/<prompt>", Json(json!({ "name": "Curter" }))),
        // Tools
        row("POST /tools", Json(json!({ "name": "Robot", "type": "AUTOMATION_NLA", "metadata": nla }))),
        row(
            "POST /tools",
            Json(json!({ "name": "Colleague", "type": "AGENT", "metadata": { "agentId": "<helper>" } })),
        ),
        row("GET /tools", None),
        row("GET /tools/<tool>", None),
        row("PATCH /tools/<tool>", Json(json!({ "name": "Helper", "description": "knows more" }))),
        row("PATCH /tools/<tool>", Json(json!({ "metadata": { "agentId": "<helper>" } }))),
        // Agents
        row(
            "POST /agents",
            Json(json!({
                "name": "Judge", "type": "REACT", "llm": llm, "hasMemory": true, "promptId": "<prompt>",
                "tags": ["<tag>", "<second-tag>"],
            })),
        ),
        row(
            "POST /agents",
            Json(json!({ "name": "Judge", "type": "CHATVENDOR", "tags": [{ "id": "<tag>" }] })),
        ),
        row("GET /agents", None),
        row("GET /agents/<agent>", None),
        row("PATCH /agents/<agent>", Json(json!({ "name": "Usher", "llm": llm }))),
        row(
            "PATCH /agents/<agent>",
            Json(json!({ "promptId": "<prompt>", "tags": [{ "id": "<tag>" }, "<second-tag>"] })),
        ),
        // By a link, since nobody else's page may have the same address.
        row(
            "PUT /agents/<agent>/publication",
            Json(json!({ "slug": "clerk", "access": "link", "questions": ["When does the gate open?"] })),
        ),
        row("GET /agents/<agent>/publication", None),
        // Links
        row("POST /agent-documents", Json(json!({ "agentId": "<agent>", "documentId": "<document>" }))),
        row("GET /agent-documents", None),
        row("GET /agent-documents?agentId=<agent>", None),
        row("GET /agent-documents/<agent-document>", None),
        row("POST /agent-collections", Json(json!({ "agentId": "<agent>", "collectionId": "<collection>" }))),
        row("GET /agent-collections", None),
        row("GET /agent-collections?agentId=<agent>", None),
        row("GET /agent-collections/<agent-collection>", None),
        row("POST /agent-tools", Json(json!({ "agentId": "<agent>", "toolId": "<tool>" }))),
        row("GET /agent-tools", None),
        row("GET /agent-tools?agentId=<agent>", None),
        row("GET /agent-tools/<agent-tool>", None),
        // Searching
        row(
            "POST /search",
            Json(json!({
                "query": "When does the gate open?", "documentIds": ["<document>", "<upload>"], "agentId": "<agent>",
                "filter": { "year": [2026, "2026", null], "open": true }, "limit": 5, "mode": "lexical",
                "collectionIds": ["<collection>"],
            })),
        ),
        row("POST /search", Json(json!({ "query": "gate", "documentIds": ["<upload>"] }))),
        row("POST /search", Json(json!({ "query": "gate", "agentId": "<helper>" }))),
        // Asking
        row(
            "POST /agents/<helper>/predict",
            Json(json!({ "input": { "input": "When does the gate open?" }, "session": "<session>" })),
        ),
        row("GET /traces", None),
        row("GET /traces?agentId=<agent>", None),
        row("GET /traces?rating=-1", None),
        row("GET /traces/<trace>", None),
        row("POST /traces/<trace>/feedback", Json(json!({ "rating": -1, "text": "It opens later." }))),
        row("POST /traces/<trace>/replay", Json(json!({}))),
        // What the operator does
        row("GET /admin/jobs", None),
        row("GET /admin/jobs?state=dead&user=<email>&code=not_found&limit=20", None),
        row("GET /admin/jobs/<job>", None),
        row("POST /admin/jobs/<job>/discard", None),
        row("POST /admin/jobs/<job>/retry", None),
        row(
            "POST /admin/jobs/retry",
            Json(json!({ "state": "dead", "user": "<email>", "code": "not_found" })),
        ),
        row(
            "POST /admin/jobs/discard",
            Json(json!({ "state": "dead", "user": "<email>", "code": "not_found" })),
        ),
        // The same in the form of OpenAI's clients
        row("GET /v1/models", None),
        row("GET /v1/models/<agent>", None),
        row(
            "POST /v1/chat/completions",
            Json(
                json!({ "model": "<helper>", "messages": [{ "role": "user", "content": "When does the gate open?" }] }),
            ),
        ),
        row("POST /v1/responses", Json(json!({ "model": "<helper>", "input": "When does the gate open?" }))),
        row("POST /v1/files", Form(&[("purpose", "assistants"), ("file", "The gate is wide.")])),
        row("GET /v1/files", None),
        row("GET /v1/files?limit=2&order=asc&purpose=assistants", None),
        row("GET /v1/files/<document>", None),
        row("GET /v1/files/<upload>/content", None),
        row(
            "POST /v1/vector_stores",
            Json(json!({
                "name": "Handbooks", "file_ids": ["<document>", "<upload>"], "metadata": { "team": "people" },
                "chunking_strategy": { "type": "auto" },
            })),
        ),
        row("GET /v1/vector_stores", None),
        row("GET /v1/vector_stores/<collection>", None),
        row(
            "POST /v1/vector_stores/<collection>",
            Json(json!({ "name": "Manuals", "metadata": { "team": "law" } })),
        ),
        row("GET /v1/vector_stores/<collection>/file_batches/<file-batch>", None),
        row("GET /v1/vector_stores/<collection>/file_batches/<file-batch>/files", None),
        row("POST /v1/vector_stores/<collection>/file_batches/<file-batch>/cancel", None),
        row(
            "POST /v1/vector_stores/<collection>/files",
            Json(json!({ "file_id": "<document>", "attributes": { "year": 2026 } })),
        ),
        row("GET /v1/vector_stores/<collection>/files", None),
        row("GET /v1/vector_stores/<collection>/files?filter=completed&limit=5", None),
        row("GET /v1/vector_stores/<collection>/files/<document>", None),
        row(
            "POST /v1/vector_stores/<collection>/files/<document>",
            Json(json!({ "attributes": { "year": 2025 } })),
        ),
        row("GET /v1/vector_stores/<collection>/files/<document>/content", None),
        row(
            "POST /v1/vector_stores/<collection>/search",
            Json(json!({
                "query": "When does the gate open?", "max_num_results": 5,
                "ranking_options": { "score_threshold": 0.0 },
                "filters": { "type": "or", "filters": [
                    { "type": "gte", "key": "year", "value": 2025 },
                    { "type": "nin", "key": "team", "value": ["law"] },
                ] },
            })),
        ),
        row(
            "POST /v1/vector_stores/<collection>/file_batches",
            Json(json!({ "file_ids": ["<document>", "<upload>"] })),
        ),
        row(
            "POST /v1/vector_stores/<collection>/file_batches",
            Json(json!({ "files": [{ "file_id": "<upload>", "attributes": { "year": 2026 } }] })),
        ),
        row(
            "POST /search",
            Json(json!({ "query": "gate", "filter": { "and": [
                { "key": "year", "op": "gte", "value": 2025 },
                { "or": [{ "team": "law" }, { "key": "team", "op": "ne", "value": "x" }] },
            ] } })),
        ),
        // What ends things
        row("POST /v1/vector_stores/<collection>/files", Json(json!({ "file_id": "<upload>" }))),
        row("DELETE /v1/vector_stores/<collection>/files/<upload>", None),
        row("DELETE /v1/vector_stores/<shelf>", None),
        row("DELETE /v1/files/<leaflet>", None),
        row("DELETE /agents/<agent>/sessions/<session>", None),
        row("DELETE /agents/<agent>/publication", None),
        row("DELETE /traces/<trace>/feedback", None),
        row("DELETE /agent-documents/<agent-document>", None),
        row("DELETE /agent-collections/<agent-collection>", None),
        row("DELETE /collections/<collection>/documents/<document>", None),
        row("DELETE /collections/<collection>", None),
        row("DELETE /agent-tools/<agent-tool>", None),
        row("DELETE /api-tokens/<api-token>", None),
        row("DELETE /documents/<document>", None),
        row("DELETE /agents/<agent>", None),
        row("DELETE /tools/<tool>", None),
        row("DELETE /tags/<tag>", None),
        row("DELETE /prompts/<prompt>", None),
        row("DELETE /workspaces/<workspace>/invitations/<invitation>", None),
        row("DELETE /workspaces/<workspace>/members/<member>", None),
        row("DELETE /workspaces/<shared>", Json(json!({ "name": "Shared" }))),
        row("POST /auth/sign-out", None),
        row("DELETE /users/me", Json(json!({ "password": PASSWORD }))),
    ]
}

fn row(request: &'static str, body: Body) -> Row {
    let (method, target) = request.split_once(' ').expect("a method and a path");
    Row { method: method.parse().expect("a method"), target, body }
}

impl Row {
    /// The operation's name, as in [`super::Operation::name`].
    pub fn operation(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        // Pages are named by their numbers.
        let is_parameter =
            |part: &str| part.starts_with('<') || part.bytes().all(|byte| byte.is_ascii_digit());
        let part = |part: &'static str| if !part.is_empty() && is_parameter(part) { "{}" } else { part };
        format!("{} {}", self.method, path.split('/').map(part).collect::<Vec<_>>().join("/"))
    }

    /// How many ids are in the path.
    pub fn path_nouns(&self) -> usize {
        self.target.split('?').next().unwrap_or_default().matches('<').count()
    }

    /// The things that the request names by their ids, in its path, its query and its body.
    pub fn nouns(&self) -> Vec<&'static str> {
        let body = match &self.body {
            Body::Json(body) => body.to_string(),
            Body::None | Body::Form(_) => String::new(),
        };
        let text = format!("{}{body}", self.target);
        NOUNS.into_iter().filter(|noun| text.contains(&format!("<{noun}>"))).collect()
    }

    /// Whether it is about the service, not about anybody's things.
    pub fn is_outside(&self) -> bool {
        self.target.starts_with("/health") || self.target == "/metrics"
    }

    /// The path and the query, with the ids of these things.
    pub fn target_with(&self, things: &Things) -> String {
        let target = things.fill(self.target);
        if self.is_outside() || self.is_for_admins() || self.is_in_openai_form() {
            target
        } else {
            format!("/api/v1{target}")
        }
    }

    /// Whether it is a request of OpenAI's clients, which is answered in their form.
    pub fn is_in_openai_form(&self) -> bool {
        self.target.starts_with("/v1/")
    }

    /// Whether only admins may make the request.
    pub fn is_for_admins(&self) -> bool {
        self.target.starts_with("/admin/")
    }

    /// Whether API tokens may not make the request, or not about the thing that it names.
    pub fn needs_sign_in(&self) -> bool {
        let makes_one = self.method == Method::POST && self.target == "/workspaces";
        makes_one || matches!(self.target, "/invitations/accept" | "/workspaces/<shared>")
    }

    /// The JSON body with the ids of these things, if it has one.
    pub fn json_with(&self, things: &Things) -> Option<Value> {
        match &self.body {
            Body::Json(body) => Some(things.fill_in(body)),
            Body::None | Body::Form(_) => None,
        }
    }

    /// The request with the ids of these things, without credentials.
    pub fn request(&self, client: &Client, things: &Things) -> RequestBuilder {
        let request = client.request_outside(self.method.clone(), &self.target_with(things));
        match &self.body {
            Body::None => request,
            Body::Json(body) => request.json(&things.fill_in(body)),
            Body::Form(parts) => {
                let kind = format!("multipart/form-data; boundary={BOUNDARY}");
                request.header(CONTENT_TYPE, kind).body(form(parts))
            }
        }
    }
}

fn form(parts: &[(&str, &str)]) -> String {
    let part = |(name, value): &(&str, &str)| {
        let file = if *name == "file" { "; filename=\"gate.txt\"\r\nContent-Type: text/plain" } else { "" };
        let head = format!("Content-Disposition: form-data; name=\"{name}\"{file}");
        format!("--{BOUNDARY}\r\n{head}\r\n\r\n{value}\r\n")
    };
    format!("{}--{BOUNDARY}--\r\n", parts.iter().map(part).collect::<String>())
}

/// What has an id. A `booklet` is an uploaded PDF; `deleted` is a document that was deleted, and of which nothing is left; a `helper` is an agent that nothing is linked to but what an `AGENT` tool of the other asks; an `upload` is
/// a document with a stored file; the `workspace` is the account's own, and `shared` is another one of which it is the owner.
pub const NOUNS: [&str; 28] = [
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
        let things = [
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

    fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (noun, id)| text.replace(&format!("<{noun}>"), id))
    }

    fn fill_in(&self, value: &Value) -> Value {
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

#[test]
fn a_row_names_only_what_there_is() {
    for row in rows() {
        let body = match &row.body {
            Body::Json(body) => body.to_string(),
            Body::None | Body::Form(_) => String::new(),
        };
        let text = format!("{}{body}", row.target);
        let named = text.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default());
        let named: BTreeSet<&str> = named.collect();
        for noun in named {
            assert!(
                NOUNS.contains(&noun)
                    || ["session", "email", "new-email", "invitation-token"].contains(&noun),
                "{}: <{noun}>",
                row.operation()
            );
        }
    }
}
