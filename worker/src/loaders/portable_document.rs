//! PDF: pages come one by one from the parsing child and are joined to one text that remembers where each began.

use lectern_shared::model::job::{SourceInfo, Warning};
use tokio::fs::File;

use super::{
    Extracted, LoadContext,
    pdf::{PdfOptions, is_without_text},
};
use crate::{
    ingest::Failure,
    sandbox::{Frame, Kind, ParseError, ParseRequest},
};

/// What stands between two pages.
const PAGE_BREAK: &str = "\n\n";

/// Reads the selected pages.
pub(super) async fn load(file: File, context: &LoadContext<'_>) -> Result<Extracted, Failure> {
    let options = PdfOptions {
        from_page: context.pages.from,
        to_page: context.pages.to,
        max_pages: context.limits.pages,
        max_chars: context.limits.characters,
    };
    let mut frames = context.sandbox.parse(ParseRequest { kind: Kind::Pdf, source: file, options }).await?;
    let mut extracted = Extracted::default();
    let (mut offset, mut letters, mut pages, mut selected) = (0_u64, 0_u64, 0_u32, None);
    let mut unreadable = 0_u64;
    while let Some(frame) = frames.next().await? {
        match frame {
            Frame::Start { first, last, title, .. } => {
                selected = Some(u64::from(last - first) + 1);
                extracted.source = SourceInfo { title, ..SourceInfo::default() };
            }
            Frame::Page { number, text, warning } => {
                if pages > 0 {
                    extracted.text.push_str(PAGE_BREAK);
                    offset += PAGE_BREAK.len() as u64;
                }
                extracted.page_starts.push((offset, number));
                letters += text.chars().filter(|c| !c.is_whitespace()).count() as u64;
                offset += text.chars().count() as u64;
                extracted.text.push_str(&text);
                unreadable += u64::from(warning.is_some());
                pages += 1;
                context.progress.at(u64::from(pages), selected, "pages");
            }
        }
    }
    if is_without_text(letters, pages) {
        return Err(ParseError::NoExtractableText.into());
    }
    extracted.pages = Some(pages);
    if unreadable > 0 {
        extracted.warnings.push(Warning {
            code: "unreadable_page".to_owned(),
            message: "Some pages could not be read and were left out.".to_owned(),
            count: unreadable,
        });
    }
    Ok(extracted)
}
