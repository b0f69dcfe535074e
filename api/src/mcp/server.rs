//! What the server answers to each kind of message.

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
        CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
};

use super::{context::CallContext, resources, served::ServedServices, tools};

/// What a model is told of the server.
const INSTRUCTIONS: &str = "Lectern holds documents of a team and agents that answer from them with verified citations. Use \
    `search` and `fetch` to read passages yourself, or `ask_agent` for an answer with its sources; give the links of the \
    sources to the user.";

/// Methods whose parameters are read. A request for one of them that was not understood has wrong ones.
const WITH_PARAMETERS: [&str; 7] = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The server. Cheap to clone.
#[derive(Clone)]
pub(super) struct McpServer(ServedServices);

impl McpServer {
    pub(super) fn new(services: ServedServices) -> Self {
        Self(services)
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let name = Implementation::new("lectern", env!("CARGO_PKG_VERSION")).with_title("Lectern");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let call = CallContext::of(&context)?;
        Ok(ListToolsResult::with_all_items(tools::offered_to(&call.actor)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(&self.0, &request.name, &context).await.map(CallToolResponse::from)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let call = CallContext::of(&context)?;
        resources::list(&self.0.documents, &call.actor, request.and_then(|page| page.cursor)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let call = CallContext::of(&context)?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates(&call.actor)))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let call = CallContext::of(&context)?;
        let read = resources::read(&self.0.documents, &call.actor, &request.uri).await?;
        Ok(ReadResourceResponse::from(read))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(no_method("prompts/list"))
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(no_method("prompts/get"))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(no_method("completion/complete"))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        if WITH_PARAMETERS.contains(&method) {
            return Err(ErrorData::invalid_params(
                format!("The parameters of {method} are not valid."),
                None,
            ));
        }
        Err(no_method(method))
    }
}

/// What is said of a method that the server does not have. The library says its name, and no more.
fn no_method(method: &str) -> ErrorData {
    let message = format!("There is no method {method:.100}: the server has tools and resources.");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}
