//! Everything that a run asks of the world, and nothing else does: documents, the model, tools. A run that is repeated from its
//! record gets the answers that are in it.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{
    setup::{CallOutcome, ModelReply, RunLimits, StepTiming},
    sources::RetrievedExcerpt,
};
use crate::{
    AgentError,
    models::{ChatRequest, DeltaSink},
};

/// Where the answers come from: the world as it is now, or a record.
#[async_trait]
pub(super) trait RunEnvironment: Send + Sync {
    /// Whether it is the world that answers.
    fn is_live(&self) -> bool;

    /// Searches the documents for the question.
    async fn search(
        &mut self,
        query: &str,
        tokens: i64,
    ) -> Result<(Vec<RetrievedExcerpt>, StepTiming), AgentError>;

    /// Asks the model, for the first time or again. `hears` gets its text while it comes.
    async fn chat(
        &mut self,
        request: &ChatRequest,
        is_first: bool,
        hears: &mut dyn DeltaSink,
    ) -> Result<(ModelReply, Vec<u32>, StepTiming), AgentError>;

    /// Calls functions, and waits for all of them.
    async fn call(
        &mut self,
        planned: Vec<PlannedCall>,
        left: RunLimits,
    ) -> Result<Vec<CallOutcome>, AgentError>;
}

/// A call that is to be made.
pub(super) struct PlannedCall {
    /// The place of the function in the setup.
    pub(super) function: usize,
    /// Its arguments.
    pub(super) arguments: Map<String, Value>,
}

/// What a call gave that failed.
pub(super) fn failed(text: String) -> CallOutcome {
    CallOutcome { text, failed: true, ..CallOutcome::default() }
}
