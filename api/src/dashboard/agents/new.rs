//! Making an agent.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{ids::CollectionId, model::agent::LlmConfig};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::fields::AgentFields;
use crate::{
    dashboard::{
        PagePolicy,
        choices::told_apart,
        frame::{Frame, SubmittedForm, Visitor},
        html,
    },
    error::ApiError,
    fields::{GivenIds, validate},
    response::ApiResult,
    services::{
        actor::Permission,
        agents::{AgentDetails, AgentService, FirstLinks},
        collections::CollectionService,
        creation::CreationOutcome,
        documents::DocumentService,
        prompts::PromptService,
    },
};

/// Collections that can be chosen, the newest ones; others are linked on the agent's page.
const COLLECTIONS: u32 = 200;
/// Documents that are linked at once: more of them are better kept in a collection.
const DOCUMENTS: u32 = 100;

#[derive(Template)]
#[template(path = "agent_new.html")]
struct NewAgentPage {
    frame: Frame,
    fields: AgentFields,
    has_documents: bool,
    most: u32,
    collections: Vec<(CollectionId, String)>,
    /// There are other collections.
    more_collections: bool,
}

/// Shows the form.
#[handler]
pub(super) async fn show(
    State(prompts): State<PromptService>,
    State(documents): State<DocumentService>,
    State(collections): State<CollectionService>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    let actor = visitor.actor();
    actor.may(Permission::BuildAgents)?;
    let mut collections = collections.list(&actor, "", Uuid::max(), COLLECTIONS + 1).await?;
    let more_collections = collections.len() > COLLECTIONS as usize;
    collections.truncate(COLLECTIONS as usize);
    let page = NewAgentPage {
        fields: AgentFields::of(None, &prompts, &actor, &uri).await?,
        has_documents: !documents.list(&actor, Uuid::max(), 1).await?.is_empty(),
        most: DOCUMENTS,
        collections: told_apart(collections.into_iter().map(|collection| (collection.id, collection.name))),
        more_collections,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// A new agent, and what it answers from.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewAgentForm {
    /// It is linked to the documents that there are.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    all_documents: bool,
    /// The collections that it is linked to.
    #[schema(value_type = Option<Vec<String>>, max_items = 200)]
    collection_ids: Option<GivenIds<CollectionId>>,
    /// The agent, as programs send it.
    #[schema(value_type = Object)]
    #[serde(flatten)]
    agent: Map<String, Value>,
}

/// Makes it, with its links.
#[handler]
pub(super) async fn create(
    State(agents): State<AgentService>,
    State(documents): State<DocumentService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewAgentForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let mut agent = body.agent;
    name_default_model(&mut agent, &agents.default_llm());
    let new = validate(&Value::Object(agent))?;
    let collections = body.collection_ids.transpose().map_err(|_| ApiError::not_found("collection"))?;
    let found =
        if body.all_documents { documents.list(&actor, Uuid::max(), DOCUMENTS).await? } else { Vec::new() };
    let links = FirstLinks {
        // The agent's page shows what was linked last: the newest, which may still be read.
        documents: found.into_iter().rev().map(|details| details.document.id).collect(),
        collections: collections.unwrap_or_default(),
    };
    let (CreationOutcome::Now(id) | CreationOutcome::Before(id)) =
        agents.create(&actor, new, links, once, id_of).await?;
    Ok(visitor.go(&format!("agents/{}/ask", String::from_utf8_lossy(&id))))
}

/// Names the service's own model where none is chosen and something else is said of it, such as a temperature: programs have to name
/// it, and people chose it by its words.
fn name_default_model(agent: &mut Map<String, Value>, default: &LlmConfig) {
    let Some(Value::Object(llm)) = agent.get_mut("llm") else { return };
    let is_empty =
        |name: &str| llm.get(name).and_then(Value::as_str).is_none_or(|text| text.trim().is_empty());
    if is_empty("provider") && is_empty("model") {
        llm.insert("provider".to_owned(), json!(default.provider));
        llm.insert("model".to_owned(), json!(default.model));
    }
}

/// What is noted of a new agent: where its page is.
#[expect(clippy::unnecessary_wraps, reason = "it stands for what can fail")]
fn id_of(made: &AgentDetails) -> Result<Vec<u8>, ApiError> {
    Ok(made.agent.id.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_something_of_the_default_model_need_not_know_its_name() {
        let default =
            LlmConfig { provider: "ollama".to_owned(), model: "qwen".to_owned(), ..LlmConfig::default() };
        for (llm, named) in [
            (json!({"temperature": 0.5}), json!({"temperature": 0.5, "provider": "ollama", "model": "qwen"})),
            (json!({"provider": " ", "model": ""}), json!({"provider": "ollama", "model": "qwen"})),
            (json!({"model": "mine"}), json!({"model": "mine"})),
            (json!({"provider": "openai"}), json!({"provider": "openai"})),
        ] {
            let mut agent = Map::from_iter([("llm".to_owned(), llm)]);
            name_default_model(&mut agent, &default);
            assert_eq!(agent["llm"], named);
        }
        let mut without = Map::new();
        name_default_model(&mut without, &default);
        assert!(without.is_empty());
    }
}
