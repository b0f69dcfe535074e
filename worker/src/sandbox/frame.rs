//! The wire between the parent and the parsing child.
//!
//! Every message is a little-endian `u32` length and that many bytes of JSON. The reader trusts nothing: a length
//! is checked before a byte is set aside for it, because the other end may be running a stranger's exploit.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Frame, Kind, ParseError};
use crate::loaders::pdf::PdfOptions;

/// The largest message either side accepts, in bytes of JSON. A page of text is a few kilobytes.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

const PREFIX: usize = size_of::<u32>();

/// What the parent tells the child before the document's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    /// The format of the bytes that follow.
    pub(super) kind: Kind,
    /// What to read of them.
    pub(super) options: PdfOptions,
    /// Address space the child allows itself, in bytes.
    pub(super) memory_bytes: u64,
    /// Processor time the child allows itself, in seconds.
    pub(super) cpu_seconds: u64,
}

/// What the child answers: frames, then exactly one `Failed` or `Done`. Silence instead of either is a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// A piece of the document.
    Frame(Frame),
    /// The document cannot be parsed, and why.
    Failed(ParseError),
    /// Everything asked for has been sent.
    Done,
}

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    /// The length prefix is zero or above [`MAX_MESSAGE`].
    #[error("a message of {0} bytes is outside the limits")]
    Length(usize),
    /// The bytes are not the JSON that was expected.
    #[error("a message is not what was agreed on")]
    Content,
}

/// The bytes of one message, prefix included. Fails when it would be longer than [`MAX_MESSAGE`].
pub(super) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, message).map_err(|_| WireError::Content)?;
    let length = bytes.len() - PREFIX;
    checked(length)?;
    let prefix = u32::try_from(length).map_err(|_| WireError::Length(length))?.to_le_bytes();
    bytes.splice(..PREFIX, prefix);
    Ok(bytes)
}

/// The length that a prefix announces, if it is one that may be read.
pub(super) fn announced(prefix: [u8; PREFIX]) -> Result<usize, WireError> {
    checked(usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX))
}

/// The message in `body`, the bytes after a prefix.
pub(super) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(body).map_err(|_| WireError::Content)
}

fn checked(length: usize) -> Result<usize, WireError> {
    if length == 0 || length > MAX_MESSAGE { Err(WireError::Length(length)) } else { Ok(length) }
}

/// Gathers bytes as they arrive and hands out whole messages, so that a read may be cancelled between any two bytes
/// without losing one.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    read: usize,
}

impl Inbox {
    /// Where the next bytes are appended.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.read);
        self.read = 0;
        &mut self.bytes
    }

    /// The next whole message and its size with prefix in bytes, or `None` while more bytes are needed.
    pub(super) fn take<T: DeserializeOwned>(&mut self) -> Result<Option<(T, usize)>, WireError> {
        let pending = self.bytes.get(self.read..).unwrap_or_default();
        let Some((prefix, rest)) = pending.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let length = announced(*prefix)?;
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = decode(body)?;
        self.read += PREFIX + length;
        Ok(Some((message, PREFIX + length)))
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_mid_message(&self) -> bool {
        self.read < self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Message {
        Message::Frame(Frame::Page { number: 3, text: text.to_owned(), warning: None })
    }

    #[test]
    fn a_message_survives_arriving_byte_by_byte() {
        let sent = [page("first"), page("second — third"), Message::Done];
        let bytes: Vec<u8> = sent.iter().flat_map(|message| encode(message).unwrap()).collect();
        let (mut inbox, mut received) = (Inbox::default(), Vec::new());
        for byte in bytes {
            inbox.buffer().push(byte);
            while let Some((message, _)) = inbox.take::<Message>().unwrap() {
                received.push(message);
            }
        }
        assert_eq!(received, sent);
        assert!(!inbox.is_mid_message());
    }

    #[test]
    fn an_oversized_length_is_refused_before_its_bytes_are_read() {
        let mut inbox = Inbox::default();
        inbox.buffer().extend_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(inbox.take::<Message>().unwrap_err(), WireError::Length(u32::MAX as usize));
    }

    #[test]
    fn an_empty_message_is_refused() {
        assert_eq!(announced([0; 4]), Err(WireError::Length(0)));
    }

    #[test]
    fn garbage_is_refused() {
        let mut inbox = Inbox::default();
        inbox.buffer().extend_from_slice(&[5, 0, 0, 0]);
        inbox.buffer().extend_from_slice(b"hello");
        assert_eq!(inbox.take::<Message>().unwrap_err(), WireError::Content);
    }

    #[test]
    fn a_truncated_message_is_waited_for_and_then_noticed() {
        let bytes = encode(&page("cut")).unwrap();
        let mut inbox = Inbox::default();
        inbox.buffer().extend_from_slice(&bytes[..bytes.len() - 1]);
        assert_eq!(inbox.take::<Message>().unwrap(), None);
        assert!(inbox.is_mid_message());
    }

    #[test]
    fn a_message_above_the_limit_is_never_sent() {
        assert!(matches!(encode(&page(&"x".repeat(MAX_MESSAGE))), Err(WireError::Length(_))));
    }
}
