//! Reading with `pdf_oxide`, which mends some files that hayro does not open and knows more of some fonts.

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use lectern_shared::model::page::PdfEngineName;
use pdf_oxide::{PdfDocument, ReadingOrder, object::Object, optional_content};

use super::{FileFacts, PageFrames, direction, forms, fragment, layout, selection, text, tidy_title};
use crate::protocol::{ParseAbort, ParseError, ParseFrame, ParseOptions};

/// Reads a PDF as [`super::parse`] does.
pub(super) fn parse(
    bytes: Vec<u8>,
    known: FileFacts,
    options: &ParseOptions,
    emit: &mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
) -> Result<(), ParseAbort> {
    let opened =
        catch_unwind(AssertUnwindSafe(|| open(bytes, options))).map_err(|_| ParseAbort::Panicked)??;
    let OpenedPdf { document, pages_total, first, last } = opened;
    let title = catch_unwind(AssertUnwindSafe(|| title(&document))).unwrap_or_default();
    emit(ParseFrame::Start { pages_total, first, last, title, engine: PdfEngineName::PdfOxide })?;
    let mut pages = OxidePages::new(document);
    let mut forms = forms::FormXObjects::default();
    let mut frames = PageFrames::begin(options, known, emit)?;
    for number in first..=last {
        let too_many = || forms.are_too_many(&pages.document, index_of(number));
        let too_many = catch_unwind(AssertUnwindSafe(too_many)).unwrap_or_default();
        let (text, warning) = match pages.text(number) {
            Some(text) if too_many => {
                (text, Some(format!("Page {number} has more drawings in drawings than are read.")))
            }
            Some(text) => (text, None),
            None => (String::new(), Some(format!("Page {number} could not be read."))),
        };
        frames.page(number, text, warning, None, false)?;
    }
    Ok(())
}

/// The pages of a document that `pdf_oxide` has opened.
pub(super) struct OxidePages {
    document: PdfDocument,
    hidden: HashSet<String>,
}

impl OxidePages {
    fn new(document: PdfDocument) -> Self {
        let hidden = catch_unwind(AssertUnwindSafe(|| optional_content::compute_default_off_ocgs(&document)));
        Self { hidden: hidden.unwrap_or_default(), document }
    }

    /// None when `pdf_oxide` cannot read the document.
    pub(super) fn open(bytes: &[u8], options: &ParseOptions) -> Option<Self> {
        let opened = catch_unwind(AssertUnwindSafe(|| open(bytes.to_vec(), options)));
        opened.ok()?.ok().map(|opened| Self::new(opened.document))
    }

    /// A page's text, if it can be read.
    pub(super) fn text(&mut self, number: u32) -> Option<String> {
        let read = || page_text(&self.document, number, &self.hidden);
        catch_unwind(AssertUnwindSafe(read)).ok()?.ok()
    }
}

/// Whether `pdf_oxide` can read a document at all.
pub(super) fn can_open(bytes: &[u8], options: &ParseOptions) -> bool {
    OxidePages::open(bytes, options).is_some()
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

/// The title in the document's information dictionary, if it says anything.
fn title(document: &PdfDocument) -> Option<String> {
    let information = document.resolve_object(document.trailer().as_dict()?.get("Info")?).ok()?;
    let title = document.resolve_object(information.as_dict()?.get("Title")?).ok()?;
    let title = title.as_string().map(optional_content::decode_pdf_text_string)?;
    tidy_title(&title)
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
