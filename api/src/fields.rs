//! The fields of a JSON object, read one by one, so that a caller learns at once of everything that is wrong. A body is a struct
//! that derives [`RequestBody`](lectern_derive::RequestBody).

mod values;

use std::{fmt::Display, str::FromStr};

use serde_json::{Map, Value};

pub(crate) use self::values::{GivenId, GivenIds};
use crate::{
    body::json,
    error::{ApiError, FieldError, NAMED_ERRORS},
};

/// Whose body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SenderTrust {
    /// Somebody whose credentials were checked.
    Known,
    /// Anybody.
    Stranger,
}

/// What a text is told to be that stands where an object belongs.
const EXAMPLE: &str = "must be an object, such as `{\"year\": 2026}`";

/// Whether a value is a text, a number or a boolean.
pub(crate) fn is_plain(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

/// A body that can be read from JSON fields.
pub(crate) trait FromFields: Sized {
    /// Who sends it. What a stranger may send is read before any credential is looked at, so it has to be small.
    const SENDER: SenderTrust = SenderTrust::Known;

    /// Reads the fields. What is wrong is noted in `fields`; the value is used only when nothing is.
    fn from_fields(fields: &mut JsonFields<'_>) -> Self;
}

/// What a field is called, and what its schema says of its values.
pub(crate) struct FieldRule {
    pub(crate) name: &'static str,
    /// 1 for a text that may not be blank.
    pub(crate) min_length: usize,
    /// In characters.
    pub(crate) max_length: usize,
    pub(crate) minimum: f64,
    pub(crate) maximum: f64,
    pub(crate) max_items: usize,
}

impl FieldRule {
    /// A field with this name, and without limits.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self {
            name,
            min_length: 0,
            max_length: usize::MAX,
            minimum: f64::NEG_INFINITY,
            maximum: f64::INFINITY,
            max_items: usize::MAX,
        }
    }
}

/// A value that a field can have.
#[diagnostic::on_unimplemented(
    message = "a body cannot have a field of the type `{Self}`",
    note = "name its reader by `#[body(with = …)]`, or add its type to `fields/values.rs`"
)]
pub(crate) trait FieldValue: Sized {
    /// Reads it. None when it is not there, or null; and when it is wrong, which is noted.
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self>;

    /// What stands in its place when it is wrong: nobody sees it.
    fn stand_in() -> Self;

    /// What is said when it is not there and has to be.
    fn missing() -> String {
        "is required".to_owned()
    }
}

/// A value that has to be there.
pub(crate) fn required<T: FieldValue>(fields: &mut JsonFields<'_>, rule: &FieldRule) -> T {
    if fields.get(rule.name).is_none() {
        fields.refuse(rule.name, T::missing());
        return T::stand_in();
    }
    T::read(fields, rule).unwrap_or_else(T::stand_in)
}

/// Makes a valid value of a body.
pub(crate) fn validate<T: FromFields>(body: &Value) -> Result<T, ApiError> {
    read(body, T::from_fields)
}

/// Reads a JSON object; every wrong field is named.
///
/// # Errors
/// What is wrong, or that it is no object.
pub(crate) fn read<T>(body: &Value, read: impl FnOnce(&mut JsonFields<'_>) -> T) -> Result<T, ApiError> {
    let mut errors = Vec::new();
    find_nul(body, &mut String::new(), &mut errors);
    let Value::Object(map) = body else {
        let message = "The body must be a JSON object.".to_owned();
        return Err(ApiError { message, ..ApiError::invalid_field("body", "must be a JSON object") });
    };
    let value = read(&mut JsonFields { map, path: String::new(), is_change: false, errors: &mut errors });
    if errors.is_empty() { Ok(value) } else { Err(ApiError::invalid(errors)) }
}

/// NUL cannot be stored, and nobody means it.
fn find_nul(value: &Value, path: &mut String, errors: &mut Vec<FieldError>) {
    let mut within = |step: &str, value: &Value, errors: &mut Vec<FieldError>| {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(step);
        find_nul(value, path, errors);
        path.truncate(length);
    };
    if errors.len() >= NAMED_ERRORS {
        return;
    }
    match value {
        Value::String(text) if text.contains('\0') => {
            errors.push(FieldError::new(path, "must not contain the character U+0000"));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| within(&at.to_string(), item, errors));
        }
        Value::Object(map) => {
            for (key, item) in map {
                if key.contains('\0') && errors.len() < NAMED_ERRORS {
                    let path = key.replace('\0', "\u{fffd}");
                    errors.push(FieldError::new(&path, "no key may contain the character U+0000"));
                }
                within(key, item, errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The fields of a JSON object, read one by one. Every wrong one is noted with its path and what would be right; the
/// reader gets a stand-in and goes on, so that a caller learns of all of them at once.
pub(crate) struct JsonFields<'a> {
    map: &'a Map<String, Value>,
    path: String,
    /// Whether they are those of a change, or of an object within one.
    is_change: bool,
    errors: &'a mut Vec<FieldError>,
}

impl<'a> JsonFields<'a> {
    /// Notes that a field is wrong, unless as many as are named are already.
    pub(crate) fn refuse(&mut self, name: &str, message: impl Display) {
        if self.errors.len() >= NAMED_ERRORS {
            return;
        }
        let error = FieldError::new(&self.place(name), &message.to_string());
        self.errors.push(error);
    }

    /// Where a field stands in the body.
    fn place(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Whether something is noted of a field already, or of what is in it: what else is not right about it then follows from that.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        let place = self.place(name);
        let within = |path: &str| {
            path.strip_prefix(place.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.errors.iter().any(|error| within(&error.path))
    }

    /// Begins to read a change, which has these fields: what is said under another name, here or in an object of it, would be
    /// taken for something that is left out.
    pub(crate) fn begin_change(&mut self, names: &[&str]) {
        self.is_change = true;
        self.only(names);
    }

    /// Notes every field that is none of these, in an object of a change.
    pub(crate) fn only_in_change(&mut self, names: &[&str]) {
        if self.is_change {
            self.only(names);
        }
    }

    /// Notes every field that is none of these.
    pub(crate) fn only(&mut self, names: &[&str]) {
        let unknown = self.map.keys().filter(|name| !names.contains(&name.as_str()));
        for name in unknown.take(NAMED_ERRORS) {
            self.refuse(name, format_args!("cannot be set; these can: {}", names.join(", ")));
        }
    }

    /// Notes every one of these that is null: what a change leaves out stays, and these cannot be emptied.
    pub(crate) fn refuse_nulls(&mut self, names: &[&str]) {
        for name in names {
            if self.map.get(*name).is_some_and(Value::is_null) {
                self.refuse(name, "must not be null; leave it out to keep it as it is");
            }
        }
    }

    /// Whether a field is there, be it null.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// A field's value; null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// A text that need not be there, of at most `longest` characters.
    pub(crate) fn optional_text(&mut self, name: &str, longest: usize) -> Option<String> {
        match self.get(name)? {
            Value::String(text) if text.chars().count() > longest => {
                self.refuse(name, format_args!("must have at most {longest} characters"));
                None
            }
            Value::String(text) => Some(text.clone()),
            _ => {
                self.refuse(name, "must be a string");
                None
            }
        }
    }

    /// A text that must be there and not be blank.
    pub(crate) fn text(&mut self, name: &str, longest: usize) -> String {
        if self.get(name).is_none() {
            self.refuse(name, "is required");
            return String::new();
        }
        let text = self.optional_text(name, longest).unwrap_or_else(|| "?".to_owned());
        if let Some(problem) = blank_problem(&text) {
            self.refuse(name, problem);
        }
        text
    }

    /// One word of several.
    pub(crate) fn choice<T: FromStr>(&mut self, name: &str, choices: &str) -> Option<T> {
        let Some(value) = self.get(name) else {
            self.refuse(name, format_args!("is required: one of {choices}"));
            return None;
        };
        let found = value.as_str().and_then(|text| text.parse().ok());
        if found.is_none() {
            self.refuse(name, format_args!("must be one of {choices}"));
        }
        found
    }

    /// True or false.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(yes) => Some(*yes),
            _ => {
                self.refuse(name, "must be true or false");
                None
            }
        }
    }

    /// A whole number of at least 1, as a number or as digits in a string.
    pub(crate) fn count(&mut self, name: &str) -> Option<u32> {
        self.count_up_to(name, u32::MAX)
    }

    /// A whole number of at least 1 and at most so much, as a number or as digits in a string.
    pub(crate) fn count_up_to(&mut self, name: &str, most: u32) -> Option<u32> {
        let value = self.get(name)?;
        let number = as_count(value).filter(|number| *number <= most);
        if number.is_none() {
            // The greatest number that can be stored is of no interest to whoever sent something else than a greater one.
            if most < u32::MAX || is_above(value, most) {
                self.refuse(name, format_args!("must be a whole number from 1 to {most}"));
            } else {
                self.refuse(name, "must be a whole number of at least 1");
            }
        }
        number
    }

    /// A number between two bounds, both included.
    pub(crate) fn number(&mut self, name: &str, min: f64, max: f64) -> Option<f64> {
        let number = self.get(name)?.as_f64().filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.refuse(name, format_args!("must be a number between {min} and {max}"));
        }
        number
    }

    /// A JSON object, or what is wrong with the text of one that a form has sent.
    pub(crate) fn object(&mut self, name: &str) -> Option<Map<String, Value>> {
        match self.get(name)? {
            Value::Object(map) => return Some(map.clone()),
            // A form sends the text itself, if it is no JSON.
            Value::String(text) => match json::read_text(text) {
                Ok(_) => self.refuse(name, format_args!("{EXAMPLE}, and not a text")),
                Err(problem) => self.refuse(name, format_args!("{EXAMPLE}, and this {problem}")),
            },
            _ => self.refuse(name, "must be an object"),
        }
        None
    }

    /// An array of at most so many items, which are `items`.
    pub(crate) fn array(&mut self, name: &str, most: usize, items: &str) -> Option<&'a [Value]> {
        match self.get(name)? {
            Value::Array(values) if values.len() <= most => return Some(values),
            Value::Array(_) => self.refuse(name, format_args!("must have at most {most} items")),
            _ => self.refuse(name, format_args!("must be an array of {items}")),
        }
        None
    }

    /// An array of texts.
    pub(crate) fn texts(&mut self, name: &str, most: usize, items: &str) -> Option<Vec<&'a str>> {
        let values = self.array(name, most, items)?;
        for (at, _) in values.iter().enumerate().filter(|(_, value)| !value.is_string()) {
            self.refuse(&format!("{name}.{at}"), "must be a string");
        }
        Some(values.iter().filter_map(Value::as_str).collect())
    }

    /// An array of at most so many objects, each read with its own paths.
    pub(crate) fn objects<T>(
        &mut self,
        name: &str,
        most: usize,
        mut read: impl FnMut(&mut JsonFields<'_>) -> T,
    ) -> Option<Vec<T>> {
        let items = self.array(name, most, "objects")?;
        let mut all = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let path = format!("{name}.{at}");
            let Value::Object(map) = item else {
                self.refuse(&path, "must be an object");
                continue;
            };
            let (path, is_change) = (self.place(&path), self.is_change);
            all.push(read(&mut JsonFields { map, path, is_change, errors: self.errors }));
        }
        Some(all)
    }

    /// What a text says, when it can be read and says something. Nothing is noted.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.as_str()?.parse().ok()
    }

    /// Everything that has none of these names, as it is.
    pub(crate) fn others(&mut self, names: &[&str]) -> Map<String, Value> {
        let others = self.map.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        others.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Reads an inner object with its own paths.
    pub(crate) fn nested<T>(&mut self, name: &str, read: impl FnOnce(&mut JsonFields<'_>) -> T) -> Option<T> {
        match self.get(name)? {
            Value::Object(map) => {
                let (path, is_change) = (self.place(name), self.is_change);
                Some(read(&mut JsonFields { map, path, is_change, errors: self.errors }))
            }
            _ => {
                self.refuse(name, "must be an object");
                None
            }
        }
    }
}

/// A whole number that is not negative. To JSON, `3.0` is one like `3`, and some programs know no other numbers.
pub(crate) fn as_whole(value: &Value) -> Option<u64> {
    /// Every whole number up to it is one that such a program can hold.
    const EXACT: f64 = 9_007_199_254_740_991.0;
    value.as_u64().or_else(|| {
        let number =
            value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between the bounds"
        )]
        let whole = number as u64;
        Some(whole)
    })
}

/// Whether it is a number, or the digits of one, above a bound.
fn is_above(value: &Value, bound: u32) -> bool {
    let digits = || value.as_str().and_then(|text| text.trim().parse().ok());
    value.as_f64().or_else(digits).is_some_and(|number| number > f64::from(bound))
}

/// What is wrong with a text that says nothing.
pub(crate) fn blank_problem(text: &str) -> Option<&'static str> {
    match text.trim() {
        "" if text.is_empty() => Some("must not be empty"),
        "" => Some("must not be blanks only"),
        _ => None,
    }
}

/// A whole number of at least 1, as a number or as digits in a string.
pub(crate) fn as_count(value: &Value) -> Option<u32> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => as_whole(other),
    };
    number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests;
