//! How values of documents are described whose types say less than what may be given.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type},
};

/// The kind of source.
#[derive(ToSchema)]
#[schema(as = DocumentType, rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
pub(crate) enum TypeSchema {
    Txt,
    Pdf,
    Video,
    Csv,
    Url,
}

/// A page's number from 1 on, as a number or as digits in a string.
pub(crate) struct PageSchema;

impl PartialSchema for PageSchema {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        let digits = ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^\s*0*[1-9][0-9]*\s*$"));
        let description = "A page's number from 1 on, as a number or as digits in a string.";
        OneOfBuilder::new().item(number).item(digits).description(Some(description)).into()
    }
}

impl ToSchema for PageSchema {
    fn name() -> Cow<'static, str> {
        "PageNumber".into()
    }
}

/// What opens a source.
#[derive(ToSchema)]
#[schema(as = SourceAuthorization)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
pub(crate) enum AuthorizationSchema {
    /// `Authorization: Bearer …`.
    Bearer {
        /// The token.
        #[schema(min_length = 1)]
        token: String,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The user's name.
        #[schema(min_length = 1)]
        username: String,
        /// The password.
        password: Option<String>,
    },
    /// Any headers.
    Headers {
        /// Name to value.
        headers: std::collections::BTreeMap<String, String>,
    },
}
