//! A conversation as these clients tell it: all of it with every request, as a list of messages. What an agent is asked is the last
//! of them that are the user's; the others are its history.

use std::borrow::Cow;

use lectern_shared::ids::TraceId;
use serde_json::{Map, Value};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema, Type},
};

use crate::fields::JsonFields;

/// Characters of a question, and of what is said of how to answer, at most.
const LONGEST_TEXT: usize = 100_000;
/// What stands between texts that are read as one.
const BETWEEN: &str = "\n\n";

/// What an agent is asked, with what was said before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) question: String,
    /// Earlier questions and their answers, oldest first.
    pub(super) history: Vec<(String, String)>,
    /// What the client says of how to answer.
    pub(super) instructions: Option<String>,
    /// Answers that the history lacks: they have to be looked up before an agent is asked.
    pub(super) references: Vec<AnswerReference>,
}

/// An earlier answer that a client refers to instead of sending it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnswerReference {
    /// The field of the request that does.
    pub(super) path: String,
    /// The trace of the run that gave it.
    pub(super) trace: TraceId,
    /// Where it belongs: the turn of the history.
    pub(super) turn: usize,
    /// And the place in that turn's answer, in bytes.
    pub(super) at: usize,
}

/// What is read of a message's content.
pub(super) struct ContentSchema;

impl PartialSchema for ContentSchema {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let kinds = ["text", "input_text", "output_text"];
        let part = ObjectBuilder::new()
            .schema_type(Type::Object)
            .property("type", text().enum_values(Some(kinds)))
            .property("text", text())
            .required("type")
            .required("text");
        let description = "A text, or parts of which each is a text. Agents read no images, sound or files here: put a document \
                           where the agent searches.";
        let parts = ArrayBuilder::new().items(part);
        OneOfBuilder::new().item(text()).item(parts).description(Some(description)).into()
    }
}

impl ToSchema for ContentSchema {
    fn name() -> Cow<'static, str> {
        "OpenAiContent".into()
    }
}

/// Puts a conversation together, message by message.
#[derive(Default)]
pub(super) struct ConversationBuilder {
    instructions: Vec<String>,
    history: Vec<(String, String)>,
    /// What the user has said since the last answer.
    asked: Vec<String>,
    references: Vec<AnswerReference>,
    /// Something that may have been the question could not be read, which was noted.
    is_unread: bool,
}

impl ConversationBuilder {
    /// A conversation for which this was said apart from it.
    pub(super) fn with_instructions(instructions: Option<String>) -> Self {
        Self { instructions: instructions.into_iter().collect(), ..Self::default() }
    }

    /// Adds something that the user says.
    pub(super) fn ask(&mut self, text: String) {
        self.asked.push(text);
    }

    /// Passes over something that was refused, and may have been the question.
    pub(super) fn note_unread(&mut self) {
        self.is_unread = true;
    }

    /// Reads one message, which stands at `path`. Calls of tools and what they gave are the client's own business.
    pub(super) fn read_message(
        &mut self,
        fields: &mut JsonFields<'_>,
        path: &str,
        message: &Map<String, Value>,
    ) {
        let Some(role) = message.get("role").and_then(Value::as_str) else {
            fields.refuse(&format!("{path}.role"), "is required, and must be a string");
            self.note_unread();
            return;
        };
        let content = message.get("content").filter(|content| !content.is_null());
        match role {
            "system" | "developer" => {
                self.instructions.push(text_of(fields, path, content).unwrap_or_default());
            }
            "user" => match text_of(fields, path, content) {
                Some(text) => self.asked.push(text),
                None => self.note_unread(),
            },
            "assistant" => self.answer(text_of(fields, path, content).unwrap_or_default()),
            "tool" | "function" => {}
            _ => {
                let roles = "must be one of system, developer, user, assistant, tool, function";
                fields.refuse(&format!("{path}.role"), roles);
                self.note_unread();
            }
        }
    }

    /// Adds an answer of which only the trace is known. The field `path` says so.
    pub(super) fn refer(&mut self, path: String, trace: TraceId) {
        self.go_on(String::new());
        if let Some((turn, (_, answer))) = self.history.iter().enumerate().next_back() {
            self.references.push(AnswerReference { path, trace, turn, at: answer.len() });
        }
    }

    fn answer(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.go_on(text);
        }
    }

    /// Adds to the last answer, or begins one when something was asked since.
    fn go_on(&mut self, text: String) {
        let asked = join(std::mem::take(&mut self.asked));
        match self.history.last_mut() {
            // Said in two messages without a question between.
            Some((_, answer)) if asked.is_empty() => {
                answer.push_str(BETWEEN);
                answer.push_str(&text);
            }
            Some(_) | None => self.history.push((asked, text)),
        }
    }

    /// The conversation, which stands in the field `name`. None, and noted, when it does not end with a question.
    pub(super) fn finish(self, fields: &mut JsonFields<'_>, name: &str) -> Option<Conversation> {
        let question = join(self.asked);
        if question.is_empty() {
            if !self.is_unread {
                fields.refuse(name, "must end with a text of the user, which is what the agent is asked");
            }
            return None;
        }
        if question.chars().count() > LONGEST_TEXT {
            let message = format!("must end with a text of the user of at most {LONGEST_TEXT} characters");
            fields.refuse(name, message);
            return None;
        }
        let instructions = Some(join(self.instructions)).filter(|text| !text.is_empty());
        if instructions.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TEXT) {
            let message = format!("may say at most {LONGEST_TEXT} characters of how to answer");
            fields.refuse(name, message);
            return None;
        }
        Some(Conversation { question, history: self.history, instructions, references: self.references })
    }
}

/// Texts as one, without those that say nothing.
fn join(texts: Vec<String>) -> String {
    let said = texts.into_iter().filter(|text| !text.trim().is_empty());
    said.collect::<Vec<_>>().join(BETWEEN)
}

/// The text of the message at `path`; none, and noted, when any of it is no text.
fn text_of(fields: &mut JsonFields<'_>, path: &str, content: Option<&Value>) -> Option<String> {
    match content {
        None => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => {
            // All of them are read, so that each that is wrong is named.
            let mut texts = Vec::with_capacity(parts.len());
            for (at, part) in parts.iter().enumerate() {
                texts.push(text_of_part(fields, &format!("{path}.content.{at}"), part));
            }
            let texts: Option<Vec<&str>> = texts.into_iter().collect();
            texts.map(|texts| texts.join("\n"))
        }
        Some(_) => {
            fields.refuse(&format!("{path}.content"), "must be a string or an array of parts");
            None
        }
    }
}

/// The text of a part of a message; none, and noted, when it is something else.
fn text_of_part<'v>(fields: &mut JsonFields<'_>, path: &str, part: &'v Value) -> Option<&'v str> {
    let field = match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => "text",
        Some("refusal") => "refusal",
        Some(other) => {
            fields.refuse(&format!("{path}.type"), format_args!("is `{other}`: agents read texts alone"));
            return None;
        }
        None => {
            fields.refuse(&format!("{path}.type"), "is required: `text`");
            return None;
        }
    };
    let text = part.get(field).and_then(Value::as_str);
    if text.is_none() {
        fields.refuse(&format!("{path}.{field}"), "is required, and must be a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{error::ApiError, fields::read};

    /// The conversation of these messages.
    #[expect(clippy::needless_pass_by_value, reason = "it is written where it is read")]
    fn conversation(messages: Value) -> Result<Conversation, ApiError> {
        read(&json!({"messages": messages}), |fields| {
            let mut builder = ConversationBuilder::default();
            for (at, message) in fields.get("messages").unwrap().as_array().unwrap().iter().enumerate() {
                builder.read_message(fields, &format!("messages.{at}"), message.as_object().unwrap());
            }
            builder.finish(fields, "messages").unwrap_or_default()
        })
    }

    /// The field that is wrong, of which there is one alone.
    fn wrong_field(messages: Value) -> String {
        let [wrong] = <[_; 1]>::try_from(conversation(messages).unwrap_err().fields).unwrap();
        wrong.path
    }

    #[test]
    fn the_last_words_of_the_user_are_the_question_and_all_before_is_history() {
        let read = conversation(json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Who was the captain?"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "tool_call_id": "1", "content": "ignored"},
            {"role": "assistant", "content": [{"type": "text", "text": "Solveig Aas."}]},
            {"role": "developer", "content": "In English."},
            {"role": "user", "content": "And before her?"},
            {"role": "user", "content": [{"type": "text", "text": "The one"}, {"type": "input_text", "text": "of 1911."}]},
        ]));
        let read = read.unwrap();
        assert_eq!(read.question, "And before her?\n\nThe one\nof 1911.");
        assert_eq!(read.history, [("Who was the captain?".to_owned(), "Solveig Aas.".to_owned())]);
        assert_eq!(read.instructions.as_deref(), Some("Be brief.\n\nIn English."));
    }

    #[test]
    fn an_answer_without_a_question_and_one_in_two_messages_are_kept() {
        let read = conversation(json!([
            {"role": "assistant", "content": "Hello."},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]},
            {"role": "user", "content": "Why?"},
        ]));
        let read = read.unwrap();
        assert_eq!(read.history, [(String::new(), "Hello.\n\nI cannot.".to_owned())]);
        assert_eq!((read.question.as_str(), read.instructions), ("Why?", None));
    }

    #[test]
    fn an_answer_that_is_referred_to_has_its_place_among_those_that_are_told() {
        let mut builder = ConversationBuilder::default();
        let traces = [(); 3].map(|()| TraceId::generate());
        builder.ask("Who?".to_owned());
        builder.answer("She.".to_owned());
        builder.refer("input.2.id".to_owned(), traces[0]);
        builder.refer("input.3.id".to_owned(), traces[1]);
        builder.ask("Why?".to_owned());
        builder.refer("input.5.id".to_owned(), traces[2]);
        builder.ask("When?".to_owned());
        let read = read(&json!({}), |fields| builder.finish(fields, "input").unwrap_or_default()).unwrap();
        assert_eq!(read.question, "When?");
        assert_eq!(
            read.history,
            [("Who?".to_owned(), "She.\n\n\n\n".to_owned()), ("Why?".to_owned(), String::new())]
        );
        let places: Vec<_> =
            read.references.iter().map(|found| (found.trace, found.turn, found.at)).collect();
        assert_eq!(places, [(traces[0], 0, 6), (traces[1], 0, 8), (traces[2], 1, 0)]);
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_place() {
        let image = json!([{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {}}]);
        let cases = [
            (json!([{"role": "user", "content": image}]), "messages.0.content.1.type"),
            (json!([{"role": "user", "content": [image[1]]}]), "messages.0.content.0.type"),
            (json!([{"role": "user", "content": 7}]), "messages.0.content"),
            (json!([{"role": "user", "content": [{"type": "text"}]}]), "messages.0.content.0.text"),
            (json!([{"role": "user", "content": ["text"]}]), "messages.0.content.0.type"),
            (json!([{"role": "wizard", "content": "x"}]), "messages.0.role"),
            (json!([{"content": "x"}]), "messages.0.role"),
        ];
        for (messages, path) in cases {
            assert_eq!(wrong_field(messages.clone()), path, "{messages}");
        }
    }

    #[test]
    fn a_conversation_that_does_not_end_with_the_user_is_refused() {
        for messages in [
            json!([]),
            json!([{"role": "system", "content": "Be brief."}]),
            json!([{"role": "user", "content": " \n"}]),
            json!([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello"}]),
            json!([{"role": "user", "content": "x".repeat(LONGEST_TEXT + 1)}]),
        ] {
            assert_eq!(wrong_field(messages), "messages");
        }
    }
}
