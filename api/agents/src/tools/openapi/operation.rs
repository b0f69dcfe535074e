//! The operations of a document: which there are, and how their requests are made.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use lectern_shared::egress::is_connection_header;
use reqwest::{Method, header::HeaderName};
use serde_json::{Map, Value, json};

use super::{
    super::text,
    document::{OpenApiDocument, OpenApiVersion},
    schema::SchemaCopier,
};

/// Most operations that are offered.
pub(super) const OPERATIONS: usize = 64;
/// Most operations that are looked at for that: some cannot be asked for.
const LOOKED_AT: usize = 1_024;
/// Most parameters of one, and most of what else it lists.
const PARAMETERS: usize = 100;
/// Longest description, in characters.
const DESCRIPTION: usize = 1_000;
/// Longest path, in bytes, and longest name of anything.
const PATH: usize = 2_000;

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Headers that are not for a model to set, besides those of the connection: they say who asks, or would make a request another one than it
/// looks.
const RESERVED: [&str; 13] = [
    "accept",
    "accept-encoding",
    "authorization",
    "content-encoding",
    "content-type",
    "cookie",
    "cookie2",
    "forwarded",
    "user-agent",
    "via",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
}

impl ParameterLocation {
    pub(super) const ALL: [Self; 3] = [Self::Path, Self::Query, Self::Header];

    /// The argument that holds the parameters that go there.
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// How a value that is no single word is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterStyle {
    /// Once for each item or member.
    Repeated,
    /// In one text, with this between; members as `name=value` when `pairs`, else as name and value.
    Joined { with: char, pairs: bool },
    /// Members as `name[member]`.
    Deep,
    /// As JSON.
    Json,
}

#[derive(Debug)]
pub(super) struct OperationParameter {
    pub(super) name: String,
    pub(super) place: ParameterLocation,
    pub(super) style: ParameterStyle,
    required: bool,
    schema: Value,
}

#[derive(Debug)]
pub(super) struct OperationBody {
    pub(super) media_type: String,
    /// How the fields of a form are written, when it is one; those that are not named are repeated.
    pub(super) form: Option<Vec<(String, ParameterStyle)>>,
    required: bool,
    schema: Value,
}

/// An operation, as it is asked for.
#[derive(Debug)]
pub(super) struct OpenApiOperation {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) parameters: Vec<OperationParameter>,
    pub(super) body: Option<OperationBody>,
    /// What names its function.
    pub(super) name: String,
    pub(super) description: String,
}

/// An operation where it stands in its document.
pub(super) struct FoundOperation<'a> {
    method: &'static str,
    path: &'a str,
    pub(super) item: &'a Map<String, Value>,
    pub(super) operation: &'a Map<String, Value>,
}

impl<'a> FoundOperation<'a> {
    /// Those that may be offered: all, or those that are listed by their ids or as `METHOD /path`.
    pub(super) fn all(
        document: &'a OpenApiDocument,
        listed: Option<&[String]>,
    ) -> impl Iterator<Item = Self> {
        document
            .paths()
            .filter(|(path, _)| path.starts_with('/') && path.len() <= PATH)
            .flat_map(|(path, item)| {
                let operations = METHODS.into_iter().filter_map(move |method| {
                    let operation = item.get(method)?.as_object()?;
                    Some(Self { method, path, item, operation })
                });
                operations.collect::<Vec<_>>()
            })
            .filter(move |found| listed.is_none_or(|listed| listed.iter().any(|one| found.is(one))))
            .take(LOOKED_AT)
    }

    fn id(&self) -> Option<&'a str> {
        let id = self.operation.get("operationId")?.as_str().filter(|id| id.len() <= PATH)?.trim();
        (!id.is_empty()).then_some(id)
    }

    fn is(&self, name: &str) -> bool {
        let name = name.trim();
        self.id() == Some(name)
            || name.split_once(char::is_whitespace).is_some_and(|(method, path)| {
                method.eq_ignore_ascii_case(self.method) && path.trim() == self.path
            })
    }

    /// How to ask for it; none when it needs something that cannot be sent.
    pub(super) fn read(
        &self,
        document: &'a OpenApiDocument,
        schemas: &mut SchemaCopier<'a>,
        own_headers: &[HeaderName],
    ) -> Option<OpenApiOperation> {
        schemas.next_operation();
        let mut reader = OperationReader { document, schemas, own_headers };
        let declared = self.declared(document);
        let mut parameters = Vec::new();
        for parameter in &declared {
            match reader.parameter(parameter) {
                ReadParameter::Offered(parameter) => parameters.push(parameter),
                ReadParameter::LeftOut => {}
                ReadParameter::Unsendable => return None,
            }
        }
        // What is declared for the path and what is in it need not be the same.
        let holes = path_variables(self.path);
        parameters.retain(|one| one.place != ParameterLocation::Path || holes.contains(&one.name.as_str()));
        for hole in holes {
            if !parameters.iter().any(|one| one.place == ParameterLocation::Path && one.name == hole) {
                parameters.push(OperationParameter {
                    name: hole.to_owned(),
                    place: ParameterLocation::Path,
                    style: ParameterStyle::Joined { with: ',', pairs: false },
                    required: true,
                    schema: json!({"type": "string"}),
                });
            }
        }
        let body = match document.version {
            OpenApiVersion::Two => reader.body_of_two(self.operation, &declared)?,
            OpenApiVersion::Three => match self.operation.get("requestBody") {
                None => None,
                Some(body) => Some(reader.body_of_three(document.follow(body)?)?),
            },
        };
        let words = ["summary", "description"].map(|name| {
            text::line(self.operation.get(name).and_then(Value::as_str).unwrap_or_default(), DESCRIPTION)
        });
        let [summary, description] = words;
        let told = match (summary.is_empty(), description.is_empty() || description == summary) {
            (true, true) => String::new(),
            (true, false) => format!("{description}\n"),
            (false, true) => format!("{summary}\n"),
            (false, false) => format!("{}. {description}\n", summary.trim_end_matches('.')),
        };
        let method = self.method.to_ascii_uppercase();
        Some(OpenApiOperation {
            name: self.id().map_or_else(|| format!("{} {}", self.method, self.path), str::to_owned),
            method: Method::from_bytes(method.as_bytes()).ok()?,
            path: self.path.to_owned(),
            parameters,
            body,
            description: format!("{told}{method} {}", text::line(self.path, PATH)),
        })
    }

    /// Its parameters and those of its path, of which its own win.
    fn declared(&self, document: &'a OpenApiDocument) -> Vec<&'a Map<String, Value>> {
        let (mut declared, mut known) = (Vec::new(), HashSet::new());
        let lists = [self.operation, self.item].map(|list| list.get("parameters").and_then(Value::as_array));
        // Some may be there twice, or lead nowhere; but not most.
        for parameter in lists.into_iter().flatten().flatten().take(4 * PARAMETERS) {
            if declared.len() == PARAMETERS {
                break;
            }
            let Some(parameter) = document.follow(parameter).and_then(Value::as_object) else { continue };
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, place) = (text("name"), text("in"));
            if name.len() <= PATH && place.len() <= PATH && known.insert((name, place)) {
                declared.push(parameter);
            }
        }
        declared
    }
}

/// The names in braces in a path.
fn path_variables(path: &str) -> Vec<&str> {
    let names = path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    names.filter(|name| !name.is_empty()).take(PARAMETERS).collect()
}

/// What becomes of a parameter that is declared.
enum ReadParameter {
    /// A model gives it.
    Offered(OperationParameter),
    /// The operation is asked for without it.
    LeftOut,
    /// The operation needs it, and it cannot be sent.
    Unsendable,
}

struct OperationReader<'a, 's> {
    document: &'a OpenApiDocument,
    schemas: &'s mut SchemaCopier<'a>,
    own_headers: &'s [HeaderName],
}

impl<'a> OperationReader<'a, '_> {
    /// Reads what is declared of a parameter.
    fn parameter(&mut self, parameter: &'a Map<String, Value>) -> ReadParameter {
        let text = |name: &str| parameter.get(name).and_then(Value::as_str);
        let (Some(name), Some(place)) = (text("name"), text("in")) else { return ReadParameter::LeftOut };
        let place = match place {
            "path" => ParameterLocation::Path,
            "query" => ParameterLocation::Query,
            "header" if self.is_offered(name) => ParameterLocation::Header,
            // Cookies are credentials; bodies are read elsewhere.
            _ => return ReadParameter::LeftOut,
        };
        let (style, schema) = match self.document.version {
            OpenApiVersion::Two => (style_of_two(parameter), self.schemas.copy_object(parameter)),
            OpenApiVersion::Three => match parameter.get("content").and_then(Value::as_object) {
                Some(content) => {
                    let schema = content.values().next().and_then(|media| media.get("schema"));
                    (
                        Some(ParameterStyle::Json),
                        schema.map_or_else(|| json!({}), |schema| self.schemas.copy(schema)),
                    )
                }
                None => {
                    let schema = parameter.get("schema");
                    let schema = schema.map_or_else(|| json!({}), |schema| self.schemas.copy(schema));
                    (style_of_three(parameter, place), schema)
                }
            },
        };
        let required =
            place == ParameterLocation::Path || parameter.get("required") == Some(&Value::Bool(true));
        let schema = described(schema, parameter);
        match style {
            Some(style) => ReadParameter::Offered(OperationParameter {
                name: name.to_owned(),
                place,
                style,
                required,
                schema,
            }),
            None if required => ReadParameter::Unsendable,
            None => ReadParameter::LeftOut,
        }
    }

    /// Whether a model may set this header.
    fn is_offered(&self, name: &str) -> bool {
        let Ok(name) = HeaderName::from_bytes(name.trim().as_bytes()) else { return false };
        !self.own_headers.contains(&name)
            && !is_connection_header(&name)
            && !RESERVED.contains(&name.as_str())
            && !["proxy-", "sec-", "x-forwarded-"].iter().any(|start| name.as_str().starts_with(start))
    }

    #[expect(clippy::option_option, reason = "whether it can be sent, and whether there is one")]
    fn body_of_two(
        &mut self,
        operation: &'a Map<String, Value>,
        declared: &[&'a Map<String, Value>],
    ) -> Option<Option<OperationBody>> {
        let consumes = operation.get("consumes").or_else(|| self.document.root().get("consumes"));
        let consumes = consumes.and_then(Value::as_array).into_iter().flatten().take(PARAMETERS);
        let consumes: Vec<_> = consumes.filter_map(Value::as_str).filter(|kind| kind.len() <= PATH).collect();
        let is_in =
            |place: &'static str| move |one: &&&Map<String, Value>| one.get("in") == Some(&place.into());
        if let Some(body) = declared.iter().find(is_in("body")) {
            let media_type = match consumes.iter().find(|kind| is_json(kind)) {
                Some(kind) => essence(kind),
                None if consumes.is_empty() => "application/json".to_owned(),
                None => return None,
            };
            let schema = body.get("schema").map_or_else(|| json!({}), |schema| self.schemas.copy(schema));
            let required = body.get("required") == Some(&Value::Bool(true));
            return Some(Some(OperationBody {
                media_type,
                form: None,
                required,
                schema: described(schema, body),
            }));
        }
        let fields: Vec<_> = declared.iter().filter(is_in("formData")).collect();
        if fields.is_empty() {
            return Some(None);
        }
        if !consumes.is_empty() && !consumes.iter().any(|kind| is_form(kind)) {
            return None;
        }
        let (mut properties, mut required, mut styles) = (Map::new(), Vec::new(), Vec::new());
        for field in fields {
            let name = field.get("name").and_then(Value::as_str)?;
            if field.get("type") == Some(&"file".into()) {
                return None;
            }
            styles.push((name.to_owned(), style_of_two(field)?));
            if field.get("required") == Some(&Value::Bool(true)) {
                required.push(Value::from(name));
            }
            properties.insert(name.to_owned(), described(self.schemas.copy_object(field), field));
        }
        let mut schema = json!({"type": "object", "properties": properties});
        let is_required = !required.is_empty();
        if is_required {
            schema["required"] = required.into();
        }
        let media_type = "application/x-www-form-urlencoded".to_owned();
        Some(Some(OperationBody { media_type, form: Some(styles), required: is_required, schema }))
    }

    fn body_of_three(&mut self, body: &'a Value) -> Option<OperationBody> {
        let content = body.get("content")?.as_object()?;
        let find = |wanted: fn(&str) -> bool| {
            content.iter().take(PARAMETERS).find(|(kind, _)| kind.len() <= PATH && wanted(kind))
        };
        let ((kind, media), is_form) =
            find(is_json).map(|found| (found, false)).or_else(|| find(is_form).map(|found| (found, true)))?;
        let schema = media.get("schema").map_or_else(|| json!({}), |schema| self.schemas.copy(schema));
        let form = is_form.then(|| {
            let encodings = media.get("encoding").and_then(Value::as_object).into_iter().flatten();
            let encodings = encodings.take(PARAMETERS).filter(|(name, _)| name.len() <= PATH);
            let styled = encodings.filter_map(|(name, encoding)| {
                let encoding = encoding.as_object()?;
                let is_styled = encoding.contains_key("style") || encoding.contains_key("explode");
                Some((
                    name.clone(),
                    style_of_three(encoding, ParameterLocation::Query).filter(|_| is_styled)?,
                ))
            });
            styled.collect()
        });
        let required = body.get("required") == Some(&Value::Bool(true));
        let schema = body.as_object().map_or_else(|| schema.clone(), |body| described(schema.clone(), body));
        Some(OperationBody { media_type: essence(kind), form, required, schema })
    }
}

/// A schema with the description of what it is the schema of.
fn described(mut schema: Value, of: &Map<String, Value>) -> Value {
    let words = text::line(of.get("description").and_then(Value::as_str).unwrap_or_default(), DESCRIPTION);
    if !words.is_empty()
        && let Some(schema) = schema.as_object_mut()
    {
        schema.insert("description".to_owned(), words.into());
    }
    schema
}

fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence.contains('*') { "application/json".to_owned() } else { essence }
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(kind.as_str(), "application/json" | "text/json" | "*/*" | "application/*")
        || kind.ends_with("+json")
}

fn is_form(kind: &str) -> bool {
    kind.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

fn style_of_two(parameter: &Map<String, Value>) -> Option<ParameterStyle> {
    let joined = |with| Some(ParameterStyle::Joined { with, pairs: false });
    match parameter.get("collectionFormat").and_then(Value::as_str) {
        None | Some("csv") => joined(','),
        Some("ssv") => joined(' '),
        Some("tsv") => joined('\t'),
        Some("pipes") => joined('|'),
        Some("multi") => Some(ParameterStyle::Repeated),
        Some(_) => None,
    }
}

fn style_of_three(parameter: &Map<String, Value>, place: ParameterLocation) -> Option<ParameterStyle> {
    let default = if place == ParameterLocation::Query { "form" } else { "simple" };
    let style = parameter.get("style").and_then(Value::as_str).unwrap_or(default);
    let explode = parameter.get("explode").and_then(Value::as_bool).unwrap_or(style == "form");
    let joined = |with| {
        Some(if explode { ParameterStyle::Repeated } else { ParameterStyle::Joined { with, pairs: false } })
    };
    match (place, style) {
        (ParameterLocation::Path | ParameterLocation::Header, "simple") => {
            Some(ParameterStyle::Joined { with: ',', pairs: explode })
        }
        (ParameterLocation::Query, "form") => joined(','),
        (ParameterLocation::Query, "spaceDelimited") => joined(' '),
        (ParameterLocation::Query, "pipeDelimited") => joined('|'),
        (ParameterLocation::Query, "deepObject") => Some(ParameterStyle::Deep),
        _ => None,
    }
}

impl OpenApiOperation {
    /// Takes out the schema of the arguments of its function: one object for each place that takes parameters, and the body.
    pub(super) fn arguments(&mut self) -> Value {
        let (mut groups, mut needed) = (Map::new(), Vec::new());
        for place in ParameterLocation::ALL {
            let (mut properties, mut required) = (Map::new(), Vec::new());
            for parameter in self.parameters.iter_mut().filter(|parameter| parameter.place == place) {
                properties.insert(parameter.name.clone(), parameter.schema.take());
                if parameter.required {
                    required.push(Value::from(parameter.name.as_str()));
                }
            }
            if properties.is_empty() {
                continue;
            }
            let mut group =
                json!({"type": "object", "properties": properties, "additionalProperties": false});
            if !required.is_empty() {
                group["required"] = required.into();
                needed.push(Value::from(place.group()));
            }
            groups.insert(place.group().to_owned(), group);
        }
        if let Some(body) = &mut self.body {
            groups.insert("body".to_owned(), body.schema.take());
            if body.required {
                needed.push("body".into());
            }
        }
        let mut arguments = json!({"type": "object", "properties": groups, "additionalProperties": false});
        if !needed.is_empty() {
            arguments["required"] = needed.into();
        }
        arguments
    }
}
