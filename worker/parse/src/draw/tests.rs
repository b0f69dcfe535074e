use super::*;
use crate::protocol::ImageFormat;

/// A page of 200 by 100 points with a line of text at the left, and a bar below it.
const PAGE: &[u8] = b"%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 4 0 R
 /Resources << /Font << /F 5 0 R >> >> >> endobj
4 0 obj << /Length 77 >> stream
BT /F 20 Tf 20 60 Td (quoted words) Tj ET
0 0 1 rg 150 10 40 20 re f
endstream endobj
5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
trailer << /Root 1 0 R /Size 6 >>
%%EOF
";

fn request(page: u32, width: u32, format: ImageFormat, marks: &[&str]) -> DrawRequest {
    DrawRequest {
        page,
        width,
        format,
        marks: marks.iter().map(|mark| (*mark).into()).collect(),
        words: Vec::new(),
        memory_bytes: 1 << 30,
        cpu_seconds: 10,
    }
}

fn drawn(request: &DrawRequest) -> Result<PageDrawing, DrawError> {
    draw(PAGE.to_vec(), request, Arc::default())
}

/// The image's pixels, three bytes each.
fn pixels(drawing: &PageDrawing) -> Vec<[u8; 3]> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(&drawing.image)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut bytes).unwrap();
    bytes.chunks_exact(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
}

#[test]
fn what_is_quoted_is_marked_where_it_stands_and_nothing_else() {
    let request = request(1, 400, ImageFormat::Png, &["quoted words"]);
    let drawing = drawn(&request).unwrap();
    assert!(drawing.answers(&request));
    assert_eq!((drawing.width, drawing.height), (400, 200));
    let [place] = drawing.boxes[..] else { panic!("{:?}", drawing.boxes) };
    assert!((15.0..=20.0).contains(&place.left) && (120.0..=145.0).contains(&place.right), "{place:?}");
    assert!((20.0..=27.0).contains(&place.top) && (40.0..=46.0).contains(&place.bottom), "{place:?}");
    let pixels = pixels(&drawing);
    let at = |x: usize, y: usize| pixels[y * 400 + x];
    // Paper within the mark, paper beside it, the bar, and ink below the mark.
    assert_eq!(at(44, 56), [255, 226, 92]);
    assert_eq!(at(390, 10), [255, 255, 255]);
    assert_eq!(at(340, 160), [0, 0, 255]);
    assert!(pixels.iter().any(|pixel| pixel.iter().all(|shade| *shade < 60)), "letters are dark");
}

#[test]
fn a_page_is_drawn_as_webp_too_and_a_page_that_is_not_there_is_not() {
    let webp = request(1, 200, ImageFormat::Webp, &[]);
    let drawing = drawn(&webp).unwrap();
    assert!(drawing.answers(&webp) && drawing.boxes.is_empty());
    let decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(&drawing.image)).unwrap();
    assert_eq!(decoder.dimensions(), (200, 100));
    for page in [0, 2] {
        let missing = drawn(&request(page, 200, ImageFormat::Png, &[]));
        assert_eq!(missing, Err(DrawError::NoSuchPage { pages: 1 }));
    }
    let damaged = draw(b"no PDF".to_vec(), &webp, Arc::default());
    assert_eq!(damaged, Err(DrawError::Damaged));
}

#[test]
fn what_does_not_answer_a_request_is_not_believed() {
    let request = request(1, 400, ImageFormat::Png, &[]);
    let good = drawn(&request).unwrap();
    let far = PageBox { left: 0.0, top: 0.0, right: 900.0, bottom: 10.0 };
    let undone = PageBox { left: f32::NAN, top: 0.0, right: 10.0, bottom: 10.0 };
    for bad in [
        PageDrawing { image: b"<svg>".to_vec(), ..good.clone() },
        PageDrawing { width: 401, ..good.clone() },
        PageDrawing { width: 399, ..good.clone() },
        PageDrawing { height: 0, ..good.clone() },
        PageDrawing { page_width: f32::INFINITY, ..good.clone() },
        PageDrawing { boxes: vec![far], ..good.clone() },
        PageDrawing { boxes: vec![undone], ..good.clone() },
        PageDrawing { boxes: vec![far; crate::protocol::MAX_BOXES + 1], ..good.clone() },
    ] {
        assert!(!bad.answers(&request), "{bad:?}");
    }
}
