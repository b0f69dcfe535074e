//! Where the secrets of a tool's configuration are sent.

use lectern_shared::model::tool::{SearchProvider, ToolType};
use serde_json::{Map, Value};
use url::{Origin, Url};

use super::{compute_alpha, configuration::ToolConfiguration, model_host, search};

/// Whom a tool's secrets are shown to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretDestination {
    provider: Option<SearchProvider>,
    /// Scheme, host and port; none when they are sent to nobody.
    origin: Option<Origin>,
}

impl SecretDestination {
    /// That of a tool of this type with this configuration.
    pub fn of(r#type: ToolType, metadata: &Map<String, Value>) -> Self {
        let configuration = ToolConfiguration(metadata);
        let base = configuration.url("base_url");
        let or_vendor = |vendor: Option<&str>| base.clone().or_else(|| Url::parse(vendor?).ok());
        let (provider, url) = match r#type {
            ToolType::Search => {
                let provider = configuration.text("provider").and_then(|name| name.parse().ok());
                (provider, or_vendor(provider.and_then(search::vendor)))
            }
            ToolType::ComputeAlpha => (None, or_vendor(Some(compute_alpha::VENDOR))),
            ToolType::ModelHost => (None, or_vendor(Some(model_host::VENDOR))),
            ToolType::AutomationNla => (None, base),
            // Headers go to the API: to the address that is set, else only to the origin of the document.
            ToolType::OpenApi => (None, base.or_else(|| configuration.url("openApiUrl"))),
            // A program of the operator's gets no secret.
            ToolType::Mcp => (None, configuration.url("url")),
            ToolType::Agent => (None, None),
        };
        Self { provider, origin: url.map(|url| url.origin()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(r#type: ToolType, metadata: &Value) -> SecretDestination {
        SecretDestination::of(r#type, metadata.as_object().unwrap())
    }

    #[test]
    fn paths_and_what_is_usual_make_no_difference() {
        for (r#type, one, other) in [
            (
                ToolType::Search,
                json!({"provider": "brave", "api_key": "k"}),
                json!({"provider": "brave", "base_url": "https://api.search.brave.com/v2", "limit": 3}),
            ),
            (ToolType::ComputeAlpha, json!({}), json!({"base_url": "https://www.wolframalpha.com:443"})),
            (ToolType::ModelHost, json!({}), json!({"base_url": "https://api.replicate.com/"})),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example/v1.json"}),
                json!({"openApiUrl": "https://a.example/v2.json"}),
            ),
            // The headers go to the API, wherever its document is.
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example/v1.json"}),
                json!({"openApiUrl": "https://docs.example/v1.json", "base_url": "https://a.example/api"}),
            ),
            (
                ToolType::Mcp,
                json!({"url": "https://a.example/mcp"}),
                json!({"url": "https://a.example:443/v2", "tools": ["one"]}),
            ),
            (ToolType::Agent, json!({"agentId": "a"}), json!({"agentId": "b"})),
        ] {
            assert_eq!(of(r#type, &one), of(r#type, &other), "{one}");
        }
    }

    #[test]
    fn another_provider_host_scheme_or_port_is_another_destination() {
        for (r#type, one, other) in [
            (ToolType::Search, json!({"provider": "brave"}), json!({"provider": "tavily"})),
            (
                ToolType::Search,
                json!({"provider": "brave", "base_url": "https://a.example"}),
                json!({"provider": "tavily", "base_url": "https://a.example"}),
            ),
            (
                ToolType::Search,
                json!({"provider": "serper"}),
                json!({"provider": "serper", "base_url": "https://a.example"}),
            ),
            (ToolType::ComputeAlpha, json!({}), json!({"base_url": "http://www.wolframalpha.com"})),
            (ToolType::ModelHost, json!({}), json!({"base_url": "https://api.replicate.com:8443"})),
            (ToolType::AutomationNla, json!({}), json!({"base_url": "https://a.example"})),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example/o.json"}),
                json!({"openApiUrl": "https://b.example/o.json"}),
            ),
            (ToolType::Mcp, json!({"url": "https://a.example/mcp"}), json!({"url": "https://b.example/mcp"})),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example/o.json"}),
                json!({"openApiUrl": "https://a.example/o.json", "base_url": "https://b.example"}),
            ),
        ] {
            assert_ne!(of(r#type, &one), of(r#type, &other), "{one} {other}");
        }
    }
}
