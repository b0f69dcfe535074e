//! What a call brings to its tool, apart from the message around it: the library that reads messages holds several copies of
//! them until the answer is there, so it is given the small part.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::{
    body::JsonBody,
    error::{ApiError, ApiErrorKind},
    fields::{FromFields, validate},
};

/// How deep a message may be nested, and what a call brings.
const DEPTH: usize = 32;
/// What a call may bring. Its texts have limits of their own, and the body has one.
const OF_ARGUMENTS: ValueAllowance = ValueAllowance { values: 10_000, text: usize::MAX };
/// What may stand around that, and in other messages.
const OF_MESSAGE: ValueAllowance = ValueAllowance { values: 1_000, text: 64 << 10 };

/// What there may still be in a part of a message.
#[derive(Clone, Copy)]
struct ValueAllowance {
    values: usize,
    /// Bytes of texts and names.
    text: usize,
}

impl ValueAllowance {
    /// Whether a value is within it, which is less by it then.
    fn admits(&mut self, value: &Value, depth: usize) -> bool {
        let Some(left) = self.values.checked_sub(1) else { return false };
        self.values = left;
        depth < DEPTH
            && match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => true,
                Value::String(text) => self.admits_text(text),
                Value::Array(items) => items.iter().all(|item| self.admits(item, depth + 1)),
                Value::Object(fields) => {
                    fields.iter().all(|(name, value)| self.admits_text(name) && self.admits(value, depth + 1))
                }
            }
    }

    fn admits_text(&mut self, text: &str) -> bool {
        let left = self.text.checked_sub(text.len());
        self.text = left.unwrap_or_default();
        left.is_some()
    }
}

/// What a call brings, with the memory that its body counts for. Cheap to clone; clones share it.
#[derive(Clone, Default)]
pub(super) struct CallArguments(Arc<Mutex<Option<JsonBody>>>);

impl CallArguments {
    /// Takes them out of a message, and writes what is left of it.
    ///
    /// # Errors
    /// When either is too much.
    pub(super) fn part_from(mut body: JsonBody, is_call: bool) -> Result<(String, Self), ApiError> {
        let Some(arguments) = taken_from(&mut body.value, is_call)? else {
            return Ok((body.value.to_string(), Self::default()));
        };
        let rest = body.value.to_string();
        body.value = arguments;
        Ok((rest, Self(Arc::new(Mutex::new(Some(body))))))
    }

    /// Reads them, once: they are given up before the tool does anything.
    pub(super) fn read<T: FromFields>(&self) -> Result<T, ApiError> {
        let body = self.0.lock().take();
        match body {
            Some(body) => validate(&body.value),
            None => validate(&Value::Object(Map::new())),
        }
    }
}

/// The arguments in a message, which has none any more. What is no object stays, to be refused with it.
fn taken_from(message: &mut Value, is_call: bool) -> Result<Option<Value>, ApiError> {
    let params = message.get_mut("params").and_then(Value::as_object_mut).filter(|_| is_call);
    let params = params.filter(|params| params.get("arguments").is_some_and(Value::is_object));
    let arguments = params.and_then(|params| params.remove("arguments"));
    let (mut of_message, mut of_arguments) = (OF_MESSAGE, OF_ARGUMENTS);
    let is_fitting = of_message.admits(message, 0)
        && arguments.as_ref().is_none_or(|arguments| of_arguments.admits(arguments, 0));
    if is_fitting {
        return Ok(arguments);
    }
    let message = "The message is too large: its arguments may have 10000 values, the rest 1000 and 64 KiB of text, and neither may be \
        nested deeper than 32.";
    Err(ApiError::new(ApiErrorKind::Malformed, "invalid_message", message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": arguments}})
    }

    /// Lists in lists.
    fn nested(depth: usize) -> Value {
        (1..depth).fold(json!([]), |inner, _| json!([inner]))
    }

    #[test]
    fn the_arguments_of_a_call_go_past_the_rest_of_it() {
        let mut message = call(&json!({"text": "b"}));
        let taken = taken_from(&mut message, true).unwrap();
        assert_eq!(taken, Some(json!({"text": "b"})));
        assert_eq!(message["params"], json!({"name": "a"}));
        for (mut message, is_call) in
            [(call(&json!({"text": "b"})), false), (call(&json!("b")), true), (json!({"params": []}), true)]
        {
            let before = message.clone();
            assert_eq!(taken_from(&mut message, is_call).unwrap(), None, "{before}");
            assert_eq!(message, before);
        }
    }

    #[test]
    fn what_is_deep_or_many_is_refused_wherever_it_stands() {
        let long = "x".repeat(100_000);
        let fits = |mut message: Value| taken_from(&mut message, true).is_ok();
        assert!(fits(call(&json!({"a": nested(DEPTH - 1), "text": long}))));
        assert!(fits(call(&json!({"a": vec![0; 9_000]}))));
        assert!(!fits(call(&json!({"a": nested(DEPTH)}))));
        assert!(!fits(call(&json!({"a": vec![0; 10_000]}))));
        let meta = |value: Value| json!({"method": "tools/call", "params": {"name": "a", "_meta": value}});
        assert!(fits(meta(json!({"progressToken": 1, "a": nested(DEPTH - 4), "b": vec![0; 900]}))));
        for wrong in
            [nested(DEPTH), json!(vec![0; 1_000]), json!({ "a": long }), json!({ (long.as_str()): 1 })]
        {
            assert!(!fits(meta(wrong)));
        }
        assert!(!fits(call(&json!(long))), "what is no object stands in the rest");
    }
}
