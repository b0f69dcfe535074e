//! A stream of server-sent events, read as the specification says: lines end with CR, LF or both, a mark of the byte
//! order at the start is skipped, comments are passed over, several `data` lines are one text, and an event that no blank
//! line ends is none.
//!
//! Nothing is kept but the event that is being read. It may take [`MAX_EVENT_BYTES`] with everything before it that is no
//! event, so that garbage comes to an end too.

use bytes::Bytes;

/// The most bytes from the end of one event to the end of the next.
pub(super) const MAX_EVENT_BYTES: usize = 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerSentEvent {
    /// The `event` field; empty for a message without a name.
    pub(crate) name: Vec<u8>,
    /// The `data` fields, joined by line feeds. Not checked to be UTF-8.
    pub(crate) data: Vec<u8>,
}

/// [`MAX_EVENT_BYTES`] came without making an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLarge {
    /// They are the beginning of one; otherwise they are none at all.
    pub(crate) is_event: bool,
}

/// Makes events of bytes, however these are cut into pieces.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    piece: Bytes,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Bytes since the last event.
    taken: usize,
    /// The last line ended with CR: a LF that follows at once belongs to that end.
    after_carriage_return: bool,
    begun: bool,
}

impl SseReader {
    /// Takes the next bytes. Those before must have been read to their end with [`SseReader::next_event`].
    pub(crate) fn feed(&mut self, piece: Bytes) {
        self.piece = piece;
    }

    /// The next event of what was fed; none when more bytes are needed.
    pub(crate) fn next_event(&mut self) -> Result<Option<ServerSentEvent>, EventTooLarge> {
        while let Some(end) = self.piece.iter().position(|&byte| matches!(byte, b'\n' | b'\r')) {
            let mut part = self.piece.split_to(end + 1);
            let ending = part.split_off(end);
            let second_half = self.after_carriage_return && part.is_empty() && &ending[..] == b"\n";
            self.after_carriage_return = &ending[..] == b"\r";
            if second_half {
                continue;
            }
            self.extend_line(&part)?;
            let mut line = std::mem::take(&mut self.line);
            let event = self.take_line(&line);
            line.clear();
            self.line = line;
            if event.is_some() {
                self.taken = 0;
                return Ok(event);
            }
        }
        let rest = std::mem::take(&mut self.piece);
        if !rest.is_empty() {
            self.after_carriage_return = false;
            self.extend_line(&rest)?;
        }
        Ok(None)
    }

    fn extend_line(&mut self, part: &[u8]) -> Result<(), EventTooLarge> {
        self.taken += part.len() + 1;
        if self.taken > MAX_EVENT_BYTES {
            let line = if self.line.is_empty() { part } else { &self.line[..] };
            return Err(EventTooLarge { is_event: self.has_data || line.starts_with(b"data:") });
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Option<ServerSentEvent> {
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        };
        if line.is_empty() {
            let (name, mut data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            data.pop();
            return std::mem::take(&mut self.has_data).then_some(ServerSentEvent { name, data });
        }
        let (field, value) = match line.iter().position(|&byte| byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.has_data = true;
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => value.clone_into(&mut self.name),
            // A comment, a field for reconnecting, or one that means nothing.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{EventTooLarge, MAX_EVENT_BYTES, SseReader};

    /// The events of a text that arrives in pieces of `size` bytes.
    fn events(text: &[u8], size: usize) -> Vec<(String, String)> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for piece in text.chunks(size) {
            reader.feed(Bytes::copy_from_slice(piece));
            while let Some(event) = reader.next_event().unwrap() {
                events.push((String::from_utf8(event.name).unwrap(), String::from_utf8(event.data).unwrap()));
            }
        }
        events
    }

    #[test]
    fn events_are_the_same_however_lines_end_and_pieces_are_cut() {
        let text = "\u{feff}: hi\ndata: one\n\nevent: more\ndata:two\ndata:  three\nid: 7\nretry: 1\n\n\
                    event: empty\n\ndata\n\nnothing: x\n\ndata: ä: ö\n\n\n\ndata: no end\n";
        let expected = [("", "one"), ("more", "two\n three"), ("", ""), ("", "ä: ö")]
            .map(|(name, data)| (name.to_owned(), data.to_owned()));
        for ending in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ending);
            for size in 1..text.len() {
                assert_eq!(events(text.as_bytes(), size), expected, "{ending:?} {size}");
            }
        }
    }

    #[test]
    fn a_mark_of_the_byte_order_counts_at_the_start_only() {
        assert_eq!(events("data: a\n\n\u{feff}data: b\n\n".as_bytes(), 3).len(), 1);
    }

    #[test]
    fn what_never_becomes_an_event_is_refused() {
        for (piece, is_event) in [
            (vec![b'x'; 4096], false),
            (b"data: 12345678\n".repeat(300), true),
            (b"data: 12345678".repeat(300), true),
            (b": no event\n\n".repeat(300), false),
        ] {
            let mut reader = SseReader::default();
            let mut fed = 0;
            let refused = loop {
                reader.feed(Bytes::from(piece.clone()));
                fed += piece.len();
                match reader.next_event() {
                    Ok(event) => assert_eq!(event, None),
                    Err(refused) => break refused,
                }
            };
            assert_eq!(refused, EventTooLarge { is_event });
            assert!(fed < 2 * MAX_EVENT_BYTES);
        }
    }
}
