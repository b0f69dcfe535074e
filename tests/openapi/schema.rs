//! Whether a value is what a schema says, for the part of JSON Schema that the OpenAPI document is written in. A keyword that
//! is not known here fails the test, so that nothing passes because it was not looked at.

use serde_json::{Map, Value};

/// Says nothing of which values are valid, or what other tests show.
const NOTES: [&str; 10] = [
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "pattern",
];

/// A document in which references are looked up.
#[derive(Clone, Copy)]
pub(super) struct Schemas<'a>(pub(super) &'a Value);

impl<'a> Schemas<'a> {
    /// What a reference of the document points at; the value itself when it is none.
    pub(super) fn resolve(self, value: &'a Value) -> &'a Value {
        match value.get("$ref").and_then(Value::as_str) {
            None => value,
            Some(reference) => {
                let found = reference.strip_prefix('#').and_then(|pointer| self.0.pointer(pointer));
                self.resolve(found.unwrap_or_else(|| panic!("{reference} points nowhere")))
            }
        }
    }

    /// Everything that is wrong with `value`; nothing, when it is as `schema` says. A field that the schema does not have is
    /// wrong too, where the schema has any.
    pub(super) fn problems(self, schema: &'a Value, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(schema, value, "$", true, &mut problems);
        problems
    }

    fn fits(self, schema: &'a Value, value: &Value, closed: bool) -> bool {
        let mut problems = Vec::new();
        self.check(schema, value, "$", closed, &mut problems);
        problems.is_empty()
    }

    fn check(self, schema: &'a Value, value: &Value, at: &str, closed: bool, problems: &mut Vec<String>) {
        let schema = match self.resolve(schema) {
            Value::Object(schema) => schema,
            Value::Bool(true) => return,
            other => panic!("{other} is no schema"),
        };
        let mut wrong = |problem: String| problems.push(format!("{at}: {problem}"));
        for (keyword, expected) in schema {
            let number = || expected.as_f64().expect("a number");
            let count = || usize::try_from(expected.as_u64().expect("a count")).expect("a count");
            let length = || value.as_str().map(|text| text.chars().count());
            let branches = || expected.as_array().expect("schemas").iter();
            let ok = match keyword.as_str() {
                "type" => has_type(expected, value),
                "enum" => expected.as_array().expect("values").contains(value),
                "const" => expected == value,
                "minimum" => value.as_f64().is_none_or(|value| value >= number()),
                "maximum" => value.as_f64().is_none_or(|value| value <= number()),
                "exclusiveMinimum" => value.as_f64().is_none_or(|value| value > number()),
                "minLength" => length().is_none_or(|length| length >= count()),
                "maxLength" => length().is_none_or(|length| length <= count()),
                "minItems" => value.as_array().is_none_or(|items| items.len() >= count()),
                "maxProperties" => value.as_object().is_none_or(|object| object.len() <= count()),
                "maxItems" => value.as_array().is_none_or(|items| items.len() <= count()),
                "oneOf" => branches().filter(|branch| self.fits(branch, value, closed)).count() == 1,
                "anyOf" => branches().any(|branch| self.fits(branch, value, closed)),
                // Each part sees the fields of the others.
                "allOf" => branches().all(|branch| self.fits(branch, value, false)),
                // Below, where the place of a problem is known more exactly.
                "required" | "properties" | "additionalProperties" | "propertyNames" | "items" => true,
                keyword if NOTES.contains(&keyword) => true,
                unknown => panic!("{unknown} is not checked here yet"),
            };
            if !ok {
                wrong(format!("{value} is not what {keyword} asks for: {expected}"));
            }
        }
        if let Value::Object(object) = value {
            self.check_object(schema, object, at, closed, problems);
        }
        if let (Value::Array(items), Some(schema)) = (value, schema.get("items")) {
            for (index, item) in items.iter().enumerate() {
                self.check(schema, item, &format!("{at}[{index}]"), true, problems);
            }
        }
    }

    fn check_object(
        self,
        schema: &'a Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        closed: bool,
        problems: &mut Vec<String>,
    ) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().expect("a name");
            if !object.contains_key(name) {
                problems.push(format!("{at}: {name} is missing"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let other = schema.get("additionalProperties");
        for (name, value) in object {
            let at = format!("{at}.{name}");
            let own = properties.and_then(|properties| properties.get(name));
            match own.or(other) {
                Some(Value::Bool(false)) => problems.push(format!("{at}: is not allowed")),
                Some(schema) => self.check(schema, value, &at, true, problems),
                None if closed && properties.is_some() => problems.push(format!("{at}: is not described")),
                None => {}
            }
        }
    }
}

fn has_type(expected: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().expect("a type's name") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        unknown => panic!("{unknown} is no type"),
    };
    match expected {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}

mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_is_not_as_its_schema_says_is_found_out() {
        let document = json!({"components": {"schemas": {"Tag": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "color": {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 7}]},
                "parents": {"type": "array", "items": {"$ref": "#/components/schemas/Tag"}},
            },
        }}}});
        let schema = json!({"$ref": "#/components/schemas/Tag"});
        let problems = |value: &Value| Schemas(&document).problems(&schema, value).len();
        assert_eq!(problems(&json!({"name": "a", "color": null, "parents": [{"name": "b"}]})), 0);
        for wrong in [
            json!("a"),
            json!({}),
            json!({"name": 1}),
            json!({"name": ""}),
            json!({"name": "a", "color": "#1234567"}),
            json!({"name": "a", "parents": [{"name": "b", "parents": [{}]}]}),
            json!({"name": "a", "colour": "#123456"}),
        ] {
            assert_eq!(problems(&wrong), 1, "{wrong}");
        }
    }
}
