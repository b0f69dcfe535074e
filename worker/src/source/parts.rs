//! What is read part by part: everything but PDFs, and the short plain texts that need no child.

use lectern_parse::{
    formats,
    protocol::{ParseAbort, ParseFrame, ParseOptions, ParsedPart, SourceKind, SourceMetadata},
};
use lectern_sandbox::{ParseRequest, Sandbox};
use tokio::io::AsyncRead;

use crate::{extracted::ExtractedText, failure::IngestFailure, lease::ProgressReporter};

/// Longest text that is read without a process of its own, in bytes: starting one takes longer, and nothing that is so short
/// takes long or much, whatever it holds.
pub(crate) const SHORT: usize = 32 << 10;

/// Reads a source in the child and puts its parts together.
pub(super) async fn load(
    kind: SourceKind,
    source: impl AsyncRead + Unpin,
    options: ParseOptions,
    sandbox: &Sandbox,
    progress: &ProgressReporter,
) -> Result<ExtractedText, IngestFailure> {
    let mut frames = progress.waiting_for(sandbox.parse(ParseRequest { kind, source, options })).await?;
    let mut extracted = ExtractedText::default();
    while let Some(frame) = frames.next().await? {
        let is_part = matches!(frame, ParseFrame::Part(_));
        take(&mut extracted, frame);
        if is_part {
            progress.at(extracted.length(), None, "characters");
        }
    }
    Ok(extracted)
}

/// Whether a kind of source is text that is read without a format, and so by the worker itself where it is short.
pub(super) fn is_plain(kind: SourceKind) -> bool {
    match kind {
        SourceKind::Text | SourceKind::Markdown | SourceKind::Captions => true,
        SourceKind::Pdf
        | SourceKind::Html
        | SourceKind::Table
        | SourceKind::Workbook
        | SourceKind::Package
        | SourceKind::Json
        | SourceKind::Mail => false,
    }
}

/// Reads a text of a kind that is plain, where it is cheapest.
pub(super) async fn load_plain(
    kind: SourceKind,
    bytes: Vec<u8>,
    options: ParseOptions,
    sandbox: &Sandbox,
    progress: &ProgressReporter,
) -> Result<ExtractedText, IngestFailure> {
    if bytes.len() > SHORT {
        return load(kind, bytes.as_slice(), options, sandbox, progress).await;
    }
    let work = tokio::task::spawn_blocking(move || read(kind, bytes, &options));
    work.await.map_err(|_| IngestFailure::Panicked)?
}

/// What the child does, without one.
fn read(kind: SourceKind, bytes: Vec<u8>, options: &ParseOptions) -> Result<ExtractedText, IngestFailure> {
    let mut extracted = ExtractedText::default();
    let read = formats::parse(kind, bytes, options, &mut |frame| {
        take(&mut extracted, frame);
        Ok(())
    });
    match read {
        Ok(()) => Ok(extracted),
        Err(ParseAbort::Document(error)) => Err(error.into()),
        Err(ParseAbort::Panicked) => Err(IngestFailure::Panicked),
        Err(ParseAbort::Output(error)) => Err(error.into()),
    }
}

/// Puts what a frame says to the rest.
pub(crate) fn take(extracted: &mut ExtractedText, frame: ParseFrame) {
    match frame {
        ParseFrame::About(SourceMetadata { title, canonical_url, structure, pages }) => {
            extracted.source.title = title;
            extracted.source.canonical_url = canonical_url;
            extracted.structure = structure;
            extracted.pages = pages;
        }
        ParseFrame::Part(ParsedPart { text, marks }) => extracted.push(&text, marks),
        ParseFrame::Headings(marks) => {
            for mark in marks {
                extracted.mark(mark.at, mark.what);
            }
        }
        ParseFrame::Warning(warning) => extracted.warnings.push(warning),
        // Only a PDF has them, and the stream lets no others pass.
        ParseFrame::Start { .. } | ParseFrame::Image { .. } | ParseFrame::Page { .. } => {}
    }
}
