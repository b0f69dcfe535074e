//! What a step of a run gave: as traces show it, as a model is told it, and as the filter of the answer has to know it.

use serde_json::{Value, json};

use crate::{answer::filter::AnswerFilter, models::ChatOutcome};

/// Longest observation that a model is given, in characters.
const OBSERVATION: usize = 8_000;

/// What a model answered, as traces show it: its text, or with the calls that it made.
pub(super) fn shown(outcome: &ChatOutcome) -> Value {
    if outcome.tool_calls.is_empty() {
        return json!(outcome.text);
    }
    let calls: Vec<_> = outcome
        .tool_calls
        .iter()
        .map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}))
        .collect();
    json!({"text": outcome.text, "toolCalls": calls})
}

/// What a model gives a tool, as the tool reads it.
pub(super) fn note_tool_input(filter: &mut AnswerFilter, value: &Value) {
    match value {
        Value::String(text) => filter.note_model_text(text),
        Value::Array(items) => items.iter().for_each(|item| note_tool_input(filter, item)),
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            filter.note_model_text(name);
            note_tool_input(filter, value);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text that is short enough for a model, cut between words where there are any.
pub(super) fn shortened(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(OBSERVATION) else { return text.to_owned() };
    let kept = &text[..end];
    let boundary = kept.rfind(char::is_whitespace).filter(|at| end - at < 400).unwrap_or(end);
    let left = text[boundary..].chars().count();
    format!("{}\n[{left} more characters are left out]", text[..boundary].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_observation_is_cut_between_words_and_says_so() {
        assert_eq!(shortened("short"), "short");
        let words = "word ".repeat(2_000);
        let cut = shortened(&words);
        assert!(cut.starts_with("word word") && cut.contains("word\n["), "{}", &cut[cut.len() - 80..]);
        let kept = cut.split("\n[").next().unwrap().chars().count();
        assert!(kept <= OBSERVATION && kept > OBSERVATION - 400);
        let solid = "ä".repeat(9_000);
        assert!(shortened(&solid).ends_with("ä\n[1000 more characters are left out]"));
    }
}
