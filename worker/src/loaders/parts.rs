//! The parent's side of every format that is read part by part in the child.

use tokio::io::AsyncRead;

use super::{Extracted, LoadContext};
use crate::{
    ingest::Failure,
    sandbox::{About, Frame, Kind, ParseOptions, ParseRequest, Part},
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
        match frame {
            Frame::About(About { title, canonical_url, structure, pages }) => {
                extracted.source.title = title;
                extracted.source.canonical_url = canonical_url;
                extracted.structure = structure;
                extracted.pages = pages;
            }
            Frame::Part(Part { text, marks }) => {
                extracted.push(&text, marks);
                context.progress.at(extracted.length(), None, "characters");
            }
            Frame::Warning(warning) => extracted.warnings.push(warning),
            // Only a PDF has them, and the stream lets no others pass.
            Frame::Start { .. } | Frame::Image { .. } | Frame::Page { .. } => {}
        }
    }
    Ok(extracted)
}
