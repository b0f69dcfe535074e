//! The container of older office files (OLE2), which also holds those that are protected by a password.

use std::io::Cursor;

use cfb::CompoundFile;

use crate::{
    formats::{compound, mail::outlook, workbook},
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, ParseOptions},
};

/// How such a container begins.
pub(super) const MAGIC: &[u8] = b"\xd0\xcf\x11\xe0";

/// Hands over a workbook or an e-mail; says of everything else what to do with it.
pub(super) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    compound::check(&bytes)?;
    let Ok(container) = CompoundFile::open(Cursor::new(&bytes)) else {
        // The reader of workbooks is more forgiving, and knows best what is left of one.
        return workbook::parse(bytes, options, output);
    };
    let unsupported = |what: &str| Err(ParseError::Unsupported(what.to_owned()).into());
    let has = |stream: &str| container.exists(stream);
    if has("EncryptedPackage") {
        return Err(ParseError::PasswordRequired.into());
    }
    if has("Workbook") || has("Book") {
        drop(container);
        return workbook::parse(bytes, options, output);
    }
    if has(outlook::PROPERTIES) {
        return outlook::parse(container, bytes.len() as u64, options, output);
    }
    if has("WordDocument") {
        unsupported("a document of Word 97 to 2003. Save it as DOCX or PDF and add that")
    } else if has("PowerPoint Document") {
        unsupported("a presentation of PowerPoint 97 to 2003. Save it as PPTX or PDF and add that")
    } else {
        unsupported("an older office file. Save it as DOCX or PDF and add that")
    }
}
