//! Tools.

mod metadata;
mod view;

use axum::extract::State;
use lectern_shared::{
    db::{self, Json, Tx},
    ids::{AgentId, ToolId, UserId},
    model::tool::{Tool, ToolType},
    runtime::Runtime,
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::{
    metadata::Metadata,
    view::{ToolView, example},
};
use super::{DESCRIPTION, NAME, users::Nothing};
use crate::{
    auth::Caller,
    error::{ApiError, FieldError},
    extract::{Fields, FromFields, PathId, Valid},
    idempotency::Create,
    openapi::Data,
    response::{Answer, Paging, data, list_by},
    state::AppState,
    tools::secrets,
};

/// Configurations may have 64 KiB each.
const PAGE: u32 = 50;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(index, create)).routes(routes!(find, change, remove))
}

fn unknown() -> ApiError {
    ApiError::not_found("tool")
}

/// A new tool.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the JSON; the values are read one by one")]
struct NewTool {
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

struct Body {
    r#type: ToolType,
    name: String,
    description: String,
    metadata: Metadata,
    return_direct: bool,
}

impl FromFields for Body {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        let r#type: Option<ToolType> = fields.choice("type", &ToolType::choices());
        Self {
            r#type: r#type.unwrap_or(ToolType::Search),
            name: fields.text("name", NAME),
            description: fields.optional_text("description", DESCRIPTION).unwrap_or_default(),
            // What it needs depends on the type.
            metadata: r#type.map(|r#type| metadata::read(fields, r#type)).unwrap_or_default(),
            return_direct: fields.boolean("returnDirect").unwrap_or(false),
        }
    }
}

/// The caller's agent that a tool is to ask.
async fn called_agent(
    tx: &mut Tx,
    user: UserId,
    agent: Option<Result<AgentId, ()>>,
) -> Result<Option<AgentId>, ApiError> {
    let unknown = || ApiError::not_found("agent");
    match agent {
        None => Ok(None),
        Some(agent) => {
            let agent = agent.map_err(|()| unknown())?;
            if db::tools::owns_agent(tx, user, agent).await? { Ok(Some(agent)) } else { Err(unknown()) }
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
            body = inline(Data<ToolView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 404, description = "`metadata.agentId` is none of your agents"),
    ),
)]
async fn create(
    State(runtime): State<Runtime>,
    caller: Caller,
    Create { body, once }: Create<Body>,
) -> Answer {
    let id = ToolId::generate();
    let mut tx = runtime.db.begin().await?;
    let calls_agent = called_agent(&mut tx, caller.id(), body.metadata.agent).await?;
    let (open, sealed) = secrets::seal(&runtime.keyring, &id, body.metadata.all)?;
    let now = runtime.clock.now();
    let tool = Tool {
        id,
        user_id: caller.id(),
        r#type: body.r#type,
        name: body.name,
        description: body.description,
        metadata: Json(open),
        metadata_sealed: sealed,
        calls_agent,
        return_direct: body.return_direct,
        created_at: now,
        updated_at: now,
    };
    db::tools::insert(&mut tx, &tool).await?;
    let view = ToolView::new(&runtime, &tool)?;
    once.commit(&runtime, tx, &view).await
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
        body = inline(Data<Vec<ToolView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list_by(PAGE, paging, move |before, limit| {
        let (runtime, user) = (runtime.clone(), caller.id());
        async move {
            let tools = db::tools::list(&runtime.db, user, before.into(), limit).await?;
            tools.iter().map(|tool| Ok((*tool.id.as_uuid(), ToolView::new(&runtime, tool)?))).collect()
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
        body = inline(Data<ToolView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<ToolId>) -> Answer {
    let tool = db::tools::find(&runtime.db, caller.id(), id).await?.ok_or_else(unknown)?;
    Ok(data(ToolView::new(&runtime, &tool)?))
}

/// A change of a tool. What is left out stays as it is.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the JSON; the values are read one by one")]
struct ToolChange {
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

struct Change {
    name: Option<String>,
    description: Option<String>,
    metadata: Option<Map<String, Value>>,
    return_direct: Option<bool>,
}

impl FromFields for Change {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
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
    request_body(content = ToolChange, example = json!({"name": "the web", "returnDirect": false})),
    responses((
        status = 200,
        description = "The tool as it is now",
        body = inline(Data<ToolView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn change(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathId(id): PathId<ToolId>,
    Valid(body): Valid<Change>,
) -> Answer {
    let mut tx = runtime.db.begin().await?;
    let before = db::tools::lock(&mut tx, caller.id(), id).await?.ok_or_else(unknown)?;
    let mut tool = before.clone();
    if let Some(mut changed) = body.metadata {
        let stored = secrets::reveal(&runtime.keyring, &tool)?;
        let kept = metadata::keep_masked(&mut changed, &stored);
        let Metadata { all, agent } = metadata::check_alone(tool.r#type, &changed)?;
        metadata::check_kept(tool.r#type, &stored, &all, kept)?;
        tool.calls_agent = called_agent(&mut tx, caller.id(), agent).await?;
        if let Some(called) = tool.calls_agent
            && db::tools::would_circle(&mut tx, caller.id(), id, called).await?
        {
            return Err(circle("metadata.agentId"));
        }
        // Sealed once more it would not be what it was.
        if all != stored {
            let (open, sealed) = secrets::seal(&runtime.keyring, &id, all)?;
            (tool.metadata, tool.metadata_sealed) = (Json(open), sealed);
        }
    }
    tool.name = body.name.unwrap_or(tool.name);
    tool.description = body.description.unwrap_or(tool.description);
    tool.return_direct = body.return_direct.unwrap_or(tool.return_direct);
    if tool != before {
        tool.updated_at = runtime.clock.now();
        db::tools::update(&mut tx, &tool).await?;
        tx.commit().await?;
    }
    Ok(data(ToolView::new(&runtime, &tool)?))
}

/// An agent that could ask itself would never end.
pub(super) fn circle(path: &str) -> ApiError {
    let message = "would let an agent ask itself, by way of others or at once".to_owned();
    ApiError::invalid(vec![FieldError { path: path.to_owned(), message }])
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
        body = inline(Data<Nothing>),
        example = json!({"success": true, "data": null}),
    )),
)]
async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<ToolId>) -> Answer {
    let mut tx = runtime.db.begin_essential().await?;
    if !db::tools::delete(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(data(Nothing))
}
