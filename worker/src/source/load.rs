//! From the bytes of a source to text with places: the bytes decide how they are read, and the child reads them, but for short plain
//! texts and for the captions that a page names.

use lectern_parse::{
    charset,
    formats::html::{self, TrackElement},
    protocol::{ParseError, ParseOptions, SourceKind},
};
use lectern_sandbox::Sandbox;
use lectern_shared::{
    config::ServiceLimits,
    format::{FileFormat, SNIFFED},
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

use super::{
    parts,
    pdf::{self, PdfEngine},
};
use crate::{extracted::ExtractedText, failure::IngestFailure, lease::ProgressReporter};

/// Bytes of a web page beyond which it is not searched for captions.
const LARGEST_PAGE: u64 = 8 << 20;

/// A source as it was got.
#[derive(Debug)]
pub(crate) enum FetchedSource {
    /// Text that came with the document.
    Inline(String),
    /// The captions of a video, as its site sent them.
    Captions(String),
    /// What an address answered, or what was uploaded.
    Download(Box<DownloadedFile>),
}

/// Bytes in a temporary file, at its start.
#[derive(Debug)]
pub(crate) struct DownloadedFile {
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

/// What a source is read with.
pub(crate) struct LoadContext<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) limits: &'a ServiceLimits,
    pub(crate) pages: PageRange,
    pub(crate) pdf: &'a PdfEngine,
    /// The language that the document says it is in.
    pub(crate) language: Option<&'a str>,
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

/// Reads a source as what it turns out to be.
pub(crate) async fn load(
    r#type: DocumentType,
    fetched: FetchedSource,
    context: &LoadContext<'_>,
) -> Result<ExtractedText, IngestFailure> {
    match fetched {
        FetchedSource::Inline(content) => inline(r#type, content, context).await,
        FetchedSource::Captions(captions) => inline(DocumentType::Video, captions, context).await,
        FetchedSource::Download(download) => downloaded(r#type, *download, context).await,
    }
}

/// Text that is at hand, in the encoding in which all texts are.
async fn inline(
    r#type: DocumentType,
    content: String,
    context: &LoadContext<'_>,
) -> Result<ExtractedText, IngestFailure> {
    let LoadContext { sandbox, progress, .. } = *context;
    let options = ParseOptions { charset: Some("utf-8".to_owned()), ..context.options() };
    let kind = match r#type {
        DocumentType::Csv => {
            return parts::load(SourceKind::Table, content.as_bytes(), options, sandbox, progress).await;
        }
        DocumentType::Video => SourceKind::Captions,
        DocumentType::Txt | DocumentType::Pdf | DocumentType::Url => SourceKind::Text,
    };
    parts::load_plain(kind, content.into_bytes(), options, sandbox, progress).await
}

async fn downloaded(
    r#type: DocumentType,
    download: DownloadedFile,
    context: &LoadContext<'_>,
) -> Result<ExtractedText, IngestFailure> {
    let LoadContext { sandbox, progress, .. } = *context;
    let DownloadedFile { mut file, bytes, content_type, charset, url, name } = download;
    let mut head = vec![0; SNIFFED];
    let length = read_up_to(&mut file, &mut head).await?;
    head.truncate(length);
    file.rewind().await?;
    let name = name.or_else(|| url.as_ref().and_then(last_segment));
    let format = FileFormat::detect(&head, name.as_deref(), content_type.as_deref(), charset.as_deref());
    let options = ParseOptions {
        charset: charset.clone(),
        url: url.as_ref().map(ToString::to_string),
        name,
        ..context.options()
    };
    let mut extracted = match kind_of(r#type, format, head.is_empty())? {
        SourceKind::Pdf => {
            let LoadContext { pdf, language, .. } = *context;
            pdf::load(file, context.options(), pdf, language, sandbox, progress).await?
        }
        plain if parts::is_plain(plain) && bytes <= parts::SHORT as u64 => {
            let mut raw = Vec::new();
            file.read_to_end(&mut raw).await?;
            parts::load_plain(plain, raw, options, sandbox, progress).await?
        }
        kind => parts::load(kind, file, options, sandbox, progress).await?,
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
pub(super) async fn tracks_of_page(
    download: &mut DownloadedFile,
) -> Result<Option<Vec<TrackElement>>, IngestFailure> {
    let DownloadedFile { file, bytes, content_type, charset, url, name } = download;
    let mut head = vec![0; SNIFFED];
    let length = read_up_to(file, &mut head).await?;
    head.truncate(length);
    file.rewind().await?;
    let format = FileFormat::detect(&head, name.as_deref(), content_type.as_deref(), charset.as_deref());
    if format != FileFormat::Html {
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
    Ok(Some(work.await.map_err(|_| IngestFailure::Panicked)?))
}

/// How bytes are read: by what they are, and among kinds of text by what the document was called.
fn kind_of(r#type: DocumentType, format: FileFormat, empty: bool) -> Result<SourceKind, IngestFailure> {
    let text = match r#type {
        DocumentType::Csv => SourceKind::Table,
        DocumentType::Video => SourceKind::Captions,
        // An empty or unrecognisable file under this name is a broken PDF, not something else.
        DocumentType::Pdf if empty => SourceKind::Pdf,
        DocumentType::Pdf | DocumentType::Txt | DocumentType::Url => SourceKind::Text,
    };
    Ok(match format {
        FileFormat::Pdf => SourceKind::Pdf,
        FileFormat::Html => SourceKind::Html,
        FileFormat::Table => SourceKind::Table,
        FileFormat::Json if r#type == DocumentType::Video => SourceKind::Captions,
        FileFormat::Json => SourceKind::Json,
        FileFormat::Mail => SourceKind::Mail,
        FileFormat::Captions => SourceKind::Captions,
        FileFormat::Workbook => SourceKind::Workbook,
        FileFormat::Package | FileFormat::LegacyOffice => SourceKind::Package,
        FileFormat::Markdown if r#type != DocumentType::Csv => SourceKind::Markdown,
        FileFormat::Markdown | FileFormat::Text => text,
        FileFormat::Binary if r#type == DocumentType::Pdf => SourceKind::Pdf,
        FileFormat::Binary => {
            let what = "it is neither text nor one of the formats that are known".to_owned();
            return Err(ParseError::Unsupported(what).into());
        }
    })
}

/// The last part of an address's path, which often is a file's name.
fn last_segment(url: &Url) -> Option<String> {
    url.path_segments()?.next_back().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The address without what only its owner should see.
pub(super) fn without_credentials(mut url: Url) -> String {
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
        for (r#type, format, empty, kind) in [
            (Txt, FileFormat::Pdf, false, Some(SourceKind::Pdf)),
            (Pdf, FileFormat::Binary, false, Some(SourceKind::Pdf)),
            (Pdf, FileFormat::Text, true, Some(SourceKind::Pdf)),
            (Txt, FileFormat::Binary, false, None),
            (Csv, FileFormat::Text, false, Some(SourceKind::Table)),
            (Csv, FileFormat::Markdown, false, Some(SourceKind::Table)),
            (Csv, FileFormat::Pdf, false, Some(SourceKind::Pdf)),
            (Url, FileFormat::Table, false, Some(SourceKind::Table)),
            (Url, FileFormat::Html, false, Some(SourceKind::Html)),
            (Video, FileFormat::Text, false, Some(SourceKind::Captions)),
            (Video, FileFormat::Json, false, Some(SourceKind::Captions)),
            (Txt, FileFormat::Captions, false, Some(SourceKind::Captions)),
            (Csv, FileFormat::Mail, false, Some(SourceKind::Mail)),
            (Txt, FileFormat::Text, false, Some(SourceKind::Text)),
            (Url, FileFormat::Markdown, false, Some(SourceKind::Markdown)),
        ] {
            assert_eq!(kind_of(r#type, format, empty).ok(), kind, "{type:?} {format:?}");
        }
    }
}
