use hayro::hayro_syntax::Pdf;

use super::*;

/// A page of 200 by 100 points with a bar on it.
const PAGE: &[u8] = b"%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 4 0 R >> endobj
4 0 obj << /Length 27 >> stream
0 0 1 rg 150 10 40 20 re f
endstream endobj
trailer << /Root 1 0 R /Size 5 >>
%%EOF
";

#[test]
fn a_scan_of_usual_size_is_drawn_at_full_density_and_a_poster_at_less() {
    assert!((scan_scale(595.0, 842.0) - SCAN_DENSITY / POINTS_PER_INCH).abs() < 0.01);
    for (width, height) in [(5_000.0, 7_000.0), (14_400.0, 1.0), (14_400.0, 14_400.0)] {
        let scale = scan_scale(width, height);
        assert!(width * height * scale * scale <= MAX_SCAN_PIXELS * 1.01);
        assert!(width * scale <= MAX_EDGE * 1.01);
    }
}

#[test]
fn a_scan_is_a_grey_png_that_tells_its_density_and_a_blank_page_is_none() {
    let settings = InterpreterSettings::default();
    let pdf = Pdf::new(PAGE.to_vec()).unwrap();
    let (image, density) = scan_png(&pdf.pages()[0], &settings).unwrap();
    let reader = png::Decoder::new(std::io::Cursor::new(image)).read_info().unwrap();
    let info = reader.info();
    assert_eq!((info.color_type, info.width, info.height), (png::ColorType::Grayscale, 833, 417));
    assert_eq!(info.pixel_dims.unwrap().xppu, 11_811);
    assert!((density - 300.0).abs() < 0.1);
    let blank = String::from_utf8(PAGE.to_vec()).unwrap().replace("/Contents 4 0 R", "");
    let blank = Pdf::new(blank.into_bytes()).unwrap();
    assert!(scan_png(&blank.pages()[0], &settings).is_none());
}

#[test]
fn the_noisiest_scan_fits_into_a_message() {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    let noise: Vec<u8> = noise.take(3_000 * 3_000).collect();
    let encoded = image::grey_png(3_000, 3_000, &noise, 300.0).unwrap();
    assert!(encoded.len() < 11 << 20, "{} bytes", encoded.len());
}
