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
/// The most headings of a text that is no PDF. All of them are kept in the worker's memory.
pub(crate) const MAX_HEADINGS: usize = 50_000;
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
    /// Where the last heading of the whole text is, and how many there are.
    heading_at: u64,
    headings: usize,
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
            headings: 0,
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
                self.headings = self.headings.saturating_add(marks.len());
                (self.headings <= MAX_HEADINGS && self.count_marks(marks)).then_some(expected)
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
pub(super) fn is_clean(text: &str) -> bool {
    !text.contains('\0')
}

/// Whether a text is clean and has so many characters at most.
fn is_short(text: &str, most: usize) -> bool {
    text.chars().nth(most).is_none() && is_clean(text)
}

pub(super) fn is_title(text: &str) -> bool {
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
mod tests;
