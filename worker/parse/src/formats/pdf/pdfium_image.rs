//! Pages that are images: how they are told, and how they are handed out for text recognition.

use pdfium_render::prelude::{
    PdfBitmapFormat, PdfPage, PdfPageObjectCommon, PdfPageObjectsCommon, PdfRenderConfig,
};

/// Pixels of an inch. Recognition is at its best with 300.
const DENSITY: f32 = 300.0;
const POINTS_PER_INCH: f32 = 72.0;
/// The most pixels of a page: A4 at the full density. Even noise, which does not compress, fits into one message.
const MAX_PIXELS: f32 = 9_000_000.0;
/// The longest edge, in pixels.
const MAX_EDGE: f32 = 16_000.0;
/// A page with fewer letters than this says nothing: at most a page number.
const FEW_LETTERS: usize = 4;
/// A scan may carry a stamp, or its scanner's footer, of at most so many letters.
const FOOTER_LETTERS: usize = 100;
/// Objects of a page that are looked at.
const MAX_OBJECTS: usize = 2_000;
/// From this brightness on paper is white.
const PAPER: u8 = 240;

/// Whether a page that says `text` is in all likelihood an image of text.
pub(super) fn is_scan(page: &PdfPage<'_>, text: &str) -> bool {
    let letters = text.chars().filter(|c| !c.is_whitespace()).take(FOOTER_LETTERS + 1).count();
    letters < FEW_LETTERS || (letters <= FOOTER_LETTERS && image_share(page) >= 0.5)
}

/// The share of the page that images cover, those over each other counted twice.
fn image_share(page: &PdfPage<'_>) -> f32 {
    let images = page.objects().iter().take(MAX_OBJECTS).filter(|object| object.as_image_object().is_some());
    let area = |(width, height): (f32, f32)| (width * height).abs();
    let covered: f32 = images
        .filter_map(|image| image.bounds().ok())
        .map(|bounds| area((bounds.width().value, bounds.height().value)))
        .sum();
    covered / area((page.width().value, page.height().value)).max(1.0)
}

/// The page in shades of grey; none when it is blank, or cannot be drawn.
pub(super) fn png(page: &PdfPage<'_>) -> Option<Vec<u8>> {
    let scale = scale(page.width().value, page.height().value)?;
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
    encode(
        u32::try_from(width).ok()?,
        u32::try_from(height).ok()?,
        &pixels,
        DENSITY / POINTS_PER_INCH / scale,
    )
}

/// How many pixels a point of the page becomes; none when the page has no size to speak of.
fn scale(width: f32, height: f32) -> Option<f32> {
    let sane = |edge: f32| edge.is_finite() && edge >= 1.0;
    if !sane(width) || !sane(height) {
        return None;
    }
    let scale = (DENSITY / POINTS_PER_INCH)
        .min((MAX_PIXELS / (width * height)).sqrt())
        .min(MAX_EDGE / width.max(height));
    // Thinner than a pixel is nothing that could be read.
    (scale * width.min(height) >= 1.0).then_some(scale)
}

/// Grey pixels as a PNG that says how many of them an inch has: `DENSITY / shrunk`.
fn encode(width: u32, height: u32, pixels: &[u8], shrunk: f32) -> Option<Vec<u8>> {
    const METRE: f32 = 39.37;
    let mut encoded = Vec::new();
    let mut encoder = png::Encoder::new(&mut encoded, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "300 an inch at most, and `as` saturates"
    )]
    let density = (DENSITY / shrunk.max(1.0) * METRE).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: density,
        yppu: density,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_usual_size_is_drawn_at_full_density_and_a_poster_at_less() {
        let full = DENSITY / POINTS_PER_INCH;
        assert!((scale(595.0, 842.0).unwrap() - full).abs() < 0.01);
        for (width, height) in [(5_000.0, 7_000.0), (14_400.0, 1.0), (14_400.0, 14_400.0)] {
            let scale = scale(width, height).unwrap();
            assert!(scale < full && width * height * scale * scale <= MAX_PIXELS * 1.01);
            assert!(width * scale <= MAX_EDGE * 1.01);
        }
    }

    #[test]
    fn a_page_without_a_size_is_not_drawn() {
        for (width, height) in
            [(0.0, 842.0), (f32::NAN, 842.0), (f32::INFINITY, 1.0), (595.0, -1.0), (1e9, 1.0)]
        {
            assert_eq!(scale(width, height), None, "{width} {height}");
        }
    }

    #[test]
    fn the_image_is_a_grey_png_that_tells_its_density() {
        let encoded = encode(3, 2, &[0, 128, 255, 255, 128, 0], 1.0).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(encoded)).read_info().unwrap();
        let mut pixels = [0; 6];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, [0, 128, 255, 255, 128, 0]);
        assert_eq!(reader.info().pixel_dims.unwrap().xppu, 11_811);
    }

    #[test]
    fn the_noisiest_page_fits_into_a_message() {
        let mut state = 1_u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        });
        let noise: Vec<u8> = noise.take(3_000 * 3_000).collect();
        let encoded = encode(3_000, 3_000, &noise, 1.0).unwrap();
        assert!(encoded.len() < 11 << 20, "{} bytes", encoded.len());
    }
}
