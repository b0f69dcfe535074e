//! Documents that are ZIP packages: DOCX, PPTX, ODT, ODP, EPUB. What a package is, only its content tells.

mod archive;
mod block;
mod chart;
mod epub;
mod flow;
mod legacy;
mod opc;
mod open_document;
mod presentation;
#[cfg(test)]
mod tests;
mod word;
mod writer;
mod xml;

use self::{archive::PackageArchive, opc::OfficeMainPart};
use super::workbook;
use crate::{
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, ParseOptions},
};

/// Reads a package, or the container of older office files. A workbook is handed over to its own reader; an archive that is no
/// document is [`ParseError::Unsupported`].
pub(crate) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    if bytes.starts_with(legacy::MAGIC) {
        return legacy::parse(bytes, options, output);
    }
    let mut archive = PackageArchive::open(bytes)?;
    match contents(&mut archive)? {
        PackageKind::Office(OfficeMainPart::Word(main)) => word::parse(&mut archive, &main, output),
        PackageKind::Office(OfficeMainPart::Presentation(main)) => {
            presentation::parse(&mut archive, &main, output)
        }
        PackageKind::Office(OfficeMainPart::Workbook) => {
            workbook::parse(archive.into_bytes(), options, output)
        }
        PackageKind::OpenDocument => open_document::parse(&mut archive, output),
        PackageKind::Book => epub::parse(&mut archive, output),
        PackageKind::Other(what) => Err(ParseError::Unsupported(what.to_owned()).into()),
    }
}

/// What a package holds.
enum PackageKind {
    Office(OfficeMainPart),
    OpenDocument,
    Book,
    /// Something that is not read, and what to do about it.
    Other(&'static str),
}

fn contents(archive: &mut PackageArchive) -> Result<PackageKind, ParseError> {
    if let Some(main) = opc::main_part(archive)? {
        return Ok(PackageKind::Office(main));
    }
    let kind = archive.text("mimetype")?.unwrap_or_default();
    let kind = kind.trim();
    Ok(match kind.strip_prefix("application/vnd.oasis.opendocument.") {
        Some(kind) if kind.starts_with("spreadsheet") => PackageKind::Office(OfficeMainPart::Workbook),
        Some(kind) if kind.starts_with("text") || kind.starts_with("presentation") => {
            PackageKind::OpenDocument
        }
        Some(_) => {
            PackageKind::Other("a drawing, formula or database of OpenDocument. Save it as PDF and add that")
        }
        None if kind == "application/epub+zip" || archive.has("META-INF/container.xml") => PackageKind::Book,
        None if archive.has("Index/Document.iwa")
            || archive.has("Index.zip")
            || archive.has("index.apxl") =>
        {
            PackageKind::Other(
                "a document of Pages, Keynote or Numbers. Export it as PDF, DOCX, PPTX or XLSX and add that",
            )
        }
        None => PackageKind::Other("a ZIP archive. Unpack it and add the files in it"),
    })
}
