//! What an agent's model can call: one file a kind of tool, behind [`CallableTool`].
//!
//! A run ([`crate::run`]) opens the tools that are linked to its agent, offers their functions to the model, and gives
//! back what they say. Tools reach the outside through [`lectern_shared::egress`] only. They know nothing of runs.

mod arguments;
mod automation;
mod cache;
mod compute_alpha;
mod configuration;
mod destination;
mod encode;
mod http;
mod mcp;
mod model_host;
pub(crate) mod naming;
mod openapi;
mod search;
pub mod secrets;
#[cfg(test)]
mod tests;
mod text;
mod toolbox;
mod unusable;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::time::Instant;

pub(crate) use self::toolbox::OpenedTool;
pub use self::{arguments::is_deeper, destination::SecretDestination, toolbox::Toolbox};
use crate::models::ToolSpec;

/// A function that a tool offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolFunction {
    /// How it is described to the model. Its name has 1 to 64 ASCII letters, digits, `_` and `-`.
    pub(crate) spec: ToolSpec,
    /// The argument that plain text stands for, for models that write text instead of a JSON object.
    pub(crate) plain: Option<&'static str>,
}

/// A tool, ready to be called.
#[async_trait]
pub(crate) trait CallableTool: Send + Sync {
    /// What it offers; the same for as long as it lives, and never empty.
    fn functions(&self) -> &[ToolFunction];

    /// Calls the function at this place of [`CallableTool::functions`] and waits for its answer, at the latest until `deadline`.
    /// Dropping the future ends whatever goes on outside.
    async fn call(
        &self,
        function: usize,
        arguments: Map<String, Value>,
        deadline: Instant,
    ) -> Result<String, ToolError>;
}

/// Why a call gave nothing. The text is what the model is told: one or two plain sentences, without a secret, an upstream
/// text of which nobody knows what it holds, or an address that the tool's owner has not written. Only what a tool reports of
/// itself is its own text, like what it answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ToolError {
    /// The arguments are not what the function takes; the model can mend that.
    #[error("The arguments are wrong: {0}")]
    Arguments(String),
    /// The service behind the tool failed, refused or answered with something unusable.
    #[error("{0}")]
    Failed(String),
    /// The tool itself says that it failed, in its own words: they tell the model what to do otherwise.
    #[error("{0}")]
    Reported(String),
    /// It took too long.
    #[error("The tool took too long to answer.")]
    Timeout,
}
