//! Agents that think and act in text: `Thought:`, `Action:`, `Action Input:`, `Observation:`, `Final Answer:`. Only the final
//! answer is for the user, and what it is can be known only when the model has ended: a later one replaces an earlier.

use lectern_shared::model::run::TerminationReason;
use serde_json::{Map, Value, json};

use super::{
    agent_run::{AgentRun, RequestedCall, StepOutcome},
    chat::{conversation, show},
    react_text::{self, ReactDirective, ReactFormatError},
};
use crate::{
    AgentError,
    models::{ChatMessage, FinishReason},
};

/// What is said to an action that was cut off.
const CUT: &str =
    "What you wrote was cut off before the Action Input was complete. Write it again, and shorter.";

/// Runs until there is a final answer; why that ended.
pub(super) async fn answer(run: &mut AgentRun<'_>, found: &[usize]) -> Result<TerminationReason, AgentError> {
    let mut messages = conversation(run, found);
    let mut shown = 0;
    let mut was_wrong = false;
    loop {
        let mut request = run.request(&messages);
        request.stop = react_text::STOP.map(str::to_owned).to_vec();
        let appended = show(&messages[shown..]);
        shown = messages.len() + 1;
        let outcome = match run.ask(&request, appended, false).await? {
            StepOutcome::Over(reason) => return Ok(reason),
            StepOutcome::Said(outcome) => outcome,
        };
        let text = react_text::cut_at_stop(&outcome.text);
        let is_cut = outcome.finish_reason == FinishReason::Length;
        let observation = match react_text::parse(text) {
            Ok(turn) => {
                run.note(&turn.thought);
                was_wrong = false;
                match turn.directive {
                    ReactDirective::Finish(answer) => {
                        run.emitter.text(&answer).await;
                        return Ok(if is_cut { run.length_reason() } else { TerminationReason::Stop });
                    }
                    // Half an input is another input.
                    ReactDirective::Call { .. } if is_cut => CUT.to_owned(),
                    ReactDirective::Call { tool, input } => match act(run, tool, input).await? {
                        ActionOutcome::Answer(answer) => {
                            run.emitter.verbatim(&answer).await;
                            return Ok(TerminationReason::ReturnDirect);
                        }
                        ActionOutcome::Observation(text) => text,
                    },
                }
            }
            // What it could write was used up by thoughts.
            Err(_) if was_wrong && is_cut && text.trim().is_empty() => return Ok(run.length_reason()),
            // A model that does not keep to the format after it was told may still have answered.
            Err(_) if was_wrong => {
                run.emitter.text(&react_text::prose(text)).await;
                return Ok(TerminationReason::Unformatted);
            }
            Err(error) => {
                was_wrong = true;
                run.note(error.code());
                correction(error)
            }
        };
        if text.trim().is_empty() {
            // Providers refuse a message without a word, so nothing of the model's stands before what it is told.
            shown -= 1;
        } else {
            messages
                .push(ChatMessage::Assistant { text: text.trim_end().to_owned(), tool_calls: Vec::new() });
        }
        messages.push(ChatMessage::User(format!("Observation: {observation}")));
    }
}

enum ActionOutcome {
    Observation(String),
    Answer(String),
}

async fn act(run: &mut AgentRun<'_>, tool: String, input: String) -> Result<ActionOutcome, AgentError> {
    let plan = run.function(&tool).and_then(|function| {
        let offered = run.setup.functions.get(function).ok_or_else(String::new)?;
        arguments(&input, &offered.parameters, offered.plain.as_deref())
            .map(|arguments| (function, arguments))
    });
    let id = format!("action_{}", run.steps.len());
    let wanted = RequestedCall { id, name: tool, shown: json!(input), plan };
    let observed = run.call(vec![wanted]).await?.pop();
    Ok(match observed {
        Some(observed) => match observed.is_answer {
            Some(answer) => ActionOutcome::Answer(answer),
            None => ActionOutcome::Observation(observed.text),
        },
        None => ActionOutcome::Observation(String::new()),
    })
}

/// What an action's input stands for: a JSON object with arguments of the function, or text for the one that takes text.
fn arguments(input: &str, parameters: &Value, plain: Option<&str>) -> Result<Map<String, Value>, String> {
    let known = |name: &String| parameters["properties"].get(name).is_some();
    let object = match serde_json::from_str::<Value>(unfenced(input)) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    };
    match (object, plain) {
        (Some(object), None) => Ok(object),
        (Some(object), Some(_)) if object.keys().any(known) => Ok(object),
        (_, Some(plain)) => Ok(Map::from_iter([(plain.to_owned(), json!(input))])),
        (None, None) if input.trim().is_empty() => Ok(Map::new()),
        (None, None) => {
            Err(format!("The Action Input is not a JSON object. Write one of this schema: {parameters}"))
        }
    }
}

/// What stands in a fence that is all there is.
fn unfenced(input: &str) -> &str {
    let inside = || {
        let rest = input.trim().strip_prefix("```")?.strip_suffix("```")?;
        let (_, body) = rest.split_once('\n')?;
        Some(body)
    };
    inside().unwrap_or(input)
}

fn correction(error: ReactFormatError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str, plain: Option<&str>) -> Result<Value, String> {
        let parameters = json!({"type": "object", "properties": {"query": {}, "limit": {}}});
        arguments(input, &parameters, plain).map(Value::Object)
    }

    #[test]
    fn an_input_is_text_or_the_object_that_the_function_takes() {
        for (input, plain, arguments) in [
            ("tide tables", Some("query"), json!({"query": "tide tables"})),
            ("{\"query\": \"a\", \"limit\": 2}", Some("query"), json!({"query": "a", "limit": 2})),
            ("{\"a\": 1}", Some("query"), json!({"query": "{\"a\": 1}"})),
            ("```json\n{\"query\": \"a\"}\n```", None, json!({"query": "a"})),
            ("", None, json!({})),
            ("[1]", Some("query"), json!({"query": "[1]"})),
        ] {
            assert_eq!(read(input, plain), Ok(arguments), "{input}");
        }
        assert!(read("tide tables", None).unwrap_err().contains("JSON object"));
    }
}
