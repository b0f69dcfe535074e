//! PDF to text, one page after another. [`parse`] runs in the child only: it is not safe to call on a stranger's bytes in a
//! process that has to live on.
//!
//! An engine finds what is written where: hayro (`hayro`), and `pdf_oxide` (`oxide`) for files that hayro cannot open and for
//! pages whose glyphs it does not know. The order in which a person reads it is ours (`layout`, `direction`), as is the
//! clean-up of the text (`text`). pdfium, where the operator has set it, reads by itself.

mod direction;
mod forms;
mod fragment;
mod gaps;
pub(crate) mod hayro;
mod layout;
mod outline;
mod oxide;
mod pdfium;
mod pdfium_image;
mod rows;
mod tables;
mod text;

pub(crate) use self::pdfium::open as open_library;
pub use self::pdfium::{UNUSABLE, library_name};

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ::hayro::hayro_syntax::{DecryptionError, LoadPdfError, Pdf, PdfData};
use lectern_shared::model::page::PdfEngineName;

use self::{gaps::FileGaps, outline::DocumentOutline};
use crate::protocol::{PageSize, ParseAbort, ParseError, ParseFrame, ParseOptions};

/// The longest title that is kept, in characters.
const MAX_TITLE: usize = 500;
/// A page with fewer letters than this says nothing: at most a page number.
const FEW_LETTERS: usize = 4;
/// A scan may carry a stamp, or its scanner's footer, of at most so many letters.
const FOOTER_LETTERS: usize = 100;

/// Reads a PDF and hands out its frames as they are made. A page that cannot be read becomes an empty one with a
/// warning, and the next one follows.
pub(crate) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    emit: &mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
) -> Result<(), ParseAbort> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    let bytes = Arc::new(bytes);
    if let Some(library) = &options.pdfium
        && pdfium::parse(&bytes, library, options, emit)? == EngineOutcome::Whole
    {
        return Ok(());
    }
    if options.engine != Some(PdfEngineName::PdfOxide)
        && hayro::parse(&bytes, options, emit)? == EngineOutcome::Whole
    {
        return Ok(());
    }
    let known = FileFacts::read(&bytes);
    oxide::parse(Arc::unwrap_or_clone(bytes), known, options, emit)
}

/// What is known of a file beside what its pages say.
struct FileFacts {
    outline: DocumentOutline,
    gaps: FileGaps,
}

impl FileFacts {
    /// Of a file that another engine reads, which may not be one that can be opened here.
    fn read(bytes: &Arc<Vec<u8>>) -> Self {
        match catch_unwind(AssertUnwindSafe(|| open(Arc::clone(bytes)))) {
            Ok(Ok(pdf)) => Self::of(&pdf),
            _ => Self { outline: DocumentOutline::new(), gaps: FileGaps::of_mended(bytes) },
        }
    }

    fn of(pdf: &Pdf) -> Self {
        Self { outline: outline::of(pdf), gaps: FileGaps::of(pdf) }
    }
}

/// How far an engine came with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineOutcome {
    /// Every page was handed out.
    Whole,
    /// None was: another engine may try.
    Untouched,
}

/// Hands out pages, as long as their text stays within the limit.
struct PageFrames<'e> {
    emit: &'e mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
    chars: u64,
    limit: u64,
    known: FileFacts,
}

impl<'e> PageFrames<'e> {
    /// Begins, and tells what the file lacks as a whole.
    fn begin(
        options: &ParseOptions,
        known: FileFacts,
        emit: &'e mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
    ) -> Result<Self, ParseAbort> {
        if let Some(warning) = known.gaps.warning() {
            emit(ParseFrame::Warning(warning))?;
        }
        Ok(Self { emit, chars: 0, limit: options.max_chars, known })
    }

    fn image(&mut self, page: u32, png: Vec<u8>, density: f32) -> Result<(), ParseAbort> {
        (self.emit)(ParseFrame::Image { page, png, density })
    }

    fn page(
        &mut self,
        number: u32,
        text: String,
        warning: Option<String>,
        size: Option<PageSize>,
        is_scan: bool,
    ) -> Result<(), ParseAbort> {
        self.chars += u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        if self.chars > self.limit {
            return Err(ParseError::TooLarge { limit: self.limit }.into());
        }
        let sections = self.known.outline.remove(&number).unwrap_or_default();
        let lacking = || format!("Page {number} lacks content that is not in the file.");
        let warning = warning.or_else(|| self.known.gaps.has(number).then(lacking));
        (self.emit)(ParseFrame::Page { number, text, sections, warning, size, is_scan })
    }
}

/// Whether a page that says `text`, and is covered by images to `image_share`, is in all likelihood an image of text.
fn is_scan(text: &str, image_share: f32) -> bool {
    let letters = text.chars().filter(|c| !c.is_whitespace()).take(FOOTER_LETTERS + 1).count();
    letters < FEW_LETTERS || (letters <= FOOTER_LETTERS && image_share >= 0.5)
}

/// The first and the last page to read.
fn selection(options: &ParseOptions, pages_total: u32) -> Result<(u32, u32), ParseError> {
    if pages_total == 0 {
        return Err(ParseError::Damaged);
    }
    let first = options.from_page.unwrap_or(1);
    let asked = options.to_page.unwrap_or(pages_total);
    if first == 0 || first > pages_total || asked < first {
        return Err(ParseError::InvalidPageRange { pages: pages_total });
    }
    let last = asked.min(pages_total);
    let pages = last - first + 1;
    if pages > options.max_pages {
        return Err(ParseError::TooManyPages { pages, limit: options.max_pages });
    }
    Ok((first, last))
}

/// A title on one line, if it says anything.
fn tidy_title(title: &str) -> Option<String> {
    let title: String = text::clean(title).split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().take(MAX_TITLE).collect();
    (!title.is_empty()).then_some(title)
}

/// The text of a string of a PDF that is none of a page's: in UTF-16 or UTF-8 when its first bytes say so, in PDF's own
/// encoding, which has Latin-1's letters, otherwise.
fn decoded_string(bytes: &[u8]) -> String {
    pdf_oxide::optional_content::decode_pdf_text_string(bytes)
}

/// Cleans what another program read from an image of a page.
pub fn tidy(raw: &str) -> String {
    text::clean(raw).trim().to_owned()
}

/// Opens a PDF; the empty password is tried, as every viewer does.
pub(crate) fn open(data: impl Into<PdfData>) -> Result<Pdf, ParseError> {
    let pdf = Pdf::new(data).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => ParseError::PasswordRequired,
        LoadPdfError::Decryption(_) | LoadPdfError::Invalid => ParseError::Damaged,
    })?;
    if pdf.pages().is_empty() { Err(ParseError::Damaged) } else { Ok(pdf) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(from_page: Option<u32>, to_page: Option<u32>) -> ParseOptions {
        ParseOptions { from_page, to_page, max_pages: 10, ..ParseOptions::default() }
    }

    #[test]
    fn a_range_without_bounds_is_the_whole_document() {
        assert_eq!(selection(&options(None, None), 7), Ok((1, 7)));
    }

    #[test]
    fn a_last_page_beyond_the_end_is_the_end() {
        assert_eq!(selection(&options(Some(3), Some(99)), 7), Ok((3, 7)));
    }

    #[test]
    fn a_range_that_is_not_in_the_document_is_an_error_of_its_own() {
        for (from, to) in [(Some(8), None), (Some(0), None), (Some(5), Some(4)), (None, Some(0))] {
            assert_eq!(selection(&options(from, to), 7), Err(ParseError::InvalidPageRange { pages: 7 }));
        }
    }

    #[test]
    fn the_page_limit_counts_the_selected_pages_only() {
        assert_eq!(
            selection(&options(None, None), 11),
            Err(ParseError::TooManyPages { pages: 11, limit: 10 })
        );
        assert_eq!(selection(&options(Some(2), None), 11), Ok((2, 11)));
    }

    #[test]
    fn a_document_without_pages_is_damaged() {
        assert_eq!(selection(&options(None, None), 0), Err(ParseError::Damaged));
    }
}
