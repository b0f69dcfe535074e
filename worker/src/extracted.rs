//! The text of a source, and where its parts stand.

use std::ops::{Range, RangeInclusive};

use lectern_parse::protocol::{MarkKind, TextMark, TextMarkup};
use lectern_shared::model::{
    job::{IngestionWarning, SourceInfo},
    page::{PageInfo, PdfEngineName},
    place::SourceSpan,
};

/// Longest heading that is kept, in characters: a longer one is a paragraph that was marked up as one.
const MAX_HEADING: usize = 200;
/// Most headings above each other that are kept.
const MAX_DEPTH: usize = 12;

/// The text of a source, and where its parts stand.
#[derive(Debug, Default)]
pub(crate) struct ExtractedText {
    /// What the text is written in.
    pub(crate) structure: TextMarkup,
    /// Pages read, for sources that have pages.
    pub(crate) pages: Option<u32>,
    /// What read it, for a PDF.
    pub(crate) engine: Option<PdfEngineName>,
    /// Its pages that can be drawn.
    pub(crate) pages_read: Vec<PageInfo>,
    /// What was learnt of the source.
    pub(crate) source: SourceInfo,
    /// What was gone past.
    pub(crate) warnings: Vec<IngestionWarning>,
    text: String,
    /// Length of the text in code points.
    length: u64,
    /// Where pages, rows and cues begin, ascending.
    pages_at: Vec<(u64, u32)>,
    rows_at: Vec<(u64, u64)>,
    times_at: Vec<(u64, (f64, f64))>,
    headings_at: Vec<(u64, SectionHeading)>,
    /// Where something begins that has places of its own, such as a sheet: in code points and bytes.
    sections_at: Vec<(u64, usize)>,
    /// Where sources begin that were appended, and the number of each: no page, row or cue of one goes on in the next.
    sources_at: Vec<(u64, u32)>,
}

#[derive(Debug)]
struct SectionHeading {
    level: u8,
    title: String,
    /// The heading that it stands under, by its number.
    parent: Option<usize>,
}

impl ExtractedText {
    /// A text without any marks.
    #[cfg(test)]
    pub(crate) fn plain(text: String) -> Self {
        let length = count(&text);
        Self { text, length, ..Self::default() }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Its length in code points.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the source in which an offset lies is a table, of which every row stands for itself.
    pub(crate) fn has_rows(&self, offset: u64) -> bool {
        let source = self.source(offset);
        let first = self.rows_at.get(first_from(&self.rows_at, source));
        first.is_some_and(|(at, _)| self.source(*at) == source)
    }

    /// Appends text whose marks count from its own beginning. A section that it names begins anew: pages and rows may be
    /// counted from 1 again.
    pub(crate) fn push(&mut self, text: &str, marks: impl IntoIterator<Item = TextMark>) {
        let (base, bytes) = (self.length, self.text.len());
        self.text.push_str(text);
        self.length += count(text);
        // How far its marks have been gone through, in code points and bytes.
        let (mut passed, mut within) = (0, 0);
        for TextMark { at, what } in marks {
            if matches!(what, MarkKind::Heading { .. }) {
                let ahead = usize::try_from(at.saturating_sub(passed)).unwrap_or(usize::MAX);
                let rest = text.get(within..).unwrap_or_default();
                within += rest.char_indices().nth(ahead).map_or(rest.len(), |(ahead, _)| ahead);
                passed = at;
                self.sections_at.push((base + at, bytes + within));
            }
            self.mark(base + at, what);
        }
    }

    /// The parts of the text that have places of their own, in bytes, and where they begin in code points; one at least.
    pub(crate) fn sections(&self) -> Vec<(Range<usize>, u64)> {
        let mut begun = (0, 0);
        let mut sections = Vec::new();
        for next in self.sections_at.iter().copied().chain([(self.length, self.text.len())]) {
            if begun.1 < next.1 {
                sections.push((begun.1..next.1, begun.0));
            }
            begun = next;
        }
        sections
    }

    /// Marks a place that is not before the last one of its kind.
    pub(crate) fn mark(&mut self, at: u64, what: MarkKind) {
        match what {
            MarkKind::Page(number) => self.pages_at.push((at, number)),
            MarkKind::Row(number) => self.rows_at.push((at, number)),
            MarkKind::Time { start, end } => self.times_at.push((at, (start, end))),
            MarkKind::Heading { level, title } => {
                let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                let title = title.chars().take(MAX_HEADING).collect();
                let mut parent = self.headings_at.len().checked_sub(1);
                while let Some((number, (_, above))) =
                    parent.and_then(|number| Some((number, self.headings_at.get(number)?)))
                    && above.level >= level
                {
                    parent = above.parent.filter(|parent| *parent < number);
                }
                self.headings_at.push((at, SectionHeading { level, title, parent }));
            }
        }
    }

    /// Appends another source, which has this number among all, under a heading of its own.
    pub(crate) fn append(&mut self, title: &str, number: u32, other: Self) {
        if !self.text.is_empty() {
            self.push("\n\n", []);
        }
        let (base, bytes) = (self.length, self.text.len());
        self.mark(base, MarkKind::Heading { level: 1, title: title.to_owned() });
        self.sections_at.push((base, bytes));
        self.sources_at.push((base, number));
        let within = other.sections_at.iter().filter(|(at, _)| *at > 0);
        self.sections_at.extend(within.map(|(at, byte)| (base + at, bytes + byte)));
        self.text.push_str(&other.text);
        self.length += other.length;
        self.pages_at.extend(other.pages_at.iter().map(|(at, page)| (base + at, *page)));
        self.rows_at.extend(other.rows_at.iter().map(|(at, row)| (base + at, *row)));
        self.times_at.extend(other.times_at.iter().map(|(at, time)| (base + at, *time)));
        for (at, heading) in other.headings_at {
            let level = heading.level.saturating_add(1);
            self.mark(base + at, MarkKind::Heading { level, title: heading.title });
        }
        if other.structure == TextMarkup::Markdown {
            self.structure = TextMarkup::Markdown;
        }
        self.warnings.extend(other.warnings);
        self.engine = self.engine.or(other.engine);
        self.pages = match (self.pages, other.pages) {
            (Some(pages), Some(more)) => Some(pages.saturating_add(more)),
            (pages, more) => pages.or(more),
        };
    }

    /// The place of a passage, from its range in code points.
    pub(crate) fn place(&self, range: Range<u64>) -> SourceSpan {
        let last = range.end.saturating_sub(1).max(range.start);
        let first = begun(&self.times_at, range.start);
        let first = first.max(first_from(&self.times_at, self.source(range.start)));
        let times = self.times_at.get(first..=begun(&self.times_at, last));
        let times = times.filter(|_| self.at(&self.times_at, last).is_some()).unwrap_or_default();
        let earliest = times.iter().map(|(_, (start, _))| *start).reduce(f64::min);
        let latest = times.iter().map(|(_, (_, end))| *end).reduce(f64::max);
        let heading = self.heading(range.start);
        let page = self.first_in(&self.pages_at, range.start..=last).copied();
        let page_end = self.at(&self.pages_at, last).copied();
        SourceSpan {
            page,
            page_end,
            page_starts: page.zip(page_end).and_then(|(first, end)| self.page_starts(first..end, last)),
            address: self.appended(range.start).map(|(_, number)| number),
            row: self.first_in(&self.rows_at, range.start..=last).copied(),
            row_end: self.at(&self.rows_at, last).copied(),
            start: earliest,
            end: latest,
            heading: (!heading.is_empty()).then_some(heading),
            char_start: range.start,
            char_end: range.end,
        }
    }

    /// Where each page begins that follows the first of these, up to the one that holds at an offset. None when there is but one.
    fn page_starts(&self, pages: Range<u32>, last: u64) -> Option<Vec<u64>> {
        let more = pages.len();
        let after = self.pages_at.partition_point(|(start, _)| *start <= last);
        let later = self.pages_at.get(after.checked_sub(more)?..after)?;
        // Every page is noted once, whether it has text or not.
        let is_whole = later.iter().map(|(_, page)| *page).eq(pages.start + 1..=pages.end);
        (more > 0 && is_whole).then(|| later.iter().map(|(start, _)| *start).collect())
    }

    /// The last heading that begins within a range of code points.
    pub(crate) fn last_heading_in(&self, range: Range<u64>) -> Option<u64> {
        let before_end = self.headings_at.partition_point(|(start, _)| *start < range.end);
        let last = before_end.checked_sub(1).and_then(|at| self.headings_at.get(at))?.0;
        range.contains(&last).then_some(last)
    }

    /// Where the source begins in which an offset lies.
    fn source(&self, offset: u64) -> u64 {
        self.appended(offset).map_or(0, |(start, _)| start)
    }

    /// The appended source in which an offset lies: where it begins, and its number.
    fn appended(&self, offset: u64) -> Option<(u64, u32)> {
        let after = self.sources_at.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).and_then(|at| self.sources_at.get(at)).copied()
    }

    /// The mark that holds at an offset, which is of the same source.
    fn at<'a, T>(&self, marks: &'a [(u64, T)], offset: u64) -> Option<&'a T> {
        let after = marks.partition_point(|(start, _)| *start <= offset);
        let (start, what) = after.checked_sub(1).and_then(|number| marks.get(number))?;
        (*start >= self.source(offset)).then_some(what)
    }

    /// The mark that holds where a range begins, or else the first one in it: there may be something before it, such as the title of a table.
    fn first_in<'a, T>(&self, marks: &'a [(u64, T)], range: RangeInclusive<u64>) -> Option<&'a T> {
        self.at(marks, *range.start()).or_else(|| {
            let (start, what) = marks.get(first_from(marks, *range.start()))?;
            range.contains(start).then_some(what)
        })
    }

    /// The headings that a place stands under, outermost first.
    fn heading(&self, offset: u64) -> Vec<String> {
        let after = self.headings_at.partition_point(|(start, _)| *start <= offset);
        let mut path = Vec::new();
        let mut number = after.checked_sub(1);
        while let Some((_, heading)) = number.and_then(|number| self.headings_at.get(number))
            && path.len() < MAX_DEPTH
        {
            if !heading.title.is_empty() {
                path.push(heading.title.clone());
            }
            number = heading.parent;
        }
        path.reverse();
        path
    }
}

fn count(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The number of the mark that holds at an offset, or of the first one when none does yet.
fn begun<T>(marks: &[(u64, T)], offset: u64) -> usize {
    marks.partition_point(|(start, _)| *start <= offset).saturating_sub(1)
}

/// The number of the first mark that is not before an offset.
fn first_from<T>(marks: &[(u64, T)], offset: u64) -> usize {
    marks.partition_point(|(start, _)| *start < offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at: u64, what: MarkKind) -> TextMark {
        TextMark { at, what }
    }

    fn heading(at: u64, level: u8, title: &str) -> TextMark {
        mark(at, MarkKind::Heading { level, title: title.to_owned() })
    }

    #[test]
    fn a_passage_over_a_page_border_names_both_pages() {
        let mut extracted = ExtractedText::default();
        for number in 3..=5 {
            extracted.push("0123456789", [mark(0, MarkKind::Page(number))]);
        }
        let pages = |range| {
            let place = extracted.place(range);
            (place.page, place.page_end)
        };
        assert_eq!(pages(0..10), (Some(3), Some(3)));
        assert_eq!(pages(5..11), (Some(3), Some(4)));
        assert_eq!(pages(20..99), (Some(5), Some(5)));
        assert_eq!(ExtractedText::plain("text".to_owned()).place(0..5).page, None);
        let starts = |range| extracted.place(range).page_starts;
        assert_eq!((starts(0..10), starts(5..11), starts(5..30)), (None, Some(vec![10]), Some(vec![10, 20])));
    }

    #[test]
    fn a_passage_that_begins_above_the_rows_names_the_first_of_them() {
        let mut extracted = ExtractedText::default();
        extracted.push("Title one two", [mark(6, MarkKind::Row(1)), mark(10, MarkKind::Row(2))]);
        let rows = |range| {
            let place = extracted.place(range);
            (place.row, place.row_end)
        };
        assert_eq!(rows(0..13), (Some(1), Some(2)));
        assert_eq!(rows(0..9), (Some(1), Some(1)));
        assert_eq!(rows(7..13), (Some(1), Some(2)));
        assert_eq!(rows(0..5), (None, None));
    }

    #[test]
    fn a_passage_of_several_cues_lasts_from_the_first_to_the_last() {
        let time = |at, start, end| mark(at, MarkKind::Time { start, end });
        let mut extracted = ExtractedText::default();
        extracted.push("intro one two", [time(6, 1.0, 2.5), time(10, 2.0, 4.0)]);
        let times = |range| {
            let place = extracted.place(range);
            (place.start, place.end)
        };
        assert_eq!(times(0..13), (Some(1.0), Some(4.0)));
        assert_eq!(times(6..9), (Some(1.0), Some(2.5)));
        assert_eq!(times(10..13), (Some(2.0), Some(4.0)));
        assert_eq!(times(0..5), (None, None));
    }

    #[test]
    fn a_place_stands_under_the_headings_above_it() {
        let mut extracted = ExtractedText::default();
        let marks = [
            heading(2, 1, "Part  one"),
            heading(4, 3, "Detail"),
            heading(6, 2, "Section"),
            heading(8, 1, "Part two"),
        ];
        extracted.push("0123456789", marks);
        let path = |at| extracted.place(at..at + 1).heading;
        assert_eq!(path(0), None);
        assert_eq!(path(3).unwrap(), ["Part one"]);
        assert_eq!(path(5).unwrap(), ["Part one", "Detail"]);
        assert_eq!(path(7).unwrap(), ["Part one", "Section"]);
        assert_eq!(path(9).unwrap(), ["Part two"]);
    }

    #[test]
    fn sources_that_are_put_together_keep_their_places_under_their_own_titles() {
        let mut first = ExtractedText::default();
        first.push("ä one", [heading(2, 1, "Inside")]);
        let mut whole = ExtractedText::default();
        whole.append("First", 1, first);
        whole.append("Second", 3, ExtractedText::plain("two".to_owned()));
        assert_eq!(whole.text(), "ä one\n\ntwo");
        assert_eq!(whole.place(3..4).heading.unwrap(), ["First", "Inside"]);
        assert_eq!(whole.place(7..8).heading.unwrap(), ["Second"]);
        assert_eq!((whole.place(3..4).address, whole.place(7..8).address), (Some(1), Some(3)));
        assert_eq!(ExtractedText::plain("two".to_owned()).place(0..3).address, None);
        let sections: Vec<_> =
            whole.sections().into_iter().map(|(range, at)| (&whole.text()[range], at)).collect();
        assert_eq!(sections, [("ä ", 0), ("one\n\n", 2), ("two", 7)]);
    }

    #[test]
    fn no_page_row_or_cue_of_one_source_is_told_of_the_next() {
        let source = |text: &str, what| {
            let mut source = ExtractedText::default();
            // It begins with words that stand before its first mark.
            source.push(text, [mark(2, what)]);
            source
        };
        let mut whole = ExtractedText::default();
        whole.append("Report", 1, source("a report", MarkKind::Page(7)));
        whole.append("Table", 2, source("a table", MarkKind::Row(3)));
        whole.append("News", 3, ExtractedText::plain("the news".to_owned()));
        whole.append("Talk", 4, source("a talk", MarkKind::Time { start: 1.0, end: 2.5 }));
        whole.append("Notes", 5, ExtractedText::plain("some notes".to_owned()));
        let place = |text: &str| {
            let start = whole.text().find(text).unwrap() as u64;
            let place = whole.place(start..start + text.len() as u64);
            ((place.page, place.page_end), (place.row, place.row_end), (place.start, place.end))
        };
        let nothing = ((None, None), (None, None), (None, None));
        assert_eq!(place("a report"), ((Some(7), Some(7)), nothing.1, nothing.2));
        assert_eq!(place("a table"), (nothing.0, (Some(3), Some(3)), nothing.2));
        assert_eq!(place("the news"), nothing);
        assert_eq!(place("a talk"), (nothing.0, nothing.1, (Some(1.0), Some(2.5))));
        assert_eq!(place("some notes"), nothing);
    }
}
