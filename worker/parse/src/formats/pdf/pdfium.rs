//! Reading with pdfium, Chromium's engine, when its library is there: the better reading order, and right-to-left text as it
//! is read.
//!
//! The library is opened in the child, within its limits and before its walls, and gets no way to the machine's fonts: what is not embedded
//! is measured with the fonts that pdfium brings, so the same bytes give the same text everywhere.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use lectern_shared::model::{job::IngestionWarning, page::PdfEngineName};
use pdfium_render::prelude::{
    PdfDocument, PdfDocumentMetadataTagType, Pdfium, PdfiumError, PdfiumInternalError, PdfiumLibraryConfig,
};

use super::{EngineOutcome, FileFacts, PageFrames, is_scan, pdfium_image, selection, text, tidy_title};
use crate::protocol::{MAX_SIDE, PageSize, ParseAbort, ParseError, ParseFrame, ParseOptions};

/// The code of the warning that the library could not be used.
pub const UNUSABLE: &str = "pdfium_unusable";

/// A folder that holds no fonts.
const NO_FONTS: &str = "/nonexistent";

/// Reads a PDF as [`super::parse`] does. [`EngineOutcome::Untouched`] when pdfium cannot be had or cannot open the file; nothing
/// but a warning has been handed out then.
pub(super) fn parse(
    bytes: &Arc<Vec<u8>>,
    library: &Path,
    options: &ParseOptions,
    emit: &mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
) -> Result<EngineOutcome, ParseAbort> {
    let Some(engine) = guarded(|| engine(library)).and_then(Result::ok) else {
        emit(ParseFrame::Warning(IngestionWarning {
            code: UNUSABLE.to_owned(),
            message: "The pdfium library could not be loaded; the built-in reader read the file.".to_owned(),
            count: 1,
        }))?;
        return Ok(EngineOutcome::Untouched);
    };
    // Many files are encrypted under the empty password, which pdfium tries by itself.
    let document = match guarded(|| engine.load_pdf_from_byte_slice(bytes, None)) {
        Some(Ok(document)) => document,
        Some(Err(PdfiumError::PdfiumLibraryInternalError(
            PdfiumInternalError::PasswordError | PdfiumInternalError::SecurityError,
        ))) => return Err(ParseError::PasswordRequired.into()),
        Some(Err(_)) | None => return Ok(EngineOutcome::Untouched),
    };
    let pages_total = guarded(|| document.pages().len()).and_then(|pages| u32::try_from(pages).ok());
    let Some(pages_total @ 1..) = pages_total else { return Ok(EngineOutcome::Untouched) };
    let (first, last) = selection(options, pages_total)?;
    let title = guarded(|| title(&document)).flatten();
    emit(ParseFrame::Start { pages_total, first, last, title, engine: PdfEngineName::Pdfium })?;
    let mut frames = PageFrames::begin(options, FileFacts::read(bytes), emit)?;
    for number in first..=last {
        let page = guarded(|| page(&document, number, options.images)).and_then(Result::ok);
        let warning = page.is_none().then(|| format!("Page {number} could not be read."));
        let PdfiumPage { text, size, is_scan, image } = page.unwrap_or_default();
        if let Some((png, density)) = image {
            frames.image(number, png, density)?;
        }
        frames.page(number, text, warning, size, is_scan)?;
    }
    Ok(EngineOutcome::Whole)
}

/// What the library's file is called on this system.
pub fn library_name() -> PathBuf {
    PathBuf::from(Pdfium::pdfium_platform_library_name())
}

/// What was done, or nothing when it panicked.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Opens the library where files can be opened still, for a [`parse`] where none can. One that cannot be used is found
/// out there.
pub(crate) fn open(library: &Path) {
    let _unusable = guarded(|| engine(library));
}

fn engine(library: &Path) -> Result<Pdfium, PdfiumError> {
    match Pdfium::bind_to_library(library) {
        // There is one for the whole process; a handle on it is all that is made here.
        Err(PdfiumError::PdfiumLibraryBindingsAlreadyInitialized) => Ok(Pdfium::default()),
        bindings => {
            let config = PdfiumLibraryConfig::new().set_user_font_paths(&[NO_FONTS])?;
            Ok(Pdfium::new_with_config(bindings?, config))
        }
    }
}

fn title(document: &PdfDocument<'_>) -> Option<String> {
    tidy_title(document.metadata().get(PdfDocumentMetadataTagType::Title)?.value())
}

#[derive(Default)]
struct PdfiumPage {
    text: String,
    size: Option<PageSize>,
    /// Whether it is an image rather than text.
    is_scan: bool,
    /// A PNG of such a page, and its pixels an inch.
    image: Option<(Vec<u8>, f32)>,
}

fn page(document: &PdfDocument<'_>, number: u32, images: bool) -> Result<PdfiumPage, PdfiumError> {
    let index = i32::try_from(number.saturating_sub(1)).map_err(|_| PdfiumError::PageIndexOutOfBounds)?;
    let page = document.pages().get(index)?;
    // Character by character: `all()` leaves out what reaches over the page's edge.
    let raw = raw_text(page.text()?.chars().iter().map(|char| char.unicode_value()));
    let text = text::clean(&raw);
    let (width, height) = (page.width().value, page.height().value);
    let sane = [width, height].iter().all(|side| (1.0..=MAX_SIDE).contains(side));
    let is_scan = is_scan(&text, pdfium_image::share(&page));
    // An image that cannot be made leaves the page as it is.
    let image = if images && is_scan { pdfium_image::png(&page) } else { None };
    Ok(PdfiumPage { text, size: sane.then_some(PageSize { width, height }), is_scan, image })
}

/// The text that pdfium's code points stand for. Where a hyphen divides a word at a line's end it says U+0002, or U+FFFE in
/// other versions, and leaves the end of the line out.
fn raw_text(codes: impl Iterator<Item = u32>) -> String {
    let mut raw = String::new();
    let mut codes = codes.peekable();
    while let Some(code) = codes.next() {
        match code {
            0x2 | 0xfffe => {
                raw.push('-');
                if !matches!(codes.peek(), None | Some(0xa | 0xd)) {
                    raw.push('\n');
                }
            }
            // Some platforms' characters beyond the first 65,536 come in halves.
            0xd800..=0xdbff => {
                let low = codes.next_if(|low| (0xdc00..=0xdfff).contains(low));
                let whole =
                    low.and_then(|low| char::from_u32(0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00)));
                raw.extend(whole);
            }
            _ => raw.extend(char::from_u32(code)),
        }
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::raw_text;

    fn raw(text: &str) -> String {
        raw_text(text.chars().map(u32::from))
    }

    #[test]
    fn a_word_divided_at_a_lines_end_gets_its_hyphen_and_its_line_back() {
        assert_eq!(raw("syntacti\u{2}cally named"), "syntacti-\ncally named");
        assert_eq!(raw("syntacti\u{fffe}cally\r\nnamed"), "syntacti-\ncally\r\nnamed");
        assert_eq!(raw("Soekarno\u{2}\r\nHatta"), "Soekarno-\r\nHatta");
        assert_eq!(raw("the end of a pa\u{2}"), "the end of a pa-");
    }

    #[test]
    fn characters_that_come_in_halves_are_put_together_and_stray_halves_go() {
        assert_eq!(raw_text([0x61, 0xd835, 0xdc00, 0x62].into_iter()), "a\u{1d400}b");
        assert_eq!(raw_text([0x61, 0xd835, 0x62, 0xdc00].into_iter()), "ab");
    }
}
