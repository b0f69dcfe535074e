//! What a run tells the operator: counts and times, and the spans of its trace, under the names that OpenTelemetry has for
//! generative AI. No question, answer, argument or passage is in them.

use std::sync::Arc;

use lectern_shared::{
    config::TokenPrice,
    ids::AgentId,
    metrics::Metrics,
    model::{run::TerminationReason, tool::ToolType},
    telemetry::SPANS,
};
use tokio::time::Instant;
use tracing::{Span, field, info_span};

use super::{ledger::UsageLedger, setup::RunSetup, trace::FinishedRun};
use crate::models::{ChatError, ChatOutcome, ChatRequest, ModelProvider, TokenUsage};

/// Tells of one run.
pub(super) struct RunMeter {
    metrics: Arc<Metrics>,
    ledger: UsageLedger,
    provider: ModelProvider,
    model: String,
    price: Option<TokenPrice>,
}

impl RunMeter {
    pub(super) fn new(
        metrics: Arc<Metrics>,
        ledger: UsageLedger,
        provider: ModelProvider,
        setup: &RunSetup,
    ) -> Self {
        Self { metrics, ledger, provider, model: setup.model.clone(), price: setup.price }
    }

    /// The model is being asked.
    pub(super) fn start_model_call<'a>(&'a self, request: &'a ChatRequest) -> ModelCallMeter<'a> {
        let span = info_span!(
            target: SPANS,
            "chat",
            otel.name = format!("chat {}", self.model),
            otel.kind = "client",
            otel.status_code = field::Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = known_name(self.provider),
            gen_ai.request.model = self.model,
            gen_ai.request.temperature = request.temperature,
            gen_ai.request.max_tokens = request.max_tokens,
            gen_ai.usage.input_tokens = field::Empty,
            gen_ai.usage.output_tokens = field::Empty,
            gen_ai.response.finish_reasons = field::Empty,
            lectern.attempts = field::Empty,
            error.type = field::Empty,
        );
        ModelCallMeter {
            meter: self,
            request,
            began: Instant::now(),
            first: None,
            heard: String::new(),
            span,
        }
    }

    /// The ledger, for runs within this one.
    pub(super) fn ledger(&self) -> UsageLedger {
        self.ledger.clone()
    }

    /// A tool is being called.
    pub(super) fn start_tool_call(&self, r#type: ToolType, name: &str) -> ToolCallMeter<'_> {
        let span = info_span!(
            target: SPANS,
            "execute_tool",
            otel.name = format!("execute_tool {name}"),
            otel.status_code = field::Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = name,
            gen_ai.tool.type = "extension",
            lectern.tool.type = r#type.as_str(),
        );
        ToolCallMeter { metrics: &self.metrics, r#type, began: Instant::now(), span }
    }
}

/// A model that is being asked.
pub(super) struct ModelCallMeter<'a> {
    meter: &'a RunMeter,
    request: &'a ChatRequest,
    began: Instant,
    first: Option<Instant>,
    /// The text that has come and is not counted yet.
    heard: String,
    span: Span,
}

impl ModelCallMeter<'_> {
    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// A piece of the answer is there.
    pub(super) fn note_delta(&mut self, delta: &str) {
        self.first.get_or_insert_with(Instant::now);
        self.heard.push_str(delta);
    }

    /// It has answered, or failed for good.
    pub(super) fn ended(mut self, answered: &Result<ChatOutcome, ChatError>) {
        let RunMeter { metrics, provider, .. } = self.meter;
        let label = provider.label();
        if let Some(first) = self.first {
            metrics.model_began(label, first.duration_since(self.began));
        }
        let outcome = answered.as_ref().map_or_else(|error| error.kind.code(), |_| "ok");
        metrics.model_asked(label, outcome, self.began.elapsed());
        match answered {
            Ok(outcome) => {
                self.heard.clear();
                self.count(outcome.usage);
                self.span
                    .record("gen_ai.response.finish_reasons", outcome.finish_reason.as_str())
                    .record("lectern.attempts", outcome.attempts);
            }
            Err(error) => {
                self.span
                    .record("error.type", error.kind.code())
                    .record("lectern.attempts", error.attempts)
                    .record("otel.status_code", "ERROR");
            }
        }
    }

    fn count(&self, usage: TokenUsage) {
        let RunMeter { metrics, ledger, provider, price, .. } = self.meter;
        let cost = price.map(|price| price.of(usage.input_tokens, usage.output_tokens));
        ledger.add(usage.input_tokens.saturating_add(usage.output_tokens), cost);
        metrics.model_used(provider.label(), usage.input_tokens, usage.output_tokens, cost);
        self.span
            .record("gen_ai.usage.input_tokens", usage.input_tokens)
            .record("gen_ai.usage.output_tokens", usage.output_tokens);
    }
}

impl Drop for ModelCallMeter<'_> {
    /// An answer that was cut off, by whomever, has used tokens too, and no provider says how many.
    fn drop(&mut self) {
        if !self.heard.is_empty() {
            self.count(TokenUsage::estimate(self.request, &self.heard, &[]));
        }
    }
}

/// A tool that is being called.
pub(super) struct ToolCallMeter<'a> {
    metrics: &'a Metrics,
    r#type: ToolType,
    began: Instant,
    span: Span,
}

impl ToolCallMeter<'_> {
    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// It has answered.
    pub(super) fn ended(self, has_failed: bool) {
        self.metrics.tool(self.r#type, !has_failed, self.began.elapsed());
        if has_failed {
            self.span.record("otel.status_code", "ERROR");
        }
    }
}

/// The span of a whole run.
pub(super) fn run_span(agent: AgentId) -> Span {
    info_span!(
        target: SPANS,
        "invoke_agent",
        otel.status_code = field::Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.id = %agent,
        gen_ai.provider.name = field::Empty,
        gen_ai.request.model = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        gen_ai.response.finish_reasons = field::Empty,
        lectern.trace.id = field::Empty,
        error.type = field::Empty,
    )
}

/// Notes the end of a run in its span, which is the current one; says how it ended.
pub(super) fn record_run_end(setup: &RunSetup, done: &FinishedRun) -> TerminationReason {
    let span = Span::current();
    let provider = setup.provider.parse::<ModelProvider>();
    span.record("gen_ai.provider.name", provider.map_or("unknown", known_name))
        .record("gen_ai.request.model", setup.model.as_str())
        .record("gen_ai.usage.input_tokens", done.spent.input_tokens)
        .record("gen_ai.usage.output_tokens", done.spent.output_tokens)
        .record("lectern.trace.id", setup.trace.to_string());
    match &done.outcome {
        Ok(ended) => {
            span.record("gen_ai.response.finish_reasons", ended.finish_reason.as_str());
            ended.finish_reason
        }
        Err(error) => {
            span.record("error.type", error.code()).record("otel.status_code", "ERROR");
            TerminationReason::Error
        }
    }
}

/// The span of a search in the documents.
pub(super) fn search_span() -> Span {
    info_span!(target: SPANS, "retrieval", gen_ai.operation.name = "retrieval", lectern.passages = field::Empty,
        lectern.reranked = field::Empty)
}

/// What OpenTelemetry calls a provider; its label where it has no name of its own there.
fn known_name(provider: ModelProvider) -> &'static str {
    match provider {
        ModelProvider::OpenAiChat | ModelProvider::OpenAi => "openai",
        ModelProvider::Gemini => "gcp.gemini",
        ModelProvider::Mistral => "mistral_ai",
        ModelProvider::AzureOpenAi => "azure.ai.openai",
        ModelProvider::Anthropic
        | ModelProvider::Groq
        | ModelProvider::Cohere
        | ModelProvider::Ollama
        | ModelProvider::OpenAiCompatible
        | ModelProvider::Extractive => provider.label(),
    }
}
