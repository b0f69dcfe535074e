//! MODELHOST: runs a hosted model, and ends what runs there when nobody waits for it any more.

mod prediction;

use async_trait::async_trait;
use lectern_shared::model::tool::Tool as Stored;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

pub(super) use self::prediction::CancellationLimit;
use self::prediction::{ModelHostClient, ModelReference, PredictionState};
use super::{
    CallableTool, ToolError, ToolFunction, arguments,
    configuration::{ToolConfiguration, failed},
    encode,
    http::ServiceClient,
    naming, text,
};
use crate::models::ToolSpec;

/// The vendor's own address.
pub(super) const VENDOR: &str = "https://api.replicate.com";

pub(super) struct ModelHostTool {
    functions: [ToolFunction; 1],
    host: ModelHostClient,
    start: ModelReference,
    /// Inputs that the model may leave out.
    defaults: Map<String, Value>,
}

impl ModelHostTool {
    pub(super) fn new(
        tool: &Stored,
        configuration: &ToolConfiguration<'_>,
        service: ServiceClient,
        cancels: CancellationLimit,
    ) -> Result<Self, ToolError> {
        let start = start(configuration)?;
        let defaults = configuration.0.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
        let does = "Runs a hosted machine-learning model and gives its output.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "The model's input named `prompt`: what it is to do or make."},
                "input": {"type": "object", "description": "Other inputs of the model, by their names."},
            },
        });
        let spec =
            ToolSpec { name: naming::function(tool), description: naming::describe(tool, does), parameters };
        let base = configuration.base(VENDOR)?;
        let host = ModelHostClient::new(service, base, configuration.key("api_key", "Bearer ")?, cancels);
        Ok(Self { functions: [ToolFunction { spec, plain: Some("prompt") }], host, start, defaults })
    }

    /// The inputs to send: what the model gives over what the configuration has.
    fn input(&self, mut arguments: Map<String, Value>) -> Result<Value, ToolError> {
        let mut input = self.defaults.clone();
        if let Some(Value::Object(given)) = arguments.remove("input") {
            input.extend(given);
        }
        if let Some(prompt) = arguments.remove("prompt").filter(|prompt| !prompt.is_null()) {
            input.insert("prompt".to_owned(), prompt);
        }
        if input.is_empty() {
            let told = "give `prompt`, a string, or `input`, an object with the model's inputs.";
            return Err(ToolError::Arguments(told.to_owned()));
        }
        Ok(Value::Object(input))
    }
}

/// What is to be run: a version, wherever it is written, or else the model's newest.
fn start(configuration: &ToolConfiguration<'_>) -> Result<ModelReference, ToolError> {
    if let Some(version) = configuration.text("version") {
        return Ok(ModelReference::Version(version.to_owned()));
    }
    let model = configuration.text("model").unwrap_or_default();
    if let Some((_, version)) = model.split_once(':') {
        return Ok(ModelReference::Version(version.to_owned()));
    }
    match model.split_once('/') {
        Some((owner, name)) if is_name(owner) && is_name(name) => {
            Ok(ModelReference::Model(format!("{}/{}", encode::component(owner), encode::component(name))))
        }
        _ => Err(failed("The `model` of this tool must be written `owner/name`.")),
    }
}

fn is_name(text: &str) -> bool {
    text.chars().any(|c| c != '.') && !text.contains('/')
}

#[async_trait]
impl CallableTool for ModelHostTool {
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
        let input = self.input(arguments)?;
        match self.host.run(&self.start, &input, deadline).await? {
            PredictionState::Succeeded(output) => Ok(text::cut(render(output), text::MOST)),
            PredictionState::Failed => Err(failed("The model failed on this input.")),
            PredictionState::Canceled => Err(failed("The run of the model was canceled at its host.")),
            PredictionState::Running => Err(ToolError::Timeout),
        }
    }
}

/// An output as text. Lists of texts are mostly one text in pieces, unless they are addresses of files.
fn render(output: Value) -> String {
    let is_address = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    match output {
        Value::Null => "The model gave no output.".to_owned(),
        Value::String(text) => text,
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            let texts: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            texts.join(if texts.iter().all(|text| is_address(text)) { "\n" } else { "" })
        }
        other => other.to_string(),
    }
}
