//! PDF to text, one page after another. [`parse`] runs in the child only: it is not safe to call on a stranger's bytes in a
//! process that has to live on.
//!
//! `pdf_oxide` finds what is written where; the order in which a person reads it is ours (`layout`, `direction`), as
//! is the clean-up of the text (`text`).

mod direction;
mod forms;
mod fragment;
mod layout;
mod pdfium;
mod pdfium_image;
mod text;

pub(crate) use self::pdfium::open as open_library;
pub use self::pdfium::{UNUSABLE, library_name};

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use pdf_oxide::{PdfDocument, ReadingOrder, object::Object, optional_content};

use crate::protocol::{ParseAbort, ParseError, ParseFrame, ParseOptions};

/// The longest title that is kept, in characters.
const MAX_TITLE: usize = 500;

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
    if let Some(library) = &options.pdfium
        && pdfium::parse(&bytes, library, options, emit)? == EngineOutcome::Whole
    {
        return Ok(());
    }
    let opened =
        catch_unwind(AssertUnwindSafe(|| open(bytes, options))).map_err(|_| ParseAbort::Panicked)??;
    let OpenedPdf { document, pages_total, first, last } = opened;
    let title = catch_unwind(AssertUnwindSafe(|| title(&document))).unwrap_or_default();
    emit(ParseFrame::Start { pages_total, first, last, title })?;
    let hidden = catch_unwind(AssertUnwindSafe(|| optional_content::compute_default_off_ocgs(&document)));
    let hidden = hidden.unwrap_or_default();
    let mut forms = forms::FormXObjects::default();
    let mut chars: u64 = 0;
    for number in first..=last {
        let page = catch_unwind(AssertUnwindSafe(|| {
            let text = page_text(&document, number, &hidden)?;
            Ok::<_, pdf_oxide::Error>((text, forms.are_too_many(&document, index_of(number))))
        }));
        let (text, warning) = match page {
            Ok(Ok((text, false))) => (text, None),
            Ok(Ok((text, true))) => {
                (text, Some(format!("Page {number} has more drawings in drawings than are read.")))
            }
            Ok(Err(_)) | Err(_) => (String::new(), Some(format!("Page {number} could not be read."))),
        };
        chars += u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        if chars > options.max_chars {
            return Err(ParseError::TooLarge { limit: options.max_chars }.into());
        }
        emit(ParseFrame::Page { number, text, warning })?;
    }
    Ok(())
}

/// How far an engine came with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineOutcome {
    /// Every page was handed out.
    Whole,
    /// None was: another engine may try.
    Untouched,
}

struct OpenedPdf {
    document: PdfDocument,
    pages_total: u32,
    first: u32,
    last: u32,
}

fn open(bytes: Vec<u8>, options: &ParseOptions) -> Result<OpenedPdf, ParseError> {
    let document = PdfDocument::from_bytes(bytes).map_err(|error| match error {
        pdf_oxide::Error::EncryptedPdf => ParseError::PasswordRequired,
        _ => ParseError::Damaged,
    })?;
    // Without this a protected document yields empty pages and no error. Many are encrypted under the empty password,
    // which every viewer tries.
    if document.is_encrypted() && !matches!(document.authenticate(b""), Ok(true)) {
        return Err(ParseError::PasswordRequired);
    }
    let pages_total = document.page_count().map_err(|_| ParseError::Damaged)?;
    let pages_total = u32::try_from(pages_total).unwrap_or(u32::MAX);
    let (first, last) = selection(options, pages_total)?;
    Ok(OpenedPdf { document, pages_total, first, last })
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

/// The title in the document's information dictionary, if it says anything.
fn title(document: &PdfDocument) -> Option<String> {
    let information = document.resolve_object(document.trailer().as_dict()?.get("Info")?).ok()?;
    let title = document.resolve_object(information.as_dict()?.get("Title")?).ok()?;
    let title = title.as_string().map(optional_content::decode_pdf_text_string)?;
    tidy_title(&title)
}

/// A title on one line, if it says anything.
fn tidy_title(title: &str) -> Option<String> {
    let title: String = text::clean(title).split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().take(MAX_TITLE).collect();
    (!title.is_empty()).then_some(title)
}

/// Cleans what another program read from an image of a page.
pub fn tidy(raw: &str) -> String {
    text::clean(raw).trim().to_owned()
}

/// One page's text in reading order, cleaned.
fn page_text(
    document: &PdfDocument,
    number: u32,
    hidden: &HashSet<String>,
) -> Result<String, pdf_oxide::Error> {
    let index = index_of(number);
    let spans = if hidden.is_empty() {
        document.extract_spans(index)?
    } else {
        // Layers that no viewer shows at first often hold a second copy of the page.
        let (order, inks) = (ReadingOrder::TopToBottom, HashSet::new());
        document.extract_spans_filtered_with_reading_order(index, order, hidden.clone(), inks)?
    };
    if spans.is_empty() {
        // A page whose content is missing is not a blank page.
        let page = document.get_page(index)?;
        return if matches!(page, Object::Dictionary(_)) { Ok(String::new()) } else { Err(missing(number)) };
    }
    let raw = if fragment::is_upright(&spans) {
        let mut fragments = fragment::of_spans(&spans);
        if fragments.iter().any(|piece| direction::has_rtl(&piece.text)) {
            // Spans hold right-to-left text in no order that can be relied on; single characters stand where they
            // stand.
            fragments = fragment::of_chars(&document.extract_chars(index)?);
        }
        layout::read(fragments) + "\n\n" + &fragment::turned_lines(&spans)
    } else {
        // Vertical and turned writing: pdf_oxide maps it into a reader's frame.
        document.extract_text(index)?
    };
    Ok(text::clean(&raw))
}

fn index_of(number: u32) -> usize {
    usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX)
}

fn missing(number: u32) -> pdf_oxide::Error {
    pdf_oxide::Error::InvalidPdf(format!("page {number} is not a dictionary"))
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
