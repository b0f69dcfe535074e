//! Evaluations in a browser: questions with what is to come of them, and what came of them.

mod cases;
mod imported;
mod rows;
mod runs;

use std::collections::HashMap;

use askama::Template;
use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, Uri},
    routing::{get, post},
};
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, DocumentId, EvaluationCaseId, EvaluationId, EvaluationRunId},
    model::{
        agent::PromptConfig,
        evaluation::{Evaluation, EvaluationCase, EvaluationRun, ExpectedOutcome},
        search::SearchMode,
    },
};
use uuid::Uuid;

use self::{
    imported::ImportedWords,
    rows::{AskedAgents, RunRow},
};
use super::{
    PagePolicy,
    choices::told_apart,
    confirm::Confirmed,
    edits::{EditForm, ShownFields, was_made},
    failure::FailureWords,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::{beginning, counted, filters},
};
use crate::{
    error::ApiError,
    error_response::status_of,
    extract::{PathId, parameter},
    response::ApiResult,
    services::{
        actor::Actor,
        agents::AgentService,
        asking::{AskService, AskableAgent},
        creation::CreationOutcome,
        evaluations::{EvaluationChange, EvaluationService, NewEvaluation},
    },
    state::AppState,
};

/// Evaluations that are shown: a workspace has fewer.
const EVALUATIONS: u32 = 200;
/// Cases of a page.
const CASES: u32 = 50;
/// Runs of a page.
const RUNS: u32 = 20;
/// Characters of a quotation in the list.
const QUOTE: usize = 200;

/// Earlier versions of the agent that can be asked: more than are kept.
const VERSIONS: u32 = 200;

/// The ways of searching, as people choose them.
const MODES: [(SearchMode, &str); 3] = [
    (SearchMode::Hybrid, "by words and by meaning"),
    (SearchMode::Dense, "by meaning"),
    (SearchMode::Lexical, "by words"),
];

#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/evaluations", get(list).post(create))
        .route("/evaluations/{id}", get(show).post(change))
        .route("/evaluations/{id}/delete", post(delete))
        .route("/evaluations/{id}/cases", post(cases::add))
        .route("/evaluations/{id}/cases/{case}/delete", post(cases::delete))
        // What a file is refused with stays at this address. Followed or opened anew, it shows the page without that.
        .route("/evaluations/{id}/import", get(show).post(cases::import).layer(DefaultBodyLimit::disable()))
        .route("/evaluations/{id}/run", post(runs::start))
        .route("/evaluations/{id}/runs/{run}", get(runs::show))
        .route("/evaluations/{id}/runs/{run}/cancel", post(runs::cancel))
        .route("/evaluations/{id}/runs/{run}/compare", get(runs::compare))
        .route("/traces/{id}/case", post(cases::add_of_trace))
}

#[derive(Template)]
#[template(path = "evaluations.html")]
struct EvaluationsPage {
    frame: Frame,
    rows: Vec<EvaluationRow>,
    agents: Vec<(AgentId, String)>,
}

struct EvaluationRow {
    id: EvaluationId,
    name: String,
    cases: i64,
    agent: String,
    run: Option<RunRow>,
}

#[derive(Template)]
#[template(path = "evaluation.html")]
struct EvaluationPage<'a> {
    frame: Frame,
    /// What its form is made from.
    seen: String,
    evaluation: Evaluation,
    agents: Vec<(AgentId, String)>,
    modes: [(SearchMode, &'static str); 3],
    /// What its agent was before it was changed.
    versions: Vec<VersionChoice>,
    count: String,
    cases: Vec<CaseRow>,
    more_cases: Option<EvaluationCaseId>,
    runs: Vec<RunRow>,
    more_runs: Option<EvaluationRunId>,
    is_busy: bool,
    /// Whether there is a reranker.
    can_rerank: bool,
    /// What was added just now.
    imported: Option<ImportedWords>,
    /// Why a file with cases was not taken just now.
    refused: Option<FailureWords<'a>>,
}

struct CaseRow {
    id: EvaluationCaseId,
    question: String,
    /// Whether it is to be declined.
    is_declined: bool,
    /// What answers it.
    gold: Vec<GoldRow>,
    note: String,
}

/// What answers a case.
struct GoldRow {
    document: DocumentId,
    /// What the document is called; empty for one that is not there any more.
    name: String,
    words: String,
}

impl CaseRow {
    fn of(case: EvaluationCase, names: &HashMap<DocumentId, String>) -> Self {
        let gold = case.expect.0.gold().iter().map(|gold| GoldRow {
            document: gold.document_id,
            name: names.get(&gold.document_id).cloned().unwrap_or_default(),
            words: beginning(gold.quote.as_deref().unwrap_or("any passage"), QUOTE),
        });
        Self {
            id: case.id,
            gold: gold.collect(),
            is_declined: matches!(case.expect.0, ExpectedOutcome::Decline(_)),
            question: case.question,
            note: case.note.unwrap_or_default(),
        }
    }
}

/// What an agent was until it was changed.
struct VersionChoice {
    number: i64,
    until: Timestamp,
    model: String,
}

/// The earlier versions of an agent.
async fn versions_of(agents: &AgentService, actor: &Actor, id: AgentId) -> ApiResult<Vec<VersionChoice>> {
    let former = agents.versions(actor, id, Uuid::max(), VERSIONS).await?.into_iter().filter_map(|version| {
        // Without its prompt it cannot be asked.
        let is_erased = version.config.prompt.as_ref().is_some_and(PromptConfig::is_erased);
        let (_, until) = version.replaced.filter(|_| !is_erased)?;
        let llm = version.config.llm;
        Some(VersionChoice {
            number: version.version,
            until,
            model: format!("{}/{}", llm.provider, llm.model),
        })
    });
    Ok(former.collect())
}

/// The agents that can be chosen.
async fn agents(asking: &AskService, visitor: &Visitor) -> ApiResult<Vec<(AgentId, String)>> {
    let shown = |askable: AskableAgent| (askable.agent().id, askable.agent().name.clone());
    Ok(told_apart(asking.all_askable(&visitor.actor(), shown).await?))
}

/// Shows the evaluations.
#[handler]
async fn list(
    State(evaluations): State<EvaluationService>,
    State(asking): State<AskService>,
    visitor: Visitor,
) -> ApiResult {
    let actor = visitor.actor();
    let found = evaluations.list(&actor, Uuid::max(), EVALUATIONS).await?;
    let agents = agents(&asking, &visitor).await?;
    let mut last_runs = Vec::with_capacity(found.len());
    for evaluation in &found {
        last_runs.extend(evaluations.runs(&actor, evaluation.id, Uuid::max(), 1).await?);
    }
    let asked = AskedAgents::of(&evaluations, &actor, &last_runs).await?;
    let mut rows = Vec::with_capacity(found.len());
    for evaluation in found {
        let last = last_runs.iter().find(|run| run.evaluation_id == evaluation.id);
        let agent = agents.iter().find(|(id, _)| Some(*id) == evaluation.agent_id);
        rows.push(EvaluationRow {
            id: evaluation.id,
            name: evaluation.name,
            cases: evaluation.cases,
            agent: agent.map(|(_, name)| name.clone()).unwrap_or_default(),
            run: last.map(|run| RunRow::of(run, &asked)),
        });
    }
    html(&PagePolicy::Own, StatusCode::OK, &EvaluationsPage { frame: visitor.frame, rows, agents })
}

/// Makes one.
#[handler]
async fn create(
    State(evaluations): State<EvaluationService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewEvaluation>,
) -> ApiResult {
    let id_of = |made: &Evaluation| Ok(made.id.to_string().into_bytes());
    let made = evaluations.create(&visitor.actor(), body, once, id_of).await?;
    let (CreationOutcome::Now(id) | CreationOutcome::Before(id)) = made;
    Ok(visitor.go(&format!("evaluations/{}?said=added", String::from_utf8_lossy(&id))))
}

/// Shows one: its cases and its runs.
#[handler]
async fn show(
    State(evaluations): State<EvaluationService>,
    State(asking): State<AskService>,
    State(former): State<AgentService>,
    visitor: Visitor,
    uri: Uri,
    PathId(id): PathId<EvaluationId>,
) -> ApiResult {
    page(&evaluations, &asking, &former, visitor, &uri, id, None).await
}

/// The page of one, where a file with cases may have been refused just now.
async fn page(
    evaluations: &EvaluationService,
    asking: &AskService,
    former: &AgentService,
    visitor: Visitor,
    uri: &Uri,
    id: EvaluationId,
    refused: Option<&ApiError>,
) -> ApiResult {
    let actor = visitor.actor();
    let before =
        |name: &str| parameter(uri, name).and_then(|after| after.parse().ok()).unwrap_or_else(Uuid::max);
    let evaluation = evaluations.find(&actor, id).await?;
    let mut cases = evaluations.cases(&actor, id, before("cases"), CASES + 1).await?;
    let has_more_cases = cases.len() > CASES as usize;
    cases.truncate(CASES as usize);
    let mut runs: Vec<EvaluationRun> = evaluations.runs(&actor, id, before("runs"), RUNS + 1).await?;
    let has_more_runs = runs.len() > RUNS as usize;
    runs.truncate(RUNS as usize);
    let asked_agents = AskedAgents::of(evaluations, &actor, &runs).await?;
    let runs_shown: Vec<RunRow> = runs.iter().map(|run| RunRow::of(run, &asked_agents)).collect();
    let names = evaluations.document_names(&actor, &cases).await?;
    let agents = agents(asking, &visitor).await?;
    // Of an agent that is being deleted nothing is left to be asked.
    let asked = evaluation.agent_id.filter(|asked| agents.iter().any(|(id, _)| id == asked));
    let versions = match asked {
        Some(asked) => versions_of(former, &actor, asked).await?,
        None => Vec::new(),
    };
    let mut frame = visitor.frame;
    if refused.is_some() {
        frame.problem = Some("No case was added. Why is said below, where the file is chosen.");
    }
    let page = EvaluationPage {
        seen: shown(&evaluation, &agents).seen(),
        agents,
        modes: MODES,
        versions,
        count: counted(evaluation.cases.unsigned_abs(), "case", "cases"),
        evaluation,
        more_cases: cases.last().map(|last| last.id).filter(|_| has_more_cases),
        cases: cases.into_iter().map(|case| CaseRow::of(case, &names)).collect(),
        more_runs: runs.last().map(|last| last.id).filter(|_| has_more_runs),
        is_busy: runs_shown.iter().any(|run| run.is_busy),
        runs: runs_shown,
        can_rerank: evaluations.has_reranker(),
        imported: ImportedWords::of(uri).filter(|_| refused.is_none()),
        refused: refused.map(FailureWords::of),
        frame,
    };
    html(&PagePolicy::Own, refused.map_or(StatusCode::OK, status_of), &page)
}

/// Changes one.
#[handler]
async fn change(
    State(evaluations): State<EvaluationService>,
    State(asking): State<AskService>,
    PathId(id): PathId<EvaluationId>,
    EditForm { visitor, body, edit }: EditForm<EvaluationChange>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(evaluations.change(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go(&format!("evaluations/{id}?said=saved")));
    }
    let shows = shown(&evaluations.find(&actor, id).await?, &agents(&asking, &visitor).await?);
    edit.outdated(visitor, &shows, None, &format!("evaluations/{id}"))
}

/// What the form of one shows.
fn shown(evaluation: &Evaluation, agents: &[(AgentId, String)]) -> ShownFields {
    let named = agents.iter().map(|(id, name)| (id.to_string(), name.clone()));
    let names: Vec<(String, String)> =
        [(String::new(), "none".to_owned())].into_iter().chain(named).collect();
    let id = |agent: Option<AgentId>| agent.map(|agent| agent.to_string()).unwrap_or_default();
    ShownFields::of(evaluation.updated_at)
        .text("name", "Name", &evaluation.name)
        .choice("agentId", "The agent that is asked", &id(evaluation.agent_id), &names)
        .choice(
            "judgeAgentId",
            "The agent that says whether answers are right",
            &id(evaluation.judge_id),
            &names,
        )
}

/// Deletes one.
#[handler]
async fn delete(
    State(evaluations): State<EvaluationService>,
    PathId(id): PathId<EvaluationId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    evaluations.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("evaluations?said=removed"))
}
