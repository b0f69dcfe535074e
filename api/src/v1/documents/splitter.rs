//! How a text is to be cut, as documents say it: under the names of today, and under those that text splitters had in the service
//! before this one.

use lectern_shared::model::document::{SplitterConfig, SplitterType};

use crate::extract::JsonFields;

/// Passages of fewer characters or tokens say too little to be found.
const SMALLEST_CHUNK: u32 = 20;
const LARGEST_CHUNK: u32 = 20_000;

/// Old names, in lower case.
const OLD_NAMES: [(&str, SplitterType); 5] = [
    ("recursivecharactertextsplitter", SplitterType::Recursive),
    ("recursive_character", SplitterType::Recursive),
    ("charactertextsplitter", SplitterType::Character),
    ("tokentextsplitter", SplitterType::Token),
    ("markdowntextsplitter", SplitterType::Markdown),
];

pub(super) fn read(fields: &mut JsonFields<'_>) -> Option<SplitterConfig> {
    fields.nested("splitter", read_fields).flatten()
}

fn read_fields(fields: &mut JsonFields<'_>) -> Option<SplitterConfig> {
    let named = read_type(fields);
    let token = named.as_ref().is_some_and(|(r#type, _)| *r#type == SplitterType::Token);
    let (default_size, default_overlap) = if token { (400, 60) } else { (1_600, 240) };
    let size = either(fields, "chunk_size", "chunkSize");
    let chunk_size = fields.count(size).unwrap_or(default_size);
    if !(SMALLEST_CHUNK..=LARGEST_CHUNK).contains(&chunk_size) {
        fields.refuse(size, format_args!("must be between {SMALLEST_CHUNK} and {LARGEST_CHUNK}"));
    }
    let overlap = either(fields, "chunk_overlap", "chunkOverlap");
    let none = fields.get(overlap).is_some_and(|value| value == 0 || value == "0");
    let given = if none { Some(0) } else { fields.count(overlap) };
    let chunk_overlap = given.unwrap_or(default_overlap.min(chunk_size / 4));
    if chunk_overlap > chunk_size / 2 {
        fields.refuse(overlap, format_args!("must be at most half of {size}"));
    }
    let (r#type, given) = named?;
    Some(SplitterConfig { r#type, chunk_size, chunk_overlap, given })
}

/// The way of cutting, and the name it was given by when that is an old one.
fn read_type(fields: &mut JsonFields<'_>) -> Option<(SplitterType, Option<String>)> {
    let name = fields.get("type").and_then(|value| value.as_str()).unwrap_or_default().trim();
    let lower = name.to_ascii_lowercase();
    if let Some((_, r#type)) = OLD_NAMES.iter().find(|(old, _)| *old == lower) {
        return Some((*r#type, Some(name.to_owned())));
    }
    match lower.parse() {
        Ok(r#type) => Some((r#type, None)),
        Err(_) => fields.choice("type", &SplitterType::choices()).map(|r#type| (r#type, None)),
    }
}

/// The name that a field has today, unless it is given by the old one alone.
fn either(fields: &JsonFields<'_>, name: &'static str, old: &'static str) -> &'static str {
    if fields.get(name).is_none() && fields.get(old).is_some() { old } else { name }
}
