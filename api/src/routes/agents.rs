//! Agents.

use axum::{Router, extract::State, routing::get};
use lectern_shared::{
    config::Settings,
    db::{self, Json},
    ids::AgentId,
    model::agent::{Agent, AgentType, Llm},
    runtime::Runtime,
    secrets::{Place, mask},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::{DESCRIPTION, NAME};
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{Fields, FromFields, PathId, Valid},
    llm::Provider,
    response::{Answer, Paging, data, list},
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/agents", get(index).post(create)).route("/agents/{id}", get(find).delete(remove))
}

/// Where an agent's provider key is sealed.
pub(crate) fn key_place(id: &AgentId) -> Place<'_> {
    Place { table: "agents", row: id.as_uuid(), column: "llm_key" }
}

fn show(runtime: &Runtime, agent: &Agent) -> Result<Value, ApiError> {
    let mut llm = json!(agent.llm.0);
    if let (Some(sealed), Some(llm)) = (&agent.llm_key_sealed, llm.as_object_mut()) {
        let key = runtime.keyring.decrypt_text(key_place(&agent.id), sealed)?;
        llm.insert("api_key".to_owned(), json!(mask(key.expose_secret())));
    }
    Ok(json!({
        "id": agent.id,
        "userId": agent.user_id,
        "user": {},
        "name": agent.name,
        "description": agent.description,
        "type": agent.r#type,
        "tags": [],
        "llm": llm,
        "hasMemory": agent.has_memory,
        "promptId": agent.prompt_id,
        "AgentMemory": null,
        "createdAt": agent.created_at,
        "updatedAt": agent.updated_at,
    }))
}

/// With what only GET one and lists carry.
fn show_linked(runtime: &Runtime, agent: &Agent) -> Result<Value, ApiError> {
    let mut shown = show(runtime, agent)?;
    if let Some(shown) = shown.as_object_mut() {
        let document = agent.document_id.map(|id| id.to_string()).unwrap_or_default();
        shown.insert("documentId".to_owned(), json!(document));
        shown.insert("document".to_owned(), json!({}));
    }
    Ok(shown)
}

struct Body {
    r#type: AgentType,
    name: String,
    description: String,
    llm: Option<(Llm, Option<SecretString>)>,
    has_memory: bool,
    /// The first id in the body that cannot be one of the caller's, by its noun.
    unknown: Option<&'static str>,
}

impl FromFields for Body {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        let tags = match fields.get("tags") {
            None => 0,
            Some(Value::Array(tags)) => tags.len(),
            Some(_) => {
                fields.refuse("tags", "must be an array of tags or their ids");
                0
            }
        };
        let prompt = fields.optional_text("promptId", NAME);
        Self {
            r#type: fields.choice("type", &AgentType::choices()).unwrap_or(AgentType::ChatVendor),
            name: fields.text("name", NAME),
            description: fields.optional_text("description", DESCRIPTION).unwrap_or_default(),
            llm: fields.nested("llm", llm),
            has_memory: fields.boolean("hasMemory").unwrap_or(false),
            unknown: prompt.map(|_| "prompt").or_else(|| (tags > 0).then_some("tag")),
        }
    }
}

fn llm(fields: &mut Fields<'_>) -> (Llm, Option<SecretString>) {
    let provider = fields.text("provider", NAME);
    let parsed = provider.parse::<Provider>();
    if parsed.is_err() && fields.get("provider").is_some() {
        let known: Vec<_> = Provider::ALL.iter().map(|provider| provider.label()).collect();
        fields.refuse("provider", format_args!("must be one of {}", known.join(", ")));
    }
    let base_url = fields.optional_text("base_url", 2_000);
    match &base_url {
        Some(text) => match Url::parse(text) {
            Ok(url)
                if matches!(url.scheme(), "http" | "https")
                    && url.username().is_empty()
                    && url.password().is_none() => {}
            Ok(_) | Err(_) => {
                fields.refuse("base_url", "must be an http or https address without credentials");
            }
        },
        None if parsed == Ok(Provider::OpenAiCompatible) => {
            fields.refuse("base_url", "is required for openai-compatible");
        }
        None => {}
    }
    let llm = Llm {
        model: fields.text("model", NAME),
        provider,
        base_url,
        temperature: fields.number("temperature", 0.0, 2.0),
        max_tokens: fields.count("max_tokens"),
    };
    (llm, fields.optional_text("api_key", 2_000).filter(|key| !key.trim().is_empty()).map(SecretString::from))
}

fn default_llm(settings: &Settings) -> Llm {
    let (provider, model) = settings.default_llm.clone();
    Llm { model, provider, base_url: None, temperature: None, max_tokens: None }
}

async fn create(State(runtime): State<Runtime>, caller: Caller, Valid(body): Valid<Body>) -> Answer {
    if let Some(noun) = body.unknown {
        return Err(ApiError::not_found(noun));
    }
    let id = AgentId::generate();
    let (llm, key) = body.llm.unwrap_or_else(|| (default_llm(&runtime.settings), None));
    let seal = |key: SecretString| runtime.keyring.encrypt(key_place(&id), key.expose_secret().as_bytes());
    let now = runtime.clock.now();
    let agent = Agent {
        id,
        user_id: caller.id(),
        r#type: body.r#type,
        name: body.name,
        description: body.description,
        llm: Json(llm),
        llm_key_sealed: key.map(seal).transpose()?,
        has_memory: body.has_memory,
        prompt_id: None,
        created_at: now,
        updated_at: now,
        document_id: None,
    };
    let mut tx = runtime.db.begin().await?;
    db::agents::insert(&mut tx, &agent).await?;
    tx.commit().await?;
    Ok(data(show(&runtime, &agent)?))
}

async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list(paging, move |before, limit| {
        let (runtime, user) = (runtime.clone(), caller.id());
        async move {
            let agents = db::agents::list(&runtime.db, user, before.into(), limit).await?;
            agents.iter().map(|agent| Ok((*agent.id.as_uuid(), show_linked(&runtime, agent)?))).collect()
        }
    })
    .await
}

async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<AgentId>) -> Answer {
    let agent = db::agents::find(&runtime.db, caller.id(), id).await?;
    Ok(data(show_linked(&runtime, &agent.ok_or_else(unknown)?)?))
}

async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<AgentId>) -> Answer {
    let mut tx = runtime.db.begin().await?;
    if !db::agents::delete(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(data(Value::Null))
}

fn unknown() -> ApiError {
    ApiError::not_found("agent")
}
