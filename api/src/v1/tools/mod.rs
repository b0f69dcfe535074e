//! Tools.

mod view;

use axum::extract::State;
use lectern_shared::{ids::ToolId, model::tool::ToolType};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::view::{ToolView, example};
use super::{DESCRIPTION, NAME, users::NullBody};
use crate::{
    auth::Caller,
    extract::{FromFields, JsonFields, PathId, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::SuccessResponse,
    response::{ApiResult, Paging, data, list_by},
    services::tools::{NewTool, ToolChange, ToolDetails, ToolMetadata, ToolService},
    state::AppState,
};

/// Configurations may have 64 KiB each.
const PAGE: u32 = 50;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(index, create)).routes(routes!(find, change, remove))
}

/// A new tool.
#[derive(ToSchema)]
#[schema(as = NewTool, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the JSON; the values are read one by one")]
struct NewToolSchema {
    /// Its name, also what models call it by.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// One of `SEARCH`, `COMPUTE_ALPHA`, `MODELHOST`, `AUTOMATION_NLA`, `AGENT`, `OPENAPI`.
    #[schema(value_type = String, pattern = "^(SEARCH|COMPUTE_ALPHA|MODELHOST|AUTOMATION_NLA|AGENT|OPENAPI)$")]
    r#type: String,
    /// What it is for, in words that a model reads.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    description: Option<String>,
    /// Its configuration. `SEARCH`: `provider` (`searxng` with `base_url`; `brave`, `tavily` or `serper` with `api_key`).
    /// `COMPUTE_ALPHA`: `app_id`. `MODELHOST`: `api_key`, and `model` or `version`. `AUTOMATION_NLA`: `automation_nla_api_key`.
    /// `AGENT`: `agentId`, one of your agents. `OPENAPI`: `openApiUrl`, and if need be `headers` and `operations`, the only
    /// operations that may be called. All: `base_url`, another host that speaks the same protocol, and `timeout`, seconds from
    /// 1 to 120. Any other key is kept. At most 64 KiB.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// Makes its result the agent's answer, as it is. False when left out.
    #[schema(value_type = Option<bool>)]
    return_direct: Option<bool>,
}

impl FromFields for NewTool {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        let r#type: Option<ToolType> = fields.choice("type", &ToolType::choices());
        Self {
            r#type: r#type.unwrap_or(ToolType::Search),
            name: fields.text("name", NAME),
            description: fields.optional_text("description", DESCRIPTION).unwrap_or_default(),
            // What it needs depends on the type.
            metadata: r#type.map(|r#type| ToolMetadata::read(fields, r#type)).unwrap_or_default(),
            return_direct: fields.boolean("returnDirect").unwrap_or(false),
        }
    }
}

/// Create a tool
///
/// Stores what an agent may use besides its documents. The configuration is checked now, as far as it can be without asking
/// anybody. Link the tool to agents with `POST /agent-tools`.
#[utoipa::path(
    post,
    path = "/tools",
    tag = "Tools",
    operation_id = "createTool",
    request_body(content = NewToolSchema, example = json!({
        "name": "web",
        "type": "SEARCH",
        "description": "Searches the web for what the documents do not say.",
        "metadata": {"provider": "brave", "api_key": "BSA-0123456789abcdefx7Qd"},
    })),
    responses(
        (
            status = 200,
            description = "The new tool",
            body = inline(SuccessResponse<ToolView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 404, description = "`metadata.agentId` is none of your agents"),
    ),
)]
async fn create(
    State(tools): State<ToolService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewTool>,
) -> ApiResult {
    let show = json_encoder(|details: &ToolDetails| Ok(ToolView::from(details.clone())));
    tools.create(caller.actor(), body, once, show).await.map(creation_response)
}

/// List your tools
///
/// Shows every tool with its configuration, newest first. Secrets are masked.
#[utoipa::path(
    get,
    path = "/tools",
    tag = "Tools",
    operation_id = "listTools",
    responses((
        status = 200,
        description = "Your tools",
        body = inline(SuccessResponse<Vec<ToolView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
async fn index(State(tools): State<ToolService>, caller: Caller, paging: Paging) -> ApiResult {
    list_by(PAGE, paging, move |before, limit| {
        let (tools, actor) = (tools.clone(), caller.actor());
        async move {
            let tools = tools.list(actor, before, limit).await?;
            let row = |details: ToolDetails| (*details.tool.id.as_uuid(), ToolView::from(details));
            Ok(tools.into_iter().map(row).collect())
        }
    })
    .await
}

/// Get a tool
///
/// Shows one tool with its configuration. Secrets are masked.
#[utoipa::path(
    get,
    path = "/tools/{id}",
    tag = "Tools",
    operation_id = "getTool",
    params(("id" = String, Path, description = "The tool's id")),
    responses((
        status = 200,
        description = "The tool",
        body = inline(SuccessResponse<ToolView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn find(State(tools): State<ToolService>, caller: Caller, PathId(id): PathId<ToolId>) -> ApiResult {
    Ok(data(ToolView::from(tools.find(caller.actor(), id).await?)))
}

/// A change of a tool. What is left out stays as it is.
#[derive(ToSchema)]
#[schema(as = ToolChange, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the JSON; the values are read one by one")]
struct ToolChangeSchema {
    /// A new name.
    #[schema(value_type = Option<String>, nullable = false, min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: Option<String>,
    /// A new description; null empties it.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    description: Option<String>,
    /// The whole new configuration. A secret that comes back masked stays as it is, for the same provider and host.
    #[schema(value_type = Option<Object>, nullable = false)]
    metadata: Option<Map<String, Value>>,
    /// Whether its result is the agent's answer.
    #[schema(value_type = Option<bool>, nullable = false)]
    return_direct: Option<bool>,
}

impl FromFields for ToolChange {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        fields.only(&["name", "description", "metadata", "returnDirect"]);
        fields.refuse_nulls(&["name", "metadata", "returnDirect"]);
        let description = fields.given("description");
        Self {
            name: fields.get("name").is_some().then(|| fields.text("name", NAME)),
            description: description
                .then(|| fields.optional_text("description", DESCRIPTION).unwrap_or_default()),
            metadata: fields.object("metadata"),
            return_direct: fields.boolean("returnDirect"),
        }
    }
}

/// Change a tool
///
/// Changes the fields that are sent. `metadata` is replaced as a whole and checked as on create; a secret that comes back
/// masked, at the place where it was, is kept, unless it would then go to another provider or host: that needs the secret
/// itself. The type of a tool does not change.
#[utoipa::path(
    patch,
    path = "/tools/{id}",
    tag = "Tools",
    operation_id = "updateTool",
    params(("id" = String, Path, description = "The tool's id")),
    request_body(content = ToolChangeSchema, example = json!({"name": "the web", "returnDirect": false})),
    responses((
        status = 200,
        description = "The tool as it is now",
        body = inline(SuccessResponse<ToolView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn change(
    State(tools): State<ToolService>,
    caller: Caller,
    PathId(id): PathId<ToolId>,
    ValidJson(change): ValidJson<ToolChange>,
) -> ApiResult {
    Ok(data(ToolView::from(tools.change(caller.actor(), id, change).await?)))
}

/// Delete a tool
///
/// Its links go with it.
#[utoipa::path(
    delete,
    path = "/tools/{id}",
    tag = "Tools",
    operation_id = "deleteTool",
    params(("id" = String, Path, description = "The tool's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
async fn remove(State(tools): State<ToolService>, caller: Caller, PathId(id): PathId<ToolId>) -> ApiResult {
    tools.delete(caller.actor(), id).await?;
    Ok(data(NullBody))
}
