//! Documents that are ZIP packages: DOCX, PPTX, ODT, ODP, EPUB. What a package is, only its content tells.

mod archive;
mod block;
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

use self::{archive::Archive, opc::Main};
use super::workbook;
use crate::{
    output::ParserOutput,
    protocol::{ParseError, ParseOptions, Stop},
};

/// Reads a package, or the container of older office files. A workbook is handed over to its own reader; an archive that is no
/// document is [`ParseError::Unsupported`].
pub(crate) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), Stop> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    if bytes.starts_with(legacy::MAGIC) {
        return legacy::parse(bytes, options, output);
    }
    let mut archive = Archive::open(bytes, options.max_chars)?;
    match contents(&mut archive)? {
        Contents::Office(Main::Word(main)) => word::parse(&mut archive, &main, output),
        Contents::Office(Main::Presentation(main)) => presentation::parse(&mut archive, &main, output),
        Contents::Office(Main::Workbook) => workbook::parse(archive.into_bytes(), options, output),
        Contents::OpenDocument => open_document::parse(&mut archive, output),
        Contents::Book => epub::parse(&mut archive, output),
        Contents::Other(what) => Err(ParseError::Unsupported(what.to_owned()).into()),
    }
}

/// What a package holds.
enum Contents {
    Office(Main),
    OpenDocument,
    Book,
    /// Something that is not read, and what to do about it.
    Other(&'static str),
}

fn contents(archive: &mut Archive) -> Result<Contents, ParseError> {
    if let Some(main) = opc::main_part(archive)? {
        return Ok(Contents::Office(main));
    }
    let kind = archive.text("mimetype")?.unwrap_or_default();
    let kind = kind.trim();
    Ok(match kind.strip_prefix("application/vnd.oasis.opendocument.") {
        Some(kind) if kind.starts_with("spreadsheet") => Contents::Office(Main::Workbook),
        Some(kind) if kind.starts_with("text") || kind.starts_with("presentation") => Contents::OpenDocument,
        Some(_) => {
            Contents::Other("a drawing, formula or database of OpenDocument. Save it as PDF and add that")
        }
        None if kind == "application/epub+zip" || archive.has("META-INF/container.xml") => Contents::Book,
        None if archive.has("Index/Document.iwa")
            || archive.has("Index.zip")
            || archive.has("index.apxl") =>
        {
            Contents::Other(
                "a document of Pages, Keynote or Numbers. Export it as PDF, DOCX, PPTX or XLSX and add that",
            )
        }
        None => Contents::Other("a ZIP archive. Unpack it and add the files in it"),
    })
}
