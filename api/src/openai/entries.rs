//! Values by their names that clients keep with something, of which they may keep few and short ones.

use serde_json::{Map, Value};

use crate::fields::{FieldRule, JsonFields, is_plain};

/// The most entries.
const ENTRIES: usize = 16;
/// Longest key, in characters.
const KEY: usize = 64;
/// Longest text, in characters.
const TEXT: usize = 512;

/// Texts.
pub(super) fn metadata(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Map<String, Value>> {
    entries(fields, rule, "must be a string", Value::is_string)
}

/// Texts, numbers and booleans.
pub(super) fn attributes(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Map<String, Value>> {
    entries(fields, rule, "must be a string, a number or a boolean", is_plain)
}

/// What of a document's metadata clients can read as attributes.
pub(super) fn shown_attributes(metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.into_iter().filter(|(_, value)| is_plain(value)).collect()
}

fn entries(
    fields: &mut JsonFields<'_>,
    rule: &FieldRule,
    values: &str,
    is_value: fn(&Value) -> bool,
) -> Option<Map<String, Value>> {
    let entries = fields.object(rule.name)?;
    if entries.len() > ENTRIES {
        fields.refuse(rule.name, format_args!("must have at most {ENTRIES} entries"));
        return None;
    }
    let is_long = |text: &str, longest: usize| text.chars().count() > longest;
    for (key, value) in &entries {
        let path = format!("{}.{key}", rule.name);
        if is_long(key, KEY) {
            fields.refuse(&path, format_args!("must have a key of at most {KEY} characters"));
        }
        if !is_value(value) {
            fields.refuse(&path, values);
        }
        if value.as_str().is_some_and(|text| is_long(text, TEXT)) {
            fields.refuse(&path, format_args!("must have at most {TEXT} characters"));
        }
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::read;

    /// The first field of this metadata that is wrong.
    fn wrong(given: &Value) -> Option<String> {
        let read = read(&json!({ "metadata": given }), |fields| {
            metadata(fields, &FieldRule::named("metadata")).unwrap_or_default()
        });
        read.err().map(|error| error.fields.into_iter().map(|field| field.path).collect())
    }

    #[test]
    fn metadata_holds_few_short_texts() {
        let many = |count: usize| -> Map<String, Value> {
            (0..count).map(|at| (at.to_string(), json!("x"))).collect()
        };
        let text = |length: usize| "x".repeat(length);
        for (given, path) in [
            (json!({"n": 1}), Some("metadata.n")),
            (json!({"t": text(TEXT)}), None),
            (json!({"t": text(TEXT + 1)}), Some("metadata.t")),
            (json!({text(KEY): "x"}), None),
            (json!(many(ENTRIES)), None),
            (json!(many(ENTRIES + 1)), Some("metadata")),
            (json!([]), Some("metadata")),
            (Value::Null, None),
        ] {
            assert_eq!(wrong(&given).as_deref(), path, "{given}");
        }
        assert!(wrong(&json!({text(KEY + 1): "x"})).is_some());
    }
}
