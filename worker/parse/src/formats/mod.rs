//! Parsers: from a source's bytes to frames of text with places, one file or folder a format.
//!
//! [`parse`] is the way in: for the child, and for the worker where a plain text is too short to be worth a process. A format
//! knows the protocol and the formats that it contains, and nothing of who calls it. What else is public is what the worker
//! needs of a format without parsing a whole source.

mod captions;
mod compound;
mod headings;
pub mod html;
mod json;
mod mail;
pub mod markdown;
mod markdown_table;
mod package;
pub mod pdf;
mod table;
mod text;
mod workbook;

use self::{headings::HeadingCollector, text::MarkdownHint};
use crate::{
    output::ParserOutput,
    protocol::{ParseAbort, ParseFrame, ParseOptions, SourceKind},
};

/// Reads a source and hands out its frames as they are made, those with the headings of the whole text last.
///
/// All formats but the plain texts ([`SourceKind::Text`], [`SourceKind::Markdown`], [`SourceKind::Captions`]) are for the child
/// only: a stranger's file may end the process.
pub fn parse(
    kind: SourceKind,
    bytes: Vec<u8>,
    options: &ParseOptions,
    emit: &mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
) -> Result<(), ParseAbort> {
    let mut headings = HeadingCollector::default();
    let mut frames = |frame: ParseFrame| {
        headings.note(&frame);
        emit(frame)
    };
    let mut parts = ParserOutput::new(&mut frames, options.max_chars);
    let parsed = match kind {
        SourceKind::Pdf => pdf::parse(bytes, options, &mut frames),
        SourceKind::Html => html::parse(bytes, options, &mut parts),
        SourceKind::Table => table::parse(bytes, options, &mut parts),
        SourceKind::Workbook => workbook::parse(bytes, options, &mut parts),
        SourceKind::Package => package::parse(bytes, options, &mut parts),
        SourceKind::Json => json::parse(bytes, options, &mut parts),
        SourceKind::Mail => mail::parse(&bytes, options, &mut parts),
        SourceKind::Text => text::parse(&bytes, options, MarkdownHint::Unknown, &mut parts),
        SourceKind::Markdown => text::parse(&bytes, options, MarkdownHint::Named, &mut parts),
        SourceKind::Captions => text::transcript(&bytes, options, &mut parts),
    };
    parsed.and_then(|()| headings.tell(emit))
}
