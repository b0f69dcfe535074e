//! What is read of a request for a response. Everything else that clients send is ignored.

use std::{borrow::Cow, collections::BTreeSet};

use lectern_derive::RequestBody;
use lectern_shared::{clock::Timestamp, ids::CollectionId};
use serde_json::{Map, Value};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema, Type},
};

use super::{
    answer::AgentResponse,
    references::UNKNOWN_REFERENCE,
    run::{MESSAGE, SEARCH},
};
use crate::{
    fields::{FieldRule, JsonFields},
    openai::{
        asking::{refuse_formats, trace_of},
        entries::metadata,
        messages::{ContentSchema, Conversation, ConversationBuilder},
    },
};

/// Items of a conversation, at most.
const MOST_ITEMS: usize = 10_000;
/// What asks for the passages that searches found.
const RESULTS: &str = "file_search_call.results";

/// A question, or a conversation that ends with one.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiResponseRequest)]
#[body(before = refuse_unsupported)]
pub(super) struct ResponseRequest {
    /// The agent: its id, or its name if no other one is called the same.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    model: String,
    /// The question, or the conversation, oldest first, which ends with a text of the user.
    #[schema(value_type = InputSchema)]
    #[body(with = input)]
    input: Conversation,
    /// What is said of how to answer, besides the agent's own prompt.
    instructions: Option<String>,
    /// A `file_search` may name the vector stores that the agent is linked to, all of them. Other tools are the agent's own.
    #[schema(value_type = Option<Vec<Object>>)]
    #[body(with = named_stores)]
    tools: Option<NamedStores>,
    /// `file_search_call.results` shows the passages that searches found.
    #[schema(max_items = 100)]
    include: Option<Vec<String>>,
    /// The most tokens that the agent's model may write.
    #[schema(minimum = 1)]
    max_output_tokens: Option<u32>,
    /// Whether the answer is to come in pieces, as server-sent events.
    #[schema(required = false, default = false)]
    stream: bool,
    /// Values for the variables of the agent's prompt, by their names, and anything else; shown again with the response: at most 16 texts,
    /// with keys of at most 64 characters and values of at most 512.
    #[schema(value_type = Option<Object>)]
    #[body(with = metadata)]
    metadata: Option<Map<String, Value>>,
    /// Shown again with the response.
    #[schema(max_length = 512)]
    user: Option<String>,
}

/// The vector stores that a search of the documents is to be made in.
pub(super) struct NamedStores {
    /// The field that names them, or the first of those.
    pub(super) path: String,
    pub(super) stores: BTreeSet<CollectionId>,
}

/// What is said of vector stores that are none of the agent's, or not all that it searches.
pub(super) const OTHER_STORES: &str =
    "must be left out, or name all that the agent is linked to: it searches that, and nothing else";

/// How a response is to be told.
pub(super) struct ResponseForm {
    /// The response as it is before anything has happened.
    pub(super) response: AgentResponse,
    pub(super) is_streamed: bool,
    /// What searches found is shown.
    pub(super) shows_results: bool,
    /// Where the answer is to be searched for, if that is said.
    pub(super) stores: Option<NamedStores>,
}

impl ResponseRequest {
    /// What the agent is asked, and how its answer is told.
    pub(super) fn split(self, now: Timestamp) -> (Conversation, ResponseForm) {
        let Self { model, input, instructions, tools, include, max_output_tokens, stream, metadata, user } =
            self;
        let mut response = AgentResponse::begun(model, now.as_secs());
        response.instructions = instructions;
        response.max_output_tokens = max_output_tokens;
        response.metadata = metadata.unwrap_or_default();
        response.user = user;
        let shows_results = include.iter().flatten().any(|wanted| wanted == RESULTS);
        (input, ResponseForm { response, is_streamed: stream, shows_results, stores: tools })
    }
}

/// A question, or the items of a conversation.
struct InputSchema;

impl PartialSchema for InputSchema {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let roles = ["system", "developer", "user", "assistant"];
        let message = ObjectBuilder::new()
            .schema_type(Type::Object)
            .property("type", text().enum_values(Some(["message"])))
            .property("role", text().enum_values(Some(roles)))
            .property("content", ContentSchema::schema())
            .required("role")
            .required("content");
        let description =
            "A question, or messages of which the last is the user's. Items of other types are passed over.";
        let messages = ArrayBuilder::new().items(message).max_items(Some(MOST_ITEMS));
        OneOfBuilder::new().item(text()).item(messages).description(Some(description)).into()
    }
}

impl ToSchema for InputSchema {
    fn name() -> Cow<'static, str> {
        "OpenAiInput".into()
    }
}

/// Refuses what would need responses that are stored, and answers that no agent gives.
fn refuse_unsupported(fields: &mut JsonFields<'_>) {
    for name in ["previous_response_id", "conversation"] {
        if fields.get(name).is_some() {
            fields.refuse(name, "cannot be given: nothing is stored. Send the whole conversation as `input`");
        }
    }
    if fields.get("background").is_some_and(|background| background != &Value::Bool(false)) {
        fields.refuse("background", "must be false, or left out: nothing is stored");
    }
    if fields.get("prompt").is_some() {
        fields.refuse(
            "prompt",
            "cannot be given: the agent has its own. Say more of how to answer as `instructions`",
        );
    }
    let format = fields.get("text").and_then(|text| text.get("format"));
    refuse_formats(fields, "text.format", format.filter(|format| !format.is_null()));
}

fn named_stores(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<NamedStores> {
    let tools = fields.get(rule.name).and_then(Value::as_array)?;
    let mut named: Option<NamedStores> = None;
    for (at, tool) in tools.iter().enumerate() {
        if tool.get("type").and_then(Value::as_str) != Some("file_search") {
            continue;
        }
        if tool.get("filters").is_some_and(|filters| !filters.is_null()) {
            let path = format!("{}.{at}.filters", rule.name);
            fields.refuse(&path, "must be left out: an agent searches all that it is linked to");
        }
        let ids = tool.get("vector_store_ids").and_then(Value::as_array).filter(|ids| !ids.is_empty());
        let Some(ids) = ids else { continue };
        let path = format!("{}.{at}.vector_store_ids", rule.name);
        match ids.iter().map(|id| id.as_str()?.parse().ok()).collect::<Option<Vec<CollectionId>>>() {
            Some(ids) => {
                let named = named.get_or_insert_with(|| NamedStores { path, stores: BTreeSet::new() });
                named.stores.extend(ids);
            }
            None => fields.refuse(&path, OTHER_STORES),
        }
    }
    named
}

fn input(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Conversation> {
    let instructions = fields.get("instructions").and_then(Value::as_str).map(str::to_owned);
    let mut builder = ConversationBuilder::with_instructions(instructions);
    match fields.get(rule.name) {
        None => {
            fields.refuse(rule.name, "is required: a question, or the items of a conversation");
            return None;
        }
        Some(Value::String(question)) => builder.ask(question.clone()),
        Some(_) => {
            for (at, item) in fields.array(rule.name, MOST_ITEMS, "items")?.iter().enumerate() {
                read_item(fields, &mut builder, &format!("{}.{at}", rule.name), item);
            }
        }
    }
    builder.finish(fields, rule.name)
}

fn read_item(fields: &mut JsonFields<'_>, builder: &mut ConversationBuilder, path: &str, item: &Value) {
    let Value::Object(item) = item else {
        fields.refuse(path, "must be an object");
        builder.note_unread();
        return;
    };
    match item.get("type").and_then(Value::as_str) {
        None | Some("message") => builder.read_message(fields, path, item),
        Some("item_reference") => read_reference(fields, builder, format!("{path}.id"), item.get("id")),
        // What clients send back of an earlier answer: searches, calls of tools, what they gave.
        Some(_) => {}
    }
}

/// Reads what clients that `store` send in the place of what they were answered.
fn read_reference(
    fields: &mut JsonFields<'_>,
    builder: &mut ConversationBuilder,
    path: String,
    id: Option<&Value>,
) {
    let id = id.and_then(Value::as_str).unwrap_or_default();
    // Searches are passed over when they are sent, too.
    if id.starts_with(SEARCH) {
        return;
    }
    match trace_of(MESSAGE, id) {
        Some(trace) => builder.refer(path, trace),
        None => fields.refuse(&path, UNKNOWN_REFERENCE),
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::ids::TraceId;
    use serde_json::json;

    use super::*;
    use crate::{fields::validate, openai::asking::answer_id};

    fn request(more: &Value) -> Result<(Conversation, ResponseForm), Vec<String>> {
        let mut body = json!({"model": "support", "input": "Who?"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let read = validate::<ResponseRequest>(&body);
        let read = read.map(|request| request.split(Timestamp::from_micros(7_000_000)));
        read.map_err(|error| error.fields.into_iter().map(|field| field.path).collect())
    }

    #[test]
    fn a_question_alone_and_a_conversation_are_read_alike() {
        let (asked, form) = request(&json!({"instructions": "Be brief.", "store": true})).ok().unwrap();
        assert_eq!((asked.question.as_str(), asked.instructions.as_deref()), ("Who?", Some("Be brief.")));
        assert!(!form.is_streamed && !form.shows_results);

        let input = json!([
            {"role": "developer", "content": "In English."},
            {"role": "user", "content": [{"type": "input_text", "text": "Who?"}]},
            {"type": "file_search_call", "id": "fs_1", "queries": ["Who?"], "status": "completed"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "She."}]},
            {"type": "message", "role": "user", "content": "Why?"},
        ]);
        let more = json!({"input": input, "instructions": "Be brief.", "include": [RESULTS], "stream": true});
        let (asked, form) = request(&more).ok().unwrap();
        assert_eq!(asked.history, [("Who?".to_owned(), "She.".to_owned())]);
        assert_eq!(
            (asked.question.as_str(), asked.instructions.as_deref()),
            ("Why?", Some("Be brief.\n\nIn English."))
        );
        assert!(form.is_streamed && form.shows_results);
    }

    #[test]
    fn a_reference_means_an_answer_and_those_to_searches_are_passed_over() {
        let trace = TraceId::generate();
        let refer = |id: String| json!({"type": "item_reference", "id": id});
        let read = |id: String| {
            let user = |text: &str| json!({"role": "user", "content": text});
            let input = json!([user("Who?"), refer("fs_1_0".to_owned()), refer(id), user("Why?")]);
            request(&json!({ "input": input })).map(|(asked, _)| asked)
        };
        let asked = read(answer_id("msg_", trace)).ok().unwrap();
        assert_eq!(asked.history, [("Who?".to_owned(), String::new())]);
        let [reference] = asked.references.as_slice() else { panic!("{:?}", asked.references) };
        assert_eq!((reference.path.as_str(), reference.trace), ("input.2.id", trace));
        for wrong in
            [format!("msg_{trace}"), answer_id("resp_", trace), answer_id("msg_", trace).to_uppercase()]
        {
            assert_eq!(read(wrong).err().unwrap(), ["input.2.id"]);
        }
    }

    #[test]
    fn the_stores_of_every_search_are_read_and_other_tools_are_the_agents_own() {
        let (one, two) = (CollectionId::generate(), CollectionId::generate());
        let named = |tools: Value| request(&json!({ "tools": tools })).ok().unwrap().1.stores;
        let search =
            |stores: Value| json!({"type": "file_search", "vector_store_ids": stores, "filters": null});
        let found = named(
            json!([{"type": "web_search", "filters": {}}, search(json!([two])), search(json!([one, two]))]),
        );
        let found = found.unwrap();
        assert_eq!(
            (found.path.as_str(), found.stores),
            ("tools.1.vector_store_ids", BTreeSet::from([one, two]))
        );
        for none in
            [json!(null), json!([]), json!("auto"), json!([search(json!([])), {"type": "function"}, 7])]
        {
            assert!(named(none.clone()).is_none(), "{none}");
        }
    }

    #[test]
    fn what_would_have_to_be_stored_is_refused_by_its_name() {
        for (more, field) in [
            (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
            (json!({"conversation": {"id": "conv_1"}}), "conversation"),
            (json!({"background": true}), "background"),
            (json!({"prompt": {"id": "pmpt_1"}}), "prompt"),
            (
                json!({"tools": [{"type": "function"}, {"type": "file_search", "vector_store_ids": ["vs_1"]}]}),
                "tools.1.vector_store_ids",
            ),
            (
                json!({"tools": [{"type": "file_search", "filters": {"type": "eq", "key": "year", "value": 2026}}]}),
                "tools.0.filters",
            ),
            (json!({"text": {"format": {"type": "json_schema"}}}), "text.format"),
            (json!({"input": null}), "input"),
            (json!({"input": 7}), "input"),
            (json!({"user": "x".repeat(513)}), "user"),
            (json!({"metadata": {"note": "x".repeat(513)}}), "metadata.note"),
            (json!({"input": [{"role": "assistant", "content": "Hello"}]}), "input"),
            (json!({"input": ["Who?", {"role": "user", "content": "Who?"}]}), "input.0"),
            (
                json!({"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "Who?"}]}),
                "input.0.id",
            ),
            (
                json!({"input": [{"type": "item_reference"}, {"role": "user", "content": "Who?"}]}),
                "input.0.id",
            ),
        ] {
            assert_eq!(request(&more).err().unwrap(), [field], "{more}");
        }
    }
}
