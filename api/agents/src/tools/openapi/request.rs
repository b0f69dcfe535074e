//! The request of an operation, made from what a model gives.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::{Url, form_urlencoded};

use super::{
    super::{
        ToolError,
        arguments::{ArgumentErrors, TypeStrictness},
        encode::{component, decode},
        http::{ServiceRequest, join},
    },
    operation::{OpenApiOperation, OperationBody, OperationParameter, ParameterLocation, ParameterStyle},
};

/// Longest address, in bytes.
const ADDRESS: usize = 16 * 1024;
/// Longest form, in bytes, as long as nothing of it is encoded.
const FORM: usize = 1024 * 1024;

/// Makes the request.
///
/// # Errors
/// [`ToolError::Arguments`] for arguments that are not what the operation takes.
pub(super) fn build(
    operation: &OpenApiOperation,
    schema: &Value,
    server: &Url,
    own: &HeaderMap,
    arguments: &Map<String, Value>,
) -> Result<ServiceRequest, ToolError> {
    check(schema, arguments)?;
    let mut path = operation.path.clone();
    let mut query = Vec::new();
    let mut headers = HeaderMap::new();
    for parameter in &operation.parameters {
        let value = arguments.get(parameter.place.group()).and_then(|group| group.get(&parameter.name));
        let value = value.filter(|value| !value.is_null());
        match (parameter.place, value) {
            (ParameterLocation::Path, value) => fill(&mut path, parameter, value)?,
            (_, None) => {}
            (ParameterLocation::Query, Some(value)) => query.extend(pairs(parameter, value)?),
            (ParameterLocation::Header, Some(value)) => {
                let (Ok(name), Ok(text)) = (
                    HeaderName::from_bytes(parameter.name.trim().as_bytes()),
                    HeaderValue::from_str(&joined(parameter.style, value, str::to_owned)),
                ) else {
                    return Err(wrong(parameter, "must be plain text in one line"));
                };
                headers.insert(name, text);
            }
        }
    }
    if has_dots(&path) {
        return Err(ToolError::Arguments("the values in `path` must not be `.` or `..`.".to_owned()));
    }
    let mut url = join(server, &path);
    if !query.is_empty() {
        url.set_query(Some(&query.join("&")));
    }
    if url.as_str().len() > ADDRESS {
        return Err(too_long());
    }
    let mut ask = ServiceRequest::new(operation.method.clone(), url);
    if let Some(body) = &operation.body
        && let Some(value) = arguments.get("body").filter(|value| !value.is_null())
    {
        ask.body = Some(write(body, value)?.into());
        if let Ok(kind) = HeaderValue::from_str(&body.media_type) {
            headers.insert(CONTENT_TYPE, kind);
        }
    }
    // The owner's win over whatever a model gives.
    for (name, value) in own {
        headers.insert(name, value.clone());
    }
    ask.headers = headers;
    ask.accept = "application/json, text/*;q=0.9, */*;q=0.5";
    Ok(ask)
}

fn check(schema: &Value, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let mut mistakes = ArgumentErrors::default();
    mistakes.object("", schema, arguments, TypeStrictness::Exact);
    for (name, group) in arguments {
        if let Value::Object(group) = group {
            let is_body = name == "body";
            let types = if is_body { TypeStrictness::Exact } else { TypeStrictness::AsText };
            mistakes.object(&format!("{name}."), &schema["properties"][name], group, types);
        }
    }
    mistakes.end()
}

fn wrong(parameter: &OperationParameter, what: &str) -> ToolError {
    ToolError::Arguments(format!("`{}.{}` {what}.", parameter.place.group(), parameter.name))
}

fn too_long() -> ToolError {
    ToolError::Arguments("`path` and `query` are too long.".to_owned())
}

/// The fewest bytes that a value takes in an address or a form: nothing that is encoded gets shorter.
fn least(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len().saturating_sub(1) + items.iter().map(least).sum::<usize>(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + least(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn fill(path: &mut String, parameter: &OperationParameter, value: Option<&Value>) -> Result<(), ToolError> {
    let hole = format!("{{{}}}", parameter.name);
    if !path.contains(&hole) {
        return Ok(());
    }
    if value.is_some_and(|value| least(value) > ADDRESS) {
        return Err(too_long());
    }
    let text = value.map(|value| joined(parameter.style, value, component)).unwrap_or_default();
    if text.is_empty() {
        return Err(wrong(parameter, "must not be empty"));
    }
    // The same may stand in many places.
    let holes = path.matches(&hole).count();
    if path.len() - holes * hole.len() + holes * text.len() > ADDRESS {
        return Err(too_long());
    }
    *path = path.replace(&hole, &text);
    Ok(())
}

/// Whether a part of the path would be taken for a step up or none at all.
fn has_dots(path: &str) -> bool {
    path.split(['/', '\\']).any(|segment| matches!(decode(segment).as_str(), "." | ".."))
}

/// A single value as text; what is none, as JSON.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A value in one text, each of its words encoded, and what separates them not.
fn joined(style: ParameterStyle, value: &Value, encode: impl Fn(&str) -> String) -> String {
    let (with, pairs) = match style {
        ParameterStyle::Joined { with, pairs } => (with, pairs),
        ParameterStyle::Json => return encode(&value.to_string()),
        ParameterStyle::Repeated | ParameterStyle::Deep => (',', false),
    };
    let words: Vec<_> = match value {
        Value::Array(items) => items.iter().map(|item| encode(&word(item))).collect(),
        Value::Object(members) if pairs => {
            members.iter().map(|(name, value)| format!("{}={}", encode(name), encode(&word(value)))).collect()
        }
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| [encode(name), encode(&word(value))]).collect()
        }
        one => vec![encode(&word(one))],
    };
    // A space has no place in an address.
    let with = if with == ',' { ",".to_owned() } else { encode(with.encode_utf8(&mut [0; 4])) };
    words.join(&with)
}

/// The pairs of a query that a value makes, unless they are longer than an address may be.
fn pairs(parameter: &OperationParameter, value: &Value) -> Result<Vec<String>, ToolError> {
    let name = component(&parameter.name);
    let names = match (parameter.style, value) {
        (ParameterStyle::Repeated | ParameterStyle::Deep, Value::Array(items)) => items.len(),
        (ParameterStyle::Deep, Value::Object(members)) => members.len(),
        (ParameterStyle::Repeated, Value::Object(_)) => 0,
        _ => 1,
    };
    if names.saturating_mul(name.len()).saturating_add(least(value)) > ADDRESS {
        return Err(too_long());
    }
    let pair = |value: &Value| format!("{name}={}", component(&word(value)));
    Ok(match (parameter.style, value) {
        (_, Value::Array(items)) if items.is_empty() => Vec::new(),
        (ParameterStyle::Json | ParameterStyle::Joined { .. }, value) => {
            vec![format!("{name}={}", joined(parameter.style, value, component))]
        }
        (ParameterStyle::Repeated | ParameterStyle::Deep, Value::Array(items)) => {
            items.iter().map(pair).collect()
        }
        (ParameterStyle::Repeated, Value::Object(members)) => members
            .iter()
            .map(|(member, value)| format!("{}={}", component(member), component(&word(value))))
            .collect(),
        (ParameterStyle::Deep, Value::Object(members)) => members
            .iter()
            .map(|(member, value)| format!("{name}[{}]={}", component(member), component(&word(value))))
            .collect(),
        (ParameterStyle::Repeated | ParameterStyle::Deep, one) => vec![pair(one)],
    })
}

fn write(body: &OperationBody, value: &Value) -> Result<String, ToolError> {
    let Some(styles) = &body.form else { return Ok(value.to_string()) };
    let Value::Object(fields) = value else {
        return Err(ToolError::Arguments("`body` must be an object.".to_owned()));
    };
    // The name of a field stands before each of its items.
    let least = |(name, value): (&String, &Value)| {
        name.len().saturating_mul(value.as_array().map_or(1, Vec::len)).saturating_add(least(value))
    };
    if fields.iter().map(least).fold(0, usize::saturating_add) > FORM {
        return Err(ToolError::Arguments("`body` is too long for a form.".to_owned()));
    }
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let style = styles
            .iter()
            .find(|(known, _)| known == name)
            .map_or(ParameterStyle::Repeated, |(_, style)| *style);
        match (style, value) {
            (ParameterStyle::Joined { with, .. }, Value::Array(items)) => {
                let words: Vec<_> = items.iter().map(word).collect();
                form.append_pair(name, &words.join(with.encode_utf8(&mut [0; 4])));
            }
            (_, Value::Array(items)) => {
                for item in items {
                    form.append_pair(name, &word(item));
                }
            }
            (_, one) => drop(form.append_pair(name, &word(one))),
        }
    }
    Ok(form.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{document::OpenApiDocument, operation::FoundOperation, schema::SchemaCopier},
        *,
    };

    fn read(path: &str, parameters: &Value) -> OpenApiOperation {
        only_one(&json!({path: {"get": {"parameters": parameters}}}))
    }

    fn only_one(paths: &Value) -> OpenApiOperation {
        let document = json!({"openapi": "3.0.0", "paths": paths});
        let document = OpenApiDocument::read(document.to_string().as_bytes()).ok().unwrap();
        let mut schemas = SchemaCopier::new(&document);
        let found = FoundOperation::all(&document, None).next().unwrap();
        found.read(&document, &mut schemas, &[]).unwrap()
    }

    #[test]
    fn a_path_is_not_filled_beyond_what_an_address_holds() {
        let operation = read(&"/{a}".repeat(400), &json!([]));
        for (value, length) in [
            (json!("x".repeat(39)), 16_000),
            (json!("x".repeat(40)), 1_600),
            (json!(vec![""; 20_000]), 1_600),
        ] {
            let mut path = operation.path.clone();
            let filled = fill(&mut path, &operation.parameters[0], Some(&value));
            assert_eq!((filled.is_err(), path.len()), (length == 1_600, length));
            if let Err(error) = filled {
                assert_eq!(error, too_long());
            }
        }
    }

    #[test]
    fn a_query_is_not_written_beyond_what_an_address_holds() {
        let name = "n".repeat(1_000);
        let operation = read(
            "/",
            &json!([
                {"name": name, "in": "query"},
                {"name": "flat", "in": "query", "explode": false},
                {"name": "json", "in": "query", "content": {"application/json": {}}},
            ]),
        );
        let [repeated, flat, as_json] = &operation.parameters[..] else { panic!() };
        for (parameter, value, pairs_kept) in [
            (repeated, json!(vec![0; 16]), Some(16)),
            (repeated, json!(vec![0; 17]), None),
            (repeated, json!({"a": 1, "b": 2}), Some(2)),
            (flat, json!(vec!["x"; 8_000]), Some(1)),
            (flat, json!(vec!["x"; 9_000]), None),
            (flat, json!(vec![""; 20_000]), None),
            (flat, json!("x".repeat(ADDRESS)), None),
            (as_json, json!({"a": ["x".repeat(ADDRESS)]}), None),
            (as_json, json!({"a": []}), Some(1)),
        ] {
            assert_eq!(pairs(parameter, &value).ok().map(|pairs| pairs.len()), pairs_kept);
        }
        let deep = read("/", &json!([{"name": name, "in": "query", "style": "deepObject"}]));
        let members = |count: usize| Value::Object((0..count).map(|n| (n.to_string(), json!(1))).collect());
        assert_eq!(pairs(&deep.parameters[0], &members(16)).map(|pairs| pairs.len()), Ok(16));
        assert_eq!(pairs(&deep.parameters[0], &members(17)), Err(too_long()));
    }

    #[test]
    fn a_form_is_not_written_beyond_its_bound_however_often_a_name_stands_in_it() {
        let content = json!({"application/x-www-form-urlencoded": {"schema": {"type": "object"}}});
        let operation = only_one(&json!({"/": {"post": {"requestBody": {"content": content}}}}));
        let body = operation.body.unwrap();
        let name = "n".repeat(100_000);
        let form = |count| write(&body, &json!({&name: vec![""; count]})).map(|form| form.len());
        assert_eq!(form(10), Ok(10 * 100_001 + 9));
        assert_eq!(form(11), Err(ToolError::Arguments("`body` is too long for a form.".to_owned())));
    }
}
