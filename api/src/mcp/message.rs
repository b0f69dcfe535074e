//! Messages of JSON-RPC: what the endpoint looks at before they are read, and how refusals are told.

use axum::{
    Json,
    body::{Bytes, to_bytes},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    error::{ApiError, ApiErrorKind},
    error_response::status_of,
};

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const INTERNAL_ERROR: i32 = -32_603;
/// The first of those that are left to servers.
const REFUSED: i32 = -32_000;
/// Bytes of a refusal that is said again in the protocol's form.
const LONGEST_REFUSAL: usize = 16 << 10;
/// Bytes of a request's id.
const LONGEST_ID: usize = 256;
/// Said of a JSON object that is none of the messages.
const NO_MESSAGE: &str = "The body is no request and no notification of the protocol.";

/// What the endpoint has to know of a message.
#[derive(Debug)]
pub(super) struct MessageOutline {
    /// None for a notification.
    pub(super) id: Option<Value>,
    /// The id of the request that it takes back.
    pub(super) cancels: Option<Value>,
    /// Whether it calls a tool.
    pub(super) is_call: bool,
    /// Whether it begins a session.
    pub(super) is_handshake: bool,
}

impl MessageOutline {
    /// Looks at a message.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn of(message: &Value) -> Result<Self, ApiError> {
        let wrong = |text: &str| Err(ApiError::new(ApiErrorKind::Malformed, "invalid_message", text));
        let fields = match message {
            Value::Object(fields) => fields,
            Value::Array(_) => return wrong("Send one message in a request: batches are not taken."),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return wrong(NO_MESSAGE),
        };
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return wrong("A message has `\"jsonrpc\": \"2.0\"`.");
        }
        let Some(method) = fields.get("method").and_then(Value::as_str) else { return wrong(NO_MESSAGE) };
        if fields.get("id").is_some_and(|id| !is_id(id)) {
            return wrong("The id of a request is a whole number, or a text of at most 256 bytes.");
        }
        let cancelled = message.pointer("/params/requestId").filter(|id| is_id(id));
        Ok(Self {
            id: fields.get("id").cloned(),
            cancels: cancelled.filter(|_| method == "notifications/cancelled").cloned(),
            is_call: method == "tools/call",
            is_handshake: method == "initialize",
        })
    }

    /// The id of a call of a tool.
    pub(super) fn call_id(&self) -> Option<&Value> {
        self.id.as_ref().filter(|_| self.is_call)
    }
}

/// Whether a request can have this id.
fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.len() <= LONGEST_ID,
        Value::Number(number) => number.is_i64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The answer to a request that failed before it was read as a message.
pub(crate) fn error_response(error: &ApiError) -> Response {
    (status_of(error), Json(error_body(None, error))).into_response()
}

/// What a stream says last that ends before its time.
pub(super) fn event(id: Option<&Value>, error: &ApiError) -> Bytes {
    Bytes::from(format!("data: {}\n\n", error_body(id, error)))
}

/// A refusal in plain text, said again in the protocol's form.
pub(super) async fn restated(answer: Response, id: Option<&Value>) -> Response {
    let (parts, body) = answer.into_parts();
    let text = to_bytes(body, LONGEST_REFUSAL).await.unwrap_or_default();
    let (status, text) = match parts.status {
        // The type was right: what could not be read is what stands in the body.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (StatusCode::BAD_REQUEST, NO_MESSAGE.into()),
        status => (status, String::from_utf8_lossy(&text)),
    };
    let code = if status.is_server_error() { INTERNAL_ERROR } else { INVALID_REQUEST };
    (status, Json(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})))
        .into_response()
}

fn error_body(id: Option<&Value>, error: &ApiError) -> Value {
    let code = match (error.kind, error.code) {
        (_, "malformed_json") => PARSE_ERROR,
        (ApiErrorKind::Malformed | ApiErrorKind::Invalid, _) => INVALID_REQUEST,
        (ApiErrorKind::Internal, _) => INTERNAL_ERROR,
        _ => REFUSED,
    };
    let data = json!({"code": error.code});
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": told(error), "data": data}})
}

/// An error in words, with every field that is wrong, so that a model can correct them.
pub(super) fn told(error: &ApiError) -> String {
    if error.fields.is_empty() {
        return error.message.clone();
    }
    let wrong = error.fields.iter().map(|field| format!("`{}` {}", field.path, field.message));
    format!("Some arguments are not valid: {}.", wrong.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FieldError;

    #[test]
    fn a_message_is_an_object_of_the_right_version() {
        for wrong in [
            json!([]),
            json!([{"jsonrpc": "2.0"}]),
            json!("x"),
            json!(null),
            json!({"method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1}),
        ] {
            let error = MessageOutline::of(&wrong).unwrap_err();
            assert_eq!((error.kind.status(), error.code), (400, "invalid_message"), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_a_short_text_or_a_whole_number() {
        let read = |id: Value| MessageOutline::of(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        for id in [json!(0), json!(-7), json!(i64::MAX), json!(""), json!("x".repeat(LONGEST_ID))] {
            assert_eq!(read(id.clone()).unwrap().id, Some(id));
        }
        let long = "x".repeat(LONGEST_ID + 1);
        for id in [json!(null), json!(true), json!(1.5), json!(u64::MAX), json!([1]), json!({}), json!(long)]
        {
            assert_eq!(read(id.clone()).unwrap_err().code, "invalid_message", "{id:.20}");
        }
        let params = json!({"requestId": long});
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(MessageOutline::of(&cancel).unwrap().cancels, None);
    }

    #[test]
    fn calls_and_what_takes_them_back_are_told_from_the_rest() {
        let call = MessageOutline::of(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call"})).unwrap();
        assert_eq!(call.call_id(), Some(&json!(7)));
        let ping = MessageOutline::of(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"})).unwrap();
        assert_eq!((ping.call_id(), ping.id.is_some()), (None, true));
        let params = json!({"requestId": "a"});
        let taken_back = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(MessageOutline::of(&taken_back).unwrap().cancels, Some(json!("a")));
        let other = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        assert_eq!(MessageOutline::of(&other).unwrap().cancels, None);
    }

    #[test]
    fn every_wrong_field_is_told_in_the_sentence() {
        let fields = [("query", "is required"), ("limit", "must be a number")];
        let fields = fields.map(|(path, message)| FieldError::new(path, message));
        let told = told(&ApiError::invalid(fields.into()));
        assert_eq!(told, "Some arguments are not valid: `query` is required; `limit` must be a number.");
    }
}
