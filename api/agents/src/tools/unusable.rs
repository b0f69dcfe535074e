//! A tool that cannot be used. It is offered all the same, so that the model can say why it did not help.

use async_trait::async_trait;
use lectern_shared::model::tool::Tool as Stored;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{CallableTool, ToolError, ToolFunction, naming};
use crate::models::ToolSpec;

pub(super) struct UnusableTool {
    functions: [ToolFunction; 1],
    error: ToolError,
}

impl UnusableTool {
    pub(super) fn new(tool: &Stored, error: ToolError) -> Self {
        let spec = ToolSpec {
            name: naming::function(tool),
            description: naming::describe(tool, "It takes an input in plain words."),
            parameters: json!({
                "type": "object",
                "properties": {"input": {"type": "string", "description": "What it is asked."}},
            }),
        };
        Self { functions: [ToolFunction { spec, plain: Some("input") }], error }
    }
}

#[async_trait]
impl CallableTool for UnusableTool {
    fn functions(&self) -> &[ToolFunction] {
        &self.functions
    }

    async fn call(&self, _: usize, _: Map<String, Value>, _: Instant) -> Result<String, ToolError> {
        Err(self.error.clone())
    }
}
