//! Agents that call functions: the model answers, or wants tools called and is told what they said.

use lectern_shared::model::run::TerminationReason;
use serde_json::{Value, json};

use super::{
    agent_run::{AgentRun, CallObservation, RequestedCall, StepOutcome},
    instructions,
};
use crate::{
    AgentError,
    models::{ChatMessage, FinishReason, ToolCall, ToolSpec},
    tools::is_deeper,
};

/// Deepest arguments of a call, in objects and arrays within each other.
const DEEPEST: usize = 32;

/// What is said to a call that was cut off: what is there of it may be another one.
const CUT: &str =
    "Your answer was cut off before the calls were complete. Make them again, with less in them.";

/// What is said to a model whose call its provider could not read: it ends without a word and for no usual reason.
const LOST: &str =
    "Nothing of your last answer arrived: if it was a function call, its form was not valid. Answer again.";

/// Runs until the model has answered; why that ended.
pub(super) async fn answer(run: &mut AgentRun<'_>, found: &[usize]) -> Result<TerminationReason, AgentError> {
    let mut messages = conversation(run, found);
    let mut shown = 0;
    let mut was_lost = false;
    let tools: Vec<ToolSpec> = run
        .setup
        .functions
        .iter()
        .map(|offered| ToolSpec {
            name: offered.name.clone(),
            description: offered.description.clone(),
            parameters: offered.parameters.clone(),
        })
        .collect();
    loop {
        let mut request = run.request(&messages);
        request.tools.clone_from(&tools);
        let appended = show(&messages[shown..]);
        shown = messages.len() + 1;
        run.emitter.begin_turn();
        let outcome = match run.ask(&request, appended, true).await? {
            StepOutcome::Over(reason) => return Ok(reason),
            StepOutcome::Said(outcome) => outcome,
        };
        let is_lost = outcome.finish_reason == FinishReason::Other && outcome.text.trim().is_empty();
        if outcome.tool_calls.is_empty() && is_lost && !std::mem::replace(&mut was_lost, true) {
            messages.push(ChatMessage::User(LOST.to_owned()));
            // Nothing of the model's stands before it.
            shown -= 1;
            continue;
        }
        if outcome.tool_calls.is_empty() {
            let reason = match outcome.finish_reason {
                FinishReason::Length => run.length_reason(),
                FinishReason::Stop
                | FinishReason::ToolCalls
                | FinishReason::ContentFilter
                | FinishReason::Other => TerminationReason::Stop,
            };
            // What is left of a run's tokens can be used up by thoughts: that is a limit like any other.
            if outcome.text.trim().is_empty() && reason != TerminationReason::MaxTokens {
                return Err(run.empty(reason));
            }
            return Ok(reason);
        }
        let is_cut = outcome.finish_reason == FinishReason::Length;
        let wanted = outcome.tool_calls.iter().map(|call| requested_call(run, call, is_cut)).collect();
        let observed = run.call(wanted).await?;
        if let Some(answer) = observed.iter().find_map(|observed| observed.is_answer.as_ref()) {
            run.emitter.begin_turn();
            run.emitter.verbatim(answer).await;
            return Ok(TerminationReason::ReturnDirect);
        }
        let results: Vec<_> = outcome
            .tool_calls
            .iter()
            .zip(observed)
            .map(|(call, CallObservation { text, .. })| ChatMessage::Tool {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: text,
            })
            .collect();
        messages.push(ChatMessage::Assistant { text: outcome.text, tool_calls: outcome.tool_calls });
        messages.extend(results);
    }
}

/// The conversation up to the question.
pub(super) fn conversation(run: &AgentRun<'_>, found: &[usize]) -> Vec<ChatMessage> {
    let setup = run.setup;
    let mut messages = vec![ChatMessage::System(instructions::system(setup, &run.sources, found))];
    if !setup.prompt.as_ref().is_some_and(|prompt| prompt.holds_history) {
        for (question, answer) in &setup.history {
            // Callers tell turns of which one half is missing, and providers refuse a message without a word.
            if !question.trim().is_empty() {
                messages.push(ChatMessage::User(question.clone()));
            }
            if !answer.trim().is_empty() {
                messages.push(ChatMessage::Assistant { text: answer.clone(), tool_calls: Vec::new() });
            }
        }
    }
    messages.push(ChatMessage::User(setup.question.clone()));
    messages
}

/// Messages as traces show them.
pub(super) fn show(messages: &[ChatMessage]) -> Value {
    messages
        .iter()
        .map(|message| match message {
            ChatMessage::System(text) => json!({"role": "system", "content": text}),
            ChatMessage::User(text) => json!({"role": "user", "content": text}),
            ChatMessage::Assistant { text, .. } => json!({"role": "assistant", "content": text}),
            ChatMessage::Tool { call_id, name, content } => {
                json!({"role": "tool", "callId": call_id, "name": name, "content": content})
            }
        })
        .collect()
}

fn requested_call(run: &AgentRun<'_>, call: &ToolCall, is_cut: bool) -> RequestedCall {
    let arguments = call.parse_arguments();
    // What is deeper can be written and not be read again.
    let arguments = arguments.ok().filter(|arguments| !is_deeper(arguments, DEEPEST));
    let shown = arguments.clone().unwrap_or_else(|| json!(call.arguments));
    let plan = run.function(&call.name).and_then(|function| match arguments {
        _ if is_cut => Err(CUT.to_owned()),
        Some(Value::Object(arguments)) => Ok((function, arguments)),
        Some(_) | None => {
            let schema = run.setup.functions.get(function).map(|offered| offered.parameters.to_string());
            let schema = schema.unwrap_or_default();
            Err(format!(
                "The arguments are not a JSON object. Call the tool again with an object of this schema: {schema}"
            ))
        }
    });
    RequestedCall { id: call.id.clone(), name: call.name.clone(), shown, plan }
}
