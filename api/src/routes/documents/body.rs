//! What a document may say of itself: the body of a new one, and the checks that its other bodies share.

use std::borrow::Cow;

use lectern_shared::model::document::{DocumentType, PageRange, SourceAuthorization, Splitter};
use serde_json::{Map, Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type},
};

use super::{address, splitter};
use crate::{
    extract::{Fields, FromFields},
    routes::{DESCRIPTION, NAME},
};

/// Largest metadata, in bytes of JSON: it is shown in every list.
const METADATA: usize = 16 * 1024;
/// Longest value that goes into a header, in characters.
const CREDENTIAL: usize = 8_000;

pub(super) const SOURCE_MISSING: &str = "is required, unless the text is given as content";
pub(super) const NO_CONTENT: &str = "can be given for TXT, CSV and VIDEO; give a url for this type";
pub(super) const PAGES_REVERSED: &str = "must not be before from_page";

/// A new document: its type, its name, and either a url or content.
#[derive(ToSchema)]
#[schema(as = NewDocument)]
pub(super) struct NewDocument {
    /// The kind of source.
    #[schema(value_type = TypeSchema)]
    pub(super) r#type: DocumentType,
    /// How to call it. It is searched together with each passage.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(super) name: String,
    /// Anything worth saying of it.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    pub(super) description: String,
    /// Where the source is: a public http or https address of at most 8,000 characters. For `URL`, up to 50 of them, separated by
    /// commas, which become one document; a comma separates only where the next address begins after it.
    #[schema(value_type = Option<String>, max_length = 20_000)]
    pub(super) url: String,
    /// The text itself, for TXT, CSV and VIDEO (captions, or a plain transcript), instead of a url.
    pub(super) content: Option<String>,
    /// Your own values, which searches filter on; at most 16 KiB.
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Map<String, Value>>,
    /// How to cut the text into passages. Without it: 400 tokens, 60 of them repeated.
    #[schema(value_type = Option<splitter::SplitterSchema>)]
    pub(super) splitter: Option<Splitter>,
    /// PDF: the first page to ingest, counted from 1. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    pub(super) from_page: Option<u32>,
    /// PDF: the last page to ingest. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    pub(super) to_page: Option<u32>,
    /// What opens the source. It is sent to the source's own origin only, kept encrypted, and never shown again.
    #[schema(value_type = Option<AuthorizationSchema>)]
    pub(super) authorization: Option<SourceAuthorization>,
}

impl NewDocument {
    pub(super) fn pages(&self) -> PageRange {
        PageRange { from: self.from_page, to: self.to_page }
    }
}

impl FromFields for NewDocument {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        let r#type = fields.choice("type", &DocumentType::choices()).unwrap_or(DocumentType::Txt);
        let url = address::read(fields).unwrap_or_default();
        for problem in address::problems(r#type, &url) {
            fields.refuse("url", problem);
        }
        let content = fields.optional_text("content", usize::MAX);
        let refused =
            ["url", "content"].iter().any(|name| fields.get(name).is_some_and(|value| !value.is_string()));
        match (url.is_empty(), &content) {
            // Of a wrong type, which was said already.
            (true, None) if refused => {}
            (true, None) => fields.refuse("url", SOURCE_MISSING),
            (false, Some(_)) => fields.refuse("content", "cannot be given together with url"),
            (true, Some(_)) if !takes_content(r#type) => fields.refuse("content", NO_CONTENT),
            (true, Some(_)) | (false, None) => {}
        }
        let pages = pages(r#type, fields);
        Self {
            r#type,
            name: fields.text("name", NAME),
            description: description(fields),
            url,
            content,
            metadata: metadata(fields),
            splitter: splitter::read(fields),
            from_page: pages.from,
            to_page: pages.to,
            authorization: authorization(fields),
        }
    }
}

/// Whether a document of this type may be given as text.
pub(super) fn takes_content(r#type: DocumentType) -> bool {
    matches!(r#type, DocumentType::Txt | DocumentType::Csv | DocumentType::Video)
}

pub(super) fn description(fields: &mut Fields<'_>) -> String {
    fields.optional_text("description", DESCRIPTION).unwrap_or_default()
}

pub(super) fn metadata(fields: &mut Fields<'_>) -> Option<Map<String, Value>> {
    let metadata = fields.object("metadata")?;
    if json!(metadata).to_string().len() > METADATA {
        fields.refuse("metadata", format_args!("must have at most {METADATA} bytes"));
    }
    Some(metadata)
}

/// The pages of a PDF; other types have none, whatever is given.
pub(super) fn pages(r#type: DocumentType, fields: &mut Fields<'_>) -> PageRange {
    if r#type != DocumentType::Pdf {
        return PageRange::default();
    }
    let range = PageRange { from: fields.count("from_page"), to: fields.count("to_page") };
    if are_reversed(range) {
        fields.refuse("to_page", PAGES_REVERSED);
    }
    range
}

pub(super) fn are_reversed(pages: PageRange) -> bool {
    matches!((pages.from, pages.to), (Some(from), Some(to)) if from > to)
}

pub(super) fn authorization(fields: &mut Fields<'_>) -> Option<SourceAuthorization> {
    fields.nested("authorization", read_authorization).flatten()
}

fn read_authorization(fields: &mut Fields<'_>) -> Option<SourceAuthorization> {
    let kind: String = fields.choice("type", "bearer, basic, headers")?;
    match kind.as_str() {
        "bearer" => Some(SourceAuthorization::Bearer { token: fields.text("token", CREDENTIAL) }),
        "basic" => Some(SourceAuthorization::Basic {
            username: fields.text("username", CREDENTIAL),
            password: fields.optional_text("password", CREDENTIAL).unwrap_or_default(),
        }),
        "headers" => {
            let headers = fields.object("headers").unwrap_or_default();
            let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
            let count = headers.len();
            let headers: std::collections::BTreeMap<_, _> = headers.into_iter().filter_map(text).collect();
            if count == 0 || headers.len() < count {
                fields.refuse("headers", "must be an object of header names and string values");
            }
            Some(SourceAuthorization::Headers { headers })
        }
        _ => {
            fields.refuse("type", "must be one of bearer, basic, headers");
            None
        }
    }
}

/// The kind of source.
#[derive(ToSchema)]
#[schema(as = DocumentType, rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
pub(super) enum TypeSchema {
    Txt,
    Pdf,
    Video,
    Csv,
    Url,
}

/// A page's number from 1 on, as a number or as digits in a string.
pub(super) struct PageSchema;

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
pub(super) enum AuthorizationSchema {
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
