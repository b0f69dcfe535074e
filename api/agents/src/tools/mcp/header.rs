//! Arguments and names in headers, as the newest revision has them: whoever stands between can see where a call goes
//! without reading it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// How a property of a schema names its header.
const ANNOTATION: &str = "x-mcp-header";
/// What stands before the names of such headers.
const PREFIX: &str = "mcp-param-";
/// Most headers of one tool.
const MOST: usize = 16;

/// Arguments of a tool that go into headers too: where each lies, and its header.
pub(super) type PromotedArguments = Vec<(Vec<String>, HeaderName)>;

/// The arguments of a schema that go into headers.
///
/// # Errors
/// When the schema asks for something that cannot be done: without its headers the server would refuse every call.
pub(super) fn promoted(schema: &Map<String, Value>) -> Result<PromotedArguments, &'static str> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    Ok(found)
}

fn collect(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut PromotedArguments,
) -> Result<(), &'static str> {
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(property) = property.as_object() else { continue };
        path.push(name.clone());
        if let Some(annotation) = property.get(ANNOTATION) {
            let header = header_name(annotation, property)
                .filter(|header| found.len() < MOST && found.iter().all(|(_, taken)| taken != header));
            found.push((path.clone(), header.ok_or("it wants arguments in headers that cannot be sent")?));
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn header_name(annotation: &Value, property: &Map<String, Value>) -> Option<HeaderName> {
    let name = annotation.as_str().filter(|name| !name.is_empty())?;
    let kind = property.get("type").and_then(Value::as_str)?;
    if !matches!(kind, "string" | "integer" | "boolean") {
        return None;
    }
    HeaderName::from_bytes(format!("{PREFIX}{name}").as_bytes()).ok()
}

/// The headers of a call with these arguments.
pub(super) fn of_call(promoted: &PromotedArguments, arguments: &Map<String, Value>) -> HeaderMap {
    let pairs = promoted.iter().filter_map(|(path, header)| {
        let (first, rest) = path.split_first()?;
        let value = rest.iter().try_fold(arguments.get(first)?, |value, name| value.get(name))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((header.clone(), header_text(&text)?))
    });
    pairs.collect()
}

/// A text as the value of a header: as it is, or in base64 where a header could not carry it.
pub(super) fn header_text(text: &str) -> Option<HeaderValue> {
    let outer = |c: char| c == ' ' || c == '\t';
    let is_plain = text.chars().all(|c| (' '..='~').contains(&c))
        && !text.starts_with(outer)
        && !text.ends_with(outer)
        && !text.starts_with("=?base64?");
    let mut value = if is_plain {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text)))
    };
    if let Ok(value) = &mut value {
        value.set_sensitive(true);
    }
    value.ok()
}
