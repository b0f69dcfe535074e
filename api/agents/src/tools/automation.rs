//! `AUTOMATION_NLA`: runs the actions that a server of the natural-language actions protocol exposes, one function each.

use std::sync::Arc;

use async_trait::async_trait;
use lectern_shared::model::tool::Tool as Stored;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use url::Url;

use super::{
    CallableTool, ToolError, ToolFunction, arguments,
    cache::{self, ToolCache},
    configuration::{ToolConfiguration, failed},
    encode,
    http::{ServiceClient, ServiceRequest, join},
    naming, text,
};
use crate::models::ToolSpec;

/// Most actions that are offered.
const ACTIONS: usize = 64;
/// Most parameters of one.
const PARAMETERS: usize = 64;
/// Longest texts of an action, in characters.
const ID: usize = 200;
const DESCRIPTION: usize = 1_000;

const HEADER: &str = "x-api-key";
const INSTRUCTIONS: &str = "instructions";

/// What a server exposes.
pub(super) struct ActionCatalog {
    functions: Vec<ToolFunction>,
    actions: Vec<ServerAction>,
}

struct ServerAction {
    id: String,
    /// How the server calls the parameters that models know by the first name.
    parameters: Vec<(String, String)>,
}

pub(super) struct AutomationTool {
    service: ServiceClient,
    base: Url,
    key: HeaderValue,
    actions: Arc<ActionCatalog>,
}

impl AutomationTool {
    pub(super) async fn open(
        tool: &Stored,
        configuration: &ToolConfiguration<'_>,
        service: ServiceClient,
        cache: &ToolCache<ActionCatalog>,
        deadline: Instant,
    ) -> Result<Self, ToolError> {
        let Some(base) = configuration.url("base_url") else {
            return Err(failed(
                "The vendor has retired this service. The tool needs a `base_url`: the address of a server that \
                 speaks the same protocol.",
            ));
        };
        let key = configuration.key("automation_nla_api_key", "")?;
        let actions = match cache.get(tool) {
            Some(actions) => actions,
            None => {
                let ask = ServiceRequest::get(join(&base, "/api/v1/exposed/")).header(HEADER, key.clone());
                let answer = service.send(ask, service.until(deadline)).await?;
                let answer = service.json(answer).await?;
                let stored = tool.clone();
                let actions = service.compute().run(move || ActionCatalog::read(&stored, &answer)).await;
                let actions = actions.ok().flatten().ok_or_else(|| service.malformed_answer())?;
                if actions.actions.is_empty() {
                    return Err(service.failed("exposes no action; allow some in its own settings"));
                }
                let bytes = cache::held(&actions.functions);
                cache.put(tool, actions, bytes)
            }
        };
        Ok(Self { service, base, key, actions })
    }
}

impl ActionCatalog {
    fn read(tool: &Stored, answer: &Value) -> Option<Self> {
        let listed: Vec<_> = answer["results"]
            .as_array()?
            .iter()
            .filter_map(|action| {
                let id = action["id"].as_str().filter(|id| is_id(id))?;
                let description = text::line(action["description"].as_str().unwrap_or_default(), DESCRIPTION);
                Some((id, description, action["params"].as_object()))
            })
            .take(ACTIONS)
            .collect();
        let names = naming::members(
            tool,
            listed.iter().map(|(id, words, _)| if words.is_empty() { *id } else { words.as_str() }),
        );
        let mut read = Self { functions: Vec::new(), actions: Vec::new() };
        for ((id, description, params), name) in listed.into_iter().zip(names) {
            let (parameters, schema) = parameters(params);
            let does = format!("Runs the action \"{description}\" as the instructions say.");
            let description = naming::describe_member(tool, &does);
            let spec = ToolSpec { name, description, parameters: schema };
            read.functions.push(ToolFunction { spec, plain: Some(INSTRUCTIONS) });
            read.actions.push(ServerAction { id: id.to_owned(), parameters });
        }
        Some(read)
    }
}

/// An id is a part of an address; one that is no word is none.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID && id.chars().any(char::is_alphanumeric)
}

/// The names of an action's parameters, and the schema of its arguments. Not every provider takes every name, so they are
/// told in letters that all of them take.
fn parameters(params: Option<&Map<String, Value>>) -> (Vec<(String, String)>, Value) {
    let mut known = Vec::new();
    let mut properties = Map::new();
    let instructions = "What the action is to do, in plain words, with everything that it must know.";
    properties.insert(INSTRUCTIONS.to_owned(), json!({"type": "string", "description": instructions}));
    for name in params.into_iter().flat_map(Map::keys).take(PARAMETERS) {
        let told = naming::words(name, 64);
        if told.is_empty() || properties.contains_key(&told) {
            continue;
        }
        let description = format!("{}; found from the instructions when left out.", text::line(name, 100));
        properties.insert(told.clone(), json!({"type": "string", "description": description}));
        known.push((told, name.clone()));
    }
    (known, json!({"type": "object", "properties": properties, "required": [INSTRUCTIONS]}))
}

#[async_trait]
impl CallableTool for AutomationTool {
    fn functions(&self) -> &[ToolFunction] {
        &self.actions.functions
    }

    async fn call(
        &self,
        function: usize,
        mut arguments: Map<String, Value>,
        deadline: Instant,
    ) -> Result<String, ToolError> {
        let (Some(offered), Some(action)) =
            (self.actions.functions.get(function), self.actions.actions.get(function))
        else {
            return Err(self.service.malformed_answer());
        };
        arguments::check(&offered.spec.parameters, &arguments)?;
        let mut body = Map::new();
        for (told, name) in &action.parameters {
            if let Some(value) = arguments.remove(told).filter(|value| !value.is_null()) {
                body.insert(name.clone(), value);
            }
        }
        // Last, so that no parameter takes its place.
        body.insert(INSTRUCTIONS.to_owned(), arguments.remove(INSTRUCTIONS).unwrap_or_default());
        let path = format!("/api/v1/exposed/{}/execute/", encode::component(&action.id));
        let ask = ServiceRequest::post(join(&self.base, &path), &Value::Object(body))
            .header(HEADER, self.key.clone());
        let answer = self.service.send(ask, self.service.until(deadline)).await?;
        let answer = self.service.json(answer).await?;
        let rendered = self.service.compute().run(move || render(&answer)).await;
        match rendered.ok().flatten() {
            Some(Ok(text)) => Ok(text),
            Some(Err(())) => Err(self.service.failed("could not run the action")),
            None => Err(self.service.malformed_answer()),
        }
    }
}

/// The result as text, or that there is none because the action failed; none when the answer is not one.
fn render(answer: &Value) -> Option<Result<String, ()>> {
    let answer = answer.as_object()?;
    match answer.get("status").and_then(Value::as_str) {
        Some("error") => return Some(Err(())),
        Some("empty") => return Some(Ok("The action ran and found nothing.".to_owned())),
        _ => {}
    }
    let result = answer.get("result").or_else(|| answer.get("additional_results"))?;
    let more = answer.get("additional_results").and_then(Value::as_array).filter(|more| !more.is_empty());
    let text = match (result, more) {
        (Value::Null, None) => "The action ran. It gave no result.".to_owned(),
        (Value::String(text), None) => text.clone(),
        (result, None) => result.to_string(),
        (result, Some(more)) => json!({"result": result, "additional_results": more}).to_string(),
    };
    Some(Ok(text::cut(text, text::MOST)))
}
