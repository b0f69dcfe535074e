//! Which model an agent asks, where, and with whose key.

use lectern_shared::{model::agent::Agent, secrets::CiphertextLocation};
use secrecy::SecretString;
use url::Url;

use super::AgentParts;
use crate::{
    AgentError,
    answer::redact::SecretRedactor,
    models::{ChatModelConfig, DEFAULT_SILENCE, HttpModel, ModelConfigError, ModelProvider},
};

/// The model.
///
/// # Errors
/// When it cannot be asked as the agent and the operator have set it up.
pub(super) fn of(
    parts: &AgentParts,
    agent: &Agent,
    provider: ModelProvider,
    redactor: &mut SecretRedactor,
) -> Result<HttpModel, AgentError> {
    let llm = &agent.llm.0;
    let own_url = llm.base_url.as_deref().map(Url::parse).transpose();
    let own_url = own_url.map_err(|_| ModelConfigError::BaseUrlInvalid)?;
    let own_key = match &agent.llm_key_sealed {
        None => None,
        Some(sealed) => {
            Some(parts.keyring.decrypt_text(CiphertextLocation::agent_key(agent.id.as_uuid()), sealed)?)
        }
    };
    // The operator's key goes to the provider's own address only, never to one that a user named; and only where the
    // operator named the host may it be one of the private network.
    let settings = &parts.settings.predict;
    let operator_host = provider.operator_host(settings).cloned();
    let is_users = own_url.is_some();
    let (base_url, egress) = match (own_url, operator_host) {
        (Some(url), _) => (Some(url), &parts.egress),
        (None, Some(host)) => (Some(host), &parts.operator_egress),
        (None, None) => (None, &parts.egress),
    };
    let api_key = own_key.or_else(|| if is_users { None } else { operator_key(parts, provider) });
    if api_key.is_none() && !is_users && provider.default_base().is_some() {
        return Err(ModelConfigError::ApiKeyRequired { provider }.into());
    }
    if let Some(key) = &api_key {
        redactor.add(key.clone());
    }
    Ok(HttpModel::new(ChatModelConfig {
        provider,
        model: llm.model.clone(),
        base_url,
        api_key,
        egress: egress.clone(),
        silence: DEFAULT_SILENCE.min(parts.settings.predict.duration),
        compute: parts.compute.clone(),
        refusals: parts.refusals.clone(),
    })?)
}

fn operator_key(parts: &AgentParts, provider: ModelProvider) -> Option<SecretString> {
    let name = match provider {
        ModelProvider::OpenAiChat | ModelProvider::OpenAi => "OPENAI_API_KEY",
        ModelProvider::Anthropic => "ANTHROPIC_API_KEY",
        ModelProvider::Gemini => "GEMINI_API_KEY",
        ModelProvider::Mistral => "MISTRAL_API_KEY",
        ModelProvider::Groq => "GROQ_API_KEY",
        ModelProvider::Cohere => "COHERE_API_KEY",
        ModelProvider::AzureOpenAi => "AZURE_OPENAI_API_KEY",
        ModelProvider::Ollama | ModelProvider::OpenAiCompatible | ModelProvider::Extractive => return None,
    };
    parts.settings.provider_keys.get(name).cloned()
}
