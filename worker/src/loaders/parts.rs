//! The parent's side of every format that is read part by part.

use tokio::io::AsyncRead;

use super::{
    Extracted, Headings, LoadContext, Output,
    text::{self, Known},
};
use crate::{
    ingest::Failure,
    sandbox::{About, Frame, Kind, ParseOptions, ParseRequest, Part, Stop},
};

/// Reads a source in the child and puts its parts together.
pub(super) async fn load(
    kind: Kind,
    source: impl AsyncRead + Unpin,
    options: ParseOptions,
    context: &LoadContext<'_>,
) -> Result<Extracted, Failure> {
    let mut frames = context.sandbox.parse(ParseRequest { kind, source, options }).await?;
    let mut extracted = Extracted::default();
    while let Some(frame) = frames.next().await? {
        let is_part = matches!(frame, Frame::Part(_));
        take(&mut extracted, frame);
        if is_part {
            context.progress.at(extracted.length(), None, "characters");
        }
    }
    Ok(extracted)
}

/// A kind of text that is read without a format, and so by the worker itself where it is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Text(Known),
    Captions,
}

impl Plain {
    /// Longest text that is read without a process of its own, in bytes: starting one takes longer, and nothing that is so short
    /// takes long or much, whatever it holds.
    pub(super) const SHORT: usize = 32 << 10;

    /// Reads a text where it is cheapest.
    pub(super) async fn load(
        self,
        bytes: Vec<u8>,
        options: ParseOptions,
        context: &LoadContext<'_>,
    ) -> Result<Extracted, Failure> {
        if bytes.len() > Self::SHORT {
            return load(self.kind(), bytes.as_slice(), options, context).await;
        }
        let work = tokio::task::spawn_blocking(move || self.read(&bytes, &options));
        work.await.map_err(|_| Failure::Panicked)?
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Text(Known::Markdown) => Kind::Markdown,
            Self::Text(Known::No) => Kind::Text,
            Self::Captions => Kind::Captions,
        }
    }

    /// What the child does, without one.
    fn read(self, bytes: &[u8], options: &ParseOptions) -> Result<Extracted, Failure> {
        let mut extracted = Extracted::default();
        let mut headings = Headings::default();
        let mut emit = |frame: Frame| {
            headings.note(&frame);
            take(&mut extracted, frame);
            Ok(())
        };
        let mut output = Output::new(&mut emit, options.max_chars);
        let read = match self {
            Self::Text(known) => text::parse(bytes, options, known, &mut output),
            Self::Captions => text::transcript(bytes, options, &mut output),
        };
        let read = read.and_then(|()| {
            headings.tell(&mut |frame| {
                take(&mut extracted, frame);
                Ok(())
            })
        });
        match read {
            Ok(()) => Ok(extracted),
            Err(Stop::Document(error)) => Err(error.into()),
            Err(Stop::Panicked) => Err(Failure::Panicked),
            Err(Stop::Output(error)) => Err(error.into()),
        }
    }
}

fn take(extracted: &mut Extracted, frame: Frame) {
    match frame {
        Frame::About(About { title, canonical_url, structure, pages }) => {
            extracted.source.title = title;
            extracted.source.canonical_url = canonical_url;
            extracted.structure = structure;
            extracted.pages = pages;
        }
        Frame::Part(Part { text, marks }) => extracted.push(&text, marks),
        Frame::Headings(marks) => {
            for mark in marks {
                extracted.mark(mark.at, mark.what);
            }
        }
        Frame::Warning(warning) => extracted.warnings.push(warning),
        // Only a PDF has them, and the stream lets no others pass.
        Frame::Start { .. } | Frame::Image { .. } | Frame::Page { .. } => {}
    }
}
