//! The answers that agents have given, and how each came about.

mod listing;

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_agents::run::{self, AgentParts, AgentQuestion};
use lectern_db::traces::StoredTrace;
use lectern_derive::{RequestBody, handler};
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, EvaluationId, TraceId},
};
use serde_json::{Map, Value};
use url::form_urlencoded::Serializer;
use utoipa::ToSchema;
use uuid::Uuid;

pub(super) use listing::list;

use super::{
    PagePolicy,
    answer::{AnswerCard, AnswerContext, QuoteStanding, StepRow, TraceBody},
    askers::{AskerNames, NamedAsker},
    choices::told_apart,
    confirm::Confirmed,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::{beginning, filters, rating_words},
    values::{PromptValue, VALUES},
};
use crate::{
    error::{ApiError, ApiErrorKind},
    extract::{PathId, parameter},
    response::ApiResult,
    services::{
        actor::{Actor, Permission},
        asking::AskService,
        citations::CitationLinks,
        evaluations::EvaluationService,
        traces::{RecordedTrace, TraceService, question_of},
    },
};

/// What stands for a question that is not kept: a large trace is cut.
pub(super) const NO_QUESTION: &str = "(the question is not kept)";
/// Evaluations that can be chosen: no workspace has more. And characters of a citation that is.
const EVALUATIONS: u32 = 100;
const QUOTE: usize = 100;
/// The chart of a trace: its width in its own units, which are drawn out to as much as there is, and the height of a step in pixels.
const CHART_WIDTH: f64 = 600.0;
const BAR_HEIGHT: usize = 38;

#[derive(Template)]
#[template(path = "trace.html")]
struct TracePage {
    frame: Frame,
    id: TraceId,
    agent: AgentId,
    /// What the agent is called now.
    name: String,
    /// The number of the version that was asked; none in a trace that does not tell it.
    version: Option<i64>,
    question: String,
    at: Timestamp,
    /// Who asked, for those who see everybody's answers.
    asker: Option<NamedAsker>,
    session: Option<String>,
    /// What leads its reader to that conversation, behind the `?` of the page for asking; none for whoever did not have it.
    conversation: Option<String>,
    complete: bool,
    can_replay: bool,
    replayed: Option<&'static str>,
    feedback: String,
    steps: Vec<StepRow>,
    height: usize,
    bars: Vec<ChartBar>,
    answer: String,
    /// The question is kept, so that the agent can be asked it as it is now.
    can_ask_again: bool,
    /// What goes with it.
    values: Vec<PromptValue>,
    /// What it answered when it was asked again.
    now: Option<String>,
    /// The evaluations that it can become a case of; none where it can become no case.
    evaluations: Option<Vec<(EvaluationId, String)>>,
    /// What a case can expect of its citations.
    cited: Vec<CitedWords>,
    /// Why there is no answer, where the run failed.
    failure: Option<String>,
}

/// A citation as it can be chosen.
#[derive(Debug, PartialEq, Eq)]
struct CitedWords {
    /// Its place among the answer's, from 1: several may have one number.
    place: usize,
    n: usize,
    words: String,
}

impl CitedWords {
    /// Those of a trace; what its documents do not say can never be found in them.
    fn of(trace: &TraceBody) -> Vec<Self> {
        let standings = trace.standings();
        let all = trace.citations.iter().zip(standings).enumerate();
        all.filter(|(_, (_, standing))| *standing != QuoteStanding::Misquoted)
            .map(|(at, (cited, _))| Self { place: at + 1, n: cited.n, words: beginning(&cited.quote, QUOTE) })
            .collect()
    }
}

/// What was done with a trace just now.
enum TraceOutcome {
    /// It is looked at.
    Shown,
    /// It was replayed: whether it came out the same, in words.
    Replayed(&'static str),
    /// Its question was asked again: this came of it.
    AskedAgain(Box<StoredTrace>),
}

/// The values that go with a question that is asked again.
#[derive(RequestBody, ToSchema)]
pub(super) struct AgainForm {
    #[schema(value_type = Option<Object>)]
    #[body(default)]
    values: Map<String, Value>,
}

/// A step in the chart of a trace.
struct ChartBar {
    class: &'static str,
    x: String,
    y: usize,
    width: String,
    text_y: usize,
    label: String,
}

/// What was asked, in a line. Below the question may stand the one that it goes on from, with which it was searched for.
fn asked(trace: &Value) -> Option<&str> {
    question_of(trace)?.trim().lines().next()
}

/// What is said where an answer to compare with is gone.
const NOT_KEPT: &str = "The answer that the agent gave when it was asked again is not kept any more.";

/// Shows how an answer came about, beside another one where the address names that.
#[handler]
pub(super) async fn show(
    State(traces): State<TraceService>,
    State(asking): State<AskService>,
    State(links): State<CitationLinks>,
    State(evaluations): State<EvaluationService>,
    mut visitor: Visitor,
    PathId(id): PathId<TraceId>,
    uri: Uri,
) -> ApiResult {
    let actor = visitor.actor();
    let found = traces.find_with_record(&actor, id).await?;
    let outcome = match parameter(&uri, "now").and_then(|now| now.parse().ok()) {
        None => TraceOutcome::Shown,
        Some(now) => match traces.find(&actor, now).await {
            Ok(now) if now.agent_id == found.trace.agent_id => TraceOutcome::AskedAgain(Box::new(now)),
            Err(error) if error.kind != ApiErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {
                visitor.frame.problem = Some(NOT_KEPT);
                TraceOutcome::Shown
            }
        },
    };
    page(visitor, &traces, &asking, &links, &evaluations, found, outcome).await
}

/// Deletes what is kept of an answer.
#[handler]
pub(super) async fn delete(
    State(traces): State<TraceService>,
    PathId(id): PathId<TraceId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    traces.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("traces?said=answer-deleted"))
}

/// Gives an answer again from what is recorded of its run, and says whether it came out the same.
#[handler]
pub(super) async fn replay(
    State(agents): State<AgentParts>,
    State(traces): State<TraceService>,
    State(asking): State<AskService>,
    State(links): State<CitationLinks>,
    State(evaluations): State<EvaluationService>,
    visitor: Visitor,
    PathId(id): PathId<TraceId>,
) -> ApiResult {
    let found = traces.find_with_record(&visitor.actor(), id).await?;
    let running = run::replay(&agents, &found.trace, found.record.clone())?;
    let (_, trace) = running.finish().await?;
    let told = if trace == found.trace.body.0 {
        "Replayed from its record: the same answer, by the same steps."
    } else {
        "Replayed from its record: it came out in another way. Another version of the service may read what the model said differently."
    };
    page(visitor, &traces, &asking, &links, &evaluations, found, TraceOutcome::Replayed(told)).await
}

/// Asks the agent, as it is now, what it was asked then, and leads to both answers side by side: their page can be loaded again, and
/// come back to, without asking once more.
#[handler]
pub(super) async fn ask_again(
    State(asking): State<AskService>,
    State(traces): State<TraceService>,
    PathId(id): PathId<TraceId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<AgainForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let found = traces.find_with_record(&actor, id).await?;
    let text = found.question().ok_or_else(|| ApiError::not_found("question"))?;
    let agent = asking.find(&actor, found.trace.agent_id).await?;
    let question = AgentQuestion { text, variables: body.values, ..AgentQuestion::default() };
    let running = asking.ask(&actor, agent, question).await.map_err(|error| error.with_values_in(VALUES))?;
    let (_, now) = running.finish().await?;
    Ok(visitor.go(&format!("traces/{id}?now={}", TraceBody::of(&now).id)))
}

async fn page(
    visitor: Visitor,
    traces: &TraceService,
    asking: &AskService,
    links: &CitationLinks,
    evaluations: &EvaluationService,
    found: RecordedTrace,
    outcome: TraceOutcome,
) -> ApiResult {
    let (question, given) = (found.question(), found.values());
    let RecordedTrace { trace, record } = found;
    let (replayed, now) = match outcome {
        TraceOutcome::Shown => (None, None),
        TraceOutcome::Replayed(told) => (Some(told), None),
        TraceOutcome::AskedAgain(now) => (None, Some(now)),
    };
    let (answer, now) = answers(&trace, now.as_deref(), links, &visitor).await?;
    let whole = TraceBody::of(&trace.body.0);
    let (cited, failure) = (CitedWords::of(&whole), whole.failure());
    let actor = visitor.actor();
    // Others than those who build agents see their own answers here, and evaluate nothing.
    let evaluations = match actor.may(Permission::BuildAgents) {
        Ok(_) if question.is_some() => Some(evaluations.list(&actor, Uuid::max(), EVALUATIONS).await?),
        Ok(_) | Err(_) => None,
    };
    let evaluations = evaluations
        .map(|found| told_apart(found.into_iter().map(|evaluation| (evaluation.id, evaluation.name))));
    // Not everybody who may see an answer may still ask.
    let asked = asking.find(&actor, trace.agent_id).await.ok();
    let (needed, conversation) = match &asked {
        Some(asked) => (asking.needed_values(asked).await?, conversation_of(traces, &actor, &trace).await?),
        None => (Vec::new(), None),
    };
    let name = asked.map(|asked| asked.agent().name.clone());
    let askers = AskerNames::of(traces, &actor, trace.asker().into_iter().collect()).await?;
    let can_ask_again = question.is_some();
    let question = question.unwrap_or_else(|| NO_QUESTION.to_owned());
    let steps: Vec<StepRow> = whole.steps.into_iter().map(StepRow::from).collect();
    let said = [rating_words(trace.rating), trace.feedback.as_deref().unwrap_or_default()];
    let feedback = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
    let page = TracePage {
        id: trace.id,
        agent: trace.agent_id,
        name: name.unwrap_or_else(|| "The agent".to_owned()),
        version: whole.agent_version,
        question,
        at: trace.created_at,
        asker: askers.named(trace.asker()),
        session: trace.session,
        conversation,
        complete: trace.complete,
        can_replay: record.is_some(),
        replayed,
        feedback,
        height: steps.len() * BAR_HEIGHT,
        bars: bars(&steps, whole.duration_ms),
        steps,
        answer,
        can_ask_again,
        values: PromptValue::all(needed, &given),
        now,
        cited,
        failure,
        evaluations,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// What leads whoever had the conversation that an answer is of back to it.
async fn conversation_of(
    traces: &TraceService,
    actor: &Actor,
    trace: &StoredTrace,
) -> ApiResult<Option<String>> {
    let Some(session) = &trace.session else { return Ok(None) };
    let own = traces.of_session(actor, trace.agent_id, session, 1).await?;
    let query = || Serializer::new(String::new()).append_pair("session", session).finish();
    Ok((!own.is_empty()).then(query))
}

/// An answer as HTML, and the later one that stands beside it. What is said of one of the two leads back to both.
async fn answers(
    then: &StoredTrace,
    now: Option<&StoredTrace>,
    links: &CitationLinks,
    visitor: &Visitor,
) -> ApiResult<(String, Option<String>)> {
    let frame = &visitor.frame;
    let render = |card: AnswerCard| card.render().map_err(|_| ApiError::internal());
    let feedback = now.map_or_else(|| "feedback/trace".to_owned(), |now| format!("feedback/then/{}", now.id));
    let context = AnswerContext {
        links,
        workspace: frame.workspace_id,
        root: &frame.root,
        feedback: &feedback,
        stamp: &frame.stamp(),
        sees_steps: true,
        sees_receipts: visitor.actor().may(Permission::EditDocuments).is_ok(),
    };
    let mut card = AnswerCard::of_trace(then, &context).await?;
    card.trace.clear();
    let answer = render(card)?;
    let Some(now) = now else { return Ok((answer, None)) };
    let feedback = format!("feedback/now/{}", then.id);
    let context = AnswerContext { feedback: &feedback, ..context };
    let card = AnswerCard::of_trace(now, &context).await?;
    Ok((answer, Some(render(card)?)))
}

/// The steps, one below the other.
#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn bars(steps: &[StepRow], whole_ms: u64) -> Vec<ChartBar> {
    let ends = steps.iter().map(|step| step.started_ms + step.duration_ms);
    let whole = ends.chain([whole_ms]).max().unwrap_or(1).max(1) as f64;
    let bar = |(at, step): (usize, &StepRow)| {
        let x = step.started_ms as f64 / whole * CHART_WIDTH;
        let width = (step.duration_ms as f64 / whole * CHART_WIDTH).max(2.0).min(CHART_WIDTH - x);
        ChartBar {
            class: if step.kind == "Tool" { "tool" } else { "" },
            x: format!("{x:.1}"),
            y: at * BAR_HEIGHT + 20,
            width: format!("{:.1}", width.max(1.0)),
            text_y: at * BAR_HEIGHT + 15,
            // What it took comes first: a narrow screen has no room for the rest.
            label: format!(
                "{} · {}: {}",
                step.took,
                step.kind,
                step.action.chars().take(40).collect::<String>()
            ),
        }
    };
    steps.iter().enumerate().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use lectern_agents::run::trace;

    use super::*;

    #[test]
    fn of_citations_with_one_number_each_can_be_chosen_that_a_document_has() {
        let mut trace = trace::example();
        let first = trace["citations"][0].clone();
        let (mut other, mut invented) = (first.clone(), first);
        other["quote"] = "Its captain, Solveig Aas,".into();
        invented["quote"] = "Its captain was nobody".into();
        invented["verified"] = false.into();
        trace["output"] = "“Its captain was nobody” [1].".into();
        let citations = trace["citations"].as_array_mut().unwrap();
        citations.insert(0, invented);
        citations.push(other);
        let chosen = CitedWords::of(&TraceBody::of(&trace));
        let chosen: Vec<_> =
            chosen.iter().map(|cited| (cited.place, cited.n, cited.words.as_str())).collect();
        let whole = "Its captain, Solveig Aas, had sailed the route twice before.";
        assert_eq!(chosen, [(2, 1, whole), (3, 1, "Its captain, Solveig Aas,")]);
    }

    #[test]
    fn the_bars_of_a_chart_stay_in_it() {
        let steps: Vec<StepRow> =
            TraceBody::of(&trace::example()).steps.into_iter().map(StepRow::from).collect();
        for whole in [0, 1, 1_240, u64::from(u32::MAX)] {
            for bar in bars(&steps, whole) {
                let end = bar.x.parse::<f64>().unwrap() + bar.width.parse::<f64>().unwrap();
                assert!(end <= CHART_WIDTH + 1.0, "{end} of {whole}");
            }
        }
    }
}
