//! The parsing child against hostile and broken files: each ends with the right code, and the next document is parsed
//! as if nothing had happened.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails is a test that fails")]

use std::{
    io,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use lectern_parse::protocol::{OutlineEntry, ParseError, ParseFrame, ParseOptions, SourceKind};
use lectern_sandbox::{ParseRequest, Sandbox, SandboxConfig, SandboxError};
use lectern_worker::source::pdf::is_without_text;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::support::pdf::{
    OpensWith, PdfBuilder, deflated_again, deflated_run, encrypted_pdf, pdf_with_pages, text_content,
};

const MIB: usize = 1024 * 1024;

fn config() -> SandboxConfig {
    SandboxConfig {
        memory_bytes: 512 * 1024 * 1024,
        cpu_seconds: 60,
        page_wall: Duration::from_secs(20),
        total_wall: Duration::from_mins(1),
        ..SandboxConfig::new(PathBuf::from(env!("CARGO_BIN_EXE_lectern")))
    }
}

#[derive(Debug, Default)]
struct Parsed {
    title: Option<String>,
    pages_total: u32,
    pages: Vec<(u32, String)>,
    /// Of the outline: the page, the depth and the title.
    sections: Vec<(u32, u8, String)>,
    warnings: Vec<String>,
}

impl Parsed {
    fn letters(&self) -> u64 {
        let letters =
            self.pages.iter().flat_map(|(_, text)| text.chars()).filter(|c| !c.is_whitespace()).count();
        u64::try_from(letters).unwrap()
    }

    fn text(&self) -> String {
        self.pages.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

async fn collect(sandbox: &Sandbox, bytes: &[u8], options: ParseOptions) -> Result<Parsed, ParseError> {
    let request = ParseRequest { kind: SourceKind::Pdf, source: bytes, options };
    let mut stream = sandbox.parse(request).await.expect("the child starts");
    let mut parsed = Parsed::default();
    while let Some(frame) = stream.next().await? {
        match frame {
            ParseFrame::Start { pages_total, title, .. } => {
                (parsed.pages_total, parsed.title) = (pages_total, title);
            }
            ParseFrame::Page { number, text, sections, warning, .. } => {
                let section = |section: OutlineEntry| (number, section.level, section.title);
                parsed.sections.extend(sections.into_iter().map(section));
                parsed.pages.push((number, text));
                parsed.warnings.extend(warning);
            }
            ParseFrame::Warning(warning) => parsed.warnings.push(warning.code),
            other => panic!("a PDF has no {other:?}"),
        }
    }
    Ok(parsed)
}

async fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    collect(&Sandbox::new(config()), bytes, ParseOptions::default()).await
}

/// The code that a file ends with, after making sure that the same sandbox still parses a good one.
async fn code_of(config: SandboxConfig, bytes: &[u8], options: ParseOptions) -> Option<&'static str> {
    let sandbox = Sandbox::new(config);
    let outcome = collect(&sandbox, bytes, options).await;
    let good =
        collect(&Sandbox::new(self::config()), &pdf_with_pages(&["still here"]), ParseOptions::default())
            .await;
    assert_eq!(good.unwrap().text(), "still here");
    outcome.err().map(|error| error.code())
}

async fn code(bytes: &[u8]) -> Option<&'static str> {
    code_of(config(), bytes, ParseOptions::default()).await
}

/// A hostile file may be survived by the parser or end the child; it must not do anything else.
async fn is_contained(bytes: &[u8]) {
    let config = SandboxConfig { page_wall: Duration::from_secs(4), ..config() };
    let code = code_of(config, bytes, ParseOptions::default()).await;
    assert!(matches!(code, None | Some("damaged" | "parser_crashed" | "too_large")), "{code:?}");
}

#[tokio::test]
async fn a_good_pdf_comes_out_page_by_page_with_its_title() {
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    pdf.title("On Lecterns (2nd edition)");
    for text in ["A lectern holds a book.\nIt stands on a desk.", "", "Café and naïve are words."] {
        pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &text_content(text));
    }
    let parsed = parse(&pdf.finish()).await.unwrap();
    assert_eq!(parsed.title.as_deref(), Some("On Lecterns (2nd edition)"));
    assert_eq!(parsed.pages_total, 3);
    let expected = ["A lectern holds a book.\nIt stands on a desk.", "", "Café and naïve are words."];
    assert_eq!(parsed.pages, (1..).zip(expected.map(str::to_owned)).collect::<Vec<_>>());
    assert!(parsed.warnings.is_empty());
}

/// A PDF of three pages with an outline that is made when the pages' objects are known.
fn outlined(outline: impl FnOnce(&mut PdfBuilder, &[usize])) -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    for text in ["one", "two", "three"] {
        pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &text_content(text));
    }
    let pages = pdf.page_numbers().to_vec();
    outline(&mut pdf, &pages);
    pdf.finish()
}

#[tokio::test]
async fn the_outline_tells_the_sections_of_each_page_however_it_leads_there() {
    let pdf = outlined(|pdf, pages| {
        let at = |page: usize| format!("[{} 0 R /XYZ 0 800 null]", pages[page]);
        pdf.catalog(&format!("/Dests << /Old << /D {} >> >> ", at(1)));
        let leaf = pdf.add(format!("<< /Limits [(new) (new)] /Names [(new) {}] >>", at(2)));
        let names = pdf.add(format!("<< /Dests << /Kids [{leaf} 0 R] >> >>"));
        pdf.catalog(&format!("/Names {names} 0 R "));
        pdf.outline(&[
            (0, "Part  I", format!("/Dest {}", at(0))),
            (1, "By an action", format!("/A << /S /GoTo /D {} >>", at(0))),
            (2, "By an old name", "/Dest /Old".to_owned()),
            (1, "By a new name", "/Dest (new)".to_owned()),
            (0, "By a number", "/Dest [2 /Fit]".to_owned()),
            (0, "To another place", "/A << /S /URI /URI (https://example.com) >>".to_owned()),
            (0, "To no page", "/Dest [99 /Fit]".to_owned()),
            (0, " ", "/Dest [2 /Fit]".to_owned()),
        ]);
    });
    let section = |page, level, title: &str| (page, level, title.to_owned());
    let expected = [
        section(1, 1, "Part I"),
        section(1, 2, "By an action"),
        section(2, 3, "By an old name"),
        section(3, 2, "By a new name"),
        section(3, 1, "By a number"),
    ];
    assert_eq!(parse(&pdf).await.unwrap().sections, expected);
    let second = ParseOptions { from_page: Some(2), to_page: Some(2), ..ParseOptions::default() };
    let selected = collect(&Sandbox::new(config()), &pdf, second).await.unwrap();
    assert_eq!(selected.sections, expected[2..3]);
}

#[tokio::test]
async fn an_outline_that_is_broken_costs_no_page() {
    let in_a_circle = outlined(|pdf, pages| {
        let own = pdf.next_number();
        let place = format!("/Dest [{} 0 R /Fit]", pages[0]);
        pdf.add(format!("<< /Title (again) {place} /Next {own} 0 R /First {own} 0 R >>"));
        pdf.catalog(&format!("/Outlines << /First {own} 0 R >> "));
    });
    let parsed = parse(&in_a_circle).await.unwrap();
    assert_eq!(parsed.sections, [(1, 1, "again".to_owned())]);
    let too_many = outlined(|pdf, pages| {
        let place = format!("/Dest [{} 0 R /Fit]", pages[0]);
        pdf.outline(&vec![(0, "one of many", place); 6_000]);
    });
    assert_eq!(parse(&too_many).await.unwrap().sections.len(), 5_000);
    for garbage in
        ["/Outlines 7 ", "/Outlines << /First [1 2] >> ", "/Outlines << /First << /Title 7 /Dest (x) >> >> "]
    {
        let parsed = parse(&outlined(|pdf, _| pdf.catalog(garbage))).await.unwrap();
        assert_eq!((parsed.pages.len(), parsed.sections.len()), (3, 0), "{garbage}");
    }
}

#[tokio::test]
async fn only_the_selected_pages_are_read_and_keep_their_numbers() {
    let pdf = pdf_with_pages(&["one", "two", "three", "four"]);
    let options = ParseOptions { from_page: Some(3), to_page: Some(99), ..ParseOptions::default() };
    let parsed = collect(&Sandbox::new(config()), &pdf, options).await.unwrap();
    assert_eq!(parsed.pages, [(3, "three".to_owned()), (4, "four".to_owned())]);
}

#[tokio::test]
async fn a_range_behind_the_last_page_is_an_error_that_names_the_number_of_pages() {
    let options = ParseOptions { from_page: Some(3), ..ParseOptions::default() };
    let error =
        collect(&Sandbox::new(config()), &pdf_with_pages(&["one", "two"]), options).await.unwrap_err();
    assert_eq!(error.code(), "invalid_page_range");
    assert!(error.to_string().contains("2 pages"), "{error}");
}

#[tokio::test]
async fn an_empty_file_is_damaged_and_said_to_be_empty() {
    let error = parse(b"").await.unwrap_err();
    assert_eq!(error.code(), "damaged");
    assert!(error.to_string().starts_with("The file is empty."), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_pdf_is_damaged() {
    assert_eq!(code(b"<!doctype html><p>Not found</p>").await, Some("damaged"));
    assert_eq!(code(&vec![0; MIB]).await, Some("damaged"));
}

#[tokio::test]
async fn a_file_cut_off_in_its_first_half_never_passes_for_a_whole_one() {
    let pages: Vec<String> = (0..20).map(|page| format!("page {page}\n").repeat(20)).collect();
    let pdf = pdf_with_pages(&pages.iter().map(String::as_str).collect::<Vec<_>>());
    for part in [2, 10, 100] {
        match parse(&pdf[..pdf.len() / part]).await {
            Ok(parsed) => {
                assert!(parsed.pages.len() < 20 || !parsed.warnings.is_empty(), "1/{part}: {parsed:?}");
            }
            Err(error) => assert_eq!(error.code(), "damaged"),
        }
    }
}

#[tokio::test]
async fn a_file_that_needs_a_password_says_so() {
    assert_eq!(code(&encrypted_pdf(OpensWith::Password)).await, Some("password_required"));
}

#[tokio::test]
async fn a_file_protected_against_changes_only_is_read() {
    assert_eq!(parse(&encrypted_pdf(OpensWith::Nothing)).await.unwrap().text(), "The vault is open.");
}

#[tokio::test]
async fn a_scan_has_pages_and_no_text() {
    let mut pdf = PdfBuilder::new();
    let image = pdf.add_stream(
        "/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 8",
        &[0x80; 64],
    );
    for _ in 0..3 {
        pdf.add_page(&format!("<< /XObject << /I1 {image} 0 R >> >>"), b"q 595 0 0 842 0 0 cm /I1 Do Q");
    }
    let parsed = parse(&pdf.finish()).await.unwrap();
    assert_eq!(parsed.pages.len(), 3);
    assert!(is_without_text(parsed.letters(), 3));
}

#[tokio::test]
async fn ten_thousand_pages_are_too_many_unless_a_range_is_chosen() {
    let mut pdf = PdfBuilder::new();
    (0..10_000).for_each(|_| pdf.add_empty_page());
    let pdf = pdf.finish();
    assert_eq!(code(&pdf).await, Some("too_many_pages"));
    let options = ParseOptions { from_page: Some(9_000), to_page: Some(9_001), ..ParseOptions::default() };
    assert_eq!(collect(&Sandbox::new(config()), &pdf, options).await.unwrap().pages.len(), 2);
}

#[tokio::test]
async fn more_text_than_allowed_is_too_large() {
    let options = ParseOptions { max_chars: 20, ..ParseOptions::default() };
    let pdf = pdf_with_pages(&["twelve chars", "and twelve more"]);
    assert_eq!(code_of(config(), &pdf, options).await, Some("too_large"));
}

#[tokio::test]
async fn deeply_nested_arrays_are_contained() {
    let nested = [vec![b'['; 2 * MIB], vec![b']'; 2 * MIB]].concat();
    let mut pdf = PdfBuilder::new();
    let array = pdf.add(&nested);
    pdf.add_page_with("<< >>", &format!("{array} 0 R"));
    is_contained(&pdf.finish()).await;

    let mut pdf = PdfBuilder::new();
    pdf.add_page("<< >>", &[b"BT ".as_slice(), &nested, b" TJ ET"].concat());
    is_contained(&pdf.finish()).await;
}

#[tokio::test]
async fn a_flate_bomb_is_contained() {
    let once = deflated_run(b' ', 1024 * MIB);
    let twice = deflated_again(&once);
    assert!(twice.len() * 4_000 < 1024 * MIB, "{} bytes are no bomb", twice.len());
    for (filter, data) in [("/FlateDecode", once), ("[/FlateDecode /FlateDecode]", twice)] {
        let mut pdf = PdfBuilder::new();
        let content = pdf.add_stream(&format!("/Filter {filter}"), &data);
        pdf.add_page_with("<< >>", &format!("{content} 0 R"));
        is_contained(&pdf.finish()).await;
    }
}

#[tokio::test]
async fn a_form_that_draws_itself_is_contained() {
    let mut pdf = PdfBuilder::new();
    let form = pdf.next_number();
    let resources = format!("<< /XObject << /F {form} 0 R >> >>");
    pdf.add_stream(
        &format!("/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources {resources}"),
        b"/F Do /F Do",
    );
    pdf.add_page(&resources, b"/F Do");
    is_contained(&pdf.finish()).await;
}

/// Forms that each draw the next one ten times.
fn fan_out(depth: usize) -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    let entries = "/Type /XObject /Subtype /Form /BBox [0 0 595 842]";
    let text = text_content("ha ha ha");
    let mut form = pdf.add_stream(&format!("{entries} /Resources << /Font << /F1 {font} 0 R >> >>"), &text);
    for _ in 0..depth {
        let resources = format!("<< /XObject << /F {form} 0 R >> >>");
        form = pdf.add_stream(&format!("{entries} /Resources {resources}"), &b"/F Do ".repeat(10));
    }
    pdf.add_page(&format!("<< /XObject << /F {form} 0 R >> >>"), b"/F Do");
    pdf.finish()
}

#[tokio::test]
async fn forms_that_multiply_are_contained() {
    is_contained(&fan_out(12)).await;
}

#[tokio::test]
async fn a_child_that_does_not_come_to_an_end_is_stopped() {
    let page = "a line of the book of sand\n".repeat(60);
    let endless = pdf_with_pages(&vec![page.as_str(); 4_000]);
    let config = SandboxConfig { total_wall: Duration::from_millis(300), ..config() };
    assert_eq!(code_of(config, &endless, ParseOptions::default()).await, Some("parser_crashed"));
}

#[tokio::test]
async fn a_child_that_says_nothing_is_stopped() {
    let config = SandboxConfig { page_wall: Duration::from_millis(1), ..config() };
    let page = "a line of the book of sand\n".repeat(20_000);
    assert_eq!(
        code_of(config, &pdf_with_pages(&[&page]), ParseOptions::default()).await,
        Some("parser_crashed")
    );
}

#[tokio::test]
async fn a_child_that_runs_out_of_memory_ends_alone() {
    let config = SandboxConfig { memory_bytes: 160 * 1024 * 1024, ..config() };
    let heavy = [pdf_with_pages(&["heavy"]), vec![b'%'; 90 * MIB]].concat();
    assert_eq!(code_of(config, &heavy, ParseOptions::default()).await, Some("parser_crashed"));
}

#[tokio::test]
async fn a_child_that_runs_out_of_processor_time_ends_alone() {
    let page = "a line of the book of sand\n".repeat(60);
    let endless = pdf_with_pages(&vec![page.as_str(); 4_000]);
    let config = SandboxConfig { cpu_seconds: 0, ..config() };
    assert_eq!(code_of(config, &endless, ParseOptions::default()).await, Some("parser_crashed"));
}

#[tokio::test]
async fn more_output_than_allowed_ends_the_parse() {
    let config = SandboxConfig { max_output_bytes: 200, ..config() };
    let pdf = pdf_with_pages(&["many words ".repeat(30).as_str()]);
    assert_eq!(code_of(config, &pdf, ParseOptions::default()).await, Some("parser_crashed"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_child_that_answers_with_garbage_is_a_crash() {
    // It repeats its arguments: not a frame.
    let config = SandboxConfig { exe: PathBuf::from("/bin/echo"), ..config() };
    let pdf = pdf_with_pages(&["unheard"]);
    assert_eq!(code_of(config, &pdf, ParseOptions::default()).await, Some("parser_crashed"));
}

#[tokio::test]
async fn a_parser_that_cannot_be_started_is_not_the_documents_fault() {
    let sandbox = Sandbox::new(SandboxConfig { exe: PathBuf::from("/nonexistent/parser"), ..config() });
    let pdf = pdf_with_pages(&["fine"]);
    let request =
        ParseRequest { kind: SourceKind::Pdf, source: pdf.as_slice(), options: ParseOptions::default() };
    assert!(matches!(sandbox.parse(request).await, Err(SandboxError::Spawn(_))));
}

struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::Error::other("the disk is gone")))
    }
}

#[tokio::test]
async fn bytes_that_cannot_be_read_to_their_end_are_never_taken_for_the_whole_file() {
    let pdf = pdf_with_pages(&["whole"]);
    let request = ParseRequest {
        kind: SourceKind::Pdf,
        source: pdf.as_slice().chain(Broken),
        options: ParseOptions::default(),
    };
    let outcome = Sandbox::new(config()).parse(request).await;
    assert!(matches!(outcome, Err(SandboxError::Source(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_parse_waits_for_a_place_and_gets_that_of_a_dropped_one() {
    let sandbox = Sandbox::new(SandboxConfig { max_parallel: 1, ..config() });
    let pdf = pdf_with_pages(&["patience"]);
    let request =
        || ParseRequest { kind: SourceKind::Pdf, source: pdf.as_slice(), options: ParseOptions::default() };
    let first = sandbox.parse(request()).await.unwrap();
    let mut second = Box::pin(sandbox.parse(request()));
    tokio::select! {
        biased;
        _ = &mut second => panic!("two children at once"),
        () = std::future::ready(()) => {}
    }
    drop(first);
    assert!(second.await.unwrap().next().await.unwrap().is_some());
}

#[tokio::test]
async fn many_documents_at_once_all_come_out_whole() {
    let sandbox = Sandbox::new(SandboxConfig { max_parallel: 3, ..config() });
    let parses = (0..12).map(|number| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let text = format!("document {number}");
            let parsed =
                collect(&sandbox, &pdf_with_pages(&[&text, "second page"]), ParseOptions::default()).await;
            assert_eq!(parsed.unwrap().pages, [(1, text), (2, "second page".to_owned())]);
        })
    });
    for parse in parses.collect::<Vec<_>>() {
        parse.await.unwrap();
    }
}
