//! Letters (EML) and web pages that were saved with all that belongs to them (MHT): both are messages of parts.
//!
//! Runs in the child. Calls the readers of pages and of plain texts beside it. Attachments are named and not read.

mod part;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use lectern_shared::{file_name, model::job::IngestionWarning};
use mail_parser::{Addr, Address, DateTime, HeaderValue, Message, MimeHeaders};
use url::Url;

use self::part::{MailPart, MailParts, PartKind, SNAPSHOT};
use super::{html, text};
use crate::{
    charset,
    output::ParserOutput,
    protocol::{
        MAX_TITLE, MAX_URL, ParseAbort, ParseError, ParseFrame, ParseOptions, SourceMetadata, TextMarkup,
    },
};

/// Most people, or files, that a line names.
const MAX_NAMED: usize = 200;
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
    let MailParts { message, parts } = MailParts::of(beginning(bytes))?;
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
    let bodies = bodies(parts);
    let attached: Vec<&str> =
        parts.iter().filter(|part| part.kind == PartKind::Attached).map(MailPart::name).collect();
    if bodies.is_empty() && parts.iter().any(|part| part.kind == PartKind::Encrypted) {
        let what = "an e-mail that is encrypted. Open it, save its text and add that".to_owned();
        return Err(ParseError::Unsupported(what).into());
    }
    let has_pages = bodies.iter().any(|part| part.kind == PartKind::Html);
    let structure = if has_pages { TextMarkup::Markdown } else { TextMarkup::Plain };
    output.about(SourceMetadata { title: title(message), structure, ..SourceMetadata::default() })?;
    let mut paragraphs = vec![head(message, &attached)];
    paragraphs.extend(texts(&bodies, output)?);
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    let said = text::tidy(&paragraphs.join("\n\n"), options.max_chars)?;
    text::in_pieces(&said, Vec::new(), output)?;
    if !attached.is_empty() {
        let message = "Attachments of the e-mail were not read. Add them as documents of their own.";
        output.warn("unread_attachments", message, attached.len() as u64)?;
    }
    Ok(())
}

/// What these parts say. Bytes that could not be read are told once for each encoding, however many parts have some.
fn texts(parts: &[&MailPart<'_>], output: &mut ParserOutput<'_>) -> Result<Vec<String>, ParseAbort> {
    let mut warnings = BTreeMap::<(String, String), u64>::new();
    let mut note = |frame: ParseFrame| {
        if let ParseFrame::Warning(IngestionWarning { code, message, count }) = frame {
            *warnings.entry((code, message)).or_default() += count;
        }
        Ok(())
    };
    let mut noted = ParserOutput::new(&mut note, u64::MAX);
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        let said = if part.kind == PartKind::Html {
            html::markdown_of_bytes(&part.decoded(), part.charset(), &mut noted)?
        } else {
            charset::decode_noting(&part.decoded(), part.charset(), &mut noted)?.into_owned()
        };
        texts.push(said.trim_start_matches(['\u{feff}', '\r', '\n']).trim_end().to_owned());
    }
    for ((code, message), count) in warnings {
        output.warn(&code, &message, count)?;
    }
    Ok(texts)
}

/// The parts that are the text of a letter. Of alternatives it is the plain one, where there is something in it.
fn bodies<'p, 'a>(parts: &'p [MailPart<'a>]) -> Vec<&'p MailPart<'a>> {
    let is_plain = |part: &&MailPart<'_>| part.kind == PartKind::Plain && !part.is_blank();
    let plain: BTreeSet<usize> = parts.iter().filter(is_plain).filter_map(|part| part.choice).collect();
    let is_chosen = |part: &&MailPart<'_>| match part.kind {
        PartKind::Plain => true,
        PartKind::Html => part.choice.is_none_or(|choice| !plain.contains(&choice)),
        PartKind::Encrypted | PartKind::Attached => false,
    };
    parts.iter().filter(is_chosen).collect()
}

fn title(message: &Message<'_>) -> Option<String> {
    let subject = file_name::in_one_line(message.subject()?)?;
    Some(subject.chars().take(MAX_TITLE).collect::<String>().trim_end().to_owned())
}

/// What stands above the text of a letter, line by line.
fn head(message: &Message<'_>, attached: &[&str]) -> String {
    let people = |addresses: Option<&Address<'_>>| {
        named(addresses.into_iter().flat_map(Address::iter).filter_map(person))
    };
    let date = message.date().filter(|date| date.is_valid()).map(DateTime::to_rfc3339);
    let files = attached.iter().filter_map(|name| file_name::in_one_line(name));
    let lines = [
        ("Subject", message.subject().and_then(file_name::in_one_line)),
        ("From", people(message.from())),
        ("To", people(message.to())),
        ("Cc", people(message.cc())),
        ("Date", date),
        ("Attachments", named(files)),
    ];
    let lines = lines.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A list in one line; none when there is nobody on it.
fn named(names: impl Iterator<Item = String>) -> Option<String> {
    let mut names = names.peekable();
    names.peek()?;
    let mut line = names.by_ref().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    let more = names.count();
    if more > 0 {
        line = format!("{line} and {more} more");
    }
    Some(line)
}

/// Somebody's name and address.
fn person(addr: &Addr<'_>) -> Option<String> {
    let said = match (addr.name(), addr.address()) {
        (Some(name), Some(address)) if name != address => format!("{name} <{address}>"),
        (_, Some(address)) => address.to_owned(),
        (Some(name), None) => name.to_owned(),
        (None, None) => return None,
    };
    file_name::in_one_line(&said)
}
