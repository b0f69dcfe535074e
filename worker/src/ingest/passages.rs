//! From a text to its passages.

use std::ops::Range;

use lectern_parse::protocol::TextMarkup;
use lectern_shared::model::{document::SplitterConfig, place::SourceSpan};

use crate::{
    extracted::ExtractedText,
    splitter::{self, PassageRange, TextShape, TokenCounter},
};

/// A passage and where it stands.
pub(crate) struct PassageSlice<'a> {
    /// What it says: exactly the slice of the text that its place names.
    pub(crate) text: &'a str,
    /// Where it stands in the source.
    pub(crate) place: SourceSpan,
    /// Where it ends, in bytes of the text.
    pub(crate) end: usize,
}

/// Cuts a text and hands out its passages in order.
///
/// What a passage repeats of the one before ends at a heading: a sentence of the section above would otherwise be told of the
/// section that follows.
///
/// `go_on` is asked before so many bytes are looked at.
///
/// # Errors
/// The first error of `go_on` or `each`, which ends the cutting.
pub(crate) fn cut<E>(
    extracted: &ExtractedText,
    splitter: Option<&SplitterConfig>,
    sizing: &TokenCounter,
    go_on: &dyn Fn(usize) -> Result<(), E>,
    mut each: impl FnMut(PassageSlice<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let text = extracted.text();
    let mut said = 0;
    let mut cut = |PassageRange { range, char_range }| {
        let (range, char_range) = match extracted.last_heading_in(char_range.start + 1..said + 1) {
            Some(heading) if heading < char_range.end => without_start(text, range, char_range, heading),
            _ => (range, char_range),
        };
        said = char_range.end;
        let end = range.end;
        let text = text.get(range).unwrap_or_default();
        each(PassageSlice { text, place: extracted.place(char_range), end })
    };
    for (section, characters) in extracted.sections() {
        // Of several sources, some may be tables and others not.
        let shape = match extracted.structure {
            _ if extracted.has_rows(characters) => TextShape::Rows,
            TextMarkup::Markdown => TextShape::Markdown,
            TextMarkup::Plain => TextShape::Prose,
        };
        let bytes = section.start;
        let section = text.get(section).unwrap_or_default();
        splitter::split(section, shape, splitter, sizing, go_on, |PassageRange { range, char_range }| {
            cut(PassageRange {
                range: bytes + range.start..bytes + range.end,
                char_range: characters + char_range.start..characters + char_range.end,
            })
        })?;
    }
    Ok(())
}

/// A passage that begins at `from`, a code point within it.
fn without_start(
    text: &str,
    range: Range<usize>,
    char_range: Range<u64>,
    from: u64,
) -> (Range<usize>, Range<u64>) {
    let skipped = usize::try_from(from - char_range.start).unwrap_or(0);
    let piece = text.get(range.clone()).unwrap_or_default();
    let bytes = piece.char_indices().nth(skipped).map_or(0, |(at, _)| at);
    (range.start + bytes..range.end, from..char_range.end)
}

#[cfg(test)]
mod tests {
    use lectern_parse::protocol::{MarkKind, TextMark};

    use super::*;

    #[test]
    fn no_passage_goes_from_one_sheet_to_the_next() {
        let sheet = |title: &str| {
            let mark = |at, what| TextMark { at, what };
            let heading = MarkKind::Heading { level: 1, title: title.to_owned() };
            (format!("{title}: ä\n\n"), [mark(0, heading), mark(0, MarkKind::Row(1))])
        };
        let mut extracted = ExtractedText::default();
        for title in ["Prices", "Stock"] {
            let (text, marks) = sheet(title);
            extracted.push(&text, marks);
        }
        let mut passages = Vec::new();
        let Ok(()) = cut(
            &extracted,
            None,
            &TokenCounter::default(),
            &|_| Ok(()),
            |PassageSlice { text, place, end }| {
                passages.push((text.to_owned(), place.heading.unwrap(), place.char_start, end));
                Ok::<_, std::convert::Infallible>(())
            },
        );
        assert_eq!(
            passages,
            [
                ("Prices: ä".to_owned(), vec!["Prices".to_owned()], 0, 10),
                ("Stock: ä".to_owned(), vec!["Stock".to_owned()], 11, 21)
            ]
        );
    }

    #[test]
    fn prose_beside_a_table_is_cut_as_prose() {
        let mut table = ExtractedText::default();
        table.push("name: Ada", [TextMark { at: 0, what: MarkKind::Row(1) }]);
        let mut extracted = ExtractedText::default();
        extracted.append("Table", 1, table);
        extracted.append("News", 2, ExtractedText::plain("Green is told of here. ".repeat(400)));
        let mut places = Vec::new();
        let Ok(()) =
            cut(&extracted, None, &TokenCounter::default(), &|_| Ok(()), |PassageSlice { place, .. }| {
                places.push(place);
                Ok::<_, std::convert::Infallible>(())
            });
        assert_eq!((places[0].row, places[1].row), (Some(1), None));
        let (first, second) = (&places[1], &places[2]);
        assert!(second.char_start < first.char_end, "some of the prose is repeated: {first:?}, {second:?}");
    }

    #[test]
    fn a_passage_repeats_nothing_from_above_its_heading() {
        let section = |n: usize| {
            let title = format!("## Section {n}");
            format!("{title}\n\n{}\n\n", format!("Grün is told in section {n} only. ").repeat(25))
        };
        let text: String = (0..8).map(section).collect();
        let mut extracted = ExtractedText::default();
        extracted.push(&text, []);
        extracted.structure = TextMarkup::Markdown;
        for n in 0..8 {
            let at = text.find(&format!("## Section {n}")).unwrap();
            let at = text[..at].chars().count() as u64;
            let title = format!("Section {n}");
            let TextMark { at, what } = TextMark { at, what: MarkKind::Heading { level: 2, title } };
            extracted.mark(at, what);
        }
        let characters: Vec<char> = text.chars().collect();
        let mut passages = 0;
        let Ok(()) = cut(
            &extracted,
            None,
            &TokenCounter::default(),
            &|_| Ok(()),
            |PassageSlice { text, place, .. }| {
                let heading = &place.heading.unwrap()[0];
                for n in 0..8 {
                    let told = text.contains(&format!("section {n} only"));
                    assert!(!told || *heading == format!("Section {n}"), "{heading}: {text}");
                }
                let at = |offset: u64| usize::try_from(offset).unwrap();
                let slice: String = characters[at(place.char_start)..at(place.char_end)].iter().collect();
                assert_eq!(text, slice);
                passages += 1;
                Ok::<_, std::convert::Infallible>(())
            },
        );
        assert!(passages >= 8, "{passages}");
    }
}
