//! Checks what a model wants to call a function with, as far as it can be told without asking the service: what is
//! missing, of the wrong type, or none of the choices. The message says what to send.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{ToolError, text};

/// Most mistakes that are told at once.
const TOLD: usize = 5;
/// Longest text of one of them that comes from arguments or from a document, in characters.
const SHOWN: usize = 80;
/// Most choices that are listed.
const CHOICES: usize = 30;

/// How exactly types are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeStrictness {
    /// As JSON has them.
    Exact,
    /// Texts that read as the right type will do, and the other way round: they are sent as text anyway.
    AsText,
}

/// Holds arguments against the schema of their object.
///
/// # Errors
/// [`ToolError::Arguments`] that names each mistake.
pub(super) fn check(schema: &Value, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let mut mistakes = ArgumentErrors::default();
    mistakes.object("", schema, arguments, TypeStrictness::Exact);
    mistakes.end()
}

/// The text of an argument, or its beginning when it has more than `most` characters.
///
/// # Errors
/// [`ToolError::Arguments`] when it is blank.
pub(super) fn words(arguments: &Map<String, Value>, name: &str, most: usize) -> Result<String, ToolError> {
    let text = arguments.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    if text.is_empty() {
        return Err(ToolError::Arguments(format!("`{name}` must not be empty.")));
    }
    Ok(text.chars().take(most).collect())
}

/// The mistakes found so far.
#[derive(Default)]
pub(super) struct ArgumentErrors(Vec<String>);

impl ArgumentErrors {
    pub(super) fn add(&mut self, mistake: String) {
        self.0.push(mistake);
    }

    /// Holds the members of one object against its schema. `prefix` is the object's own path, with a dot behind it.
    pub(super) fn object(
        &mut self,
        prefix: &str,
        schema: &Value,
        object: &Map<String, Value>,
        types: TypeStrictness,
    ) {
        let properties = schema["properties"].as_object();
        let given = |name: &str| object.get(name).is_some_and(|value| !value.is_null());
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let is_null = object.get(name).is_some_and(Value::is_null);
            if !given(name) && (!is_null || !allows_null(&schema["properties"][name])) {
                let wanted = properties.and_then(|properties| properties.get(name));
                self.add(format!("`{prefix}{name}` is required{}", wanted.map_or_else(String::new, hint)));
            }
        }
        for (name, value) in object {
            match properties.and_then(|properties| properties.get(name)) {
                Some(wanted) if !value.is_null() => self.value(prefix, name, wanted, value, types),
                None if schema["additionalProperties"] == Value::Bool(false) => {
                    let known = properties.map(|all| all.keys().map(String::as_str).collect::<Vec<_>>());
                    let known = known.filter(|known| !known.is_empty());
                    let known = known.map_or_else(|| "none".to_owned(), |known| list(known.into_iter()));
                    let name = text::line(name, SHOWN);
                    self.add(format!("`{prefix}{name}` is unknown; known here: {known}"));
                }
                Some(_) | None => {}
            }
        }
    }

    fn value(&mut self, prefix: &str, name: &str, schema: &Value, value: &Value, types: TypeStrictness) {
        if !fits(schema, value, types) {
            self.add(format!("`{prefix}{name}` must be {}", kinds(schema).unwrap_or_default()));
        } else if let Some(choices) = schema["enum"].as_array()
            && !choices.iter().any(|choice| same(choice, value, types))
        {
            let choices = list(choices.iter().filter(|choice| !choice.is_null()).map(written));
            self.add(format!("`{prefix}{name}` must be one of {choices}"));
        }
    }

    pub(super) fn end(self) -> Result<(), ToolError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let more = self.0.len().saturating_sub(TOLD);
        let mut told = self.0.into_iter().take(TOLD).collect::<Vec<_>>().join("; ");
        if more > 0 {
            told = format!("{told}; and {more} more");
        }
        Err(ToolError::Arguments(told + "."))
    }
}

/// A value as it is written: a text without its quotes.
fn written(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::from)
}

fn list(words: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut words: Vec<_> = words.map(|word| format!("`{}`", text::line(word.as_ref(), SHOWN))).collect();
    if words.len() > CHOICES {
        words.truncate(CHOICES);
        words.push("…".to_owned());
    }
    words.join(", ")
}

/// The types that a schema names.
fn named(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn allows_null(schema: &Value) -> bool {
    named(schema).contains(&"null")
}

fn fits(schema: &Value, value: &Value, types: TypeStrictness) -> bool {
    let named = named(schema);
    named.is_empty() || named.iter().any(|name| is(name, value, types))
}

fn is(name: &str, value: &Value, types: TypeStrictness) -> bool {
    match name {
        "string" => {
            value.is_string()
                || (types == TypeStrictness::AsText && (value.is_number() || value.is_boolean()))
        }
        "boolean" => {
            value.is_boolean()
                || (types == TypeStrictness::AsText && matches!(value.as_str(), Some("true" | "false")))
        }
        "integer" => {
            let whole = |number: f64| number.fract() == 0.0;
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(whole)
                || (types == TypeStrictness::AsText
                    && value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()))
        }
        "number" => {
            let finite = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
            value.is_number() || (types == TypeStrictness::AsText && value.as_str().is_some_and(finite))
        }
        // One value where several may stand is a list of one.
        "array" => value.is_array() || (types == TypeStrictness::AsText && !value.is_object()),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn same(choice: &Value, value: &Value, types: TypeStrictness) -> bool {
    choice == value
        || (types == TypeStrictness::AsText
            && match (choice, value) {
                (Value::String(text), Value::Bool(truth)) | (Value::Bool(truth), Value::String(text)) => {
                    text == if *truth { "true" } else { "false" }
                }
                (Value::String(text), Value::Number(number))
                | (Value::Number(number), Value::String(text)) => text == number.to_string().as_str(),
                _ => false,
            })
}

/// The wanted types in words.
fn kinds(schema: &Value) -> Option<String> {
    let words: Vec<_> = named(schema)
        .into_iter()
        .filter_map(|name| match name {
            "string" => Some("a string"),
            "boolean" => Some("true or false"),
            "integer" => Some("a whole number"),
            "number" => Some("a number"),
            "array" => Some("an array"),
            "object" => Some("an object"),
            _ => None,
        })
        .collect();
    (!words.is_empty()).then(|| words.join(" or "))
}

fn hint(schema: &Value) -> String {
    let members = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let members = list(members);
    match kinds(schema) {
        None => String::new(),
        Some(kinds) if members.is_empty() => format!(": {kinds}"),
        Some(kinds) => format!(": {kinds} with {members}"),
    }
}

/// Whether anything lies deeper than so many objects and arrays within each other.
pub fn is_deeper(value: &Value, levels: usize) -> bool {
    match (value, levels) {
        (Value::Object(_) | Value::Array(_), 0) => true,
        (Value::Object(map), _) => map.values().any(|value| is_deeper(value, levels - 1)),
        (Value::Array(items), _) => items.iter().any(|value| is_deeper(value, levels - 1)),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => false,
    }
}
