//! Cells that are merged over several rows of a sheet. Each of these rows says what they say, so that it can be understood by itself.

use std::{cmp::Reverse, vec};

use calamine::Dimensions;

use super::{MOST_COLUMNS, SheetCell};
use crate::protocol::ParseAbort;

/// Merged cells beside each other, at most, and the longest text of one that is said again, in bytes.
const MOST_OPEN: usize = 64;
const LONGEST: usize = 200;

/// A cell that is merged with those below it.
struct MergedCell {
    first: u64,
    last: u64,
    column: usize,
    text: String,
}

/// The merged cells of a sheet.
#[derive(Default)]
pub(super) struct MergedCells {
    /// Those that have not begun, the next ones last.
    coming: Vec<MergedCell>,
    /// Those that go on below the row that was looked at.
    open: Vec<MergedCell>,
}

impl MergedCells {
    /// Those that take several rows.
    pub(super) fn of(regions: &[Dimensions]) -> Self {
        let merged = regions.iter().filter(|region| region.start.0 < region.end.0).filter_map(|region| {
            let (first, column) = region.start;
            let column = usize::try_from(column).ok()?;
            Some(MergedCell { first: first.into(), last: region.end.0.into(), column, text: String::new() })
        });
        let mut coming: Vec<_> = merged.collect();
        coming.sort_by_key(|cell| Reverse(cell.first));
        Self { coming, open: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.coming.is_empty() && self.open.is_empty()
    }

    /// Adds to the cells of a row what those say that it shares with the rows above it.
    fn complete(&mut self, number: u64, row: &mut Vec<SheetCell>) {
        row.sort_by_key(|cell| cell.column);
        self.open.retain(|cell| cell.last >= number);
        let has = |row: &[SheetCell], column| row.binary_search_by_key(&column, |cell| cell.column).is_ok();
        let missing = self.open.iter().filter(|open| !has(row, open.column));
        let missing: Vec<_> = missing
            .map(|open| SheetCell { row: number, column: open.column, text: open.text.clone() })
            .collect();
        row.extend(missing);
        row.sort_by_key(|cell| cell.column);
        while let Some(next) = self.coming.pop_if(|cell| cell.first <= number) {
            // One whose first row says nothing says nothing.
            let place = row.binary_search_by_key(&next.column, |cell| cell.column).ok();
            let said = place.and_then(|place| row.get(place)).filter(|_| next.first == number);
            if let Some(said) = said.filter(|said| said.text.len() <= LONGEST)
                && self.open.len() < MOST_OPEN
            {
                self.open.push(MergedCell { text: said.text.clone(), ..next });
            }
        }
    }
}

/// The cells of a sheet in their order, with what rows share.
pub(super) struct CompleteRows<N> {
    next: N,
    merged: MergedCells,
    row: vec::IntoIter<SheetCell>,
    /// The first cell of the row behind it.
    ahead: Option<SheetCell>,
}

impl<N: FnMut() -> Result<Option<SheetCell>, ParseAbort>> CompleteRows<N> {
    /// Of cells that come in their order.
    pub(super) fn new(next: N, merged: MergedCells) -> Self {
        Self { next, merged, row: Vec::new().into_iter(), ahead: None }
    }

    pub(super) fn next_cell(&mut self) -> Result<Option<SheetCell>, ParseAbort> {
        if let Some(cell) = self.row.next() {
            return Ok(Some(cell));
        }
        let first = match self.ahead.take() {
            Some(cell) => Some(cell),
            None => (self.next)()?,
        };
        let Some(first) = first else { return Ok(None) };
        if self.merged.is_empty() {
            return Ok(Some(first));
        }
        let number = first.row;
        let mut row = vec![first];
        while row.len() < MOST_COLUMNS {
            match (self.next)()? {
                Some(cell) if cell.row == number => row.push(cell),
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        self.merged.complete(number, &mut row);
        self.row = row.into_iter();
        Ok(self.row.next())
    }
}
