//! Tools.

mod view;

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::ids::ToolId;

use self::view::{ToolView, example};
use super::users::NullBody;
use crate::{
    auth::Caller,
    extract::{NamePart, PathId, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list_by},
    services::{
        edits::EditBase,
        tools::{NewTool, ToolChange, ToolDetails, ToolService},
    },
};

/// Configurations may have 64 KiB each.
const PAGE: u32 = 50;

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(find, change, remove))
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
    request_body(content = NewTool, example = json!({
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
#[handler]
async fn create(
    State(tools): State<ToolService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewTool>,
) -> ApiResult {
    let show = json_encoder(|details: &ToolDetails| Ok(ToolView::from(details.clone())));
    tools.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List your tools
///
/// Shows every tool with its configuration, newest first. Secrets are masked.
#[utoipa::path(
    get,
    path = "/tools",
    tag = "Tools",
    operation_id = "listTools",
    params(("name" = Option<String>, Query, description = "Only those whose names have this somewhere, in whichever case", max_length = 1_000)),
    responses((
        status = 200,
        description = "Your tools",
        body = inline(SuccessResponse<Vec<ToolView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(tools): State<ToolService>,
    caller: Caller,
    paging: Paging,
    NamePart(name): NamePart,
) -> ApiResult {
    list_by(PAGE, paging, move |before, limit| {
        let (tools, actor, name) = (tools.clone(), caller.actor(), name.clone());
        async move {
            let tools = tools.list(&actor, &name, before, limit).await?;
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
#[handler]
async fn find(State(tools): State<ToolService>, caller: Caller, PathId(id): PathId<ToolId>) -> ApiResult {
    Ok(data(ToolView::from(tools.find(&caller.actor(), id).await?)))
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
    request_body(content = ToolChange, example = json!({"name": "the web", "returnDirect": false})),
    responses((
        status = 200,
        description = "The tool as it is now",
        body = inline(SuccessResponse<ToolView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn change(
    State(tools): State<ToolService>,
    caller: Caller,
    PathId(id): PathId<ToolId>,
    ValidJson(change): ValidJson<ToolChange>,
) -> ApiResult {
    Ok(data(ToolView::from(tools.change(&caller.actor(), id, change, EditBase::Present).await?)))
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
#[handler]
async fn remove(State(tools): State<ToolService>, caller: Caller, PathId(id): PathId<ToolId>) -> ApiResult {
    tools.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
