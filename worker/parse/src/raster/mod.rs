//! Pages as pixels: for readers, and for text recognition. hayro draws; `image` writes the formats.

pub(crate) mod image;
#[cfg(test)]
mod tests;

use hayro::{
    PixmapSettings, RenderCache, RenderSettings,
    hayro_interpret::InterpreterSettings,
    hayro_syntax::page::Page,
    vello_cpu::{Pixmap, color::palette::css::WHITE},
};

use crate::protocol::MAX_SIDE;

/// Pixels of an inch of a page whose text is to be recognised: recognition is at its best with 300.
const SCAN_DENSITY: f32 = 300.0;
pub(crate) const POINTS_PER_INCH: f32 = 72.0;
/// The most pixels of such a page: A4 at the full density. Even noise, which does not compress, fits into one message.
const MAX_SCAN_PIXELS: f32 = 9_000_000.0;
/// The longest edge, in pixels.
const MAX_EDGE: f32 = 16_000.0;
/// From this brightness on paper is white.
pub(crate) const PAPER: u8 = 240;

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
    let png = image::grey_png(u32::from(pixels.width()), u32::from(pixels.height()), &grey, density)?;
    Some((png, density))
}

/// How many pixels a point of a page whose text is to be recognised becomes.
pub(crate) fn scan_scale(width: f32, height: f32) -> f32 {
    bounded_scale(SCAN_DENSITY / POINTS_PER_INCH, width, height, MAX_SCAN_PIXELS)
}

/// How many pixels a point becomes, at most `wanted`, of a page that may have so many.
pub(crate) fn bounded_scale(wanted: f32, width: f32, height: f32, most: f32) -> f32 {
    wanted.min((most / (width * height)).sqrt()).min(MAX_EDGE / width.max(height))
}

/// Draws a page on white paper; none when it would be thinner than a pixel.
pub(crate) fn render(page: &Page<'_>, settings: &InterpreterSettings, scale: f32) -> Option<Pixmap> {
    let (width, height) = page.render_dimensions();
    // Both are cut off to whole pixels.
    let whole = |side: f32| ((side * scale).round().max(1.0) + 0.01) / side;
    if scale * width.min(height) < 1.0 {
        return None;
    }
    let paper = PixmapSettings { x_scale: whole(width), y_scale: whole(height), bg_color: WHITE };
    Some(hayro::render(page, &RenderCache::new(), settings, &RenderSettings::default(), &paper))
}
