//! What a document may say of itself: the body of a new one, and the checks that its other bodies share.

use lectern_shared::model::document::{DocumentType, PageRange, SourceAuthorization};
use serde_json::{Map, Value, json};

use super::splitter;
use crate::{
    extract::{FromFields, JsonFields},
    services::documents::{
        NewDocument,
        rules::{self, address_problems},
    },
    v1::{DESCRIPTION, NAME},
};

/// Longest list of addresses, in characters.
const ADDRESSES: usize = 20_000;
/// Largest metadata, in bytes of JSON: it is shown in every list.
const METADATA: usize = 16 * 1024;
/// Longest value that goes into a header, in characters.
const CREDENTIAL: usize = 8_000;

impl FromFields for NewDocument {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        let r#type = fields.choice("type", &DocumentType::choices()).unwrap_or(DocumentType::Txt);
        let url = url(fields);
        for problem in address_problems(r#type, &url) {
            fields.refuse("url", problem);
        }
        let content = fields.optional_text("content", usize::MAX);
        let refused =
            ["url", "content"].iter().any(|name| fields.get(name).is_some_and(|value| !value.is_string()));
        match (url.is_empty(), &content) {
            // Of a wrong type, which was said already.
            (true, None) if refused => {}
            (true, None) => fields.refuse("url", rules::SOURCE_MISSING),
            (false, Some(_)) => fields.refuse("content", "cannot be given together with url"),
            (true, Some(_)) if !rules::takes_content(r#type) => fields.refuse("content", rules::NO_CONTENT),
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

/// Where the source is, as it is given. Whether it can be there depends on the document: see [`address_problems`].
pub(super) fn url(fields: &mut JsonFields<'_>) -> String {
    fields.optional_text("url", ADDRESSES).unwrap_or_default().trim().to_owned()
}

pub(super) fn description(fields: &mut JsonFields<'_>) -> String {
    fields.optional_text("description", DESCRIPTION).unwrap_or_default()
}

pub(super) fn metadata(fields: &mut JsonFields<'_>) -> Option<Map<String, Value>> {
    let metadata = fields.object("metadata")?;
    if json!(metadata).to_string().len() > METADATA {
        fields.refuse("metadata", format_args!("must have at most {METADATA} bytes"));
    }
    Some(metadata)
}

/// The pages of a PDF; other types have none, whatever is given.
pub(super) fn pages(r#type: DocumentType, fields: &mut JsonFields<'_>) -> PageRange {
    if r#type != DocumentType::Pdf {
        return PageRange::default();
    }
    let range = PageRange { from: fields.count("from_page"), to: fields.count("to_page") };
    if rules::are_reversed(range) {
        fields.refuse("to_page", rules::PAGES_REVERSED);
    }
    range
}

pub(super) fn authorization(fields: &mut JsonFields<'_>) -> Option<SourceAuthorization> {
    fields.nested("authorization", read_authorization).flatten()
}

fn read_authorization(fields: &mut JsonFields<'_>) -> Option<SourceAuthorization> {
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
