//! What an agent's prompt takes besides the question, as pages ask for it.

use serde_json::{Map, Value};

/// What the inputs of values are called before the dot; the value's own name stands behind it.
pub(super) const VALUES: &str = "values";

/// A value that goes with a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PromptValue {
    pub(super) name: String,
    /// What was given for it before; empty where nothing was.
    pub(super) text: String,
}

impl PromptValue {
    /// All that a prompt takes, filled in with what was given.
    pub(super) fn all(needed: Vec<String>, given: &Map<String, Value>) -> Vec<Self> {
        let filled_in = |name: String| {
            let text = given.get(&name).map(as_put_in).unwrap_or_default();
            Self { name, text }
        };
        needed.into_iter().map(filled_in).collect()
    }
}

/// A value as it stands in the prompt. Programs send others than texts.
fn as_put_in(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prompts_values_are_filled_in_with_what_was_given_and_nothing_else_is_asked_for() {
        let given = json!({"company": "Fjord & Co", "year": 2026, "other": "x", "none": null});
        let needed = ["year", "company", "place", "none"].map(str::to_owned).to_vec();
        let shown = PromptValue::all(needed, given.as_object().unwrap());
        let shown: Vec<_> = shown.iter().map(|value| (value.name.as_str(), value.text.as_str())).collect();
        assert_eq!(shown, [("year", "2026"), ("company", "Fjord & Co"), ("place", ""), ("none", "")]);
    }
}
