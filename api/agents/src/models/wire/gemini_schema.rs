//! JSON Schema as Gemini takes it: a small part of OpenAPI's schema objects. One keyword beyond it makes Gemini reject the
//! whole request, so what it has no word for is left out, and what it wants spelt otherwise is spelt so.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// How deep schemas are followed; beneath, anything goes.
const MAX_DEPTH: usize = 16;

/// Schemas in one tool, references followed; beyond, anything goes.
const MAX_NODES: usize = 2000;

/// Types that one schema may name; there are seven.
const MAX_TYPES: usize = 32;

/// Bytes of all texts in one tool, references followed: a text that is referred to counts each time.
const MAX_BYTES: usize = 256 * 1024;

/// Values that one schema may list as such: models refuse the whole request for lists that are much longer.
const MAX_VALUES: usize = 100;

/// Keywords that stay as they are, if they are texts.
const KEPT_TEXTS: [&str; 2] = ["title", "description"];

/// The same if they are numbers.
const KEPT_NUMBERS: [&str; 4] = ["minItems", "maxItems", "minimum", "maximum"];

/// A tool's parameters; none if there is no parameter to describe.
pub(super) fn reduced(schema: &Value) -> Option<Value> {
    let mut reducer = SchemaReducer { root: schema, nodes: 0, bytes: 0 };
    let reduced = reducer.schema(schema, 0);
    (reduced["type"] == "OBJECT" && reduced["properties"].is_object()).then_some(reduced)
}

struct SchemaReducer<'a> {
    root: &'a Value,
    nodes: usize,
    bytes: usize,
}

impl<'a> SchemaReducer<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.nodes += 1;
        let schema = self.resolved(schema);
        let Some(fields) = schema.as_object().filter(|_| depth < MAX_DEPTH && self.nodes < MAX_NODES) else {
            return json!({"type": "STRING"});
        };
        let mut out = Map::new();
        for keyword in KEPT_TEXTS {
            if let Some(text) = fields.get(keyword).and_then(Value::as_str)
                && self.affords(text.len())
            {
                out.insert(keyword.to_owned(), json!(text));
            }
        }
        for keyword in KEPT_NUMBERS {
            if let Some(number) = fields.get(keyword).filter(|value| value.is_number()) {
                out.insert(keyword.to_owned(), number.clone());
            }
        }
        let mut nullable = fields.get("nullable") == Some(&Value::Bool(true));
        let (types, null) = types(fields);
        nullable |= null;
        let choices = ["anyOf", "oneOf"].iter().find_map(|name| fields.get(*name)?.as_array());
        if let Some(choices) = choices.filter(|_| types.len() != 1) {
            nullable |= self.choice(choices, &mut out, depth);
        } else if types.len() > 1 {
            let any: Vec<Value> = types.iter().map(|name| plain(name)).collect();
            out.insert("anyOf".to_owned(), Value::Array(any));
        } else {
            let name = types.first().copied().unwrap_or_else(|| implied(fields));
            self.typed(name, fields, &mut out, depth);
        }
        if nullable {
            out.insert("nullable".to_owned(), json!(true));
        }
        Value::Object(out)
    }

    /// The alternatives; whether null is one of them.
    fn choice(&mut self, choices: &'a [Value], out: &mut Map<String, Value>, depth: usize) -> bool {
        let is_null = |choice: &&Value| choice["type"] == "null";
        let null = choices.iter().any(|choice| is_null(&choice));
        let mut rest = Vec::new();
        for choice in choices.iter().filter(|choice| !is_null(choice)) {
            if self.nodes >= MAX_NODES {
                break;
            }
            rest.push(self.schema(choice, depth + 1));
        }
        match (rest.len(), rest.pop()) {
            (1, Some(Value::Object(only))) => {
                for (name, value) in only {
                    out.entry(name).or_insert(value);
                }
            }
            (_, Some(last)) => {
                rest.push(last);
                out.insert("anyOf".to_owned(), Value::Array(rest));
            }
            (_, None) => {
                out.insert("type".to_owned(), json!("STRING"));
            }
        }
        null
    }

    fn typed(
        &mut self,
        name: &str,
        fields: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) {
        out.insert("type".to_owned(), json!(name.to_ascii_uppercase()));
        let format = fields.get("format").and_then(Value::as_str).filter(|format| match name {
            "string" => *format == "date-time",
            "number" => matches!(*format, "float" | "double"),
            "integer" => matches!(*format, "int32" | "int64"),
            _ => false,
        });
        if let Some(format) = format {
            out.insert("format".to_owned(), json!(format));
        }
        match name {
            "object" => self.object(fields, out, depth),
            "array" => {
                let items = fields.get("items").or_else(|| fields.get("prefixItems"));
                let items = match items {
                    Some(Value::Array(places)) => places.first(),
                    items => items,
                };
                let items = items.map_or_else(|| plain("string"), |items| self.schema(items, depth + 1));
                out.insert("items".to_owned(), items);
            }
            _ => self.values(name, fields, out),
        }
    }

    fn object(&mut self, fields: &'a Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        let mut properties = Map::new();
        // Parts of one object that stand apart belong together.
        let room = MAX_NODES.saturating_sub(self.nodes);
        let parts: Vec<&'a Value> = list(fields, "allOf").take(room).collect();
        self.nodes += parts.len();
        let parts: Vec<&'a Map<String, Value>> =
            parts.into_iter().filter_map(|part| self.resolved(part).as_object()).collect();
        let parts = || std::iter::once(fields).chain(parts.iter().copied());
        for part in parts() {
            let own = part.get("properties").and_then(Value::as_object).into_iter().flatten();
            for (name, property) in own.take(MAX_NODES) {
                if !properties.contains_key(name) && self.affords(name.len()) {
                    properties.insert(name.clone(), self.schema(property, depth + 1));
                }
            }
        }
        let mut seen = HashSet::new();
        let required: Vec<&str> = parts()
            .flat_map(|part| list(part, "required").take(MAX_NODES))
            .filter_map(Value::as_str)
            .filter(|name| properties.contains_key(*name) && seen.insert(*name))
            .collect();
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
        if !properties.is_empty() {
            out.insert("properties".to_owned(), Value::Object(properties));
        }
    }

    /// The values that are allowed. Only texts may be listed as such, and not many; others are told in the description.
    fn values(&mut self, name: &str, fields: &Map<String, Value>, out: &mut Map<String, Value>) {
        let given = match (fields.get("enum").and_then(Value::as_array), fields.get("const")) {
            (Some(values), _) => values.as_slice(),
            (None, Some(value)) => std::slice::from_ref(value),
            (None, None) => return,
        };
        let mut seen = HashSet::new();
        let allowed: Vec<&Value> = given
            .iter()
            .filter(|value| !value.is_null() && **value != "" && seen.insert(value.to_string()))
            .collect();
        let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        if list.is_empty() || !self.affords(list.iter().map(String::len).sum()) {
            return;
        }
        if name == "string" && list.len() <= MAX_VALUES && allowed.iter().all(|value| value.is_string()) {
            out.insert("format".to_owned(), json!("enum"));
            out.insert("enum".to_owned(), json!(allowed));
            return;
        }
        let told = out.get("description").and_then(Value::as_str);
        let told = told.map(|text| format!("{text} ")).unwrap_or_default();
        out.insert("description".to_owned(), json!(format!("{told}One of: {}.", list.join(", "))));
    }

    /// Whether there is room for so many bytes of text, which then count.
    fn affords(&mut self, bytes: usize) -> bool {
        let sum = self.bytes.saturating_add(bytes);
        let room = sum <= MAX_BYTES;
        if room {
            self.bytes = sum;
        }
        room
    }

    /// What a schema refers to within the tool's own; itself if it refers to nothing.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_DEPTH {
            let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
            let Some(found) = target.and_then(|pointer| self.root.pointer(pointer)) else { break };
            schema = found;
        }
        schema
    }
}

/// The types that are named, and whether null is one of them.
fn types(fields: &Map<String, Value>) -> (Vec<&str>, bool) {
    let named: Vec<&str> = match fields.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().take(MAX_TYPES).filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let known = ["object", "array", "string", "number", "integer", "boolean"];
    let mut types: Vec<&str> = Vec::new();
    for name in named.iter().copied().filter(|name| known.contains(name)) {
        if !types.contains(&name) {
            types.push(name);
        }
    }
    (types, named.contains(&"null"))
}

/// What a list under a keyword has; nothing if there is no list.
fn list<'a>(fields: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    fields.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// The type of a schema that names none.
fn implied(fields: &Map<String, Value>) -> &'static str {
    let has = |name| fields.contains_key(name);
    if has("properties") || has("allOf") || has("additionalProperties") {
        "object"
    } else if has("items") || has("prefixItems") {
        "array"
    } else {
        "string"
    }
}

fn plain(name: &str) -> Value {
    let mut schema = json!({"type": name.to_ascii_uppercase()});
    if name == "array" {
        schema["items"] = json!({"type": "STRING"});
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_NODES, MAX_VALUES, reduced};

    #[test]
    fn what_gemini_has_no_word_for_is_left_out() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "required": ["unit", "gone"],
            "properties": {
                "unit": {"type": "string", "enum": ["c", "f", ""], "default": "c", "pattern": "."},
                "when": {"type": ["string", "null"], "format": "date-time"},
                "mail": {"type": "string", "format": "email", "description": "Whom."},
                "days": {"type": "integer", "format": "int32", "minimum": 1, "exclusiveMaximum": 9, "enum": [1, 2]},
                "tags": {"type": "array", "uniqueItems": true, "maxItems": 3},
                "place": {"$ref": "#/$defs/place"},
                "either": {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
                "maybe": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
                "mixed": {"type": ["string", "integer"]},
                "any": {},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "$defs": {"place": {"allOf": [{"$ref": "#/$defs/named"}], "properties": {"lat": {"type": "number"}}},
                      "named": {"properties": {"name": {"type": "string"}}, "required": ["name"]}},
        });
        let place = json!({
            "type": "OBJECT",
            "properties": {"lat": {"type": "NUMBER"}, "name": {"type": "STRING"}},
            "required": ["name"],
        });
        let mut maybe = place.clone();
        maybe["nullable"] = json!(true);
        let expected = json!({
            "type": "OBJECT",
            "required": ["unit"],
            "properties": {
                "unit": {"type": "STRING", "format": "enum", "enum": ["c", "f"]},
                "when": {"type": "STRING", "format": "date-time", "nullable": true},
                "mail": {"type": "STRING", "description": "Whom."},
                "days": {"type": "INTEGER", "format": "int32", "minimum": 1, "description": "One of: 1, 2."},
                "tags": {"type": "ARRAY", "maxItems": 3, "items": {"type": "STRING"}},
                "place": place,
                "either": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}], "nullable": true},
                "maybe": maybe,
                "mixed": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
                "any": {"type": "STRING"},
                "map": {"type": "OBJECT"},
            },
        });
        assert_eq!(reduced(&schema), Some(expected));
    }

    #[test]
    fn values_that_gemini_would_refuse_to_list_are_told() {
        let names = |count: usize| (0..count).map(|n| format!("v{n}")).collect::<Vec<_>>();
        let schema = json!({"type": "object", "properties": {
            "few": {"type": "string", "enum": names(MAX_VALUES)},
            "many": {"type": "string", "enum": names(MAX_VALUES + 1), "description": "Which."},
            "twice": {"type": "string", "enum": ["a", "b", "a"]},
            "mixed": {"type": "string", "enum": ["a", 1, true, null]},
            "number": {"type": "number", "const": 1.5},
            "one": {"const": "x"},
            "empty": {"type": "string", "const": ""},
            "null": {"type": "string", "enum": [null]},
        }});
        let properties = reduced(&schema).unwrap()["properties"].take();
        assert_eq!(properties["few"]["enum"].as_array().map(Vec::len), Some(MAX_VALUES));
        let told = properties["many"]["description"].as_str().unwrap_or_default();
        assert!(told.starts_with("Which. One of: \"v0\", ") && told.ends_with(", \"v100\"."), "{told}");
        assert_eq!(properties["many"].as_object().map(serde_json::Map::len), Some(2), "nothing is listed");
        for (name, expected) in [
            ("twice", json!({"type": "STRING", "format": "enum", "enum": ["a", "b"]})),
            ("mixed", json!({"type": "STRING", "description": "One of: \"a\", 1, true."})),
            ("number", json!({"type": "NUMBER", "description": "One of: 1.5."})),
            ("one", json!({"type": "STRING", "format": "enum", "enum": ["x"]})),
            ("empty", json!({"type": "STRING"})),
            ("null", json!({"type": "STRING"})),
        ] {
            assert_eq!(properties[name], expected, "{name}");
        }
    }

    #[test]
    fn a_tool_without_parameters_has_no_schema() {
        for schema in [json!({}), json!({"type": "object", "properties": {}}), json!(null), json!(true)] {
            assert_eq!(reduced(&schema), None, "{schema}");
        }
    }

    #[test]
    fn schemas_that_refer_to_themselves_come_to_an_end() {
        let schema = json!({
            "type": "object",
            "description": "d".repeat(10_000),
            "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#/properties/c"}},
        });
        let size = reduced(&schema).unwrap().to_string().len();
        assert!(size < 500_000, "{size}");
    }

    #[test]
    fn what_is_said_again_is_said_once() {
        let part = json!({"$ref": "#/$defs/part"});
        let types = ["string", "integer", "null"];
        let schema = json!({
            "type": "object",
            "allOf": vec![part; 200],
            "properties": {"b": {"type": types.repeat(5)}},
            "required": ["b", "b", 1, "gone"],
            "$defs": {"part": {"properties": {"a": {"type": ["string", "string"]}}, "required": vec!["a"; 200]}},
        });
        let expected = json!({
            "type": "OBJECT",
            "required": ["b", "a"],
            "properties": {
                "a": {"type": "STRING"},
                "b": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": true},
            },
        });
        assert_eq!(reduced(&schema), Some(expected));
    }

    #[test]
    fn parts_and_alternatives_count() {
        let parts: Vec<_> =
            (0..3 * MAX_NODES).map(|n| json!({"properties": {(n.to_string()): {}}})).collect();
        let whole = reduced(&json!({"type": "object", "allOf": parts})).unwrap();
        let count = whole["properties"].as_object().unwrap().len();
        assert!((1..=MAX_NODES).contains(&count), "{count}");
        let choice = json!({"anyOf": vec![json!({"type": "string"}); 3 * MAX_NODES]});
        let whole = reduced(&json!({"type": "object", "properties": {"a": choice}})).unwrap();
        let count = whole["properties"]["a"]["anyOf"].as_array().unwrap().len();
        assert!((1..=MAX_NODES).contains(&count), "{count}");
    }
}
