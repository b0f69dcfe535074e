//! Agents.

mod address;
mod body;
mod view;

use axum::{
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use lectern_shared::{
    config::Settings,
    db::{self, Json, Tx},
    ids::{AgentId, UserId},
    model::agent::{Agent, Llm},
    runtime::Runtime,
};
use secrecy::{ExposeSecret, SecretString};
use utoipa_axum::{router::OpenApiRouter, routes};

use self::{
    body::{AgentChange, Body, Change, MASKED, NewAgent, NewLlm, TagIds},
    view::{AgentLinkedView, AgentView, changed_example, example, linked_example},
};
use super::users::Nothing;
use crate::{
    auth::Caller,
    error::{ApiError, FieldError},
    extract::{PathId, Valid},
    idempotency::Create,
    openapi::Data,
    response::{Answer, Paging, data, list},
    state::AppState,
};

pub(crate) use view::key_place;

/// Longest name of a session, in characters.
const SESSION: usize = 1_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .routes(routes!(erase_session))
}

fn unknown() -> ApiError {
    ApiError::not_found("agent")
}

fn default_llm(settings: &Settings) -> Llm {
    let (provider, model) = settings.default_llm.clone();
    Llm { model, provider, ..Llm::default() }
}

/// Encrypts an agent's new key. A mask is none, unless it is that of the stored key, which is not new: the provider would be
/// sent it.
fn seal(runtime: &Runtime, agent: &AgentId, key: &SecretString) -> Result<Vec<u8>, ApiError> {
    if key.expose_secret().contains(MASKED) {
        let message =
            "is a mask, and not of a key that this agent has; send the key itself, or none".to_owned();
        return Err(ApiError::invalid(vec![FieldError { path: "llm.api_key".to_owned(), message }]));
    }
    Ok(runtime.keyring.encrypt(key_place(agent), key.expose_secret().as_bytes())?)
}

/// Gives an agent these tags, which have to be its owner's.
async fn set_tags(tx: &mut Tx, user: UserId, agent: AgentId, tags: TagIds) -> Result<(), ApiError> {
    let unknown = || ApiError::not_found("tag");
    let tags = tags.ok_or_else(unknown)?;
    if db::tags::set(tx, user, agent, &tags).await? { Ok(()) } else { Err(unknown()) }
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
            body = inline(Data<AgentView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 404, description = "`promptId` is none of your prompts, or one of `tags` none of your tags"),
    ),
)]
async fn create(
    State(runtime): State<Runtime>,
    caller: Caller,
    Create { body, once }: Create<Body>,
) -> Answer {
    let id = AgentId::generate();
    let NewLlm { llm, key } =
        body.llm.unwrap_or_else(|| NewLlm { llm: default_llm(&runtime.settings), key: None });
    address::check(&runtime.settings.predict, &llm)?;
    let now = runtime.clock.now();
    let mut agent = Agent {
        id,
        user_id: caller.id(),
        r#type: body.r#type,
        name: body.name,
        description: body.description,
        llm: Json(llm),
        llm_key_sealed: key.map(|key| seal(&runtime, &id, &key)).transpose()?,
        has_memory: body.has_memory,
        prompt_id: None,
        version: 1,
        created_at: now,
        updated_at: now,
        document_id: None,
    };
    let mut tx = runtime.db.begin().await?;
    // What it names stays while it is made.
    db::accounts::lock(&mut tx, caller.id()).await?;
    if let Some(prompt) = body.prompt {
        agent.prompt_id = Some(prompt.owned(&mut tx, caller.id()).await?);
    }
    db::agents::insert(&mut tx, &agent).await?;
    set_tags(&mut tx, caller.id(), id, body.tags).await?;
    let tags = db::tags::of_agent(&mut tx, caller.id(), id).await?;
    let view = AgentView::new(&runtime, &agent, tags)?;
    once.commit(&runtime, tx, &view).await
}

/// List your agents
///
/// Shows every agent, newest first.
#[utoipa::path(
    get,
    path = "/agents",
    tag = "Agents",
    operation_id = "listAgents",
    responses((
        status = 200,
        description = "Your agents",
        body = inline(Data<Vec<AgentLinkedView>>),
        example = json!({"success": true, "data": [linked_example()]}),
    )),
)]
async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list(paging, move |before, limit| {
        let (runtime, user) = (runtime.clone(), caller.id());
        async move {
            let agents = db::agents::list(&runtime.db, user, before.into(), limit).await?;
            let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
            let mut tags = db::tags::of_agents(&runtime.db, user, &ids).await?;
            let row = |agent: &Agent| {
                let tags = tags.remove(&agent.id).unwrap_or_default();
                Ok((*agent.id.as_uuid(), AgentLinkedView::new(&runtime, agent, tags)?))
            };
            agents.iter().map(row).collect()
        }
    })
    .await
}

/// Get an agent
///
/// Shows one agent.
#[utoipa::path(
    get,
    path = "/agents/{id}",
    tag = "Agents",
    operation_id = "getAgent",
    params(("id" = String, Path, description = "The agent's id")),
    responses((
        status = 200,
        description = "The agent",
        body = inline(Data<AgentLinkedView>),
        example = json!({"success": true, "data": linked_example()}),
    )),
)]
async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<AgentId>) -> Answer {
    let agent = db::agents::find(&runtime.db, caller.id(), id).await?.ok_or_else(unknown)?;
    let mut tags = db::tags::of_agents(&runtime.db, caller.id(), &[id]).await?;
    Ok(data(AgentLinkedView::new(&runtime, &agent, tags.remove(&id).unwrap_or_default())?))
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
        body = inline(Data<AgentView>),
        example = json!({"success": true, "data": changed_example()}),
    )),
)]
async fn change(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathId(id): PathId<AgentId>,
    Valid(change): Valid<Change>,
) -> Answer {
    let user = caller.id();
    let mut tx = runtime.db.begin().await?;
    let before = db::agents::lock(&mut tx, user, id).await?.ok_or_else(unknown)?;
    let tags_before = db::tags::of_agent(&mut tx, user, id).await?;
    let mut agent = before.clone();
    agent.name = change.name.unwrap_or(agent.name);
    agent.description = change.description.unwrap_or(agent.description);
    agent.r#type = change.r#type.unwrap_or(agent.r#type);
    agent.has_memory = change.has_memory.unwrap_or(agent.has_memory);
    if let Some(NewLlm { llm, key }) = change.llm {
        let predict = &runtime.settings.predict;
        address::check(predict, &llm)?;
        agent.llm_key_sealed = match key {
            None => None,
            Some(key) if view::is_mask(&runtime, &before, &key)? => {
                address::check_kept_key(predict, &before.llm.0, &llm)?;
                before.llm_key_sealed.clone()
            }
            Some(key) => Some(seal(&runtime, &id, &key)?),
        };
        agent.llm = Json(llm);
    }
    if let Some(prompt) = change.prompt {
        agent.prompt_id = match prompt {
            None => None,
            Some(prompt) => Some(prompt.owned(&mut tx, user).await?),
        };
    }
    let mut tags = tags_before.clone();
    if let Some(ids) = change.tags {
        set_tags(&mut tx, user, id, ids).await?;
        tags = db::tags::of_agent(&mut tx, user, id).await?;
    }
    if agent != before || tags != tags_before {
        agent.updated_at = runtime.clock.now();
        db::agents::update(&mut tx, &agent).await?;
        tx.commit().await?;
    }
    Ok(data(AgentView::new(&runtime, &agent, tags)?))
}

/// Delete an agent
///
/// Its links, its memory and its traces go with it.
#[utoipa::path(
    delete,
    path = "/agents/{id}",
    tag = "Agents",
    operation_id = "deleteAgent",
    params(("id" = String, Path, description = "The agent's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(Data<Nothing>),
        example = json!({"success": true, "data": null}),
    )),
)]
async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<AgentId>) -> Answer {
    let mut tx = runtime.db.begin_essential().await?;
    if !db::agents::delete(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(data(Nothing))
}

/// An agent and the name of a session, from the path.
struct PathSession {
    agent: AgentId,
    session: String,
}

impl<S: Send + Sync> FromRequestParts<S> for PathSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
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
        Err(ApiError::invalid(vec![FieldError { path: "session".to_owned(), message }]))
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
            body = inline(Data<Nothing>),
            example = json!({"success": true, "data": null}),
        ),
        (status = 422, description = "No session can have this name"),
    ),
)]
async fn erase_session(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathSession { agent, session }: PathSession,
) -> Answer {
    let mut tx = runtime.db.begin_essential().await?;
    if !db::agents::erase_session(&mut tx, caller.id(), agent, &session).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(data(Nothing))
}
