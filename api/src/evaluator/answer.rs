//! Asking an agent the questions of an evaluation, and a judge whether it is right.

use lectern_agents::{
    AgentError,
    evaluation::cites_gold,
    run::{self, AgentQuestion, AgentToAsk},
};
use lectern_db as db;
use lectern_shared::{
    ids::{AgentId, DocumentId},
    model::{
        evaluation::{CaseAnswer, Evaluation, EvaluationCase, EvaluationRun, ExpectedOutcome},
        run::TerminationReason,
        workspace::{Role, RunOwner, WorkspaceQuotas},
    },
};
use serde::Deserialize;
use serde_json::Value;

use super::{EvaluationRuns, failure::RunFailure};
use crate::services::workspaces::UsageService;

/// Characters of an answer that are kept with its case; all of it is in its trace.
const TOLD: usize = 500;
/// Characters of an answer that a judge is shown.
const JUDGED: usize = 20_000;

/// Asks an agent.
pub(super) struct CaseAsker<'a> {
    runs: &'a EvaluationRuns,
    usage: UsageService,
    quotas: WorkspaceQuotas,
    owner: RunOwner,
    agent: AgentToAsk,
    judge: Option<AgentToAsk>,
    has_documents: bool,
}

/// The agent that a run asks, whatever the set's agent is by now; one from before that was noted asks the set's.
pub(super) fn asked_agent(run: &EvaluationRun, evaluation: &Evaluation) -> Option<AgentId> {
    run.config.0.agent_id.or(evaluation.agent_id)
}

fn agent_is_gone() -> RunFailure {
    RunFailure::Stopped(
        "The agent of the evaluation is not there any more. Change the evaluation.".to_owned(),
    )
}

/// What is read of a trace.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerTrace {
    id: lectern_shared::ids::TraceId,
    finish_reason: TerminationReason,
    duration_ms: u64,
    usage: TraceUsage,
    citations: Vec<TraceCitation>,
}

/// What an answer took.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TraceUsage {
    input_tokens: u64,
    output_tokens: u64,
    cost: Option<f64>,
}

/// What an answer cites.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TraceCitation {
    document_id: DocumentId,
    verified: bool,
}

impl<'a> CaseAsker<'a> {
    /// Asks the agent of a set, in the name of whoever asked for the run; none when no answers are wanted.
    pub(super) async fn new(
        runs: &'a EvaluationRuns,
        run: &EvaluationRun,
        evaluation: &Evaluation,
        quotas: WorkspaceQuotas,
    ) -> Result<Option<Self>, RunFailure> {
        if !run.config.0.answers {
            return Ok(None);
        }
        let stopped = |why: &str| RunFailure::Stopped(why.to_owned());
        let (db, workspace) = (&runs.runtime.db, run.workspace_id);
        let user =
            run.requested_by.ok_or_else(|| stopped("Whoever asked for the run is not there any more."))?;
        let agent = asked_agent(run, evaluation).ok_or_else(agent_is_gone)?;
        let find = async |id: AgentId| db::agents::find(db, workspace, id).await;
        let agent = find(agent).await?.ok_or_else(agent_is_gone)?;
        let has_documents = !db::agents::links(db, workspace, agent.id).await?.documents.is_empty();
        let agent = match run.config.0.agent_version {
            None => agent.into(),
            Some(number) => runs.history.to_ask(agent.into(), number).await?,
        };
        let judge = match evaluation.judge_id {
            Some(id) => find(id).await?.map(AgentToAsk::from),
            None => None,
        };
        let usage = UsageService::new(db.clone(), runs.runtime.clock.clone(), runs.agents.recorder.clone());
        let owner = RunOwner { workspace_id: workspace, user, token: None };
        Ok(Some(Self { runs, usage, quotas, owner, agent, judge, has_documents }))
    }

    /// What the agent says to a case.
    pub(super) async fn ask(&self, case: &EvaluationCase) -> Result<CaseAnswer, RunFailure> {
        // What is used up stops the run, rather than that everything after it counts as wrong.
        self.usage.admit_workspace(self.owner.workspace_id, self.quotas).await?;
        let (db, workspace) = (&self.runs.runtime.db, self.owner.workspace_id);
        // A run may last for days, and agents act in the name of whoever asks.
        let joined = db::workspaces::find_joined(db, self.owner.user, workspace).await?;
        let may = joined.is_some_and(|joined| joined.role.includes(Role::Builder));
        if !may {
            let why = "Whoever asked for the run may not do so any more.";
            return Err(RunFailure::Stopped(why.to_owned()));
        }
        if db::agents::find(db, workspace, self.agent.agent.id).await?.is_none() {
            return Err(agent_is_gone());
        }
        let (text, trace) = match self.answer(&self.agent, case.question.clone()).await {
            Ok(answered) => answered,
            Err(error) => return Ok(self.failed(error.to_string())),
        };
        let Ok(trace) = serde_json::from_value::<AnswerTrace>(trace) else {
            return Ok(self.failed("The trace cannot be read.".to_owned()));
        };
        let gold = case.expect.0.gold();
        let cited = trace.citations.iter().map(|citation| citation.document_id);
        Ok(CaseAnswer {
            trace_id: Some(trace.id),
            finish_reason: Some(trace.finish_reason),
            // A model says in its own words that nothing answers; what it says then, it says of no source.
            declined: self.has_documents && trace.citations.is_empty(),
            citations: trace.citations.len(),
            verified: trace.citations.iter().filter(|citation| citation.verified).count(),
            cites_gold: (!gold.is_empty()).then(|| cites_gold(gold, cited)),
            is_right: self.judge(case, &text).await,
            text: beginning(&text, TOLD),
            duration_ms: trace.duration_ms,
            input_tokens: trace.usage.input_tokens,
            output_tokens: trace.usage.output_tokens,
            cost: trace.usage.cost,
            error: None,
        })
    }

    /// That there is no answer, and why. A judge need not be asked whether it is right.
    fn failed(&self, error: String) -> CaseAnswer {
        CaseAnswer {
            is_right: self.judge.is_some().then_some(false),
            error: Some(error),
            ..CaseAnswer::default()
        }
    }

    async fn answer(&self, agent: &AgentToAsk, question: String) -> Result<(String, Value), AgentError> {
        let EvaluationRuns { agents, toolbox, .. } = self.runs;
        let question = AgentQuestion { text: question, ..AgentQuestion::default() };
        run::start(agents, toolbox, agent.clone(), self.owner, question).await?.finish().await
    }

    /// Whether the judge says that an answer is right; none without a judge, or when it says neither yes nor no.
    async fn judge(&self, case: &EvaluationCase, answer: &str) -> Option<bool> {
        let question = judgement(case, answer);
        let verdict = self.answer(self.judge.as_ref()?, question).await;
        let (verdict, _) =
            verdict.inspect_err(|error| tracing::info!(%error, "a judge did not answer")).ok()?;
        let first = verdict.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty())?;
        match first.to_lowercase().as_str() {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }
}

/// What a judge is asked.
fn judgement(case: &EvaluationCase, answer: &str) -> String {
    let expected = match &case.expect.0 {
        ExpectedOutcome::Decline(_) => {
            "The documents do not answer the question, and the answer has to say so.".to_owned()
        }
        ExpectedOutcome::Gold(gold) => {
            let quotes: Vec<String> = gold
                .iter()
                .filter_map(|gold| gold.quote.as_ref())
                .map(|quote| format!("- {quote}"))
                .collect();
            if quotes.is_empty() {
                String::new()
            } else {
                format!("The documents say:\n{}", quotes.join("\n"))
            }
        }
    };
    let note =
        case.note.as_deref().map(|note| format!("A note on the question: {note}\n\n")).unwrap_or_default();
    let answer = beginning(answer, JUDGED);
    format!(
        "Is the answer to the question right? Begin with yes or no.\n\nQuestion: {}\n\n{expected}\n\n{note}Answer: {answer}",
        case.question
    )
}

fn beginning(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}
