//! Runs within a run: an agent that is asked by another one's model. It runs in this process, for the same owner, within what
//! is left of the asking run's limits.

use futures::{FutureExt, future::BoxFuture};
use lectern_shared::ids::AgentId;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tracing::Instrument;

use super::{
    AgentQuestion,
    agent_run::AgentRun,
    course,
    event::EventEmitter,
    live::LiveEnvironment,
    meter,
    outside::failed,
    prepare::{self, RunBounds},
    setup::{CallOutcome, RunLimits},
};
use crate::{AgentError, answer::markers};

/// How many agents may stand between the one that a user asks and the last one, itself included.
const DEPTH: usize = 3;

/// Asks another agent.
pub(super) fn ask<'a>(
    live: &'a LiveEnvironment,
    agent: AgentId,
    arguments: &'a Map<String, Value>,
    left: RunLimits,
    deadline: Instant,
) -> BoxFuture<'a, CallOutcome> {
    async move {
        let input = arguments.get("input").and_then(Value::as_str).filter(|input| !input.trim().is_empty());
        let Some(input) = input else {
            return failed("The arguments are wrong: give `input`, the question to the agent.".to_owned());
        };
        if live.chain.contains(&agent) {
            return failed("This agent is waiting for your answer and cannot be asked.".to_owned());
        }
        if live.chain.len() > DEPTH {
            return failed(format!(
                "Agents cannot ask each other more than {DEPTH} deep; answer without it."
            ));
        }
        if left.steps == 0 {
            return failed("No steps are left in which the agent could answer.".to_owned());
        }
        match run(live, agent, input, left, deadline).await {
            Ok(called) => called,
            Err(error) => failed(why(&error)),
        }
    }
    .boxed()
}

fn why(error: &AgentError) -> String {
    let needed = match error {
        AgentError::MissingValues(names) => {
            names.iter().map(|name| format!("input.{name}")).collect::<Vec<_>>().join(", ")
        }
        AgentError::PromptTooLong(_) => "input".to_owned(),
        AgentError::UnknownAgent
        | AgentError::UnknownProvider
        | AgentError::ModelSetup(_)
        | AgentError::Model(_)
        | AgentError::NoEmbedder
        | AgentError::EmbedderAway
        | AgentError::EmbedderRefused
        | AgentError::NotRepeatable(_)
        | AgentError::StreamNotRead
        | AgentError::Service(_) => return format!("The agent could not answer. {error}"),
    };
    format!("The agent could not answer: its prompt needs {needed}, which another agent cannot give.")
}

async fn run(
    live: &LiveEnvironment,
    agent: AgentId,
    input: &str,
    left: RunLimits,
    deadline: Instant,
) -> Result<CallOutcome, AgentError> {
    let parts = &live.parts;
    let briefing = parts.briefings.of(live.owner.workspace_id, agent).await?;
    let briefing = briefing.ok_or(AgentError::UnknownAgent)?;
    let question = AgentQuestion::new(input.to_owned());
    let mut chain = live.chain.clone();
    chain.push(agent);
    let mut checked = prepare::check(parts, briefing.into(), &question).await?;
    if let Some(error) = checked.unusable.take() {
        return Err(error);
    }
    let bounds = RunBounds {
        limits: Some(left),
        started: Instant::now(),
        deadline: Some(deadline),
        chain,
        owner: live.owner,
        ledger: live.meter.ledger(),
    };
    let (setup, mut inner) = prepare::prepare(parts, &live.toolbox, checked, &question, bounds).await?;
    let run = AgentRun::new(&setup, &mut inner, parts.compute.clone(), EventEmitter::new(None));
    let done = async {
        let done = course::finish(run).await;
        meter::record_run_end(&setup, &done);
        done
    };
    let done = done.instrument(meter::run_span(setup.agent)).await;
    Ok(match done.outcome {
        Ok(ended) if ended.is_unanswered => CallOutcome { spent: done.spent, ..failed(ended.answer) },
        // Its numbers are not those of the run that asks.
        Ok(ended) => CallOutcome {
            text: markers::strip_markers(&ended.answer),
            spent: done.spent,
            ..CallOutcome::default()
        },
        Err(error) => CallOutcome { spent: done.spent, ..failed(why(&error)) },
    })
}
