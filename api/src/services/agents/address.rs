//! Where an agent's model is asked, as far as that can be told when the agent is saved.

use lectern_agents::models::ModelProvider;
use lectern_shared::{config::PredictSettings, model::agent::LlmConfig};
use url::{Origin, Url};

use crate::error::ApiError;

/// The scheme, host and port that requests to a model go to; none where no model is asked, or nothing names an address.
fn origin(settings: &PredictSettings, provider: ModelProvider, base_url: Option<&str>) -> Option<Origin> {
    let own = match base_url {
        Some(own) => Url::parse(own).ok(),
        None => match provider.operator_host(settings) {
            Some(host) => Some(host.clone()),
            None => Url::parse(provider.default_base()?).ok(),
        },
    };
    own.map(|url| url.origin())
}

/// Refuses a model that nobody could ask: its provider has no address of its own, and neither the agent nor the operator names
/// one.
pub(super) fn check(settings: &PredictSettings, llm: &LlmConfig) -> Result<(), ApiError> {
    let setting = match llm.provider.parse() {
        Ok(provider @ (ModelProvider::AzureOpenAi | ModelProvider::Ollama))
            if llm.base_url.is_none() && provider.operator_host(settings).is_none() =>
        {
            if provider == ModelProvider::Ollama { "OLLAMA_HOST" } else { "AZURE_OPENAI_ENDPOINT" }
        }
        Ok(_) | Err(_) => return Ok(()),
    };
    let message = format!("is required for {}: the operator has not set {setting}", llm.provider);
    Err(ApiError::invalid_field("llm.base_url", &message))
}

/// Refuses to keep a key that would then be sent somewhere else: whoever may change the agent could have it sent to a host of
/// their own, and read what is never shown.
pub(super) fn check_kept_key(
    settings: &PredictSettings,
    before: &LlmConfig,
    after: &LlmConfig,
) -> Result<(), ApiError> {
    let place = |llm: &LlmConfig| {
        let provider = llm.provider.parse().ok()?;
        Some((provider, origin(settings, provider, llm.base_url.as_deref())))
    };
    if place(before) == place(after) {
        return Ok(());
    }
    let message =
        "is the mask of a key that was given for another provider or host; send the key itself, or none";
    Err(ApiError::invalid_field("llm.api_key", message))
}

/// Where questions go, as the audit log may tell it: the provider, and of an address of the agent's own what holds no key.
pub(super) fn told(llm: &LlmConfig) -> String {
    let own = llm.base_url.as_deref().and_then(lectern_shared::address::origin);
    own.map_or_else(|| llm.provider.clone(), |own| format!("{} {own}", llm.provider))
}

/// Whether questions go elsewhere than before.
pub(super) fn is_another(before: &LlmConfig, after: &LlmConfig) -> bool {
    (&before.provider, &before.base_url) != (&after.provider, &after.base_url)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;

    fn settings(ollama: Option<&str>, azure: Option<&str>) -> PredictSettings {
        let url = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        PredictSettings {
            duration: Duration::from_secs(1),
            steps: 1,
            tokens: None,
            cost: None,
            prices: BTreeMap::new(),
            ollama: url(ollama),
            azure: url(azure),
            image_hosts: Vec::new(),
        }
    }

    fn llm(provider: &str, base_url: Option<&str>) -> LlmConfig {
        let base_url = base_url.map(str::to_owned);
        LlmConfig { model: "m".to_owned(), provider: provider.to_owned(), base_url, ..LlmConfig::default() }
    }

    #[test]
    fn a_kept_key_goes_nowhere_else() {
        let settings = settings(None, Some("https://mine.openai.azure.com"));
        let same = |before: &LlmConfig, after: &LlmConfig| check_kept_key(&settings, before, after).is_ok();
        let own = llm("openai-compatible", Some("https://models.example/v1"));
        for after in [
            llm("openai-compatible", Some("https://models.example/v1")),
            llm("openai-compatible", Some("https://models.example:443/v2?region=eu")),
            llm("openai-compatible", Some("HTTPS://MODELS.example")),
        ] {
            assert!(same(&own, &after), "{after:?}");
        }
        for after in [
            llm("openai-compatible", Some("http://models.example/v1")),
            llm("openai-compatible", Some("https://models.example:8443/v1")),
            llm("openai-compatible", Some("https://models.example.evil.example/v1")),
            llm("openai-compatible", Some("https://evil.example/v1?models.example")),
            llm("openai", Some("https://models.example/v1")),
            llm("openai", None),
            llm("extractive", None),
        ] {
            let refused = check_kept_key(&settings, &own, &after).unwrap_err();
            assert_eq!(refused.fields[0].path, "llm.api_key", "{after:?}");
            assert!(!same(&after, &own), "{after:?}");
        }
    }

    #[test]
    fn an_address_that_is_the_usual_one_may_be_written_or_left_out() {
        let settings = settings(Some("http://127.0.0.1:11434"), Some("https://mine.openai.azure.com"));
        for (provider, usual, other) in [
            ("groq", "https://api.groq.com/openai/v1", "https://api.openai.com/v1"),
            ("azure-openai", "https://mine.openai.azure.com/openai/v1", "https://yours.openai.azure.com"),
            ("ollama", "http://127.0.0.1:11434/v1", "http://127.0.0.1:11435/v1"),
        ] {
            let kept =
                |url| check_kept_key(&settings, &llm(provider, None), &llm(provider, Some(url))).is_ok();
            assert!(kept(usual) && !kept(other), "{provider}");
        }
    }

    #[test]
    fn a_provider_without_an_address_needs_one_unless_the_operator_names_it() {
        let (none, both) = (settings(None, None), settings(Some("http://box:1"), Some("https://a.example")));
        for provider in ["azure-openai", "ollama"] {
            let refused = check(&none, &llm(provider, None)).unwrap_err();
            assert_eq!(refused.fields[0].path, "llm.base_url", "{provider}");
            assert!(check(&both, &llm(provider, None)).is_ok(), "{provider}");
            assert!(check(&none, &llm(provider, Some("https://b.example"))).is_ok(), "{provider}");
        }
        for provider in ["openai", "extractive", "gemini"] {
            assert!(check(&none, &llm(provider, None)).is_ok(), "{provider}");
        }
    }
}
