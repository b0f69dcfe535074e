//! Which rows of a block are searched.

use std::{io, ops::Range, sync::Arc};

use super::super::segment::{BlockPart, PostingsBlock};
use crate::{lexical::TermId, spill::SpilledBlock};

/// The place of a part that is not searched.
pub const NOT_SEARCHED: u32 = u32::MAX;

/// Where a list of postings is looked up row by row instead of run by run, as a share of the runs: a step from run to run
/// costs about this many looks at a bit.
const STEP: usize = 8;

/// A block with those of its parts that are searched.
#[derive(Debug, Clone)]
pub struct BlockSelection {
    block: Arc<PostingsBlock>,
    /// The place in the list of those searched of each part's generation, or [`NOT_SEARCHED`].
    places: Arc<[u32]>,
    /// The rows that are searched, ascending, as long as can be.
    runs: Arc<[Range<u32>]>,
    rows: u32,
    /// A bit for each row; empty when all are searched.
    bits: Arc<[u64]>,
}

/// A block in a file with those of its parts that are searched.
#[derive(Debug, Clone)]
pub(crate) struct SpilledSelection {
    /// The same parts of the block without what is in the file.
    outline: BlockSelection,
    block: Arc<SpilledBlock>,
}

impl SpilledSelection {
    /// The parts of a block that have a place in the list of those searched.
    pub(crate) fn new(block: Arc<SpilledBlock>, places: Vec<u32>) -> Self {
        Self { outline: BlockSelection::new(Arc::clone(block.outline()), places), block }
    }

    /// Which parts are searched, of a block without postings and vectors.
    pub(crate) const fn outline(&self) -> &BlockSelection {
        &self.outline
    }

    /// The block.
    pub(crate) fn block(&self) -> &SpilledBlock {
        &self.block
    }

    /// The same parts of the block with the postings of these terms only, which are read.
    pub(crate) fn only(&self, terms: &[TermId]) -> io::Result<BlockSelection> {
        Ok(self.outline.of(self.block.only(terms)?))
    }
}

impl BlockSelection {
    /// The parts of a block that have a place in the list of those searched.
    pub fn new(block: Arc<PostingsBlock>, places: Vec<u32>) -> Self {
        let mut runs = Vec::<Range<u32>>::new();
        let mut rows = 0;
        for (part, place) in block.parts().iter().zip(&places) {
            if *place == NOT_SEARCHED {
                continue;
            }
            rows += part.len();
            match runs.last_mut() {
                Some(last) if last.end == part.rows().start => last.end = part.rows().end,
                _ => runs.push(part.rows()),
            }
        }
        let mut bits = Vec::new();
        if rows < block.row_count() {
            bits.resize(block.row_count().div_ceil(64) as usize, 0);
            for row in runs.iter().cloned().flatten() {
                bits[row as usize / 64] |= 1_u64 << (row % 64);
            }
        }
        Self { block, places: places.into(), runs: runs.into(), rows, bits: bits.into() }
    }

    /// All of a block: each part at the place that `place` gives it.
    pub fn all(block: Arc<PostingsBlock>, place: impl Fn(&BlockPart) -> u32) -> Self {
        let places = block.parts().iter().map(place).collect();
        Self::new(block, places)
    }

    /// The block.
    pub fn block(&self) -> &PostingsBlock {
        &self.block
    }

    /// How many rows are searched.
    pub const fn row_count(&self) -> u32 {
        self.rows
    }

    /// The same parts of a copy of the block with these terms only; see [`PostingsBlock::only`].
    #[must_use]
    pub fn only(&self, terms: &[TermId]) -> Self {
        self.of(self.block.only(terms))
    }

    /// The same parts of a block that has the same parts.
    fn of(&self, block: PostingsBlock) -> Self {
        Self { block: Arc::new(block), ..self.clone() }
    }

    /// The memory that it takes with its block, in bytes.
    pub fn byte_len(&self) -> usize {
        self.block.byte_len()
            + self.places.len() * size_of::<u32>()
            + self.runs.len() * size_of::<Range<u32>>()
            + self.bits.len() * size_of::<u64>()
    }

    /// The place of a row's generation, and the row's ordinal in it.
    pub(super) fn name(&self, row: u32) -> Option<(u32, u32)> {
        let index = self.block.part_of(row);
        let part = self.block.parts().get(index)?;
        let place = self.places.get(index).copied().filter(|place| *place != NOT_SEARCHED)?;
        Some((place, part.first_ordinal + (row - part.rows().start)))
    }

    /// The searched rows within `rows`, in runs.
    pub(super) fn runs_in(&self, rows: Range<u32>) -> impl Iterator<Item = Range<u32>> + '_ {
        let first = self.runs.partition_point(|run| run.end <= rows.start);
        self.runs[first..]
            .iter()
            .take_while(move |run| run.start < rows.end)
            .map(move |run| run.start.max(rows.start)..run.end.min(rows.end))
    }

    /// How many searched rows contain a term.
    pub(super) fn frequency(&self, term: TermId) -> u64 {
        let (rows, weights) = self.block.postings(term);
        if self.bits.is_empty() {
            return rows.len() as u64;
        }
        let mut count = 0;
        self.each(rows, weights, |_, _| count += 1);
        count
    }

    /// Calls `visit` with the searched rows that contain a term, ascending, and its weight in each.
    pub(super) fn each_posting(&self, term: TermId, visit: impl FnMut(u16, f32)) {
        let (rows, weights) = self.block.postings(term);
        self.each(rows, weights, visit);
    }

    fn each(&self, mut rows: &[u16], mut weights: &[f32], mut visit: impl FnMut(u16, f32)) {
        if self.bits.is_empty() {
            for (row, weight) in rows.iter().zip(weights) {
                visit(*row, *weight);
            }
        } else if rows.len() / STEP <= self.runs.len() {
            for (row, weight) in rows.iter().zip(weights) {
                if self.bits[usize::from(*row) / 64] >> (row % 64) & 1 == 1 {
                    visit(*row, *weight);
                }
            }
        } else {
            for run in self.runs.iter() {
                let first = gallop(rows, run.start);
                (rows, weights) = (&rows[first..], &weights[first..]);
                let inside = gallop(rows, run.end);
                for (row, weight) in rows[..inside].iter().zip(weights) {
                    visit(*row, *weight);
                }
                (rows, weights) = (&rows[inside..], &weights[inside..]);
            }
        }
    }
}

/// How many of the ascending rows are less than `row`, found in steps that double: it is most often near.
fn gallop(rows: &[u16], row: u32) -> usize {
    let mut step = 1;
    while rows.get(step - 1).is_some_and(|at| u32::from(*at) < row) {
        step *= 2;
    }
    let (from, to) = (step / 2, (step - 1).min(rows.len()));
    from + rows[from..to].partition_point(|at| u32::from(*at) < row)
}
