//! How agents are shown.

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, PromptId, UserId},
    model::agent::{AgentType, LlmConfig},
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    services::agents::{AgentDetails, AgentSummary, VisibleAgent},
    v1::tags::{self, TagView},
};

/// The model that an agent asks.
#[derive(Serialize, ToSchema)]
#[schema(as = Llm)]
pub(super) struct LlmView {
    /// Its name, which is sent to the provider as given.
    model: String,
    /// The provider's label.
    provider: String,
    /// Where the provider is, for those that have no fixed place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    base_url: Option<String>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    temperature: Option<f64>,
    /// The most tokens that the model may write in one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_tokens: Option<u32>,
    /// Tokens that the model has room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    context_window: Option<u32>,
    /// Requests to the model in one predict.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_steps: Option<u32>,
    /// Seconds that one predict may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_seconds: Option<f64>,
    /// Tokens of one predict, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_total_tokens: Option<u32>,
    /// What one predict may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_cost: Option<f64>,
    /// The agent's own key of the provider, masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    api_key: Option<String>,
}

impl LlmView {
    pub(super) fn new(llm: LlmConfig, masked_key: Option<String>) -> Self {
        Self {
            model: llm.model,
            provider: llm.provider,
            base_url: llm.base_url,
            temperature: llm.temperature,
            max_tokens: llm.max_tokens,
            context_window: llm.context_window,
            max_steps: llm.max_steps,
            max_seconds: llm.max_seconds,
            max_total_tokens: llm.max_total_tokens,
            max_cost: llm.max_cost,
            api_key: masked_key,
        }
    }
}

/// An agent.
#[derive(Serialize, ToSchema)]
#[schema(as = Agent)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentView {
    /// Its id.
    #[schema(value_type = String)]
    id: AgentId,
    /// Its owner's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// Always empty.
    #[schema(value_type = Object)]
    user: Map<String, Value>,
    /// What it is called.
    name: String,
    /// Anything that its owner wants to say of it.
    description: String,
    /// How it talks with its model: `CHATVENDOR` by function calling, `REACT` in text.
    #[schema(value_type = String)]
    r#type: AgentType,
    /// Its tags, in the order in which they were given.
    tags: Vec<TagView>,
    /// Its model.
    llm: LlmView,
    /// Whether it remembers the turns of a session.
    has_memory: bool,
    /// Whether what it finds is put into a better order by the service's reranker.
    rerank: bool,
    /// The prompt it uses, if it has one.
    #[schema(value_type = Option<String>, required = true)]
    prompt_id: Option<PromptId>,
    /// Always null.
    #[serde(rename = "AgentMemory")]
    #[schema(value_type = Option<Object>, required = true)]
    agent_memory: Option<()>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<AgentDetails> for AgentView {
    fn from(details: AgentDetails) -> Self {
        let AgentDetails { agent, tags, masked_key } = details;
        Self {
            id: agent.id,
            user_id: agent.owner.creator(),
            user: Map::new(),
            name: agent.name,
            description: agent.description,
            r#type: agent.r#type,
            tags: tags.into_iter().map(TagView::from).collect(),
            llm: LlmView::new(agent.llm.0, masked_key),
            has_memory: agent.has_memory,
            rerank: agent.rerank,
            prompt_id: agent.prompt_id,
            agent_memory: None,
            created_at: agent.created_at,
            updated_at: agent.updated_at,
        }
    }
}

/// An agent as whoever asks sees it: all of it with the role `builder`, and else what it is called and for.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum VisibleAgentView {
    /// All of it.
    Whole(Box<AgentLinkedView>),
    /// For those who ask it.
    Brief(AgentSummary),
}

impl VisibleAgentView {
    /// The id by which lists are ordered, and the view.
    pub(super) fn row(agent: VisibleAgent) -> (Uuid, Self) {
        match agent {
            VisibleAgent::Whole(details) => {
                (*details.agent.id.as_uuid(), Self::Whole(Box::new(AgentLinkedView::from(*details))))
            }
            VisibleAgent::Brief(summary) => (*summary.id.as_uuid(), Self::Brief(summary)),
        }
    }
}

/// An agent, and the document that was linked to it first.
#[derive(Serialize, ToSchema)]
#[schema(as = LinkedAgent)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentLinkedView {
    #[serde(flatten)]
    agent: AgentView,
    /// The id of the document that was linked first, or nothing.
    document_id: String,
    /// Always empty.
    #[schema(value_type = Object)]
    document: Map<String, Value>,
}

/// [`AgentView`], with what only GET one and lists carry.
impl From<AgentDetails> for AgentLinkedView {
    fn from(details: AgentDetails) -> Self {
        let document_id = details.agent.document_id.map(|id| id.to_string()).unwrap_or_default();
        Self { agent: AgentView::from(details), document_id, document: Map::new() }
    }
}

/// An agent as it is shown.
pub(super) fn example() -> Value {
    json!({
        "id": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "user": {},
        "name": "Librarian",
        "description": "Answers from the handbooks.",
        "type": "CHATVENDOR",
        "tags": [tags::example()],
        "llm": {"model": "gpt-4o-mini", "provider": "openai", "temperature": 0.2, "api_key": "sk-…f3a9"},
        "hasMemory": true,
        "rerank": false,
        "promptId": "019a8f41-7d20-7b6a-9c11-5e8f0a2b4c3d",
        "AgentMemory": null,
        "createdAt": "2026-01-31T08:06:00.000000+00:00",
        "updatedAt": "2026-01-31T08:06:00.000000+00:00",
    })
}

/// The same after a change.
pub(super) fn changed_example() -> Value {
    let mut agent = example();
    agent["name"] = json!("Head librarian");
    agent["llm"] = json!({"model": "gpt-4o", "provider": "openai", "api_key": "sk-…f3a9"});
    agent["tags"] = json!([]);
    agent["updatedAt"] = json!("2026-01-31T08:20:41.125000+00:00");
    agent
}

/// The agent as single and list answers show it.
pub(super) fn linked_example() -> Value {
    let mut agent = example();
    agent["documentId"] = json!("019a8f42-51d0-7e8c-a4f6-0b1c2d3e4f50");
    agent["document"] = json!({});
    agent
}
