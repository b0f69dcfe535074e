//! What is read of a request for a chat completion. Everything else that clients send is ignored.

use lectern_derive::RequestBody;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    fields::{FieldRule, JsonFields, as_whole},
    openai::{
        asking::refuse_formats,
        messages::{ContentSchema, Conversation, ConversationBuilder},
    },
};

/// A conversation whose last word is the user's.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiChatCompletionRequest)]
#[body(before = refuse_unsupported)]
pub(super) struct CompletionRequest {
    /// The agent: its id, or its name if no other one is called the same.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(super) model: String,
    /// The conversation, oldest first. It ends with a text of the user.
    #[schema(value_type = Vec<CompletionMessage>, max_items = 10_000)]
    #[body(with = conversation)]
    pub(super) messages: Conversation,
    /// Whether the answer is to come in pieces, as server-sent events.
    #[schema(required = false, default = false)]
    pub(super) stream: bool,
    /// What a stream tells besides.
    #[schema(required = false)]
    #[body(default)]
    pub(super) stream_options: CompletionStreamOptions,
    /// The most tokens that the agent's model may write. `max_completion_tokens` goes before it.
    #[schema(minimum = 1)]
    pub(super) max_tokens: Option<u32>,
    /// The most tokens that the agent's model may write.
    #[schema(minimum = 1)]
    pub(super) max_completion_tokens: Option<u32>,
    /// Values for the variables of the agent's prompt, by their names: strings, numbers and booleans. Everything else in it is ignored.
    #[schema(value_type = Option<Object>)]
    #[body(with = values)]
    pub(super) metadata: Map<String, Value>,
}

/// Reads the plain values of an object, by their names. What is none is the client's own business.
fn values(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Map<String, Value>> {
    let given = fields.get(rule.name)?.as_object()?;
    let plain =
        given.iter().filter(|(_, value)| value.is_string() || value.is_number() || value.is_boolean());
    Some(plain.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// What a stream tells besides the answer.
#[derive(Default, RequestBody, ToSchema)]
#[schema(as = OpenAiStreamOptions)]
pub(super) struct CompletionStreamOptions {
    /// Whether a last chunk tells how many tokens were used.
    #[schema(required = false, default = false)]
    pub(super) include_usage: bool,
}

/// A message of a conversation.
#[derive(ToSchema)]
#[schema(as = OpenAiMessage)]
#[allow(dead_code, reason = "describes what `messages` reads")]
struct CompletionMessage {
    /// Who says it: `system`, `developer`, `user` or `assistant`; what `tool` and `function` say is passed over.
    role: String,
    /// What is said. An answer that only called tools has none.
    #[schema(value_type = Option<ContentSchema>)]
    content: Option<Value>,
}

/// Refuses what an answer would have to be that no agent gives.
fn refuse_unsupported(fields: &mut JsonFields<'_>) {
    if fields.get("n").is_some_and(|n| as_whole(n) != Some(1)) {
        fields.refuse("n", "must be 1, or left out: an agent gives one answer");
    }
    let format = fields.get("response_format");
    refuse_formats(fields, "response_format", format);
}

fn conversation(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Conversation> {
    if fields.get(rule.name).is_none() {
        fields.refuse(rule.name, "is required: the messages of the conversation");
        return None;
    }
    let messages = fields.array(rule.name, rule.max_items, "messages")?;
    let mut builder = ConversationBuilder::default();
    for (at, message) in messages.iter().enumerate() {
        let path = format!("{}.{at}", rule.name);
        match message {
            Value::Object(message) => builder.read_message(fields, &path, message),
            _ => {
                fields.refuse(&path, "must be an object");
                builder.note_unread();
            }
        }
    }
    builder.finish(fields, rule.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::validate;

    fn request(more: &Value) -> Result<CompletionRequest, Vec<String>> {
        let mut body = json!({"model": "support", "messages": [{"role": "user", "content": "Who?"}]});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let wrong =
            |error: crate::error::ApiError| error.fields.into_iter().map(|field| field.path).collect();
        validate(&body).map_err(wrong)
    }

    #[test]
    fn what_clients_send_besides_is_ignored() {
        let more = json!({
            "n": 1, "temperature": 0.2, "tools": [{"type": "function"}], "tool_choice": "auto", "user": "me",
            "response_format": {"type": "text"}, "stream_options": {"include_usage": true, "include_obfuscation": false},
            "max_tokens": null, "store": false, "metadata": {"a": "b", "c": 1, "d": []}, "stream": null,
        });
        let read = request(&more).ok().unwrap();
        assert_eq!((read.model.as_str(), read.messages.question.as_str()), ("support", "Who?"));
        assert!(!read.stream && read.stream_options.include_usage);
        assert_eq!((read.max_tokens, read.max_completion_tokens), (None, None));
        assert_eq!(Value::from(read.metadata), json!({"a": "b", "c": 1}), "plain values are for the prompt");
        let read = request(&json!({"metadata": "mine"})).ok().unwrap();
        assert!(read.metadata.is_empty());
    }

    #[test]
    fn what_no_agent_can_do_is_refused_by_its_name() {
        for (more, field) in [
            (json!({"n": 2}), "n"),
            (json!({"response_format": {"type": "json_object"}}), "response_format"),
            (json!({"messages": null}), "messages"),
            (json!({"messages": "Who?"}), "messages"),
            (json!({"messages": ["Who?", {"role": "user", "content": "Who?"}]}), "messages.0"),
            (json!({"messages": ["Who?"]}), "messages.0"),
            (json!({"stream": "yes"}), "stream"),
            (json!({"model": 7}), "model"),
            (json!({"max_tokens": 0}), "max_tokens"),
        ] {
            assert_eq!(request(&more).err().unwrap(), [field], "{more}");
        }
    }
}
