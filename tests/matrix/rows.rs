//! How to make a request of each operation with things of one's own.

use std::collections::BTreeSet;

use reqwest::{Method, RequestBuilder, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::things::{NOUNS, Things};
use crate::support::client::{Client, PASSWORD};

/// The boundary of the forms that are sent.
pub(super) const BOUNDARY: &str = "----the-parts-of-a-form";

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
        row("GET /users/me/export", None),
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
        row("PUT /documents/<upload>/file", Form(&[("file", "The gate is low."), ("name", "Gate")])),
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
        row("GET /agents/<agent>/versions", None),
        row("POST /agents/<agent>/versions/1/restore", None),
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
        row("POST /traces/<trace>/cases", Json(json!({ "evaluationId": "<evaluation>" }))),
        row("POST /traces/<trace>/feedback", Json(json!({ "rating": -1, "text": "It opens later." }))),
        row("POST /traces/<trace>/replay", Json(json!({}))),
        // Evaluations
        row(
            "POST /evaluations",
            Json(json!({
                "name": "Gate", "agentId": "<agent>", "collectionIds": ["<collection>"], "judgeAgentId": "<helper>",
            })),
        ),
        row("GET /evaluations", None),
        row("GET /evaluations/<evaluation>", None),
        row(
            "PATCH /evaluations/<evaluation>",
            Json(json!({ "agentId": "<agent>", "judgeAgentId": "<helper>" })),
        ),
        row("PATCH /evaluations/<evaluation>", Json(json!({ "collectionIds": ["<collection>"] }))),
        row(
            "POST /evaluations/<evaluation>/cases",
            Json(json!({ "cases": [
                { "question": "Is it high?", "expect": "decline" },
                { "question": "Where?", "expect": [{ "documentId": "<document>", "quote": "gate" }] },
            ] })),
        ),
        row("GET /evaluations/<evaluation>/cases", None),
        row(
            "PATCH /evaluations/<evaluation>/cases/<evaluation-case>",
            Json(json!({ "expect": [{ "documentId": "<upload>" }] })),
        ),
        row("POST /evaluations/<evaluation>/import", Form(&[("file", "question,expect\nWho?,decline\n")])),
        row("GET /evaluations/<evaluation>/export", None),
        row("POST /evaluations/<evaluation>/runs", Json(json!({ "answers": false }))),
        row("GET /evaluations/<evaluation>/runs", None),
        row("GET /evaluations/<evaluation>/runs/<evaluation-run>", None),
        row("GET /evaluations/<evaluation>/runs/<evaluation-run>/results", None),
        row("GET /evaluations/<evaluation>/runs/<evaluation-run>/compare/<evaluation-run>", None),
        row("POST /evaluations/<evaluation>/runs/<evaluation-run>/cancel", None),
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
        row("DELETE /evaluations/<evaluation>/cases/<evaluation-case>", None),
        row("DELETE /evaluations/<evaluation>", None),
        row("POST /v1/vector_stores/<collection>/files", Json(json!({ "file_id": "<upload>" }))),
        row("DELETE /v1/vector_stores/<collection>/files/<upload>", None),
        row("DELETE /v1/vector_stores/<shelf>", None),
        row("DELETE /v1/files/<leaflet>", None),
        row("DELETE /agents/<agent>/sessions/<session>", None),
        row("DELETE /agents/<agent>/publication", None),
        row("DELETE /traces/<trace>/feedback", None),
        row("DELETE /traces/<trace>", None),
        // Of nobody: an id that asked nothing and one that asked elsewhere are alike.
        row("POST /traces/delete", Json(json!({ "askedBy": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55" }))),
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
        makes_one
            || matches!(self.target, "/invitations/accept" | "/users/me/export" | "/workspaces/<shared>")
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

pub(super) fn form(parts: &[(&str, &str)]) -> String {
    let part = |(name, value): &(&str, &str)| {
        let file = if *name == "file" { "; filename=\"gate.txt\"\r\nContent-Type: text/plain" } else { "" };
        let head = format!("Content-Disposition: form-data; name=\"{name}\"{file}");
        format!("--{BOUNDARY}\r\n{head}\r\n\r\n{value}\r\n")
    };
    format!("{}--{BOUNDARY}--\r\n", parts.iter().map(part).collect::<String>())
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
