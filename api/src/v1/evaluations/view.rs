//! What is shown of evaluations.

use lectern_agents::evaluation::{Comparison, RETRIEVAL_METRICS, answer_values, retrieval_values};
use lectern_shared::{
    clock::Timestamp,
    ids::{
        AgentId, ChunkId, CollectionId, DocumentId, EvaluationCaseId, EvaluationId, EvaluationRunId, TraceId,
        UserId, WorkspaceId,
    },
    model::{
        evaluation::{
            CaseAnswer, CaseRanking, Evaluation, EvaluationCase, EvaluationMetrics, EvaluationRun,
            EvaluationRunState, ExpectedOutcome, GoldState, StoredCaseResult,
        },
        search::SearchMode,
    },
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::services::evaluations::RunComparison;

/// A set of questions with what is to come of them.
#[derive(Serialize, ToSchema)]
#[schema(as = Evaluation)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvaluationView {
    /// Its id.
    #[schema(value_type = String)]
    id: EvaluationId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// What it is called.
    name: String,
    /// The agent that is asked; null for none.
    #[schema(value_type = Option<String>, required = true)]
    agent_id: Option<AgentId>,
    /// The collections that are searched. The agent's documents are when there are none, and everything without an agent.
    #[schema(value_type = Vec<String>)]
    collection_ids: Vec<CollectionId>,
    /// The agent that says whether answers are right; null for none.
    #[schema(value_type = Option<String>, required = true)]
    judge_agent_id: Option<AgentId>,
    /// How many cases it has.
    cases: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<Evaluation> for EvaluationView {
    fn from(evaluation: Evaluation) -> Self {
        Self {
            id: evaluation.id,
            workspace_id: evaluation.owner.workspace_id,
            name: evaluation.name,
            agent_id: evaluation.agent_id,
            collection_ids: evaluation.collection_ids.0,
            judge_agent_id: evaluation.judge_id,
            cases: evaluation.cases,
            created_at: evaluation.created_at,
            updated_at: evaluation.updated_at,
        }
    }
}

/// A question, and what is to come of it.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationCase)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseView {
    /// Its id.
    #[schema(value_type = String)]
    id: EvaluationCaseId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// The evaluation that it belongs to.
    #[schema(value_type = String)]
    evaluation_id: EvaluationId,
    /// The question.
    question: String,
    /// What is to come of it: a list of `{documentId, quote, grade}`, or `"decline"`.
    #[schema(value_type = Value)]
    expect: ExpectedOutcome,
    /// Anything that somebody wants to say of it.
    #[schema(required = true)]
    note: Option<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<EvaluationCase> for CaseView {
    fn from(case: EvaluationCase) -> Self {
        Self {
            id: case.id,
            workspace_id: case.workspace_id,
            evaluation_id: case.evaluation_id,
            question: case.question,
            expect: case.expect.0,
            note: case.note,
            created_at: case.created_at,
            updated_at: case.updated_at,
        }
    }
}

/// A run of an evaluation.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationRun)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunView {
    /// Its id.
    #[schema(value_type = String)]
    id: EvaluationRunId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// The evaluation.
    #[schema(value_type = String)]
    evaluation_id: EvaluationId,
    /// Where it stands: `queued`, `running`, `succeeded`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    state: EvaluationRunState,
    /// Who asked for it.
    #[schema(value_type = Option<String>, required = true)]
    requested_by: Option<UserId>,
    /// In which ways is searched.
    #[schema(value_type = Vec<String>)]
    modes: Vec<SearchMode>,
    /// Whether the agent is asked.
    answers: bool,
    /// The agent; null when it is not asked, and in runs of before this was noted. It may have been deleted since.
    #[schema(value_type = Option<String>, required = true)]
    agent_id: Option<AgentId>,
    /// Which version of the agent; null when it is not asked, and in runs of before this was noted.
    #[schema(required = true)]
    agent_version: Option<i64>,
    /// Whether what is found is put into a better order by the service's reranker.
    rerank: bool,
    /// How many cases there were when it was asked for.
    cases: i64,
    /// How many of them are done.
    done: i64,
    /// What came of it, with the number of cases in which something failed as `failed`; null as long as it goes on.
    #[schema(value_type = Option<Object>, required = true)]
    metrics: Option<EvaluationMetrics>,
    /// Why it failed; null when it did not.
    #[schema(required = true)]
    error: Option<String>,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was asked for, taken up or ended, whichever was last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// When it was taken up.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished_at: Option<Timestamp>,
}

impl From<EvaluationRun> for RunView {
    fn from(run: EvaluationRun) -> Self {
        let updated_at = run.updated_at();
        let config = run.config.0;
        Self {
            id: run.id,
            workspace_id: run.workspace_id,
            evaluation_id: run.evaluation_id,
            state: run.state,
            requested_by: run.requested_by,
            modes: config.modes,
            answers: config.answers,
            agent_id: config.agent_id,
            agent_version: config.agent_version,
            rerank: config.rerank,
            cases: run.cases,
            done: run.done,
            metrics: run.metrics.map(|metrics| metrics.0),
            error: run.error,
            created_at: run.created_at,
            updated_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }
}

/// A run, and what came of its newest cases.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationRunWithResults)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunWithResultsView {
    #[serde(flatten)]
    pub(super) run: RunView,
    /// What came of each case, the newest case first; at most 200, and all of them in `…/results`.
    pub(super) results: Vec<ResultView>,
    /// What `cursor` of `…/results` takes for the cases after these. Absent when there are no more.
    #[schema(value_type = String, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<EvaluationCaseId>,
}

/// What came of a case in a run.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationResult)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultView {
    /// The case. It may have been deleted since.
    #[schema(value_type = String)]
    case_id: EvaluationCaseId,
    /// The question as it was.
    question: String,
    /// What was to come of it.
    #[schema(value_type = Value)]
    expect: ExpectedOutcome,
    /// Whether each thing that answers is in the documents, in the order of `expect`: `found`, `similar` (but for case and
    /// punctuation, or over several passages), or `lost`.
    gold: Vec<GoldView>,
    /// What was found, by the way of searching.
    #[schema(value_type = Object)]
    retrieval: Map<String, Value>,
    /// What the agent answered; null when it was not asked.
    #[schema(required = true)]
    answer: Option<AnswerView>,
}

/// Whether something that answers is there.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationGold)]
struct GoldView {
    /// `found`, `similar` or `lost`.
    state: &'static str,
    /// Why it is lost; null when it is not.
    #[schema(required = true)]
    reason: Option<String>,
}

impl From<GoldState> for GoldView {
    fn from(state: GoldState) -> Self {
        match state {
            GoldState::Found => Self { state: "found", reason: None },
            GoldState::Similar => Self { state: "similar", reason: None },
            GoldState::Lost(reason) => Self { state: "lost", reason: Some(reason) },
        }
    }
}

/// What was found in one way of searching, and what that is worth.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RankingView {
    /// The rank, from 1, of each thing that answers; null for what was not found among the first 50.
    ranks: Vec<Option<u32>>,
    metrics: Map<String, Value>,
    retrieved: Vec<RetrievedView>,
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetrievedView {
    document_id: DocumentId,
    chunk_id: ChunkId,
    /// Which of the things that answer it holds, from 0.
    gold: Option<usize>,
}

/// What an agent answered to a case.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationAnswer)]
#[serde(rename_all = "camelCase")]
struct AnswerView {
    /// The record of it, see `GET /traces/{id}`; null when there is none.
    #[schema(value_type = Option<String>, required = true)]
    trace_id: Option<TraceId>,
    /// The beginning of the answer.
    text: String,
    /// Why the answer ended; null when there is none.
    #[schema(required = true)]
    finish_reason: Option<&'static str>,
    /// Whether it says that nothing in the documents answers: it cites nothing of them.
    declined: bool,
    /// How many sources it cites.
    citations: usize,
    /// Of how many of them the quoted words were found in the source.
    verified: usize,
    /// Whether it cites a document that answers; null when none does.
    #[schema(required = true)]
    cites_gold: Option<bool>,
    /// Whether the judge says that it is right, which no answer is that failed; null without a judge.
    #[schema(required = true)]
    is_right: Option<bool>,
    /// What it is worth, by the name of the metric.
    #[schema(value_type = Object)]
    metrics: Map<String, Value>,
    /// Milliseconds that it took.
    duration_ms: u64,
    /// Tokens that the model read.
    input_tokens: u64,
    /// Tokens that the model wrote.
    output_tokens: u64,
    /// What it cost; null when no price is known.
    #[schema(required = true)]
    cost: Option<f64>,
    /// Why there is no answer; null when there is one.
    #[schema(required = true)]
    error: Option<String>,
}

fn ranking(expect: &ExpectedOutcome, ranking: CaseRanking) -> RankingView {
    let values = RETRIEVAL_METRICS.into_iter().zip(retrieval_values(expect.gold(), &ranking.ranks));
    let has_values = !expect.gold().is_empty();
    let metrics =
        values.filter(|_| has_values).map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let retrieved = ranking.retrieved.into_iter().map(|passage| RetrievedView {
        document_id: passage.document_id,
        chunk_id: passage.chunk_id,
        gold: passage.gold,
    });
    RankingView { ranks: ranking.ranks, metrics, retrieved: retrieved.collect(), error: ranking.error }
}

fn answer(expect: &ExpectedOutcome, answer: CaseAnswer) -> AnswerView {
    let values = lectern_agents::evaluation::ANSWER_METRICS.into_iter().zip(answer_values(expect, &answer));
    let metrics = values.filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect();
    AnswerView {
        trace_id: answer.trace_id,
        text: answer.text,
        finish_reason: answer.finish_reason.map(lectern_shared::model::run::TerminationReason::as_str),
        declined: answer.declined,
        citations: answer.citations,
        verified: answer.verified,
        cites_gold: answer.cites_gold,
        is_right: answer.is_right,
        metrics,
        duration_ms: answer.duration_ms,
        input_tokens: answer.input_tokens,
        output_tokens: answer.output_tokens,
        cost: answer.cost,
        error: answer.error,
    }
}

impl From<StoredCaseResult> for ResultView {
    fn from(stored: StoredCaseResult) -> Self {
        let result = stored.result.0;
        let expect = result.expect;
        let retrieval = result.retrieval.into_iter();
        Self {
            case_id: stored.case_id,
            question: stored.question,
            gold: result.gold.into_iter().map(GoldView::from).collect(),
            retrieval: retrieval.map(|(mode, found)| (mode, json!(ranking(&expect, found)))).collect(),
            answer: result.answer.map(|said| answer(&expect, said)),
            expect,
        }
    }
}

/// Two runs side by side.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationComparison)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparisonView {
    /// This run.
    run: RunView,
    /// The one that it is compared with.
    other: RunView,
    /// Each metric over the cases that both have.
    metrics: Vec<Comparison>,
    /// How many cases differ.
    differing: usize,
    /// Those cases, with what came of them in both; at most 200.
    cases: Vec<CaseComparisonView>,
}

/// A case in which two runs differ.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationCaseComparison)]
#[serde(rename_all = "camelCase")]
struct CaseComparisonView {
    /// In what they differ.
    differences: Vec<DifferenceView>,
    /// What came of it in this run.
    this: ResultView,
    /// What came of it in the other one.
    other: ResultView,
}

/// A metric in which a case differs between two runs.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationDifference)]
#[serde(rename_all = "camelCase")]
struct DifferenceView {
    /// The metric.
    metric: &'static str,
    /// The way of searching; null for what is measured of answers.
    #[schema(required = true)]
    mode: Option<String>,
    /// What it is in this run.
    value: f64,
    /// What it is in the other one.
    other: f64,
}

impl From<RunComparison> for ComparisonView {
    fn from(comparison: RunComparison) -> Self {
        let RunComparison { run, other, metrics, cases, differing } = comparison;
        let cases = cases.into_iter().map(|(difference, this, other)| {
            let differences = difference.values.into_iter();
            CaseComparisonView {
                differences: differences
                    .map(|(metric, mode, value, other)| DifferenceView { metric, mode, value, other })
                    .collect(),
                this: this.into(),
                other: other.into(),
            }
        });
        Self { run: run.into(), other: other.into(), metrics, differing, cases: cases.collect() }
    }
}
