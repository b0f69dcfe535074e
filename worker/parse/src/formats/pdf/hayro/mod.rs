//! Reading with hayro, which interprets a page as a viewer does and tells of each glyph where it stands and what it stands for.
//! The order in which a person reads them is ours (`words`, and `layout` beside this folder).

mod glyphs;
mod known;
mod unicode;
mod words;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ::hayro::{
    hayro_interpret::InterpreterSettings,
    hayro_syntax::{Pdf, object::Object, page::Page},
};
use lectern_shared::model::page::PdfEngineName;

use self::glyphs::GlyphReader;
pub(crate) use self::glyphs::{PageGlyph, PageGlyphs, collect};
use super::{EngineOutcome, FileFacts, PageFrames, is_scan, oxide, selection, text, tidy_title};
use crate::{
    protocol::{PageSize, ParseAbort, ParseFrame, ParseOptions},
    raster,
};

/// So many pages, or glyphs, are read before it is said what reads the file.
const TRIAL_PAGES: usize = 8;
const TRIAL_GLYPHS: usize = 2_000;
/// Fewer glyphs without a meaning are ornaments.
const FEW_UNMAPPED: usize = 20;

/// A page as it was read.
#[derive(Default)]
struct ReadPage {
    text: String,
    size: Option<PageSize>,
    image: Option<(Vec<u8>, f32)>,
    is_scan: bool,
    glyphs: usize,
    unmapped: usize,
    fault: Option<PageFault>,
}

/// Why a page was not read, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageFault {
    /// Reading it ended in a panic.
    Broken,
    /// There is more on it than was read.
    Cut,
    /// Its content cannot be decoded.
    Garbled,
}

impl ReadPage {
    fn broken() -> Self {
        Self { fault: Some(PageFault::Broken), ..Self::default() }
    }

    fn is_broken(&self) -> bool {
        self.fault == Some(PageFault::Broken)
    }

    /// A sentence on what was not read of it.
    fn warning(&self, number: u32) -> Option<String> {
        Some(match self.fault? {
            PageFault::Broken | PageFault::Garbled => format!("Page {number} could not be read."),
            PageFault::Cut => format!("Page {number} draws more than is read."),
        })
    }
}

/// Reads a PDF as [`super::parse`] does. [`EngineOutcome::Untouched`] when hayro cannot open it, or does not know what many of
/// its glyphs stand for; nothing has been handed out then.
pub(super) fn parse(
    bytes: &Arc<Vec<u8>>,
    options: &ParseOptions,
    emit: &mut dyn FnMut(ParseFrame) -> Result<(), ParseAbort>,
) -> Result<EngineOutcome, ParseAbort> {
    let Ok(Ok(pdf)) = catch_unwind(AssertUnwindSafe(|| super::open(bytes.clone()))) else {
        // Another engine may know the way in which it is encrypted, or how to mend it.
        return Ok(EngineOutcome::Untouched);
    };
    let pages_total = u32::try_from(pdf.pages().len()).unwrap_or(u32::MAX);
    let (first, last) = selection(options, pages_total)?;
    let settings = InterpreterSettings::default();
    let mut reader = GlyphReader::new(&pdf, &settings);
    let mut pages = (first..=last).map(|number| (number, read_page(&pdf, number, &mut reader, options)));
    let (mut trial, mut glyphs, mut unmapped) = (Vec::new(), 0, 0);
    while trial.len() < TRIAL_PAGES && glyphs < TRIAL_GLYPHS {
        let Some((number, page)) = pages.next() else { break };
        glyphs += page.glyphs;
        unmapped += page.unmapped;
        trial.push((number, page));
    }
    let all_broken = trial.iter().all(|(_, page)| page.is_broken());
    if (all_broken || is_unmapped(glyphs, unmapped)) && oxide::can_open(bytes, options) {
        return Ok(EngineOutcome::Untouched);
    }
    let title =
        pdf.metadata().title.as_deref().map(super::decoded_string).and_then(|title| tidy_title(&title));
    emit(ParseFrame::Start { pages_total, first, last, title, engine: PdfEngineName::Hayro })?;
    let mut frames = PageFrames::begin(options, FileFacts::of(&pdf), emit)?;
    let mut second = None;
    // What was added to a file, as forms that are filled in do, is not found in every one.
    let is_silent = glyphs == 0;
    for (number, mut page) in trial.into_iter().chain(pages) {
        let is_missing = is_silent && page.glyphs == 0 && !page.is_scan;
        let is_broken = page.is_broken();
        if is_broken || is_unmapped(page.glyphs, page.unmapped) || is_missing {
            let other = second.get_or_insert_with(|| oxide::OxidePages::open(bytes, options));
            let text = other.as_mut().and_then(|pages| pages.text(number));
            if let Some(text) = text.filter(|text| is_broken || !text.is_empty()) {
                page = ReadPage { text, size: page.size, ..ReadPage::default() };
            }
        }
        let warning = page.warning(number);
        if let Some((png, density)) = page.image {
            frames.image(number, png, density)?;
        }
        frames.page(number, page.text, warning, page.size, page.is_scan)?;
    }
    Ok(EngineOutcome::Whole)
}

/// Whether so many glyphs have no meaning that another engine may know better.
fn is_unmapped(glyphs: usize, unmapped: usize) -> bool {
    (unmapped > FEW_UNMAPPED && unmapped * 10 > glyphs) || unmapped * 2 > glyphs
}

fn read_page<'a>(
    pdf: &'a Pdf,
    number: u32,
    reader: &mut GlyphReader<'a>,
    options: &ParseOptions,
) -> ReadPage {
    let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(page) = pdf.pages().get(index) else {
        return ReadPage::broken();
    };
    let read = catch_unwind(AssertUnwindSafe(|| (reader.read(page), is_garbled(page))));
    let Ok((PageGlyphs { glyphs, unmapped, size, image_share, is_blank, is_cut }, is_garbled)) = read else {
        return ReadPage::broken();
    };
    let count = glyphs.len() + unmapped;
    let text = catch_unwind(AssertUnwindSafe(|| text::clean(&words::read(glyphs))));
    let fault = if text.is_err() {
        Some(PageFault::Broken)
    } else if is_cut {
        Some(PageFault::Cut)
    } else {
        is_garbled.then_some(PageFault::Garbled)
    };
    let text = text.unwrap_or_default();
    let is_scan = !is_blank && is_scan(&text, image_share);
    let image = if is_scan && options.images && !is_cut { scan(page) } else { None };
    ReadPage { text, size: Some(size), image, is_scan, glyphs: count, unmapped, fault }
}

/// Whether a page has content that cannot be decoded.
fn is_garbled(page: &Page<'_>) -> bool {
    let content = page.raw().get::<Object<'_>>("Contents");
    matches!(content, Some(Object::Stream(_))) && page.page_stream().is_none()
}

/// The image of a page that is one; one that cannot be made leaves the page as it is.
fn scan(page: &Page<'_>) -> Option<(Vec<u8>, f32)> {
    let settings = InterpreterSettings::default();
    catch_unwind(AssertUnwindSafe(|| raster::scan_png(page, &settings))).ok().flatten()
}
