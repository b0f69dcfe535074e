//! What is read of a search, besides plain values, and how it is described.

use lectern_shared::model::search::SearchMode;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema,
        schema::{AnyOfBuilder, SchemaType, Type},
    },
};

use super::expression::{self, ExpressionForm, FilterReader, KEYS, VALUES};
use crate::fields::{FieldRule, JsonFields};
use lectern_agents::search::MetadataFilter;

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
        let by_key = ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(RefOr::<Schema>::from(OneOfBuilder::new().item(one()).item(several))))
            .max_properties(Some(KEYS))
            .description(Some(description));
        let description = "One of these forms. Those with `op` and with `and` and `or` can be nested in one another, and hold the \
                           first.";
        AnyOfBuilder::new()
            .item(by_key)
            .item(comparison())
            .item(joined("and", "all have"))
            .item(joined("or", "one has"))
            .description(Some(description))
            .into()
    }
}

impl ToSchema for FilterSchema {}

/// A comparison with one value, or with several.
fn comparison() -> ObjectBuilder {
    let value = || {
        let types = [Type::String, Type::Number, Type::Boolean];
        ObjectBuilder::new().schema_type(SchemaType::from_iter(types))
    };
    let several = ArrayBuilder::new().items(value()).min_items(Some(1)).max_items(Some(VALUES));
    let description = "`in` and `nin` take an array of values, the others one. `gt`, `gte`, `lt` and `lte` take numbers and strings, and \
                       are met by values of the same type alone. Two strings that are dates or times of RFC 3339 are compared as \
                       times, others by code points. Where a document has an array, `eq` and `in` are met when one of its items \
                       does. A document without the value meets `ne` and `nin` alone.";
    ObjectBuilder::new()
        .property("key", ObjectBuilder::new().schema_type(Type::String))
        .property(
            "op",
            ObjectBuilder::new().schema_type(Type::String).enum_values(Some(expression::OPERATORS)),
        )
        .property("value", AnyOfBuilder::new().item(value()).item(several))
        .required("key")
        .required("op")
        .required("value")
        .description(Some(description))
}

/// Filters of which all, or one, have to be met.
fn joined(word: &str, which: &str) -> ObjectBuilder {
    let part = Ref::from_schema_name(FilterSchema::name());
    let parts = ArrayBuilder::new().items(part).min_items(Some(1)).max_items(Some(expression::CONDITIONS));
    let description = format!(
        "Filters of which {which} to be met: nested at most {} deep, with at most {} conditions and {} values in all.",
        expression::DEPTH,
        expression::CONDITIONS,
        expression::ALL_VALUES,
    );
    ObjectBuilder::new().property(word, parts).required(word).description(Some(description))
}

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
    let filter = fields.get(rule.name)?;
    Some(FilterReader::new(fields, ExpressionForm::Native).read(rule.name, filter))
}
