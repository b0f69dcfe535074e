//! What a child may say, and what it may not.

use lectern_shared::model::page::PdfEngineName;

use super::*;
use crate::protocol::frame::{ParsedPart, SourceMetadata};

fn start(first: u32, last: u32) -> ChildMessage {
    let engine = PdfEngineName::Hayro;
    ChildMessage::Frame(ParseFrame::Start { pages_total: 9, first, last, title: None, engine })
}

fn page(number: u32, text: &str) -> ChildMessage {
    let size = Some(PageSize { width: 595.0, height: 842.0 });
    let text = text.to_owned();
    ChildMessage::Frame(ParseFrame::Page {
        number,
        text,
        sections: Vec::new(),
        warning: None,
        size,
        is_scan: false,
    })
}

fn order(max_pages: u32, max_chars: u64) -> FrameOrder {
    FrameOrder::new(SourceKind::Pdf, &ParseOptions { max_pages, max_chars, ..ParseOptions::default() })
}

fn code(answer: Result<Option<ParseFrame>, ParseError>) -> &'static str {
    answer.unwrap_err().code()
}

#[test]
fn pages_in_order_are_admitted_up_to_the_end() {
    let mut order = order(10, 100);
    assert!(order.admit(start(2, 3)).unwrap().is_some());
    assert!(order.admit(page(2, "a")).unwrap().is_some());
    assert!(order.admit(page(3, "b")).unwrap().is_some());
    assert!(order.admit(ChildMessage::Done).unwrap().is_none());
}

#[test]
fn a_page_before_the_start_is_a_crash() {
    assert_eq!(code(order(10, 100).admit(page(1, "a"))), "parser_crashed");
}

#[test]
fn a_page_that_was_not_announced_is_a_crash() {
    let mut order = order(10, 100);
    order.admit(start(1, 1)).unwrap();
    order.admit(page(1, "a")).unwrap();
    assert_eq!(code(order.admit(page(2, "b"))), "parser_crashed");
}

#[test]
fn an_end_with_pages_missing_is_a_crash() {
    let mut order = order(10, 100);
    order.admit(start(1, 2)).unwrap();
    order.admit(page(1, "a")).unwrap();
    assert_eq!(code(order.admit(ChildMessage::Done)), "parser_crashed");
}

#[test]
fn a_range_outside_the_document_or_above_the_limit_is_a_crash() {
    assert_eq!(code(order(10, 100).admit(start(0, 2))), "parser_crashed");
    assert_eq!(code(order(10, 100).admit(start(3, 2))), "parser_crashed");
    assert_eq!(code(order(10, 100).admit(start(8, 10))), "parser_crashed");
    assert_eq!(code(order(2, 100).admit(start(1, 3))), "parser_crashed");
}

#[test]
fn a_page_has_one_image_at_most_right_before_it_and_only_when_asked_for() {
    let image = |page| ChildMessage::Frame(ParseFrame::Image { page, png: vec![1, 2, 3], density: 300.0 });
    let options = ParseOptions { images: true, ..ParseOptions::default() };
    let begun = || {
        let mut order = FrameOrder::new(SourceKind::Pdf, &options);
        order.admit(start(1, 2)).unwrap();
        order
    };
    let mut order = begun();
    assert!(order.admit(image(1)).unwrap().is_some());
    assert!(order.admit(page(1, "")).unwrap().is_some());
    assert!(order.admit(image(2)).unwrap().is_some());
    assert_eq!(code(order.admit(image(2))), "parser_crashed");
    assert_eq!(code(begun().admit(image(2))), "parser_crashed");
    let mut unasked = FrameOrder::new(SourceKind::Pdf, &ParseOptions::default());
    unasked.admit(start(1, 2)).unwrap();
    assert_eq!(code(unasked.admit(image(1))), "parser_crashed");
}

fn about(title: Option<&str>, canonical_url: Option<&str>) -> ChildMessage {
    let (title, canonical_url) = (title.map(str::to_owned), canonical_url.map(str::to_owned));
    ChildMessage::Frame(ParseFrame::About(SourceMetadata {
        title,
        canonical_url,
        ..SourceMetadata::default()
    }))
}

fn warning(code: &str, message: &str) -> ChildMessage {
    let (code, message) = (code.to_owned(), message.to_owned());
    ChildMessage::Frame(ParseFrame::Warning(IngestionWarning { code, message, count: 1 }))
}

#[test]
fn a_title_longer_than_parsers_cut_it_is_a_crash() {
    let html = || FrameOrder::new(SourceKind::Html, &ParseOptions::default());
    let (longest, longer) = ("ä".repeat(MAX_TITLE), "ä".repeat(MAX_TITLE + 1));
    assert!(html().admit(about(Some(&longest), None)).unwrap().is_some());
    assert_eq!(code(html().admit(about(Some(&longer), None))), "parser_crashed");
    assert_eq!(code(html().admit(about(Some("a\0b"), None))), "parser_crashed");
    let start = |title: &str| {
        ChildMessage::Frame(ParseFrame::Start {
            pages_total: 1,
            first: 1,
            last: 1,
            title: Some(title.to_owned()),
            engine: PdfEngineName::Hayro,
        })
    };
    assert!(order(10, 100).admit(start(&longest)).unwrap().is_some());
    assert_eq!(code(order(10, 100).admit(start(&longer))), "parser_crashed");
    let heading = |title: &str| {
        let what = MarkKind::Heading { level: 1, title: title.to_owned() };
        ChildMessage::Frame(ParseFrame::Part(ParsedPart {
            text: "a".to_owned(),
            marks: vec![TextMark { at: 0, what }],
        }))
    };
    assert!(html().admit(heading(&longest)).unwrap().is_some());
    assert_eq!(code(html().admit(heading(&longer))), "parser_crashed");
}

#[test]
fn an_address_that_is_none_of_the_web_is_a_crash() {
    let admit =
        |url: &str| FrameOrder::new(SourceKind::Html, &ParseOptions::default()).admit(about(None, Some(url)));
    let of_length =
        |length: usize| ["https://example.org/", &"a".repeat(length)].concat()[..length].to_owned();
    for url in ["https://example.org/mills?x=1", "http://[::1]:8080/", &of_length(MAX_URL)] {
        assert!(admit(url).unwrap().is_some(), "{url}");
    }
    for url in [
        "",
        "/mills",
        "javascript:alert(1)",
        "ftp://example.org/",
        "https://example.org/a b",
        " https://example.org/",
        "https://example.org/\0",
        &of_length(MAX_URL + 1),
    ] {
        assert_eq!(code(admit(url)), "parser_crashed", "{url}");
    }
}

#[test]
fn warnings_are_bounded_in_number_and_length() {
    let mut parts = FrameOrder::new(SourceKind::Text, &ParseOptions::default());
    for _ in 0..MAX_WARNINGS {
        assert!(parts.admit(warning("odd", "Something is odd.")).unwrap().is_some());
    }
    assert_eq!(code(parts.admit(warning("odd", "Something is odd."))), "parser_crashed");
    let longer = "ä".repeat(MAX_SENTENCE + 1);
    for (code_word, message) in [("odd", longer.as_str()), (longer.as_str(), "Odd."), ("o\0d", "Odd.")] {
        assert_eq!(code(order(10, 100).admit(warning(code_word, message))), "parser_crashed");
    }
}

#[test]
fn a_failure_or_a_page_that_explains_itself_at_length_is_a_crash() {
    let unsupported = |what: &str| ChildMessage::Failed(ParseError::Unsupported(what.to_owned()));
    assert_eq!(code(order(10, 100).admit(unsupported("a ZIP archive"))), "unsupported_content_type");
    let longer = "ä".repeat(MAX_SENTENCE + 1);
    assert_eq!(code(order(10, 100).admit(unsupported(&longer))), "parser_crashed");
    let mut order = order(10, 100);
    order.admit(start(1, 1)).unwrap();
    let page = ChildMessage::Frame(ParseFrame::Page {
        number: 1,
        text: String::new(),
        sections: Vec::new(),
        warning: Some(longer),
        size: None,
        is_scan: false,
    });
    assert_eq!(code(order.admit(page)), "parser_crashed");
}

#[test]
fn a_page_without_a_sane_size_and_an_image_without_a_sane_density_are_crashes() {
    for side in [0.0, -1.0, f32::NAN, f32::INFINITY, MAX_SIDE * 2.0] {
        let mut order = order(10, 100);
        order.admit(start(1, 1)).unwrap();
        let size = Some(PageSize { width: 595.0, height: side });
        let page = ParseFrame::Page {
            number: 1,
            text: String::new(),
            sections: Vec::new(),
            warning: None,
            size,
            is_scan: true,
        };
        assert_eq!(code(order.admit(ChildMessage::Frame(page))), "parser_crashed", "{side}");
    }
    let options = ParseOptions { images: true, ..ParseOptions::default() };
    for density in [0.0, f32::NAN, f32::INFINITY, 1e9] {
        let mut order = FrameOrder::new(SourceKind::Pdf, &options);
        order.admit(start(1, 1)).unwrap();
        let image = ParseFrame::Image { page: 1, png: vec![1], density };
        assert_eq!(code(order.admit(ChildMessage::Frame(image))), "parser_crashed", "{density}");
    }
}

#[test]
fn more_marks_than_the_text_has_room_for_are_a_crash() {
    let rows = |text: &str, rows: u64| {
        let marks = (1..=rows).map(|row| TextMark { at: 0, what: MarkKind::Row(row) }).collect();
        ChildMessage::Frame(ParseFrame::Part(ParsedPart { text: text.to_owned(), marks }))
    };
    let mut parts = FrameOrder::new(SourceKind::Table, &ParseOptions::default());
    assert!(parts.admit(rows("äöü", MARKS_BESIDES)).unwrap().is_some());
    assert!(parts.admit(rows("", 3)).unwrap().is_some(), "all parts so far count");
    assert_eq!(code(parts.admit(rows("", 1))), "parser_crashed");
    let mut parts = FrameOrder::new(SourceKind::Text, &ParseOptions::default());
    parts.admit(rows("a", MARKS_BESIDES)).unwrap();
    let heading = TextMark { at: 0, what: MarkKind::Heading { level: 1, title: "T".to_owned() } };
    let headings = |count| ChildMessage::Frame(ParseFrame::Headings(vec![heading.clone(); count]));
    assert!(parts.admit(headings(1)).unwrap().is_some());
    assert_eq!(code(parts.admit(headings(1))), "parser_crashed");
}

#[test]
fn more_headings_than_are_kept_are_a_crash() {
    let part = ParsedPart { text: "x".repeat(MAX_HEADINGS), marks: Vec::new() };
    let heading = TextMark { at: 0, what: MarkKind::Heading { level: 1, title: "T".to_owned() } };
    let headings = |count| ChildMessage::Frame(ParseFrame::Headings(vec![heading.clone(); count]));
    let mut parts = FrameOrder::new(SourceKind::Text, &ParseOptions::default());
    parts.admit(ChildMessage::Frame(ParseFrame::Part(part))).unwrap();
    assert!(parts.admit(headings(MAX_HEADINGS)).unwrap().is_some());
    assert_eq!(code(parts.admit(headings(1))), "parser_crashed");
}

#[test]
fn text_with_nul_is_a_crash() {
    let mut order = order(10, 100);
    order.admit(start(1, 1)).unwrap();
    assert_eq!(code(order.admit(page(1, "a\0b"))), "parser_crashed");
}

#[test]
fn parts_are_admitted_without_pages_and_with_marks_inside_them_only() {
    let part = |text: &str, at: &[u64]| {
        let marks = at.iter().map(|at| TextMark { at: *at, what: MarkKind::Row(at + 1) }).collect();
        ChildMessage::Frame(ParseFrame::Part(ParsedPart { text: text.to_owned(), marks }))
    };
    let order =
        || FrameOrder::new(SourceKind::Table, &ParseOptions { max_chars: 9, ..ParseOptions::default() });
    let mut parts = order();
    assert!(
        parts.admit(ChildMessage::Frame(ParseFrame::About(SourceMetadata::default()))).unwrap().is_some()
    );
    assert!(parts.admit(part("äöü", &[0, 3])).unwrap().is_some());
    assert_eq!(code(order().admit(part("äöü", &[4]))), "parser_crashed");
    assert_eq!(code(order().admit(part("äöü", &[2, 1]))), "parser_crashed");
    assert_eq!(code(order().admit(page(1, "a"))), "parser_crashed");
    assert_eq!(code(parts.admit(part("seven c", &[]))), "too_large");
    assert!(parts.admit(ChildMessage::Done).unwrap().is_none());
    let again = parts.admit(ChildMessage::Frame(ParseFrame::About(SourceMetadata::default())));
    assert_eq!(code(again), "parser_crashed");
}

#[test]
fn headings_of_the_whole_text_are_admitted_in_order_and_within_it() {
    let heading = |at| TextMark { at, what: MarkKind::Heading { level: 1, title: "T".to_owned() } };
    let headings =
        |at: &[u64]| ChildMessage::Frame(ParseFrame::Headings(at.iter().copied().map(heading).collect()));
    let begun = || {
        let mut order = FrameOrder::new(SourceKind::Text, &ParseOptions::default());
        let text = "0123456789".to_owned();
        order.admit(ChildMessage::Frame(ParseFrame::Part(ParsedPart { text, marks: Vec::new() }))).unwrap();
        order
    };
    let mut order = begun();
    assert!(order.admit(headings(&[0, 5])).unwrap().is_some());
    assert!(order.admit(headings(&[5, 9])).unwrap().is_some());
    assert_eq!(code(order.admit(headings(&[8]))), "parser_crashed");
    assert_eq!(code(begun().admit(headings(&[11]))), "parser_crashed");
    let row = TextMark { at: 0, what: MarkKind::Row(1) };
    assert_eq!(code(begun().admit(ChildMessage::Frame(ParseFrame::Headings(vec![row])))), "parser_crashed");
}

#[test]
fn text_above_the_limit_is_refused_even_if_the_child_did_not_count() {
    let mut order = order(10, 3);
    order.admit(start(1, 2)).unwrap();
    order.admit(page(1, "äöü")).unwrap();
    assert_eq!(code(order.admit(page(2, "x"))), "too_large");
}
