//! Filters on metadata as they are written: by keys, and as expressions of comparisons.

use lectern_agents::search::{MetadataCondition, MetadataFilter, MetadataTest};
use serde_json::{Map, Value};

use crate::fields::{FieldRule, JsonFields, is_plain};

/// Most keys of a filter by keys.
pub(super) const KEYS: usize = 20;
/// Most values of a key, or of a comparison.
pub(crate) const VALUES: usize = 100;
/// Most expressions within one another.
pub(crate) const DEPTH: usize = 8;
/// Most conditions of an expression.
pub(crate) const CONDITIONS: usize = 100;
/// Most values of all conditions together: as many as a filter by keys alone can have.
pub(crate) const ALL_VALUES: usize = KEYS * VALUES;
/// The words for comparisons.
pub(crate) const OPERATORS: [&str; 8] = ["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"];

/// What is said of a value that is none. Whoever gives an object means a comparison, as others write it.
const NO_VALUE: &str = "must be a string, number, boolean or null, or an array of these; a comparison is written \
                        {\"key\": …, \"op\": …, \"value\": …} in the place of the whole filter";

/// What is said of a comparison that is not whole. Metadata may have keys of these names.
const NO_COMPARISON: &str = "a comparison is written {\"key\": …, \"op\": …, \"value\": …}, with nothing else beside; so are \
                             conditions on values that are themselves called key, op or value";

/// What is said of something that is joined and is no array.
const NO_FILTERS: &str = "must be an array of filters; a condition on a value of that name is written \
                          {\"key\": …, \"op\": …, \"value\": …}";

/// How expressions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpressionForm {
    /// `{"and": […]}`, `{"key", "op", "value"}`, and filters by keys.
    Native,
    /// `{"type": "and", "filters": […]}`, `{"type": "eq", "key", "value"}`.
    Typed,
}

/// Reads a filter of OpenAI's form.
pub(crate) fn typed(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<MetadataFilter> {
    let filter = fields.get(rule.name)?;
    Some(FilterReader::new(fields, ExpressionForm::Typed).read(rule.name, filter))
}

/// Reads a filter, and notes what is wrong with it by its path.
pub(super) struct FilterReader<'f, 'a> {
    fields: &'f mut JsonFields<'a>,
    form: ExpressionForm,
    conditions: usize,
    values: usize,
}

impl<'f, 'a> FilterReader<'f, 'a> {
    pub(super) fn new(fields: &'f mut JsonFields<'a>, form: ExpressionForm) -> Self {
        Self { fields, form, conditions: 0, values: 0 }
    }

    /// The filter that stands at a path. What is wrong with it is noted, and what is read then is used for nothing.
    pub(super) fn read(&mut self, path: &str, filter: &Value) -> MetadataFilter {
        let read = self.part(path, filter, 1);
        if self.conditions > CONDITIONS {
            self.fields.refuse(path, format_args!("must have at most {CONDITIONS} conditions"));
        } else if self.values > ALL_VALUES {
            self.fields.refuse(path, format_args!("must have at most {ALL_VALUES} values in all conditions"));
        }
        read
    }

    fn part(&mut self, path: &str, filter: &Value, depth: usize) -> MetadataFilter {
        let Value::Object(filter) = filter else {
            return self.refuse(path, "must be an object");
        };
        if depth > DEPTH {
            return self.refuse(path, "is nested too deep: at most 8 within one another");
        }
        match self.form {
            ExpressionForm::Native => self.native(path, filter, depth),
            ExpressionForm::Typed => self.by_type(path, filter, depth),
        }
    }

    fn native(&mut self, path: &str, filter: &Map<String, Value>, depth: usize) -> MetadataFilter {
        let joins: [(&str, Join); 2] = [("and", MetadataFilter::All), ("or", MetadataFilter::Any)];
        for (word, join) in joins {
            let path = format!("{path}.{word}");
            match filter.get(word).filter(|_| filter.len() == 1) {
                // An array of plain values is what a key called so is to have one of.
                Some(Value::Array(parts)) if parts.iter().any(Value::is_object) => {
                    return join(self.parts(&path, parts, depth));
                }
                Some(Value::Object(_)) => return self.refuse(&path, NO_FILTERS),
                Some(_) | None => {}
            }
        }
        let given = |name: &str| filter.get(name);
        match (given("key"), given("op"), given("value")) {
            (Some(key), Some(operator), Some(value)) if filter.len() == 3 => {
                self.comparison(path, "op", key, operator, value)
            }
            // Whoever writes this means a comparison, and would find nothing by keys that are called so.
            (Some(Value::String(_)), Some(Value::String(word)), None)
                if OPERATORS.contains(&word.as_str()) =>
            {
                self.refuse(&format!("{path}.value"), NO_COMPARISON)
            }
            _ => self.by_keys(path, filter),
        }
    }

    fn by_type(&mut self, path: &str, filter: &Map<String, Value>, depth: usize) -> MetadataFilter {
        let word = filter.get("type").unwrap_or(&Value::Null);
        let join: Join = match word.as_str() {
            Some("and") => MetadataFilter::All,
            Some("or") => MetadataFilter::Any,
            Some(_) | None => {
                let given = |name: &str| filter.get(name).unwrap_or(&Value::Null);
                return self.comparison(path, "type", given("key"), word, given("value"));
            }
        };
        let path = format!("{path}.filters");
        match filter.get("filters").and_then(Value::as_array).filter(|parts| !parts.is_empty()) {
            Some(parts) => join(self.parts(&path, parts, depth)),
            None => self.refuse(&path, "must be an array of filters"),
        }
    }

    fn parts(&mut self, path: &str, parts: &[Value], depth: usize) -> Vec<MetadataFilter> {
        if parts.len() > CONDITIONS {
            self.fields.refuse(path, format_args!("must have at most {CONDITIONS} filters"));
            return Vec::new();
        }
        let read = |(at, part): (usize, &Value)| self.part(&format!("{path}.{at}"), part, depth + 1);
        parts.iter().enumerate().map(read).collect()
    }

    /// For each key one value, or several of which one has to be there.
    fn by_keys(&mut self, path: &str, keys: &Map<String, Value>) -> MetadataFilter {
        if keys.len() > KEYS {
            return self.refuse(path, &format!("must have at most {KEYS} keys"));
        }
        let read = |(key, value): (&String, &Value)| {
            let path = format!("{path}.{key}");
            let any_of = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
            if any_of.is_empty() || any_of.len() > VALUES {
                self.fields.refuse(&path, format_args!("must have between 1 and {VALUES} values"));
            }
            if any_of.iter().any(|value| value.is_object() || value.is_array()) {
                self.fields.refuse(&path, NO_VALUE);
            }
            self.condition(key, MetadataTest::AnyOf(any_of))
        };
        MetadataFilter::All(keys.iter().map(read).collect())
    }

    fn comparison(
        &mut self,
        path: &str,
        word: &str,
        key: &Value,
        operator: &Value,
        value: &Value,
    ) -> MetadataFilter {
        let Some(operator) = operator.as_str().filter(|word| OPERATORS.contains(word)) else {
            let joins = if self.form == ExpressionForm::Typed { ", and, or" } else { "" };
            let message = format!("must be one of {}{joins}", OPERATORS.join(", "));
            return self.refuse(&format!("{path}.{word}"), &message);
        };
        let Some(key) = key.as_str() else {
            return self.refuse(&format!("{path}.key"), "must be a string");
        };
        match test_of(operator, value) {
            Ok(test) => self.condition(key, test),
            Err(message) => self.refuse(&format!("{path}.value"), message),
        }
    }

    fn condition(&mut self, key: &str, test: MetadataTest) -> MetadataFilter {
        self.conditions += 1;
        self.values += match &test {
            MetadataTest::AnyOf(values) | MetadataTest::In(values) | MetadataTest::NotIn(values) => {
                values.len()
            }
            MetadataTest::Greater(_)
            | MetadataTest::AtLeast(_)
            | MetadataTest::Less(_)
            | MetadataTest::AtMost(_) => 1,
        };
        MetadataFilter::Condition(MetadataCondition { key: key.to_owned(), test })
    }

    fn refuse(&mut self, path: &str, message: &str) -> MetadataFilter {
        self.fields.refuse(path, message);
        MetadataFilter::default()
    }
}

/// How filters are joined to one.
type Join = fn(Vec<MetadataFilter>) -> MetadataFilter;

/// What a comparison asks of a value, or what is wrong with what it is compared with.
fn test_of(operator: &str, value: &Value) -> Result<MetadataTest, &'static str> {
    let one = || Some(value.clone()).filter(is_plain).ok_or("must be a string, a number or a boolean");
    let ordered =
        || one().and_then(|one| if one.is_boolean() { Err("must be a string or a number") } else { Ok(one) });
    let several = || {
        let values = value.as_array().filter(|values| (1..=VALUES).contains(&values.len()));
        let values = values.filter(|values| values.iter().all(is_plain)).cloned();
        values.ok_or("must be an array of 1 to 100 strings, numbers and booleans")
    };
    Ok(match operator {
        "ne" => MetadataTest::NotIn(vec![one()?]),
        "gt" => MetadataTest::Greater(ordered()?),
        "gte" => MetadataTest::AtLeast(ordered()?),
        "lt" => MetadataTest::Less(ordered()?),
        "lte" => MetadataTest::AtMost(ordered()?),
        "in" => MetadataTest::In(several()?),
        "nin" => MetadataTest::NotIn(several()?),
        _ => MetadataTest::In(vec![one()?]),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields;

    /// The filter that is read of a field `f`, or the paths of what is wrong.
    fn read(form: ExpressionForm, filter: &Value) -> Result<MetadataFilter, Vec<String>> {
        let rule = FieldRule::named("f");
        let body = json!({ "f": filter });
        let read = fields::read(&body, |fields| {
            let given = fields.get(rule.name).unwrap();
            FilterReader::new(fields, form).read(rule.name, given)
        });
        read.map_err(|error| error.fields.into_iter().map(|field| field.path).collect())
    }

    fn condition(key: &str, test: MetadataTest) -> MetadataFilter {
        MetadataFilter::Condition(MetadataCondition { key: key.to_owned(), test })
    }

    #[test]
    fn both_forms_say_the_same() {
        let values = || vec![json!("a"), json!(1), json!(true)];
        let expected = MetadataFilter::All(vec![
            condition("year", MetadataTest::AtLeast(json!(2024))),
            MetadataFilter::Any(vec![
                condition("team", MetadataTest::NotIn(vec![json!("law")])),
                condition("tag", MetadataTest::In(values())),
            ]),
        ]);
        let native = json!({"and": [
            {"key": "year", "op": "gte", "value": 2024},
            {"or": [
                {"key": "team", "op": "ne", "value": "law"},
                {"key": "tag", "op": "in", "value": values()},
            ]},
        ]});
        assert_eq!(read(ExpressionForm::Native, &native).as_ref(), Ok(&expected));
        let typed = json!({"type": "and", "filters": [
            {"type": "gte", "key": "year", "value": 2024},
            {"type": "or", "filters": [
                {"type": "ne", "key": "team", "value": "law"},
                {"type": "in", "key": "tag", "value": values()},
            ]},
        ]});
        assert_eq!(read(ExpressionForm::Typed, &typed), Ok(expected));
    }

    #[test]
    fn a_filter_by_keys_is_read_as_ever() {
        let any_of = |key: &str, values: Vec<Value>| condition(key, MetadataTest::AnyOf(values));
        for (filter, expected) in [
            (json!({}), vec![]),
            (json!({"team": "law"}), vec![any_of("team", vec![json!("law")])]),
            (json!({"and": ["a", null]}), vec![any_of("and", vec![json!("a"), json!(null)])]),
            (json!({"key": "a"}), vec![any_of("key", vec![json!("a")])]),
            (json!({"and": "x"}), vec![any_of("and", vec![json!("x")])]),
            (
                json!({"key": "a", "value": 1}),
                vec![any_of("key", vec![json!("a")]), any_of("value", vec![json!(1)])],
            ),
            (
                json!({"key": 1, "op": "eq"}),
                vec![any_of("key", vec![json!(1)]), any_of("op", vec![json!("eq")])],
            ),
        ] {
            let expected = MetadataFilter::All(expected);
            assert_eq!(read(ExpressionForm::Native, &filter), Ok(expected), "{filter}");
        }
        let nested = json!({"or": [{"team": "law"}, {"key": "n", "op": "lt", "value": 3}]});
        let expected = MetadataFilter::Any(vec![
            MetadataFilter::All(vec![any_of("team", vec![json!("law")])]),
            condition("n", MetadataTest::Less(json!(3))),
        ]);
        assert_eq!(read(ExpressionForm::Native, &nested), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        use ExpressionForm::{Native, Typed};

        for (form, filter, path) in [
            (Native, json!("x"), "f"),
            (Native, json!({"key": "n", "op": "like", "value": 3}), "f.op"),
            (Native, json!({"key": 1, "op": "eq", "value": 3}), "f.key"),
            (Native, json!({"key": "year", "op": "gte"}), "f.value"),
            (Native, json!({"or": {"a": 1}}), "f.or"),
            (Native, json!({"and": [{"a": 1}, 2]}), "f.and.1"),
            (Native, json!({"a": {"b": 1}}), "f.a"),
            (Native, json!({"a": []}), "f.a"),
            (Typed, json!({}), "f.type"),
            (Typed, json!({"type": "eq", "value": 1}), "f.key"),
            (Typed, json!({"type": "eq", "key": "n"}), "f.value"),
            (Typed, json!({"type": "eq", "key": "n", "value": [1]}), "f.value"),
            (Typed, json!({"type": "gt", "key": "n", "value": true}), "f.value"),
            (Typed, json!({"type": "in", "key": "n", "value": 1}), "f.value"),
            (Typed, json!({"type": "nin", "key": "n", "value": []}), "f.value"),
            (Typed, json!({"type": "and"}), "f.filters"),
            (
                Typed,
                json!({"type": "or", "filters": [{"type": "lt", "key": "n", "value": null}]}),
                "f.filters.0.value",
            ),
        ] {
            assert_eq!(read(form, &filter).unwrap_err(), [path], "{filter}");
        }
    }

    #[test]
    fn whoever_gives_an_operator_as_a_value_learns_how_comparisons_are_written() {
        let body = json!({"f": {"a": {"gt": 1}}});
        let read = fields::read(&body, |fields| {
            let given = fields.get("f").unwrap();
            FilterReader::new(fields, ExpressionForm::Native).read("f", given)
        });
        assert!(read.unwrap_err().fields[0].message.contains("\"op\""));
    }

    #[test]
    fn expressions_have_a_depth_and_a_number_of_conditions() {
        let one = || json!({"type": "eq", "key": "n", "value": 1});
        let nested =
            |deep: usize| (1..deep).fold(one(), |inner, _| json!({"type": "and", "filters": [inner]}));
        assert!(read(ExpressionForm::Typed, &nested(DEPTH)).is_ok());
        assert!(read(ExpressionForm::Typed, &nested(DEPTH + 1)).is_err());
        let many = |count: usize| json!({"type": "or", "filters": vec![one(); count]});
        assert!(read(ExpressionForm::Typed, &many(CONDITIONS)).is_ok());
        assert!(read(ExpressionForm::Typed, &many(CONDITIONS + 1)).is_err());
        let spread = json!({"type": "or", "filters": [many(60), many(60)]});
        assert_eq!(read(ExpressionForm::Typed, &spread).unwrap_err(), ["f"]);
    }

    #[test]
    fn all_conditions_together_have_a_number_of_values() {
        const MOST: usize = ALL_VALUES / VALUES;

        let values = |count: usize| vec![json!("2026-01-31"); count];
        let by_type = |counts: &[usize]| {
            let each = counts.iter().map(|count| json!({"type": "nin", "key": "n", "value": values(*count)}));
            read(ExpressionForm::Typed, &json!({"type": "and", "filters": each.collect::<Vec<_>>()}))
        };
        assert!(by_type(&[VALUES; MOST]).is_ok());
        assert!(by_type(&[VALUES / 2; 2 * MOST]).is_ok());
        assert_eq!(by_type(&[&[VALUES; MOST][..], &[1]].concat()).unwrap_err(), ["f"]);
        let keys: Map<_, _> = (0..KEYS).map(|key| (format!("key {key}"), json!(values(VALUES)))).collect();
        assert!(read(ExpressionForm::Native, &json!(keys)).is_ok(), "by keys alone so many are allowed");
        let one = json!({"key": "n", "op": "lt", "value": 3});
        assert_eq!(read(ExpressionForm::Native, &json!({"or": [keys, one]})).unwrap_err(), ["f"]);
    }
}
