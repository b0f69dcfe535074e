//! Forms that change something. Each says from what it was made. Where something else is there by now, nothing is saved: its sender is
//! told what was changed meanwhile, keeps what they wrote, and saves it on top of that or looks at what is there. What they did not
//! touch stays on top of it what others have made of it.

mod shown;

use askama::Template;
use axum::{
    extract::{FromRequest, Request},
    http::StatusCode,
    response::Response,
};
use lectern_shared::clock::Timestamp;
use serde_json::{Map, Value, json};

pub(super) use self::shown::ShownFields;
use self::shown::{FIELDS, FieldInput, ShownField, mark, written};
use super::{
    PagePolicy,
    confirm::{SentFields, UnconfirmedForm},
    frame::{Frame, SubmittedForm, Visitor},
    html,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::FromFields,
    response::ApiResult,
    services::edits::EditBase,
    state::AppState,
};

/// Characters of what a field holds now, where a script of the page tells it.
const TOLD: usize = 300;

/// The value of a field that was left empty.
static NOTHING: Value = Value::Null;

/// What a form was made from, as far as it says so.
struct SeenFields {
    changed_last: Timestamp,
    marks: Vec<String>,
}

impl SeenFields {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let changed_last = Timestamp::from_micros(parts.next()?.parse().ok()?);
        Some(Self { changed_last, marks: parts.take(FIELDS).map(str::to_owned).collect() })
    }
}

/// A form that changes something, which somebody has sent who is signed in.
pub(super) struct EditForm<T> {
    pub(super) visitor: Visitor,
    pub(super) body: T,
    pub(super) edit: SentEdit,
}

/// What was sent with it.
pub(super) struct SentEdit {
    /// The path from the root that it was sent to.
    path: String,
    seen: Option<SeenFields>,
    fields: Map<String, Value>,
}

impl<T: FromFields + Send> FromRequest<AppState> for EditForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let UnconfirmedForm(submitted, form) = UnconfirmedForm::<T>::from_request(request, state).await?;
        let SubmittedForm { visitor, body, .. } = submitted;
        let SentFields { path, seen, fields } = form.into_sent();
        let edit = SentEdit {
            path,
            seen: seen.as_deref().and_then(SeenFields::read),
            fields: match fields {
                Value::Object(fields) => fields,
                _ => Map::new(),
            },
        };
        Ok(Self { visitor, body, edit })
    }
}

/// Whether a change was made; false when it was refused since something else is there than what it begins from.
pub(super) fn was_made<T>(change: Result<T, ApiError>) -> Result<bool, ApiError> {
    match change {
        Ok(_) => Ok(true),
        Err(error) if error.code == EditBase::CHANGED => Ok(false),
        Err(error) => Err(error),
    }
}

#[derive(Template)]
#[template(path = "outdated.html")]
struct OutdatedPage {
    frame: Frame,
    message: String,
    rows: Vec<OutdatedRow>,
    /// What else was sent, each by the name of its input.
    kept: Vec<(String, String)>,
    /// A secret was among it, which is shown to nobody again.
    had_secret: bool,
    seen: String,
    action: String,
    /// Where it is shown as it is now, from the root.
    current: String,
}

/// A field that was changed meanwhile, or is to be changed now.
struct OutdatedRow {
    label: &'static str,
    /// Whether it was changed meanwhile.
    is_changed: bool,
    /// Whether it stays as it is now: who sent the form has not touched it.
    stays: bool,
    now: String,
    /// What was written, where it does not stay.
    sent: String,
    /// The name of its input, where it can be written otherwise still; empty elsewhere.
    input: String,
}

impl SentEdit {
    /// What the change begins from. A form that does not say it is none of this service's pages.
    pub(super) fn base(&self) -> EditBase {
        self.seen.as_ref().map_or(EditBase::Present, |seen| EditBase::Shown(seen.changed_last))
    }

    /// The value of a field that was sent: none where the form has no such field, and null where it was left empty.
    fn sent(&self, path: &str, is_whole: bool) -> Option<&Value> {
        match path.split_once('.') {
            Some((object, name)) => Some(self.fields.get(object)?.get(name).unwrap_or(&NOTHING)),
            None => self.fields.get(path).or_else(|| is_whole.then_some(&NOTHING)),
        }
    }

    /// Whether a field holds something else than when the form was made.
    fn was_changed(&self, at: usize, field: &ShownField) -> bool {
        let is_other = |before: &String| *before != mark(&field.text);
        self.seen.as_ref().is_some_and(|seen| seen.marks.get(at).is_none_or(is_other))
    }

    /// Whether a field was sent as it stood in the form when that was made.
    fn is_untouched(&self, at: usize, sent: &Value) -> bool {
        let before = self.seen.as_ref().and_then(|seen| seen.marks.get(at));
        before.is_some_and(|before| *before == mark(&written(sent)))
    }

    /// The fields that were sent and that others alone have changed: what they hold now stays.
    fn staying<'a>(&self, shows: &'a ShownFields) -> Vec<&'a ShownField> {
        let stays = |(at, field): &(usize, &ShownField)| {
            let sent = self.sent(field.path, shows.is_whole);
            self.was_changed(*at, field) && sent.is_some_and(|sent| self.is_untouched(*at, sent))
        };
        shows.fields.iter().enumerate().filter(stays).map(|(_, field)| field).collect()
    }

    /// Answers a form that was refused since what it `shows` is there now, which `by` has changed, as far as that is known. It is looked
    /// at on the page at `current`, a path from the root.
    pub(super) fn outdated(
        self,
        visitor: Visitor,
        shows: &ShownFields,
        by: Option<&str>,
        current: &str,
    ) -> ApiResult {
        let is_changed = |(at, field): &(usize, &ShownField)| self.was_changed(*at, field);
        let changed: Vec<&ShownField> =
            shows.fields.iter().enumerate().filter(is_changed).map(|(_, field)| field).collect();
        let message = message(by, &changed);
        if visitor.is_script() {
            let staying: Vec<&str> = self.staying(shows).iter().map(|field| field.path).collect();
            let told = |field: &&ShownField| {
                let now: String = field.told(&field.text).chars().take(TOLD).collect();
                let kept = staying.contains(&field.path);
                let kept = kept.then(|| json!({"path": field.path, "text": field.text}));
                json!({"label": field.label, "now": now, "kept": kept})
            };
            let changed: Vec<Value> = changed.iter().map(told).collect();
            let current = format!("{}{current}", visitor.frame.root);
            let data = json!({"seen": shows.seen(), "current": current, "changed": changed});
            let error = ApiError::new(ApiErrorKind::Conflict, EditBase::CHANGED, message);
            return Err(ApiError { data: Some(Box::new(data)), ..error });
        }
        let rows = self.rows(shows);
        let (kept, had_secret) = self.kept(shows, &rows);
        let page = OutdatedPage {
            message,
            rows,
            kept,
            had_secret,
            seen: shows.seen(),
            action: self.path,
            current: current.to_owned(),
            frame: visitor.frame,
        };
        html(&PagePolicy::Own, StatusCode::CONFLICT, &page)
    }

    fn rows(&self, shows: &ShownFields) -> Vec<OutdatedRow> {
        let staying: Vec<&str> = self.staying(shows).iter().map(|field| field.path).collect();
        let row = |(at, field): (usize, &ShownField)| {
            let is_changed = self.was_changed(at, field);
            let sent = self.sent(field.path, shows.is_whole);
            // What the form does not say stays what it is, too.
            let stays = sent.is_none() || staying.contains(&field.path);
            let text = sent.map(written);
            let differs = text.as_ref().is_some_and(|text| text.trim() != field.text.trim());
            if !is_changed && !differs {
                return None;
            }
            let kind = match field.input {
                FieldInput::Text => "text",
                FieldInput::Object => "object",
                FieldInput::Lines => "lines",
                FieldInput::Fixed | FieldInput::Secret => "",
            };
            let is_editable = !kind.is_empty() && !stays;
            Some(OutdatedRow {
                label: field.label,
                is_changed,
                stays,
                now: field.told(&field.text),
                sent: match text {
                    Some(text) if is_editable => text,
                    Some(text) if !stays => field.told(&text),
                    Some(_) | None => String::new(),
                },
                input: if is_editable { format!("{}:{kind}", field.path) } else { String::new() },
            })
        };
        shows.fields.iter().enumerate().filter_map(row).collect()
    }

    /// The other fields that were sent, each with the name of an input that says it again, and whether there was a secret among them.
    fn kept(&self, shows: &ShownFields, rows: &[OutdatedRow]) -> (Vec<(String, String)>, bool) {
        let is_written = |name: &str| {
            let mut inputs = rows.iter().filter_map(|row| row.input.split_once(':'));
            inputs.any(|(path, _)| path == name)
        };
        let mut fields = self.fields.clone();
        for field in self.staying(shows) {
            field.keep(&mut fields, shows.is_whole);
        }
        let had_secret = take_secrets(&mut fields, shows);
        let kept =
            fields.into_iter().filter(|(name, _)| !is_written(name)).map(|(name, value)| match value {
                Value::String(text) => (format!("{name}:text"), text),
                value => (format!("{name}:json"), value.to_string()),
            });
        (kept.collect(), had_secret)
    }
}

/// Takes what nobody is to be shown out of what was sent, and says whether there was any. A secret that is shown masked stays what it is.
fn take_secrets(fields: &mut Map<String, Value>, shows: &ShownFields) -> bool {
    // Null takes a secret away, and is none.
    let is_secret = |given: &Value| !given.is_null();
    let mut had_secret = fields.get("authorization").is_some_and(is_secret);
    if had_secret {
        fields.remove("authorization");
    }
    if let Some(config) = fields.get_mut("config").and_then(Value::as_object_mut) {
        for name in ["authorization", "secretAccessKey"] {
            if config.get(name).is_some_and(is_secret) {
                config.remove(name);
                had_secret = true;
            }
        }
    }
    for field in shows.fields.iter().filter(|field| field.input == FieldInput::Secret) {
        let Some((object, name)) = field.path.split_once('.') else { continue };
        let Some(object) = fields.get_mut(object).and_then(Value::as_object_mut) else { continue };
        let is_new = object.get(name).and_then(Value::as_str).is_some_and(|given| given != field.text);
        if is_new {
            object.insert(name.to_owned(), json!(field.text));
            had_secret = true;
        }
    }
    had_secret
}

/// What is said of a form that was refused.
fn message(by: Option<&str>, changed: &[&ShownField]) -> String {
    let labels: Vec<&str> = changed.iter().map(|field| field.label).collect();
    let what =
        if labels.is_empty() { "something that is not in this form".to_owned() } else { labels.join(", ") };
    match by {
        Some(by) => format!("Nothing was saved. Since this page was opened, {by} changed this: {what}."),
        None => format!("Nothing was saved. Since this page was opened, this was changed elsewhere: {what}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, key: &str) -> ShownFields {
        ShownFields::of(Timestamp::from_micros(7))
            .text("name", "Name", name)
            .object("metadata", "Metadata", "")
            .switch("hasMemory", "Memory", true)
            .secret("llm.api_key", "Key", key)
            .choice("promptId", "Prompt", "1", &[("1".to_owned(), "Formal".to_owned())])
    }

    fn sent(seen: &ShownFields, fields: &Value) -> SentEdit {
        let fields = fields.as_object().unwrap().clone();
        SentEdit { path: "agents/1".to_owned(), seen: SeenFields::read(&seen.seen()), fields }
    }

    #[test]
    fn what_was_changed_meanwhile_is_told_from_what_was_written() {
        let edit = sent(
            &shown("Guide", "sk-…1"),
            &json!({"name": "Clerk", "metadata": {}, "hasMemory": false, "llm": {"api_key": "sk-…1"}}),
        );
        assert_eq!(edit.base(), EditBase::Shown(Timestamp::from_micros(7)));
        let rows = edit.rows(&shown("Scribe\r\n", "sk-…1"));
        let rows: Vec<_> =
            rows.iter().map(|row| (row.label, row.is_changed, &*row.now, &*row.sent)).collect();
        assert_eq!(rows, [("Name", true, "Scribe\n", "Clerk"), ("Memory", false, "yes", "no")]);
    }

    /// What is sent again when somebody saves on top of what is there now, of the fields whose rows have no input.
    fn kept(edit: &SentEdit, now: &ShownFields) -> Value {
        let (kept, had_secret) = edit.kept(now, &edit.rows(now));
        assert!(!had_secret, "{kept:?}");
        let value = |(name, text): (String, String)| match name.split_once(':') {
            Some((name, "text")) => (name.to_owned(), json!(text)),
            Some((name, _)) => (name.to_owned(), serde_json::from_str(&text).unwrap()),
            None => panic!("{name}"),
        };
        Value::Object(kept.into_iter().map(value).collect())
    }

    #[test]
    fn what_its_sender_has_not_touched_stays_what_others_have_made_of_it() {
        let shown = |name: &str, model: &str, key: &str, heat: &str, steps: &str| {
            let shown = ShownFields::of(Timestamp::from_micros(7)).text("name", "Name", name);
            let shown = shown.text("llm.model", "Model", model).secret("llm.api_key", "Key", key);
            shown.number("llm.temperature", "Temperature", heat).number("llm.max_steps", "Steps", steps)
        };
        let llm = json!({"model": "own", "api_key": "sk-…1", "max_steps": 3});
        let edit = sent(&shown("Guide", "a", "sk-…1", "", "3"), &json!({"name": "Guide", "llm": llm}));
        let now = shown("Scribe", "b", "sk-…2", "0.5", "");
        let rows = edit.rows(&now);
        let stays: Vec<_> = rows.iter().map(|row| (row.label, row.stays, &*row.sent)).collect();
        let others = ["Key", "Temperature", "Steps"].map(|label| (label, true, ""));
        assert_eq!(stays[..2], [("Name", true, ""), ("Model", false, "own")]);
        assert_eq!(stays[2..], others);
        assert!(rows.iter().all(|row| row.input.is_empty()));
        // No word of a name leaves it as it is; a model's settings are replaced as one.
        let llm = json!({"model": "own", "api_key": "sk-…2", "temperature": 0.5});
        assert_eq!(kept(&edit, &now), json!({"llm": llm}));
    }

    #[test]
    fn a_form_that_says_all_says_again_what_others_have_made_of_it() {
        let shown = |title: &str, rate: &str, questions: &str, accent: &str| {
            let shown = ShownFields::of(Timestamp::from_micros(7)).whole().text("title", "Title", title);
            let shown =
                shown.number("ratePerMinute", "Rate", rate).lines("questions", "Questions", questions);
            shown.text("accent", "Colour", accent)
        };
        let edit = sent(
            &shown("", "", "Who?\nWhy?", "#000000"),
            &json!({"questions": ["Who?", "Why?"], "accent": "#000000"}),
        );
        let now = shown("Ask", "5", "", "");
        assert!(edit.rows(&now).iter().all(|row| row.stays));
        assert_eq!(kept(&edit, &now), json!({"title": "Ask", "ratePerMinute": 5, "questions": []}));
    }

    #[test]
    fn what_was_sent_is_said_again_but_for_secrets() {
        let now = shown("Guide", "sk-…1");
        let fields = json!({
            "name": "Guide",
            "promptId": null,
            "llm": {"model": "m", "api_key": "sk-secret"},
            "authorization": {"type": "bearer", "token": "secret"},
        });
        let edit = sent(&now, &fields);
        let (kept, had_secret) = edit.kept(&now, &edit.rows(&now));
        assert!(had_secret);
        let kept: Vec<_> = kept.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert!(
            kept.contains(&("name:text", "Guide")) && kept.contains(&("promptId:json", "null")),
            "{kept:?}"
        );
        assert!(kept.iter().all(|(_, text)| !text.contains("secret")), "{kept:?}");
        let llm = kept.iter().find(|(name, _)| *name == "llm:json").unwrap().1;
        assert_eq!(serde_json::from_str::<Value>(llm).unwrap(), json!({"model": "m", "api_key": "sk-…1"}));
    }

    #[test]
    fn a_form_that_does_not_say_what_it_was_made_from_begins_from_what_is_there() {
        for text in ["", "x", "1x.a"] {
            assert!(SeenFields::read(text).is_none(), "{text}");
        }
        assert!(SeenFields::read("1").unwrap().marks.is_empty());
    }

    #[test]
    fn a_refused_form_says_what_was_changed_and_by_whom() {
        let shown = shown("Guide", "");
        let changed: Vec<&ShownField> = shown.fields.iter().take(2).collect();
        let told = message(Some("Ben"), &changed);
        assert!(told.ends_with("Ben changed this: Name, Metadata."), "{told}");
        assert!(message(None, &[]).ends_with("changed elsewhere: something that is not in this form."));
    }
}
