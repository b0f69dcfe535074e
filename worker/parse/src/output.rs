//! What a parser says, counted against its limit.

use lectern_shared::model::job::IngestionWarning;

use crate::protocol::{ParseAbort, ParseError, ParseFrame, ParsedPart, SourceMetadata, TextMark};

/// Takes what a parser finds, in the order of the source.
pub(crate) struct ParserOutput<'a> {
    emit: &'a mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
    chars: u64,
    max_chars: u64,
}

impl<'a> ParserOutput<'a> {
    /// Hands everything on to `emit`, and ends with the first character beyond `max_chars`.
    pub(crate) fn new(emit: &'a mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>, max_chars: u64) -> Self {
        Self { emit, chars: 0, max_chars }
    }

    /// What the source says of itself: once at most, before any part.
    pub(crate) fn about(&mut self, about: SourceMetadata) -> Result<(), ParseAbort> {
        (self.emit)(ParseFrame::About(about))
    }

    /// The next piece of text; a megabyte at most keeps it within one message.
    pub(crate) fn part(&mut self, text: String, marks: Vec<TextMark>) -> Result<(), ParseAbort> {
        self.chars = self.chars.saturating_add(u64::try_from(text.chars().count()).unwrap_or(u64::MAX));
        if self.chars > self.max_chars {
            return Err(ParseError::TooLarge { limit: self.max_chars }.into());
        }
        (self.emit)(ParseFrame::Part(ParsedPart { text, marks }))
    }

    /// Something that was gone past, `count` times.
    pub(crate) fn warn(&mut self, code: &str, message: &str, count: u64) -> Result<(), ParseAbort> {
        (self.emit)(ParseFrame::Warning(IngestionWarning {
            code: code.to_owned(),
            message: message.to_owned(),
            count,
        }))
    }
}
