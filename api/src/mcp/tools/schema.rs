//! Descriptions of arguments, by the structs that read them.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::Value;
use utoipa::PartialSchema;

/// The JSON Schema of a struct.
pub(super) fn of<T: PartialSchema>() -> Value {
    let mut schema = serde_json::to_value(T::schema()).unwrap_or_default();
    simplify(&mut schema);
    schema
}

/// A schema as tools have it.
pub(super) fn shared(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(schema) => Arc::new(schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Arc::default()
        }
    }
}

/// Leaves out that a field may be null, which it may: models leave fields out, and some providers take one type alone.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
