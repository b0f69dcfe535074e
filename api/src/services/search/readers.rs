//! What is read of a search, besides plain values, and how it is described.

use lectern_shared::model::search::SearchMode;
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema,
        schema::{SchemaType, Type},
    },
};

use crate::fields::{FieldRule, JsonFields};
use lectern_agents::search::{MetadataCondition, MetadataFilter};

/// Most keys of a filter.
const KEYS: usize = 20;
/// Most values of a key.
const VALUES: usize = 100;

/// Conditions on the values of a document's metadata.
pub(super) struct FilterSchema;

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
pub(super) struct ModeSchema;

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

pub(super) fn filter(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<MetadataFilter> {
    let keys = fields.object(rule.name)?;
    if keys.len() > KEYS {
        fields.refuse(rule.name, format_args!("must have at most {KEYS} keys"));
        return None;
    }
    let mut filter = MetadataFilter::default();
    for (key, value) in keys {
        let path = format!("{}.{key}", rule.name);
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
    Some(filter)
}
