//! What the packages of Office Open XML have in common: which part is the main one, and which belong to a part.

use super::{
    archive::{PackageArchive, resolve},
    xml::{ElementVisit, PartXmlReader},
};
use crate::protocol::ParseError;

/// Where the types of all parts are listed.
pub(super) const CONTENT_TYPES: &str = "[Content_Types].xml";
/// Where title and author are.
const CORE: &str = "docProps/core.xml";

/// What a package holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfficeMainPart {
    /// A text document, and its main part.
    Word(String),
    /// A presentation, and its main part.
    Presentation(String),
    /// A workbook.
    Workbook,
}

/// A part that another one refers to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartRelationship {
    /// How the other part calls it.
    pub(super) id: String,
    /// The last word of its type: `styles`, `slide`, `notesSlide`.
    pub(super) kind: String,
    /// Its name in the package.
    pub(super) part: String,
}

/// What the package holds, by the type of its main part, else by where such programs put it.
pub(super) fn main_part(archive: &mut PackageArchive) -> Result<Option<OfficeMainPart>, ParseError> {
    let Some(types) = archive.text(CONTENT_TYPES)? else { return Ok(None) };
    let mut main = None;
    PartXmlReader::new(&types).visit(|element| {
        if main.is_none()
            && let (Some(r#type), Some(part)) =
                (element.attribute("ContentType"), element.attribute("PartName"))
        {
            main = of_type(&r#type.to_ascii_lowercase(), part.trim_start_matches('/'));
        }
        ElementVisit::Into
    })?;
    let usual = [
        ("word/document.xml", OfficeMainPart::Word as fn(String) -> OfficeMainPart),
        ("ppt/presentation.xml", OfficeMainPart::Presentation),
        ("xl/workbook.xml", |_| OfficeMainPart::Workbook),
        ("xl/workbook.bin", |_| OfficeMainPart::Workbook),
    ];
    let usual =
        || usual.into_iter().find(|(part, _)| archive.has(part)).map(|(part, main)| main(part.to_owned()));
    Ok(main.or_else(usual))
}

fn of_type(r#type: &str, part: &str) -> Option<OfficeMainPart> {
    let r#type = r#type.strip_suffix("+xml").unwrap_or(r#type).strip_suffix(".main")?;
    let is = |words: [&str; 2]| words.iter().any(|word| r#type.contains(word));
    if is(["wordprocessingml", "ms-word"]) {
        Some(OfficeMainPart::Word(part.to_owned()))
    } else if is(["presentationml", "ms-powerpoint"]) {
        Some(OfficeMainPart::Presentation(part.to_owned()))
    } else if is(["spreadsheetml", "ms-excel"]) {
        Some(OfficeMainPart::Workbook)
    } else {
        None
    }
}

/// The parts that a part refers to, in the order in which it lists them.
pub(super) fn relations(
    archive: &mut PackageArchive,
    part: &str,
) -> Result<Vec<PartRelationship>, ParseError> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let Some(list) = archive.text(&format!("{folder}/_rels/{name}.rels"))? else { return Ok(Vec::new()) };
    let mut relations = Vec::new();
    PartXmlReader::new(&list).visit(|element| {
        if element.name() == "Relationship"
            && element.attribute("TargetMode").as_deref() != Some("External")
            && let (Some(id), Some(kind), Some(target)) =
                (element.attribute("Id"), element.attribute("Type"), element.attribute("Target"))
            && let Some(part) = resolve(part, &target)
        {
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            relations.push(PartRelationship { id, kind, part });
        }
        ElementVisit::Into
    })?;
    Ok(relations)
}

/// The text of the first part of this kind.
pub(super) fn related(
    archive: &mut PackageArchive,
    relations: &[PartRelationship],
    kind: &str,
) -> Result<Option<String>, ParseError> {
    match relations.iter().find(|relation| relation.kind == kind) {
        Some(relation) => archive.text(&relation.part),
        None => Ok(None),
    }
}

/// The title that the author gave it.
pub(super) fn title(archive: &mut PackageArchive) -> Result<Option<String>, ParseError> {
    match archive.text(CORE)? {
        // A title is not worth the document.
        Some(core) => Ok(super::xml::title_of(&core, "title").unwrap_or_default()),
        None => Ok(None),
    }
}
