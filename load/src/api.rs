//! A user of the service: sends requests, and checks that each answer is one.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use url::Url;

/// The longest that one answer may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest that a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A request that did not get the answer that it should have.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct RequestProblem {
    /// What went wrong, for counting: a code of the service, or one of the program's own.
    pub(crate) code: String,
    /// The same for people.
    pub(crate) message: String,
}

impl RequestProblem {
    /// A problem that the program itself found.
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }

    /// Whether the service said so. Without an answer nobody knows what it did.
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(self.code.as_str(), "unreachable" | "timeout" | "connection_broken" | "not_an_answer")
    }

    fn from_transport(error: &reqwest::Error) -> Self {
        // The address is left out: it is in the program's own arguments, and may hold a password.
        let mut message = String::new();
        let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
        while let Some(error) = cause {
            if !message.is_empty() {
                message.push_str(": ");
            }
            message.push_str(&error.to_string());
            cause = error.source();
        }
        let code = match error {
            error if error.is_timeout() => "timeout",
            error if error.is_connect() => "unreachable",
            error if error.is_request() || error.is_body() => "connection_broken",
            _ => "not_an_answer",
        };
        Self::new(code, if message.is_empty() { "no answer".to_owned() } else { message })
    }
}

/// The way to a service, signed in or not. Cloning shares the connections.
#[derive(Clone)]
pub(crate) struct ApiClient {
    http: reqwest::Client,
    base: Url,
    token: Option<String>,
    /// The workspace that requests mean; the account's own without it.
    workspace: Option<String>,
}

impl ApiClient {
    /// A client of the service at `base`, such as `http://127.0.0.1:8080`.
    pub(crate) fn new(base: &Url) -> Result<Self, RequestProblem> {
        #[expect(
            clippy::disallowed_methods,
            reason = "whoever starts this program says where its requests go"
        )]
        let builder = reqwest::Client::builder();
        let http = builder
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(PATIENCE)
            .build()
            .map_err(|error| RequestProblem::new("client", error.to_string()))?;
        Ok(Self { http, base: base.clone(), token: None, workspace: None })
    }

    /// The same client with a credential.
    #[must_use]
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same client in a workspace that its account is a member of.
    #[must_use]
    pub(crate) fn with_workspace(&self, id: &str) -> Self {
        Self { workspace: Some(id.to_owned()), ..self.clone() }
    }

    /// The same account and workspace at the address of `service`, where the service is after a start.
    #[must_use]
    pub(crate) fn moved_to(&self, service: &Self) -> Self {
        Self { token: self.token.clone(), workspace: self.workspace.clone(), ..service.clone() }
    }

    /// A request to any path of the service.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        // The base may have a path of its own, as behind a proxy.
        let address = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let mut request = self.http.request(method, address);
        if let Some(workspace) = &self.workspace {
            request = request.header("x-workspace", workspace);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The envelope of an answer that has to be a success, to a request below `/api/v1`.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, RequestProblem> {
        let mut request = self.request(method, &format!("/api/v1{path}"));
        if let Some(body) = body {
            request = request.json(body);
        }
        envelope(request).await
    }

    /// The `data` of a GET.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, RequestProblem> {
        Ok(self.call(Method::GET, path, None).await?["data"].take())
    }

    /// The `data` of a POST.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, RequestProblem> {
        Ok(self.call(Method::POST, path, Some(body)).await?["data"].take())
    }

    /// Uploads a file and returns the `data` of the answer.
    pub(crate) async fn upload(
        &self,
        name: &str,
        content_type: &str,
        file: &[u8],
        metadata: &Value,
    ) -> Result<Value, RequestProblem> {
        const BOUNDARY: &str = "----lectern-load-part";
        let mut body = Vec::with_capacity(file.len() + 512);
        for (part, text) in [("name", name), ("metadata", &metadata.to_string())] {
            let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{part}\"\r\n\r\n");
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(text.as_bytes());
            body.extend_from_slice(b"\r\n");
        }
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {content_type}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(file);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let request = self
            .request(Method::POST, "/api/v1/documents/upload")
            .header(header::CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"))
            .body(body);
        Ok(envelope(request).await?["data"].take())
    }

    /// Makes an account; the client with its token.
    pub(crate) async fn sign_up(&self, email: &str, password: &str) -> Result<Self, RequestProblem> {
        self.sign("up", email, password).await
    }

    /// Makes an account, or signs in to it when sign-up is closed or the address is taken; the client with its token.
    pub(crate) async fn enter(&self, email: &str, password: &str) -> Result<Self, RequestProblem> {
        match self.sign_up(email, password).await {
            Err(first) if matches!(first.code.as_str(), "forbidden" | "conflict") => {
                let second = self.sign("in", email, password).await;
                second.map_err(|second| {
                    let message =
                        format!("cannot sign up ({}), nor sign in ({})", first.message, second.message);
                    RequestProblem { message, ..second }
                })
            }
            other => other,
        }
    }

    async fn sign(&self, direction: &str, email: &str, password: &str) -> Result<Self, RequestProblem> {
        let body = json!({"email": email, "password": password});
        let data = self.post(&format!("/auth/sign-{direction}"), &body).await?;
        let token = data["token"].as_str().map(|token| self.with_token(token));
        token.ok_or_else(|| RequestProblem::new("not_an_answer", "signing in gave no token"))
    }

    /// What `/health/ready` says, ready or not.
    pub(crate) async fn health(&self) -> Result<(StatusCode, Value), RequestProblem> {
        let sent = self.request(Method::GET, "/health/ready").send().await;
        let answer = sent.map_err(|error| RequestProblem::from_transport(&error))?;
        let status = answer.status();
        let body = answer.json().await.map_err(|error| RequestProblem::from_transport(&error))?;
        Ok((status, body))
    }

    /// Asks a model at this address, and reads its whole answer.
    pub(crate) async fn stream(&self, body: &Value) -> Result<(), RequestProblem> {
        let sent = self.request(Method::POST, "/chat/completions").json(body).send().await;
        let answer = sent.and_then(reqwest::Response::error_for_status);
        let answer = answer.map_err(|error| RequestProblem::from_transport(&error))?;
        answer.bytes().await.map(drop).map_err(|error| RequestProblem::from_transport(&error))
    }

    /// The text of an address, when it answers with success.
    pub(crate) async fn text(&self, address: &Url) -> Result<String, RequestProblem> {
        let sent = self.http.get(address.clone()).timeout(CONNECT).send().await;
        let answer = sent.map_err(|error| RequestProblem::from_transport(&error))?;
        let status = answer.status();
        if !status.is_success() {
            return Err(RequestProblem::new(status.as_str(), format!("{address} answers {status}")));
        }
        answer.text().await.map_err(|error| RequestProblem::from_transport(&error))
    }
}

/// Sends a request and reads the envelope of its answer, which has to be a success.
pub(crate) async fn envelope(request: RequestBuilder) -> Result<Value, RequestProblem> {
    let answer = request.send().await.map_err(|error| RequestProblem::from_transport(&error))?;
    let status = answer.status();
    let request_id = answer.headers().get("x-request-id").cloned();
    let text = answer.bytes().await.map_err(|error| RequestProblem::from_transport(&error))?;
    let id = request_id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or("without a request id");
    let Ok(envelope) = serde_json::from_slice::<Value>(&text) else {
        return Err(RequestProblem::new("not_an_answer", format!("{status} without an envelope ({id})")));
    };
    if status.is_success() && envelope["success"] == true {
        return Ok(envelope);
    }
    let code = envelope["error"]["code"].as_str().unwrap_or("not_an_answer");
    let message = envelope["error"]["message"].as_str().unwrap_or("no message");
    let fields = &envelope["error"]["fields"];
    let fields = if fields.is_null() { String::new() } else { format!(" {fields}") };
    Err(RequestProblem::new(code, format!("{status} {message}{fields} ({id})")))
}

/// The id of what an answer is about.
pub(crate) fn id_of(data: &Value) -> Result<String, RequestProblem> {
    let id = data["id"].as_str().map(str::to_owned);
    id.ok_or_else(|| RequestProblem::new("not_an_answer", "an answer without an id"))
}
