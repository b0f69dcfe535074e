//! What happens in a run, as it happens. A run emits events into one channel; the JSON answer and both formats of streams
//! are readers of that channel, so that they cannot differ.

use std::time::Duration;

use async_trait::async_trait;
use lectern_shared::{
    ids::{AgentId, TraceId},
    model::run::TerminationReason,
};
use serde_json::Value;
use tokio::{sync::mpsc, time::timeout};

use super::trace::CitationView;
use crate::{AgentError, answer::filter::AnswerFilter, models::DeltaSink};

/// Events that wait for their reader. A reader that is slower than the model makes the run wait.
pub(super) const WAITING: usize = 32;

/// How long a reader may take for one event.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something that happened.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// The run has begun.
    Start {
        /// Its trace.
        trace: TraceId,
        /// Its agent.
        agent: AgentId,
        /// The session, when one was named.
        session: Option<String>,
    },
    /// Documents were searched before the model was asked.
    Retrieval {
        /// What was looked for.
        query: String,
        /// The passages that were found.
        documents: Vec<Value>,
    },
    /// A piece of the answer.
    Token {
        /// The text.
        delta: String,
    },
    /// The model calls a tool.
    ToolCall {
        /// Ties the result to it.
        id: String,
        /// The tool's name, as the model wrote it.
        name: String,
        /// What it gave the tool.
        input: Value,
        /// Whether it is the search of the documents, however the model spells it.
        searches_documents: bool,
    },
    /// What came of a call.
    ToolResult {
        /// [`RunEvent::ToolCall`]'s.
        id: String,
        /// The tool's name.
        name: String,
        /// What the model is told.
        observation: String,
        /// Whether the call failed.
        failed: bool,
        /// The passages that it found, when it was a search of the documents.
        documents: Vec<Value>,
    },
    /// A source of the answer.
    Citation(Box<CitationView>),
    /// The run has failed. Nothing follows.
    Failed(AgentError),
    /// The run has ended. Nothing follows.
    End {
        /// The whole answer: all tokens.
        answer: String,
        /// What it took, and why it ended.
        outcome: RunOutcome,
        /// How it came about.
        trace: Value,
    },
}

/// How a run ended that has answered.
#[derive(Clone, Copy, Debug)]
pub struct RunOutcome {
    /// The run's trace.
    pub trace: TraceId,
    /// Why the answer ended.
    pub finish_reason: TerminationReason,
    /// The provider withheld the rest of it.
    pub is_withheld: bool,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
}

impl RunEvent {
    /// Whether nothing follows.
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::End { .. })
    }
}

/// Where a run's events go, and its answer with them: what passes here is the answer.
pub(super) struct EventEmitter {
    /// None where nobody listens, as in a run within a run.
    events: Option<mpsc::Sender<RunEvent>>,
    filter: AnswerFilter,
    answer: String,
    /// The next text begins a paragraph.
    new_turn: bool,
    /// Something was said, whether it has passed yet or not.
    has_text: bool,
    /// Where a text begins whose brackets are no markers.
    verbatim_from: Option<usize>,
    /// The reader took no event for too long.
    is_unread: bool,
}

/// Between the texts of two turns.
const BETWEEN_TURNS: &str = "\n\n";

impl EventEmitter {
    pub(super) fn new(events: Option<mpsc::Sender<RunEvent>>) -> Self {
        Self {
            events,
            filter: AnswerFilter::new(),
            answer: String::new(),
            new_turn: false,
            has_text: false,
            verbatim_from: None,
            is_unread: false,
        }
    }

    /// Passes an event on. A reader that takes none for too long has none from then on: a run does not outlive its limits because
    /// of it.
    pub(super) async fn emit(&mut self, event: RunEvent) {
        if let Some(events) = &self.events
            && timeout(PATIENCE, events.send(event)).await.is_err()
        {
            tracing::warn!("the events of a run are not read; going on without a reader");
            self.events = None;
            self.is_unread = true;
        }
    }

    /// Whether events were lost because their reader took none for too long.
    pub(super) const fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// What the answer may cite and link to from now on.
    pub(super) fn filter(&mut self) -> &mut AnswerFilter {
        &mut self.filter
    }

    /// What follows is said in another turn of the model.
    pub(super) fn begin_turn(&mut self) {
        self.new_turn = true;
    }

    /// Adds to the answer.
    pub(super) async fn text(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.separate().await;
        self.has_text = true;
        let passed = self.filter.push(delta);
        self.pass(passed).await;
    }

    /// Adds a text to the answer whose brackets are no markers.
    pub(super) async fn verbatim(&mut self, text: &str) {
        self.separate().await;
        self.has_text = true;
        self.verbatim_from.get_or_insert(self.answer.len());
        let passed = self.filter.push_verbatim(text);
        self.pass(passed).await;
    }

    async fn separate(&mut self) {
        if std::mem::take(&mut self.new_turn) && self.has_text {
            let between = self.filter.push(BETWEEN_TURNS);
            self.pass(between).await;
        }
    }

    /// The answer is complete.
    pub(super) async fn end_text(&mut self) {
        let rest = self.filter.finish();
        self.pass(rest).await;
    }

    async fn pass(&mut self, delta: String) {
        if !delta.is_empty() {
            self.answer.push_str(&delta);
            self.emit(RunEvent::Token { delta }).await;
        }
    }

    /// The answer so far.
    pub(super) fn answer(&self) -> &str {
        &self.answer
    }

    /// The part of it in which numbers in brackets are markers.
    pub(super) fn citing(&self) -> &str {
        self.verbatim_from.and_then(|end| self.answer.get(..end)).unwrap_or(&self.answer)
    }
}

#[async_trait]
impl DeltaSink for EventEmitter {
    async fn take(&mut self, delta: &str) {
        self.text(delta).await;
    }
}

/// Where text goes that is not part of the answer yet.
pub(super) struct NullDeltaSink;

#[async_trait]
impl DeltaSink for NullDeltaSink {
    async fn take(&mut self, _: &str) {}
}
