//! Pages as pictures for readers, with what was quoted marked on them.
//!
//! Everything here runs in the sandboxed child. `raster` draws; `marks` finds where a text stands.

mod fonts;
mod marks;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ::hayro::{
    hayro_interpret::InterpreterSettings,
    hayro_syntax::{Pdf, page::Page},
};
use lectern_shared::model::page::PageBox;

pub(crate) use self::fonts::SystemFonts;
use self::marks::MarkedText;
use crate::{
    formats::pdf::{self, hayro},
    protocol::{DrawError, DrawRequest, IMAGE_WIDTHS, MAX_SIDE, PageDrawing, ParseError},
    raster::{bounded_scale, image, render},
};

/// The most pixels of a drawing.
const MAX_PIXELS: f32 = 12_000_000.0;

/// Draws one page of a PDF, and marks what is asked for.
pub(crate) fn draw(
    bytes: Vec<u8>,
    request: &DrawRequest,
    fonts: Arc<SystemFonts>,
) -> Result<PageDrawing, DrawError> {
    let guarded = catch_unwind(AssertUnwindSafe(|| draw_page(bytes, request, fonts)));
    guarded.map_err(|_| DrawError::Failed).flatten()
}

fn draw_page(
    bytes: Vec<u8>,
    request: &DrawRequest,
    fonts: Arc<SystemFonts>,
) -> Result<PageDrawing, DrawError> {
    let pdf = pdf::open(bytes).map_err(|error| match error {
        ParseError::PasswordRequired => DrawError::PasswordRequired,
        _ => DrawError::Damaged,
    })?;
    let pages = pdf.pages().len();
    let index = usize::try_from(request.page).ok().and_then(|page| page.checked_sub(1));
    let page = index.and_then(|index| pdf.pages().get(index));
    let page =
        page.ok_or_else(|| DrawError::NoSuchPage { pages: u32::try_from(pages).unwrap_or(u32::MAX) })?;
    let settings = InterpreterSettings { font_resolver: fonts.resolver(), ..InterpreterSettings::default() };
    let (page_width, page_height) = page.render_dimensions();
    if ![page_width, page_height].iter().all(|side| (1.0..=MAX_SIDE).contains(side)) {
        return Err(DrawError::Damaged);
    }
    let asked = f32::from(
        u16::try_from(request.width.clamp(*IMAGE_WIDTHS.start(), *IMAGE_WIDTHS.end())).unwrap_or(1),
    );
    let scale = bounded_scale(asked / page_width, page_width, page_height, MAX_PIXELS);
    let mut pixels = render(page, &settings, scale).ok_or(DrawError::TooLarge)?;
    let boxes = boxes(&pdf, page, request, &settings);
    let scale = (f32::from(pixels.width()) / page_width, f32::from(pixels.height()) / page_height);
    image::mark(&mut pixels, &boxes, scale);
    let (width, height) = (u32::from(pixels.width()), u32::from(pixels.height()));
    let image = image::encode(&pixels, request.format).ok_or(DrawError::TooLarge)?;
    Ok(PageDrawing { image, width, height, page_width, page_height, boxes })
}

/// Where the texts stand that are to be marked. A page whose letters cannot be found is shown without marks.
fn boxes<'a>(
    pdf: &'a Pdf,
    page: &Page<'a>,
    request: &DrawRequest,
    settings: &'a InterpreterSettings,
) -> Vec<PageBox> {
    if request.marks.is_empty() {
        return Vec::new();
    }
    let size = page.render_dimensions();
    let find = || {
        let text = if request.words.is_empty() {
            MarkedText::of_glyphs(hayro::collect(pdf, page, settings).glyphs)
        } else {
            MarkedText::of_words(&request.words)
        };
        text.find_all(&request.marks, size)
    };
    catch_unwind(AssertUnwindSafe(find)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
