//! Links between agents and tools.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, AgentToolId, ToolId, UserId},
    model::tool::AgentTool,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::users::NullBody;
use crate::{
    auth::Caller,
    extract::{PathId, QueriedAgent},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::links::{AgentToolService, NewAgentTool},
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(find, remove))
}

/// A link between an agent and a tool.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTool)]
#[serde(rename_all = "camelCase")]
struct AgentToolView {
    /// Its id.
    #[schema(value_type = String)]
    id: AgentToolId,
    /// The agent's id.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// Always empty.
    #[schema(value_type = Object)]
    agent: Map<String, Value>,
    /// The tool's id.
    #[schema(value_type = String)]
    tool_id: ToolId,
    /// Always empty.
    #[schema(value_type = Object)]
    tool: Map<String, Value>,
    /// The owner of both.
    #[schema(value_type = String)]
    user_id: UserId,
    /// When they were linked.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<&AgentTool> for AgentToolView {
    fn from(link: &AgentTool) -> Self {
        Self {
            id: link.id,
            agent_id: link.agent_id,
            agent: Map::new(),
            tool_id: link.tool_id,
            tool: Map::new(),
            user_id: link.owner.creator(),
            created_at: link.created_at,
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f46-02aa-7a3d-8f0b-6c1d2e3f4a5b",
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "agent": {},
        "toolId": "019a8f44-7d10-7b52-9c1e-52d6a1f0b3e7",
        "tool": {},
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "createdAt": "2026-01-31T08:11:00.000000+00:00",
    })
}

/// Link an agent and a tool
///
/// From now on the agent can use the tool. Linking the same pair again gives the first link. An AGENT tool with which the
/// agent could come to ask itself is refused, and so is a 65th tool.
#[utoipa::path(
    post,
    path = "/agent-tools",
    tag = "Agent tools",
    operation_id = "createAgentTool",
    request_body(content = NewAgentTool, example = json!({
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "toolId": "019a8f44-7d10-7b52-9c1e-52d6a1f0b3e7",
    })),
    responses((
        status = 200,
        description = "The link",
        body = inline(SuccessResponse<AgentToolView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn create(
    State(links): State<AgentToolService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewAgentTool>,
) -> ApiResult {
    let show = json_encoder(|link: &AgentTool| Ok(AgentToolView::from(link)));
    links.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List links between agents and tools
///
/// Newest first; those of one agent with `agentId`.
#[utoipa::path(
    get,
    path = "/agent-tools",
    tag = "Agent tools",
    operation_id = "listAgentTools",
    params(("agentId" = Option<String>, Query, description = "Only the links of this agent")),
    responses((
        status = 200,
        description = "The links",
        body = inline(SuccessResponse<Vec<AgentToolView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(links): State<AgentToolService>,
    caller: Caller,
    paging: Paging,
    QueriedAgent(agent): QueriedAgent,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (links, actor) = (links.clone(), caller.actor());
        async move {
            let links = links.list(&actor, agent, before, limit).await?;
            Ok(links.iter().map(|link| (*link.id.as_uuid(), AgentToolView::from(link))).collect())
        }
    })
    .await
}

/// Get a link between an agent and a tool
///
/// Shows which agent and which tool it joins.
#[utoipa::path(
    get,
    path = "/agent-tools/{id}",
    tag = "Agent tools",
    operation_id = "getAgentTool",
    params(("id" = String, Path, description = "The link's id")),
    responses((
        status = 200,
        description = "The link",
        body = inline(SuccessResponse<AgentToolView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(links): State<AgentToolService>,
    caller: Caller,
    PathId(id): PathId<AgentToolId>,
) -> ApiResult {
    Ok(data(AgentToolView::from(&links.find(&caller.actor(), id).await?)))
}

/// Delete a link between an agent and a tool
///
/// The agent cannot use the tool any more. Both stay.
#[utoipa::path(
    delete,
    path = "/agent-tools/{id}",
    tag = "Agent tools",
    operation_id = "deleteAgentTool",
    params(("id" = String, Path, description = "The link's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(links): State<AgentToolService>,
    caller: Caller,
    PathId(id): PathId<AgentToolId>,
) -> ApiResult {
    links.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
