//! Lists that are told page by page.

use lectern_derive::RequestBody;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::{ApiError, FieldError};

/// Which page of a list is wanted.
#[derive(RequestBody, ToSchema)]
pub(super) struct PageArguments {
    /// The `nextCursor` of an earlier answer, to go on where it ended.
    #[schema(max_length = 100)]
    cursor: Option<String>,
    /// The most entries that are wanted; 20 when left out.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100)]
    #[body(default = 20)]
    limit: usize,
}

impl PageArguments {
    /// Where the list goes on: the entry before.
    pub(super) fn before(&self) -> Result<Uuid, ApiError> {
        let before = self.cursor.as_deref().map_or(Ok(Uuid::max()), Uuid::try_parse);
        before.map_err(|_| {
            let wrong = FieldError::new("cursor", "must be the nextCursor of an earlier answer");
            ApiError::invalid(vec![wrong])
        })
    }

    /// How many entries to look for: one more tells whether there are more.
    pub(super) fn sought(&self) -> u32 {
        u32::try_from(self.limit + 1).unwrap_or(u32::MAX)
    }

    /// The answer, with entries that are shown with their ids.
    pub(super) fn answer<T>(&self, name: &str, found: &[T], shown: impl Fn(&T) -> Value) -> CallToolResult {
        let page: Vec<Value> = found.iter().take(self.limit).map(shown).collect();
        let last = page.last().filter(|_| found.len() > self.limit);
        let next = last.and_then(|last| last.get("id")).cloned();
        let mut fields = Map::from_iter([(name.to_owned(), Value::from(page))]);
        if let Some(next) = next {
            fields.insert("nextCursor".to_owned(), next);
        }
        CallToolResult::structured(Value::Object(fields))
    }
}

/// The schema of such an answer.
pub(super) fn output(name: &str, entry: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            name: {"type": "array", "items": entry},
            "nextCursor": {"type": "string", "description": "There are more after these."},
        },
        "required": [name],
    })
}
