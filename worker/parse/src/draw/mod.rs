//! Pages as pictures: for readers, with what was quoted marked on them, and for text recognition.
//!
//! Everything here runs in the sandboxed child. hayro draws; `marks` finds where a text stands; `image` writes the formats.

mod fonts;
mod image;
mod marks;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use hayro::{
    PixmapSettings, RenderCache, RenderSettings,
    hayro_interpret::InterpreterSettings,
    hayro_syntax::{Pdf, page::Page},
    vello_cpu::{Pixmap, color::palette::css::WHITE},
};

use lectern_shared::model::page::PageBox;

use self::marks::MarkedText;
pub(crate) use self::{fonts::SystemFonts, image::grey_png};
use crate::{
    formats::pdf::hayro as engine,
    protocol::{DrawError, DrawRequest, IMAGE_WIDTHS, MAX_SIDE, PageDrawing, ParseError},
};

/// The most pixels of a drawing.
const MAX_PIXELS: f32 = 12_000_000.0;
/// Pixels of an inch of a page whose text is to be recognised: recognition is at its best with 300.
const SCAN_DENSITY: f32 = 300.0;
pub(crate) const POINTS_PER_INCH: f32 = 72.0;
/// The most pixels of such a page: A4 at the full density. Even noise, which does not compress, fits into one message.
const MAX_SCAN_PIXELS: f32 = 9_000_000.0;
/// The longest edge, in pixels.
const MAX_EDGE: f32 = 16_000.0;
/// From this brightness on paper is white.
pub(crate) const PAPER: u8 = 240;

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
    let pdf = engine::open(bytes).map_err(|error| match error {
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
            MarkedText::of_glyphs(engine::collect(pdf, page, settings).glyphs)
        } else {
            MarkedText::of_words(&request.words)
        };
        text.find_all(&request.marks, size)
    };
    catch_unwind(AssertUnwindSafe(find)).unwrap_or_default()
}

/// The page in shades of grey for text recognition, as a PNG, and its pixels an inch; none when it is blank, or cannot be
/// drawn.
pub(crate) fn scan_png(page: &Page<'_>, settings: &InterpreterSettings) -> Option<(Vec<u8>, f32)> {
    let (width, height) = page.render_dimensions();
    if ![width, height].iter().all(|side| (1.0..=MAX_SIDE).contains(side)) {
        return None;
    }
    let scale = scan_scale(width, height);
    let pixels = render(page, settings, scale)?;
    let grey = image::grey(&pixels);
    if grey.iter().all(|pixel| *pixel >= PAPER) {
        return None;
    }
    let density = scale * POINTS_PER_INCH;
    let png = grey_png(u32::from(pixels.width()), u32::from(pixels.height()), &grey, density)?;
    Some((png, density))
}

/// How many pixels a point of a page whose text is to be recognised becomes.
pub(crate) fn scan_scale(width: f32, height: f32) -> f32 {
    bounded_scale(SCAN_DENSITY / POINTS_PER_INCH, width, height, MAX_SCAN_PIXELS)
}

/// How many pixels a point becomes, at most `wanted`, of a page that may have so many.
fn bounded_scale(wanted: f32, width: f32, height: f32, most: f32) -> f32 {
    wanted.min((most / (width * height)).sqrt()).min(MAX_EDGE / width.max(height))
}

/// Draws a page on white paper; none when it would be thinner than a pixel.
fn render(page: &Page<'_>, settings: &InterpreterSettings, scale: f32) -> Option<Pixmap> {
    let (width, height) = page.render_dimensions();
    // Both are cut off to whole pixels.
    let whole = |side: f32| ((side * scale).round().max(1.0) + 0.01) / side;
    if scale * width.min(height) < 1.0 {
        return None;
    }
    let paper = PixmapSettings { x_scale: whole(width), y_scale: whole(height), bg_color: WHITE };
    Some(hayro::render(page, &RenderCache::new(), settings, &RenderSettings::default(), &paper))
}

#[cfg(test)]
mod tests;
