//! What the parts of an upload besides the file say of the document.

use serde_json::{Map, Value, json};

use crate::{
    body::json,
    error::{ApiError, FieldError},
    fields::validate,
    multipart::{MultipartPart, PartBudget},
    services::uploads::{FileDescription, FileKind},
};

/// Parts that are text.
const PLAIN: [&str; 7] = ["name", "type", "description", "from_page", "to_page", "url", "content"];
/// Parts that are the text of a JSON value.
const JSON: [&str; 2] = ["metadata", "splitter"];
/// The part that may be given more than once, each time with one item, or with several as the text of a JSON array.
const LIST: &str = "collectionIds";

/// The parts besides the file, gathered.
pub(super) struct UploadFields {
    budget: PartBudget,
    fields: Map<String, Value>,
    wrong: Vec<FieldError>,
}

impl UploadFields {
    /// Takes parts of at most `limit` bytes in sum.
    pub(super) fn within(limit: u64) -> Self {
        Self { budget: PartBudget::within(limit), fields: Map::new(), wrong: Vec::new() }
    }

    pub(super) fn refuse(&mut self, name: &str, message: &str) {
        self.wrong.push(FieldError::new(name, message));
    }

    /// Reads a part that says nothing of the document; none when it is no word.
    pub(super) async fn read_word(&mut self, part: MultipartPart<'_>) -> Result<Option<String>, ApiError> {
        self.budget.read_word(part).await
    }

    /// Reads a part.
    pub(super) async fn add(&mut self, part: MultipartPart<'_>) -> Result<(), ApiError> {
        let name = part.name().unwrap_or_default().to_owned();
        let known = PLAIN.contains(&name.as_str()) || JSON.contains(&name.as_str()) || name == LIST;
        let bytes = self.budget.read(part, if known { usize::MAX } else { 0 }).await?;
        if !known {
            return Ok(());
        }
        if name != LIST && self.fields.contains_key(&name) {
            self.refuse(&name, "must be given once");
            return Ok(());
        }
        let Ok(text) = String::from_utf8(bytes) else {
            self.refuse(&name, "must be UTF-8 text");
            return Ok(());
        };
        if name == LIST {
            self.add_items(&text);
            return Ok(());
        }
        let value = if JSON.contains(&name.as_str()) { read_json(&text) } else { Ok(Value::String(text)) };
        match value {
            Ok(value) => drop(self.fields.insert(name, value)),
            Err(problem) => {
                self.refuse(&name, &format!("must be the text of a JSON object, and this {problem}"));
            }
        }
        Ok(())
    }

    /// Adds to the list: an empty text adds nothing.
    fn add_items(&mut self, text: &str) {
        let items = match text.trim() {
            "" => Some(Vec::new()),
            array if array.starts_with('[') => serde_json::from_str::<Vec<Value>>(array).ok(),
            // No id has one.
            several if several.contains(',') => None,
            item => Some(vec![json!(item)]),
        };
        let Some(items) = items else {
            let message =
                "must be an id, in a part of its own for each of several, or the text of a JSON array of ids";
            self.refuse(LIST, message);
            return;
        };
        if let Value::Array(list) = self.fields.entry(LIST).or_insert_with(|| json!([])) {
            list.extend(items);
        }
    }

    /// What all of them say of the file, and of its document.
    ///
    /// # Errors
    /// Every part that is wrong.
    pub(super) fn read<T: FileDescription>(mut self, kind: &FileKind) -> Result<T, ApiError> {
        // What is no type at all is noticed below.
        if let Some(Ok(given)) = self.fields.get("type").and_then(Value::as_str).map(str::parse)
            && let Some(problem) = kind.unfit_for(given)
        {
            self.refuse("type", &problem);
        }
        T::fill_in(&mut self.fields, kind);
        let read = validate(&Value::Object(self.fields));
        let mut wrong = self.wrong;
        match read {
            Ok(new) if wrong.is_empty() => return Ok(new),
            Ok(_) => {}
            Err(error) => wrong.extend(error.fields),
        }
        Err(ApiError::invalid(wrong))
    }

    /// Everything that is wrong with a form that has no file.
    pub(super) fn without_file<T: FileDescription>(mut self) -> ApiError {
        self.refuse("file", "is required: the file to upload");
        self.fields.remove("type");
        self.read::<T>(&FileKind::nothing()).err().unwrap_or_else(ApiError::internal)
    }
}

/// An empty text is no value.
fn read_json(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() { Ok(Value::Null) } else { json::read_text(text) }
}
