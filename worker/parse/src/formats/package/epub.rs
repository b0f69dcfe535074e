//! Electronic books: EPUB. The chapters are web pages, read in the order of the book.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use percent_encoding::percent_decode_str;

use super::{
    archive::{PackageArchive, resolve},
    writer::BlockWriter,
    xml::{ElementVisit, PartXmlReader, title_of},
};
use crate::{
    formats::html,
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, SourceMetadata, TextMarkup},
};

/// Where it is written which files are encrypted, and how.
const ENCRYPTION: &str = "META-INF/encryption.xml";
/// Ways to make fonts unusable outside of the book, which hide no text.
const FONTS: [&str; 2] = ["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"];

/// Reads the book.
pub(super) fn parse(archive: &mut PackageArchive, output: &mut ParserOutput<'_>) -> Result<(), ParseAbort> {
    let container = archive.text("META-INF/container.xml")?.ok_or(ParseError::Damaged)?;
    let mut package = None;
    PartXmlReader::new(&container).visit(|element| {
        if element.name() == "rootfile" && package.is_none() {
            package = element.attribute("full-path");
        }
        ElementVisit::Into
    })?;
    let package = package.ok_or(ParseError::Damaged)?;
    let opf = archive.text(&package)?.ok_or(ParseError::Damaged)?;
    let chapters = chapters(&package, &opf)?;
    let encrypted = encrypted(archive)?;
    if chapters.iter().any(|chapter| encrypted.contains(&chapter.to_lowercase())) {
        return Err(ParseError::PasswordRequired.into());
    }
    let title = title_of(&opf, "title").unwrap_or_default();
    output.about(SourceMetadata { title, structure: TextMarkup::Markdown, ..SourceMetadata::default() })?;
    let (mut missing, mut found) = (0, 0_u64);
    let mut writer = BlockWriter::new(output);
    for chapter in &chapters {
        if let Some(page) = archive.text(chapter)? {
            found += 1;
            writer.markdown(&html::markdown_of(&page))?;
        } else {
            missing += 1;
        }
    }
    writer.finish()?;
    if found == 0 {
        return Err(ParseError::Damaged.into());
    }
    if missing > 0 {
        output.warn("missing_chapter", "Some chapters are not in the file and were left out.", missing)?;
    }
    Ok(())
}

/// The files with the chapters in reading order, without the list of them.
fn chapters(package: &str, opf: &str) -> Result<Vec<String>, ParseError> {
    let (mut files, mut order, mut contents) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    PartXmlReader::new(opf).visit(|element| {
        match element.name() {
            "item" => {
                let is_page = element.attribute("media-type").is_none_or(|r#type| r#type.contains("html"));
                if let (Some(id), Some(href), true) =
                    (element.attribute("id"), element.attribute("href"), is_page)
                {
                    let properties = element.attribute("properties").unwrap_or_default();
                    if properties.split_whitespace().any(|property| property == "nav") {
                        contents.insert(id.clone());
                    }
                    files.insert(id, href);
                }
            }
            "itemref" => order.extend(element.attribute("idref")),
            _ => {}
        }
        ElementVisit::Into
    })?;
    let mut seen = BTreeSet::new();
    let chapters = order.into_iter().filter(|id| !contents.contains(id) && seen.insert(id.clone()));
    Ok(chapters.filter_map(|id| resolve(package, &percent_decoded(files.get(&id)?))).collect())
}

/// The files, in lower case, that only the book's seller can open.
fn encrypted(archive: &mut PackageArchive) -> Result<BTreeSet<String>, ParseError> {
    let mut files = BTreeSet::new();
    let Some(list) = archive.text(ENCRYPTION)? else { return Ok(files) };
    let mut hides_text = true;
    PartXmlReader::new(&list).visit(|element| {
        match element.name() {
            "EncryptedData" => hides_text = true,
            "EncryptionMethod" => {
                let algorithm = element.attribute("Algorithm").unwrap_or_default();
                hides_text = !FONTS.contains(&algorithm.as_str());
            }
            "CipherReference" if hides_text => {
                let file = element.attribute("URI").map(|uri| percent_decoded(&uri).to_lowercase());
                files.extend(file.map(|file| file.trim_start_matches('/').to_owned()));
            }
            // How the key itself is encrypted.
            "EncryptedKey" | "KeyInfo" => return ElementVisit::Skip,
            _ => {}
        }
        ElementVisit::Into
    })?;
    Ok(files)
}

/// A relative address as a file's name.
fn percent_decoded(address: &str) -> Cow<'_, str> {
    percent_decode_str(address).decode_utf8_lossy()
}
