//! What can be said of an agent.

use std::collections::HashSet;

use lectern_agents::models::ModelProvider;
use lectern_shared::{
    ids::TagId,
    model::agent::{AgentType, LlmConfig},
};
use secrecy::SecretString;
use serde_json::Value;
use url::Url;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type},
};

use crate::{
    extract::{FromFields, JsonFields},
    services::agents::{AgentChange, MASKED, NewAgent, NewLlm, PromptRef, TagIds},
    v1::{DESCRIPTION, NAME},
};

/// Most tags of an agent.
const TAGS: usize = 100;
/// Longest address and key of a provider, in characters.
const TEXT: usize = 2_000;

/// A model to ask.
#[derive(ToSchema)]
#[schema(as = NewLlm)]
#[allow(dead_code, reason = "it describes the JSON; the values are read one by one")]
struct LlmBody {
    /// The model's name, sent to the provider as given.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    model: String,
    /// The provider. `openai-compatible` needs `base_url`; `extractive` needs no model at all: it quotes the documents.
    #[schema(value_type = ProviderSchema)]
    provider: String,
    /// Where the provider is, when it is not at its usual place: an http or https address without credentials. `azure-openai`
    /// and `ollama` need it where the operator has not set theirs.
    #[schema(max_length = 2_000)]
    base_url: Option<String>,
    /// The sampling temperature; the provider's own when left out.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// The most tokens that the model may write in one step.
    #[schema(value_type = Option<CountSchema>)]
    max_tokens: Option<u32>,
    /// Tokens that the model has room for, read and written. Fewer passages and remembered turns are sent to one with little room.
    #[schema(value_type = Option<CountSchema>)]
    context_window: Option<u32>,
    /// Requests to the model in one predict. This and the following can only lower what the service allows.
    #[schema(value_type = Option<CountSchema>)]
    max_steps: Option<u32>,
    /// Seconds that one predict may take.
    #[schema(minimum = 0.1, maximum = 86_400)]
    max_seconds: Option<f64>,
    /// Tokens of one predict, read and written.
    #[schema(value_type = Option<CountSchema>)]
    max_total_tokens: Option<u32>,
    /// What one predict may cost, in the currency of the service's prices. Models without a price cost nothing.
    #[schema(minimum = 0, maximum = 1_000_000)]
    max_cost: Option<f64>,
    /// A key of the provider for this agent alone, of printable ASCII characters; without one it is the service's. It is shown
    /// masked from then on.
    #[schema(max_length = 2_000)]
    api_key: Option<String>,
}

/// A provider's label.
struct ProviderSchema;

impl PartialSchema for ProviderSchema {
    fn schema() -> RefOr<Schema> {
        let labels = ModelProvider::ALL.map(ModelProvider::label);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(labels)).into()
    }
}

impl ToSchema for ProviderSchema {}

/// A count, which is read from digits too.
struct CountSchema;

impl PartialSchema for CountSchema {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        let digits = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9]+$"));
        let description = "A whole number of at least 1, or its digits in a string.";
        OneOfBuilder::new().item(number).item(digits).description(Some(description)).into()
    }
}

impl ToSchema for CountSchema {}

/// One of your tags.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it describes the JSON; the values are read one by one")]
enum TagReference {
    /// Its id.
    Id(String),
    /// The tag as it was shown, of which the id alone is read.
    Tag {
        /// Its id.
        id: String,
    },
}

/// A new agent.
#[derive(ToSchema)]
#[schema(as = NewAgent, rename_all = "camelCase")]
#[allow(dead_code, reason = "it describes the JSON; the values are read one by one")]
pub(super) struct NewAgentSchema {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// How it talks with its model: `CHATVENDOR` by function calling, `REACT` in text.
    #[schema(pattern = "^(CHATVENDOR|REACT)$")]
    r#type: String,
    /// Anything you want to say of it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// Its model; the service's default when left out.
    llm: Option<LlmBody>,
    /// Whether it remembers the turns of a session. False when left out.
    has_memory: Option<bool>,
    /// One of your prompts.
    prompt_id: Option<String>,
    /// Your tags, each as its id or as an object with it. One that is named twice counts once.
    #[schema(max_items = 100)]
    tags: Option<Vec<TagReference>>,
}

impl FromFields for NewAgent {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        Self {
            r#type: fields.choice("type", &AgentType::choices()).unwrap_or(AgentType::ChatVendor),
            name: fields.text("name", NAME),
            description: fields.optional_text("description", DESCRIPTION).unwrap_or_default(),
            llm: fields.nested("llm", llm),
            has_memory: fields.boolean("hasMemory").unwrap_or(false),
            prompt: prompt(fields),
            tags: tags(fields),
        }
    }
}

/// What is to be different about an agent. What is left out stays as it is.
#[derive(ToSchema)]
#[schema(as = AgentChange, rename_all = "camelCase")]
#[allow(dead_code, reason = "it describes the JSON; the values are read one by one")]
pub(super) struct AgentChangeSchema {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    name: Option<String>,
    /// How it talks with its model: `CHATVENDOR` by function calling, `REACT` in text.
    #[schema(pattern = "^(CHATVENDOR|REACT)$", nullable = false)]
    r#type: Option<String>,
    /// Anything you want to say of it; null empties it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// The whole new model. What it leaves out is not taken from the old one; an `api_key` that comes back masked stays as it is,
    /// for the same provider and host.
    #[schema(nullable = false)]
    llm: Option<LlmBody>,
    /// Whether it remembers the turns of a session.
    #[schema(nullable = false)]
    has_memory: Option<bool>,
    /// One of your prompts; null for none.
    prompt_id: Option<String>,
    /// All its tags from now on, each as its id or as an object with it; null for none.
    #[schema(max_items = 100)]
    tags: Option<Vec<TagReference>>,
}

impl FromFields for AgentChange {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        fields.only(&["name", "type", "description", "llm", "hasMemory", "promptId", "tags"]);
        fields.refuse_nulls(&["name", "type", "llm", "hasMemory"]);
        let is_set = |fields: &JsonFields<'_>, name| fields.get(name).is_some();
        let description = fields.optional_text("description", DESCRIPTION).unwrap_or_default();
        Self {
            r#type: is_set(fields, "type").then(|| fields.choice("type", &AgentType::choices())).flatten(),
            name: is_set(fields, "name").then(|| fields.text("name", NAME)),
            description: fields.given("description").then_some(description),
            llm: fields.nested("llm", llm),
            has_memory: fields.boolean("hasMemory"),
            prompt: fields.given("promptId").then(|| prompt(fields)),
            tags: fields.given("tags").then(|| tags(fields)),
        }
    }
}

fn llm(fields: &mut JsonFields<'_>) -> NewLlm {
    let provider = fields.text("provider", NAME);
    let parsed = provider.parse::<ModelProvider>();
    if parsed.is_err() && fields.get("provider").is_some() {
        let known: Vec<_> = ModelProvider::ALL.iter().map(|provider| provider.label()).collect();
        fields.refuse("provider", format_args!("must be one of {}", known.join(", ")));
    }
    let base_url = fields.optional_text("base_url", TEXT);
    match &base_url {
        Some(text) => match Url::parse(text) {
            Ok(url)
                if matches!(url.scheme(), "http" | "https")
                    && url.username().is_empty()
                    && url.password().is_none() => {}
            Ok(_) | Err(_) => {
                fields.refuse("base_url", "must be an http or https address without credentials");
            }
        },
        None if parsed == Ok(ModelProvider::OpenAiCompatible) => {
            fields.refuse("base_url", "is required for openai-compatible");
        }
        None => {}
    }
    let llm = LlmConfig {
        model: fields.text("model", NAME),
        provider,
        base_url,
        temperature: fields.number("temperature", 0.0, 2.0),
        max_tokens: fields.count("max_tokens"),
        context_window: fields.count("context_window"),
        max_steps: fields.count("max_steps"),
        max_seconds: fields.number("max_seconds", 0.1, 86_400.0),
        max_total_tokens: fields.count("max_total_tokens"),
        max_cost: fields.number("max_cost", 0.0, 1_000_000.0),
    };
    let key = fields.optional_text("api_key", TEXT).filter(|key| !key.trim().is_empty());
    if key.as_ref().is_some_and(|key| !key.chars().all(|c| c == MASKED || matches!(c, ' '..='~'))) {
        fields.refuse("api_key", "must be printable ASCII characters");
    }
    NewLlm { llm, key: key.map(SecretString::from) }
}

fn prompt(fields: &mut JsonFields<'_>) -> Option<PromptRef> {
    fields.get("promptId")?;
    Some(PromptRef(fields.id("promptId")))
}

fn tags(fields: &mut JsonFields<'_>) -> TagIds {
    let items = match fields.get("tags") {
        None => return Some(Vec::new()),
        Some(Value::Array(items)) if items.len() <= TAGS => items,
        Some(Value::Array(_)) => {
            fields.refuse("tags", format_args!("must have at most {TAGS} items"));
            return None;
        }
        Some(_) => {
            fields.refuse("tags", "must be an array of tags or their ids");
            return None;
        }
    };
    let mut seen = HashSet::new();
    let (mut ids, mut all_ids) = (Vec::with_capacity(items.len()), true);
    for (at, item) in items.iter().enumerate() {
        let text = match item {
            Value::Object(tag) => tag.get("id"),
            other => Some(other),
        };
        match (item, text) {
            // Text that cannot be an id is an unknown id, which the service answers.
            (_, Some(Value::String(text))) => match text.parse::<TagId>() {
                Ok(id) if seen.insert(id) => ids.push(id),
                Ok(_) => {}
                Err(_) => all_ids = false,
            },
            (Value::Object(_), None | Some(Value::Null)) => {
                fields.refuse(&format!("tags.{at}.id"), "is required");
            }
            (Value::Object(_), Some(_)) => fields.refuse(&format!("tags.{at}.id"), "must be a string"),
            (_, _) => fields.refuse(&format!("tags.{at}"), "must be a tag or its id"),
        }
    }
    all_ids.then_some(ids)
}
