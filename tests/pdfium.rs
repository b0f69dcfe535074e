//! The pdfium engine in the parsing child, within its limits, with the library that `TEST_PDFIUM_LIB` names.

use std::{io::Write as _, path::PathBuf, sync::Once, time::Duration};

use lectern_parse::protocol::{ParseError, ParseFrame, ParseOptions, SourceKind};
use lectern_sandbox::{ParseRequest, Sandbox, SandboxConfig};
use lectern_shared::config::{OcrProgram, OcrSettings, PdfSettings};
use lectern_worker::source::pdf::{PdfEngine, PdfEngineError, is_without_text};

use crate::support::pdf::{OpensWith, PdfBuilder, encrypted_pdf, pdf_with_pages, text_content};

/// The library that the test command names; without one it is said, once, what did not run.
fn library() -> Option<PathBuf> {
    static MISSING: Once = Once::new();
    let named = std::env::var_os("TEST_PDFIUM_LIB").filter(|named| !named.is_empty()).map(PathBuf::from);
    if named.is_none() {
        // Not by `eprintln!`, which is shown of failed tests only.
        MISSING.call_once(|| {
            let text =
                "\n!!! TEST_PDFIUM_LIB is not set: the tests of reading PDFs with pdfium did NOT run !!!\n\n";
            let _ = std::io::stderr().write_all(text.as_bytes());
        });
    }
    named
}

fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig {
        memory_bytes: 512 << 20,
        page_wall: Duration::from_secs(20),
        total_wall: Duration::from_mins(1),
        ..SandboxConfig::new(PathBuf::from(env!("CARGO_BIN_EXE_lectern")))
    })
}

async fn frames(bytes: &[u8], options: ParseOptions) -> Result<Vec<ParseFrame>, ParseError> {
    let request = ParseRequest { kind: SourceKind::Pdf, source: bytes, options };
    let mut stream = sandbox().parse(request).await.expect("the child starts");
    let mut frames = Vec::new();
    while let Some(frame) = stream.next().await? {
        frames.push(frame);
    }
    Ok(frames)
}

fn with(library: PathBuf) -> ParseOptions {
    ParseOptions { pdfium: Some(library), ..ParseOptions::default() }
}

fn texts(frames: &[ParseFrame]) -> Vec<&str> {
    let texts = frames.iter().filter_map(|frame| match frame {
        ParseFrame::Page { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Pages that show nothing but a dark square.
fn scan(pages: usize) -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let image = pdf.add_stream(
        "/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 8",
        &[0x20; 64],
    );
    for _ in 0..pages {
        pdf.add_page(&format!("<< /XObject << /I1 {image} 0 R >> >>"), b"q 595 0 0 842 0 0 cm /I1 Do Q");
    }
    pdf.finish()
}

#[tokio::test]
async fn pages_titles_and_divided_words_come_out_as_with_the_built_in_engine() {
    let Some(library) = library() else { return };
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    pdf.title("On Lecterns");
    for text in ["Given syntacti-\ncally familiar names.", "", "Caf\u{e9}"] {
        pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &text_content(text));
    }
    let frames = frames(&pdf.finish(), with(library)).await.unwrap();
    assert!(
        matches!(&frames[0], ParseFrame::Start { pages_total: 3, title: Some(title), .. } if title == "On Lecterns")
    );
    assert_eq!(texts(&frames), ["Given syntacti-\ncally familiar names.", "", "Caf\u{e9}"]);
}

#[tokio::test]
async fn text_that_reaches_over_the_edge_of_the_page_is_read() {
    let Some(library) = library() else { return };
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    let content = b"BT /F1 12 Tf 72 700 Td (inside) Tj 0 -900 Td (outside) Tj ET";
    pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), content);
    let frames = frames(&pdf.finish(), with(library)).await.unwrap();
    assert_eq!(texts(&frames), ["inside\noutside"]);
}

#[tokio::test]
async fn a_password_a_wrong_range_and_no_pdf_at_all_end_as_with_the_built_in_engine() {
    let Some(library) = library() else { return };
    let code = async |bytes: &[u8], options| frames(bytes, options).await.unwrap_err().code();
    assert_eq!(code(&encrypted_pdf(OpensWith::Password), with(library.clone())).await, "password_required");
    assert_eq!(code(b"<!doctype html>", with(library.clone())).await, "damaged");
    let beyond = ParseOptions { from_page: Some(3), ..with(library.clone()) };
    assert_eq!(code(&pdf_with_pages(&["one", "two"]), beyond).await, "invalid_page_range");
    let short = ParseOptions { max_chars: 5, ..with(library.clone()) };
    assert_eq!(code(&pdf_with_pages(&["twelve chars"]), short).await, "too_large");
    let open = frames(&encrypted_pdf(OpensWith::Nothing), with(library)).await.unwrap();
    assert_eq!(texts(&open), ["The vault is open."]);
}

#[tokio::test]
async fn pages_that_are_images_are_handed_out_as_such_when_asked_for() {
    let Some(library) = library() else { return };
    let asked = ParseOptions { images: true, ..with(library.clone()) };
    let seen = frames(&scan(3), asked.clone()).await.unwrap();
    let pages: Vec<_> = seen
        .iter()
        .filter_map(|frame| match frame {
            ParseFrame::Image { page, png, .. } => {
                assert!(png.starts_with(b"\x89PNG\r\n"));
                Some((*page, "image"))
            }
            ParseFrame::Page { number, .. } => Some((*number, "text")),
            _ => None,
        })
        .collect();
    assert_eq!(pages, [(1, "image"), (1, "text"), (2, "image"), (2, "text"), (3, "image"), (3, "text")]);
    let has_image =
        |frames: &[ParseFrame]| frames.iter().any(|frame| matches!(frame, ParseFrame::Image { .. }));
    assert!(!has_image(&frames(&scan(3), with(library)).await.unwrap()));
    // Neither text nor a blank page is an image.
    let text = "a page with enough on it to be read";
    assert!(!has_image(&frames(&pdf_with_pages(&[text, "", text]), asked).await.unwrap()));
}

#[tokio::test]
async fn without_the_library_the_built_in_engine_reads_and_the_owner_is_told() {
    let nowhere = PathBuf::from("/nonexistent/libpdfium.so");
    let frames = frames(&pdf_with_pages(&["still read"]), with(nowhere)).await.unwrap();
    assert!(matches!(&frames[0], ParseFrame::Warning(warning) if warning.code == "pdfium_unusable"));
    assert_eq!(texts(&frames), ["still read"]);
    assert!(!is_without_text(9, 1));
}

#[tokio::test]
async fn a_library_that_cannot_be_used_stops_the_start_with_what_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let fake = folder.path().join("libpdfium.so");
    std::fs::write(&fake, "no library").unwrap();
    let settings = PdfSettings { pdfium: Some(fake), ..PdfSettings::default() };
    let error = PdfEngine::choose(&settings, &sandbox()).await.unwrap_err();
    assert!(matches!(error, PdfEngineError::UnusableLibrary(_)), "{error}");
    assert!(error.to_string().starts_with("LECTERN_PDFIUM_LIB: "), "{error}");
}

#[tokio::test]
async fn the_named_library_is_tried_and_taken_and_a_missing_recogniser_stops_the_start() {
    let Some(library) = library() else { return };
    let named = PdfSettings { pdfium: Some(library.clone()), ..PdfSettings::default() };
    PdfEngine::choose(&named, &sandbox()).await.unwrap();
    let ocr = OcrSettings {
        program: OcrProgram::Command(vec!["no-such-recogniser".to_owned()]),
        memory_bytes: 1 << 30,
        timeout: Duration::from_secs(1),
        environment: Vec::new(),
        hidden: Vec::new(),
        network: false,
    };
    let settings = PdfSettings { ocr: Some(ocr), ..named };
    let error = PdfEngine::choose(&settings, &sandbox()).await.unwrap_err();
    assert!(error.to_string().contains("no-such-recogniser"), "{error}");
}
