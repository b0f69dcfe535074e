//! The headings of a text that is handed on part by part.

use super::markdown;
use crate::protocol::{Frame, MAX_TITLE, MarkKind, ParsedPart, SourceMetadata, Stop, Structure, TextMark};

/// Headings in one message.
const AT_ONCE: usize = 1_000;

/// Listens to what a parser says, and finds the headings of its text if that is Markdown.
#[derive(Default)]
pub(crate) struct Headings {
    markdown: bool,
    text: String,
}

impl Headings {
    pub(crate) fn note(&mut self, frame: &Frame) {
        match frame {
            Frame::About(SourceMetadata { structure, .. }) => {
                self.markdown = *structure == Structure::Markdown
            }
            Frame::Part(ParsedPart { text, .. }) if self.markdown => self.text.push_str(text),
            Frame::Part(_)
            | Frame::Headings(_)
            | Frame::Warning(_)
            | Frame::Start { .. }
            | Frame::Image { .. }
            | Frame::Page { .. } => {}
        }
    }

    /// Says where the headings are, after everything else.
    pub(crate) fn tell(self, emit: &mut dyn FnMut(Frame) -> Result<(), Stop>) -> Result<(), Stop> {
        if !self.markdown {
            return Ok(());
        }
        // They are shortened further where they are kept.
        let short = |TextMark { at, what }| match what {
            MarkKind::Heading { level, title } => TextMark {
                at,
                what: MarkKind::Heading { level, title: title.chars().take(MAX_TITLE).collect() },
            },
            what @ (MarkKind::Page(_) | MarkKind::Row(_) | MarkKind::Time { .. }) => TextMark { at, what },
        };
        let marks: Vec<TextMark> = markdown::headings(&self.text).into_iter().map(short).collect();
        marks.chunks(AT_ONCE).try_for_each(|marks| emit(Frame::Headings(marks.to_vec())))
    }
}
