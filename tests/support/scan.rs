//! Scans made to order: pages of known text, drawn by the service itself, as the images of other PDFs; and tesseract, which
//! reads them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails is a test that fails")]

use std::{io::Write as _, path::Path, sync::Once};

use reqwest::{Method, StatusCode};

use super::{
    client::{Client, send},
    pdf::PdfBuilder,
    setup::Setup,
};

/// Width and height of the builder's pages, in points.
pub(crate) const PAGE: (f64, f64) = (595.0, 842.0);

/// How an image of a whole page lies on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanPlace {
    /// As it should be.
    Upright,
    /// Turned clockwise by so many degrees, so that readers have to turn their heads.
    Turned(u16),
    /// Upright for readers, as the image on a page that viewers turn clockwise by 90 degrees.
    UprightOnTurnedPage,
}

/// Settings under which the service finds the tesseract that the test command names. Without one it is said, once, what did
/// not run.
pub(crate) fn with_tesseract(setup: Setup) -> Option<Setup> {
    static MISSING: Once = Once::new();
    let program = std::env::var("TEST_TESSERACT").ok().filter(|program| !program.is_empty());
    let Some(program) = program else {
        // Not by `eprintln!`, which is shown of failed tests only.
        MISSING.call_once(|| {
            let text =
                "\n!!! TEST_TESSERACT is not set: the tests of reading scanned pages did NOT run !!!\n\n";
            let _ = std::io::stderr().write_all(text.as_bytes());
        });
        return None;
    };
    let folder = Path::new(&program).parent().and_then(Path::to_str).expect("TEST_TESSERACT is a path");
    let path = std::env::var("PATH").unwrap_or_default();
    Some(setup.env("PATH", &format!("{folder}:{path}")).env("LECTERN_OCR", "on"))
}

/// A page of a document, as large as the service draws it: a PNG of about 290 pixels an inch.
pub(crate) async fn drawn(client: &Client, document: &str, page: u32) -> Vec<u8> {
    let path = format!("/documents/{document}/pages/{page}?width=2400");
    let answer = send(client.request(Method::GET, &path)).await;
    assert_eq!(answer.status(), StatusCode::OK, "page {page}");
    answer.bytes().await.expect("bytes").to_vec()
}

/// A PDF with so many pages that show nothing but an image, the same on each.
pub(crate) fn scan(png: &[u8], place: ScanPlace, pages: usize) -> PdfBuilder {
    let mut pdf = PdfBuilder::new();
    let image = add_png(&mut pdf, png);
    let (width, height) = PAGE;
    let (matrix, turn) = match place {
        ScanPlace::Upright => (format!("{width} 0 0 {height} 0 0"), 0),
        // Viewers turn the page, and the image with it.
        ScanPlace::Turned(degrees) => (format!("{width} 0 0 {height} 0 0"), degrees),
        // Seen, the page is as high as it was wide, and the image shrinks to that height.
        ScanPlace::UprightOnTurnedPage => {
            (format!("0 {} -{width} 0 {width} 200", width * width / height), 90)
        }
    };
    let content = pdf.add_stream("", format!("q {matrix} cm /I1 Do Q").as_bytes());
    let resources = format!("<< /XObject << /I1 {image} 0 R >> >>");
    for _ in 0..pages {
        pdf.add_page_with(&resources, &format!("{content} 0 R /Rotate {turn}"));
    }
    pdf
}

/// Adds a page with a square of shades of grey that say nothing: clouds with grain, as a photo of fog has them.
pub(crate) fn add_photo(pdf: &mut PdfBuilder) {
    const SIDE: usize = 600;
    let mut random = 0x2545_f491_u32;
    let mut grain = || {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        random % 48
    };
    let pixels: Vec<u8> = (0..SIDE * SIDE)
        .map(|at| {
            let (x, y) = (at % SIDE, at / SIDE);
            let cloud = (x * y / 97 + x / 3 + y / 2) % 320;
            let shade = u32::try_from(cloud.min(320 - cloud)).expect("small");
            u8::try_from(40 + shade + grain()).expect("at most 247")
        })
        .collect();
    let entries = format!(
        "/Type /XObject /Subtype /Image /Width {SIDE} /Height {SIDE} /ColorSpace /DeviceGray /BitsPerComponent 8"
    );
    let image = pdf.add_stream(&entries, &pixels);
    let resources = format!("<< /XObject << /I1 {image} 0 R >> >>");
    pdf.add_page(&resources, b"q 495 0 0 742 50 50 cm /I1 Do Q");
}

/// A PNG as an image of the PDF. Both pack pixels in the same way, as long as nothing shines through them.
fn add_png(pdf: &mut PdfBuilder, png: &[u8]) -> usize {
    let mut rest = png.strip_prefix(b"\x89PNG\r\n\x1a\n").expect("a PNG");
    let (mut header, mut data) = (None, Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).expect("a length");
        let (name, behind) = behind.split_at(4);
        let (body, behind) = behind.split_at(length);
        match name {
            b"IHDR" => header = Some(body),
            b"IDAT" => data.extend_from_slice(body),
            _ => {}
        }
        // A checksum follows.
        rest = &behind[4..];
    }
    let header = header.expect("a header");
    let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let (width, height) = (number(0), number(4));
    let (space, colours) = match header[9] {
        0 => ("/DeviceGray", 1),
        2 => ("/DeviceRGB", 3),
        other => panic!("a PNG of colour type {other}"),
    };
    assert_eq!((header[8], header[12]), (8, 0), "eight bits a sample, not interlaced");
    let entries = format!(
        "/Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace {space} /BitsPerComponent 8 \
         /Filter /FlateDecode /DecodeParms << /Predictor 15 /Colors {colours} /BitsPerComponent 8 /Columns {width} >>"
    );
    pdf.add_stream(&entries, &data)
}

/// How much of `known` is in `read`, as a share: 1 when they are the same but for white space. Each letter that is missing,
/// wrong or too much counts.
pub(crate) fn likeness(known: &str, read: &str) -> f64 {
    let plain =
        |text: &str| -> Vec<char> { text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect() };
    let (known, read) = (plain(known), plain(read));
    let mut row: Vec<usize> = (0..=read.len()).collect();
    for (at, letter) in known.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in read.iter().enumerate() {
            let exchanged = corner + usize::from(letter != other);
            corner = row[column + 1];
            row[column + 1] = exchanged.min(corner + 1).min(row[column] + 1);
        }
    }
    let count = |letters: usize| f64::from(u32::try_from(letters).expect("a page"));
    1.0 - count(row[read.len()]) / count(known.len())
}
