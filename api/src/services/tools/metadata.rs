//! A tool's configuration: what each type needs, and how its secrets are shown.

mod mcp;

use std::borrow::Cow;

use lectern_agents::tools::{SecretDestination, is_deeper, secrets::visit_secrets};
use lectern_shared::{
    egress::is_connection_header,
    ids::AgentId,
    model::tool::{SearchProvider, ToolType},
    secrets::{is_mask_of, looks_masked, mask},
};
use reqwest::header::{CONTENT_TYPE, HeaderName};
use serde_json::{Map, Value, json};
use url::Url;

pub(super) use self::mcp::check_server;
use crate::{
    error::{ApiError, FieldError},
    fields::{self, FieldRule, JsonFields},
    services::request_headers::{WRONG_VALUE, is_value, name_problem},
};

/// Largest configuration, in bytes of JSON.
const LARGEST: usize = 64 * 1024;
/// Deepest configuration, in objects and arrays within each other.
const DEEPEST: usize = 32;
/// Longest text that one of the named fields has, in characters.
const TEXT: usize = 8_000;
/// Longest time that a call may be given, in seconds.
const SECONDS: f64 = 120.0;

/// A configuration that is right for its type.
#[derive(Default)]
pub(crate) struct ToolMetadata {
    /// All of it, secrets included.
    pub(super) all: Map<String, Value>,
    /// The agent that an AGENT tool asks. Text that cannot be an id names an unknown agent.
    pub(super) agent: Option<Result<AgentId, ()>>,
}

impl ToolMetadata {
    /// Reads `metadata` as a tool of this type needs it.
    pub(crate) fn read(fields: &mut JsonFields<'_>, r#type: ToolType) -> Self {
        if fields.get("metadata").is_none() {
            fields.refuse("metadata", format_args!("is required: {}", needs(r#type)));
            return Self::default();
        }
        let Some(mut all) = fields.object("metadata") else { return Self::default() };
        if depth(&all, DEEPEST) {
            fields.refuse(
                "metadata",
                format_args!("must not be deeper than {DEEPEST} objects within each other"),
            );
            return Self::default();
        }
        if json!(all).to_string().len() > LARGEST {
            fields.refuse("metadata", format_args!("must have at most {LARGEST} bytes"));
            return Self::default();
        }
        let mut masks = Vec::new();
        visit_secrets(&mut all, &mut |at, value| {
            if value.as_str().is_some_and(looks_masked) {
                masks.push(path(at));
            }
        });
        let agent = fields.nested("metadata", |fields| {
            for name in masks {
                fields.refuse(
                    &name,
                    "is a mask and not the secret itself, and there is no stored one that it stands for",
                );
            }
            check(fields, r#type)
        });
        Self { all, agent: agent.flatten() }
    }
}

/// Reads the configuration of a new tool. What it needs depends on the type.
pub(super) fn of_new(fields: &mut JsonFields<'_>, _: &FieldRule) -> Option<ToolMetadata> {
    let r#type = fields.parsed("type")?;
    Some(ToolMetadata::read(fields, r#type))
}

/// A JSON pointer as paths of fields are written.
fn path(pointer: &str) -> String {
    let path = pointer.strip_prefix('/').unwrap_or(pointer).replace('/', ".");
    path.replace("~1", "/").replace("~0", "~")
}

/// What a type needs, for a message.
fn needs(r#type: ToolType) -> &'static str {
    match r#type {
        ToolType::Search => {
            "give `provider` (searxng, brave, tavily or serper) and its `api_key`, or for searxng its `base_url`"
        }
        ToolType::ComputeAlpha => "give `app_id`",
        ToolType::ModelHost => "give `api_key`, and `model` or `version`",
        ToolType::AutomationNla => "give `automation_nla_api_key`",
        ToolType::Agent => "give `agentId`",
        ToolType::OpenApi => "give `openApiUrl`",
        ToolType::Mcp => "give `url`, or `server`",
    }
}

fn check(fields: &mut JsonFields<'_>, r#type: ToolType) -> Option<Result<AgentId, ()>> {
    if let Some(url) = address(fields, "base_url")
        && (url.query().is_some() || url.fragment().is_some())
    {
        fields.refuse("base_url", "must end with its path: paths are put behind it");
    }
    fields.number("timeout", 1.0, SECONDS);
    match r#type {
        ToolType::Search => search(fields),
        ToolType::ComputeAlpha => drop(fields.text("app_id", TEXT)),
        ToolType::ModelHost => {
            fields.text("api_key", TEXT);
            // A version says which model it is one of.
            let name = if fields.get("version").is_some() { "version" } else { "model" };
            fields.text(name, TEXT);
        }
        ToolType::AutomationNla => drop(fields.text("automation_nla_api_key", TEXT)),
        ToolType::Agent => return Some(fields.text("agentId", TEXT).parse().map_err(|_| ())),
        ToolType::OpenApi => open_api(fields),
        ToolType::Mcp => mcp::check(fields),
    }
    None
}

fn search(fields: &mut JsonFields<'_>) {
    let provider = fields.choice("provider", &SearchProvider::choices());
    // Whoever has more than a provider gives at once gets as many as that.
    fields.count_up_to("limit", SearchProvider::Searxng.most_results());
    match provider {
        Some(SearchProvider::Searxng) if fields.get("base_url").is_none() => {
            fields.refuse("base_url", "is required for searxng: the address of your instance");
        }
        Some(SearchProvider::Brave | SearchProvider::Tavily | SearchProvider::Serper) => {
            fields.text("api_key", TEXT);
        }
        Some(SearchProvider::Searxng) | None => {}
    }
}

fn open_api(fields: &mut JsonFields<'_>) {
    if fields.get("openApiUrl").is_none() {
        fields.refuse("openApiUrl", "is required: where the OpenAPI document is");
    }
    address(fields, "openApiUrl");
    headers(fields, is_own_header);
    named(
        fields,
        "operations",
        "must name an operation; leave it out to allow all of them",
        "must be an array of operation ids",
    );
}

/// Whether the service sets a header of a tool's request itself: those of the connection, and the type of what it sends.
fn is_own_header(name: &HeaderName) -> bool {
    name == CONTENT_TYPE || is_connection_header(name)
}

/// The headers that go with every request. `is_own` says which ones the service sets itself.
fn headers(fields: &mut JsonFields<'_>, is_own: impl Fn(&HeaderName) -> bool) {
    for (name, value) in fields.object("headers").unwrap_or_default() {
        let path = format!("headers.{name}");
        if let Some(problem) = name_problem(&name, &is_own) {
            fields.refuse(&path, problem);
            continue;
        }
        match &value {
            // What is wrong with a mask has been said.
            Value::String(text) if looks_masked(text) || is_value(text) => {}
            _ => fields.refuse(&path, WRONG_VALUE),
        }
    }
}

/// The names of the only things that may be called.
fn named(fields: &mut JsonFields<'_>, field: &str, none: &str, wrong: &str) {
    let is_named = |name: &Value| name.as_str().is_some_and(|name| !name.trim().is_empty());
    match fields.get(field) {
        None => {}
        Some(Value::Array(names)) if names.is_empty() => fields.refuse(field, none),
        Some(Value::Array(names)) if names.iter().all(is_named) => {}
        Some(_) => fields.refuse(field, wrong),
    }
}

/// An address, where there is one and it is right.
fn address(fields: &mut JsonFields<'_>, name: &str) -> Option<Url> {
    let text = fields.optional_text(name, TEXT)?;
    let wrong = match Url::parse(&text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "must begin with http:// or https://",
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "must not hold credentials; give them in a field of their own"
        }
        Ok(url) => return Some(url),
        Err(_) => "must be an address such as https://example.com",
    };
    fields.refuse(name, wrong);
    None
}

/// Whether anything lies deeper than so many levels.
fn depth(map: &Map<String, Value>, levels: usize) -> bool {
    map.values().any(|value| is_deeper(value, levels))
}

/// Checks a configuration that was sent by itself.
pub(super) fn check_alone(r#type: ToolType, metadata: &Map<String, Value>) -> Result<ToolMetadata, ApiError> {
    fields::read(&json!({"metadata": metadata}), |fields| ToolMetadata::read(fields, r#type))
}

/// A secret, which may be a number, as text.
fn secret_text(secret: &Value) -> Cow<'_, str> {
    secret.as_str().map_or_else(|| secret.to_string().into(), Cow::from)
}

/// A configuration as it may be shown.
pub(super) fn show(mut metadata: Map<String, Value>) -> Map<String, Value> {
    visit_secrets(&mut metadata, &mut |_, value| *value = Value::String(mask(&secret_text(value))));
    metadata
}

/// Puts the stored secrets back where a changed configuration has their masks: it was read, changed and sent back. The paths
/// of those.
pub(super) fn restore_masked(changed: &mut Map<String, Value>, stored: &Map<String, Value>) -> Vec<String> {
    let mut kept = Vec::new();
    let stored = Value::Object(stored.clone());
    visit_secrets(changed, &mut |at, value| {
        let is_kept =
            |secret: &&Value| value.as_str().is_some_and(|text| is_mask_of(text, &secret_text(secret)));
        if let Some(secret) = stored.pointer(at).filter(is_kept) {
            *value = secret.clone();
            kept.push(format!("metadata.{}", path(at)));
        }
    });
    kept
}

/// Refuses to keep secrets that would then be sent somewhere else: whoever may change the tool could have them sent to a host of
/// their own, and read what is never shown.
pub(super) fn check_kept_secrets(
    r#type: ToolType,
    stored: &Map<String, Value>,
    changed: &Map<String, Value>,
    kept: Vec<String>,
) -> Result<(), ApiError> {
    if kept.is_empty() || SecretDestination::of(r#type, stored) == SecretDestination::of(r#type, changed) {
        return Ok(());
    }
    let message =
        "is the mask of a secret that was given for another provider or host; send the secret itself";
    let refuse = |path: String| FieldError::new(&path, message);
    Err(ApiError::invalid(kept.into_iter().map(refuse).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!("{value} is no object"),
        }
    }

    fn wrong(r#type: ToolType, metadata: Value) -> Vec<String> {
        let Err(error) = check_alone(r#type, &map(metadata)) else { return Vec::new() };
        error.fields.into_iter().map(|field| field.path).collect()
    }

    #[test]
    fn each_type_is_told_what_it_lacks() {
        let agent = AgentId::generate();
        for (r#type, good) in [
            (ToolType::Search, json!({"provider": "searxng", "base_url": "https://search.example.com"})),
            (ToolType::Search, json!({"provider": "brave", "api_key": "k", "count": 5})),
            (ToolType::ComputeAlpha, json!({"app_id": "a"})),
            (
                ToolType::Search,
                json!({"provider": "serper", "api_key": "k", "limit": "100", "timeout": 0.5 + 0.5}),
            ),
            (ToolType::ModelHost, json!({"api_key": "k", "model": "owner/name"})),
            (ToolType::ModelHost, json!({"api_key": "k", "version": "5c7d5dc6"})),
            (ToolType::AutomationNla, json!({"automation_nla_api_key": "k"})),
            (ToolType::Agent, json!({"agentId": agent})),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example/o.json", "headers": {"X-Key": "k"}, "operations": ["get"]}),
            ),
        ] {
            assert!(wrong(r#type, good.clone()).is_empty(), "{good}");
        }
        for (r#type, bad, paths) in [
            (ToolType::Search, json!({}), vec!["metadata.provider"]),
            (ToolType::Search, json!({"provider": "altavista"}), vec!["metadata.provider"]),
            (ToolType::Search, json!({"provider": 7}), vec!["metadata.provider"]),
            (ToolType::Search, json!({"provider": "searxng"}), vec!["metadata.base_url"]),
            (
                ToolType::Search,
                json!({"provider": "searxng", "base_url": "https://a.example/?key=k", "limit": 101, "timeout": 0}),
                vec!["metadata.base_url", "metadata.timeout", "metadata.limit"],
            ),
            (ToolType::Search, json!({"provider": "tavily"}), vec!["metadata.api_key"]),
            (ToolType::ComputeAlpha, json!({"app_id": 7}), vec!["metadata.app_id"]),
            (ToolType::ModelHost, json!({}), vec!["metadata.api_key", "metadata.model"]),
            (ToolType::AutomationNla, json!({"api_key": "k"}), vec!["metadata.automation_nla_api_key"]),
            (
                ToolType::AutomationNla,
                json!({"automation_nla_api_key": "k", "base_url": "ftp://x"}),
                vec!["metadata.base_url"],
            ),
            (ToolType::Agent, json!({}), vec!["metadata.agentId"]),
            (ToolType::OpenApi, json!({}), vec!["metadata.openApiUrl"]),
            (ToolType::OpenApi, json!({"openApiUrl": 7}), vec!["metadata.openApiUrl"]),
            (ToolType::OpenApi, json!({"openApiUrl": "https://u:p@a.example"}), vec!["metadata.openApiUrl"]),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example", "operations": []}),
                vec!["metadata.operations"],
            ),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example", "operations": ["get", " "]}),
                vec!["metadata.operations"],
            ),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example", "headers": {"Host": "b", "a b": "c", "X": 1}}),
                vec!["metadata.headers.Host", "metadata.headers.a b", "metadata.headers.X"],
            ),
            (
                ToolType::OpenApi,
                json!({"openApiUrl": "https://a.example", "operations": "get"}),
                vec!["metadata.operations"],
            ),
        ] {
            assert_eq!(wrong(r#type, bad.clone()), paths, "{bad}");
        }
    }

    #[test]
    fn a_mask_is_no_secret() {
        for secret in ["sk-0123456789abcdef", "short", "ünïcödé sécrét"] {
            assert!(looks_masked(&mask(secret)), "{secret}");
            assert!(!looks_masked(secret), "{secret}");
        }
        let copied = json!({
            "openApiUrl": "https://a.example",
            "headers": {"X-A": "tok…0123", "X-B": "told"},
            "a/b": [{"~token": "…", "plain": "abc…defg"}],
        });
        assert_eq!(wrong(ToolType::OpenApi, copied), ["metadata.headers.X-A", "metadata.a/b.0.~token"]);
        let copied = json!({"provider": "brave", "api_key": "BSA…x7Qd"});
        assert_eq!(wrong(ToolType::Search, copied), ["metadata.api_key"]);
    }

    #[test]
    fn what_is_too_large_or_too_deep_is_refused() {
        let deep = (0..DEEPEST).fold(json!(1), |inner, _| json!({"in": inner}));
        let deeper = json!({"in": deep.clone()});
        assert!(wrong(ToolType::ComputeAlpha, json!({"app_id": "a", "in": deep})).is_empty());
        assert_eq!(wrong(ToolType::ComputeAlpha, json!({"app_id": "a", "in": deeper})), ["metadata"]);
        let large = json!({"app_id": "a", "text": "x".repeat(LARGEST)});
        assert_eq!(wrong(ToolType::ComputeAlpha, large), ["metadata"]);
    }

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        let shown = show(map(json!({
            "api_key": "sk-0123456789abcdef",
            "Nested": [{"accessToken": "tok-0123456789abcdef", "plain": "seen"}],
            "client_secret": {"value": "short", "number": 12_345_678_901_234_i64, "on": true},
            "headers": {"X-Anything": "hidden-0123456789"},
            "app_id": "APP-ID-0123456789",
            "keyboard": "seen",
        })));
        let expected = json!({
            "api_key": "s…def",
            "Nested": [{"accessToken": "to…def", "plain": "seen"}],
            "client_secret": {"value": "…", "number": "1…34", "on": true},
            "headers": {"X-Anything": "h…789"},
            "app_id": "A…789",
            "keyboard": "seen",
        });
        assert_eq!(Value::Object(shown), expected);
    }

    #[test]
    fn what_is_kept_by_its_mask_goes_nowhere_else() {
        let stored =
            map(json!({"openApiUrl": "https://a.example/o.json", "headers": {"X-Key": "k-0123456789ab"}}));
        let refused = |changed: Value, kept: &[&str]| {
            let kept = kept.iter().map(|path| (*path).to_owned()).collect();
            match check_kept_secrets(ToolType::OpenApi, &stored, &map(changed), kept) {
                Ok(()) => Vec::new(),
                Err(error) => error.fields.into_iter().map(|field| field.path).collect(),
            }
        };
        let elsewhere = json!({"openApiUrl": "https://b.example/o.json"});
        assert_eq!(refused(elsewhere.clone(), &["metadata.headers.X-Key"]), ["metadata.headers.X-Key"]);
        assert!(refused(elsewhere, &[]).is_empty(), "nothing is kept");
        let same = json!({"openApiUrl": "https://a.example/new.json"});
        assert!(refused(same, &["metadata.headers.X-Key"]).is_empty());
    }

    #[test]
    fn a_mask_that_comes_back_keeps_its_secret_and_no_other() {
        let stored = map(
            json!({"api_key": "sk-0123456789abcdef", "other_key": "ab-0123456789abcdef", "n": {"a/b_key": "short"}}),
        );
        let mut changed = show(stored.clone());
        changed.insert("other_key".to_owned(), json!("new"));
        changed.insert("third_key".to_owned(), json!("sk-…cdef"));
        assert_eq!(restore_masked(&mut changed, &stored), ["metadata.api_key", "metadata.n.a/b_key"]);
        let expected = json!({
            "api_key": "sk-0123456789abcdef", "other_key": "new", "n": {"a/b_key": "short"}, "third_key": "sk-…cdef",
        });
        assert_eq!(Value::Object(changed), expected);
    }
}
