//! The world as it is now: the documents, the model and the tools of an agent, within the bounds of its run.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, stream};
use lectern_shared::{
    failure::ServiceFailure,
    ids::{AgentId, DocumentId},
    model::{search::SearchMode, tool::ToolType, workspace::RunOwner},
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::{
    AgentParts,
    meter::{self, ModelCallMeter, RunMeter},
    nested,
    outside::{PlannedCall, RunEnvironment, failed},
    setup::{CallOutcome, ModelReply, RunLimits, StepTiming},
    sources::RetrievedExcerpt,
};
use crate::{
    AgentError,
    answer::redact::{RedactedStream, SecretRedactor},
    models::{ChatErrorKind, ChatModel, ChatOutcome, ChatRequest, DeltaSink},
    search::{MetadataFilter, RerankPatience, SearchRequest},
    tools::{CallableTool, Toolbox},
};

/// Passages of a search that are looked at.
const PASSAGES: usize = 12;
/// Tokens of the passages that a search by the model brings.
const SEARCHED: i64 = 2_000;
/// Characters of a model's query that are looked for, as many as the search endpoint takes.
const QUERY: usize = 10_000;
/// Tools that are called at once.
const AT_ONCE: usize = 8;

/// The world as it is now.
pub(super) struct LiveEnvironment {
    pub(super) parts: AgentParts,
    pub(super) toolbox: Toolbox,
    /// Whose the agent is, and who asks.
    pub(super) owner: RunOwner,
    /// The documents of the agent.
    pub(super) documents: Arc<[DocumentId]>,
    /// The epoch at which these were read, until it is used: what changes while the run goes on counts in later searches.
    pub(super) search_epoch: Mutex<Option<i64>>,
    /// Whether what is found in them is put into a better order.
    pub(super) rerank: bool,
    pub(super) meter: RunMeter,
    /// None for an agent that has none.
    pub(super) model: Option<Box<dyn ChatModel>>,
    /// What each function of the setup is.
    pub(super) callables: Vec<CallTarget>,
    /// When the run ends at the latest.
    pub(super) deadline: Instant,
    /// When it began.
    pub(super) started: Instant,
    pub(super) redactor: SecretRedactor,
    /// The agents that asked each other, down to the one that runs.
    pub(super) chain: Vec<AgentId>,
}

/// What stands behind a function.
pub(super) enum CallTarget {
    /// The linked documents.
    Documents,
    /// Another agent.
    Agent {
        /// Which.
        agent: AgentId,
        /// The longest that it may take.
        timeout: Option<Duration>,
    },
    /// A tool.
    Tool {
        /// Which.
        tool: Arc<dyn CallableTool>,
        /// Which of its functions.
        function: usize,
        /// Its type.
        r#type: ToolType,
    },
}

#[async_trait]
impl RunEnvironment for LiveEnvironment {
    fn is_live(&self) -> bool {
        true
    }

    async fn search(
        &mut self,
        query: &str,
        tokens: i64,
    ) -> Result<(Vec<RetrievedExcerpt>, StepTiming), AgentError> {
        let began = Instant::now();
        let found = timeout_at(self.deadline, self.excerpts(query, tokens)).await;
        let found = found.map_err(|_| ServiceFailure::Unavailable)??;
        Ok((found, self.span(began)))
    }

    async fn chat(
        &mut self,
        request: &ChatRequest,
        is_first: bool,
        hears: &mut dyn DeltaSink,
    ) -> Result<(ModelReply, Vec<u32>, StepTiming), AgentError> {
        let began = Instant::now();
        let redacted = self.redactor.stream();
        let mut tee =
            DeltaRecorder { to: hears, asking: None, redacted, text: String::new(), pieces: Vec::new() };
        let said = self.ask_model(request, is_first, &mut tee).await;
        Ok((said, tee.pieces, self.span(began)))
    }

    async fn call(
        &mut self,
        planned: Vec<PlannedCall>,
        left: RunLimits,
    ) -> Result<Vec<CallOutcome>, AgentError> {
        Ok(self.call_all(planned, left).await)
    }
}

impl LiveEnvironment {
    fn span(&self, began: Instant) -> StepTiming {
        let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        StepTiming {
            started_ms: milliseconds(began.duration_since(self.started)),
            duration_ms: milliseconds(began.elapsed()),
        }
    }

    async fn excerpts(&self, query: &str, tokens: i64) -> Result<Vec<RetrievedExcerpt>, AgentError> {
        let request = SearchRequest {
            workspace: self.owner.workspace_id,
            query: query.to_owned(),
            documents: Some(Arc::clone(&self.documents)),
            filter: MetadataFilter::default(),
            mode: SearchMode::Hybrid,
            limit: PASSAGES,
            rerank: self.rerank.then_some(RerankPatience::Budget),
            epoch: self.search_epoch.lock().take(),
        };
        let span = meter::search_span();
        let searched = self.parts.search.excerpts(&request, tokens).instrument(span.clone());
        let (excerpts, reranked) = searched.await?;
        if let Some(report) = reranked {
            span.record("lectern.reranked", report.scored);
        }
        span.record("lectern.passages", excerpts.len());
        Ok(excerpts.iter().map(RetrievedExcerpt::from).collect())
    }

    async fn ask_model<'a>(
        &'a self,
        request: &'a ChatRequest,
        is_first: bool,
        tee: &mut DeltaRecorder<'a>,
    ) -> ModelReply {
        // A run with a model has one.
        let Some(model) = self.model.as_ref().filter(|_| Instant::now() < self.deadline) else {
            return ModelReply::TimeUp { text: String::new(), was_asked: false };
        };
        let asking = self.meter.start_model_call(request);
        let span = asking.span();
        tee.asking = Some(asking);
        let answered = model.chat(request, self.deadline, tee).instrument(span).await;
        if let Some(asking) = tee.asking.take() {
            asking.ended(&answered);
        }
        tee.finish().await;
        let text = std::mem::take(&mut tee.text);
        match answered {
            Ok(mut outcome) => {
                for call in &mut outcome.tool_calls {
                    for text in [&mut call.id, &mut call.name, &mut call.arguments] {
                        *text = self.redactor.text(std::mem::take(text));
                    }
                }
                ModelReply::Whole(ChatOutcome { text, ..outcome })
            }
            Err(error) => {
                let is_over = error.kind == ChatErrorKind::Timeout && Instant::now() >= self.deadline;
                // A provider that never said anything is the failure; a run that has got somewhere ends with what it has.
                if is_over && !(is_first && text.is_empty()) {
                    ModelReply::TimeUp { text, was_asked: true }
                } else {
                    ModelReply::Failed(error, text)
                }
            }
        }
    }

    /// Agents are asked one after the other, because they share what is left of the limits; everything else at once.
    async fn call_all(&self, planned: Vec<PlannedCall>, mut left: RunLimits) -> Vec<CallOutcome> {
        let (mut agents, mut others) = (Vec::new(), Vec::new());
        let total = planned.len();
        for (at, planned) in planned.into_iter().enumerate() {
            match self.callables.get(planned.function) {
                Some(CallTarget::Agent { agent, timeout }) => {
                    agents.push((at, *agent, *timeout, planned.arguments));
                }
                Some(callable) => others.push(self.call_one(at, callable, planned.arguments).boxed()),
                None => {}
            }
        }
        let mut called: Vec<CallOutcome> = std::iter::repeat_with(CallOutcome::default).take(total).collect();
        let mut answers = stream::iter(others).buffer_unordered(AT_ONCE);
        while let Some((at, answer)) = answers.next().await {
            called[at] = answer;
        }
        for (at, agent, timeout, arguments) in agents {
            let began = Instant::now();
            let deadline = timeout.map_or(self.deadline, |timeout| self.deadline.min(began + timeout));
            let calling = self.meter.start_tool_call(ToolType::Agent, "agent");
            let asking = nested::ask(self, agent, &arguments, left, deadline).instrument(calling.span());
            let mut answer = asking.await;
            calling.ended(answer.failed);
            answer.text = self.redactor.text(answer.text);
            answer.span = self.span(began);
            left = left.without(&answer.spent);
            called[at] = answer;
        }
        called
    }

    async fn call_one(
        &self,
        at: usize,
        callable: &CallTarget,
        arguments: Map<String, Value>,
    ) -> (usize, CallOutcome) {
        let began = Instant::now();
        let mut answer = match callable {
            CallTarget::Documents => self.search_documents(&arguments).await,
            CallTarget::Tool { tool, function, r#type } => {
                let name = tool.functions().get(*function).map_or("", |function| &function.spec.name);
                let calling = self.meter.start_tool_call(*r#type, name);
                let call = tool.call(*function, arguments, self.deadline).instrument(calling.span());
                // Whatever a tool does, a run never waits longer than it may.
                let answer = match timeout_at(self.deadline, call).await {
                    Ok(Ok(text)) => CallOutcome { text, ..CallOutcome::default() },
                    Ok(Err(error)) => failed(error.to_string()),
                    Err(_) => failed(crate::tools::ToolError::Timeout.to_string()),
                };
                calling.ended(answer.failed);
                answer
            }
            CallTarget::Agent { .. } => failed("The tool cannot be used here.".to_owned()),
        };
        answer.text = self.redactor.text(answer.text);
        answer.span = self.span(began);
        (at, answer)
    }

    async fn search_documents(&self, arguments: &Map<String, Value>) -> CallOutcome {
        let query = arguments.get("query").and_then(Value::as_str).map(str::trim);
        let Some(query) = query.filter(|query| !query.is_empty()) else {
            return failed("The arguments are wrong: give `query`, the text to look for.".to_owned());
        };
        let query = query.char_indices().nth(QUERY).map_or(query, |(end, _)| &query[..end]);
        match timeout_at(self.deadline, self.excerpts(query, SEARCHED)).await {
            Ok(Ok(found)) => CallOutcome { found, ..CallOutcome::default() },
            Ok(Err(error)) => {
                tracing::warn!(code = error.code(), "a search by an agent's model failed");
                failed("The documents cannot be searched at the moment.".to_owned())
            }
            Err(_) => failed(crate::tools::ToolError::Timeout.to_string()),
        }
    }
}

/// Passes text on, without secrets, and remembers how it came.
struct DeltaRecorder<'a> {
    to: &'a mut dyn DeltaSink,
    /// The request that is answered.
    asking: Option<ModelCallMeter<'a>>,
    redacted: RedactedStream<'a>,
    text: String,
    pieces: Vec<u32>,
}

impl DeltaRecorder<'_> {
    async fn pass(&mut self, piece: String) {
        if !piece.is_empty() {
            self.text.push_str(&piece);
            self.pieces.push(u32::try_from(piece.len()).unwrap_or(u32::MAX));
            self.to.take(&piece).await;
        }
    }

    async fn finish(&mut self) {
        let rest = self.redacted.finish();
        self.pass(rest).await;
    }
}

#[async_trait]
impl DeltaSink for DeltaRecorder<'_> {
    async fn take(&mut self, delta: &str) {
        if let Some(asking) = &mut self.asking {
            asking.note_delta(delta);
        }
        let piece = self.redacted.push(delta);
        self.pass(piece).await;
    }
}
