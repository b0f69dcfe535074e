//! What a stranger's bytes reach first, as the targets in `fuzz/` call it, in this process. Each function panics when something
//! comes out that the parent of a parsing child would not take, or that no passage could be cut from.

use std::{
    convert::Infallible,
    io::{Cursor, Write},
    ops::Range,
};

use lectern_shared::model::document::{Splitter, SplitterType};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{
    ingest::{
        Sizing,
        passages::{self, Passage},
    },
    loaders::{
        Extracted, Headings, Output, charset, html, json, package, pdf, table,
        text::{self, Known},
        workbook,
    },
    sandbox::{About, Frame, MAX_TITLE, MAX_URL, Mark, MarkKind, ParseOptions, Part, Stop},
    splitter::{self, Piece, Shape},
};

/// The most characters that a parser may give here: few enough that a small input which grows is noticed.
const MAX_CHARS: u64 = 2_000_000;

fn options() -> ParseOptions {
    ParseOptions {
        max_pages: 100,
        max_chars: MAX_CHARS,
        url: Some("https://example.org/a/b?c".to_owned()),
        ..ParseOptions::default()
    }
}

/// A PDF, by the built-in engine. A panic on a page, which costs that page only, is none here.
pub fn pdf(bytes: &[u8]) {
    let (mut expected, mut chars) = (None, 0);
    let mut emit = |frame| {
        match frame {
            Frame::Start { pages_total, first, last, title } => {
                assert!(expected.is_none() && (1..=last).contains(&first) && last <= pages_total);
                assert!(title.is_none_or(|title| is_title(&title) && !title.trim().is_empty()));
                expected = Some(first..=last);
            }
            Frame::Page { number, text, .. } => {
                assert_eq!(expected.as_mut().and_then(Iterator::next), Some(number), "pages come in order");
                assert!(is_clean(&text));
                chars += text.chars().count() as u64;
            }
            other @ (Frame::Image { .. }
            | Frame::About(_)
            | Frame::Part(_)
            | Frame::Headings(_)
            | Frame::Warning(_)) => {
                unreachable!("no frame of a PDF's: {other:?}");
            }
        }
        Ok(())
    };
    let end = pdf::parse(bytes.to_vec(), &options(), &mut emit);
    assert!(chars <= MAX_CHARS);
    if end.is_ok() {
        assert_eq!(expected.as_mut().and_then(Iterator::next), None, "no page is missing");
    }
}

/// A web page, and the captions that it links to.
pub fn html(bytes: &[u8]) {
    parts(bytes, html::parse);
    let base = url::Url::parse("https://example.org/a/b?c").ok();
    html::tracks(&charset::decode(bytes, None).0, base.as_ref());
}

/// CSV and its relatives.
pub fn table(bytes: &[u8]) {
    parts(bytes, table::parse);
}

/// JSON and JSON Lines.
pub fn json(bytes: &[u8]) {
    parts(bytes, json::parse);
}

/// Workbooks: a file as it is, or the parts of one, see [`zipped`].
pub fn workbook(bytes: &[u8]) {
    parts(&zipped(bytes), workbook::parse);
}

/// Other office documents: a file as it is, or the parts of one, see [`zipped`].
pub fn package(bytes: &[u8]) {
    parts(&zipped(bytes), package::parse);
}

/// Captions of a video.
pub fn captions(bytes: &[u8]) {
    parts(bytes, |bytes, options, output| text::transcript(&bytes, options, output));
}

/// Plain text and Markdown, cut by all kinds of splitters.
pub fn split(bytes: &[u8]) {
    parts(bytes, |bytes, options, output| text::parse(&bytes, options, Known::No, output));
    parts(bytes, |bytes, options, output| text::parse(&bytes, options, Known::Markdown, output));
    let (text, _, _) = charset::decode(bytes, None);
    for shape in [Shape::Prose, Shape::Markdown, Shape::Rows] {
        cut(&text, shape, None);
    }
    for r#type in [SplitterType::Token, SplitterType::Character] {
        for (chunk_size, chunk_overlap) in [(1, 0), (7, 3), (50, 49)] {
            cut(&text, Shape::Markdown, Some(&Splitter { r#type, chunk_size, chunk_overlap, given: None }));
        }
    }
}

/// Bytes that are a package or an older office file, as they are. Others are read as the parts of a package, so that what is mutated is
/// what stands in it: a line `--- NAME` begins each.
fn zipped(bytes: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"--- ";
    if !bytes.starts_with(MARK) {
        return bytes.to_vec();
    }
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match (line.strip_prefix(MARK), parts.last_mut()) {
            (Some(name), _) => {
                parts.push((String::from_utf8_lossy(name.trim_ascii()).into_owned(), Vec::new()))
            }
            (None, Some((_, content))) => content.extend_from_slice(line),
            (None, None) => {}
        }
    }
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

type Parser = fn(Vec<u8>, &ParseOptions, &mut Output<'_>) -> Result<(), Stop>;

/// Runs a parser as the child does, and looks at what it says as its parent does.
fn parts(bytes: &[u8], parse: Parser) {
    let mut extracted = Extracted::default();
    let mut headings = Headings::default();
    let (mut begun, mut chars) = (false, 0);
    let mut emit = |frame| {
        headings.note(&frame);
        match frame {
            Frame::About(About { title, canonical_url, structure, .. }) => {
                assert!(!begun, "what it says of itself comes before any part, and once");
                assert!(title.is_none_or(|title| is_title(&title) && !title.trim().is_empty()));
                assert!(canonical_url.is_none_or(|url| url.len() <= MAX_URL && url.starts_with("http")));
                extracted.structure = structure;
            }
            Frame::Part(Part { text, marks }) => {
                are_in_order(&text, &marks);
                chars += text.chars().count() as u64;
                extracted.push(&text, marks);
            }
            Frame::Warning(warning) => {
                assert!(is_clean(&warning.message));
                return Ok(());
            }
            other @ (Frame::Headings(_) | Frame::Start { .. } | Frame::Image { .. } | Frame::Page { .. }) => {
                unreachable!("no frame of a loader's: {other:?}");
            }
        }
        begun = true;
        Ok(())
    };
    let read = parse(bytes.to_vec(), &options(), &mut Output::new(&mut emit, MAX_CHARS));
    assert!(chars <= MAX_CHARS);
    if read.is_err() {
        return;
    }
    let length = extracted.length();
    let told = headings.tell(&mut |frame| {
        let Frame::Headings(marks) = frame else { unreachable!("only headings are told: {frame:?}") };
        assert!(marks.iter().all(|mark| mark.at <= length) && marks.is_sorted_by_key(|mark| mark.at));
        for Mark { at, what } in marks {
            extracted.mark(at, what);
        }
        Ok(())
    });
    assert!(told.is_ok());
    passages(&extracted);
}

fn is_clean(text: &str) -> bool {
    !text.contains('\0')
}

fn is_title(text: &str) -> bool {
    is_clean(text) && text.chars().count() <= MAX_TITLE
}

/// Marks stand within their text, one after the other.
fn are_in_order(text: &str, marks: &[Mark]) {
    assert!(is_clean(text));
    let length = text.chars().count() as u64;
    let is_sane = |mark: &Mark| match &mark.what {
        MarkKind::Page(number) => *number > 0,
        MarkKind::Row(number) => *number > 0,
        MarkKind::Heading { level, title } => *level > 0 && is_title(title),
        MarkKind::Time { start, end } => start.is_finite() && end.is_finite(),
    };
    assert!(marks.iter().all(|mark| mark.at <= length && is_sane(mark)), "{marks:?} of {length}");
    assert!(marks.is_sorted_by_key(|mark| mark.at), "{marks:?}");
}

/// Cuts what was read into passages: each is the slice of the text that its place names.
fn passages(extracted: &Extracted) {
    let text = extracted.text();
    assert_eq!(extracted.length(), text.chars().count() as u64);
    let mut reached = (0, 0);
    for (section, characters) in extracted.sections() {
        let skipped = text.get(reached.0..section.start).map(|skipped| skipped.chars().count() as u64);
        assert_eq!(
            skipped.map(|skipped| reached.1 + skipped),
            Some(characters),
            "sections are slices, in order"
        );
        reached = (section.start, characters);
    }
    let Ok(()) = passages::cut(
        extracted,
        None,
        &Sizing::default(),
        &|_| Ok(()),
        |Passage { text: said, place, end }| {
            assert_eq!(end.checked_sub(said.len()).and_then(|start| text.get(start..end)), Some(said));
            assert_eq!(place.char_end - place.char_start, said.chars().count() as u64, "{place:?}");
            Ok::<_, Infallible>(())
        },
    );
}

/// Passages are slices of the text, one after the other, and their places say where.
fn cut(text: &str, shape: Shape, splitter: Option<&Splitter>) {
    let mut last = 0;
    let (mut bytes, mut characters) = (0, 0);
    let Ok(()) = splitter::split(
        text,
        shape,
        splitter,
        &Sizing::default(),
        &|_| Ok(()),
        |Piece { range, char_range }| {
            let passage = text.get(range.clone()).unwrap_or_default();
            assert!(!passage.trim().is_empty(), "{range:?} of {} bytes says nothing", text.len());
            assert!(range.end > last, "they come in the order in which they end");
            last = range.end;
            let counted = |range: Range<usize>| text.get(range).map_or(0, |text| text.chars().count() as u64);
            if range.start < bytes {
                characters -= counted(range.start..bytes);
            } else {
                characters += counted(bytes..range.start);
            }
            bytes = range.start;
            assert_eq!(char_range, characters..characters + passage.chars().count() as u64);
            Ok::<_, Infallible>(())
        },
    );
}
