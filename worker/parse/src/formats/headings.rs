//! The headings of a text that is handed on part by part.

use super::markdown;
use crate::protocol::{
    MAX_TITLE, MarkKind, ParseAbort, ParseFrame, ParsedPart, SourceMetadata, TextMark, TextMarkup,
};

/// Headings in one message.
const AT_ONCE: usize = 1_000;

/// Listens to what a parser says, and finds the headings of its text if that is Markdown.
#[derive(Default)]
pub(crate) struct HeadingCollector {
    markdown: bool,
    text: String,
}

impl HeadingCollector {
    pub(crate) fn note(&mut self, frame: &ParseFrame) {
        match frame {
            ParseFrame::About(SourceMetadata { structure, .. }) => {
                self.markdown = *structure == TextMarkup::Markdown;
            }
            ParseFrame::Part(ParsedPart { text, .. }) if self.markdown => self.text.push_str(text),
            ParseFrame::Part(_)
            | ParseFrame::Headings(_)
            | ParseFrame::Warning(_)
            | ParseFrame::Start { .. }
            | ParseFrame::Image { .. }
            | ParseFrame::Page { .. } => {}
        }
    }

    /// Says where the headings are, after everything else.
    pub(crate) fn tell(
        self,
        emit: &mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
    ) -> Result<(), ParseAbort> {
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
        marks.chunks(AT_ONCE).try_for_each(|marks| emit(ParseFrame::Headings(marks.to_vec())))
    }
}
