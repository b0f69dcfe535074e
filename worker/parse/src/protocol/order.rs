//! What a child may still say, frame by frame: the parent's check, which believes nothing.

use lectern_shared::model::job::IngestionWarning;
use url::Url;

use super::{
    error::{ParseError, ParserCrash},
    frame::{ChildMessage, MAX_TITLE, MAX_URL, MarkKind, PageSize, ParseFrame, TextMark},
    request::{ParseOptions, SourceKind},
};

/// Most warnings of one document. No parser has more than a few kinds of them, and says each once.
const MAX_WARNINGS: u32 = 100;
/// The most sections that the outline of a PDF may name; parsers read no further.
pub(crate) const MAX_SECTIONS: usize = 5_000;
/// Longest code and longest sentence of a warning or a failure, in characters.
const MAX_SENTENCE: usize = 1_000;
/// So many more marks than characters there may be: where a sheet begins, a row may begin too.
const MARKS_BESIDES: u64 = 1_000;

/// The longest side of a page, in points.
pub(crate) const MAX_SIDE: f32 = 20_000.0;
/// The most pixels of an inch of a page's image.
const MAX_DENSITY: f32 = 2_400.0;

/// What the child may still send. A child that was taken over must not be able to send pages out of order, more than was
/// asked for, or text that the store refuses; nor to fill the store with what is no text of the document.
#[derive(Debug)]
pub struct FrameOrder {
    expected: ExpectedFrame,
    max_pages: u32,
    max_chars: u64,
    chars: u64,
    marks: u64,
    warnings: u32,
    sections: usize,
    /// Whether images were asked for.
    images: bool,
    /// The page whose image came last.
    image_of: Option<u32>,
    /// Where the last heading of the whole text is.
    heading_at: u64,
}

#[derive(Debug, Clone, Copy)]
enum ExpectedFrame {
    Start,
    Page {
        next: u32,
        last: u32,
    },
    Done,
    /// Anything that has no pages: what it says of itself, and then its parts.
    Parts {
        about: bool,
    },
}

impl FrameOrder {
    /// Before the first frame.
    pub fn new(kind: SourceKind, options: &ParseOptions) -> Self {
        Self {
            expected: if kind == SourceKind::Pdf {
                ExpectedFrame::Start
            } else {
                ExpectedFrame::Parts { about: false }
            },
            max_pages: options.max_pages,
            max_chars: options.max_chars,
            chars: 0,
            marks: 0,
            warnings: 0,
            sections: 0,
            images: options.images,
            image_of: None,
            heading_at: 0,
        }
    }

    /// The frame in the next message; none when the message is the last one.
    pub fn admit(&mut self, message: ChildMessage) -> Result<Option<ParseFrame>, ParseError> {
        let frame = match (message, self.expected) {
            (ChildMessage::Failed(error), _) if is_sane_failure(&error) => return Err(error),
            (ChildMessage::Done, ExpectedFrame::Done | ExpectedFrame::Parts { .. }) => return Ok(None),
            (ChildMessage::Failed(_), _)
            | (ChildMessage::Done, ExpectedFrame::Start | ExpectedFrame::Page { .. }) => {
                return Err(ParseError::Crashed(ParserCrash::BadOutput));
            }
            (ChildMessage::Frame(frame), _) => frame,
        };
        self.expected = self.after(&frame)?.ok_or(ParseError::Crashed(ParserCrash::BadOutput))?;
        Ok(Some(frame))
    }

    /// What is expected after `frame`; none when it is not what was expected.
    fn after(&mut self, frame: &ParseFrame) -> Result<Option<ExpectedFrame>, ParseError> {
        Ok(match (frame, self.expected) {
            (ParseFrame::Start { pages_total, first, last, title, engine: _ }, ExpectedFrame::Start)
                if (1..=*last).contains(first)
                    && last <= pages_total
                    && last - first < self.max_pages
                    && title.as_deref().is_none_or(is_title) =>
            {
                Some(ExpectedFrame::Page { next: *first, last: *last })
            }
            (
                ParseFrame::Page { number, text, sections, warning, size, is_scan: _ },
                ExpectedFrame::Page { next, last },
            ) if *number == next
                && is_clean(text)
                && sections.iter().all(|section| section.level > 0 && is_title(&section.title))
                && warning.as_deref().is_none_or(is_sentence)
                && size.is_none_or(is_size) =>
            {
                self.count(text)?;
                self.sections = self.sections.saturating_add(sections.len());
                if self.sections > MAX_SECTIONS {
                    return Ok(None);
                }
                Some(if next == last {
                    ExpectedFrame::Done
                } else {
                    ExpectedFrame::Page { next: next + 1, last }
                })
            }
            (ParseFrame::Image { page, density, .. }, expected @ ExpectedFrame::Page { next, .. })
                if self.images
                    && *page == next
                    && self.image_of != Some(next)
                    && (1.0..=MAX_DENSITY).contains(density) =>
            {
                self.image_of = Some(next);
                Some(expected)
            }
            (ParseFrame::About(about), ExpectedFrame::Parts { about: false })
                if about.title.as_deref().is_none_or(is_title)
                    && about.canonical_url.as_deref().is_none_or(is_address) =>
            {
                Some(ExpectedFrame::Parts { about: true })
            }
            (ParseFrame::Part(part), ExpectedFrame::Parts { about }) if is_clean(&part.text) => {
                let length = self.count(&part.text)?;
                let fits = are_in_order(&part.marks, length) && self.count_marks(&part.marks);
                fits.then_some(ExpectedFrame::Parts { about })
            }
            (ParseFrame::Headings(marks), expected @ ExpectedFrame::Parts { .. })
                if are_in_order(marks, self.chars)
                    && marks.first().is_none_or(|mark| mark.at >= self.heading_at)
                    && marks.iter().all(|mark| matches!(mark.what, MarkKind::Heading { .. })) =>
            {
                self.heading_at = marks.last().map_or(self.heading_at, |mark| mark.at);
                self.count_marks(marks).then_some(expected)
            }
            (ParseFrame::Warning(IngestionWarning { code, message, .. }), expected)
                if is_sentence(code) && is_sentence(message) && self.warnings < MAX_WARNINGS =>
            {
                self.warnings += 1;
                Some(expected)
            }
            (
                ParseFrame::Start { .. }
                | ParseFrame::Image { .. }
                | ParseFrame::Page { .. }
                | ParseFrame::About(_)
                | ParseFrame::Part(_)
                | ParseFrame::Headings(_)
                | ParseFrame::Warning(_),
                _,
            ) => None,
        })
    }

    /// Counts a text's characters against the limit.
    fn count(&mut self, text: &str) -> Result<u64, ParseError> {
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        self.chars = self.chars.saturating_add(length);
        if self.chars > self.max_chars {
            return Err(ParseError::TooLarge { limit: self.max_chars });
        }
        Ok(length)
    }

    /// Counts marks against the text so far: whether there are no more of them than can begin something in it.
    fn count_marks(&mut self, marks: &[TextMark]) -> bool {
        self.marks = self.marks.saturating_add(u64::try_from(marks.len()).unwrap_or(u64::MAX));
        self.marks <= self.chars.saturating_add(MARKS_BESIDES)
    }
}

/// Without the one character that no store takes.
fn is_clean(text: &str) -> bool {
    !text.contains('\0')
}

/// Whether a text is clean and has so many characters at most.
fn is_short(text: &str, most: usize) -> bool {
    text.chars().nth(most).is_none() && is_clean(text)
}

fn is_title(text: &str) -> bool {
    is_short(text, MAX_TITLE)
}

fn is_size(size: PageSize) -> bool {
    [size.width, size.height].iter().all(|side| (1.0..=MAX_SIDE).contains(side))
}

fn is_sentence(text: &str) -> bool {
    is_short(text, MAX_SENTENCE)
}

/// Whether a text is an address of the web, as an [`Url`] is written.
fn is_address(text: &str) -> bool {
    text.len() <= MAX_URL
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether a failure says no more than a person reads.
fn is_sane_failure(error: &ParseError) -> bool {
    !matches!(error, ParseError::Unsupported(what) if !is_sentence(what))
}

/// Whether marks stand within a text of so many code points, one after another, and say something that can be shown.
fn are_in_order(marks: &[TextMark], length: u64) -> bool {
    let sane = |mark: &TextMark| match &mark.what {
        MarkKind::Page(number) => *number > 0,
        MarkKind::Row(number) => *number > 0,
        MarkKind::Heading { level, title } => *level > 0 && is_title(title),
        MarkKind::Time { start, end } => start.is_finite() && end.is_finite(),
    };
    marks.iter().all(|mark| mark.at <= length && sane(mark)) && marks.is_sorted_by_key(|mark| mark.at)
}

#[cfg(test)]
mod tests {
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
        let image =
            |page| ChildMessage::Frame(ParseFrame::Image { page, png: vec![1, 2, 3], density: 300.0 });
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
        let admit = |url: &str| {
            FrameOrder::new(SourceKind::Html, &ParseOptions::default()).admit(about(None, Some(url)))
        };
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
            order
                .admit(ChildMessage::Frame(ParseFrame::Part(ParsedPart { text, marks: Vec::new() })))
                .unwrap();
            order
        };
        let mut order = begun();
        assert!(order.admit(headings(&[0, 5])).unwrap().is_some());
        assert!(order.admit(headings(&[5, 9])).unwrap().is_some());
        assert_eq!(code(order.admit(headings(&[8]))), "parser_crashed");
        assert_eq!(code(begun().admit(headings(&[11]))), "parser_crashed");
        let row = TextMark { at: 0, what: MarkKind::Row(1) };
        assert_eq!(
            code(begun().admit(ChildMessage::Frame(ParseFrame::Headings(vec![row])))),
            "parser_crashed"
        );
    }

    #[test]
    fn text_above_the_limit_is_refused_even_if_the_child_did_not_count() {
        let mut order = order(10, 3);
        order.admit(start(1, 2)).unwrap();
        order.admit(page(1, "äöü")).unwrap();
        assert_eq!(code(order.admit(page(2, "x"))), "too_large");
    }
}
