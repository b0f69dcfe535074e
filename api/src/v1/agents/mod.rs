//! Agents.

mod versions;
mod view;

use axum::{
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use lectern_derive::handler;
use lectern_shared::ids::AgentId;

use self::view::{AgentView, VisibleAgentView, changed_example, example, linked_example};
use super::users::NullBody;
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{NamePart, PathId, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::{
        agents::{AgentChange, AgentDetails, AgentService, FirstLinks, NewAgent},
        edits::EditBase,
    },
};

/// Longest name of a session, in characters.
const SESSION: usize = 1_000;

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .routes(routes!(erase_session))
        .merge(versions::router())
}

/// Create an agent
///
/// Makes what can be asked: a model, how to talk with it, and what it is told. Link documents to it with `POST
/// /agent-documents` and tools with `POST /agent-tools`. Without `llm` it has the service's default model.
#[utoipa::path(
    post,
    path = "/agents",
    tag = "Agents",
    operation_id = "createAgent",
    request_body(content = NewAgent, example = json!({
        "name": "Librarian",
        "type": "CHATVENDOR",
        "description": "Answers from the handbooks.",
        "llm": {"provider": "openai", "model": "gpt-4o-mini", "api_key": "sk-0123456789abcdef0123f3a9", "temperature": 0.2},
        "hasMemory": true,
        "promptId": "019a8f41-7d20-7b6a-9c11-5e8f0a2b4c3d",
        "tags": [{"id": "019a8f40-0a2c-7c19-8d3b-1f2e3d4c5b6a"}],
    })),
    responses(
        (
            status = 200,
            description = "The new agent",
            body = inline(SuccessResponse<AgentView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 404, description = "`promptId` is none of your prompts, or one of `tags` none of your tags"),
    ),
)]
#[handler]
async fn create(
    State(agents): State<AgentService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewAgent>,
) -> ApiResult {
    let show = json_encoder(|made: &AgentDetails| Ok(AgentView::from(made.clone())));
    agents.create(&caller.actor(), body, FirstLinks::default(), once, show).await.map(creation_response)
}

/// List your agents
///
/// Shows every agent of the workspace, newest first. Roles below `builder` see `id`, `name` and `description`.
#[utoipa::path(
    get,
    path = "/agents",
    tag = "Agents",
    operation_id = "listAgents",
    params(("name" = Option<String>, Query, description = "Only those whose names have this somewhere, in whichever case", max_length = 1_000)),
    responses((
        status = 200,
        description = "Your agents",
        body = inline(SuccessResponse<Vec<VisibleAgentView>>),
        example = json!({"success": true, "data": [linked_example()]}),
    )),
)]
#[handler]
async fn index(
    State(agents): State<AgentService>,
    caller: Caller,
    paging: Paging,
    NamePart(name): NamePart,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (agents, actor, name) = (agents.clone(), caller.actor(), name.clone());
        async move {
            let agents = agents.list(&actor, &name, before, limit).await?;
            Ok(agents.into_iter().map(VisibleAgentView::row).collect())
        }
    })
    .await
}

/// Get an agent
///
/// Shows one agent. Roles below `builder` see `id`, `name` and `description`.
#[utoipa::path(
    get,
    path = "/agents/{id}",
    tag = "Agents",
    operation_id = "getAgent",
    params(("id" = String, Path, description = "The agent's id")),
    responses((
        status = 200,
        description = "The agent",
        body = inline(SuccessResponse<VisibleAgentView>),
        example = json!({"success": true, "data": linked_example()}),
    )),
)]
#[handler]
async fn find(State(agents): State<AgentService>, caller: Caller, PathId(id): PathId<AgentId>) -> ApiResult {
    let (_, agent) = VisibleAgentView::row(agents.find(&caller.actor(), id).await?);
    Ok(data(agent))
}

/// Change an agent
///
/// Changes what is given and leaves the rest as it is. `llm` and `tags` are replaced as a whole; an `api_key` that comes back
/// masked stays as it is, unless it would then go to another provider or host: that needs the key itself.
#[utoipa::path(
    patch,
    path = "/agents/{id}",
    tag = "Agents",
    operation_id = "updateAgent",
    params(("id" = String, Path, description = "The agent's id")),
    request_body(content = AgentChange, example = json!({
        "name": "Head librarian",
        "llm": {"provider": "openai", "model": "gpt-4o", "api_key": "sk-…f3a9"},
        "tags": [],
    })),
    responses((
        status = 200,
        description = "The agent as it is now",
        body = inline(SuccessResponse<AgentView>),
        example = json!({"success": true, "data": changed_example()}),
    )),
)]
#[handler]
async fn change(
    State(agents): State<AgentService>,
    caller: Caller,
    PathId(id): PathId<AgentId>,
    ValidJson(change): ValidJson<AgentChange>,
) -> ApiResult {
    Ok(data(AgentView::from(agents.change(&caller.actor(), id, change, EditBase::Present).await?)))
}

/// Delete an agent
///
/// Its links, its memory, its traces and the API tokens that are bound to it go with it.
#[utoipa::path(
    delete,
    path = "/agents/{id}",
    tag = "Agents",
    operation_id = "deleteAgent",
    params(("id" = String, Path, description = "The agent's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(agents): State<AgentService>,
    caller: Caller,
    PathId(id): PathId<AgentId>,
) -> ApiResult {
    agents.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}

/// An agent and the name of a session, from the path.
struct PathSession {
    agent: AgentId,
    session: String,
}

impl<S: Send + Sync> FromRequestParts<S> for PathSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found("agent");
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((agent, session)) = path.map_err(|_| unknown())?;
        let agent = agent.parse().map_err(|_| unknown())?;
        let message = if session.contains('\0') {
            "must not contain the character U+0000".to_owned()
        } else if session.chars().count() > SESSION {
            format!("must have at most {SESSION} characters")
        } else {
            return Ok(Self { agent, session });
        };
        Err(ApiError::invalid_field("session", &message))
    }
}

/// Erase a session
///
/// The agent forgets what was said in a session. One that it remembers nothing of is as good as erased.
#[utoipa::path(
    delete,
    path = "/agents/{id}/sessions/{session}",
    tag = "Agents",
    operation_id = "eraseSession",
    params(
        ("id" = String, Path, description = "The agent's id"),
        ("session" = String, Path, description = "The name that predicts were sent with as `session`, percent-encoded: at most 1,000 characters"),
    ),
    responses(
        (
            status = 200,
            description = "It is forgotten",
            body = inline(SuccessResponse<NullBody>),
            example = json!({"success": true, "data": null}),
        ),
        (status = 422, description = "No session can have this name"),
    ),
)]
#[handler]
async fn erase_session(
    State(agents): State<AgentService>,
    caller: Caller,
    PathSession { agent, session }: PathSession,
) -> ApiResult {
    agents.erase_session(&caller.actor(), agent, &session).await?;
    Ok(data(NullBody))
}
