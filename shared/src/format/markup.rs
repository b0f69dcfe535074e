//! Text in angle brackets: web pages, captions in XML, and other XML.

use super::{FileFormat, kinds::FormatHints};

/// XML that is neither a page nor captions, though servers often send it as a page. The last two are spreadsheets, in the format of
/// 2003, which are often called as those of other formats.
const OTHER_ROOTS: &[&[u8]] = &[
    b"<rss",
    b"<feed",
    b"<rdf:rdf",
    b"<urlset",
    b"<sitemapindex",
    b"<opml",
    b"<svg",
    b"<workbook",
    b"<ss:workbook",
];

/// How pages begin that programs write under the names of spreadsheets.
const PARTS_OF_PAGES: &[&[u8]] = &[b"<table", b"<meta", b"<style", b"<title", b"<div"];

/// Tells such a text; none when its bytes do not say enough.
pub(super) fn detect(text: &[u8], named: &FormatHints<'_>) -> Option<FileFormat> {
    if !text.starts_with(b"<") {
        return None;
    }
    let start = after_prolog(text);
    let begins = |tag: &&[u8]| begins_with(start, tag);
    if doctype(start).is_some_and(|doctype| begins_with(doctype, b"html")) {
        return Some(FileFormat::Html);
    }
    let pages: [&[u8]; 3] = [b"<html", b"<head", b"<body"];
    if pages.iter().any(begins) {
        return Some(FileFormat::Html);
    }
    if begins(&&b"<tt"[..]) || begins_with(start, b"<tt:tt") {
        return Some(FileFormat::Captions);
    }
    if OTHER_ROOTS.iter().any(begins) {
        return Some(FileFormat::Text);
    }
    if named.is_workbook() && PARTS_OF_PAGES.iter().any(begins) {
        return Some(FileFormat::Html);
    }
    // Half a page, or the page of an error in the place of the file that the name promises.
    named.is_sent_as_page().then_some(FileFormat::Html)
}

/// Past what may stand before the first element: blanks, comments, processing instructions, and the XML declaration.
fn after_prolog(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        let end: &[u8] = if rest.starts_with(b"<!--") {
            b"-->"
        } else if rest.starts_with(b"<?") {
            b"?>"
        } else if doctype(rest).is_some_and(|doctype| !begins_with(doctype, b"html")) {
            b">"
        } else {
            return rest;
        };
        match rest.windows(end.len()).position(|window| window == end) {
            Some(at) => rest = rest.get(at + end.len()..).unwrap_or_default(),
            None => return &[],
        }
    }
}

/// What follows `<!DOCTYPE`.
fn doctype(text: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b"<!doctype";
    let start = text.get(..MARK.len())?;
    start.eq_ignore_ascii_case(MARK).then(|| text.get(MARK.len()..).unwrap_or_default().trim_ascii_start())
}

/// Whether a text begins with a whole word, whatever the case of its letters.
fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        && text.get(word.len()).is_none_or(|next| next.is_ascii_whitespace() || b">/[".contains(next))
}
