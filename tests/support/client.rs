//! A client of the API, as small as a test wants it. Every answer it sees is checked to be an envelope.

use std::{
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use reqwest::{Method, RequestBuilder, Response, StatusCode, header::AUTHORIZATION};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{
    DEADLINE,
    sse::{self, SseEvent},
};

/// The password of accounts whose password does not matter.
pub const PASSWORD: &str = "correct horse battery staple";

/// A user of the service, signed in or not.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: Arc<RwLock<String>>,
    token: Option<String>,
    /// What `X-Workspace` says, if it is sent.
    workspace: Option<String>,
    user: Value,
    api_token: Arc<OnceCell<String>>,
}

impl Client {
    /// A client that is not signed in, of the service that is at `base_url` at the time of each request.
    pub fn new(base_url: Arc<RwLock<String>>) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .read_timeout(DEADLINE)
            .build()
            .expect("an HTTP client");
        Self { http, base_url, token: None, workspace: None, user: Value::Null, api_token: Arc::default() }
    }

    /// The same client with another bearer token: a JWT or an API token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), api_token: Arc::default(), ..self.clone() }
    }

    /// A client without credentials that is at another address of this machine.
    pub fn at(&self, address: Ipv4Addr) -> Self {
        let http =
            reqwest::Client::builder().no_proxy().local_address(Some(address.into())).read_timeout(DEADLINE);
        Self { http: http.build().expect("an HTTP client"), ..self.signed_out() }
    }

    /// The same client without credentials.
    #[must_use]
    pub fn signed_out(&self) -> Self {
        Self { token: None, workspace: None, user: Value::Null, api_token: Arc::default(), ..self.clone() }
    }

    /// The same client, whose requests with credentials name this workspace.
    #[must_use]
    pub fn in_workspace(&self, workspace: &str) -> Self {
        Self { workspace: Some(workspace.to_owned()), api_token: Arc::default(), ..self.clone() }
    }

    /// The bearer token.
    pub fn token(&self) -> &str {
        self.token.as_deref().expect("a client that is signed in")
    }

    /// The user as the service described it when signing in.
    pub fn user(&self) -> &Value {
        &self.user
    }

    /// Makes an account and signs in to it.
    pub async fn sign_up(&self, email: &str, password: &str) -> Self {
        self.enter("/auth/sign-up", email, password).await
    }

    /// Signs in to an account.
    pub async fn sign_in(&self, email: &str, password: &str) -> Self {
        self.enter("/auth/sign-in", email, password).await
    }

    async fn enter(&self, path: &str, email: &str, password: &str) -> Self {
        let body = json!({ "email": email, "password": password });
        self.signed_in(&data(self.signed_out().post(path, &body).await))
    }

    /// Whoever was signed in with this answer.
    #[must_use]
    pub fn signed_in(&self, data: &Value) -> Self {
        let token = data["token"].as_str().expect("a token");
        Self { user: data["user"].clone(), workspace: None, ..self.with_token(token) }
    }

    /// A request to a path below `/api/v1`, with the bearer token if there is one: for what the methods below do not do.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_anywhere(method, &format!("/api/v1{path}"))
    }

    /// A request to any path of the service, with the bearer token if there is one.
    pub fn request_anywhere(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.request_outside(method, path);
        if let Some(workspace) = &self.workspace {
            request = request.header("X-Workspace", workspace);
        }
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    /// A request to any path of the service, without credentials.
    pub fn request_outside(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base_url.read()))
    }

    /// GET of a path below `/api/v1`: the status and the whole envelope. So are the others.
    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        envelope(send(self.request(Method::GET, path)).await).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        envelope(send(self.request(Method::POST, path).json(body)).await).await
    }

    pub async fn put(&self, path: &str) -> (StatusCode, Value) {
        envelope(send(self.request(Method::PUT, path)).await).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        envelope(send(self.request(Method::PATCH, path).json(body)).await).await
    }

    pub async fn delete(&self, path: &str) -> (StatusCode, Value) {
        envelope(send(self.request(Method::DELETE, path)).await).await
    }

    /// DELETE with a body that confirms it.
    pub async fn delete_with(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        envelope(send(self.request(Method::DELETE, path).json(body)).await).await
    }

    /// The `data` of a GET that succeeds.
    pub async fn read(&self, path: &str) -> Value {
        data(self.get(path).await)
    }

    /// The `data` of a POST that succeeds.
    pub async fn create(&self, path: &str, body: &Value) -> Value {
        data(self.post(path, body).await)
    }

    /// Creates a document and returns it as the service does.
    pub async fn create_document(&self, body: &Value) -> Value {
        self.create("/documents", body).await
    }

    /// Creates an agent and returns it as the service does.
    pub async fn create_agent(&self, body: &Value) -> Value {
        self.create("/agents", body).await
    }

    /// Links a document to an agent and returns the link.
    pub async fn link(&self, agent_id: &str, document_id: &str) -> Value {
        self.create("/agent-documents", &json!({ "agentId": agent_id, "documentId": document_id })).await
    }

    /// Asks an agent, as the interface says: with an API token in `X_SERVICE_API_KEY`.
    pub async fn predict(&self, agent_id: &str, question: &str) -> (StatusCode, Value) {
        let request = self.predict_request(agent_id, &json!({ "input": { "input": question } })).await;
        envelope(send(request).await).await
    }

    /// A predict request with a body of the test's own, for one that wants the stream of the answer.
    pub async fn predict_request(&self, agent_id: &str, body: &Value) -> RequestBuilder {
        let token = self.api_token.get_or_init(|| self.create_api_token()).await;
        let path = format!("/api/v1/agents/{agent_id}/predict");
        self.request_outside(Method::POST, &path).header("X_SERVICE_API_KEY", token).json(body)
    }

    /// Asks an agent with a body of the test's own, and reads the whole answer.
    pub async fn ask(&self, agent_id: &str, body: &Value) -> (StatusCode, Value) {
        envelope(send(self.predict_request(agent_id, body).await).await).await
    }

    /// Asks an agent, and reads the stream of the answer to its end.
    pub async fn stream(&self, agent_id: &str, question: &str, with_events: bool) -> Vec<SseEvent> {
        let body =
            json!({ "input": { "input": question }, "has_streaming": true, "stream_events": with_events });
        sse::events(send(self.predict_request(agent_id, &body).await).await).await
    }

    /// Creates a tool and links it to an agent.
    pub async fn create_tool_for(&self, agent_id: &str, tool: &Value) -> Value {
        let tool = self.create("/tools", tool).await;
        self.create("/agent-tools", &json!({ "agentId": agent_id, "toolId": id(&tool) })).await;
        tool
    }

    async fn create_api_token(&self) -> String {
        let token = self.create("/api-tokens", &json!({ "description": "for predict" })).await;
        token["token"].as_str().expect("the token's value").to_owned()
    }

    /// Waits until the ingestion of a document has ended, however it did, and returns the document.
    pub async fn wait_until_ingested(&self, document_id: &str) -> Value {
        let started = Instant::now();
        loop {
            let document = self.read(&format!("/documents/{document_id}")).await;
            let ingestion = &document["ingestion"];
            if matches!(ingestion["status"].as_str(), Some("SUCCEEDED" | "FAILED" | "CANCELLED")) {
                return document;
            }
            assert!(
                started.elapsed() < DEADLINE,
                "document {document_id} was not ingested within {DEADLINE:?}; its last state was {ingestion:#}"
            );
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Creates a document, waits for its ingestion, expects that it succeeded, and returns the document.
    pub async fn ingest(&self, body: &Value) -> Value {
        let created = self.create_document(body).await;
        let document = self.wait_until_ingested(id(&created)).await;
        assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{:#}", document["ingestion"]);
        document
    }

    /// Whether `/health/ready` is 200. A service that is not there is not ready.
    pub async fn is_ready(&self) -> bool {
        let answer = self.request_outside(Method::GET, "/health/ready").send().await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }
}

/// The id of anything that the service returned.
pub fn id(thing: &Value) -> &str {
    thing["id"].as_str().unwrap_or_else(|| panic!("no id in {thing:#}"))
}

/// The `data` of an answer that has to be a success.
pub fn data((status, mut envelope): (StatusCode, Value)) -> Value {
    assert_eq!(status, StatusCode::OK, "{envelope:#}");
    envelope["data"].take()
}

/// Sends a request that has to be answered.
pub async fn send(request: RequestBuilder) -> Response {
    request.send().await.unwrap_or_else(|error| panic!("the service did not answer: {error:?}"))
}

/// What every answer to OpenAI's clients has, which have no envelope.
pub fn assert_openai_form(status: StatusCode, body: &Value) {
    assert!(body.get("success").is_none(), "{status}: {body:#}");
    if status.is_success() {
        assert!(body["object"].is_string(), "{status}: {body:#}");
        return;
    }
    let error = body["error"].as_object().unwrap_or_else(|| panic!("{status} without an error: {body:#}"));
    assert!(error["message"].is_string() && error["type"].is_string(), "{status}: {body:#}");
    assert!(error.contains_key("param") && error["code"].is_string(), "{status}: {body:#}");
    assert_eq!(error.len(), 4, "{status}: {body:#}");
}

/// Reads an answer and checks what every answer has: the envelope and the request's id.
pub async fn envelope(answer: Response) -> (StatusCode, Value) {
    let (status, url) = (answer.status(), answer.url().clone());
    assert!(answer.headers().contains_key("x-request-id"), "no x-request-id from {url}");
    let text = answer.text().await.unwrap_or_else(|error| panic!("a broken answer from {url}: {error:?}"));
    let envelope: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{status} from {url} is not JSON ({error}): {text}"));
    if url.path().starts_with("/v1/") {
        assert_openai_form(status, &envelope);
        return (status, envelope);
    }
    assert_eq!(envelope["success"], status.is_success(), "{status} from {url}: {envelope:#}");
    if !status.is_success() {
        assert_eq!(envelope["data"], Value::Null, "{status} from {url}: {envelope:#}");
        let (code, message) = (&envelope["error"]["code"], &envelope["error"]["message"]);
        assert!(code.is_string() && message.is_string(), "{status} from {url}: {envelope:#}");
    }
    (status, envelope)
}
