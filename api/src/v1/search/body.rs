//! What can be asked of a search.

use std::collections::HashMap;

use lectern_agents::search::{MetadataCondition, MetadataFilter};
use lectern_shared::{
    ids::{DocumentId, InvalidId},
    model::search::SearchMode,
};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema,
        schema::{SchemaType, Type},
    },
};

use crate::{
    extract::{FromFields, JsonFields},
    services::search::PassageQuery,
};

/// Longest question, in characters.
const QUERY: usize = 10_000;
/// Most documents that can be named.
const DOCUMENTS: usize = 1_000;
/// Most keys of a filter.
const KEYS: usize = 20;
/// Most values of a key.
const VALUES: usize = 100;
/// Most passages of an answer.
const LIMIT: usize = 50;
/// Passages of an answer when nothing is said.
const DEFAULT_LIMIT: usize = 10;

/// What to search for, and in what.
#[derive(ToSchema)]
#[schema(as = Search, rename_all = "camelCase")]
#[allow(dead_code, reason = "it describes the JSON; the values are read one by one")]
pub(super) struct SearchBody {
    /// The question, in any words.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    query: String,
    /// Only these of your documents are searched; none of them, when the list is empty. All when left out.
    #[schema(max_items = 1_000)]
    document_ids: Option<Vec<String>>,
    /// Only the documents that are linked to this agent of yours are searched.
    agent_id: Option<String>,
    /// Only documents whose `metadata` meets every condition are searched. A change of metadata counts at once.
    #[schema(value_type = Option<FilterSchema>)]
    filter: Option<HashMap<String, Value>>,
    /// The most passages that are wanted; 10 when left out.
    #[schema(minimum = 1, maximum = 50)]
    limit: Option<u32>,
    /// How to search; `hybrid` when left out.
    #[schema(value_type = Option<ModeSchema>)]
    mode: Option<String>,
}

/// Conditions on the values of a document's metadata.
struct FilterSchema;

impl PartialSchema for FilterSchema {
    fn schema() -> RefOr<Schema> {
        let one = || {
            let types = [Type::String, Type::Number, Type::Boolean, Type::Null];
            ObjectBuilder::new().schema_type(SchemaType::from_iter(types))
        };
        let several = ArrayBuilder::new().items(one()).min_items(Some(1)).max_items(Some(VALUES));
        let description = "For each key of the metadata one value, or several of which one has to be there. Where a document \
                           has an array, one of its items has to be the value. Numbers are compared by what they are: 1 is \
                           1.0. Strings are compared to the letter.";
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(RefOr::<Schema>::from(OneOfBuilder::new().item(one()).item(several))))
            .max_properties(Some(KEYS))
            .description(Some(description))
            .into()
    }
}

impl ToSchema for FilterSchema {}

/// The ways to search.
struct ModeSchema;

impl PartialSchema for ModeSchema {
    fn schema() -> RefOr<Schema> {
        let description = "`hybrid`: by words and by meaning, or by words alone when the service has no embedding model. \
                           `dense`: by meaning alone. `lexical`: by words alone.";
        let words: Vec<&str> = SearchMode::ALL.iter().map(|mode| mode.as_str()).collect();
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(words))
            .description(Some(description))
            .into()
    }
}

impl ToSchema for ModeSchema {}

impl FromFields for PassageQuery {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        Self {
            query: fields.text("query", QUERY),
            documents: documents(fields),
            agent: fields.get("agentId").map(|_| fields.id("agentId").ok_or(InvalidId)),
            filter: filter(fields),
            limit: limit(fields),
            mode: fields
                .get("mode")
                .and_then(|_| fields.choice("mode", &SearchMode::choices()))
                .unwrap_or(SearchMode::Hybrid),
        }
    }
}

fn documents(fields: &mut JsonFields<'_>) -> Option<Result<Vec<DocumentId>, InvalidId>> {
    let Value::Array(items) = fields.get("documentIds")? else {
        fields.refuse("documentIds", "must be an array of document ids");
        return None;
    };
    if items.len() > DOCUMENTS {
        fields.refuse("documentIds", format_args!("must have at most {DOCUMENTS} items"));
        return None;
    }
    for (at, _) in items.iter().enumerate().filter(|(_, item)| !item.is_string()) {
        fields.refuse(&format!("documentIds.{at}"), "must be a string");
    }
    Some(items.iter().filter_map(Value::as_str).map(str::parse).collect())
}

fn filter(fields: &mut JsonFields<'_>) -> MetadataFilter {
    let mut filter = MetadataFilter::default();
    let Some(keys) = fields.object("filter") else { return filter };
    if keys.len() > KEYS {
        fields.refuse("filter", format_args!("must have at most {KEYS} keys"));
        return filter;
    }
    for (key, value) in keys {
        let path = format!("filter.{key}");
        let any_of = match value {
            Value::Array(values) => values,
            one => vec![one],
        };
        if any_of.is_empty() || any_of.len() > VALUES {
            fields.refuse(&path, format_args!("must have between 1 and {VALUES} values"));
        }
        if any_of.iter().any(|value| value.is_object() || value.is_array()) {
            fields.refuse(&path, "must be a string, number, boolean or null, or an array of these");
        }
        filter.conditions.push(MetadataCondition { key, any_of });
    }
    filter
}

fn limit(fields: &mut JsonFields<'_>) -> usize {
    let Some(value) = fields.get("limit") else { return DEFAULT_LIMIT };
    let limit = value.as_u64().and_then(|limit| usize::try_from(limit).ok());
    limit.filter(|limit| (1..=LIMIT).contains(limit)).unwrap_or_else(|| {
        fields.refuse("limit", format_args!("must be a whole number between 1 and {LIMIT}"));
        DEFAULT_LIMIT
    })
}
