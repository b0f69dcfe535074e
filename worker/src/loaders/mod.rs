//! Loaders: from a source's bytes to text with places. `ingest` calls [`load`]; a loader calls the sandbox for formats
//! that a stranger can break, and nothing else.

pub(crate) mod captions;
pub(crate) mod charset;
mod extracted;
mod headings;
pub(crate) mod html;
pub(crate) mod json;
mod markdown;
mod output;
pub(crate) mod package;
mod parts;
pub mod pdf;
pub mod pdf_engine;
mod portable_document;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod workbook;

use lectern_shared::{
    config::Limits,
    format::{Format, SNIFFED},
    model::{
        document::{DocumentType, PageRange},
        job::SourceInfo,
    },
};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt},
};
use url::Url;

pub use self::pdf_engine::{PdfEngine, PdfEngineError};
pub(crate) use self::{
    extracted::Extracted,
    headings::Headings,
    html::{Track, TrackKind},
    output::Output,
};
use self::{parts::Plain, text::Known};
use crate::{
    hold::ProgressReporter,
    ingest::Failure,
    sandbox::{Kind, ParseError, ParseOptions, Sandbox},
};

/// Bytes of a web page beyond which it is not searched for captions.
const LARGEST_PAGE: u64 = 8 << 20;

/// A source as it was got.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// Text that came with the document.
    Inline(String),
    /// The captions of a video, as its site sent them.
    Captions(String),
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
    /// The file's name, as far as it is known.
    pub(crate) name: Option<String>,
}

/// What a loader works with.
pub(crate) struct LoadContext<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) limits: &'a Limits,
    pub(crate) pages: PageRange,
    pub(crate) pdf: &'a PdfEngine,
    pub(crate) progress: &'a ProgressReporter,
}

impl LoadContext<'_> {
    /// What to read, as far as the document and the limits say.
    fn options(&self) -> ParseOptions {
        ParseOptions {
            from_page: self.pages.from,
            to_page: self.pages.to,
            max_pages: self.limits.pages,
            max_chars: self.limits.characters,
            ..ParseOptions::default()
        }
    }
}

/// Reads a source with the loader for what it turns out to be.
pub(crate) async fn load(
    r#type: DocumentType,
    fetched: Fetched,
    context: &LoadContext<'_>,
) -> Result<Extracted, Failure> {
    match fetched {
        Fetched::Inline(content) => inline(r#type, content, context).await,
        Fetched::Captions(captions) => inline(DocumentType::Video, captions, context).await,
        Fetched::Download(download) => downloaded(r#type, *download, context).await,
    }
}

/// Text that is at hand, in the encoding in which all texts are.
async fn inline(
    r#type: DocumentType,
    content: String,
    context: &LoadContext<'_>,
) -> Result<Extracted, Failure> {
    let options = ParseOptions { charset: Some("utf-8".to_owned()), ..context.options() };
    let plain = match r#type {
        DocumentType::Csv => return parts::load(Kind::Table, content.as_bytes(), options, context).await,
        DocumentType::Video => Plain::Captions,
        DocumentType::Txt | DocumentType::Pdf | DocumentType::Url => Plain::Text(Known::No),
    };
    plain.load(content.into_bytes(), options, context).await
}

async fn downloaded(
    r#type: DocumentType,
    download: Download,
    context: &LoadContext<'_>,
) -> Result<Extracted, Failure> {
    let Download { mut file, bytes, content_type, charset, url, name } = download;
    let mut head = vec![0; SNIFFED];
    let length = read_up_to(&mut file, &mut head).await?;
    head.truncate(length);
    file.rewind().await?;
    let name = name.or_else(|| url.as_ref().and_then(last_segment));
    let format = Format::detect(&head, name.as_deref(), content_type.as_deref(), charset.as_deref());
    let options = ParseOptions {
        charset: charset.clone(),
        url: url.as_ref().map(ToString::to_string),
        name,
        ..context.options()
    };
    let mut extracted = match Reader::of(r#type, format, head.is_empty())? {
        Reader::Pdf => portable_document::load(file, context).await?,
        Reader::Parts(kind) => parts::load(kind, file, options, context).await?,
        Reader::Plain(plain) if bytes <= Plain::SHORT as u64 => {
            let mut raw = Vec::new();
            file.read_to_end(&mut raw).await?;
            plain.load(raw, options, context).await?
        }
        Reader::Plain(plain) => parts::load(plain.kind(), file, options, context).await?,
    };
    let source = &mut extracted.source;
    *source = SourceInfo {
        title: source.title.take(),
        canonical_url: source.canonical_url.take().or_else(|| url.map(without_credentials)),
        mime_type: content_type,
        bytes: Some(bytes),
    };
    Ok(extracted)
}

/// The captions of the videos in a web page; none when it is something else than a page.
pub(crate) async fn tracks_of_page(download: &mut Download) -> Result<Option<Vec<Track>>, Failure> {
    let Download { file, bytes, content_type, charset, url, name } = download;
    let mut head = vec![0; SNIFFED];
    let length = read_up_to(file, &mut head).await?;
    head.truncate(length);
    file.rewind().await?;
    let format = Format::detect(&head, name.as_deref(), content_type.as_deref(), charset.as_deref());
    if format != Format::Html {
        return Ok(None);
    }
    if *bytes > LARGEST_PAGE {
        return Ok(Some(Vec::new()));
    }
    let mut raw = Vec::new();
    file.read_to_end(&mut raw).await?;
    file.rewind().await?;
    let (url, charset) = (url.clone(), charset.clone());
    let work = tokio::task::spawn_blocking(move || {
        html::tracks(&charset::decode(&raw, charset.as_deref()).0, url.as_ref())
    });
    Ok(Some(work.await.map_err(|_| Failure::Panicked)?))
}

/// How bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Pdf,
    Parts(Kind),
    Plain(Plain),
}

impl Reader {
    /// By what they are, and among kinds of text by what the document was called.
    fn of(r#type: DocumentType, format: Format, empty: bool) -> Result<Self, Failure> {
        let text = match r#type {
            DocumentType::Csv => Self::Parts(Kind::Table),
            DocumentType::Video => Self::Plain(Plain::Captions),
            // An empty or unrecognisable file under this name is a broken PDF, not something else.
            DocumentType::Pdf if empty => Self::Pdf,
            DocumentType::Pdf | DocumentType::Txt | DocumentType::Url => Self::Plain(Plain::Text(Known::No)),
        };
        Ok(match format {
            Format::Pdf => Self::Pdf,
            Format::Html => Self::Parts(Kind::Html),
            Format::Table => Self::Parts(Kind::Table),
            Format::Json if r#type == DocumentType::Video => Self::Plain(Plain::Captions),
            Format::Json => Self::Parts(Kind::Json),
            Format::Captions => Self::Plain(Plain::Captions),
            Format::Workbook => Self::Parts(Kind::Workbook),
            Format::Package | Format::LegacyOffice => Self::Parts(Kind::Package),
            Format::Markdown if r#type != DocumentType::Csv => Self::Plain(Plain::Text(Known::Markdown)),
            Format::Markdown | Format::Text => text,
            Format::Binary if r#type == DocumentType::Pdf => Self::Pdf,
            Format::Binary => {
                let what = "it is neither text nor one of the formats that are known".to_owned();
                return Err(ParseError::Unsupported(what).into());
            }
        })
    }
}

/// The last part of an address's path, which often is a file's name.
fn last_segment(url: &Url) -> Option<String> {
    url.path_segments()?.next_back().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The address without what only its owner should see.
pub(crate) fn without_credentials(mut url: Url) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_how_a_source_is_read_and_the_type_among_kinds_of_text() {
        use DocumentType::{Csv, Pdf, Txt, Url, Video};
        for (r#type, format, empty, reader) in [
            (Txt, Format::Pdf, false, Some(Reader::Pdf)),
            (Pdf, Format::Binary, false, Some(Reader::Pdf)),
            (Pdf, Format::Text, true, Some(Reader::Pdf)),
            (Txt, Format::Binary, false, None),
            (Csv, Format::Text, false, Some(Reader::Parts(Kind::Table))),
            (Csv, Format::Markdown, false, Some(Reader::Parts(Kind::Table))),
            (Csv, Format::Pdf, false, Some(Reader::Pdf)),
            (Url, Format::Table, false, Some(Reader::Parts(Kind::Table))),
            (Url, Format::Html, false, Some(Reader::Parts(Kind::Html))),
            (Video, Format::Text, false, Some(Reader::Plain(Plain::Captions))),
            (Video, Format::Json, false, Some(Reader::Plain(Plain::Captions))),
            (Txt, Format::Captions, false, Some(Reader::Plain(Plain::Captions))),
            (Txt, Format::Text, false, Some(Reader::Plain(Plain::Text(Known::No)))),
            (Url, Format::Markdown, false, Some(Reader::Plain(Plain::Text(Known::Markdown)))),
        ] {
            assert_eq!(Reader::of(r#type, format, empty).ok(), reader, "{type:?} {format:?}");
        }
    }
}
