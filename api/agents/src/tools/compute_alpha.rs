//! `COMPUTE_ALPHA`: asks the computation engine for an answer that is written for models.

use async_trait::async_trait;
use lectern_shared::model::tool::Tool as Stored;
use secrecy::{ExposeSecret, SecretString};
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

/// The vendor's own address.
pub(super) const VENDOR: &str = "https://www.wolframalpha.com";
/// Longest answer that is asked for, in characters: a little less than a model is given of it.
const ANSWER: &str = "7500";
/// Longest input, in characters.
const INPUT: usize = 2_000;
/// Longest suggestion, in characters.
const SUGGESTION: usize = 1_000;

pub(super) struct ComputeAlphaTool {
    functions: [ToolFunction; 1],
    service: ServiceClient,
    base: Url,
    app_id: SecretString,
}

impl ComputeAlphaTool {
    pub(super) fn new(
        tool: &Stored,
        configuration: &ToolConfiguration<'_>,
        service: ServiceClient,
    ) -> Result<Self, ToolError> {
        let app_id = configuration.text("app_id").ok_or_else(|| failed("This tool has no `app_id`."))?;
        let does = "Computes, and looks up facts: mathematics, units, dates, science, places, money. Takes a short \
                    question or an expression, in English.";
        let spec = ToolSpec {
            name: naming::function(tool),
            description: naming::describe(tool, does),
            parameters: json!({
                "type": "object",
                "properties": {
                    "input": {"type": "string", "description": "The question or expression, such as `10 densest metals`."},
                },
                "required": ["input"],
            }),
        };
        Ok(Self {
            functions: [ToolFunction { spec, plain: Some("input") }],
            service,
            base: configuration.base(VENDOR)?,
            app_id: app_id.into(),
        })
    }

    /// That the input was not understood. The service writes what to try instead for whoever asks; it is passed on only
    /// as far as it is text, and without the id, which an address in it could repeat.
    fn not_understood(&self, suggestion: Option<&str>) -> ToolError {
        let told = "The computation service did not understand the input; put it more simply.";
        let suggestion = suggestion.unwrap_or_default().replace(self.app_id.expose_secret(), "…");
        let suggestion = text::line(&suggestion, SUGGESTION);
        if suggestion.is_empty() {
            return failed(told);
        }
        ToolError::Failed(format!("{told} It says: {suggestion}"))
    }
}

#[async_trait]
impl CallableTool for ComputeAlphaTool {
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
        let input = arguments::words(&arguments, "input", INPUT)?;
        let mut url = join(&self.base, "/api/v1/llm-api");
        url.query_pairs_mut()
            .append_pair("input", &input)
            .append_pair("appid", self.app_id.expose_secret())
            .append_pair("maxchars", ANSWER);
        let mut ask = ServiceRequest::get(url);
        ask.accept = "text/plain";
        let answer = self.service.send(ask, self.service.until(deadline)).await?;
        if answer.status == 501 {
            return Err(self.not_understood(answer.plain_text().as_deref()));
        }
        let answer = self.service.accept(answer)?;
        let answer = answer.plain_text().ok_or_else(|| self.service.malformed_answer())?;
        Ok(text::cut(answer, text::MOST))
    }
}
