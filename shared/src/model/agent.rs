//! Agents and their links.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{AgentDocumentId, AgentId, AgentVersionId, DocumentId, PromptId, UserId, WorkspaceId},
    model::{Json, text_enum, workspace::RowOwner},
};

text_enum! {
    /// How an agent talks with its model.
    AgentType {
        /// Native function calling.
        ChatVendor => "CHATVENDOR",
        /// Thought, action and observation in text.
        React => "REACT",
    }
}

/// Which model an agent asks, and how. The key is kept apart, sealed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmConfig {
    /// The model's name, sent to the provider as given.
    pub model: String,
    /// The provider's label.
    pub provider: String,
    /// Where the provider is, for those that have no fixed place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The provider's sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens that the model may write in one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Tokens that the model has room for, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// Requests to the model in one predict, when fewer than the service allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Seconds for one predict, when fewer than the service allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
    /// Tokens of one predict, read and written, when fewer than the service allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u32>,
    /// What one predict may cost, when less than the service allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// How it talks.
    pub r#type: AgentType,
    /// How its owner calls it.
    pub name: String,
    /// Anything its owner wants to say of it.
    pub description: String,
    /// Its model.
    pub llm: Json<LlmConfig>,
    /// The provider's key, sealed.
    pub llm_key_sealed: Option<Vec<u8>>,
    /// Remembers the turns of a session.
    pub has_memory: bool,
    /// What it finds is put into a better order, if the service has a reranker.
    pub rerank: bool,
    /// The prompt it uses.
    pub prompt_id: Option<PromptId>,
    /// Raised by every change of it and of its links.
    pub version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
    /// The document that was linked first.
    pub document_id: Option<DocumentId>,
}

/// What of an agent can be changed, without what is secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentConfig {
    /// How it talks.
    pub r#type: AgentType,
    /// How its owner calls it.
    pub name: String,
    /// Anything its owner wants to say of it.
    pub description: String,
    /// Its model.
    pub llm: LlmConfig,
    /// Remembers the turns of a session.
    pub has_memory: bool,
    /// What it finds is put into a better order. Versions of before there was a reranker do not say it.
    #[serde(default)]
    pub rerank: bool,
    /// The prompt it uses, as it is.
    pub prompt: Option<PromptConfig>,
}

/// What of a prompt can be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptConfig {
    /// Its id.
    pub id: PromptId,
    /// How its owner calls it.
    pub name: String,
    /// The text of a template.
    pub template: String,
    /// The names of the template's variables.
    pub input_variables: Vec<String>,
}

impl PromptConfig {
    /// What is left of a prompt that was erased: that there was one.
    pub fn erased(id: PromptId) -> Self {
        Self { id, name: String::new(), template: String::new(), input_variables: Vec::new() }
    }

    /// Whether it was erased. Without that, no template is empty.
    pub fn is_erased(&self) -> bool {
        self.template.is_empty()
    }
}

/// What an agent was before it was changed.
#[derive(Clone, Debug, FromRow)]
pub struct AgentVersion {
    /// Its id.
    pub id: AgentVersionId,
    /// Whose the agent is.
    pub workspace_id: WorkspaceId,
    /// The agent.
    pub agent_id: AgentId,
    /// The last number that it had as it was.
    pub version: i64,
    /// What it was.
    pub config: Json<AgentConfig>,
    /// The provider's key, sealed for this row.
    pub llm_key_sealed: Option<Vec<u8>>,
    /// Who changed it then.
    pub replaced_by: Option<UserId>,
    /// When that was.
    pub replaced_at: Timestamp,
}

/// A link between an agent and a document.
#[derive(Clone, Debug, FromRow)]
pub struct AgentDocument {
    /// Its id.
    pub id: AgentDocumentId,
    /// The agent.
    pub agent_id: AgentId,
    /// The document.
    pub document_id: DocumentId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// When it was made.
    pub created_at: Timestamp,
}
