//! What the styles of a text document say of its paragraphs.

use std::collections::BTreeMap;

use crate::{
    formats::package::xml::{ElementVisit, PartXmlReader},
    protocol::ParseError,
};

/// Styles that may be based on one another; Word allows no more than eleven.
const MAX_BASED: usize = 16;
/// The outline level of text that is no heading.
const BODY_LEVEL: u8 = 9;

/// The paragraph styles by their ids.
#[derive(Debug, Default, Clone)]
pub(super) struct ParagraphStyles {
    styles: BTreeMap<String, ParagraphStyle>,
    default: Option<String>,
}

/// What a style says itself.
#[derive(Debug, Default, Clone)]
struct ParagraphStyle {
    name: String,
    based_on: Option<String>,
    outline: Option<u8>,
    list: ListPlace,
}

/// A list and a level of it, as far as they are named.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ListPlace {
    /// The list's number.
    pub(super) number: Option<String>,
    /// The level, from 0.
    pub(super) level: Option<usize>,
}

/// What a style and those that it is based on come to.
#[derive(Debug, Default)]
pub(super) struct ResolvedStyle {
    /// The level of the heading that it makes, from 1.
    pub(super) heading: Option<u8>,
    /// The list that it puts paragraphs into.
    pub(super) list: ListPlace,
    /// The ids of the style and those that it is based on.
    pub(super) ids: Vec<String>,
    /// Whether it is for the lines of a table of contents.
    pub(super) is_contents: bool,
}

impl ParagraphStyles {
    /// Reads the part with the styles.
    pub(super) fn read(part: &str) -> Result<Self, ParseError> {
        let mut styles = Self::default();
        let mut current: Option<String> = None;
        PartXmlReader::new(part).visit(|element| {
            let name = element.name();
            if name == "style" {
                current = element.attribute("styleId");
                if let Some(id) = &current {
                    styles.styles.entry(id.clone()).or_default();
                    let of_paragraphs = element.attribute("type").is_none_or(|r#type| r#type == "paragraph");
                    if of_paragraphs
                        && matches!(element.attribute("default").as_deref(), Some("1" | "true" | "on"))
                    {
                        styles.default = Some(id.clone());
                    }
                }
                return ElementVisit::Into;
            }
            let Some(style) = current.as_ref().and_then(|id| styles.styles.get_mut(id)) else {
                return ElementVisit::Into;
            };
            let value = element.attribute("val");
            match name {
                "name" => style.name = value.unwrap_or_default().to_lowercase(),
                "basedOn" => style.based_on = value,
                "outlineLvl" => style.outline = value.and_then(|level| level.parse().ok()),
                "numId" => style.list.number = value,
                "ilvl" => style.list.level = value.and_then(|level| level.parse().ok()),
                "tblStylePr" | "pPrChange" | "rPr" => return ElementVisit::Skip,
                _ => {}
            }
            ElementVisit::Into
        })?;
        Ok(styles)
    }

    /// What a paragraph of this style is, or of the default one.
    pub(super) fn resolve(&self, id: Option<&str>) -> ResolvedStyle {
        let mut resolved = ResolvedStyle::default();
        let mut outline = None;
        let mut next = id.filter(|id| self.styles.contains_key(*id)).or(self.default.as_deref());
        while let Some((id, style)) = next.and_then(|id| self.styles.get_key_value(id))
            && resolved.ids.len() < MAX_BASED
        {
            outline = outline.or(style.outline).or_else(|| level_of_name(&style.name));
            resolved.list.number = resolved.list.number.or_else(|| style.list.number.clone());
            resolved.list.level = resolved.list.level.or(style.list.level);
            resolved.is_contents |= is_contents(&style.name);
            resolved.ids.push(id.clone());
            next = style.based_on.as_deref();
        }
        resolved.heading = heading(outline);
        resolved
    }
}

/// The level of a heading, from 1, by its outline level.
pub(super) fn heading(outline: Option<u8>) -> Option<u8> {
    outline.filter(|outline| *outline < BODY_LEVEL).map(|outline| outline + 1)
}

/// Built-in styles have these names in every language.
fn level_of_name(name: &str) -> Option<u8> {
    match name.strip_prefix("heading ") {
        Some(level) => level.parse::<u8>().ok()?.checked_sub(1),
        None => (name == "title").then_some(0),
    }
}

fn is_contents(name: &str) -> bool {
    let level = name.strip_prefix("toc ").unwrap_or_default();
    level.len() == 1 && level.bytes().all(|byte| byte.is_ascii_digit())
}
