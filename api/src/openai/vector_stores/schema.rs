//! How values of vector stores are described whose types say less than what may be sent.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema,
        schema::{AnyOfBuilder, SchemaType, Type},
    },
};

use crate::services::search::expression::{ALL_VALUES, CONDITIONS, DEPTH, OPERATORS, VALUES};

/// A text, or several.
pub(super) struct QuerySchema;

impl PartialSchema for QuerySchema {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let several = ArrayBuilder::new().items(text()).min_items(Some(1)).max_items(Some(100));
        let description =
            "A question in any words, of at most 10,000 characters; several texts are searched for as one.";
        OneOfBuilder::new()
            .item(text().min_length(Some(1)))
            .item(several)
            .description(Some(description))
            .into()
    }
}

impl ToSchema for QuerySchema {}

/// An expression of comparisons.
pub(super) struct TypedFilterSchema;

impl PartialSchema for TypedFilterSchema {
    fn schema() -> RefOr<Schema> {
        let description = format!(
            "A comparison of an attribute with a value, or with several (`in`, `nin`), or filters of which all have to be met (`and`), or \
             one (`or`): nested at most {DEPTH} deep, with at most {CONDITIONS} comparisons and {ALL_VALUES} values in all. Two strings that are dates or times of \
             RFC 3339 are compared as times, others by code points. A file without the attribute meets `ne` and `nin` alone."
        );
        AnyOfBuilder::new().item(comparison()).item(joined()).description(Some(description)).into()
    }
}

impl ToSchema for TypedFilterSchema {}

fn word(words: &[&'static str]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied()))
}

fn comparison() -> ObjectBuilder {
    let value = || {
        let types = [Type::String, Type::Number, Type::Boolean];
        ObjectBuilder::new().schema_type(SchemaType::from_iter(types))
    };
    let several = ArrayBuilder::new().items(value()).min_items(Some(1)).max_items(Some(VALUES));
    ObjectBuilder::new()
        .property("type", word(&OPERATORS))
        .property("key", ObjectBuilder::new().schema_type(Type::String))
        .property("value", AnyOfBuilder::new().item(value()).item(several))
        .required("type")
        .required("key")
        .required("value")
}

fn joined() -> ObjectBuilder {
    let part = Ref::from_schema_name(TypedFilterSchema::name());
    let parts = ArrayBuilder::new().items(part).min_items(Some(1)).max_items(Some(CONDITIONS));
    ObjectBuilder::new()
        .property("type", word(&["and", "or"]))
        .property("filters", parts)
        .required("type")
        .required("filters")
}
