//! Loaders: from a source's bytes to text with places. `ingest` calls [`load`]; a loader calls the sandbox for formats
//! that a stranger can break, and nothing else.

pub mod pdf;
mod portable_document;
mod text;

use std::ops::Range;

use lectern_shared::{
    config::Limits,
    model::{
        document::{DocumentType, PageRange},
        job::{SourceInfo, Warning},
        place::Place,
    },
};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt},
};
use url::Url;

use crate::{hold::ProgressReporter, ingest::Failure, sandbox::Sandbox};

/// Bytes that are looked at to tell what a source is.
const SNIFFED: usize = 1_024;

/// A source as it was got.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// Text that came with the document.
    Inline(String),
    /// What an address answered, or what was uploaded.
    Download(Box<Download>),
}

/// Bytes in a temporary file, at its start.
#[derive(Debug)]
pub(crate) struct Download {
    /// The bytes.
    pub(crate) file: File,
    /// How many.
    pub(crate) bytes: u64,
    /// What the server, or the document's type, calls them, lower-case, without parameters.
    pub(crate) content_type: Option<String>,
    /// The encoding that the server named.
    pub(crate) charset: Option<String>,
    /// Where redirects led; none for an upload.
    pub(crate) url: Option<Url>,
}

/// What a loader works with.
pub(crate) struct LoadContext<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) limits: &'a Limits,
    pub(crate) pages: PageRange,
    pub(crate) progress: &'a ProgressReporter,
}

/// The text of a source, and where its parts stand.
#[derive(Debug, Default)]
pub(crate) struct Extracted {
    /// The whole text.
    pub(crate) text: String,
    /// Where pages begin, ascending, for sources that have pages: offset in code points, page number.
    pub(crate) page_starts: Vec<(u64, u32)>,
    /// Pages read.
    pub(crate) pages: Option<u32>,
    /// What was learnt of the source.
    pub(crate) source: SourceInfo,
    /// What was gone past.
    pub(crate) warnings: Vec<Warning>,
}

impl Extracted {
    /// The place of a passage, from its range in code points.
    pub(crate) fn place(&self, range: Range<u64>) -> Place {
        let page_at = |offset: u64| {
            let after = self.page_starts.partition_point(|(start, _)| *start <= offset);
            after.checked_sub(1).and_then(|at| self.page_starts.get(at)).map(|(_, page)| *page)
        };
        Place {
            page: page_at(range.start),
            page_end: page_at(range.end.saturating_sub(1).max(range.start)),
            char_start: range.start,
            char_end: range.end,
            ..Place::default()
        }
    }
}

/// What the bytes are, whatever the document was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Pdf,
    Html,
    Text,
    Binary,
}

/// Reads a source with the loader for what it turns out to be.
pub(crate) async fn load(
    r#type: DocumentType,
    fetched: Fetched,
    context: &LoadContext<'_>,
) -> Result<Extracted, Failure> {
    match fetched {
        Fetched::Inline(content) => text::from_inline(content, context).await,
        Fetched::Download(download) => {
            let Download { mut file, bytes, content_type, charset, url } = *download;
            let source = SourceInfo {
                title: None,
                canonical_url: url.map(without_credentials),
                mime_type: content_type.clone(),
                bytes: Some(bytes),
            };
            let mut head = vec![0; SNIFFED];
            let length = read_up_to(&mut file, &mut head).await?;
            head.truncate(length);
            file.rewind().await?;
            let format = match (r#type, sniff(&head, content_type.as_deref(), charset.as_deref())) {
                // An empty or unrecognisable file under this name is a broken PDF, not something else.
                (DocumentType::Pdf, Format::Binary) => Format::Pdf,
                (DocumentType::Pdf, Format::Text | Format::Html) if head.is_empty() => Format::Pdf,
                (_, format) => format,
            };
            let mut extracted = match format {
                Format::Pdf => portable_document::load(file, context).await?,
                Format::Text => text::load(file, bytes, charset, context).await?,
                Format::Html => {
                    return Err(unsupported(
                        "The source is a web page. Web pages cannot be ingested yet; give a text or PDF file.",
                    ));
                }
                Format::Binary => {
                    return Err(unsupported(
                        "The source is neither text nor a PDF file. Convert it to one of these.",
                    ));
                }
            };
            extracted.source = SourceInfo { title: extracted.source.title.take(), ..source };
            Ok(extracted)
        }
    }
}

fn unsupported(message: &str) -> Failure {
    Failure::permanent("unsupported_content_type", message)
}

/// The address without what only its owner should see.
fn without_credentials(mut url: Url) -> String {
    // Addresses without a host have no place for them, which is as well.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

async fn read_up_to(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest).await? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// How files begin that are neither text nor PDF.
const MAGIC: &[&[u8]] = &[
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\xd0\xcf\x11\xe0",
    b"Rar!",
    b"7z\xbc\xaf",
];

/// Tells a format by its first bytes; what the server called them decides only between kinds of text.
fn sniff(head: &[u8], content_type: Option<&str>, charset: Option<&str>) -> Format {
    if head.windows(5).any(|window| window == b"%PDF-") {
        return Format::Pdf;
    }
    let named_wide = charset.is_some_and(|charset| charset.to_ascii_lowercase().starts_with("utf-16"));
    let wide = named_wide || head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    if !wide && head.contains(&0) {
        return Format::Binary;
    }
    if MAGIC.iter().any(|magic| head.starts_with(magic)) {
        return Format::Binary;
    }
    let start = head.trim_ascii_start();
    let begins = |tag: &[u8]| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    let html_type = matches!(content_type, Some("text/html" | "application/xhtml+xml"));
    if html_type || begins(b"<!doctype html") || begins(b"<html") {
        return Format::Html;
    }
    Format::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_told_by_its_bytes_whatever_it_is_called() {
        for (head, content_type, format) in [
            (&b"%PDF-1.7\n"[..], Some("text/plain"), Format::Pdf),
            (b"\n\njunk before %PDF-1.4", None, Format::Pdf),
            (b"plain words", Some("application/octet-stream"), Format::Text),
            (b"", Some("text/plain"), Format::Text),
            (b"  <!DOCTYPE HTML><html>", Some("text/plain"), Format::Html),
            (b"<p>fragment", Some("text/html"), Format::Html),
            (b"\xff\xfeh\0i\0", None, Format::Text),
            (b"\x89PNG\r\n\x1a\n\0\0", Some("application/pdf"), Format::Binary),
            (b"a\0b", None, Format::Binary),
        ] {
            assert_eq!(sniff(head, content_type, None), format, "{:?}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn a_passage_over_a_page_border_names_both_pages() {
        let extracted = Extracted { page_starts: vec![(0, 3), (10, 4), (20, 5)], ..Extracted::default() };
        let pages = |range| {
            let place = extracted.place(range);
            (place.page, place.page_end)
        };
        assert_eq!(pages(0..10), (Some(3), Some(3)));
        assert_eq!(pages(5..11), (Some(3), Some(4)));
        assert_eq!(pages(20..99), (Some(5), Some(5)));
        assert_eq!(Extracted::default().place(0..5).page, None);
    }
}
