//! The tools that clients find: which there are, whom each is offered to, and how a call goes.

mod agents;
mod ask;
mod documents;
mod fetch;
mod paging;
mod schema;
mod search;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, ContentBlock, Tool, ToolAnnotations},
    service::RequestContext,
};
use serde_json::Value;
use tracing::Instrument;

use super::{context::CallContext, message::told, served::ServedServices};
use crate::{
    error::ApiError,
    services::actor::{Actor, Permission},
};

/// What comes of a call. An error is told to the model, which may do better.
type CallResult = Result<CallToolResult, ApiError>;

/// A tool of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServedTool {
    Search,
    Fetch,
    AskAgent,
    ListAgents,
    ListDocuments,
    AddDocument,
}

impl ServedTool {
    const ALL: [Self; 6] =
        [Self::Search, Self::Fetch, Self::AskAgent, Self::ListAgents, Self::ListDocuments, Self::AddDocument];

    const fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Fetch => "fetch",
            Self::AskAgent => "ask_agent",
            Self::ListAgents => "list_agents",
            Self::ListDocuments => "list_documents",
            Self::AddDocument => "add_document",
        }
    }

    /// What whoever calls it has to be allowed.
    const fn permission(self) -> Permission {
        match self {
            // A token that is bound to an agent is shown that one.
            Self::AskAgent | Self::ListAgents => Permission::AskAgents,
            Self::Search | Self::Fetch | Self::ListDocuments | Self::AddDocument => Permission::EditDocuments,
        }
    }

    /// The tool as it is listed.
    fn described(self) -> Tool {
        let tool = match self {
            Self::Search => search::described(self.name()),
            Self::Fetch => fetch::described(self.name()),
            Self::AskAgent => ask::described(self.name()),
            Self::ListAgents => agents::described(self.name()),
            Self::ListDocuments => documents::list_described(self.name()),
            Self::AddDocument => documents::add_described(self.name()),
        };
        let hints = ToolAnnotations::new().destructive(false);
        tool.with_annotations(match self {
            // What an agent's own tools do is up to whoever has built it.
            Self::AskAgent => hints.read_only(false).open_world(true),
            Self::AddDocument => hints.read_only(false).idempotent(false).open_world(true),
            Self::Search | Self::Fetch | Self::ListAgents | Self::ListDocuments => {
                hints.read_only(true).idempotent(true).open_world(false)
            }
        })
    }
}

/// The tools that somebody may call.
pub(super) fn offered_to(actor: &Actor) -> Vec<Tool> {
    let allowed = ServedTool::ALL.into_iter().filter(|tool| actor.may(tool.permission()).is_ok());
    allowed.map(ServedTool::described).collect()
}

/// Calls a tool.
///
/// # Errors
/// When there is no such tool. Whatever fails within one is its result.
pub(super) async fn call(
    services: &ServedServices,
    name: &str,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let call = CallContext::of(context)?;
    let named = ServedTool::ALL.into_iter().find(|tool| tool.name() == name);
    let unknown = || ErrorData::invalid_params(format!("There is no tool {name:.100}."), None);
    let tool = named.ok_or_else(unknown)?;
    let running = run(services, tool, &call, context).instrument(call.span.clone());
    // Nobody would answer the client otherwise.
    let result = AssertUnwindSafe(running).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(parent: &call.span, tool = tool.name(), "a tool of the server panicked");
        Err(ApiError::internal())
    });
    Ok(result.unwrap_or_else(|error| CallToolResult::error(vec![ContentBlock::text(told(&error))])))
}

async fn run(
    services: &ServedServices,
    tool: ServedTool,
    call: &CallContext,
    context: &RequestContext<RoleServer>,
) -> CallResult {
    call.actor.may(tool.permission())?;
    match tool {
        ServedTool::Search => search::search(services, call).await,
        ServedTool::Fetch => fetch::fetch(services, call).await,
        ServedTool::AskAgent => ask::ask(services, call, context).await,
        ServedTool::ListAgents => agents::list(services, call).await,
        ServedTool::ListDocuments => documents::list(services, call).await,
        ServedTool::AddDocument => documents::add(services, call).await,
    }
}

/// One text with JSON in it, and nothing besides: what some clients demand of `search` and `fetch`.
fn json_text(value: &Value) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(value.to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_tells_its_arguments_as_an_object_of_plain_types() {
        for tool in ServedTool::ALL.map(ServedTool::described) {
            let schema = tool.schema_as_json_value();
            assert_eq!(schema["type"], "object", "{}: {schema:#}", tool.name);
            assert!(!schema.to_string().contains("$ref"), "{}: {schema:#}", tool.name);
            assert!(!schema.to_string().contains("\"null\""), "{}: {schema:#}", tool.name);
            assert!(tool.title.is_some() && tool.description.is_some() && tool.annotations.is_some());
        }
        let required = |tool: ServedTool| tool.described().schema_as_json_value()["required"].clone();
        assert_eq!(required(ServedTool::Search), serde_json::json!(["query"]));
        assert_eq!(required(ServedTool::AskAgent), serde_json::json!(["agent", "question"]));
        assert_eq!(required(ServedTool::AddDocument), serde_json::json!(["name"]));
    }

    #[test]
    fn search_and_fetch_promise_nothing_but_their_text() {
        for tool in [ServedTool::Search, ServedTool::Fetch] {
            assert!(tool.described().output_schema.is_none());
        }
    }
}
