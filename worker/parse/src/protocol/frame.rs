//! The wire between the parent and the parsing child.
//!
//! Every message is a little-endian `u32` length and that many bytes of JSON. The reader trusts nothing: a length
//! is checked before a byte is set aside for it, because the other end may be running a stranger's exploit.

use lectern_shared::model::{job::IngestionWarning, page::PdfEngineName};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{error::ParseError, in_base64};

/// The largest message either side accepts, in bytes of JSON. A page of text is a few kilobytes.
pub const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The longest title of a document, or of a section that is marked in it, in characters. Parsers cut longer ones.
pub(crate) const MAX_TITLE: usize = 1_000;

/// The longest address that a document may call its own, in bytes. Parsers leave longer ones out.
pub const MAX_URL: usize = 4_096;

const PREFIX: usize = size_of::<u32>();

/// A section of a PDF, as its outline names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlineEntry {
    /// Its depth, from 1; it ends the sections of its own depth and deeper.
    pub level: u8,
    /// What it is called, never blank.
    pub title: String,
}

/// A piece of a parsed document. Of a PDF they are one `Start` and then the selected pages in ascending order; of anything
/// else at most one `About`, and then parts in the order of the source. Warnings may stand between parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ParseFrame {
    /// What is about to come of a PDF.
    Start {
        /// Pages in the document.
        pages_total: u32,
        /// First page of the selected range, counted from 1.
        first: u32,
        /// Last page of the selected range, at most `pages_total`.
        last: u32,
        /// The title that the document gives itself, never blank.
        title: Option<String>,
        /// What reads it.
        engine: PdfEngineName,
    },
    /// One page of a PDF.
    Page {
        /// The page's place in the source, counted from 1.
        number: u32,
        /// Its text in reading order, lines ended by `\n`; empty when it has none.
        text: String,
        /// The sections that the document's outline (its bookmarks) says begin on it, in the outline's order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sections: Vec<OutlineEntry>,
        /// A sentence on what could not be read of it.
        warning: Option<String>,
        /// Its size as it is seen, where the engine tells.
        size: Option<PageSize>,
        /// Whether it is an image rather than text: it has next to no text of its own, and is not blank.
        is_scan: bool,
    },
    /// A page of a PDF that is an image rather than text: right before its `Page`, and only when images were asked for.
    Image {
        /// The page's place in the source, counted from 1.
        page: u32,
        /// The page as a PNG.
        #[serde(with = "in_base64")]
        png: Vec<u8>,
        /// Pixels of an inch of the page.
        density: f32,
    },
    /// What a source says of itself.
    About(SourceMetadata),
    /// The next piece of text.
    Part(ParsedPart),
    /// Where the headings of the whole text are, after its last part. Unlike those among a part's marks, they begin no section.
    Headings(Vec<TextMark>),
    /// Something that was gone past.
    Warning(IngestionWarning),
}

/// How large a page is as it is seen, after its rotation, in points (1/72 inch).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PageSize {
    /// From left to right.
    pub width: f32,
    /// From top to bottom.
    pub height: f32,
}

/// What a source says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMetadata {
    /// Its title, never blank.
    pub title: Option<String>,
    /// The address that it calls its own.
    pub canonical_url: Option<String>,
    /// What its text is written in.
    pub structure: TextMarkup,
    /// How many pages or slides it has, where it has any.
    pub pages: Option<u32>,
}

/// What a text is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextMarkup {
    /// Nothing but lines and paragraphs.
    #[default]
    Plain,
    /// Markdown, with headings.
    Markdown,
}

/// A piece of text. Pieces are put together as they are: what stands between them belongs to one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParsedPart {
    /// The text, lines ended by `\n`.
    pub text: String,
    /// Where things begin in it, ascending.
    pub marks: Vec<TextMark>,
}

/// From here on, until the next one of its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextMark {
    /// Where, in code points; from the beginning of the part, or of the whole text once it is put together.
    pub at: u64,
    /// What begins.
    pub what: MarkKind,
}

/// What begins at a mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MarkKind {
    /// A page or slide, counted from 1.
    Page(u32),
    /// A data row, counted from 1.
    Row(u64),
    /// A section.
    Heading {
        /// Its depth, from 1; it ends the sections of its own depth and deeper.
        level: u8,
        /// What it is called; a section without a name only ends others.
        title: String,
    },
    /// Something that was said, in seconds.
    Time {
        /// When it begins.
        start: f64,
        /// When it ends.
        end: f64,
    },
}

/// What the child answers: frames, then exactly one `Failed` or `Done`. Silence instead of either is a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ChildMessage {
    /// A piece of the document.
    Frame(ParseFrame),
    /// The document cannot be parsed, and why.
    Failed(ParseError),
    /// Everything asked for has been sent.
    Done,
}

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The length prefix is zero or above [`MAX_MESSAGE`].
    #[error("a message of {0} bytes is outside the limits")]
    Length(usize),
    /// The bytes are not the JSON that was expected.
    #[error("a message is not what was agreed on")]
    Content,
}

/// The bytes of one message, prefix included. Fails when it would be longer than [`MAX_MESSAGE`].
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, message).map_err(|_| WireError::Content)?;
    let length = bytes.len() - PREFIX;
    checked(length)?;
    let prefix = u32::try_from(length).map_err(|_| WireError::Length(length))?.to_le_bytes();
    bytes.splice(..PREFIX, prefix);
    Ok(bytes)
}

/// The length that a prefix announces, if it is one that may be read.
pub(crate) fn announced(prefix: [u8; PREFIX]) -> Result<usize, WireError> {
    checked(usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX))
}

/// The message in `body`, the bytes after a prefix.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(body).map_err(|_| WireError::Content)
}

fn checked(length: usize) -> Result<usize, WireError> {
    if length == 0 || length > MAX_MESSAGE { Err(WireError::Length(length)) } else { Ok(length) }
}

/// Gathers bytes as they arrive and hands out whole messages, so that a read may be cancelled between any two bytes
/// without losing one.
#[derive(Debug, Default)]
pub struct MessageDecoder {
    bytes: Vec<u8>,
    read: usize,
}

impl MessageDecoder {
    /// Where the next bytes are appended.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.read);
        self.read = 0;
        &mut self.bytes
    }

    /// The next whole message and its size with prefix in bytes, or `None` while more bytes are needed.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<(T, usize)>, WireError> {
        let pending = self.bytes.get(self.read..).unwrap_or_default();
        let Some((prefix, rest)) = pending.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let length = announced(*prefix)?;
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = decode(body)?;
        self.read += PREFIX + length;
        Ok(Some((message, PREFIX + length)))
    }

    /// Whether a message has begun and not ended.
    pub fn is_mid_message(&self) -> bool {
        self.read < self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> ChildMessage {
        ChildMessage::Frame(ParseFrame::Page {
            number: 3,
            text: text.to_owned(),
            sections: Vec::new(),
            warning: None,
            size: Some(PageSize { width: 595.3, height: 841.9 }),
            is_scan: false,
        })
    }

    #[test]
    fn a_message_survives_arriving_byte_by_byte() {
        let sent = [page("first"), page("second — third"), ChildMessage::Done];
        let bytes: Vec<u8> = sent.iter().flat_map(|message| encode(message).unwrap()).collect();
        let (mut inbox, mut received) = (MessageDecoder::default(), Vec::new());
        for byte in bytes {
            inbox.buffer().push(byte);
            while let Some((message, _)) = inbox.take::<ChildMessage>().unwrap() {
                received.push(message);
            }
        }
        assert_eq!(received, sent);
        assert!(!inbox.is_mid_message());
    }

    #[test]
    fn an_oversized_length_is_refused_before_its_bytes_are_read() {
        let mut inbox = MessageDecoder::default();
        inbox.buffer().extend_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(inbox.take::<ChildMessage>().unwrap_err(), WireError::Length(u32::MAX as usize));
    }

    #[test]
    fn an_empty_message_is_refused() {
        assert_eq!(announced([0; 4]), Err(WireError::Length(0)));
    }

    #[test]
    fn garbage_is_refused() {
        let mut inbox = MessageDecoder::default();
        inbox.buffer().extend_from_slice(&[5, 0, 0, 0]);
        inbox.buffer().extend_from_slice(b"hello");
        assert_eq!(inbox.take::<ChildMessage>().unwrap_err(), WireError::Content);
    }

    #[test]
    fn a_truncated_message_is_waited_for_and_then_noticed() {
        let bytes = encode(&page("cut")).unwrap();
        let mut inbox = MessageDecoder::default();
        inbox.buffer().extend_from_slice(&bytes[..bytes.len() - 1]);
        assert_eq!(inbox.take::<ChildMessage>().unwrap(), None);
        assert!(inbox.is_mid_message());
    }

    #[test]
    fn a_message_above_the_limit_is_never_sent() {
        assert!(matches!(encode(&page(&"x".repeat(MAX_MESSAGE))), Err(WireError::Length(_))));
    }
}
