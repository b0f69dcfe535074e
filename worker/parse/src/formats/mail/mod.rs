//! Letters (EML) and web pages that were saved with all that belongs to them (MHT): both are messages of parts.
//!
//! Runs in the child. Calls the readers of pages and of plain texts beside it. Attachments are named and not read, unless they are letters.

mod letter;
pub(super) mod outlook;
mod part;
#[cfg(test)]
mod tests;

use lectern_shared::file_name;
use mail_parser::{Address, HeaderValue, Message, MimeHeaders};
use url::Url;

use self::{
    letter::LetterText,
    part::{MAX_HEAD, MailPart, MailParts, PartKind, SNAPSHOT},
};
use super::html;
use crate::{
    charset,
    output::ParserOutput,
    protocol::{MAX_TITLE, MAX_URL, ParseAbort, ParseError, ParseOptions, SourceMetadata, TextMarkup},
};

/// With what the programs begin that name themselves as the sender of a page.
const SAVED: &str = "Saved by ";

/// Reads a letter, or the page of a web archive.
pub(crate) fn parse(
    bytes: &[u8],
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    let narrowed;
    let is_wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let bytes = if is_wide {
        narrowed = charset::decode(bytes, None).0;
        narrowed.as_bytes()
    } else {
        bytes
    };
    let MailParts { message, parts } = MailParts::of(beginning(bytes), MAX_HEAD)?;
    let page = parts.iter().find(|part| part.kind == PartKind::Html);
    match page.filter(|_| is_archive(&message, options)) {
        Some(page) => archive(&message, page, options, output),
        None => letter(&message, &parts, options, output),
    }
}

/// Without what may stand before the first header: a byte order mark, blank lines, and the line of a mailbox that parts its letters.
fn beginning(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if !bytes.starts_with(b"From ") && !bytes.starts_with(b">From ") {
        return bytes;
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    bytes.get(end..).unwrap_or_default()
}

/// Whether it is a page that a browser saved.
fn is_archive(message: &Message<'_>, options: &ParseOptions) -> bool {
    let extension = options.name.as_deref().and_then(file_name::extension);
    let sender = message.from().and_then(Address::first);
    let mut said = sender.into_iter().flat_map(|sender| [sender.name(), sender.address()]).flatten();
    extension.is_some_and(|extension| matches!(extension.as_str(), "mht" | "mhtml"))
        || message.header(SNAPSHOT).is_some()
        || said.any(|said| said.trim_start().starts_with(SAVED))
        // A letter is from somebody.
        || (sender.is_none() && message.is_content_type("multipart", "related"))
}

/// Reads the page of a web archive as if it came from where it was.
fn archive(
    message: &Message<'_>,
    page: &MailPart<'_>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    let snapshot = message.header(SNAPSHOT).and_then(HeaderValue::as_text);
    let address = [page.location(), snapshot].into_iter().flatten().find_map(address);
    let known = SourceMetadata { title: title(message), canonical_url: address, ..SourceMetadata::default() };
    let options = ParseOptions {
        charset: page.charset().map(str::to_owned),
        url: known.canonical_url.clone().or_else(|| options.url.clone()),
        ..options.clone()
    };
    html::parse_known(page.decoded().into_owned(), &options, known, output)
}

/// Where a page was, if a browser would fetch it, and it holds no credentials.
fn address(said: &str) -> Option<String> {
    let mut url = Url::parse(said.trim()).ok()?;
    url.set_fragment(None);
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_short = url.as_str().len() <= MAX_URL;
    (matches!(url.scheme(), "http" | "https") && is_plain && is_short).then(|| url.into())
}

/// Reads a letter: who wrote what to whom, and the text.
fn letter(
    message: &Message<'_>,
    parts: &[MailPart<'_>],
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    if letter::is_sealed(parts) {
        let what = "an e-mail that is encrypted. Open it, save its text and add that".to_owned();
        return Err(ParseError::Unsupported(what).into());
    }
    let mut read = LetterText::default();
    read.add(message, parts, 0)?;
    let structure = if read.has_markdown { TextMarkup::Markdown } else { TextMarkup::Plain };
    output.about(SourceMetadata { title: title(message), structure, ..SourceMetadata::default() })?;
    read.hand_on(options, output)
}

fn title(message: &Message<'_>) -> Option<String> {
    titled(message.subject()?)
}

/// The title of what has this subject.
fn titled(subject: &str) -> Option<String> {
    let subject = file_name::in_one_line(subject)?;
    Some(subject.chars().take(MAX_TITLE).collect::<String>().trim_end().to_owned())
}
