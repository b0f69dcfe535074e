//! How a text is to be cut, as documents say it: under the names of today, and under those that text splitters had in the service
//! before this one.

use lectern_derive::RequestBody;
use lectern_shared::model::document::{SplitterConfig, SplitterType};
use utoipa::ToSchema;

use crate::fields::{FieldRule, FieldValue, JsonFields, as_count, as_whole};

/// Old names, in lower case.
const OLD_NAMES: [(&str, SplitterType); 5] = [
    ("recursivecharactertextsplitter", SplitterType::Recursive),
    ("recursive_character", SplitterType::Recursive),
    ("charactertextsplitter", SplitterType::Character),
    ("tokentextsplitter", SplitterType::Token),
    ("markdowntextsplitter", SplitterType::Markdown),
];

/// How a text is cut of which nothing else is said.
pub(crate) static USUAL: SplitterConfig =
    SplitterConfig { r#type: SplitterType::Token, chunk_size: 400, chunk_overlap: 60, given: None };

/// How to cut a text into passages.
#[derive(RequestBody, ToSchema)]
// As in `NewLlm`.
#[body(open, after = check_overlap)]
pub(crate) struct NewSplitter {
    /// `recursive` and `character` cut at the largest semantic unit that fits, sizes in characters; `token` the same, sizes in
    /// tokens; `markdown` along the structure of a Markdown text, sizes in characters.
    ///
    /// The old names `RecursiveCharacterTextSplitter` (or `recursive_character`), `CharacterTextSplitter`, `TokenTextSplitter` and
    /// `MarkdownTextSplitter`, with `chunkSize` and `chunkOverlap`, are read as these; `ingestion.warnings` then says so.
    #[schema(value_type = SplitterTypeSchema)]
    #[body(with = read_type)]
    r#type: Option<NamedSplitter>,
    /// The most that a passage holds. 400 for `token`, else 1600.
    // Passages of fewer characters or tokens say too little to be found.
    #[schema(minimum = 20, maximum = 20_000)]
    #[body(with = chunk_size, alias = "chunkSize")]
    chunk_size: Option<u32>,
    /// How much of one passage's end the next one repeats: at most half of its size. 60 for `token`, else 240, and never more
    /// than a quarter of the size.
    #[body(with = chunk_overlap, alias = "chunkOverlap")]
    chunk_overlap: Option<u32>,
}

/// A way of cutting, and the name it was given by when that is an old one.
type NamedSplitter = (SplitterType, Option<String>);

/// A way to cut a text.
#[derive(ToSchema)]
#[schema(as = SplitterType, rename_all = "lowercase")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
enum SplitterTypeSchema {
    Recursive,
    Character,
    Token,
    Markdown,
}

impl NewSplitter {
    /// How large passages are, and how much of one the next one repeats.
    fn sizes(&self) -> (u32, u32) {
        let token = self.r#type.as_ref().is_some_and(|(r#type, _)| *r#type == SplitterType::Token);
        let (default_size, default_overlap) = if token { (400, 60) } else { (1_600, 240) };
        let chunk_size = self.chunk_size.unwrap_or(default_size);
        (chunk_size, self.chunk_overlap.unwrap_or(default_overlap.min(chunk_size / 4)))
    }
}

/// Reads a splitter, which is none when its type is wrong.
pub(crate) fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<SplitterConfig> {
    let splitter = NewSplitter::read(fields, rule)?;
    let (chunk_size, chunk_overlap) = splitter.sizes();
    let (r#type, given) = splitter.r#type?;
    Some(SplitterConfig { r#type, chunk_size, chunk_overlap, given })
}

fn read_type(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<NamedSplitter> {
    let name = fields.get(rule.name).and_then(|value| value.as_str()).unwrap_or_default().trim();
    let lower = name.to_ascii_lowercase();
    if let Some((_, r#type)) = OLD_NAMES.iter().find(|(old, _)| *old == lower) {
        return Some((*r#type, Some(name.to_owned())));
    }
    match lower.parse() {
        Ok(r#type) => Some((r#type, None)),
        Err(_) => fields.choice(rule.name, &SplitterType::choices()).map(|r#type| (r#type, None)),
    }
}

fn chunk_size(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<u32> {
    let (name, FieldRule { minimum, maximum, .. }) = (size_name(fields), rule);
    let size = as_count(fields.get(name)?).filter(|size| (*minimum..=*maximum).contains(&f64::from(*size)));
    if size.is_none() {
        fields.refuse(name, format_args!("must be a whole number between {minimum} and {maximum}"));
    }
    size
}

fn chunk_overlap(fields: &mut JsonFields<'_>, _: &FieldRule) -> Option<u32> {
    let name = overlap_name(fields);
    let value = fields.get(name)?;
    let none = as_whole(value) == Some(0) || value == "0";
    let overlap = if none { Some(0) } else { as_count(value) };
    if overlap.is_none() {
        let size = size_name(fields);
        fields.refuse(name, format_args!("must be a whole number from 0 to half of {size}"));
    }
    overlap
}

fn check_overlap(splitter: &NewSplitter, fields: &mut JsonFields<'_>) {
    let (chunk_size, chunk_overlap) = splitter.sizes();
    if chunk_overlap > chunk_size / 2 {
        let size = size_name(fields);
        fields.refuse(overlap_name(fields), format_args!("must be at most half of {size}"));
    }
}

fn size_name(fields: &JsonFields<'_>) -> &'static str {
    either(fields, "chunk_size", "chunkSize")
}

fn overlap_name(fields: &JsonFields<'_>) -> &'static str {
    either(fields, "chunk_overlap", "chunkOverlap")
}

/// The name that a field has today, unless it is given by the old one alone.
fn either(fields: &JsonFields<'_>, name: &'static str, old: &'static str) -> &'static str {
    if fields.get(name).is_none() && fields.get(old).is_some() { old } else { name }
}
