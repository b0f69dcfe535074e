//! What is read of the bodies of documents, besides plain values, and what its parts have to do with each other.

use std::collections::BTreeMap;

use lectern_shared::{
    egress::is_connection_header,
    model::document::{DocumentType, PageRange, SourceAuthorization},
};
use reqwest::header::{ACCEPT_ENCODING, HeaderName};
use serde_json::{Map, Value, json};

use super::rules::{self, address_problems};
use crate::{
    fields::{FieldRule, JsonFields, as_count},
    services::request_headers::{WRONG_VALUE, is_value, name_problem},
};

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

/// A page that is given for a document whose type is not known yet; what is no page matters to a PDF alone.
pub(super) struct GivenPage(pub(super) Result<u32, &'static str>);

/// The first or the last page of a document that is changed.
pub(super) fn changed_page(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<GivenPage> {
    let number = as_count(fields.get(rule.name)?);
    Some(GivenPage(number.ok_or("must be a whole number from 1 on")))
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

/// Whether the service sets a header of a source's request itself: those of the connection, and what it can read.
fn is_own_header(name: &HeaderName) -> bool {
    name == ACCEPT_ENCODING || is_connection_header(name)
}

fn read_authorization(fields: &mut JsonFields<'_>) -> Option<SourceAuthorization> {
    let kind: String = fields.choice("type", "bearer, basic, headers")?;
    match kind.as_str() {
        "bearer" => {
            let token = fields.text("token", CREDENTIAL);
            if !is_value(&token) {
                fields.refuse("token", WRONG_VALUE);
            }
            Some(SourceAuthorization::Bearer { token })
        }
        "basic" => Some(SourceAuthorization::Basic {
            username: fields.text("username", CREDENTIAL),
            password: fields.optional_text("password", CREDENTIAL).unwrap_or_default(),
        }),
        "headers" => {
            let given = fields.object("headers").unwrap_or_default();
            if given.is_empty() {
                fields.refuse("headers", "must be an object of header names and string values");
            }
            let mut headers = BTreeMap::new();
            for (name, value) in given {
                let path = format!("headers.{name}");
                if let Some(problem) = name_problem(&name, is_own_header) {
                    fields.refuse(&path, problem);
                    continue;
                }
                match value {
                    Value::String(text) if is_value(&text) => {
                        headers.insert(name, text);
                    }
                    _ => fields.refuse(&path, WRONG_VALUE),
                }
            }
            Some(SourceAuthorization::Headers { headers })
        }
        _ => {
            fields.refuse("type", "must be one of bearer, basic, headers");
            None
        }
    }
}
