//! Schemas for models: references resolved, cycles and depths cut, and only what says how a value has to look. What the
//! three dialects write differently comes out as JSON Schema.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    super::text,
    document::{OpenApiDocument, reference},
};

/// Deepest schema within schemas.
const DEEPEST: usize = 12;
/// What the schemas of one operation may cost.
const OPERATION: usize = 600;
/// Bytes of text that cost as much as a value.
const BYTES: usize = 32;
/// Longest description within a schema, in characters.
const DESCRIPTION: usize = 400;

/// Keywords whose values are taken as they are.
const PLAIN: [&str; 19] = [
    "type",
    "format",
    "pattern",
    "enum",
    "const",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contentEncoding",
];

/// Copies schemas within a budget: a document can refer to one schema so often that written out it is endless.
pub(super) struct SchemaCopier<'a> {
    document: &'a OpenApiDocument,
    left: usize,
}

impl<'a> SchemaCopier<'a> {
    pub(super) fn new(document: &'a OpenApiDocument) -> Self {
        Self { document, left: 0 }
    }

    /// Begins with another operation.
    pub(super) fn next_operation(&mut self) {
        self.left = OPERATION;
    }

    /// The schema as a model is told it; an empty one, which takes anything, where the budget is used up.
    pub(super) fn copy(&mut self, schema: &'a Value) -> Value {
        self.schema(schema, DEEPEST, &mut Vec::new())
    }

    /// The same for what is described in place, as 2.0 does with parameters: `required` says something else there.
    pub(super) fn copy_object(&mut self, schema: &'a Map<String, Value>) -> Value {
        let mut copy = self.object(schema, DEEPEST, &mut Vec::new());
        copy.remove("required");
        Value::Object(copy)
    }

    fn pay(&mut self, cost: usize) -> bool {
        let paid = cost <= self.left;
        // What is too dear for the rest is the last thing that is tried: the end is the same in every run.
        self.left = if paid { self.left - cost } else { 0 };
        paid
    }

    fn schema(&mut self, schema: &'a Value, depth: usize, trail: &mut Vec<&'a str>) -> Value {
        let Value::Object(map) = schema else { return json!({}) };
        if depth == 0 || !self.pay(1) {
            return json!({});
        }
        let Some(target) = reference(schema) else { return Value::Object(self.object(map, depth, trail)) };
        if trail.contains(&target) {
            return json!({"description": "As the value that this one is in."});
        }
        let Some(found) = self.document.at(target) else { return json!({}) };
        trail.push(target);
        let mut copy = self.schema(found, depth - 1, trail);
        trail.pop();
        // In 3.1 a reference can say more than what it refers to.
        if let (Some(description), Value::Object(copy)) = (description(map), &mut copy)
            && self.pay(cost(&description, self.left))
        {
            copy.insert("description".to_owned(), description);
        }
        copy
    }

    fn object(
        &mut self,
        map: &'a Map<String, Value>,
        depth: usize,
        trail: &mut Vec<&'a str>,
    ) -> Map<String, Value> {
        let mut copy = self.plain(map);
        same_dialect(map, &mut copy);
        let hidden = self.properties(map, depth, trail, &mut copy);
        self.required(map, &hidden, &mut copy);
        for keyword in ["items", "additionalProperties"] {
            match map.get(keyword) {
                Some(Value::Bool(yes)) => drop(copy.insert(keyword.to_owned(), (*yes).into())),
                Some(schema @ Value::Object(_)) => {
                    copy.insert(keyword.to_owned(), self.schema(schema, depth - 1, trail));
                }
                _ => {}
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf", "prefixItems"] {
            let copies = self.list(map.get(keyword), depth, trail);
            if !copies.is_empty() {
                copy.insert(keyword.to_owned(), copies.into());
            }
        }
        copy
    }

    /// What holds no other schema.
    fn plain(&mut self, map: &Map<String, Value>) -> Map<String, Value> {
        let mut copy = Map::new();
        for keyword in PLAIN {
            if let Some(value) = map.get(keyword)
                && self.pay(cost(value, self.left))
            {
                copy.insert(keyword.to_owned(), value.clone());
            }
        }
        if let Some(description) = description(map)
            && self.pay(cost(&description, self.left))
        {
            copy.insert("description".to_owned(), description);
        }
        copy
    }

    /// Copies the properties that a caller may give; the names of the others.
    fn properties(
        &mut self,
        map: &'a Map<String, Value>,
        depth: usize,
        trail: &mut Vec<&'a str>,
        copy: &mut Map<String, Value>,
    ) -> HashSet<&'a str> {
        let mut hidden = HashSet::new();
        let Some(properties) = map.get("properties").and_then(Value::as_object) else { return hidden };
        let mut copies = Map::new();
        for (name, schema) in properties {
            // Looking at one costs something, too. Where nothing is left, nothing will be required either.
            if !self.pay(1 + name.len() / BYTES) {
                break;
            }
            if self.document.follow(schema).is_some_and(|schema| schema["readOnly"] == true) {
                hidden.insert(name.as_str());
                continue;
            }
            copies.insert(name.clone(), self.schema(schema, depth - 1, trail));
        }
        copy.insert("properties".to_owned(), Value::Object(copies));
        hidden
    }

    /// Copies which properties are required, but for those that are hidden.
    fn required(
        &mut self,
        map: &Map<String, Value>,
        hidden: &HashSet<&'a str>,
        copy: &mut Map<String, Value>,
    ) {
        let mut names = Vec::new();
        for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !self.pay(cost(name, self.left)) {
                break;
            }
            if name.as_str().is_some_and(|name| !hidden.contains(name)) {
                names.push(name.clone());
            }
        }
        if !names.is_empty() {
            copy.insert("required".to_owned(), names.into());
        }
    }

    /// The schemas of a list.
    fn list(&mut self, schemas: Option<&'a Value>, depth: usize, trail: &mut Vec<&'a str>) -> Vec<Value> {
        let mut copies = Vec::new();
        for one in schemas.and_then(Value::as_array).into_iter().flatten() {
            // An item takes room whatever it is: what stands for nothing is an object as well.
            if !self.pay(1) {
                break;
            }
            copies.push(self.schema(one, depth - 1, trail));
        }
        copies
    }
}

fn description(map: &Map<String, Value>) -> Option<Value> {
    let text = text::line(map.get("description")?.as_str()?, DESCRIPTION);
    (!text.is_empty()).then(|| text.into())
}

/// What 2.0 and 3.0 write in ways of their own, as 3.1 has it.
fn same_dialect(map: &Map<String, Value>, copy: &mut Map<String, Value>) {
    let nullable = ["nullable", "x-nullable"].iter().any(|name| map.get(*name) == Some(&Value::Bool(true)));
    if nullable && let Some(Value::String(one)) = copy.get("type") {
        let both = json!([one, "null"]);
        copy.insert("type".to_owned(), both);
        if let Some(Value::Array(choices)) = copy.get_mut("enum")
            && !choices.contains(&Value::Null)
        {
            choices.push(Value::Null);
        }
    }
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(yes)) = copy.get(exclusive) {
            let yes = *yes;
            copy.remove(exclusive);
            if yes && let Some(number) = copy.remove(bound) {
                copy.insert(exclusive.to_owned(), number);
            }
        }
    }
}

/// What a value costs, counted until it is known to be more than `most`.
fn cost(value: &Value, most: usize) -> usize {
    let mut sum: usize = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        sum += 1;
        match value {
            Value::String(text) => sum += text.len() / BYTES,
            Value::Array(items) => open.extend(items.iter().take(most + 1)),
            Value::Object(map) => {
                for (name, value) in map.iter().take(most + 1) {
                    sum += name.len() / BYTES;
                    open.push(value);
                }
            }
            _ => {}
        }
        // Each of those that wait costs something.
        if sum + open.len() > most {
            return most + 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(schema: &Value, definitions: &Value) -> Value {
        let document = json!({"openapi": "3.1.0", "S": definitions}).to_string();
        let document = OpenApiDocument::read(document.as_bytes()).ok().unwrap();
        let mut schemas = SchemaCopier::new(&document);
        schemas.next_operation();
        schemas.copy(schema)
    }

    #[test]
    fn every_item_of_a_list_is_paid_for() {
        for keyword in ["allOf", "anyOf", "oneOf", "prefixItems"] {
            for item in [json!(0), json!({}), json!({"type": "string"})] {
                let copy = copied(&json!({keyword: vec![item; 10_000]}), &json!({}));
                let items = copy[keyword].as_array().unwrap().len();
                assert!((100..=OPERATION).contains(&items), "{keyword}: {items}");
            }
        }
        let lists = vec![json!({"$ref": "#/S/list"}); 190];
        let copy = copied(&json!({"allOf": lists}), &json!({"list": {"anyOf": vec![0; 10_000]}}));
        assert!(copy.to_string().len() < 20 * OPERATION);
        assert_eq!(copied(&json!({"allOf": []}), &json!({})), json!({}));
    }

    #[test]
    fn properties_are_paid_for_when_they_are_hidden_and_those_that_are_required_too() {
        let mut properties: Map<_, _> =
            (0..OPERATION).map(|n| (format!("p{n}"), json!({"readOnly": true}))).collect();
        properties.insert("last".to_owned(), json!({"type": "string"}));
        let copy = copied(&json!({"properties": properties, "required": ["p0", "last"]}), &json!({}));
        assert_eq!(copy, json!({"properties": {}}));
        let copy = copied(&json!({"required": vec!["p"; 10_000]}), &json!({}));
        assert!(copy["required"].as_array().is_some_and(|names| names.len() < OPERATION));
        let few = json!({"properties": {"a": {"readOnly": true}, "b": {}}, "required": ["a", 1, "b"]});
        assert_eq!(copied(&few, &json!({})), json!({"properties": {"b": {}}, "required": ["b"]}));
    }

    #[test]
    fn what_a_reference_adds_is_paid_for() {
        let list = vec![json!({"$ref": "#/S/one", "description": "x".repeat(DESCRIPTION)}); 200];
        let copy = copied(&json!({"anyOf": list}), &json!({"one": {}}));
        assert!(copy.to_string().len() < (BYTES + 20) * OPERATION);
    }

    #[test]
    fn costs_are_counted_no_further_than_they_matter() {
        let value = json!({"a": [1, "x".repeat(BYTES)], "b": null});
        assert_eq!((cost(&value, 6), cost(&value, 5), cost(&value, 0)), (6, 6, 1));
        assert_eq!(cost(&json!(vec![0; 10_000]), 10), 11);
    }
}
