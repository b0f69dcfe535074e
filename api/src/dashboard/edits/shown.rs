//! What a form shows of something that it can change.

use lectern_shared::{
    clock::Timestamp,
    secrets::{hex, sha256},
};
use serde_json::{Map, Value, json};

/// Bytes of what stands in a form for what a field held: enough to tell whether it was changed.
const MARK: usize = 4;
/// Fields of a form, at most, that are told apart by that.
pub(super) const FIELDS: usize = 64;

/// What a field of a form holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldInput {
    /// A text.
    Text,
    /// A JSON object.
    Object,
    /// A list with an item a line.
    Lines,
    /// What is chosen of several, or stands in an object of its own.
    Fixed,
    /// A secret, of which a mask is shown.
    Secret,
}

/// One field of it.
pub(super) struct ShownField {
    /// The path of its value in what the form sends.
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    /// What it holds, as it is written into the form.
    pub(super) text: String,
    /// What it holds, as the form sends it.
    value: Value,
    pub(super) input: FieldInput,
    /// What people know each choice by.
    names: Vec<(String, String)>,
}

impl ShownField {
    /// A value as people read it.
    pub(super) fn told(&self, text: &str) -> String {
        let name = self.names.iter().find(|(value, _)| value == text).map(|(_, name)| name.clone());
        match name {
            Some(name) => name,
            None if self.input == FieldInput::Secret && text != self.text => "another one".to_owned(),
            None => text.to_owned(),
        }
    }

    /// Has what was sent say what the field holds now. A field that stays what it is when nothing is said of it is not said.
    pub(super) fn keep(&self, fields: &mut Map<String, Value>, is_whole: bool) {
        let (object, name) = match self.path.split_once('.') {
            Some((object, name)) => (fields.get_mut(object).and_then(Value::as_object_mut), name),
            None => (Some(fields), self.path),
        };
        let Some(object) = object else { return };
        let is_said = is_whole || self.path.contains('.');
        if is_said && (self.value.is_array() || !self.text.is_empty()) {
            object.insert(name.to_owned(), self.value.clone());
        } else {
            object.remove(name);
        }
    }
}

/// What a form shows of something that it can change.
pub(in crate::dashboard) struct ShownFields {
    changed_last: Timestamp,
    pub(super) fields: Vec<ShownField>,
    /// What the form leaves out is empty from then on, and does not stay as it is.
    pub(super) is_whole: bool,
}

impl ShownFields {
    /// Of something that was changed last at this time.
    pub(in crate::dashboard) const fn of(changed_last: Timestamp) -> Self {
        Self { changed_last, fields: Vec::new(), is_whole: false }
    }

    /// Of a form that says all that there is: what it leaves out is empty from then on.
    pub(in crate::dashboard) const fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    fn with(mut self, input: FieldInput, path: &'static str, label: &'static str, text: &str) -> Self {
        let text = text.replace("\r\n", "\n");
        let value = json!(text);
        self.fields.push(ShownField { path, label, text, value, input, names: Vec::new() });
        self
    }

    /// With a value that is not sent as the text that is written into the form.
    fn with_value(mut self, value: Value) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.value = value;
        }
        self
    }

    /// With a number, which may be left empty.
    pub(in crate::dashboard) fn number(self, path: &'static str, label: &'static str, text: &str) -> Self {
        let number = serde_json::from_str(text).unwrap_or_default();
        self.with(FieldInput::Fixed, path, label, text).with_value(number)
    }

    /// With a text.
    pub(in crate::dashboard) fn text(self, path: &'static str, label: &'static str, text: &str) -> Self {
        let input = if path.contains('.') { FieldInput::Fixed } else { FieldInput::Text };
        self.with(input, path, label, text)
    }

    /// With a JSON object.
    pub(in crate::dashboard) fn object(self, path: &'static str, label: &'static str, text: &str) -> Self {
        // One that has nothing in it is sent, and marked, as one that is left empty.
        let text = if text.trim() == "{}" { "" } else { text };
        let object = serde_json::from_str(text).unwrap_or_default();
        self.with(FieldInput::Object, path, label, text).with_value(object)
    }

    /// With a list that has an item a line.
    pub(in crate::dashboard) fn lines(self, path: &'static str, label: &'static str, lines: &str) -> Self {
        let items = json!(lines.lines().collect::<Vec<_>>());
        self.with(FieldInput::Lines, path, label, lines).with_value(items)
    }

    /// With what is not written but chosen, by what is sent and what people know it by.
    pub(in crate::dashboard) fn choice(
        self,
        path: &'static str,
        label: &'static str,
        chosen: &str,
        names: &[(String, String)],
    ) -> Self {
        let mut with = self.with(FieldInput::Fixed, path, label, chosen);
        if let Some(field) = with.fields.last_mut() {
            field.names = names.to_vec();
        }
        with
    }

    /// With a box that is checked or not.
    pub(in crate::dashboard) fn switch(self, path: &'static str, label: &'static str, is_on: bool) -> Self {
        self.with(FieldInput::Fixed, path, label, switched(is_on)).with_value(json!(is_on))
    }

    /// With a secret, of which this is the mask.
    pub(in crate::dashboard) fn secret(self, path: &'static str, label: &'static str, mask: &str) -> Self {
        self.with(FieldInput::Secret, path, label, mask)
    }

    /// With a value as JSON has it, of a field of whichever kind.
    pub(in crate::dashboard) fn value(self, path: &'static str, label: &'static str, value: &Value) -> Self {
        self.with(FieldInput::Fixed, path, label, &written(value)).with_value(value.clone())
    }

    /// What stands in the form itself of what it was made from: when that was changed last, and a mark of each field.
    pub(in crate::dashboard) fn seen(&self) -> String {
        let marks = self.fields.iter().take(FIELDS).map(|field| format!(".{}", mark(&field.text)));
        marks.fold(self.changed_last.as_micros().to_string(), |seen, mark| seen + &mark)
    }
}

const fn switched(is_on: bool) -> &'static str {
    if is_on { "yes" } else { "no" }
}

pub(super) fn mark(text: &str) -> String {
    hex(sha256(text.trim().as_bytes()).get(..MARK).unwrap_or_default())
}

/// A value that was sent, as it is written into a form.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace("\r\n", "\n"),
        Value::Bool(is_on) => switched(*is_on).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
        }
        Value::Object(object) if object.is_empty() => String::new(),
        value @ (Value::Array(_) | Value::Object(_)) => {
            serde_json::to_string_pretty(value).unwrap_or_default()
        }
    }
}
