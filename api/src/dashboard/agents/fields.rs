//! The inputs of an agent's form, filled in with what it is.

use axum::http::Uri;
use lectern_agents::models::ModelProvider;
use lectern_shared::model::agent::{AgentType, LlmConfig};

use crate::{
    dashboard::{
        choices::{ChoiceKind, NameChoice, OFFERED},
        edits::ShownFields,
    },
    response::ApiResult,
    services::{actor::Actor, agents::AgentDetails, prompts::PromptService},
};

/// What stands in the inputs.
#[expect(clippy::struct_excessive_bools, reason = "each is a box of the form, or decides about one")]
pub(super) struct AgentFields {
    pub(super) is_new: bool,
    /// What the form is made from; empty for a new agent.
    pub(super) seen: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) providers: [&'static str; 11],
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) base_url: String,
    /// The agent's own key, masked.
    pub(super) key: String,
    pub(super) temperature: String,
    pub(super) max_tokens: String,
    pub(super) max_steps: String,
    pub(super) max_cost: String,
    // The form has no input for these, and must not lose them.
    pub(super) context_window: Option<u32>,
    pub(super) max_seconds: Option<f64>,
    pub(super) max_total_tokens: Option<u32>,
    pub(super) is_react: bool,
    pub(super) prompts: NameChoice,
    pub(super) prompt: String,
    pub(super) has_memory: bool,
    pub(super) rerank: bool,
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

impl AgentFields {
    /// For a new agent, when there is none.
    pub(super) async fn of(
        agent: Option<&AgentDetails>,
        prompts: &PromptService,
        actor: &Actor,
        uri: &Uri,
    ) -> ApiResult<Self> {
        let row = agent.map(|details| &details.agent);
        let kind = ChoiceKind::Prompt;
        let listed = prompts.choices(actor, &kind.looked_for(uri), OFFERED).await?;
        let own = row.and_then(|agent| agent.prompt_id);
        // None of those that are listed: without it the form would take it away.
        let own = match own.filter(|own| listed.newest.iter().all(|(id, _)| id != own)) {
            Some(own) => Some(prompts.find(actor, own).await?),
            None => None,
        };
        let own = own.map(|prompt| (prompt.id, prompt.name));
        let part = if row.is_some() { "change" } else { "" };
        let prompts = NameChoice::of(kind, listed, own, uri, part);
        let llm: Option<&LlmConfig> = row.map(|agent| &agent.llm.0);
        let mut fields = Self {
            is_new: row.is_none(),
            seen: String::new(),
            name: row.map(|agent| agent.name.clone()).unwrap_or_default(),
            description: row.map(|agent| agent.description.clone()).unwrap_or_default(),
            providers: ModelProvider::ALL.map(ModelProvider::label),
            provider: llm.map(|llm| llm.provider.clone()).unwrap_or_default(),
            model: llm.map(|llm| llm.model.clone()).unwrap_or_default(),
            base_url: llm.and_then(|llm| llm.base_url.clone()).unwrap_or_default(),
            key: agent.and_then(|details| details.masked_key.clone()).unwrap_or_default(),
            temperature: text(llm.and_then(|llm| llm.temperature)),
            max_tokens: text(llm.and_then(|llm| llm.max_tokens)),
            max_steps: text(llm.and_then(|llm| llm.max_steps)),
            max_cost: text(llm.and_then(|llm| llm.max_cost)),
            context_window: llm.and_then(|llm| llm.context_window),
            max_seconds: llm.and_then(|llm| llm.max_seconds),
            max_total_tokens: llm.and_then(|llm| llm.max_total_tokens),
            is_react: row.is_some_and(|agent| agent.r#type == AgentType::React),
            prompts,
            prompt: text(row.and_then(|agent| agent.prompt_id)),
            has_memory: row.is_some_and(|agent| agent.has_memory),
            rerank: row.is_some_and(|agent| agent.rerank),
        };
        if let Some(details) = agent {
            fields.seen = fields.shown(details).seen();
        }
        Ok(fields)
    }

    /// What the form shows of an agent.
    pub(super) fn shown(&self, details: &AgentDetails) -> ShownFields {
        let named = |names: &[(&str, &str)]| -> Vec<(String, String)> {
            names.iter().map(|(value, name)| ((*value).to_owned(), (*name).to_owned())).collect()
        };
        let prompts = [named(&[("", "none")]), self.prompts.offered.clone()].concat();
        let talks = named(&[
            (AgentType::ChatVendor.as_str(), "by function calls"),
            (AgentType::React.as_str(), "in text (ReAct)"),
        ]);
        ShownFields::of(details.agent.updated_at)
            .text("name", "Name", &self.name)
            .text("description", "Description", &self.description)
            .text("llm.provider", "Provider", &self.provider)
            .text("llm.model", "Model", &self.model)
            .text("llm.base_url", "Address of the provider", &self.base_url)
            .secret("llm.api_key", "Key", &self.key)
            .number("llm.temperature", "Temperature", &self.temperature)
            .number("llm.max_tokens", "Most tokens of an answer", &self.max_tokens)
            .number("llm.max_steps", "Most questions to the model for one answer", &self.max_steps)
            .number("llm.max_cost", "Most that one answer may cost", &self.max_cost)
            .number("llm.context_window", "Tokens that the model has room for", &text(self.context_window))
            .number("llm.max_seconds", "Most seconds of an answer", &text(self.max_seconds))
            .number("llm.max_total_tokens", "Most tokens read and written", &text(self.max_total_tokens))
            .choice("type", "How it talks with its model", details.agent.r#type.as_str(), &talks)
            .choice("promptId", "Prompt", &self.prompt, &prompts)
            .switch("hasMemory", "Memory", self.has_memory)
            .switch("rerank", "Reranking", self.rerank)
    }
}
