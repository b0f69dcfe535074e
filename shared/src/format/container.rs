//! Files that hold other files: zip archives, and the old compound files of office programs.

use super::{FileFormat, kinds::FormatHints};

/// How a zip archive begins: with a file, with nothing, or with the mark of one that was parted.
const ZIP: [&[u8]; 3] = [b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"];
const FILE: &[u8] = b"PK\x03\x04";
const OLE2: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// Tells such a file; none when it is none.
pub(super) fn detect(head: &[u8], named: &FormatHints<'_>) -> Option<FileFormat> {
    if head.starts_with(OLE2) {
        // An e-mail may have the name of the other stream for its subject, or in a file that is attached to it.
        return Some(if named.is_outlook() {
            FileFormat::Package
        } else if named.is_workbook() {
            FileFormat::Workbook
        } else if holds_stream(head, "__properties_version1.0\0") {
            FileFormat::Package
        } else if holds_stream(head, "Workbook\0") {
            FileFormat::Workbook
        } else {
            FileFormat::LegacyOffice
        });
    }
    if !ZIP.iter().any(|mark| head.starts_with(mark)) {
        return None;
    }
    let inside = ZipEntries(head).find_map(|entry| entry.tells());
    Some(
        inside
            .unwrap_or_else(|| if named.is_workbook() { FileFormat::Workbook } else { FileFormat::Package }),
    )
}

/// Whether this stream is seen in the directory of a compound file: every Excel file since 1995 has one of its own, and every e-mail of
/// Outlook.
fn holds_stream(head: &[u8], name: &str) -> bool {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    head.windows(name.len()).any(|window| window == name)
}

/// A file in a zip archive, as far as it is in the first bytes.
#[derive(Debug)]
struct ZipEntry<'a> {
    name: &'a [u8],
    /// What follows the name and whatever else is said of the file; cut nowhere.
    content: &'a [u8],
}

impl ZipEntry<'_> {
    fn tells(&self) -> Option<FileFormat> {
        if self.name == b"mimetype" {
            // Written first and as it is, so that it can be read here.
            if self.content.starts_with(b"application/vnd.oasis.opendocument.spreadsheet") {
                return Some(FileFormat::Workbook);
            }
            let others: [&[u8]; 2] = [b"application/epub+zip", b"application/vnd.oasis.opendocument."];
            return others.iter().any(|other| self.content.starts_with(other)).then_some(FileFormat::Package);
        }
        if self.name.starts_with(b"xl/") {
            return Some(FileFormat::Workbook);
        }
        let others: [&[u8]; 2] = [b"word/", b"ppt/"];
        others.iter().any(|folder| self.name.starts_with(folder)).then_some(FileFormat::Package)
    }
}

/// The files of a zip archive whose beginnings are in the first bytes. They are found by their mark: where one ends is often not
/// said before it.
struct ZipEntries<'a>(&'a [u8]);

impl<'a> Iterator for ZipEntries<'a> {
    type Item = ZipEntry<'a>;

    fn next(&mut self) -> Option<ZipEntry<'a>> {
        let at = self.0.windows(FILE.len()).position(|window| window == FILE)?;
        let header = self.0.get(at..)?;
        self.0 = header.get(FILE.len()..)?;
        let length = |at: usize| {
            let bytes = header.get(at..at + 2)?;
            Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
        };
        let (name, extra) = (length(26)?, length(28)?);
        let name_ends = 30 + name;
        Some(ZipEntry {
            name: header.get(30..name_ends).or_else(|| header.get(30..))?,
            content: header.get(name_ends + extra..).unwrap_or_default(),
        })
    }
}
