//! SEARCH: asks a web search service, and gives its first results as plain text.

use async_trait::async_trait;
use lectern_shared::model::tool::{SearchProvider, Tool as Stored};
use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use url::Url;

use super::{
    CallableTool, ToolError, ToolFunction, arguments,
    configuration::{ToolConfiguration, failed},
    http::{ServiceClient, ServiceRequest, join},
    naming, text,
};
use crate::models::ToolSpec;

/// Results, unless the configuration says otherwise.
const RESULTS: usize = 5;
/// Longest query, in characters: what the strictest of the services takes.
const QUERY: usize = 400;
/// Longest parts of a result, in characters.
const TITLE: usize = 200;
const ADDRESS: usize = 2_000;
const SNIPPET: usize = 1_000;

pub(super) struct WebSearchTool {
    functions: [ToolFunction; 1],
    service: ServiceClient,
    provider: SearchProvider,
    base: Url,
    key: Option<HeaderValue>,
    results: usize,
}

impl WebSearchTool {
    pub(super) fn new(
        tool: &Stored,
        configuration: &ToolConfiguration<'_>,
        service: ServiceClient,
    ) -> Result<Self, ToolError> {
        let provider = configuration.text("provider").and_then(|name| name.parse().ok());
        let provider = provider.ok_or_else(|| failed("This tool names no search provider that is known."))?;
        let base = match vendor(provider) {
            Some(vendor) => configuration.base(vendor)?,
            None => {
                let base = configuration.url("base_url");
                base.ok_or_else(|| failed("This tool has no `base_url`, which searxng needs."))?
            }
        };
        let key = match provider {
            SearchProvider::Searxng => None,
            SearchProvider::Brave | SearchProvider::Serper => Some(configuration.key("api_key", "")?),
            SearchProvider::Tavily => Some(configuration.key("api_key", "Bearer ")?),
        };
        let does = "Searches the web. Gives the title, address and a snippet of each of the first results.";
        let spec = ToolSpec {
            name: naming::function(tool),
            description: naming::describe(tool, does),
            parameters: json!({
                "type": "object",
                "properties": {"query": {"type": "string", "description": "What to search for."}},
                "required": ["query"],
            }),
        };
        // Tools that were saved before it was looked at may ask for more.
        let most = usize::try_from(provider.most_results()).unwrap_or(usize::MAX);
        let results = configuration.count("limit").unwrap_or(RESULTS).min(most);
        let functions = [ToolFunction { spec, plain: Some("query") }];
        Ok(Self { functions, service, provider, base, key, results })
    }

    fn ask(&self, query: &str) -> ServiceRequest {
        let (path, results) = (path(self.provider), self.results);
        let mut url = join(&self.base, path);
        let ask = match self.provider {
            SearchProvider::Searxng => {
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                ServiceRequest::get(url)
            }
            SearchProvider::Brave => {
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &results.to_string());
                ServiceRequest::get(url)
            }
            SearchProvider::Tavily => {
                ServiceRequest::post(url, &json!({"query": query, "max_results": results}))
            }
            SearchProvider::Serper => ServiceRequest::post(url, &json!({"q": query, "num": results})),
        };
        let header = match self.provider {
            SearchProvider::Searxng | SearchProvider::Tavily => "authorization",
            SearchProvider::Brave => "x-subscription-token",
            SearchProvider::Serper => "x-api-key",
        };
        match &self.key {
            Some(key) => ask.header(header, key.clone()),
            None => ask,
        }
    }
}

/// The vendor's own address; none where everybody has one of their own.
pub(super) fn vendor(provider: SearchProvider) -> Option<&'static str> {
    match provider {
        SearchProvider::Searxng => None,
        SearchProvider::Brave => Some("https://api.search.brave.com"),
        SearchProvider::Tavily => Some("https://api.tavily.com"),
        SearchProvider::Serper => Some("https://google.serper.dev"),
    }
}

fn path(provider: SearchProvider) -> &'static str {
    match provider {
        SearchProvider::Searxng | SearchProvider::Tavily | SearchProvider::Serper => "/search",
        SearchProvider::Brave => "/res/v1/web/search",
    }
}

/// Where the results are, how their parts are called, and what is in every answer, with results or without.
struct ResultLayout {
    results: &'static str,
    address: &'static str,
    snippet: &'static str,
    mark: &'static str,
}

fn shape(provider: SearchProvider) -> ResultLayout {
    match provider {
        SearchProvider::Searxng | SearchProvider::Tavily => {
            ResultLayout { results: "/results", address: "url", snippet: "content", mark: "query" }
        }
        SearchProvider::Brave => {
            ResultLayout { results: "/web/results", address: "url", snippet: "description", mark: "query" }
        }
        SearchProvider::Serper => ResultLayout {
            results: "/organic",
            address: "link",
            snippet: "snippet",
            mark: "searchParameters",
        },
    }
}

/// The results as text; none when the answer is not one of this service.
fn render(provider: SearchProvider, answer: &Value, most: usize) -> Option<String> {
    let ResultLayout { results, address, snippet, mark } = shape(provider);
    let results = match answer.pointer(results) {
        Some(Value::Array(results)) => results.as_slice(),
        None | Some(Value::Null) if answer.get(mark).is_some() => &[],
        _ => return None,
    };
    let part = |result: &Value, name: &str, most| {
        text::line(&text::plain(result[name].as_str().unwrap_or_default()), most)
    };
    let mut found = Vec::new();
    for result in results {
        // Addresses are no HTML.
        let address = text::line(result[address].as_str().unwrap_or_default(), ADDRESS);
        if found.len() == most {
            break;
        }
        if !address.starts_with("http://") && !address.starts_with("https://") {
            continue;
        }
        let (title, snippet) = (part(result, "title", TITLE), part(result, snippet, SNIPPET));
        let title = if title.is_empty() { "(no title)" } else { &title };
        let gap = if snippet.is_empty() { "" } else { "\n" };
        found.push(format!("{}. {title}\n{address}{gap}{snippet}", found.len() + 1));
    }
    Some(if found.is_empty() { "Nothing was found for this query.".to_owned() } else { found.join("\n\n") })
}

#[async_trait]
impl CallableTool for WebSearchTool {
    fn functions(&self) -> &[ToolFunction] {
        &self.functions
    }

    async fn call(
        &self,
        _: usize,
        arguments: Map<String, Value>,
        deadline: Instant,
    ) -> Result<String, ToolError> {
        arguments::check(&self.functions[0].spec.parameters, &arguments)?;
        let query = arguments::words(&arguments, "query", QUERY)?;
        let answer = self.service.send(self.ask(&query), self.service.until(deadline)).await?;
        if self.provider == SearchProvider::Searxng && answer.status == 403 {
            // It knows no credentials: this is how it says that only pages are given out.
            return Err(self.service.failed(
                "refused to answer in JSON; `json` must be among the `formats` of its own settings",
            ));
        }
        let (provider, results) = (self.provider, self.results);
        let answer = self.service.json(answer).await?;
        let text = self.service.compute().run(move || render(provider, &answer, results)).await;
        text.ok()
            .flatten()
            .map(|text| text::cut(text, text::MOST))
            .ok_or_else(|| self.service.malformed_answer())
    }
}
