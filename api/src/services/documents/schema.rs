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

/// How to cut a text into passages.
#[derive(ToSchema)]
#[schema(as = NewSplitter)]
#[expect(dead_code, reason = "it is written down for the documentation only")]
pub(crate) struct SplitterSchema {
    /// `recursive` and `character` cut at the largest semantic unit that fits, sizes in characters; `token` the same, sizes in
    /// tokens; `markdown` along the structure of a Markdown text, sizes in characters.
    ///
    /// The old names `RecursiveCharacterTextSplitter` (or `recursive_character`), `CharacterTextSplitter`, `TokenTextSplitter` and
    /// `MarkdownTextSplitter`, with `chunkSize` and `chunkOverlap`, are read as these; `ingestion.warnings` then says so.
    r#type: SplitterTypeSchema,
    /// The most that a passage holds. 400 for `token`, else 1600.
    #[schema(minimum = 20, maximum = 20_000)]
    chunk_size: Option<u32>,
    /// How much of one passage's end the next one repeats: at most half of its size. 60 for `token`, else 240, and never more
    /// than a quarter of the size.
    chunk_overlap: Option<u32>,
}

/// A way to cut a text.
#[derive(ToSchema)]
#[schema(as = SplitterType, rename_all = "lowercase")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
pub(crate) enum SplitterTypeSchema {
    Recursive,
    Character,
    Token,
    Markdown,
}
