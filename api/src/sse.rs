//! The bytes of an answer's stream of server-sent events.
//!
//! A reader that follows the WHATWG rules takes one blank off each `data:`, joins the data lines of an event by line
//! feeds, and drops an event without data. So every line of a text gets its own `data: `, and the joined data of the
//! events is the text.

use axum::http::{HeaderName, header};
use bytes::Bytes;
use serde_json::Value;

/// The headers of an answer that is a stream.
pub(crate) fn headers() -> [(HeaderName, &'static str); 3] {
    [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        // Proxies that gather answers before they pass them on are asked not to.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ]
}

/// What a named event tells. A stream has those of its subject, and may end with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A run has begun.
    Start,
    /// Documents were searched before the model was asked.
    Retrieval,
    /// A piece of the answer.
    Token,
    /// The model calls a tool.
    ToolCall,
    /// What came of a call.
    ToolResult,
    /// A source of the answer.
    Citation,
    /// The answer is complete.
    End,
    /// An ingestion has changed.
    Ingestion,
    /// The document is no more.
    Deleted,
    /// Something failed; nothing follows.
    Error,
}

impl EventKind {
    /// The name of the event: one line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Retrieval => "retrieval",
            Self::Token => "token",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Citation => "citation",
            Self::End => "end",
            Self::Ingestion => "ingestion",
            Self::Deleted => "deleted",
            Self::Error => "error",
        }
    }
}

/// The event that ends a stream of tokens.
pub(crate) const END: &[u8] = b"data: [END]\n\n";

/// What the data of [`END`] is; no token has exactly this data.
const END_DATA: &str = "[END]";

/// A comment that keeps a quiet connection open. Readers skip it, wherever between two lines it stands: it holds no
/// blank line, which is what would end an event.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n";

/// The unnamed events whose data, joined, are exactly `text`; none for an empty text. A carriage return, which the
/// format cannot carry, becomes a line feed.
pub(crate) fn token(text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 16);
    if text == END_DATA {
        let (first, rest) = text.split_at(1);
        event(&mut out, first);
        event(&mut out, rest);
    } else if text.contains('\r') {
        return token(&text.replace("\r\n", "\n").replace('\r', "\n"));
    } else if !text.is_empty() {
        event(&mut out, text);
    }
    Bytes::from(out)
}

fn event(out: &mut Vec<u8>, text: &str) {
    for line in text.split('\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// A named event.
pub(crate) fn named(event: EventKind, data: &Value) -> Bytes {
    Bytes::from(format!("event: {}\ndata: {data}\n\n", event.as_str()))
}

#[cfg(test)]
mod tests;
