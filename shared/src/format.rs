//! What a file is: told by how its bytes begin, then by its name, then by its media type. Uploads and ingestion both ask here,
//! so that what is taken can be read.

mod container;
mod kinds;
mod mail;
mod markup;

use self::kinds::FormatHints;
use crate::model::document::DocumentType;

/// Bytes from the beginning of a file that are looked at; more of them tell nothing more.
pub const SNIFFED: usize = 4_096;

/// What a package is called that shows no more than that it is one.
const ARCHIVE: &str = "application/zip";

/// A PDF file may begin with something else, within so many bytes.
const PDF_BEGINS_WITHIN: usize = 1_024;

/// How a file is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// A PDF file.
    Pdf,
    /// A web page.
    Html,
    /// Text with the structure of Markdown.
    Markdown,
    /// Rows of values parted by commas, tabs or the like.
    Table,
    /// What is said in a video, with times.
    Captions,
    /// JSON, or lines of it.
    Json,
    /// An e-mail, or a web page that was saved with all that belongs to it.
    Mail,
    /// Any other text, XML included.
    Text,
    /// A zip archive that is a document, a presentation or a book, or something that only opening it tells; or an e-mail of Outlook.
    Package,
    /// A spreadsheet in any of the formats of office programs.
    Workbook,
    /// An old office file (OLE2) that is not known to be a spreadsheet or an e-mail.
    LegacyOffice,
    /// Anything else: images, sound, programs, other archives.
    Binary,
}

impl FileFormat {
    /// Tells the format of a file by its first bytes (as many as there are, up to [`SNIFFED`]), its name or the last segment of
    /// its address, its media type (lower case, without parameters) and the encoding that its sender named.
    ///
    /// Bytes win over names, and names over media types; `text/plain` and `application/octet-stream` say nothing.
    #[must_use]
    pub fn detect(
        head: &[u8],
        name: Option<&str>,
        content_type: Option<&str>,
        charset: Option<&str>,
    ) -> Self {
        let head = head.get(..SNIFFED).unwrap_or(head);
        let named = FormatHints::of(name, content_type);
        if let Some(format) = container::detect(head, &named) {
            return format;
        }
        if MAGIC.iter().any(|magic| head.starts_with(magic)) {
            return Self::Binary;
        }
        if is_pdf(head) && markup::detect(start_of_text(head), &named) != Some(Self::Html) {
            return Self::Pdf;
        }
        let narrowed;
        let text = if is_wide(head, charset) {
            // Everything that tells a format is ASCII, which is left when the zeros go.
            narrowed = head.iter().copied().filter(|byte| byte.is_ascii() && *byte != 0).collect::<Vec<_>>();
            &narrowed
        } else if head.contains(&0) {
            return Self::Binary;
        } else {
            start_of_text(head)
        };
        let text = text.trim_ascii_start();
        if text.starts_with(b"{\\rtf") {
            return Self::Binary;
        }
        if is_captions(text) {
            return Self::Captions;
        }
        match markup::detect(text, &named).or_else(|| named.text()) {
            // A server's message in the place of the file.
            Some(Self::Json) if !text.is_empty() && !may_be_json(text) => Self::Text,
            Some(Self::Mail) if !mail::begins(text) => Self::Text,
            Some(format) => format,
            None if mail::is_told(text) => Self::Mail,
            None => Self::Text,
        }
    }

    /// The type of document that a file becomes.
    ///
    /// # Errors
    /// Why it becomes none, and what to do.
    fn document_type(self) -> Result<DocumentType, &'static str> {
        match self {
            Self::Pdf => Ok(DocumentType::Pdf),
            Self::Table | Self::Workbook => Ok(DocumentType::Csv),
            Self::Captions => Ok(DocumentType::Video),
            Self::Html | Self::Markdown | Self::Json | Self::Mail | Self::Text | Self::Package => {
                Ok(DocumentType::Txt)
            }
            Self::LegacyOffice => Err(
                "The file is of an old office program, or protected by a password. Save it without a password as .docx, \
                 .pptx, .xlsx or PDF.",
            ),
            Self::Binary => Err(
                "Files of this kind cannot be read. These can: PDF; text, Markdown, HTML, XML and JSON; tables (CSV, TSV) and spreadsheets \
                 (XLSX, XLSM, XLSB, XLS, ODS); DOCX, PPTX, ODT, ODP and EPUB; e-mails (EML, MSG) and web archives (MHT); captions (VTT, SRT, \
                 SBV, TTML). Convert it to one of these.",
            ),
        }
    }

    /// The media type of a file of this format: of those that it can have, the one that its name, or else what its sender calls
    /// it, tells. With it and the name, [`FileFormat::detect`] finds the same format again.
    #[must_use]
    pub fn media_type(self, name: Option<&str>, content_type: Option<&str>) -> &'static str {
        kinds::media_type(self, &FormatHints::of(name, content_type))
    }
}

/// What a file is, and what documents are made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// How it is read.
    pub format: FileFormat,
    /// The type of document that it becomes.
    pub r#type: DocumentType,
    /// Its media type.
    pub media_type: &'static str,
}

impl FileIdentity {
    /// Tells it by what [`FileFormat::detect`] looks at.
    ///
    /// # Errors
    /// Why no document can be made of it, and what to do.
    pub fn of(
        head: &[u8],
        name: Option<&str>,
        content_type: Option<&str>,
        charset: Option<&str>,
    ) -> Result<Self, &'static str> {
        let format = FileFormat::detect(head, name, content_type, charset);
        let media_type = format.media_type(name, content_type);
        // A package of which nothing says what it is.
        let known = if media_type == ARCHIVE { FileFormat::Binary } else { format };
        Ok(Self { format, r#type: known.document_type()?, media_type })
    }
}

/// How the names of files of this media type end, in lower case without a dot: the usual end first. None when any may.
#[must_use]
pub fn extensions(media_type: &str) -> &'static [&'static str] {
    kinds::extensions(media_type)
}

/// How files begin that are neither text nor any format that is read, those included that may have no zero byte in the part that is
/// looked at. None may be how a sentence can begin.
const MAGIC: &[&[u8]] = &[
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"II*\0",
    b"MM\0*",
    b"8BPS\0",
    b"wOFF",
    b"wOF2",
    b"ID3\x02",
    b"ID3\x03",
    b"ID3\x04",
    b"\xff\xfb",
    b"\xff\xf3",
    b"\xff\xf2",
    b"OggS\0",
    b"fLaC\0",
    b"FLV\x01",
    b"\x1aE\xdf\xa3",
    b"\x1f\x8b\x08",
    b"BZh91AY&SY",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"!<arch>\n",
    b"\x7fELF",
    b"\xca\xfe\xba\xbe",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"%!PS",
    b"SQLite format 3\0",
    b"PAR1",
];

/// A text without the mark of its encoding and the blanks before it.
fn start_of_text(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// Whether a PDF file begins here. What comes before it ends with a line or is no text: a text may say how such files begin.
fn is_pdf(head: &[u8]) -> bool {
    let may_begin_behind = |before: &[u8]| {
        start_of_text(before).is_empty()
            || before.ends_with(b"\n")
            || before.ends_with(b"\r")
            || before.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
            || std::str::from_utf8(before).is_err()
    };
    let head = head.get(..PDF_BEGINS_WITHIN).unwrap_or(head);
    let mut places = head.windows(5).enumerate().filter(|(_, window)| *window == b"%PDF-");
    places.any(|(at, _)| head.get(..at).is_some_and(may_begin_behind))
}

/// Whether bytes are text of two or four bytes a character, which is full of zeros.
fn is_wide(head: &[u8], charset: Option<&str>) -> bool {
    let marks: [&[u8]; 3] = [b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"];
    let labels = ["utf-16", "utf16", "utf-32", "utf32", "ucs-2", "ucs2", "unicode"];
    marks.iter().any(|mark| head.starts_with(mark))
        || charset.is_some_and(|charset| {
            let charset = charset.trim().to_ascii_lowercase();
            let order = ["le", "be"].iter().find_map(|order| charset.strip_suffix(order));
            labels.contains(&order.unwrap_or(&charset).trim_end_matches('-'))
        })
}

/// Whether a text begins as JSON does.
fn may_be_json(text: &[u8]) -> bool {
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    matches!(text.first(), Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9'))
        || words.iter().any(|word| text.starts_with(word))
}

/// `WebVTT`, or `SubRip`: a number, and a time on the line after it.
fn is_captions(text: &[u8]) -> bool {
    if let Some(rest) = text.strip_prefix(b"WEBVTT") {
        return rest.first().is_none_or(u8::is_ascii_whitespace);
    }
    let mut lines = text
        .split(|byte| matches!(byte, b'\n' | b'\r'))
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    let is_number = |line: &[u8]| line.len() <= 9 && line.iter().all(u8::is_ascii_digit);
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    is_number(first) && is_span_of_time(second)
}

/// `00:00:01,000 --> 00:00:02,500`, and what is often made of it.
fn is_span_of_time(line: &[u8]) -> bool {
    let Some(arrow) = line.windows(3).position(|window| window == b"-->") else { return false };
    let is_time = |text: &[u8]| {
        let text = text.trim_ascii();
        text.first().is_some_and(u8::is_ascii_digit)
            && text.contains(&b':')
            && text.iter().all(|byte| byte.is_ascii_digit() || b":,. ".contains(byte))
    };
    let (from, to) = line.split_at(arrow);
    let to = to.get(3..).unwrap_or_default().trim_ascii();
    // Positions on the screen may follow.
    let to = to.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    is_time(from) && is_time(to)
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
