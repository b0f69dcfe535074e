//! What a run has come to, and the steps that it can make. It asks the [`RunEnvironment`] for everything that is not decided here, so
//! that the same run from a record takes the same course.

use std::collections::{HashMap, VecDeque};

use lectern_shared::{
    compute::ComputePool,
    model::run::{StepKind, TerminationReason},
};
use serde_json::{Map, Value, json};

use super::{
    event::{EventEmitter, NullDeltaSink, RunEvent},
    instructions,
    observation::{note_tool_input, shortened, shown},
    outside::{PlannedCall, RunEnvironment, failed},
    react_text,
    setup::{CallOutcome, ModelReply, RecordEntry, RunSetup, RunUsage, SEARCH},
    sources::SourceRegistry,
    trace::{AnswerSpan, CitationView, FinishedRun, RunAnswer, StepView, UsageView},
};
use crate::{
    AgentError,
    answer::cite,
    models::{
        ChatError, ChatErrorKind, ChatMessage, ChatOutcome, ChatRequest, EmptyAnswer, FinishReason,
        ModelProvider, TokenUsage, UsageSource,
    },
};

/// Tokens that every model can write.
const SAFE_TO_ASK: u32 = 4_096;
/// How often the same call is made.
const SAME_CALL: u32 = 2;

/// A run that goes on.
pub(super) struct AgentRun<'a> {
    pub(super) setup: &'a RunSetup,
    outside: &'a mut dyn RunEnvironment,
    pub(super) compute: ComputePool,
    pub(super) emitter: EventEmitter,
    pub(super) sources: SourceRegistry,
    pub(super) steps: Vec<StepView>,
    entries: Vec<RecordEntry>,
    pub(super) spent: RunUsage,
    calls: HashMap<(usize, String), u32>,
    /// The model was given fewer tokens than its agent asks for, since no more were left.
    is_short: bool,
    /// The provider withheld the rest of what the model said last.
    is_withheld: bool,
}

/// What became of asking the model.
pub(super) enum StepOutcome {
    /// It answered.
    Said(ChatOutcome),
    /// The run has to end here, and why.
    Over(TerminationReason),
}

/// A call that the model wants.
pub(super) struct RequestedCall {
    /// Ties the observation to it.
    pub(super) id: String,
    /// The name, as the model wrote it.
    pub(super) name: String,
    /// What it gives, as traces and events show it.
    pub(super) shown: Value,
    /// The function and the arguments, or what the model did wrong.
    pub(super) plan: Result<(usize, Map<String, Value>), String>,
}

/// What the model is told about a call.
pub(super) struct CallObservation {
    /// The text for the model.
    pub(super) text: String,
    /// The call succeeded, and its result is to be the answer: all of it.
    pub(super) is_answer: Option<String>,
}

impl<'a> AgentRun<'a> {
    pub(super) fn new(
        setup: &'a RunSetup,
        outside: &'a mut dyn RunEnvironment,
        compute: ComputePool,
        emitter: EventEmitter,
    ) -> Self {
        Self {
            setup,
            outside,
            compute,
            emitter,
            sources: SourceRegistry::default(),
            steps: Vec::new(),
            entries: Vec::new(),
            spent: RunUsage::default(),
            calls: HashMap::new(),
            is_short: false,
            is_withheld: false,
        }
    }

    /// What is known of it, now that this has become of it.
    pub(super) fn finished(self, outcome: Result<RunAnswer, AgentError>) -> FinishedRun {
        let is_unread = self.emitter.is_unread();
        FinishedRun { outcome, steps: self.steps, entries: self.entries, spent: self.spent, is_unread }
    }

    /// What became of it, with an answer that cites this.
    pub(super) async fn ended(
        &mut self,
        finish_reason: TerminationReason,
        cited: &[cite::AnswerCitation],
    ) -> RunAnswer {
        let mut citations: Vec<_> =
            cited.iter().filter_map(|cited| CitationView::new(self.sources.get(cited.n)?, cited)).collect();
        AnswerSpan::count_characters(self.emitter.answer(), &mut citations);
        for citation in &citations {
            self.emitter.emit(RunEvent::Citation(Box::new(citation.clone()))).await;
        }
        let is_models = matches!(finish_reason, TerminationReason::Stop | TerminationReason::Unformatted);
        RunAnswer {
            answer: self.emitter.answer().to_owned(),
            finish_reason,
            citations,
            is_unanswered: false,
            is_withheld: self.is_withheld && is_models,
        }
    }

    /// Searches the documents; the numbers of what was found.
    pub(super) async fn retrieve(&mut self, query: &str) -> Result<Vec<usize>, AgentError> {
        if !self.setup.has_documents {
            return Ok(Vec::new());
        }
        let (found, span) = self.outside.search(query, self.setup.passages).await?;
        self.entries.push(RecordEntry::Search { found: found.clone(), span });
        for source in &found {
            self.emitter.filter().allow_hosts_in(&source.text);
        }
        let numbers = self.sources.add(found);
        self.know(&numbers);
        let documents = self.sources.describe(&numbers);
        self.emitter.emit(RunEvent::Retrieval { query: query.into(), documents: documents.clone() }).await;
        let step = StepView::new(StepKind::Retrieval, SEARCH, json!(query), span);
        self.steps.push(StepView { documents, ..step });
        Ok(numbers)
    }

    /// Sources with these numbers, and the addresses that belong to them, may stand in the answer.
    fn know(&mut self, numbers: &[usize]) {
        for n in numbers {
            self.emitter.filter().allow_source(*n);
            if let Some(url) = self.sources.get(*n).and_then(|source| source.part(None)?.url.clone()) {
                self.emitter.filter().allow_hosts_in(&url);
            }
        }
    }

    /// The request that every step of the model begins with.
    pub(super) fn request(&mut self, messages: &[ChatMessage]) -> ChatRequest {
        // Providers refuse more than their models can write, and that is not known here.
        let left = self.setup.limits.without(&self.spent).tokens.and_then(|left| u32::try_from(left).ok());
        let asked = self.setup.max_tokens;
        let left = left.filter(|left| *left < asked.unwrap_or(SAFE_TO_ASK));
        self.is_short = left.is_some();
        ChatRequest {
            messages: messages.to_vec(),
            temperature: self.setup.temperature,
            max_tokens: left.or(asked),
            tools: Vec::new(),
            stop: Vec::new(),
        }
    }

    /// Asks the model. `appended` is what the request has that the last one had not. Its text becomes part of the answer at
    /// once when `is_heard`.
    pub(super) async fn ask(
        &mut self,
        request: &ChatRequest,
        appended: Value,
        is_heard: bool,
    ) -> Result<StepOutcome, AgentError> {
        if let Some(limit) = self.setup.limits.reached(&self.spent, self.setup.price.is_some()) {
            return Ok(StepOutcome::Over(limit));
        }
        let is_first = self.spent.steps == 0;
        let (said, pieces, span) = if is_heard {
            self.outside.chat(request, is_first, &mut self.emitter).await?
        } else {
            self.outside.chat(request, is_first, &mut NullDeltaSink).await?
        };
        self.entries.push(RecordEntry::Chat { said: said.clone(), pieces, span });
        let mut step = StepView::new(StepKind::Chat, &self.setup.model, appended, span);
        let asked = match said {
            ModelReply::Whole(outcome) => {
                let spent = self.spend(outcome.usage);
                step.observation = shown(&outcome);
                step.attempts = outcome.attempts;
                step.usage = Some(UsageView::of(&spent));
                self.is_withheld = outcome.finish_reason == FinishReason::ContentFilter;
                step.error = self.is_withheld.then(|| "The provider withheld the rest.".to_owned());
                Ok(StepOutcome::Said(outcome))
            }
            ModelReply::TimeUp { text, was_asked } => {
                step.observation = json!(text);
                step.error = Some("The time was up.".to_owned());
                if was_asked {
                    let spent = self.spend(TokenUsage::estimate(request, &text, &[]));
                    step.usage = Some(UsageView::of(&spent));
                }
                if !is_heard {
                    self.emitter.text(&react_text::so_far(&text)).await;
                }
                Ok(StepOutcome::Over(TerminationReason::MaxTime))
            }
            ModelReply::Failed(error, text) => {
                step.observation = json!(text);
                step.attempts = error.attempts;
                step.error = Some(error.to_string());
                Err(error.into())
            }
        };
        self.steps.push(step);
        asked
    }

    /// Why an answer ended that the model had no more tokens for.
    pub(super) const fn length_reason(&self) -> TerminationReason {
        if self.is_short { TerminationReason::MaxTokens } else { TerminationReason::Length }
    }

    fn spend(&mut self, usage: TokenUsage) -> RunUsage {
        let spent = RunUsage {
            steps: 1,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            estimated: usage.source == UsageSource::Estimated,
            cost: self.setup.price.map(|price| price.of(usage.input_tokens, usage.output_tokens)),
            unpriced: self.setup.price.is_none(),
        };
        self.spent.add(&spent);
        spent
    }

    /// What the model thought in the step that has just been made.
    pub(super) fn note(&mut self, thought: &str) {
        if let Some(step) = self.steps.last_mut().filter(|_| !thought.is_empty()) {
            step.log = Some(thought.to_owned());
        }
    }

    /// Makes the calls that a step of the model wants, and says what came of each.
    pub(super) async fn call(
        &mut self,
        wanted: Vec<RequestedCall>,
    ) -> Result<Vec<CallObservation>, AgentError> {
        for call in &wanted {
            self.emitter.filter().note_model_text(&call.shown.to_string());
            if let Ok((_, arguments)) = &call.plan {
                arguments.values().for_each(|value| note_tool_input(self.emitter.filter(), value));
            }
            let (id, name) = (call.id.clone(), call.name.clone());
            let planned =
                call.plan.as_ref().ok().and_then(|(function, _)| self.setup.functions.get(*function));
            let searches_documents = planned.is_some_and(|offered| offered.searches_documents);
            let input = call.shown.clone();
            self.emitter.emit(RunEvent::ToolCall { id, name, input, searches_documents }).await;
        }
        let mut planned = Vec::new();
        let mut is_planned = Vec::with_capacity(wanted.len());
        for call in &wanted {
            let refused = match &call.plan {
                Err(problem) => Some(problem.clone()),
                Ok((function, arguments)) => {
                    let same = self.calls.entry((*function, json!(arguments).to_string())).or_default();
                    *same += 1;
                    (*same > SAME_CALL).then(|| {
                        "This call was made before with the same input; use what it answered, or try something else."
                            .to_owned()
                    })
                }
            };
            if refused.is_none()
                && let Ok((function, arguments)) = &call.plan
            {
                planned.push(PlannedCall { function: *function, arguments: arguments.clone() });
            }
            is_planned.push(refused);
        }
        let mut answers: VecDeque<CallOutcome> = VecDeque::new();
        if !planned.is_empty() {
            let left = self.setup.limits.without(&self.spent);
            let called = self.outside.call(planned, left).await?;
            self.entries.push(RecordEntry::Calls(called.clone()));
            answers.extend(called);
        }
        let mut observed = Vec::with_capacity(wanted.len());
        for (call, refused) in wanted.into_iter().zip(is_planned) {
            let called = match refused {
                Some(problem) => failed(problem),
                None => answers.pop_front().unwrap_or_default(),
            };
            observed.push(self.observe(call, called).await);
        }
        Ok(observed)
    }

    async fn observe(&mut self, call: RequestedCall, called: CallOutcome) -> CallObservation {
        let CallOutcome { mut text, failed, found, spent, span } = called;
        let offered = call.plan.as_ref().ok().and_then(|(function, _)| self.setup.functions.get(*function));
        self.spent.add(&spent);
        let mut documents = Vec::new();
        if offered.is_some_and(|offered| offered.searches_documents) && !failed {
            for source in &found {
                self.emitter.filter().allow_hosts_in(&source.text);
            }
            let numbers = self.sources.add(found);
            self.know(&numbers);
            documents = self.sources.describe(&numbers);
            text = match numbers.as_slice() {
                [] => "Nothing was found.".to_owned(),
                numbers => self.sources.as_text(numbers),
            };
        }
        if !failed && documents.is_empty() {
            self.emitter.filter().allow_tool_result(&text);
        }
        let for_model = shortened(&text);
        self.emitter
            .emit(RunEvent::ToolResult {
                id: call.id,
                name: call.name.clone(),
                observation: for_model.clone(),
                failed,
                documents: documents.clone(),
            })
            .await;
        let is_answer = offered.is_some_and(|offered| offered.return_direct) && !failed;
        self.steps.push(StepView {
            observation: json!(if is_answer { &text } else { &for_model }),
            error: failed.then(|| for_model.clone()),
            usage: (spent.steps > 0).then(|| UsageView::of(&spent)),
            documents,
            ..StepView::new(StepKind::Tool, &call.name, call.shown, span)
        });
        CallObservation { text: for_model, is_answer: is_answer.then_some(text) }
    }

    /// The function of this name, however it is spelt.
    pub(super) fn function(&self, name: &str) -> Result<usize, String> {
        let functions = &self.setup.functions;
        let fold = |name: &str| -> String {
            name.trim()
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
                .collect()
        };
        let exact = functions.iter().position(|function| function.name == name);
        let found =
            exact.or_else(|| functions.iter().position(|function| fold(&function.name) == fold(name)));
        found.ok_or_else(|| {
            if functions.is_empty() {
                "There are no tools. Answer without one.".to_owned()
            } else {
                let names = instructions::names(functions);
                format!("There is no tool of this name. The tools are: {names}.")
            }
        })
    }

    /// The model has ended without a word, and this is why the run did. Its step says so too.
    pub(super) fn empty(&mut self, reason: TerminationReason) -> AgentError {
        let Ok(provider) = self.setup.provider.parse::<ModelProvider>() else {
            return AgentError::internal();
        };
        let why = match reason {
            _ if self.is_withheld => EmptyAnswer::Withheld,
            TerminationReason::Length => EmptyAnswer::Length,
            _ => EmptyAnswer::Nothing,
        };
        let step = self.steps.iter_mut().rev().find(|step| step.kind == StepKind::Chat);
        let attempts = step.as_ref().map_or(1, |step| step.attempts);
        let error = ChatError { provider, attempts, kind: ChatErrorKind::Empty(why) };
        if self.outside.is_live() {
            tracing::warn!(%provider, class = error.kind.code(), attempts, %why, "a model ended without a word");
        }
        if let Some(step) = step {
            step.error = Some(error.to_string());
        }
        error.into()
    }
}
