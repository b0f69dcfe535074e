//! The schemas of a server's tools. They go to the model's provider as they are, so one that a provider would refuse must
//! not be among them: it would make every request of the run fail.

use serde_json::{Map, Value, value::RawValue};

use super::{
    super::{arguments::is_deeper, encode},
    raw::{RawMeasure, RawPart},
};

/// Largest schema of one tool, in bytes, and most values in it.
const LARGEST: usize = 64 * 1024;
const VALUES: usize = 4_096;
/// Deepest schema, in objects and arrays within each other.
const DEEPEST: usize = 32;
/// Longest name of an argument.
const NAME: usize = 64;

/// What providers do not take beside an object's properties. Without it more is taken than the server may like, which then
/// says so.
const NOT_AT_THE_TOP: [&str; 9] = ["$schema", "allOf", "anyOf", "oneOf", "not", "enum", "if", "then", "else"];
/// The types that there are.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// A schema that can be told.
pub(super) struct ReadSchema {
    pub(super) map: Map<String, Value>,
    /// The same without white space.
    pub(super) text: String,
    /// About how many values are in it.
    pub(super) values: usize,
}

/// The schema of a tool's arguments as models are told it.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn read(schema: RawPart<'_>) -> Result<ReadSchema, &'static str> {
    let (mut map, values) = match schema.0.filter(|_| schema.is_given()) {
        None => (Map::new(), 1),
        Some(text) => parse(text)?,
    };
    match map.get("type") {
        None => drop(map.insert("type".to_owned(), "object".into())),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("its schema is not one of an object"),
    }
    if ["$ref", "$dynamicRef"].iter().any(|keyword| map.contains_key(*keyword)) {
        return Err("its schema only refers to another one");
    }
    for keyword in NOT_AT_THE_TOP {
        map.shift_remove(keyword);
    }
    check_properties(&mut map)?;
    mend_object(&mut map)?;
    let whole = Value::Object(map);
    check_references(&whole, &whole)?;
    let text = whole.to_string();
    match whole {
        Value::Object(map) if text.len() <= LARGEST => Ok(ReadSchema { map, text, values }),
        _ => Err("its schema is too large"),
    }
}

/// A schema as a tree, and how many values it has. It is measured before that: the tree of what a server may send can be a
/// hundred times as large as its text.
fn parse(text: &RawValue) -> Result<(Map<String, Value>, usize), &'static str> {
    let measure = RawMeasure::of(text);
    if !text.get().starts_with('{') {
        return Err("its schema is not an object");
    }
    if measure.depth > DEEPEST {
        return Err("its schema is too deep");
    }
    if measure.bytes > LARGEST || measure.values > VALUES {
        return Err("its schema is too large");
    }
    match serde_json::from_str(text.get()) {
        Ok(whole) if is_deeper(&whole, DEEPEST) => Err("its schema is too deep"),
        Ok(Value::Object(map)) => Ok((map, measure.values)),
        Ok(_) | Err(_) => Err("its schema is not an object"),
    }
}

/// Checks a schema and all that are in it, and adds what some providers miss.
fn mend(schema: &mut Value) -> Result<(), &'static str> {
    match schema {
        Value::Object(schema) => mend_object(schema),
        Value::Bool(_) => Ok(()),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("its schema holds something that is none")
        }
    }
}

fn mend_object(schema: &mut Map<String, Value>) -> Result<(), &'static str> {
    if schema.get("type").is_some_and(|kind| !is_type(kind)) {
        return Err("its schema names a type that there is not");
    }
    if schema.get("required").is_some_and(|names| !is_texts(names)) {
        return Err("its schema does not say what is required as a list of names");
    }
    let is_wrong = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "$ref" | "$dynamicRef" | "description" | "title" | "format" | "pattern" => !value.is_string(),
        "enum" => value.as_array().is_none_or(Vec::is_empty),
        _ => false,
    };
    if schema.iter().any(is_wrong) {
        return Err("its schema has a keyword of the wrong type");
    }
    let is_array = schema.get("type").is_some_and(|kind| {
        kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
    });
    if is_array && !schema.contains_key("items") {
        schema.insert("items".to_owned(), Value::Object(Map::new()));
    }
    for (keyword, value) in schema.iter_mut() {
        match keyword.as_str() {
            "items"
            | "additionalItems"
            | "unevaluatedItems"
            | "contains"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else" => mend(value)?,
            "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
                let all = value.as_object_mut().ok_or("its schema holds something that is none")?;
                all.values_mut().try_for_each(mend)?;
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let all = value.as_array_mut().filter(|all| !all.is_empty());
                all.ok_or("its schema holds something that is none")?.iter_mut().try_for_each(mend)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_type(kind: &Value) -> bool {
    let is_one = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    is_one(kind) || kind.as_array().is_some_and(|kinds| !kinds.is_empty() && kinds.iter().all(is_one))
}

fn is_texts(names: &Value) -> bool {
    names.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// Only what is in the schema itself may be referred to: nothing else is fetched.
fn check_references(whole: &Value, part: &Value) -> Result<(), &'static str> {
    match part {
        Value::Object(map) => {
            for (keyword, value) in map {
                match (keyword.as_str(), value.as_str()) {
                    ("$ref" | "$dynamicRef", Some(target)) if !is_within(whole, target) => {
                        return Err("its schema refers to something outside of it");
                    }
                    _ => check_references(whole, value)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_references(whole, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn is_within(whole: &Value, target: &str) -> bool {
    let is_schema =
        |pointer: &str| whole.pointer(pointer).is_some_and(|at| at.is_object() || at.is_boolean());
    target.strip_prefix('#').is_some_and(|pointer| is_schema(pointer) || is_schema(&encode::decode(pointer)))
}

fn check_properties(schema: &mut Map<String, Value>) -> Result<(), &'static str> {
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(properties) = properties else { return Err("its arguments are not an object") };
    let is_name = |name: &String| {
        (1..=NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    if properties.keys().all(is_name) {
        Ok(())
    } else {
        Err("its arguments have names that not every model takes")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: &Value) -> Result<Value, &'static str> {
        let text = RawValue::from_string(schema.to_string()).unwrap();
        read(RawPart::from(&*text)).map(|read| {
            assert_eq!(read.text, Value::Object(read.map.clone()).to_string());
            Value::Object(read.map)
        })
    }

    fn with(argument: &Value) -> Value {
        json!({"type": "object", "properties": {"a": argument}})
    }

    #[test]
    fn a_schema_that_is_none_is_refused_wherever_it_lies() {
        for argument in [
            json!(5),
            json!(null),
            json!([]),
            json!({"type": "nonsense"}),
            json!({"type": []}),
            json!({"type": ["string", 7]}),
            json!({"type": "object", "required": "a"}),
            json!({"type": "object", "required": [1]}),
            json!({"type": "object", "properties": []}),
            json!({"type": "array", "items": "string"}),
            json!({"type": "array", "items": {"type": "strin"}}),
            json!({"anyOf": []}),
            json!({"anyOf": [{"type": "string"}, 7]}),
            json!({"enum": "a"}),
            json!({"description": 7}),
            json!({"$ref": 7}),
            json!({"type": "object", "additionalProperties": 1}),
        ] {
            assert!(of(&with(&argument)).is_err(), "{argument}");
        }
        let wrong = json!({"properties": {"a": {"type": "array"}, "b": {"type": "nonsense"}, "c": 5}, "required": "a"});
        assert!(of(&wrong).is_err());
        assert!(of(&json!({"type": "object", "required": "a"})).is_err());
        assert!(of(&json!({"type": "object", "$defs": {"a": 7}})).is_err());
    }

    #[test]
    fn what_providers_take_stays_as_it_is() {
        for argument in [
            json!({}),
            json!(true),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
            json!({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#/properties/a"}]}}),
            json!({"type": "object", "properties": {"type": {"type": "string"}, "$ref": {}}, "required": ["type"]}),
            json!({"type": "object", "additionalProperties": {"type": "number"}}),
        ] {
            assert_eq!(of(&with(&argument)), Ok(with(&argument)));
        }
    }

    #[test]
    fn arrays_get_items() {
        let whole = of(&with(&json!({"type": ["array", "null"]}))).unwrap();
        assert_eq!(whole, with(&json!({"type": ["array", "null"], "items": {}})));
    }

    #[test]
    fn references_are_followed_in_what_is_left_of_the_schema() {
        let mut dangling = with(&json!({"$ref": "#/allOf/0"}));
        dangling["allOf"] = json!([{"type": "string"}]);
        assert_eq!(of(&dangling), Err("its schema refers to something outside of it"));
        let names = json!({"type": "object", "required": [], "properties": {"a": {"$ref": "#/required"}}});
        assert!(of(&names).is_err(), "what it refers to is no schema");
        let mut good = with(&json!({"$ref": "#/$defs/b"}));
        good["$defs"] = json!({"b": {"type": "string"}});
        assert_eq!(of(&good), Ok(good));
        assert!(of(&json!({"$ref": "#/$defs/b", "$defs": {"b": {"type": "object"}}})).is_err());
    }

    #[test]
    fn a_tree_is_made_of_no_more_than_a_model_is_told() {
        let many = json!({"type": "object", "x": vec![json!([]); 5_000]});
        assert_eq!(of(&many), Err("its schema is too large"));
        let deep = (0..40).fold(json!({}), |inner, _| json!([inner]));
        assert_eq!(of(&json!({"type": "object", "x": deep})), Err("its schema is too deep"));
    }
}
