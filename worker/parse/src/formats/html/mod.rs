//! Web pages: their main content as Markdown, what they say of themselves, and the captions of their videos.
//!
//! Runs in the child, but for [`tracks`], which the worker calls itself. Nothing here recurses: `nesting` bounds the tree before it is built.

mod content;
mod element;
mod encoding;
mod links;
mod nesting;
mod page;
mod render;
mod restored;
mod table;
mod tags;
#[cfg(test)]
mod tests;
mod track;

use scraper::Html;
use unicode_normalization::{UnicodeNormalization, is_nfc};
use url::Url;

pub use self::track::{TrackElement, TrackKind};
use crate::{
    charset,
    output::ParserOutput,
    protocol::{PageLinks, ParseAbort, ParseError, ParseOptions, SourceMetadata, TextMarkup},
};

/// Bytes of text in one part.
const PART: usize = 512 << 10;
/// Letters and digits below which a text that asks for scripts has nothing else to say.
const SCRIPTED: usize = 600;

/// Reads a page: what it says of itself, then its main content.
pub(crate) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    parse_known(bytes, options, SourceMetadata::default(), output)
}

/// The same of a page of which a title and an address are known, where it says nothing of them itself.
pub(crate) fn parse_known(
    bytes: Vec<u8>,
    options: &ParseOptions,
    known: SourceMetadata,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    let html = decoded(&bytes, options.charset.as_deref(), output)?;
    drop(bytes);
    let html = tags::with_few_attributes(&html);
    let html = nesting::bounded(&html, false);
    let tree = Html::parse_document(&html);
    let url = options.url.as_deref().and_then(|url| Url::parse(url).ok());
    let page::SelfDescription { title, canonical_url } = page::describe(&tree, url.as_ref());
    output.about(SourceMetadata {
        title: title.or(known.title),
        canonical_url: canonical_url.or(known.canonical_url),
        structure: TextMarkup::Markdown,
        pages: None,
    })?;
    let text = content::main_content(&html, &tree);
    let size = content::size(&text);
    let is_scripted = page::is_scripted(&tree);
    if size == 0 || (is_scripted && size < SCRIPTED && page::asks_for_scripts(&text)) {
        if is_scripted {
            return Err(ParseError::ScriptedPage.into());
        }
        return Ok(());
    }
    emit(&normalized(text), output)
}

/// The text of a whole (X)HTML document as Markdown, without a search for its main content.
pub(crate) fn markdown_of(html: &str) -> String {
    let html = tags::with_few_attributes(html);
    let html = nesting::bounded(&html, true);
    let tree = Html::parse_document(&html);
    normalized(render::markdown(tree.tree.root(), render::RenderScope::Everything))
}

/// The same of a document in the encoding that its sender named, or else the one that it names itself or that fits best.
pub(crate) fn markdown_of_bytes(
    bytes: &[u8],
    charset: Option<&str>,
    output: &mut ParserOutput<'_>,
) -> Result<String, ParseAbort> {
    Ok(markdown_of(&decoded(bytes, charset, output)?))
}

/// The `<track>` elements of a page, in its order. `base` is where the page is, for addresses relative to it.
///
/// Takes time by the page's length whatever is in it, so that it needs no child.
pub fn tracks(html: &str, base: Option<&Url>) -> Vec<TrackElement> {
    track::find(html, base)
}

/// Where a page leads, and what it asks of those who follow its links. `base` is where the page is.
pub(crate) fn page_links(html: &str, base: Option<&Url>) -> PageLinks {
    links::find(html, base)
}

/// What a person sees of a piece of a page, in one line that goes on no further than necessary behind a limit in bytes.
pub(crate) fn line_of(html: &str, limit: usize) -> String {
    let html = tags::with_few_attributes(html);
    let html = nesting::bounded(&html, false);
    let tree = Html::parse_document(&html);
    element::line_of(tree.tree.root(), limit)
}

/// The encoding that the XML declaration of a document names, where its beginning can be read without it.
pub(crate) fn declared_encoding(bytes: &[u8]) -> Option<String> {
    encoding::declared_in(bytes)
}

/// The page's characters: by its byte order mark, else the encoding that its server names, else the one that it names
/// itself, else the one that fits best.
fn decoded(bytes: &[u8], charset: Option<&str>, output: &mut ParserOutput<'_>) -> Result<String, ParseAbort> {
    let is_known = |label: &&str| encoding_rs::Encoding::for_label(label.as_bytes()).is_some();
    let named = charset.filter(is_known).map(str::to_owned);
    let named = named.or_else(|| encoding::named_in(bytes));
    Ok(charset::decode_noting(bytes, named.as_deref(), output)?.into_owned())
}

/// Text in composed form, without characters that control something.
fn normalized(text: String) -> String {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let text = if text.contains(is_control) { text.replace(is_control, "") } else { text };
    if is_nfc(&text) { text } else { text.nfc().collect() }
}

/// Hands out text in pieces that end with a line, as far as lines are not too long for it.
fn emit(text: &str, output: &mut ParserOutput<'_>) -> Result<(), ParseAbort> {
    let mut rest = text;
    while rest.len() > PART {
        let fits = rest.get(..rest.floor_char_boundary(PART)).unwrap_or(rest);
        let end = fits.rfind('\n').map_or(fits.len(), |at| at + 1);
        let (piece, after) = rest.split_at(end);
        output.part(piece.to_owned(), Vec::new())?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { output.part(rest.to_owned(), Vec::new()) }
}
