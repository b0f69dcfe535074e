//! OPENAPI: calls the operations of an HTTP interface that an OpenAPI document describes, one function each.
//!
//! Three parties meet here. The tool's owner names the document and, if need be, headers that hold credentials. Whoever
//! writes the document says what there is and where. The model says what to ask. Neither of the last two may get hold of
//! the owner's headers: they go to one origin only, which the owner has named.

mod document;
mod operation;
mod request;
mod schema;
mod server;
mod yaml;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use lectern_shared::model::tool::Tool as Stored;
use reqwest::header::{HeaderMap, HeaderName};
use serde_json::{Map, Value};
use tokio::time::Instant;
use url::Url;

use self::{
    document::OpenApiDocument,
    operation::{FoundOperation, OPERATIONS, OpenApiOperation},
    schema::SchemaCopier,
    server::{NoServer, ServerResolver},
};
use super::{
    CallableTool, ToolError, ToolFunction,
    cache::{self, ToolCache},
    configuration::{ToolConfiguration, failed},
    http::{self, ExcessRule, ServiceClient, ServiceRequest, ServiceResponse},
    naming, text,
};
use crate::models::ToolSpec;

/// Largest document, in bytes.
const DOCUMENT: u64 = 2 * 1024 * 1024;

/// What a document offers to a tool. It holds no secret.
pub(super) struct OpenApiPlan {
    functions: Vec<ToolFunction>,
    operations: Vec<(OpenApiOperation, Result<Url, NoServer>)>,
}

pub(super) struct OpenApiTool {
    service: ServiceClient,
    headers: HeaderMap,
    plan: Arc<OpenApiPlan>,
}

impl OpenApiTool {
    pub(super) async fn open(
        tool: &Stored,
        configuration: &ToolConfiguration<'_>,
        service: ServiceClient,
        cache: &ToolCache<OpenApiPlan>,
        deadline: Instant,
    ) -> Result<Self, ToolError> {
        let headers = configuration.headers();
        if let Some(plan) = cache.get(tool) {
            return Ok(Self { service, headers, plan });
        }
        let address = configuration.url("openApiUrl");
        let address = address.ok_or_else(|| failed("This tool has no `openApiUrl` that can be asked."))?;
        let base = configuration.url("base_url");
        let mut ask = ServiceRequest::get(address.clone());
        ask.accept = "application/json, application/yaml, text/yaml;q=0.9, */*;q=0.5";
        ask.most = DOCUMENT;
        // They are for the API. A document that lies somewhere else is fetched without them.
        if base.as_ref().is_none_or(|base| base.origin() == address.origin()) {
            ask.headers.clone_from(&headers);
        }
        let answer = service.send(ask, service.until(deadline)).await.map_err(|error| no_document(&error))?;
        let answer = service.accept(answer).map_err(|error| no_document(&error))?;
        let wanted = PlanInput {
            tool: tool.clone(),
            address,
            found: answer.url,
            base,
            headers: headers.keys().cloned().collect(),
            operations: configuration.texts("operations"),
        };
        let plan = service.compute().run(move || {
            wanted.plan(&answer.body).map(|plan| {
                let bytes = cache::held(&plan.functions);
                (plan, bytes)
            })
        });
        let plan = plan.await.unwrap_or_else(|_| Err(failed("The OpenAPI document could not be read.")));
        let (plan, bytes) = plan?;
        Ok(Self { service, headers, plan: cache.put(tool, plan, bytes) })
    }

    /// What the API answered, for the model: failures too, which say in the API's own words what is wrong.
    async fn render(&self, answer: ServiceResponse) -> String {
        let ServiceResponse { status, content_type, body, is_cut, .. } = answer;
        if body.is_empty() {
            return format!("Status {status}, without content.");
        }
        let kind = content_type.as_deref().unwrap_or_default();
        let is_json =
            kind.is_empty() || kind == "text/json" || kind == "application/json" || kind.ends_with("+json");
        let size = body.len();
        let text = if is_json {
            match http::compact(self.service.compute(), body.clone()).await {
                Some(text) => Some(text),
                None => readable(&body, is_cut),
            }
        } else if kind.starts_with("text/") || kind.ends_with("xml") || kind.ends_with("yaml") {
            Some(String::from_utf8_lossy(&body).into_owned())
        } else {
            None
        };
        match text {
            Some(text) if is_cut => format!("Status {status}\n{}", text::cut_again(text, text::MOST)),
            Some(text) => format!("Status {status}\n{}", text::cut(text, text::MOST)),
            None => {
                let kind = if kind.is_empty() { "of an unknown type" } else { kind };
                let more = if is_cut { "more than " } else { "" };
                format!("Status {status}, {more}{size} bytes, {}, which is not shown.", text::line(kind, 100))
            }
        }
    }
}

/// Bytes as text, unless they are something else. A body that was cut may end within a character.
fn readable(body: &Bytes, is_cut: bool) -> Option<String> {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(body.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then(|| text.to_owned())
}

/// A sentence about the document in the words of one about the API.
fn no_document(error: &ToolError) -> ToolError {
    let told = match error {
        ToolError::Timeout => "The OpenAPI document took too long to arrive.".to_owned(),
        ToolError::Arguments(what) | ToolError::Failed(what) | ToolError::Reported(what) => {
            let what = what.strip_prefix("The API ").unwrap_or(what);
            format!("The OpenAPI document could not be fetched: its server {what}")
        }
    };
    ToolError::Failed(told)
}

/// What a plan is made from, besides the document's text.
struct PlanInput {
    tool: Stored,
    /// Where the owner says that the document is.
    address: Url,
    /// Where it was, after redirects.
    found: Url,
    base: Option<Url>,
    headers: Vec<HeaderName>,
    operations: Option<Vec<String>>,
}

impl PlanInput {
    fn plan(&self, document: &[u8]) -> Result<OpenApiPlan, ToolError> {
        let document = OpenApiDocument::read(document)
            .map_err(|what| ToolError::Failed(format!("The OpenAPI document {what}.")))?;
        let origin = self.address.origin();
        let places = ServerResolver {
            document: &document,
            address: &self.found,
            base: self.base.as_ref(),
            only: (!self.headers.is_empty()).then_some(&origin),
        };
        let mut schemas = SchemaCopier::new(&document);
        let mut operations: Vec<_> = FoundOperation::all(&document, self.operations.as_deref())
            .filter_map(|found| {
                Some((found.read(&document, &mut schemas, &self.headers)?, places.of(&found)))
            })
            .take(OPERATIONS)
            .collect();
        if operations.is_empty() {
            return Err(failed(match self.operations {
                None => "The OpenAPI document has no operation that can be called.",
                Some(_) => {
                    "The OpenAPI document has none of the tool's `operations`, or none that can be called."
                }
            }));
        }
        // Where nothing can be asked, one function that says so is enough.
        if let Some((_, Err(reason))) = operations.iter().min_by_key(|(_, server)| server.is_err()) {
            return Err(no_server(*reason));
        }
        let names =
            naming::members(&self.tool, operations.iter().map(|(operation, _)| operation.name.as_str()));
        let functions = names.into_iter().zip(&mut operations).map(|(name, (operation, _))| {
            let description = naming::describe_member(&self.tool, &operation.description);
            let spec = ToolSpec { name, description, parameters: operation.arguments() };
            ToolFunction { spec, plain: None }
        });
        let functions = functions.collect();
        Ok(OpenApiPlan { functions, operations })
    }
}

fn no_server(reason: NoServer) -> ToolError {
    failed(match reason {
        NoServer::Unusable => {
            "The OpenAPI document names no server that can be asked. Set `base_url` to the address of the API."
        }
        NoServer::Elsewhere => {
            "The OpenAPI document says that its API is at another origin than the document, and the headers of this \
             tool are not sent there. Set `base_url` to the address of the API that they are for."
        }
    })
}

#[async_trait]
impl CallableTool for OpenApiTool {
    fn functions(&self) -> &[ToolFunction] {
        &self.plan.functions
    }

    async fn call(
        &self,
        function: usize,
        arguments: Map<String, Value>,
        deadline: Instant,
    ) -> Result<String, ToolError> {
        let (Some(offered), Some((operation, server))) =
            (self.plan.functions.get(function), self.plan.operations.get(function))
        else {
            return Err(self.service.malformed_answer());
        };
        let server = server.as_ref().map_err(|reason| no_server(*reason))?;
        let mut ask = request::build(operation, &offered.spec.parameters, server, &self.headers, &arguments)?;
        // A model makes something of the beginning of a list, and nothing of a failure.
        ask.excess = ExcessRule::LeftOut;
        let answer = self.service.send(ask, self.service.until(deadline)).await?;
        let succeeded = (200..300).contains(&answer.status);
        let told = self.render(answer).await;
        // The model is told the same; but what failed is nobody's answer, and is not given again.
        if succeeded { Ok(told) } else { Err(ToolError::Reported(told)) }
    }
}
