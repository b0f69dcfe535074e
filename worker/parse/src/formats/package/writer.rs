//! Blocks as parts of the source's text, in pieces of a size that fits a message.

use super::block::{TextBlock, TextEnding, write};
use crate::{
    output::ParserOutput,
    protocol::{MarkKind, ParseAbort, TextMark},
};

/// Bytes that are gathered before they are handed on.
const GATHERED: usize = 256 << 10;
/// Most bytes in one piece.
const MAX_PIECE: usize = 512 << 10;

/// Takes blocks in the order of the source.
pub(super) struct BlockWriter<'w, 'o> {
    output: &'w mut ParserOutput<'o>,
    text: String,
    last: TextEnding,
    /// The slide on which the next block stands, while none of its own has come.
    page: Option<u32>,
}

impl<'w, 'o> BlockWriter<'w, 'o> {
    /// Writes to `output`, to which nothing has been written.
    pub(super) fn new(output: &'w mut ParserOutput<'o>) -> Self {
        Self { output, text: String::new(), last: TextEnding::default(), page: None }
    }

    /// What comes next stands on this slide.
    pub(super) fn page(&mut self, number: u32) {
        self.page = Some(number);
    }

    /// The next blocks.
    pub(super) fn blocks(&mut self, blocks: &[TextBlock]) -> Result<(), ParseAbort> {
        let mut text = String::new();
        write(blocks, &mut self.last, &mut text);
        self.push(&text)
    }

    /// A piece that is Markdown already.
    pub(super) fn markdown(&mut self, text: &str) -> Result<(), ParseAbort> {
        let text = text.trim_matches('\n');
        if text.trim().is_empty() {
            return Ok(());
        }
        let mut parted = String::new();
        self.last.part_from_text(&mut parted);
        parted.push_str(text);
        self.push(&parted)
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<(), ParseAbort> {
        self.flush(None)
    }

    fn push(&mut self, text: &str) -> Result<(), ParseAbort> {
        if text.is_empty() {
            return Ok(());
        }
        let Some(number) = self.page.take() else {
            self.text.push_str(text);
            return if self.text.len() > GATHERED { self.flush(None) } else { Ok(()) };
        };
        // The blank line before a slide belongs to the one before it.
        let begins = text.trim_start_matches('\n');
        self.text.push_str(text.get(..text.len() - begins.len()).unwrap_or_default());
        self.flush(None)?;
        self.text.push_str(begins);
        self.flush(Some(TextMark { at: 0, what: MarkKind::Page(number) }))
    }

    fn flush(&mut self, mut mark: Option<TextMark>) -> Result<(), ParseAbort> {
        let text = std::mem::take(&mut self.text);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(end_of_piece(rest));
            self.output.part(piece.to_owned(), mark.take().into_iter().collect())?;
            rest = after;
        }
        Ok(())
    }
}

/// Where a piece that is short enough ends, after a line if there is one.
fn end_of_piece(text: &str) -> usize {
    if text.len() <= MAX_PIECE {
        return text.len();
    }
    let end = text.floor_char_boundary(MAX_PIECE);
    text.get(..end).and_then(|piece| piece.rfind('\n')).map_or(end, |line| line + 1)
}
