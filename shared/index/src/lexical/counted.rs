//! The sentences of a passage, as they are compared with a question.

use std::ops::Range;

use super::{
    lines::{field_name, is_list_item},
    sentences::PlacedSentence,
};

/// A row of a table that is asked for.
pub(super) struct TableRow {
    /// The number of the table, or [`RECORDS`].
    pub(super) table: usize,
    /// All of its line, in bytes.
    pub(super) line: Range<usize>,
}

/// The table of all rows of a text that are written field by field.
const RECORDS: usize = usize::MAX;

/// A sentence of a passage.
pub(super) struct CountedSentence {
    /// Its bytes.
    pub(super) range: Range<usize>,
    /// The number of its paragraph.
    pub(super) paragraph: usize,
    /// How often it has each word of the question itself.
    pub(super) own: Vec<u32>,
    /// The same with what the heading, question or header passes on that it stands right below.
    pub(super) near: Vec<u32>,
    /// The same with all that is passed on to it.
    pub(super) frequencies: Vec<u32>,
    /// In words.
    pub(super) length: u32,
    /// Its words count for another one.
    pub(super) is_passed_on: bool,
    /// What it is as a row that may be asked for together with others of its table.
    pub(super) row: Option<TableRow>,
    /// Its first line, in bytes, without what ends it.
    pub(super) line: Range<usize>,
    /// That line may be one of a table.
    pub(super) is_in_row: bool,
}

impl CountedSentence {
    /// A sentence of `text`, and the one before it.
    pub(super) fn new(
        text: &str,
        before: Option<&Self>,
        place: PlacedSentence,
        own: Vec<u32>,
        length: u32,
    ) -> Self {
        let PlacedSentence { range, paragraph, is_record } = place;
        let (from, known) =
            before.map_or((0, None), |before| (before.range.start, Some((&before.line, before.is_in_row))));
        let begin = text[from..range.start].rfind('\n').map(|end| from + end + 1);
        let (line, is_in_row) = match (begin, known) {
            // A long line has many sentences, and is not read again for each.
            (None, Some((line, is_in_row))) => (line.clone(), is_in_row),
            (begin, _) => {
                let begin = begin.unwrap_or(0);
                let line = text[begin..].lines().next().unwrap_or_default();
                (begin..begin + line.len(), line.contains('|'))
            }
        };
        let row = is_record.then(|| TableRow { table: RECORDS, line: range.clone() });
        let (near, frequencies) = (own.clone(), own.clone());
        Self { range, paragraph, own, near, frequencies, length, is_passed_on: false, row, line, is_in_row }
    }

    /// Whether it has words of the question itself, and not only such as are passed on to it.
    pub(super) fn has_own_words(&self, weights: &[f32]) -> bool {
        self.own.iter().zip(weights).any(|(own, weight)| *own > 0 && *weight > 0.0)
    }

    /// Whether it is an item of a list, or a field with its name.
    pub(super) fn is_point(&self, text: &str) -> bool {
        let line = text[self.line.clone()].trim();
        is_list_item(line) || field_name(line).is_some()
    }
}
