//! What is read of the bodies of documents, besides plain values, and what its parts have to do with each other.

use std::collections::BTreeMap;

use lectern_shared::model::document::{DocumentType, PageRange, SourceAuthorization};
use serde_json::{Map, Value, json};

use super::rules::{self, address_problems};
use crate::fields::{FieldRule, JsonFields, as_count};

/// Largest metadata, in bytes of JSON: it is shown in every list.
pub(crate) const METADATA: usize = 16 * 1024;
/// Longest value that goes into a header, in characters.
const CREDENTIAL: usize = 8_000;

/// Reads where the source of a new document is, and notes what is wrong with it and the content together: one of them is given.
pub(super) fn new_url(fields: &mut JsonFields<'_>, rule: &FieldRule) -> String {
    let r#type = fields.parsed("type").unwrap_or(DocumentType::Txt);
    let url = trimmed_url(fields, rule);
    for problem in address_problems(r#type, &url) {
        fields.refuse(rule.name, problem);
    }
    let content = fields.optional_text("content", usize::MAX);
    let refused = ["url", "content"].iter().any(|name| fields.is_refused(name));
    match (url.is_empty(), &content) {
        // It is given and wrong, which was said already.
        (true, None) if refused => {}
        (true, None) => fields.refuse("url", rules::SOURCE_MISSING),
        (false, Some(_)) => fields.refuse("content", "cannot be given together with url"),
        (true, Some(_)) if !rules::takes_content(r#type) => fields.refuse("content", rules::NO_CONTENT),
        (true, Some(_)) | (false, None) => {}
    }
    url
}

/// The content of a new document. What is wrong with it is noted with the url.
pub(super) fn new_content(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    fields.parsed(rule.name)
}

/// Where the source is, as it is given. Whether it can be there depends on the document: see [`address_problems`].
fn trimmed_url(fields: &mut JsonFields<'_>, rule: &FieldRule) -> String {
    fields.optional_text(rule.name, rule.max_length).unwrap_or_default().trim().to_owned()
}

/// The new addresses. Which they may be depends on the document's type; what they can be of no type is said at once.
pub(super) fn changed_url(fields: &mut JsonFields<'_>, rule: &FieldRule) -> String {
    let url = trimmed_url(fields, rule);
    let several = address_problems(DocumentType::Url, &url);
    if !address_problems(DocumentType::Txt, &url).is_empty() && !several.is_empty() {
        for problem in several {
            fields.refuse(rule.name, problem);
        }
    }
    url
}

pub(crate) fn metadata(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Map<String, Value>> {
    let metadata = fields.object(rule.name)?;
    if is_too_large(&metadata) {
        fields.refuse(rule.name, format_args!("must have at most {METADATA} bytes"));
    }
    Some(metadata)
}

/// Whether metadata has more than [`METADATA`] bytes.
pub(crate) fn is_too_large(metadata: &Map<String, Value>) -> bool {
    json!(metadata).to_string().len() > METADATA
}

/// The first page of a PDF; other types have none, whatever is given.
pub(crate) fn from_page(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<u32> {
    if fields.parsed("type") == Some(DocumentType::Pdf) { fields.count(rule.name) } else { None }
}

/// The last page of a PDF.
pub(crate) fn to_page(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<u32> {
    let to = from_page(fields, rule)?;
    let from = fields.get("from_page").and_then(as_count);
    if rules::are_reversed(PageRange { from, to: Some(to) }) {
        fields.refuse(rule.name, rules::PAGES_REVERSED);
    }
    Some(to)
}

pub(in crate::services) fn authorization(
    fields: &mut JsonFields<'_>,
    rule: &FieldRule,
) -> Option<SourceAuthorization> {
    fields.nested(rule.name, read_authorization).flatten()
}

fn read_authorization(fields: &mut JsonFields<'_>) -> Option<SourceAuthorization> {
    fields.only_in_change(&["type", "token", "username", "password", "headers"]);
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
            let headers: BTreeMap<_, _> = headers.into_iter().filter_map(text).collect();
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
