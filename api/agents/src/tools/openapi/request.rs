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
            (ParameterLocation::Query, Some(value)) => query.extend(in_query(parameter, value)?),
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

/// How often the name of a value stands among its pairs.
fn names(style: ParameterStyle, value: &Value) -> usize {
    match (style, value) {
        (ParameterStyle::Repeated | ParameterStyle::Deep, Value::Array(items)) => items.len(),
        (ParameterStyle::Deep, Value::Object(members)) => members.len(),
        (ParameterStyle::Repeated, Value::Object(_)) => 0,
        _ => 1,
    }
}

/// The fewest bytes that the pairs of a value take.
fn least_of_pairs(name: &str, style: ParameterStyle, value: &Value) -> usize {
    names(style, value).saturating_mul(name.len()).saturating_add(least(value))
}

/// The pairs that a value makes in a query or a form, each of their words encoded.
fn pairs(name: &str, style: ParameterStyle, value: &Value, encode: fn(&str) -> String) -> Vec<String> {
    let name = encode(name);
    let pair = |value: &Value| format!("{name}={}", encode(&word(value)));
    match (style, value) {
        (ParameterStyle::Json | ParameterStyle::Joined { .. }, value) => {
            vec![format!("{name}={}", joined(style, value, encode))]
        }
        (ParameterStyle::Repeated | ParameterStyle::Deep, Value::Array(items)) => {
            items.iter().map(pair).collect()
        }
        (ParameterStyle::Repeated, Value::Object(members)) => members
            .iter()
            .map(|(member, value)| format!("{}={}", encode(member), encode(&word(value))))
            .collect(),
        (ParameterStyle::Deep, Value::Object(members)) => members
            .iter()
            .map(|(member, value)| format!("{name}[{}]={}", encode(member), encode(&word(value))))
            .collect(),
        (ParameterStyle::Repeated | ParameterStyle::Deep, one) => vec![pair(one)],
    }
}

/// The pairs of a query that a value makes, unless they are longer than an address may be.
fn in_query(parameter: &OperationParameter, value: &Value) -> Result<Vec<String>, ToolError> {
    let OperationParameter { name, style, .. } = parameter;
    if value.as_array().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    if least_of_pairs(name, *style, value) > ADDRESS {
        return Err(too_long());
    }
    Ok(pairs(name, *style, value, component))
}

/// A word of a form.
fn form_word(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// How a field of a form is written. Where the document does not say it, an object is JSON.
fn style_of_field(styles: &[(String, ParameterStyle)], name: &str, value: &Value) -> ParameterStyle {
    let told = styles.iter().find(|(known, _)| known == name).map(|(_, style)| *style);
    told.unwrap_or(if value.is_object() { ParameterStyle::Json } else { ParameterStyle::Repeated })
}

fn write(body: &OperationBody, value: &Value) -> Result<String, ToolError> {
    let Some(styles) = &body.form else { return Ok(value.to_string()) };
    let Value::Object(fields) = value else {
        return Err(ToolError::Arguments("`body` must be an object.".to_owned()));
    };
    let fields: Vec<_> = fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.as_str(), style_of_field(styles, name, value), value))
        .collect();
    let least = fields.iter().map(|(name, style, value)| least_of_pairs(name, *style, value));
    if least.fold(0, usize::saturating_add) > FORM {
        return Err(ToolError::Arguments("`body` is too long for a form.".to_owned()));
    }
    let form: Vec<_> =
        fields.into_iter().flat_map(|(name, style, value)| pairs(name, style, value, form_word)).collect();
    Ok(form.join("&"))
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
            assert_eq!(in_query(parameter, &value).ok().map(|pairs| pairs.len()), pairs_kept);
        }
        let deep = read("/", &json!([{"name": name, "in": "query", "style": "deepObject"}]));
        let members = |count: usize| Value::Object((0..count).map(|n| (n.to_string(), json!(1))).collect());
        assert_eq!(in_query(&deep.parameters[0], &members(16)).map(|pairs| pairs.len()), Ok(16));
        assert_eq!(in_query(&deep.parameters[0], &members(17)), Err(too_long()));
    }

    fn form(media: &Value) -> OperationBody {
        let content = json!({"application/x-www-form-urlencoded": media});
        only_one(&json!({"/": {"post": {"requestBody": {"content": content}}}})).body.unwrap()
    }

    #[test]
    fn fields_of_a_form_are_written_as_their_styles_say() {
        let body = form(&json!({"encoding": {
            "deep": {"style": "deepObject", "explode": true},
            "form": {"style": "form"},
            "flat": {"style": "form", "explode": false},
            "pipe": {"style": "pipeDelimited"},
            "typed": {"contentType": "application/json"},
        }}));
        for (fields, written) in [
            (json!({"deep": {"from": 1, "to & fro": "x y"}}), "deep[from]=1&deep[to+%26+fro]=x+y"),
            (json!({"form": {"f": 1, "g": true}}), "f=1&g=true"),
            (json!({"flat": {"h": 1, "i": "a,b"}}), "flat=h,1,i,a%2Cb"),
            (json!({"flat": [1, 2], "pipe": ["a", "b"]}), "flat=1,2&pipe=a%7Cb"),
            (json!({"typed": {"a": [1]}}), "typed=%7B%22a%22%3A%5B1%5D%7D"),
            (json!({"untold": {"a": "b c"}}), "untold=%7B%22a%22%3A%22b+c%22%7D"),
            (json!({"untold": ["a", "b & c"]}), "untold=a&untold=b+%26+c"),
            (json!({"deep": null, "untold": [], "one": "é"}), "one=%C3%A9"),
        ] {
            assert_eq!(write(&body, &fields), Ok(written.to_owned()), "{fields}");
        }
    }

    #[test]
    fn a_form_is_not_written_beyond_its_bound_however_often_a_name_stands_in_it() {
        let (name, of_members) = ("n".repeat(100_000), "m".repeat(1_000));
        let body = form(&json!({"encoding": {&of_members: {"style": "deepObject"}}}));
        let length = |fields: Value| write(&body, &fields).map(|form| form.len());
        let too_long = ToolError::Arguments("`body` is too long for a form.".to_owned());
        let items = |count: usize| length(json!({&name: vec![""; count]}));
        assert_eq!(items(10), Ok(10 * 100_001 + 9));
        assert_eq!(items(11).as_ref(), Err(&too_long));
        let members = |count: usize| Value::Object((0..count).map(|n| (n.to_string(), json!(1))).collect());
        let deep = |count: usize| length(json!({&of_members: members(count)}));
        assert!(deep(1_000).is_ok());
        assert_eq!(deep(1_100).as_ref(), Err(&too_long));
    }
}
