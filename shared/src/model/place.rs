//! Where a passage stands in its source.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Where a passage stands in its source. Only what the kind of source has is present; the offsets always are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceSpan {
    /// PDF: the first page that it touches, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// PDF: the last page that it touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_end: Option<u32>,
    /// PDF: where each page begins that it touches besides the first, in code points of the extracted text; none for a passage that stands on
    /// one page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_starts: Option<Vec<u64>>,
    /// A URL document of several addresses: the number of the one that it is from, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u32>,
    /// CSV: the first data row, counted from 1 without the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// CSV: the last data row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_end: Option<u64>,
    /// VIDEO: where it begins, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// VIDEO: where it ends, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<f64>,
    /// Pages with structure, and PDFs with an outline: the headings above it, outermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<Vec<String>>,
    /// Where it begins in the extracted text, in Unicode code points.
    pub char_start: u64,
    /// Where it ends in the extracted text, in Unicode code points; not included.
    pub char_end: u64,
}

impl SourceSpan {
    /// What a passage's id is made of besides its text: what says where it stands, and not what only tells more of that.
    #[must_use]
    pub fn identity(&self) -> Self {
        Self { page_starts: None, address: None, ..self.clone() }
    }

    /// The part of the passage that stands on a page, in code points of the extracted text, as far as that is known: all of it where its
    /// pages are not. None when it does not stand there.
    pub fn on_page(&self, page: u32) -> Option<Range<u64>> {
        let whole = self.char_start..self.char_end;
        let Some(first) = self.page else { return Some(whole) };
        let last = self.page_end.unwrap_or(first);
        if !(first..=last).contains(&page) {
            return None;
        }
        let Some(starts) = self.page_starts.as_deref().filter(|_| self.knows_pages()) else {
            return Some(whole);
        };
        // Where the page with this place among them begins.
        let begins = |at: usize| at.checked_sub(1).and_then(|at| starts.get(at)).copied();
        let at = usize::try_from(page - first).ok()?;
        let start = begins(at).unwrap_or(self.char_start);
        let end = begins(at + 1).unwrap_or(self.char_end);
        (start < end).then_some(start..end)
    }

    /// The page on which this byte of the passage's text stands. None when the passage has no pages, and when it goes over several and
    /// nobody knows where each begins.
    pub fn page_at(&self, text: &str, byte: usize) -> Option<u32> {
        let first = self.page?;
        if !self.knows_pages() {
            return None;
        }
        let starts = self.page_starts.as_deref().unwrap_or_default();
        let before = text.get(..byte)?.chars().count();
        // A text may say more than its stretch of the source, before it.
        let length = usize::try_from(self.char_end.saturating_sub(self.char_start)).unwrap_or(usize::MAX);
        let more = text.chars().count().saturating_sub(length);
        let at = self.char_start + before.saturating_sub(more) as u64;
        let later = starts.iter().take_while(|start| **start <= at).count();
        Some(first + u32::try_from(later).unwrap_or(0))
    }

    /// The place of words of it that are cited: on the page that they are known to begin on.
    #[must_use]
    pub fn cited_on(&self, page: Option<u32>) -> Self {
        let Some(page) = page else { return self.clone() };
        Self { page: Some(page), page_end: Some(page), page_starts: None, ..self.clone() }
    }

    /// The page that it stands on, if it is one alone.
    pub fn only_page(&self) -> Option<u32> {
        self.page.filter(|page| self.page_end.is_none_or(|last| last == *page))
    }

    /// Whether it is known where each of its pages begins.
    fn knows_pages(&self) -> bool {
        let more = self.page.zip(self.page_end).map_or(0, |(first, last)| last.saturating_sub(first));
        let starts = self.page_starts.as_ref().map_or(0, Vec::len);
        usize::try_from(more).is_ok_and(|more| more == starts)
    }

    /// The name of a passage's document and the headings above the passage, a line each: they are searched with its text, but
    /// are no part of what can be quoted. A heading that the passage begins with is not said twice.
    pub fn header(&self, document: &str, text: &str) -> String {
        let beginning = text.lines().next().unwrap_or_default();
        let headings = self.heading.iter().flatten().map(String::as_str);
        let mut lines = vec![document];
        lines.extend(headings.filter(|heading| !beginning.contains(heading)));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A passage of eleven characters on the pages 3 to 6, of which page 5 has no text.
    fn over_pages() -> SourceSpan {
        SourceSpan {
            page: Some(3),
            page_end: Some(6),
            page_starts: Some(vec![104, 110, 110]),
            char_start: 100,
            char_end: 111,
            ..SourceSpan::default()
        }
    }

    #[test]
    fn the_page_of_each_character_is_known() {
        let place = over_pages();
        let text = "Eß\n\nzwei\n\nd";
        let page = |word: &str| place.page_at(text, text.find(word).unwrap());
        assert_eq!((page("Eß"), page("zwei"), page("ei"), page("d")), (Some(3), Some(4), Some(4), Some(6)));
        assert_eq!(place.page_at(text, 2), None, "in the midst of a character");
        // With the header of its table before it.
        assert_eq!(place.page_at(&format!("Header\n{text}"), 8), Some(3));
        let pages: Vec<_> = (2..=7).map(|page| place.on_page(page)).collect();
        assert_eq!(pages, [None, Some(100..104), Some(104..110), None, Some(110..111), None]);
    }

    #[test]
    fn of_pages_whose_beginnings_were_not_noted_nothing_is_said() {
        let unknown = SourceSpan { page_starts: None, ..over_pages() };
        assert_eq!(unknown.page_at("Eins zwei d", 5), None);
        assert_eq!((unknown.on_page(5), unknown.on_page(7)), (Some(100..111), None));
        let one = SourceSpan { page_end: Some(3), ..unknown };
        assert_eq!((one.page_at("Eins zwei d", 5), one.only_page()), (Some(3), Some(3)));
        assert_eq!(over_pages().only_page(), None);
        assert_eq!(SourceSpan::default().page_at("a", 0), None);
    }

    #[test]
    fn a_passage_is_the_same_whatever_else_is_known_of_its_place() {
        let place = SourceSpan { address: Some(2), ..over_pages() };
        assert_eq!(place.identity(), SourceSpan { page_starts: None, ..over_pages() });
        let stored = serde_json::to_string(&place).unwrap();
        assert_eq!(serde_json::from_str::<SourceSpan>(&stored).unwrap(), place);
    }
}
