//! Which documents a search is about, told by their metadata.

use std::{cmp::Ordering, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Number, Value};

/// Metadata conditions, all of which a document must meet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataFilter {
    /// The conditions; any document meets none.
    pub conditions: Vec<MetadataCondition>,
}

/// A condition on one value of a document's metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataCondition {
    /// The value's key.
    pub key: String,
    /// The value must be one of these, or a list that contains one of them. `null` stands for a missing one too.
    pub any_of: Vec<Value>,
}

impl MetadataFilter {
    /// Whether every document meets it.
    pub(crate) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether a document with this metadata, an object in JSON, meets it.
    ///
    /// # Errors
    /// When it is not that.
    pub(crate) fn meets(&self, metadata: Option<&str>) -> serde_json::Result<bool> {
        let conditions = &*self.conditions;
        let Some(metadata) = metadata else {
            return Ok(conditions.iter().all(MetadataCondition::meets_none));
        };
        let mut reader = serde_json::Deserializer::from_str(metadata);
        let met = FilterSeed { conditions }.deserialize(&mut reader)?;
        reader.end()?;
        Ok(met)
    }
}

impl MetadataCondition {
    fn meets(&self, value: &Value) -> bool {
        let is_wanted = |value: &Value| self.any_of.iter().any(|wanted| equal(value, wanted));
        match value {
            Value::Array(values) => values.iter().any(is_wanted),
            value => is_wanted(value),
        }
    }

    fn meets_none(&self) -> bool {
        self.meets(&Value::Null)
    }
}

/// Reads an object of which only the values are kept, one at a time, that a condition is about.
struct FilterSeed<'a> {
    conditions: &'a [MetadataCondition],
}

impl<'de> DeserializeSeed<'de> for FilterSeed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FilterSeed<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<bool, A::Error> {
        let Self { conditions } = self;
        let mut met: Vec<Option<bool>> = vec![None; conditions.len()];
        while let Some(about) = object.next_key_seed(ConditionKeySeed { conditions })? {
            let Some(key) = about else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            let value: Value = object.next_value()?;
            for (condition, met) in conditions.iter().zip(&mut met).filter(|(c, _)| c.key == key) {
                *met = Some(condition.meets(&value));
            }
        }
        let mut all = conditions.iter().zip(met);
        Ok(all.all(|(condition, met)| met.unwrap_or_else(|| condition.meets_none())))
    }
}

/// Reads a key: the one of the conditions that it is, if it is one.
struct ConditionKeySeed<'a> {
    conditions: &'a [MetadataCondition],
}

impl<'a, 'de> DeserializeSeed<'de> for ConditionKeySeed<'a> {
    type Value = Option<&'a str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for ConditionKeySeed<'a> {
    type Value = Option<&'a str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.conditions.iter().find(|condition| condition.key == key).map(|condition| &*condition.key))
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
        let metadata = metadata.is_object().then(|| metadata.to_string());
        filter(conditions).meets(metadata.as_deref()).unwrap()
    }

    fn filter(conditions: &Value) -> MetadataFilter {
        let conditions = conditions.as_object().unwrap().iter().map(|(key, wanted)| MetadataCondition {
            key: key.clone(),
            any_of: wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]),
        });
        MetadataFilter { conditions: conditions.collect() }
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

    #[test]
    fn keys_and_values_are_what_their_json_stands_for() {
        for (metadata, conditions, expected) in [
            (r#"{"\u0061\"b": "\u00e9\n"}"#, json!({"a\"b": "é\n"}), true),
            (r#"{"": 1}"#, json!({"": 1}), true),
            // A value inside another one is not the document's own.
            (
                r#"{"nested": {"team": "legal"}, "list": [{"team": "legal"}]}"#,
                json!({"team": "legal"}),
                false,
            ),
            (r#"{"nested": {"team": "legal"}, "list": [{"team": "legal"}]}"#, json!({"team": null}), true),
            // Of a key that is there twice the last value counts.
            (r#"{"team": "sales", "team": "legal"}"#, json!({"team": "legal"}), true),
            (r#"{"team": "legal", "team": "sales"}"#, json!({"team": "legal"}), false),
        ] {
            assert_eq!(
                filter(&conditions).meets(Some(metadata)).unwrap(),
                expected,
                "{metadata} {conditions}"
            );
        }
    }

    #[test]
    fn what_is_no_object_cannot_be_judged() {
        for metadata in ["", "[]", "1", "null", "{", r#"{"a": 1} {"#, r#"{"a" 1}"#, r#"{"a": }"#] {
            assert!(filter(&json!({"b": null})).meets(Some(metadata)).is_err(), "{metadata}");
        }
    }
}
