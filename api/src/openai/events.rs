//! Server-sent events as OpenAI's clients read them: JSON on one line, with a name or without.

use bytes::Bytes;
use serde::Serialize;

/// Ends a stream of unnamed events.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Events that are sent together.
#[derive(Default)]
pub(super) struct EventBuffer(Vec<u8>);

impl EventBuffer {
    /// Adds an event without a name.
    pub(super) fn push(&mut self, data: &impl Serialize) {
        self.0.extend_from_slice(b"data: ");
        self.push_data(data);
    }

    /// Adds an event with a name.
    pub(super) fn push_named(&mut self, name: &str, data: &impl Serialize) {
        for part in ["event: ", name, "\ndata: "] {
            self.0.extend_from_slice(part.as_bytes());
        }
        self.push_data(data);
    }

    /// Adds what ends a stream of unnamed events.
    pub(super) fn push_done(&mut self) {
        self.0.extend_from_slice(DONE);
    }

    fn push_data(&mut self, data: &impl Serialize) {
        let length = self.0.len();
        if let Err(error) = serde_json::to_writer(&mut self.0, data) {
            tracing::error!(%error, "an event cannot be written as JSON");
            self.0.truncate(length);
        }
        self.0.extend_from_slice(b"\n\n");
    }

    /// The bytes; none when nothing was added.
    pub(super) fn into_bytes(self) -> Option<Bytes> {
        (!self.0.is_empty()).then(|| self.0.into())
    }
}
