//! One run of an agent: retrieve for the question → loop with the model and its tools → verify citations → keep both turns and
//! the trace. The predict endpoint calls [`start`] and reads the events; a run calls the search, the model, the tools and the
//! store.

mod agent_model;
mod agent_run;
mod cached;
mod chat;
mod course;
mod event;
mod extractive;
mod follow_up;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod instructions;
mod ledger;
mod live;
mod memory;
mod meter;
mod nested;
mod observation;
mod outside;
mod parts;
mod prepare;
mod react;
mod react_text;
mod recorder;
mod replayed;
mod setup;
mod sources;
mod store;
mod subject;
mod told;
pub mod trace;

use std::time::Duration;

use lectern_db::{
    agents::{AgentBriefing, AgentLinks},
    traces::StoredTrace,
};
use lectern_shared::model::{Json, agent::Agent, run::StepKind, workspace::RunOwner};
use serde_json::{Map, Value};
use tokio::{sync::mpsc, task::AbortHandle, time::Instant};
use tracing::Instrument;

use self::{
    agent_run::AgentRun,
    event::{EventEmitter, WAITING},
    ledger::UsageLedger,
    live::LiveEnvironment,
    prepare::{CheckedAgent, RunBounds},
    replayed::ReplayedEnvironment,
    setup::{RECORD_VERSION, RunRecord, RunSetup, RunUsage, StepTiming},
    store::EndedRun,
    trace::{FinishedRun, StepView},
};
pub use self::{
    event::{RunEvent, RunOutcome},
    ledger::RunReservation,
    parts::AgentParts,
    recorder::RunRecorder,
    told::needed_values,
    trace::{AnswerSpan, CitationView},
};
use crate::{AgentError, RepeatRefusal, models::ChatMessage, tools::Toolbox};

/// What an agent is told.
#[derive(Clone, Debug)]
pub enum AgentPrompt {
    /// The prompt that it uses, as it is now.
    Own,
    /// This template, or nothing.
    Template(Option<String>),
}

/// An agent as it is to be asked.
#[derive(Clone, Debug)]
pub struct AgentToAsk {
    /// The agent. Its number is the one that it has now, whatever it is asked as.
    pub agent: Agent,
    /// The number of the version that it is asked as, which its traces tell. Changes of links raise the number too, so that several may
    /// stand for the same.
    pub version: i64,
    /// What it is told.
    pub prompt: AgentPrompt,
    /// What is linked to it; that is read when it is asked, when none.
    pub links: Option<AgentLinks>,
}

impl From<Agent> for AgentToAsk {
    /// As it is at each time when it is asked.
    fn from(agent: Agent) -> Self {
        let version = agent.version;
        Self { agent, version, prompt: AgentPrompt::Own, links: None }
    }
}

impl From<AgentBriefing> for AgentToAsk {
    /// As it was when it was read.
    fn from(AgentBriefing { agent, template, links }: AgentBriefing) -> Self {
        let version = agent.version;
        Self { agent, version, prompt: AgentPrompt::Template(template), links: Some(links) }
    }
}

/// What an agent is asked.
#[derive(Clone, Debug, Default)]
pub struct AgentQuestion {
    /// The question.
    pub text: String,
    /// Values for the agent's prompt.
    pub variables: Map<String, Value>,
    /// The conversation that it belongs to.
    pub session: Option<String>,
    /// How old an answer may be that is given again.
    pub cache_ttl: Duration,
    /// What was said before it, each a question and its answer, oldest first, when the caller tells that instead of naming a
    /// session. The model is told the last of them that there is room for.
    pub history: Vec<(String, String)>,
    /// What the caller's program says of how to answer, besides the agent's own prompt.
    pub instructions: Option<String>,
    /// The most tokens that the model may write in one step, if that is fewer than the agent's.
    pub max_tokens: Option<u32>,
    /// What is kept for the run.
    pub reservation: Option<RunReservation>,
}

impl AgentQuestion {
    /// A question by itself.
    pub(crate) fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// A run that goes on. It ends when this is dropped, wherever it is.
pub struct RunHandle {
    events: mpsc::Receiver<RunEvent>,
    task: AbortHandle,
    ended: bool,
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunHandle {
    /// The next event; none after the last one.
    pub async fn next(&mut self) -> Option<RunEvent> {
        if self.ended {
            return None;
        }
        let event = self.events.recv().await.unwrap_or_else(|| {
            tracing::error!("a run ended without its last event");
            RunEvent::Failed(AgentError::internal())
        });
        self.ended = event.is_last();
        Some(event)
    }

    /// Waits for the end, and passes over what happens before.
    pub async fn finish(mut self) -> Result<(String, Value), AgentError> {
        loop {
            match self.next().await {
                Some(RunEvent::End { answer, trace, .. }) => return Ok((answer, trace)),
                Some(RunEvent::Failed(error)) => return Err(error),
                Some(_) => {}
                None => return Err(AgentError::internal()),
            }
        }
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(run: impl FnOnce(mpsc::Sender<RunEvent>) -> F) -> Self {
        let (sender, events) = mpsc::channel(WAITING);
        // What it logs belongs to the request that asked.
        let task = tokio::spawn(run(sender).in_current_span()).abort_handle();
        Self { events, task, ended: false }
    }
}

/// Asks an agent.
///
/// # Errors
/// What is wrong with the question, or with the agent, as far as that is known before anything is asked. Everything later is
/// an event, and on record; so is that the agent's model cannot be asked.
pub async fn start(
    parts: &AgentParts,
    toolbox: &Toolbox,
    asked: AgentToAsk,
    owner: RunOwner,
    question: AgentQuestion,
) -> Result<RunHandle, AgentError> {
    let (agent, version) = (asked.agent.clone(), asked.version);
    let checked = prepare::check(parts, asked, &question).await?;
    let key = cached::key(parts, &agent, version, owner, &question).await?;
    if let Some(key) = &key
        && let Some(record) = cached::find(parts, &agent, key, question.cache_ttl).await?
    {
        return Ok(replay_record(parts, record));
    }
    let (parts, toolbox) = (parts.clone(), toolbox.clone());
    Ok(RunHandle::spawn(move |events| async move {
        let span = meter::run_span(agent.id);
        let asked = AskedQuestion { agent, owner, question, key };
        let driven = run_and_store(&parts, &toolbox, checked, asked, &events);
        let last = match Box::pin(driven.instrument(span)).await {
            Ok(last) => last,
            Err(error) => RunEvent::Failed(error),
        };
        // Nobody may be listening any more.
        let _ = events.send(last).await;
    }))
}

/// Runs again what a record tells, without asking anything outside; the events are the same.
fn replay_record(parts: &AgentParts, record: RunRecord) -> RunHandle {
    let compute = parts.compute.clone();
    RunHandle::spawn(move |events| async move {
        let RunRecord { setup, entries, duration_ms, .. } = record;
        let mut outside = ReplayedEnvironment::new(entries);
        let run = AgentRun::new(&setup, &mut outside, compute, EventEmitter::new(Some(events.clone())));
        let done = course::finish(run).await;
        let trace = trace::trace(&setup, &done, duration_ms);
        let _ = events.send(last(&setup, done, trace)).await;
    })
}

/// Runs a stored trace again.
///
/// # Errors
/// When there is no such trace, or it was cut to be kept.
pub fn replay(
    parts: &AgentParts,
    trace: &StoredTrace,
    record: Option<Json<Value>>,
) -> Result<RunHandle, AgentError> {
    let record = record.filter(|_| trace.complete).ok_or(RepeatRefusal::NoRecord)?;
    let record = read(record).ok_or(RepeatRefusal::OtherVersion)?;
    Ok(replay_record(parts, record))
}

/// A stored record, if this version understands it.
fn read(record: Json<Value>) -> Option<RunRecord> {
    let is_known = record.0.get("version").and_then(Value::as_u64) == Some(u64::from(RECORD_VERSION));
    let read = is_known.then(|| serde_json::from_value::<RunRecord>(record.0)).transpose();
    read.inspect_err(|error| tracing::error!(%error, "the record of a trace cannot be read")).ok().flatten()
}

/// What was asked, for the store.
struct AskedQuestion {
    agent: Agent,
    /// Whose the agent is, and who asks.
    owner: RunOwner,
    question: AgentQuestion,
    /// The answer may be given again to whoever asks what this stands for.
    key: Option<[u8; 32]>,
}

async fn run_and_store(
    parts: &AgentParts,
    toolbox: &Toolbox,
    mut checked: CheckedAgent,
    mut asked: AskedQuestion,
    events: &mpsc::Sender<RunEvent>,
) -> Result<RunEvent, AgentError> {
    let (agent, owner) = (asked.agent.id, asked.owner);
    let started = Instant::now();
    let reservation = asked.question.reservation.take();
    let (db, clock, recorder) = (parts.db.clone(), parts.clock.clone(), parts.recorder.clone());
    let ledger = UsageLedger::new(db, clock, recorder, owner.workspace_id, reservation);
    let bounds = RunBounds {
        limits: None,
        started,
        deadline: None,
        chain: vec![agent],
        owner,
        ledger: ledger.clone(),
    };
    let unusable = checked.unusable.take();
    let (setup, mut live) = prepare::prepare(parts, toolbox, checked, &asked.question, bounds).await?;
    let mut done = match unusable {
        Some(error) => unasked(&setup, error),
        None => run_live(&setup, &mut live, events).await,
    };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let body = trace::trace(&setup, &done, duration_ms);
    let ended = meter::record_run_end(&setup, &done);
    parts.metrics.predicted(ended, started.elapsed());
    tracing::info!(
        %agent,
        trace = %setup.trace,
        ended = ended.as_str(),
        steps = done.spent.steps,
        input_tokens = done.spent.input_tokens,
        output_tokens = done.spent.output_tokens,
        duration_ms,
        "an agent was asked"
    );
    let run = EndedRun::new(asked, setup.clone(), &mut done, body.clone(), duration_ms);
    if run.is_promised() {
        tokio::join!(ledger.settle(), run.store(parts));
    } else {
        let written_by = parts.clone();
        let write = Box::pin(async move {
            tokio::join!(ledger.settle(), run.store(&written_by));
        });
        parts.recorder.record(owner.workspace_id, write).await;
    }
    Ok(last(&setup, done, body))
}

/// A run whose model cannot be asked: it tells what was to be asked, and why it was not.
fn unasked(setup: &RunSetup, error: AgentError) -> FinishedRun {
    let question = chat::show(&[ChatMessage::User(setup.question.clone())]);
    let step = StepView::new(StepKind::Chat, &setup.model, question, StepTiming::default());
    let step = StepView { attempts: 0, error: Some(error.to_string()), ..step };
    FinishedRun {
        outcome: Err(error),
        steps: vec![step],
        entries: Vec::new(),
        spent: RunUsage::default(),
        is_unread: false,
    }
}

async fn run_live(
    setup: &RunSetup,
    live: &mut LiveEnvironment,
    events: &mpsc::Sender<RunEvent>,
) -> FinishedRun {
    let (compute, emitter) = (live.parts.compute.clone(), EventEmitter::new(Some(events.clone())));
    course::finish(AgentRun::new(setup, live, compute, emitter)).await
}

fn last(setup: &RunSetup, done: FinishedRun, trace: Value) -> RunEvent {
    match done.outcome {
        Ok(_) if done.is_unread => RunEvent::Failed(AgentError::StreamNotRead),
        Ok(ended) => {
            let outcome = RunOutcome {
                trace: setup.trace,
                finish_reason: ended.finish_reason,
                is_withheld: ended.is_withheld,
                input_tokens: done.spent.input_tokens,
                output_tokens: done.spent.output_tokens,
            };
            RunEvent::End { answer: ended.answer, outcome, trace }
        }
        Err(error) => RunEvent::Failed(error),
    }
}
