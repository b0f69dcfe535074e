//! Which documents a search is about, told by their metadata.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Metadata conditions, all of which a document must meet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The conditions; any document meets none.
    pub conditions: Vec<Condition>,
}

/// A condition on one value of a document's metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The value's key.
    pub key: String,
    /// The value must be one of these, or a list that contains one of them. `null` stands for a missing one too.
    pub any_of: Vec<Value>,
}

impl Filter {
    /// Whether every document meets it.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether a document with this metadata meets it.
    pub fn meets(&self, metadata: Option<&Map<String, Value>>) -> bool {
        self.conditions.iter().all(|condition| {
            let value = metadata.and_then(|metadata| metadata.get(&condition.key)).unwrap_or(&Value::Null);
            let is_wanted = |value: &Value| condition.any_of.iter().any(|wanted| equal(value, wanted));
            match value {
                Value::Array(values) => values.iter().any(is_wanted),
                value => is_wanted(value),
            }
        })
    }
}

/// Whether two values are the same; numbers are compared by what they are worth, so that `1` is `1.0`.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (a, b) => a == b,
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    // Large whole numbers must not be rounded together.
    if let (Some(a), Some(b)) = (a.as_i128(), b.as_i128()) {
        return a == b;
    }
    let both = a.as_f64().zip(b.as_f64());
    both.is_some_and(|(a, b)| a.total_cmp(&b) == Ordering::Equal || (a == 0.0 && b == 0.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meets(metadata: &Value, conditions: &Value) -> bool {
        let conditions = conditions.as_object().unwrap().iter().map(|(key, wanted)| Condition {
            key: key.clone(),
            any_of: wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]),
        });
        Filter { conditions: conditions.collect() }.meets(metadata.as_object())
    }

    #[test]
    fn a_document_meets_a_filter_when_every_key_has_one_of_its_values() {
        let metadata =
            json!({"team": "legal", "year": 2024, "draft": false, "tags": ["a", "b"], "note": null});
        for (conditions, expected) in [
            (json!({}), true),
            (json!({"team": "legal"}), true),
            (json!({"team": "Legal"}), false),
            (json!({"team": ["sales", "legal"], "year": 2024}), true),
            (json!({"team": "legal", "year": 2023}), false),
            (json!({"year": 2024.0}), true),
            (json!({"year": "2024"}), false),
            (json!({"draft": false}), true),
            (json!({"tags": "b"}), true),
            (json!({"tags": ["c", "d"]}), false),
            (json!({"note": null}), true),
            (json!({"missing": null}), true),
            (json!({"missing": ["x", null]}), true),
            (json!({"missing": "x"}), false),
            (json!({"team": []}), false),
        ] {
            assert_eq!(meets(&metadata, &conditions), expected, "{conditions}");
        }
        assert!(meets(&Value::Null, &json!({"team": null})));
        assert!(!meets(&Value::Null, &json!({"team": "legal"})));
    }

    #[test]
    fn large_whole_numbers_are_told_apart() {
        let metadata = json!({"id": 9_007_199_254_740_993_u64});
        assert!(!meets(&metadata, &json!({"id": 9_007_199_254_740_992_u64})));
        assert!(meets(&metadata, &json!({"id": 9_007_199_254_740_993_u64})));
    }
}
