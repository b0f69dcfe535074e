//! What is read of the bodies of agents, besides plain texts, and how it is described.

use std::collections::HashSet;

use lectern_shared::ids::TagId;
use secrecy::SecretString;
use serde_json::Value;
use url::Url;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type},
};

use super::MASKED;
use crate::{
    fields::{FieldRule, GivenIds, JsonFields},
    services::NAME,
};
use lectern_agents::models::ModelProvider;

/// A provider's label.
pub(super) struct ProviderSchema;

impl PartialSchema for ProviderSchema {
    fn schema() -> RefOr<Schema> {
        let labels = ModelProvider::ALL.map(ModelProvider::label);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(labels)).into()
    }
}

impl ToSchema for ProviderSchema {}

/// A count, which is read from digits too.
pub(super) struct CountSchema;

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
pub(super) enum TagReference {
    /// Its id.
    Id(String),
    /// The tag as it was shown, of which the id alone is read.
    Tag {
        /// Its id.
        id: String,
    },
}

pub(super) fn provider(fields: &mut JsonFields<'_>, rule: &FieldRule) -> String {
    let provider = fields.text(rule.name, NAME);
    if provider.parse::<ModelProvider>().is_err() && !fields.is_refused(rule.name) {
        let known: Vec<_> = ModelProvider::ALL.iter().map(|provider| provider.label()).collect();
        fields.refuse(rule.name, format_args!("must be one of {}", known.join(", ")));
    }
    provider
}

/// A model's name, which `extractive` does without.
pub(super) fn model(fields: &mut JsonFields<'_>, rule: &FieldRule) -> String {
    let is_blank = |name: &Value| name.as_str().is_some_and(|name| name.trim().is_empty());
    if fields.parsed("provider") == Some(ModelProvider::Extractive)
        && fields.get(rule.name).is_none_or(is_blank)
    {
        return ModelProvider::Extractive.label().to_owned();
    }
    fields.text(rule.name, rule.max_length)
}

pub(super) fn base_url(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let base_url = fields.optional_text(rule.name, rule.max_length);
    match &base_url {
        Some(text) => match Url::parse(text) {
            Ok(url)
                if matches!(url.scheme(), "http" | "https")
                    && url.username().is_empty()
                    && url.password().is_none() => {}
            Ok(_) | Err(_) => {
                fields.refuse(rule.name, "must be an http or https address without credentials");
            }
        },
        None if fields.parsed("provider") == Some(ModelProvider::OpenAiCompatible)
            && !fields.is_refused(rule.name) =>
        {
            fields.refuse(rule.name, "is required for openai-compatible");
        }
        None => {}
    }
    base_url
}

pub(super) fn api_key(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<SecretString> {
    let key = fields.optional_text(rule.name, rule.max_length).filter(|key| !key.trim().is_empty())?;
    if !key.chars().all(|c| c == MASKED || matches!(c, ' '..='~')) {
        fields.refuse(rule.name, "must be printable ASCII characters");
    }
    Some(key.into())
}

/// Reads tags, each as its id or as an object with it.
pub(super) fn tags(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<GivenIds<TagId>> {
    let FieldRule { name, max_items, .. } = rule;
    let items = fields.array(name, *max_items, "tags or their ids")?;
    let mut seen = HashSet::new();
    let mut ids = Ok(Vec::with_capacity(items.len()));
    for (at, item) in items.iter().enumerate() {
        let text = match item {
            Value::Object(tag) => tag.get("id"),
            other => Some(other),
        };
        match (item, text) {
            (_, Some(Value::String(text))) => match text.parse::<TagId>() {
                Ok(id) => {
                    if let Ok(ids) = &mut ids
                        && seen.insert(id)
                    {
                        ids.push(id);
                    }
                }
                Err(error) => ids = Err(error),
            },
            (Value::Object(_), None | Some(Value::Null)) => {
                fields.refuse(&format!("{name}.{at}.id"), "is required");
            }
            (Value::Object(_), Some(_)) => fields.refuse(&format!("{name}.{at}.id"), "must be a string"),
            (_, _) => fields.refuse(&format!("{name}.{at}"), "must be a tag or its id"),
        }
    }
    Some(ids)
}
