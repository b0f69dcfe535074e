//! Pages that are images, as pdfium draws them for text recognition.

use pdfium_render::prelude::{
    PdfBitmapFormat, PdfPage, PdfPageObjectCommon, PdfPageObjectsCommon, PdfRenderConfig,
};

use crate::{
    protocol::MAX_SIDE,
    raster::{PAPER, POINTS_PER_INCH, image::grey_png, scan_scale},
};

/// Objects of a page that are looked at.
const MAX_OBJECTS: usize = 2_000;
/// The share of the page that images cover, those over each other counted twice.
pub(super) fn share(page: &PdfPage<'_>) -> f32 {
    let images = page.objects().iter().take(MAX_OBJECTS).filter(|object| object.as_image_object().is_some());
    let area = |(width, height): (f32, f32)| (width * height).abs();
    let covered: f32 = images
        .filter_map(|image| image.bounds().ok())
        .map(|bounds| area((bounds.width().value, bounds.height().value)))
        .sum();
    covered / area((page.width().value, page.height().value)).max(1.0)
}

/// The page in shades of grey, and its pixels an inch; none when it is blank, or cannot be drawn.
pub(super) fn png(page: &PdfPage<'_>) -> Option<(Vec<u8>, f32)> {
    let (width, height) = (page.width().value, page.height().value);
    if ![width, height].iter().all(|side| (1.0..=MAX_SIDE).contains(side)) {
        return None;
    }
    let scale = scan_scale(width, height);
    // Thinner than a pixel is nothing that could be read.
    if scale * width.min(height) < 1.0 {
        return None;
    }
    let config = PdfRenderConfig::new()
        .scale_page_by_factor(scale)
        .set_format(PdfBitmapFormat::Gray)
        .use_grayscale_rendering(true)
        // With the order reversed, as it is otherwise, pdfium draws nothing where a pixel has one shade only.
        .set_reverse_byte_order(false);
    let bitmap = page.render_with_config(&config).ok()?;
    let (width, height) = (usize::try_from(bitmap.width()).ok()?, usize::try_from(bitmap.height()).ok()?);
    let pixels = bitmap.as_raw_bytes();
    // Rows may be padded.
    let stride = pixels.len().checked_div(height)?;
    let rows = pixels.chunks_exact(stride.max(1)).filter_map(|row| row.get(..width));
    let pixels: Vec<u8> = rows.flatten().copied().collect();
    if pixels.iter().all(|pixel| *pixel >= PAPER) {
        return None;
    }
    let density = scale * POINTS_PER_INCH;
    let encoded = grey_png(u32::try_from(width).ok()?, u32::try_from(height).ok()?, &pixels, density)?;
    Some((encoded, density))
}
