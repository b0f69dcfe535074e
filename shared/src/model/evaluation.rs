//! Evaluations: sets of questions with what is to come of them, and what came of them in a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{
        AgentId, ChunkId, ClaimId, CollectionId, DocumentId, EvaluationCaseId, EvaluationId, EvaluationRunId,
        TraceId, UserId, WorkspaceId,
    },
    model::{Json, run::TerminationReason, search::SearchMode, text_enum, workspace::RowOwner},
};

text_enum! {
    /// Where a run of an evaluation stands.
    EvaluationRunState {
        /// It waits for a process to take it up.
        Queued => "queued",
        /// A process is at it.
        Running => "running",
        /// It came to its end.
        Succeeded => "succeeded",
        /// It could not be done.
        Failed => "failed",
        /// Somebody stopped it.
        Cancelled => "cancelled",
    }
}

/// A set of cases, and what they are asked of.
#[derive(Clone, Debug, FromRow)]
pub struct Evaluation {
    /// Its id.
    pub id: EvaluationId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// What it is called.
    pub name: String,
    /// The agent that is asked, in whose documents is searched.
    pub agent_id: Option<AgentId>,
    /// The collections in which is searched; in everything when there are none and no agent.
    pub collection_ids: Json<Vec<CollectionId>>,
    /// The agent that says whether answers are right.
    pub judge_id: Option<AgentId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How many cases it has.
    #[sqlx(default)]
    pub cases: i64,
}

/// A place that answers a question: words of a document, or all of it. Words are found again however the document is cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoldQuote {
    /// The document.
    pub document_id: DocumentId,
    /// The words; any passage of the document will do without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// How well it answers; 1 for what simply answers.
    #[serde(default = "simply", skip_serializing_if = "is_simple")]
    pub grade: u32,
}

/// The grade of what simply answers.
pub const fn simply() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_simple(grade: &u32) -> bool {
    *grade == 1
}

/// The one word for a question that is to be declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeclineWord {
    /// `decline`
    Decline,
}

/// What is to come of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExpectedOutcome {
    /// Nothing in the documents answers it, and that is to be said.
    Decline(DeclineWord),
    /// Any of these answers it.
    Gold(Vec<GoldQuote>),
}

impl ExpectedOutcome {
    /// What answers it; nothing when it is to be declined.
    pub fn gold(&self) -> &[GoldQuote] {
        match self {
            Self::Decline(_) => &[],
            Self::Gold(gold) => gold,
        }
    }

    /// Leaves out the words: what is measured needs the grades.
    pub fn forget_words(&mut self) {
        if let Self::Gold(gold) = self {
            for gold in gold {
                gold.quote = None;
            }
        }
    }
}

/// A question, and what is to come of it.
#[derive(Clone, Debug, FromRow)]
pub struct EvaluationCase {
    /// Its id.
    pub id: EvaluationCaseId,
    /// The workspace that it is of.
    pub workspace_id: WorkspaceId,
    /// The set that it is of.
    pub evaluation_id: EvaluationId,
    /// The question.
    pub question: String,
    /// What is to come of it.
    pub expect: Json<ExpectedOutcome>,
    /// Anything that somebody wants to say of it.
    pub note: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// How a run asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationConfig {
    /// In which ways is searched, the one first that the numbers stand for when no way is named.
    pub modes: Vec<SearchMode>,
    /// Whether the agent is asked.
    pub answers: bool,
    /// The agent whose version is asked for, whatever the set's agent is by then. Runs of before this was noted do not say it, and ask the
    /// set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// What that was called, for when it is not there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Which version of it. Runs of before this was noted do not say it, and ask the present one.
    pub agent_version: Option<i64>,
    /// Whether what is found is put into a better order. Runs of before there was a reranker do not say it.
    #[serde(default)]
    pub rerank: bool,
}

/// A run of an evaluation.
#[derive(Clone, Debug, FromRow)]
pub struct EvaluationRun {
    /// Its id.
    pub id: EvaluationRunId,
    /// The workspace that it is of.
    pub workspace_id: WorkspaceId,
    /// The set.
    pub evaluation_id: EvaluationId,
    /// Who asked for it.
    pub requested_by: Option<UserId>,
    /// Where it stands.
    pub state: EvaluationRunState,
    /// How it asks.
    pub config: Json<EvaluationConfig>,
    /// The claim of the process that is at it.
    pub claim_id: Option<ClaimId>,
    /// How often a process has taken it up.
    pub attempts: i64,
    /// How many cases there were when it was asked for.
    pub cases: i64,
    /// How many of them are done.
    pub done: i64,
    /// What came of it, when it has ended well.
    pub metrics: Option<Json<EvaluationMetrics>>,
    /// Why it failed.
    pub error: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When a process took it up.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl EvaluationRun {
    /// When it last came further: was asked for, taken up, or ended.
    pub fn updated_at(&self) -> Timestamp {
        self.finished_at.or(self.started_at).unwrap_or(self.created_at)
    }
}

/// A mean over the cases of a run, and between what it lies with a probability of 95 %, by bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanEstimate {
    /// The mean.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Of how many cases.
    pub cases: usize,
}

/// What came of a run, over all its cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationMetrics {
    /// How well is found what answers, by the way of searching and the name of the metric.
    pub retrieval: BTreeMap<String, BTreeMap<String, MeanEstimate>>,
    /// How well is answered, by the name of the metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, MeanEstimate>,
    /// What the answers took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<AnswerEffort>,
    /// Cases of which something that answers is not in the documents.
    pub lost: usize,
    /// Cases of which something failed.
    pub failed: usize,
}

impl EvaluationMetrics {
    /// The means alone, by the names of the metrics: those of the first way of searching, and those of answers.
    pub fn headline(&self, config: &EvaluationConfig) -> BTreeMap<&str, f64> {
        let first = config.modes.first().and_then(|mode| self.retrieval.get(mode.as_str()));
        let estimates = first.into_iter().flatten().chain(&self.answers);
        estimates.map(|(name, estimate)| (name.as_str(), estimate.value)).collect()
    }
}

/// What the answers of a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerEffort {
    /// Milliseconds within which half of them came.
    pub p50_ms: u64,
    /// Milliseconds within which 95 % of them came.
    pub p95_ms: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// What they cost; none when no price is known.
    pub cost: Option<f64>,
}

/// Whether something that answers was found again in the documents as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state", content = "reason")]
pub enum GoldState {
    /// As it stands.
    Found,
    /// But for case, punctuation and the like.
    Similar,
    /// Neither; why.
    Lost(String),
}

/// What came of a case in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    /// What was to come of it.
    pub expect: ExpectedOutcome,
    /// Whether each thing that answers is still there, in the order of `expect`.
    pub gold: Vec<GoldState>,
    /// What was found, by the way of searching.
    pub retrieval: BTreeMap<String, CaseRanking>,
    /// What was answered, if the agent was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<CaseAnswer>,
}

/// What was found for a case in one way of searching.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseRanking {
    /// The rank, from 1, of each thing that answers; none for what was not found.
    pub ranks: Vec<Option<u32>>,
    /// What was found, best first; the first ones.
    pub retrieved: Vec<RankedPassage>,
    /// Why it could not be searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why passages were not put into a better order, where they should have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank_problem: Option<String>,
}

/// A passage in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RankedPassage {
    /// Its document.
    pub document_id: DocumentId,
    /// The passage.
    pub chunk_id: ChunkId,
    /// Which of the things that answer it holds, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gold: Option<usize>,
}

/// What an agent answered to a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseAnswer {
    /// The record of the run that answered; none when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// The first of what was answered.
    pub text: String,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<TerminationReason>,
    /// Whether it says that nothing in the documents answers: it cites nothing of them.
    #[serde(default)]
    pub declined: bool,
    /// How many sources it cites.
    pub citations: usize,
    /// Of how many of them the words are quoted that were found in them.
    pub verified: usize,
    /// Whether it cites something that answers; none when nothing is to be cited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cites_gold: Option<bool>,
    /// Whether the judge says that it is right, which no answer is that failed; none when there is no judge, or no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_right: Option<bool>,
    /// Milliseconds that it took.
    pub duration_ms: u64,
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// What it cost; none when no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What came of a case, as it is stored.
#[derive(Clone, Debug, FromRow)]
pub struct StoredCaseResult {
    /// The case, which may have been deleted since.
    pub case_id: EvaluationCaseId,
    /// The question as it was.
    pub question: String,
    /// What came of it.
    pub result: Json<CaseResult>,
}
