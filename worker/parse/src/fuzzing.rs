//! What a stranger's bytes reach first, as the targets in `fuzz/` call it, in this process. Each function panics when something
//! comes out that the parent of a parsing child would not take, and gives back what it would; nothing of a source that is refused.

use std::{
    io::{Cursor, Write},
    sync::Arc,
};

use cfb::CompoundFile;
use lectern_shared::file_name;
use url::Url;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{
    charset, draw,
    formats::{self, html},
    listing,
    protocol::{
        self, DrawRequest, FeedEntry, FeedListing, ImageFormat, Listing, ListingCollector, ListingKind,
        ListingRequest, MAX_LISTED, MAX_TITLE, MAX_URL, MarkKind, PageLinks, ParseFrame, ParseOptions,
        ParsedPart, SitemapListing, SourceKind, SourceMetadata, TextMark, TextToMark,
    },
};

/// The most characters that a parser may give here: few enough that a small input which grows is noticed.
const MAX_CHARS: u64 = 2_000_000;
/// Where the pages are that are read here.
const ADDRESS: &str = "https://example.org/a/b?c";

fn options() -> ParseOptions {
    ParseOptions {
        max_pages: 100,
        max_chars: MAX_CHARS,
        url: Some(ADDRESS.to_owned()),
        ..ParseOptions::default()
    }
}

/// A PDF, by the built-in engine. A panic on a page, which costs that page only, is none here.
pub fn pdf(bytes: &[u8]) {
    let (mut expected, mut chars) = (None, 0);
    let mut emit = |frame| {
        match frame {
            ParseFrame::Start { pages_total, first, last, title, engine: _ } => {
                assert!(expected.is_none() && (1..=last).contains(&first) && last <= pages_total);
                assert!(title.is_none_or(|title| is_title(&title) && !title.trim().is_empty()));
                expected = Some(first..=last);
            }
            ParseFrame::Page { number, text, sections, .. } => {
                assert_eq!(expected.as_mut().and_then(Iterator::next), Some(number), "pages come in order");
                assert!(is_clean(&text));
                assert!(sections.iter().all(|section| section.level > 0 && is_title(&section.title)));
                chars += text.chars().count() as u64;
            }
            ParseFrame::Warning(warning) => assert_eq!(warning.code, protocol::INCOMPLETE_FILE),
            other @ (ParseFrame::Image { .. }
            | ParseFrame::About(_)
            | ParseFrame::Part(_)
            | ParseFrame::Headings(_)) => {
                unreachable!("no frame of a PDF's: {other:?}");
            }
        }
        Ok(())
    };
    let end = formats::parse(SourceKind::Pdf, bytes.to_vec(), &options(), &mut emit);
    assert!(chars <= MAX_CHARS);
    if end.is_ok() {
        assert_eq!(expected.as_mut().and_then(Iterator::next), None, "no page is missing");
    }
}

/// The first page of a PDF as a small picture, with marks on it.
pub fn draw(bytes: &[u8]) {
    let marks = ["the", "of a page that is quoted at some length, over the end of a line"];
    let between = TextToMark { text: "a".to_owned(), before: "this is".to_owned(), after: "page".to_owned() };
    let request = DrawRequest {
        page: 1,
        width: 200,
        format: ImageFormat::Png,
        marks: marks.map(TextToMark::from).into_iter().chain([between]).collect(),
        words: Vec::new(),
        memory_bytes: 0,
        cpu_seconds: 0,
    };
    if let Ok(drawing) = draw::draw(bytes.to_vec(), &request, Arc::default()) {
        assert!(drawing.answers(&request));
    }
}

/// A web page, and the captions that it links to.
pub fn html(bytes: &[u8]) -> Vec<ParseFrame> {
    let frames = parts(SourceKind::Html, bytes);
    let base = Url::parse(ADDRESS).ok();
    html::tracks(&charset::decode(bytes, None).0, base.as_ref());
    frames
}

/// Where a web page leads.
pub fn links(bytes: &[u8]) {
    let Some(Listing::Links(PageLinks { title, mut links, .. })) = list(ListingKind::Links, bytes) else {
        unreachable!("every page has links, if none");
    };
    assert!(title.is_none_or(|title| !title.trim().is_empty()));
    let found = links.len();
    links.sort_unstable();
    links.dedup();
    assert_eq!(links.len(), found, "each address is there once");
}

/// A feed. A panic of the library's, which costs that feed only, is none here: the child catches it.
pub fn feed(bytes: &[u8]) {
    let first = list(ListingKind::Feed, bytes);
    assert_eq!(first, list(ListingKind::Feed, bytes), "it says the same at every reading");
    let Some(Listing::Feed(FeedListing { entries, .. })) = first else { return };
    assert!(entries.len() <= MAX_LISTED);
    for FeedEntry { key, id, title, link, html, version } in entries {
        assert!(!key.is_empty(), "an entry can be told from others");
        assert!(
            [Some(&key), id.as_ref(), title.as_ref(), html.as_ref(), Some(&version)]
                .into_iter()
                .flatten()
                .all(|it| is_clean(it))
        );
        assert!(link.is_none_or(|link| link.as_str() == key), "{key:?}");
        let name = title.as_deref().and_then(file_name::in_one_line);
        assert!(name.is_none_or(|name| (1..=file_name::LONGEST).contains(&name.chars().count())));
    }
}

/// A sitemap.
pub fn sitemap(bytes: &[u8]) {
    if let Some(Listing::Sitemap(SitemapListing { addresses, .. })) = list(ListingKind::Sitemap, bytes) {
        assert!(addresses.len() <= MAX_LISTED);
    }
}

/// Reads a list as the child does, and takes in what it says as its parent does; none when it is none.
fn list(kind: ListingKind, bytes: &[u8]) -> Option<Listing> {
    let request = ListingRequest {
        kind,
        url: Url::parse(ADDRESS).ok()?,
        charset: None,
        texts: true,
        max_entries: MAX_LISTED,
        memory_bytes: 0,
        cpu_seconds: 0,
    };
    let listing = listing::read(bytes, &request).ok()?;
    let mut collector = ListingCollector::new(request);
    let mut collected = None;
    for message in listing.into_messages() {
        assert!(collected.is_none(), "nothing comes after the last word");
        assert!(protocol::encode(&message).is_ok(), "it fits into a message");
        match collector.admit(message) {
            Ok(listing) => collected = listing,
            Err(error) => unreachable!("the parent refuses it: {error}"),
        }
    }
    collected
}

/// CSV and its relatives.
pub fn table(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Table, bytes)
}

/// JSON and JSON Lines.
pub fn json(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Json, bytes)
}

/// E-mails and web archives. A panic of the library's over headers, which costs those headers only, is none here.
pub fn mail(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Mail, bytes)
}

/// Workbooks: a file as it is, or the parts of one, see [`packed`].
pub fn workbook(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Workbook, &packed(bytes))
}

/// Other office documents: a file as it is, or the parts of one, see [`packed`].
pub fn package(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Package, &packed(bytes))
}

/// Captions of a video.
pub fn captions(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Captions, bytes)
}

/// Plain text, which may look like Markdown.
pub fn text(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Text, bytes)
}

/// Text that is called Markdown.
pub fn markdown(bytes: &[u8]) -> Vec<ParseFrame> {
    parts(SourceKind::Markdown, bytes)
}

/// Bytes that are a package or an older office file, as they are. Others are read as the parts of one, so that what is mutated is what
/// stands in it: a line `--- NAME` begins each part of a package, and a line `=== PATH` each stream of an older file.
fn packed(bytes: &[u8]) -> Vec<u8> {
    const PART: &[u8] = b"--- ";
    const STREAM: &[u8] = b"=== ";
    if bytes.starts_with(PART) {
        zipped(named(bytes, PART))
    } else if bytes.starts_with(STREAM) {
        compounded(named(bytes, STREAM))
    } else {
        bytes.to_vec()
    }
}

/// What follows each line that begins with a mark, by the name that the line says.
fn named(bytes: &[u8], mark: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match (line.strip_prefix(mark), parts.last_mut()) {
            (Some(name), _) => {
                parts.push((String::from_utf8_lossy(name.trim_ascii()).into_owned(), Vec::new()));
            }
            (None, Some((_, content))) => content.extend_from_slice(line),
            (None, None) => {}
        }
    }
    parts
}

/// A package of these parts.
fn zipped(parts: Vec<(String, Vec<u8>)>) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in parts {
        // Two of one name are refused; the first one stays.
        if archive.start_file(name, stored).is_ok() {
            let _written = archive.write_all(&content);
        }
    }
    archive.finish().map(Cursor::into_inner).unwrap_or_default()
}

/// An older office file of these streams, without the ends of their last lines.
fn compounded(streams: Vec<(String, Vec<u8>)>) -> Vec<u8> {
    let Ok(mut file) = CompoundFile::create(Cursor::new(Vec::new())) else { return Vec::new() };
    for (path, content) in streams {
        let (folder, _) = path.rsplit_once('/').unwrap_or_default();
        // Names that there cannot be are refused; of two of one name the first one stays.
        if file.create_storage_all(folder).is_ok()
            && let Ok(mut stream) = file.create_new_stream(&path)
        {
            let _written = stream.write_all(content.strip_suffix(b"\n").unwrap_or(&content));
        }
    }
    file.into_inner().into_inner()
}

/// Reads a source as the child does, and looks at what it says as its parent does.
fn parts(kind: SourceKind, bytes: &[u8]) -> Vec<ParseFrame> {
    let mut frames = Vec::new();
    let (mut begun, mut chars) = (false, 0);
    let mut emit = |frame: ParseFrame| {
        match &frame {
            ParseFrame::About(SourceMetadata { title, canonical_url, .. }) => {
                assert!(!begun, "what it says of itself comes before any part, and once");
                assert!(title.as_ref().is_none_or(|title| is_title(title) && !title.trim().is_empty()));
                let is_address = |url: &String| url.len() <= MAX_URL && url.starts_with("http");
                assert!(canonical_url.as_ref().is_none_or(is_address));
                begun = true;
            }
            ParseFrame::Part(ParsedPart { text, marks }) => {
                are_in_order(text, marks);
                chars += text.chars().count() as u64;
                begun = true;
            }
            ParseFrame::Headings(marks) => {
                assert!(marks.iter().all(|mark| mark.at <= chars) && marks.is_sorted_by_key(|mark| mark.at));
            }
            ParseFrame::Warning(warning) => assert!(is_clean(&warning.message)),
            other @ (ParseFrame::Start { .. } | ParseFrame::Image { .. } | ParseFrame::Page { .. }) => {
                unreachable!("no frame of a source without pages: {other:?}");
            }
        }
        frames.push(frame);
        Ok(())
    };
    let read = formats::parse(kind, bytes.to_vec(), &options(), &mut emit);
    assert!(chars <= MAX_CHARS);
    if read.is_ok() { frames } else { Vec::new() }
}

fn is_clean(text: &str) -> bool {
    !text.contains('\0')
}

fn is_title(text: &str) -> bool {
    is_clean(text) && text.chars().count() <= MAX_TITLE
}

/// Marks stand within their text, one after the other.
fn are_in_order(text: &str, marks: &[TextMark]) {
    assert!(is_clean(text));
    let length = text.chars().count() as u64;
    let is_sane = |mark: &TextMark| match &mark.what {
        MarkKind::Page(number) => *number > 0,
        MarkKind::Row(number) => *number > 0,
        MarkKind::Heading { level, title } => *level > 0 && is_title(title),
        MarkKind::Time { start, end } => start.is_finite() && end.is_finite(),
    };
    assert!(marks.iter().all(|mark| mark.at <= length && is_sane(mark)), "{marks:?} of {length}");
    assert!(marks.is_sorted_by_key(|mark| mark.at), "{marks:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of what is read.
    fn text(frames: Vec<ParseFrame>) -> String {
        let text = |frame| if let ParseFrame::Part(part) = frame { part.text } else { String::new() };
        frames.into_iter().map(text).collect()
    }

    #[test]
    fn seeds_of_outlook_are_read_with_the_e_mails_that_are_attached() {
        let file = text(package(include_bytes!("../../../fuzz/seeds/package/parts.msg")));
        assert_eq!(
            file,
            "Subject: Fwd: the mill\nFrom: Ada L. <ada@example.com>\nTo: Bob, Eve\nCc: Jürgen\n\
             Date: 2026-11-28T08:00:00Z\nAttachments: plan.pdf\n\nSee below.\n\n\
             # Weir\n\nFrom: Bob\n\n## Leaks\n\nThe weir leaks.\n\n\
             # Gate\n\nFrom: eve@example.com\n\nIt is shut."
        );
        let mail = text(mail(include_bytes!("../../../fuzz/seeds/mail/outlook.eml")));
        assert_eq!(
            mail,
            "Subject: Fwd\nFrom: ada@example.com\n\nSee below.\n\n\
             # Weir\n\nDate: 2026-11-28T08:00:00Z\n\nThe weir leaks.\n\n## Gate\n\nIt is shut."
        );
    }
}
