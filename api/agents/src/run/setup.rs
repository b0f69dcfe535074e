//! What a run is made of, before anything outside is asked, and what the outside answered. Together they are the record of a
//! run: it can be repeated from them.

use lectern_shared::{
    config::TokenPrice,
    ids::{AgentId, TraceId},
    model::run::TerminationReason,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::sources::RetrievedExcerpt;
use crate::models::{ChatError, ChatOutcome};

/// How an agent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AnswerStyle {
    /// Without a model, by quoting.
    Extractive,
    /// By function calling.
    ChatVendor,
    /// In text.
    React,
}

/// What a run is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunSetup {
    /// The id of its trace.
    pub(super) trace: TraceId,
    /// The agent.
    pub(super) agent: AgentId,
    /// The number of the version that the agent was asked as. Records of before do not have it.
    #[serde(default)]
    pub(super) agent_version: Option<i64>,
    /// The session, when one was named.
    pub(super) session: Option<String>,
    /// How it answers.
    pub(super) style: AnswerStyle,
    /// The label of the model's provider.
    pub(super) provider: String,
    /// The model's name.
    pub(super) model: String,
    /// What was asked.
    pub(super) question: String,
    /// The values that went with it for the agent's prompt, each by its name. Records of before have none.
    #[serde(default)]
    pub(super) values: Map<String, Value>,
    /// Another agent asks, and not a user.
    pub(super) is_nested: bool,
    /// The agent's own prompt, filled in.
    pub(super) prompt: Option<RenderedPrompt>,
    /// Turns that are remembered, oldest first.
    pub(super) history: Vec<(String, String)>,
    /// When the session was erased last, if the turn is to be remembered in it. A repetition remembers nothing.
    #[serde(skip)]
    pub(super) last_erasure: Option<Uuid>,
    /// What the caller's program says of how to answer. Records of before have none.
    #[serde(default)]
    pub(super) instructions: Option<String>,
    /// What the model may call.
    pub(super) functions: Vec<OfferedFunction>,
    /// Whether there are documents to search.
    pub(super) has_documents: bool,
    /// Tokens of the passages that are looked up before the model is asked.
    pub(super) passages: i64,
    /// The sampling temperature.
    pub(super) temperature: Option<f64>,
    /// The most tokens that the model may write in one step.
    pub(super) max_tokens: Option<u32>,
    /// What the run may take.
    pub(super) limits: RunLimits,
    /// What the model's tokens cost.
    pub(super) price: Option<TokenPrice>,
    /// Hosts whose images the operator lets answers show. Records of 0.1 have none.
    #[serde(default)]
    pub(super) image_hosts: Vec<String>,
    /// Stands around what is not the user's own, so that nothing in it can end it.
    pub(super) boundary: String,
}

/// An agent's own prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RenderedPrompt {
    /// Its text, filled in.
    pub(super) text: String,
    /// The same without what a model or a tool's description put into it. Records of 0.1 have none.
    #[serde(default)]
    pub(super) own: String,
    /// It tells the format of thoughts and actions itself.
    pub(super) tells_format: bool,
    /// It holds the remembered turns.
    pub(super) holds_history: bool,
}

/// A function that the model may call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OfferedFunction {
    /// Its name; unique in a run.
    pub(super) name: String,
    /// When and how to use it, for the model.
    pub(super) description: String,
    /// JSON Schema of the arguments object.
    pub(super) parameters: Value,
    /// The argument that plain text stands for.
    pub(super) plain: Option<String>,
    /// What it answers is the answer.
    pub(super) return_direct: bool,
    /// It searches the linked documents.
    pub(super) searches_documents: bool,
}

/// The name of the function that searches the linked documents.
pub(super) const SEARCH: &str = "search_documents";

/// What a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunLimits {
    /// Requests to the model.
    pub(super) steps: u32,
    /// Tokens, read and written.
    pub(super) tokens: Option<u64>,
    /// What the tokens may cost.
    pub(super) cost: Option<f64>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunUsage {
    /// Requests to models.
    pub(super) steps: u32,
    /// Tokens read.
    pub(super) input_tokens: u64,
    /// Tokens written.
    pub(super) output_tokens: u64,
    /// Some of the tokens were counted by us.
    pub(super) estimated: bool,
    /// What they cost; none when a part of them has no price.
    pub(super) cost: Option<f64>,
    /// A part of the tokens has no price.
    pub(super) unpriced: bool,
}

impl RunUsage {
    /// Adds what was spent elsewhere.
    pub(super) fn add(&mut self, more: &Self) {
        // A provider may report any number.
        self.steps = self.steps.saturating_add(more.steps);
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.estimated |= more.estimated;
        self.unpriced |= more.unpriced;
        if let Some(cost) = more.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }

    /// Tokens, read and written.
    pub(super) fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// What all of it cost, if that is known.
    pub(super) fn known_cost(&self) -> Option<f64> {
        self.cost.filter(|_| !self.unpriced)
    }
}

impl RunLimits {
    /// What is left of them.
    pub(super) fn without(self, spent: &RunUsage) -> Self {
        let tokens = spent.tokens();
        Self {
            steps: self.steps.saturating_sub(spent.steps),
            tokens: self.tokens.map(|most| most.saturating_sub(tokens)),
            cost: self.cost.map(|most| (most - spent.cost.unwrap_or(0.0)).max(0.0)),
        }
    }

    /// Why nothing more may be asked; none while it may.
    pub(super) fn reached(self, spent: &RunUsage, has_price: bool) -> Option<TerminationReason> {
        let left = self.without(spent);
        if left.steps == 0 {
            Some(TerminationReason::MaxIterations)
        } else if left.tokens == Some(0) {
            Some(TerminationReason::MaxTokens)
        } else if has_price && left.cost.is_some_and(|cost| cost <= 0.0) {
            Some(TerminationReason::MaxCost)
        } else {
            None
        }
    }
}

/// When something was done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct StepTiming {
    /// Milliseconds from the beginning of the run.
    pub(super) started_ms: u64,
    /// How long it took, in milliseconds.
    pub(super) duration_ms: u64,
}

/// What the outside answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum RecordEntry {
    /// The search before the model is asked.
    Search {
        /// What was found, best first.
        found: Vec<RetrievedExcerpt>,
        /// When.
        span: StepTiming,
    },
    /// A step of the model.
    Chat {
        /// What it said.
        said: ModelReply,
        /// The lengths of the pieces in which its text came, in bytes.
        pieces: Vec<u32>,
        /// When.
        span: StepTiming,
    },
    /// The calls of one step.
    Calls(Vec<CallOutcome>),
}

/// What became of a question to the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ModelReply {
    /// Its answer.
    Whole(ChatOutcome),
    /// The time was up.
    TimeUp {
        /// What it had said.
        text: String,
        /// It was asked at all.
        was_asked: bool,
    },
    /// Why there is none, and what it had said before.
    Failed(ChatError, String),
}

impl ModelReply {
    /// The text that came.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Whole(outcome) => &outcome.text,
            Self::TimeUp { text, .. } | Self::Failed(_, text) => text,
        }
    }
}

/// What became of a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallOutcome {
    /// What the tool said, or why it did not.
    pub(super) text: String,
    /// It failed.
    pub(super) failed: bool,
    /// What a search of the documents found.
    pub(super) found: Vec<RetrievedExcerpt>,
    /// What an agent that was asked spent.
    pub(super) spent: RunUsage,
    /// When.
    pub(super) span: StepTiming,
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunRecord {
    /// The form of this record.
    pub(super) version: u32,
    /// What the run was made of.
    pub(super) setup: RunSetup,
    /// What the outside answered, in order.
    pub(super) entries: Vec<RecordEntry>,
    /// How long the run took, in milliseconds.
    pub(super) duration_ms: u64,
}

/// The form in which records are written.
pub(super) const RECORD_VERSION: u32 = 1;
