//! One run of an agent: retrieve for the question → loop with the model and its tools → verify citations → keep both turns and
//! the trace. The predict endpoint calls [`start`] and reads the events; a run calls the search, the model, the tools and the
//! store.

mod agent_run;
mod cached;
mod chat;
mod event;
mod extractive;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod instructions;
mod ledger;
mod memory;
mod meter;
mod nested;
mod observation;
mod outside;
mod parts;
mod prepare;
mod react;
mod react_text;
mod setup;
mod sources;
pub mod trace;

use std::{collections::VecDeque, time::Duration};

use lectern_shared::{
    db::{self, Json, traces::StoredTrace},
    model::{agent::Agent, webhook::WebhookEvent, workspace::RunOwner},
};
use serde_json::{Map, Value, json};
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, timeout},
};
use tracing::Instrument;

use self::{
    agent_run::{AgentRun, FinishedRun},
    event::{EventEmitter, WAITING},
    ledger::UsageLedger,
    outside::{LiveEnvironment, RunEnvironment},
    prepare::{CheckedAgent, RunBounds},
    setup::{RECORD_VERSION, RecordEntry, RunRecord, RunSetup},
};
pub use self::{
    event::{RunEvent, RunOutcome},
    parts::AgentParts,
    trace::{AnswerSpan, CitationView},
};
use crate::{AgentError, RepeatRefusal, tools::Toolbox};

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
    /// The agent.
    pub agent: Agent,
    /// What it is told.
    pub prompt: AgentPrompt,
}

impl From<Agent> for AgentToAsk {
    /// As it is now.
    fn from(agent: Agent) -> Self {
        Self { agent, prompt: AgentPrompt::Own }
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
/// an event.
pub async fn start(
    parts: &AgentParts,
    toolbox: &Toolbox,
    asked: AgentToAsk,
    owner: RunOwner,
    question: AgentQuestion,
) -> Result<RunHandle, AgentError> {
    let agent = asked.agent.clone();
    let checked = prepare::check(parts, asked, &question).await?;
    let key = cached::key(parts, &agent, owner, &question).await?;
    if let Some(key) = &key
        && let Some(record) = cached::find(parts, &agent, key, question.cache_ttl).await?
    {
        return Ok(replay_record(parts, record));
    }
    let (parts, toolbox) = (parts.clone(), toolbox.clone());
    Ok(RunHandle::spawn(move |events| async move {
        let asked = AskedQuestion { agent, owner, question, key };
        let driven = run_and_store(&parts, &toolbox, checked, &asked, &events);
        let last = match Box::pin(driven.instrument(meter::run_span(asked.agent.id))).await {
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
        let outside = RunEnvironment::Recorded(VecDeque::from(entries));
        let run = AgentRun::new(&setup, outside, compute, EventEmitter::new(Some(events.clone())));
        let done = run.finish().await;
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
    checked: CheckedAgent,
    asked: &AskedQuestion,
    events: &mpsc::Sender<RunEvent>,
) -> Result<RunEvent, AgentError> {
    let AskedQuestion { agent, owner, question, .. } = asked;
    let started = Instant::now();
    let ledger = UsageLedger::new(parts.db.clone(), parts.clock.clone(), owner.workspace_id);
    let bounds = RunBounds {
        limits: None,
        started,
        deadline: None,
        chain: vec![agent.id],
        owner: *owner,
        ledger: ledger.clone(),
    };
    let (setup, live) = prepare::prepare(parts, toolbox, checked, question, bounds).await?;
    let done = run_live(&setup, &live, events).await;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let body = trace::trace(&setup, &done, duration_ms);
    let ended = meter::record_run_end(&setup, &done);
    parts.metrics.predicted(ended, started.elapsed());
    tracing::info!(
        agent = %agent.id,
        trace = %setup.trace,
        ended = ended.as_str(),
        steps = done.spent.steps,
        input_tokens = done.spent.input_tokens,
        output_tokens = done.spent.output_tokens,
        duration_ms,
        "an agent was asked"
    );
    tokio::join!(ledger.settle(), store_trace(parts, asked, &setup, &done, &body, duration_ms));
    Ok(last(&setup, done, body))
}

async fn run_live(setup: &RunSetup, live: &LiveEnvironment, events: &mpsc::Sender<RunEvent>) -> FinishedRun {
    let emitter = EventEmitter::new(Some(events.clone()));
    AgentRun::new(setup, RunEnvironment::Live(live), live.parts.compute.clone(), emitter).finish().await
}

fn last(setup: &RunSetup, done: FinishedRun, trace: Value) -> RunEvent {
    match done.outcome {
        Ok(_) if done.is_unread => RunEvent::Failed(AgentError::StreamNotRead),
        Ok(ended) => {
            let outcome = RunOutcome {
                trace: setup.trace,
                finish_reason: ended.finish_reason,
                input_tokens: done.spent.input_tokens,
                output_tokens: done.spent.output_tokens,
            };
            RunEvent::End { answer: ended.answer, outcome, trace }
        }
        Err(error) => RunEvent::Failed(error),
    }
}

/// How long an answer waits for its trace to be stored.
const KEEPING: Duration = Duration::from_secs(10);
/// The largest trace that is kept whole, in bytes.
const LARGEST_TRACE: usize = 1 << 20;
/// The largest record, in bytes: what the trace says, and what it leaves out.
const LARGEST_RECORD: usize = 2 << 20;

/// Stores the trace, and both turns if the session is remembered. The answer is right without it, so a store that is away costs
/// the record, not the answer.
async fn store_trace(
    parts: &AgentParts,
    asked: &AskedQuestion,
    setup: &RunSetup,
    done: &FinishedRun,
    body: &Value,
    duration_ms: u64,
) {
    let AskedQuestion { agent, owner, question, key } = asked;
    let record = RunRecord {
        version: RECORD_VERSION,
        setup: setup.clone(),
        entries: done.entries.clone(),
        duration_ms,
    };
    let record = json!(record);
    let complete = is_at_most(body, LARGEST_TRACE) && is_at_most(&record, LARGEST_RECORD);
    let kept = if complete { body.clone() } else { trace::shortened(body.clone(), LARGEST_TRACE) };
    let now = parts.clock.now();
    let stored = StoredTrace {
        id: setup.trace,
        agent_id: agent.id,
        session: question.session.clone(),
        created_at: now,
        complete,
        body: Json(kept),
        rating: None,
        feedback: None,
        feedback_at: None,
    };
    // What failed before the model was asked cannot be told from what was recorded.
    let is_repeatable = done.outcome.is_ok() || matches!(done.entries.last(), Some(RecordEntry::Chat { .. }));
    let record = (complete && is_repeatable).then_some(Json(record));
    let written = async {
        // A turn of a conversation is kept like any other thing of a user's; a trace alone is not worth waiting for the disk.
        let mut tx = match &question.session {
            Some(_) if agent.has_memory => parts.db.begin().await?,
            Some(_) | None => parts.db.begin_relaxed().await?,
        };
        let expires = now.plus(parts.settings.trace_ttl);
        db::traces::insert(&mut tx, *owner, &stored, record.as_ref(), expires).await?;
        if let Err(error) = &done.outcome {
            let told = json!({"agentId": agent.id, "name": agent.name, "traceId": setup.trace, "error": error.code()});
            db::webhooks::emit(&mut tx, owner.workspace_id, WebhookEvent::AgentFailed, &told, now).await?;
        }
        if let Ok(ended) = &done.outcome {
            let is_turn = agent.has_memory && !ended.is_unanswered;
            if let Some(session) = question.session.as_ref().filter(|_| is_turn) {
                memory::remember(parts, &mut tx, *owner, agent, session, &question.text, &ended.answer)
                    .await?;
            }
            if let Some(key) = key.as_ref().filter(|_| complete && cached::is_cacheable(ended, &done.steps)) {
                db::cached_answers::put(&mut tx, owner.workspace_id, key, setup.trace, now).await?;
            }
        }
        tx.commit().await
    };
    match timeout(KEEPING, written).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(%error, trace = %setup.trace, "the trace of an answer could not be kept");
        }
        Err(_) => tracing::error!(trace = %setup.trace, "the trace of an answer could not be kept in time"),
    }
}

/// Whether a value has at most so many bytes as JSON.
fn is_at_most(value: &Value, bytes: usize) -> bool {
    struct LimitedWriter(usize);
    impl std::io::Write for LimitedWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(LimitedWriter(bytes), value).is_ok()
}
