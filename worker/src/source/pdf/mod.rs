//! PDF: pages come one by one from the parsing child, lose what repeats on all of them, and are joined to one text that
//! remembers where each began.
//!
//! `load` comes here; here nothing looks into a PDF. Which engine does that in the child is chosen at the start (`engine`), and
//! the text of pages that are images is recognised here (`ocr`).

mod division;
mod engine;
mod furniture;
mod ocr;
mod outline;

use lectern_parse::protocol::{
    INCOMPLETE_FILE, MarkKind, OutlineEntry, PageSize, ParseError, ParseFrame, ParseOptions, ParserCrash,
    SourceKind, TextMark,
};
use lectern_sandbox::{ParseRequest, Sandbox};
use lectern_shared::model::{
    job::{IngestionWarning, SourceInfo},
    page::{PageInfo, RecognisedWord},
};
use tokio::{fs::File, io::AsyncSeekExt};

pub use self::engine::{PdfEngine, PdfEngineError};
use self::ocr::PageRecognition;
use crate::{extracted::ExtractedText, failure::IngestFailure, lease::ProgressReporter};

/// What stands between two pages.
const PAGE_BREAK: &str = "\n\n";
/// What stands between them within a sentence.
const LINE_BREAK: &str = "\n";

/// Reads the selected pages, in the language that the document says it is in. All of them are at hand before the first is put
/// into the text: only then can be told what repeats. Their size is bounded by the limit of characters.
pub(super) async fn load(
    file: File,
    options: ParseOptions,
    engine: &PdfEngine,
    language: Option<&str>,
    sandbox: &Sandbox,
    progress: &ProgressReporter,
) -> Result<ExtractedText, IngestFailure> {
    let mut attempts = engine.attempts(options).into_iter().peekable();
    let mut file = file;
    // What became of reading images, where that came to no end.
    let mut unread_images = None;
    while let Some(options) = attempts.next() {
        let again = file.try_clone().await?;
        let images = options.images;
        let recognition = PageRecognition::new(engine.ocr()).in_language(language);
        match read(file, options, recognition, sandbox, progress).await {
            Err(IngestFailure::Document(error))
                if error.code == ParseError::Crashed(ParserCrash::Died).code()
                    && attempts.peek().is_some() =>
            {
                tracing::info!("an engine did not get through a file; it is read in another way");
                file = again;
                // Both share their place in the file.
                file.rewind().await?;
                if images {
                    unread_images = Some(error);
                }
            }
            // Nobody has looked at what its images say: that they hold no text is not known.
            Err(IngestFailure::Document(error))
                if !images && error.code == ParseError::NoExtractableText.code() =>
            {
                return Err(IngestFailure::Document(unread_images.unwrap_or(error)));
            }
            end => return end,
        }
    }
    Err(IngestFailure::Internal("no engine was asked".to_owned()))
}

/// What was read of a page.
struct ReadPage {
    number: u32,
    text: String,
    sections: Vec<OutlineEntry>,
    size: Option<PageSize>,
    words: Vec<RecognisedWord>,
}

/// A page of text, with the sections that begin on it.
struct PageText {
    number: u32,
    text: String,
    sections: Vec<OutlineEntry>,
}

async fn read(
    file: File,
    options: ParseOptions,
    mut recognition: PageRecognition<'_>,
    sandbox: &Sandbox,
    progress: &ProgressReporter,
) -> Result<ExtractedText, IngestFailure> {
    let limit = options.max_chars;
    let request = ParseRequest { kind: SourceKind::Pdf, source: file, options };
    let mut frames = progress.waiting_for(sandbox.parse(request)).await?;
    let mut extracted = ExtractedText::default();
    let (mut letters, mut characters, mut unreadable, mut scans) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut selected = None;
    let mut pages: Vec<ReadPage> = Vec::new();
    while let Some(frame) = frames.next().await? {
        match frame {
            ParseFrame::Start { first, last, title, engine, .. } => {
                selected = Some(u64::from(last - first) + 1);
                extracted.source = SourceInfo { title, ..SourceInfo::default() };
                extracted.engine = Some(engine);
            }
            ParseFrame::Image { page, png, density } => recognition.image(page, png, density).await,
            ParseFrame::Page { number, text, sections, warning, size, is_scan } => {
                let (text, words) = recognition.page(text, is_scan);
                letters += text.chars().filter(|c| !c.is_whitespace()).count() as u64;
                // What was recognised does not count in the child.
                characters += text.chars().count() as u64;
                if characters > limit {
                    return Err(ParseError::TooLarge { limit }.into());
                }
                unreadable += u64::from(warning.is_some());
                scans += u64::from(is_scan);
                pages.push(ReadPage { number, text, sections, size, words });
                progress.at(pages.len() as u64, selected, "pages");
            }
            ParseFrame::Warning(warning) => extracted.warnings.push(warning),
            // A PDF has pages instead, and the stream lets no others pass.
            ParseFrame::About(_) | ParseFrame::Part(_) | ParseFrame::Headings(_) => {}
        }
    }
    let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
    if is_without_text(letters, count) {
        // Nobody takes pages for scans that are known to be lost.
        let is_incomplete = extracted.warnings.iter().any(|warning| warning.code == INCOMPLETE_FILE);
        let is_damaged = scans == 0 && (unreadable > 0 || is_incomplete);
        let error = if is_damaged { ParseError::Damaged } else { ParseError::NoExtractableText };
        return Err(error.into());
    }
    extracted.pages = Some(count);
    extracted.warnings.extend(recognition.warnings(count));
    if unreadable > 0 {
        extracted.warnings.push(IngestionWarning {
            code: "unreadable_page".to_owned(),
            message: "Some pages could not be read, or only in part; what is missing of them is not found."
                .to_owned(),
            count: unreadable,
        });
    }
    tokio::task::spawn_blocking(move || {
        let mut texts = Vec::with_capacity(pages.len());
        let mut outline = Vec::with_capacity(pages.len());
        for ReadPage { number, text, sections, size, words } in pages {
            if let Some(PageSize { width, height }) = size {
                let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
                extracted.pages_read.push(PageInfo { number, width, height, chars, words });
            }
            texts.push((number, text));
            outline.push(sections);
        }
        furniture::remove(&mut texts);
        let pages = texts.into_iter().zip(outline);
        let page = |((number, text), sections)| PageText { number, text, sections };
        join(pages.map(page).collect(), &mut extracted);
        extracted
    })
    .await
    .map_err(|_| IngestFailure::Panicked)
}

/// Whether a document's pages together carry so little text that they are in all likelihood scanned images.
///
/// `letters` is the number of characters that are not white space, `pages` that of the pages they were found on. A
/// scan often carries a stamp, a page number or a scanner's footer; a real page of text has hundreds of characters.
/// A short document that says little is let through: one word on one page may be all there is.
pub fn is_without_text(letters: u64, pages: u32) -> bool {
    letters == 0 || (pages >= 3 && letters < u64::from(pages) * 4)
}

/// Puts pages together. A word that is divided by the end of a page becomes whole: its second half is where the next page
/// begins. A sentence that goes on is not parted by a blank line.
fn join(pages: Vec<PageText>, extracted: &mut ExtractedText) {
    // The last text that is not put in yet, because its end depends on what comes, and the sections that begin in it.
    let (mut held, mut held_sections) = (String::new(), Vec::new());
    // Pages without text before the next one that has some, and their sections.
    let (mut begun, mut waiting) = (Vec::new(), Vec::new());
    for PageText { number, text, sections } in pages {
        let mut text = division::join_divided_words(text.trim_matches('\n'));
        begun.push(TextMark { at: 0, what: MarkKind::Page(number) });
        waiting.extend(sections);
        if text.is_empty() {
            continue;
        }
        if division::is_divided(&held, &text) {
            held.pop();
            let (rest_of_word, rest) = division::first_word(&text);
            let gap = if rest.is_empty() { "" } else { LINE_BREAK };
            text = [rest_of_word, gap, rest].concat();
        } else if goes_on(&held, &text) {
            held.push_str(LINE_BREAK);
        } else if !held.is_empty() {
            held.push_str(PAGE_BREAK);
        }
        push(extracted, &held, held_sections);
        extracted.push("", begun.drain(..));
        held_sections = outline::place(&text, waiting.drain(..));
        held = text;
    }
    push(extracted, &held, held_sections);
    extracted.push("", begun);
}

/// Appends a page's text, and marks the sections that begin in it. They part no passages: a page is read as it stands.
fn push(extracted: &mut ExtractedText, text: &str, sections: Vec<TextMark>) {
    let base = extracted.length();
    extracted.push(text, []);
    for TextMark { at, what } in sections {
        extracted.mark(base + at, what);
    }
}

/// Whether a sentence goes on from one page to the next, as far as its letters tell.
fn goes_on(upper: &str, lower: &str) -> bool {
    upper.ends_with(|c: char| c.is_alphabetic() || matches!(c, ',' | ';' | '-' | '–'))
        && lower.starts_with(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pages: &[(u32, &str)]) -> ExtractedText {
        let mut extracted = ExtractedText::default();
        let page = |(number, text): &(u32, &str)| PageText {
            number: *number,
            text: (*text).to_owned(),
            sections: Vec::new(),
        };
        join(pages.iter().map(page).collect(), &mut extracted);
        extracted
    }

    /// The pages that a passage names.
    fn pages_of(extracted: &ExtractedText, passage: &str) -> (Option<u32>, Option<u32>) {
        let at = extracted.text().find(passage).unwrap();
        let start = extracted.text()[..at].chars().count() as u64;
        let place = extracted.place(start..start + passage.chars().count() as u64);
        (place.page, place.page_end)
    }

    #[test]
    fn a_word_divided_by_the_end_of_a_page_is_whole_and_on_both_pages() {
        let extracted = joined(&[(7, "Grüße, and a syntacti-"), (8, "cally familiar\nname.")]);
        assert_eq!(extracted.text(), "Grüße, and a syntactically\nfamiliar\nname.");
        assert_eq!(pages_of(&extracted, "Grüße, and a"), (Some(7), Some(7)));
        assert_eq!(pages_of(&extracted, "syntactically"), (Some(7), Some(8)));
        assert_eq!(pages_of(&extracted, "familiar"), (Some(8), Some(8)));
    }

    #[test]
    fn a_word_goes_on_behind_pages_without_text_and_over_several_pages() {
        let extracted = joined(&[(1, "Donau-"), (2, ""), (3, "dampf-"), (4, "schiff fährt")]);
        assert_eq!(extracted.text(), "Donaudampfschiff\nfährt");
        assert_eq!(pages_of(&extracted, "Donaudampfschiff"), (Some(1), Some(4)));
        assert_eq!(pages_of(&extracted, "dampf"), (Some(3), Some(3)));
        assert_eq!(pages_of(&extracted, "fährt"), (Some(4), Some(4)));
    }

    #[test]
    fn names_and_ranges_stay_apart_over_a_page_border_too() {
        let extracted = joined(&[(1, "Jean-"), (2, "Paul in 2018-"), (3, "23")]);
        assert_eq!(extracted.text(), "Jean-\n\nPaul in 2018-\n\n23");
    }

    #[test]
    fn a_sentence_goes_on_without_a_paragraph_between_and_a_finished_one_does_not() {
        assert_eq!(joined(&[(1, "It was the best"), (2, "of times.")]).text(), "It was the best\nof times.");
        assert_eq!(joined(&[(1, "It was."), (2, "of times")]).text(), "It was.\n\nof times");
        assert_eq!(joined(&[(1, "Chapter one"), (2, "It was")]).text(), "Chapter one\n\nIt was");
    }

    #[test]
    fn every_page_names_itself_also_between_empty_ones() {
        let extracted = joined(&[(1, ""), (2, "two"), (3, ""), (4, ""), (5, "Five"), (6, "")]);
        assert_eq!(extracted.text(), "two\n\nFive");
        assert_eq!(pages_of(&extracted, "two"), (Some(2), Some(2)));
        assert_eq!(pages_of(&extracted, "Five"), (Some(5), Some(5)));
        assert_eq!(pages_of(&extracted, "two\n\nFive"), (Some(2), Some(5)));
    }
    #[test]
    fn a_passage_stands_under_the_sections_that_the_outline_names() {
        let section = |level, title: &str| OutlineEntry { level, title: title.to_owned() };
        let page = |number, text: &str, sections| PageText { number, text: text.to_owned(), sections };
        let mut extracted = ExtractedText::default();
        let pages = vec![
            page(1, "Cover", vec![section(1, "Part I")]),
            page(2, "", vec![section(2, "Item 1. Business")]),
            page(
                3,
                "The end of Item 0.\nITEM 1.  BUSINESS\nWe sell grüne Schiffe.\nItem 2\nOurs.",
                vec![section(2, "Item 2")],
            ),
            page(4, "And theirs.", vec![section(1, "Part II"), section(2, "Nowhere on the page")]),
        ];
        join(pages, &mut extracted);
        let heading = |passage: &str| {
            let at = extracted.text().find(passage).unwrap();
            let start = extracted.text()[..at].chars().count() as u64;
            extracted.place(start..start + 1).heading.unwrap_or_default().join(" > ")
        };
        assert_eq!(heading("Cover"), "Part I");
        assert_eq!(heading("The end of"), "Part I");
        assert_eq!(heading("We sell"), "Part I > Item 1. Business");
        assert_eq!(heading("Ours."), "Part I > Item 2");
        assert_eq!(heading("And theirs."), "Part II > Nowhere on the page");
        assert_eq!(extracted.sections().len(), 1, "nothing is parted by it");
    }

    #[test]
    fn pages_with_nothing_but_a_number_on_them_are_a_scan() {
        assert!(is_without_text(0, 1));
        assert!(is_without_text(12, 12));
        assert!(!is_without_text(5, 1));
        assert!(!is_without_text(2_000, 12));
    }
}
