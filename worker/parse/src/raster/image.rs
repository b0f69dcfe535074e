//! Pixels: marks painted over them, and the formats in which they are written.

use hayro::vello_cpu::Pixmap;
use image_webp::{ColorType, WebPEncoder};
use lectern_shared::model::page::PageBox;

use crate::protocol::ImageFormat;

/// The colour of a mark: what is below it shows through.
const MARK: [u8; 3] = [255, 226, 92];
/// The colour of its edge.
const EDGE: [u8; 3] = [214, 148, 0];
/// The most bytes of an image: it travels in one message, a third longer.
const MAX_BYTES: usize = 11 << 20;
const BYTES_PER_PIXEL: usize = 4;
const METRES_PER_INCH: f32 = 0.0254;

/// Paints marks over a page that was drawn with so many pixels a point.
pub(crate) fn mark(pixels: &mut Pixmap, boxes: &[PageBox], scale: (f32, f32)) {
    let (width, height) = (usize::from(pixels.width()), usize::from(pixels.height()));
    let data = pixels.data_as_u8_slice_mut();
    for place in boxes {
        let (left, right) = (pixel(place.left * scale.0, width), pixel(place.right * scale.0, width));
        let (top, bottom) = (pixel(place.top * scale.1, height), pixel(place.bottom * scale.1, height));
        for y in top..=bottom {
            for x in left..=right {
                let at = (y * width + x) * BYTES_PER_PIXEL;
                let Some([red, green, blue, _]) = data.get_mut(at..at + BYTES_PER_PIXEL) else { continue };
                let is_edge = x == left || x == right || y == top || y == bottom;
                for (shade, tint) in [red, green, blue].into_iter().zip(if is_edge { EDGE } else { MARK }) {
                    // As a felt pen does: paper takes its colour, and ink stays.
                    let multiplied = u16::from(*shade) * u16::from(tint) / 255;
                    *shade = u8::try_from(multiplied).unwrap_or(u8::MAX);
                }
            }
        }
    }
}

/// The pixel at a place, within the image.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the end is a limit"
)]
fn pixel(place: f32, end: usize) -> usize {
    (place.max(0.0) as usize).min(end.saturating_sub(1))
}

/// An image of pixels that nothing shines through; none when it is larger than can be sent.
pub(crate) fn encode(pixels: &Pixmap, format: ImageFormat) -> Option<Vec<u8>> {
    let (width, height) = (u32::from(pixels.width()), u32::from(pixels.height()));
    let opaque = pixels.data_as_u8_slice().chunks_exact(BYTES_PER_PIXEL).filter_map(<[u8]>::first_chunk::<3>);
    let rgb: Vec<u8> = opaque.flatten().copied().collect();
    let mut encoded = Vec::new();
    match format {
        ImageFormat::Png => {
            let mut encoder = png::Encoder::new(&mut encoded, width, height);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            encoder.set_compression(png::Compression::Fast);
            let mut writer = encoder.write_header().ok()?;
            writer.write_image_data(&rgb).ok()?;
            writer.finish().ok()?;
        }
        ImageFormat::Webp => {
            WebPEncoder::new(&mut encoded).encode(&rgb, width, height, ColorType::Rgb8).ok()?;
        }
    }
    (encoded.len() <= MAX_BYTES).then_some(encoded)
}

/// How bright each pixel is.
pub(crate) fn grey(pixels: &Pixmap) -> Vec<u8> {
    let brightness = |pixel: &[u8; 3]| {
        let [red, green, blue] = pixel.map(u32::from);
        // ITU-R BT.601, in 256ths.
        u8::try_from((red * 77 + green * 150 + blue * 29) >> 8).unwrap_or(u8::MAX)
    };
    let opaque = pixels.data_as_u8_slice().chunks_exact(BYTES_PER_PIXEL).filter_map(<[u8]>::first_chunk::<3>);
    opaque.map(brightness).collect()
}

/// Grey pixels as a PNG that says how many of them an inch has.
pub(crate) fn grey_png(width: u32, height: u32, pixels: &[u8], density: f32) -> Option<Vec<u8>> {
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
    let a_metre = (density / METRES_PER_INCH).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: a_metre,
        yppu: a_metre,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(encoded)
}
