//! Runs within a run: an agent that is asked by another one's model. It runs in this process, for the same owner, within what
//! is left of the asking run's limits.

use futures::{FutureExt, future::BoxFuture};
use lectern_shared::{db, ids::AgentId};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tracing::Instrument;

use super::{
    Question,
    event::Emitter,
    markers, meter,
    outside::{Live, Outside, failed},
    prepare::{self, Bounds},
    run::Run,
    setup::{Called, Limits},
};
use crate::error::ApiError;

/// How many agents may stand between the one that a user asks and the last one, itself included.
const DEPTH: usize = 3;

/// Asks another agent.
pub(super) fn ask<'a>(
    live: &'a Live,
    agent: AgentId,
    arguments: &'a Map<String, Value>,
    left: Limits,
    deadline: Instant,
) -> BoxFuture<'a, Called> {
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

fn why(error: &ApiError) -> String {
    if error.fields.is_empty() {
        return format!("The agent could not answer. {}", error.message);
    }
    let missing: Vec<_> = error.fields.iter().map(|field| field.path.as_str()).collect();
    format!(
        "The agent could not answer: its prompt needs {}, which another agent cannot give.",
        missing.join(", ")
    )
}

async fn run(
    live: &Live,
    agent: AgentId,
    input: &str,
    left: Limits,
    deadline: Instant,
) -> Result<Called, ApiError> {
    let parts = &live.parts;
    let agent = db::agents::find(&parts.db, live.user, agent).await?;
    let agent = agent.ok_or_else(|| ApiError::not_found("agent"))?;
    let question = Question::new(input.to_owned());
    let mut chain = live.chain.clone();
    chain.push(agent.id);
    let checked = prepare::check(parts, agent, &question).await?;
    let bounds = Bounds { limits: Some(left), started: Instant::now(), deadline: Some(deadline), chain };
    let (setup, inner) = prepare::prepare(parts, &live.toolbox, checked, &question, bounds).await?;
    let run = Run::new(&setup, Outside::Live(&inner), parts.compute.clone(), Emitter::new(None));
    let done = async {
        let done = run.finish().await;
        meter::ran(&setup, &done);
        done
    };
    let done = done.instrument(meter::run_span(setup.agent)).await;
    Ok(match done.outcome {
        Ok(ended) if ended.is_unanswered => Called { spent: done.spent, ..failed(ended.answer) },
        // Its numbers are not those of the run that asks.
        Ok(ended) => Called { text: markers::without(&ended.answer), spent: done.spent, ..Called::default() },
        Err(error) => Called { spent: done.spent, ..failed(why(&error)) },
    })
}
