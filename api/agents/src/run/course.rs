//! The course of a run from its question to its answer: what the answer may link to, what is found for the question, how the agent
//! answers it, and what that cites.

use lectern_index::lexical::best_sentence;
use lectern_shared::model::run::TerminationReason;

use super::{
    agent_run::AgentRun,
    chat,
    event::RunEvent,
    extractive, follow_up, react,
    setup::{AnswerStyle, RunSetup},
    sources::NumberedSource,
    trace::{FinishedRun, RunAnswer},
};
use crate::{AgentError, answer::cite};

/// Runs to the end. The last event is for the caller to emit.
pub(super) async fn finish(mut run: AgentRun<'_>) -> FinishedRun {
    let RunSetup { trace, agent, session, .. } = run.setup;
    run.emitter.emit(RunEvent::Start { trace: *trace, agent: *agent, session: session.clone() }).await;
    let outcome = answer(&mut run).await;
    run.finished(outcome)
}

async fn answer(run: &mut AgentRun<'_>) -> Result<RunAnswer, AgentError> {
    for host in &run.setup.image_hosts {
        run.emitter.filter().allow_image_host(host);
    }
    // What another agent's model asks is not a user's word.
    if !run.setup.is_nested {
        run.emitter.filter().allow_user_text(&run.setup.question);
    }
    for (question, answer) in &run.setup.history {
        run.emitter.filter().allow_user_text(question);
        run.emitter.filter().allow_hosts_in(answer);
    }
    if let Some(instructions) = &run.setup.instructions {
        run.emitter.filter().allow_user_text(instructions);
    }
    if let Some(prompt) = &run.setup.prompt {
        run.emitter.filter().allow_hosts_in(&prompt.text);
        run.emitter.filter().allow_user_text(&prompt.own);
    }
    let found = run.retrieve(&follow_up::searched(run.setup)).await?;
    let finish_reason = match run.setup.style {
        AnswerStyle::Extractive => return extractive::answer(run).await,
        AnswerStyle::ChatVendor => chat::answer(run, &found).await?,
        AnswerStyle::React => react::answer(run, &found).await?,
    };
    run.emitter.end_text().await;
    if run.emitter.answer().trim().is_empty() {
        let Some(limit) = explain(finish_reason) else { return Err(run.empty(finish_reason)) };
        run.emitter.text(&limit).await;
        run.emitter.end_text().await;
        return Ok(RunAnswer { is_unanswered: true, ..run.ended(finish_reason, &[]).await });
    }
    let (answer, sources) = (run.emitter.citing().to_owned(), run.sources.all().to_vec());
    let question = run.setup.question.clone();
    let cited = run
        .compute
        .run(move || {
            let sources: Vec<_> = sources.iter().map(NumberedSource::citable).collect();
            cite::cite(&question, &answer, &sources, &|claim, passage| best_sentence(claim, passage))
        })
        .await?;
    Ok(run.ended(finish_reason, &cited).await)
}

/// What is answered when a limit left nothing else to say.
fn explain(reason: TerminationReason) -> Option<String> {
    let limit = match reason {
        TerminationReason::MaxIterations => "its limit of steps",
        TerminationReason::MaxTime => "its limit of time",
        TerminationReason::MaxTokens => "its limit of tokens",
        TerminationReason::MaxCost => "its limit of cost",
        TerminationReason::Stop
        | TerminationReason::Length
        | TerminationReason::Unformatted
        | TerminationReason::ReturnDirect
        | TerminationReason::Extractive
        | TerminationReason::Declined
        | TerminationReason::Error => return None,
    };
    Some(format!("There is no answer: the agent reached {limit} before it had one."))
}
