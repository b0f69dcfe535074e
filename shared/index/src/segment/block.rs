//! Segments merged in memory, to be searched as one.
//!
//! Many small documents are many small segments; to look up a word in each costs more than to score it. A block holds the
//! passages of many segments of one language and one embedding space as rows: one list of terms, and one matrix.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    mem::size_of,
    ops::Range,
    sync::Arc,
};

use lectern_shared::{ids::GenerationId, model::language::Language};
use uuid::Uuid;

use super::{super::lexical::TermId, Segment, matrix::VectorMatrix};
use crate::quantize::CodeRows;

/// The most rows of a block: they are numbered in 16 bits.
pub const MAX_ROWS: u32 = 1 << 16;

/// What all segments of a block have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockKind {
    language: Language,
    /// The embedding space and its dimension; none for passages without vectors.
    space: Option<(Uuid, usize)>,
}

impl BlockKind {
    /// The kind of a segment.
    pub fn of(segment: &Segment) -> Self {
        let space = segment.dense().map(|dense| (dense.space(), dense.dimension()));
        Self { language: segment.language(), space }
    }

    /// The language that the terms were made with.
    pub const fn language(self) -> Language {
        self.language
    }

    /// The embedding space of the vectors and their dimension.
    pub const fn space(self) -> Option<(Uuid, usize)> {
        self.space
    }
}

/// The rows of one segment.
#[derive(Clone, Debug)]
pub struct BlockPart {
    /// The generation that the segment is of.
    pub generation: GenerationId,
    /// The ordinal in the generation of the first row.
    pub first_ordinal: u32,
    start: u32,
    end: u32,
}

impl BlockPart {
    /// Its rows in the block.
    pub const fn rows(&self) -> Range<u32> {
        self.start..self.end
    }

    /// How many rows it has.
    pub const fn len(&self) -> u32 {
        self.end - self.start
    }

    /// Never true of a part of a block.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// What a block is merged from.
pub enum MergeSource<'a> {
    /// A segment of a generation.
    Segment(GenerationId, &'a Segment),
    /// Those parts of a block for which the other is true.
    Block(&'a PostingsBlock, &'a [bool]),
}

/// Rows of the same kind, as one. Immutable.
#[derive(Debug)]
pub struct PostingsBlock {
    kind: BlockKind,
    /// Shared with the copies that have a part of the postings.
    parts: Arc<[BlockPart]>,
    terms: Vec<TermId>,
    /// Where each term's postings begin, and their end.
    starts: Vec<u32>,
    weights: Vec<f32>,
    rows: Vec<u16>,
    matrix: VectorMatrix,
}

impl PostingsBlock {
    /// Merges sources of one kind, in their order; what is of another kind, or too much for [`MAX_ROWS`], is left out.
    pub fn merge(kind: BlockKind, sources: &[MergeSource<'_>]) -> Self {
        let mut merge = BlockMerger::default();
        let mut taken: Vec<MergeInput<'_>> = Vec::with_capacity(sources.len());
        for source in sources {
            let taken_now = match source {
                MergeSource::Segment(generation, segment) if BlockKind::of(segment) == kind => merge
                    .take(*generation, segment.first_ordinal(), segment.chunk_count())
                    .map(|start| MergeInput {
                        postings: AnyPostings::Segment(segment),
                        rows: RowMapping::From(start),
                        first_slot: 0,
                    }),
                MergeSource::Block(block, live) if block.kind == kind => {
                    let rows = merge.take_parts(block, live);
                    Some(MergeInput { postings: AnyPostings::Block(block), rows, first_slot: 0 })
                }
                _ => None,
            };
            taken.extend(taken_now);
        }
        for source in &mut taken {
            source.first_slot = merge.slots.len();
            source.visit(&mut merge);
        }
        let (terms, starts, mut cursors) = merge.lay_out();
        let postings = starts.last().map_or(0, |end| *end as usize);
        let (mut weights, mut rows) = (vec![0.0; postings], vec![0; postings]);
        for source in &taken {
            let slots = merge.slots[source.first_slot..].iter();
            let (rows, weights) = (&mut rows, &mut weights);
            source.visit(&mut PostingsScatter { slots, cursors: &mut cursors, rows, weights });
        }
        let dimension = kind.space.map_or(0, |(_, dimension)| dimension);
        let mut matrix = VectorMatrix::with_capacity(merge.rows as usize, dimension);
        if dimension > 0 {
            for source in &taken {
                source.copy_vectors(&mut matrix);
            }
        }
        Self { kind, parts: merge.parts.into(), terms, starts, weights, rows, matrix }
    }

    /// A copy with the postings of these terms only, and without vectors.
    #[must_use]
    pub fn only(&self, wanted: &[TermId]) -> Self {
        let mut only = self.outline();
        for term in distinct(wanted) {
            let (rows, weights) = self.postings(term);
            only.push_postings(term, rows.iter().copied(), weights.iter().copied());
        }
        only
    }

    /// A copy without postings and vectors.
    #[must_use]
    pub(crate) fn outline(&self) -> Self {
        Self {
            kind: self.kind,
            parts: Arc::clone(&self.parts),
            terms: Vec::new(),
            starts: vec![0],
            weights: Vec::new(),
            rows: Vec::new(),
            matrix: VectorMatrix::with_capacity(0, 0),
        }
    }

    /// Adds the postings of a term that is greater than those before it. One without postings is passed over.
    pub(crate) fn push_postings(
        &mut self,
        term: TermId,
        rows: impl Iterator<Item = u16>,
        weights: impl Iterator<Item = f32>,
    ) {
        let before = self.rows.len();
        self.rows.extend(rows);
        self.weights.extend(weights);
        if self.rows.len() > before {
            self.terms.push(term);
            self.starts.push(narrow(self.rows.len()));
        }
    }

    /// What its segments have in common.
    pub const fn kind(&self) -> BlockKind {
        self.kind
    }

    /// The segments that it was made of, by row.
    pub fn parts(&self) -> &[BlockPart] {
        &self.parts
    }

    /// How many rows it has.
    pub fn row_count(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// The part that a row is in.
    pub fn part_of(&self, row: u32) -> usize {
        self.parts.partition_point(|part| part.end <= row)
    }

    /// The rows that contain a term, ascending, and its weight in each; empty when there are none.
    pub fn postings(&self, term: TermId) -> (&[u16], &[f32]) {
        self.bounds(term).map_or((&[], &[]), |range| (&self.rows[range.clone()], &self.weights[range]))
    }

    /// How many terms it has, and how many postings.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.terms.len(), self.rows.len())
    }

    /// Every term, ascending, with the rows that contain it, ascending, and its weight in each.
    pub(crate) fn all_postings(&self) -> impl Iterator<Item = (TermId, &[u16], &[f32])> {
        self.terms.iter().zip(self.starts.array_windows()).map(|(term, bounds)| {
            let [start, end] = bounds.map(|bound| bound as usize);
            (*term, &self.rows[start..end], &self.weights[start..end])
        })
    }

    /// The vectors of these rows, one after the other.
    pub fn vectors(&self, rows: Range<u32>) -> &[f32] {
        self.matrix.rows(rows)
    }

    /// The same vectors in eight bits.
    pub(crate) fn codes(&self, rows: Range<u32>) -> CodeRows<'_> {
        self.matrix.codes(rows)
    }

    /// The memory that it takes, in bytes.
    pub fn byte_len(&self) -> usize {
        size_of::<Self>()
            + self.parts.len() * size_of::<BlockPart>()
            + self.terms.capacity() * size_of::<TermId>()
            + self.starts.capacity() * size_of::<u32>()
            + self.weights.capacity() * size_of::<f32>()
            + self.rows.capacity() * size_of::<u16>()
            + self.matrix.byte_len()
    }

    fn bounds(&self, term: TermId) -> Option<Range<usize>> {
        let index = self.terms.binary_search(&term).ok()?;
        match self.starts.get(index..index + 2)? {
            [start, end] => Some(*start as usize..*end as usize),
            _ => None,
        }
    }
}

/// A source, and where its rows go.
struct MergeInput<'a> {
    postings: AnyPostings<'a>,
    rows: RowMapping,
    /// Where in [`BlockMerger::slots`] those of its terms begin.
    first_slot: usize,
}

enum AnyPostings<'a> {
    Segment(&'a Segment),
    Block(&'a PostingsBlock),
}

/// The new number of each row of a source.
enum RowMapping {
    /// All are kept, and numbered from here.
    From(u32),
    /// For each old row; none for those that are left out.
    Map(Vec<Option<u16>>),
}

/// What is done with the postings of a source.
trait PostingsVisitor {
    fn visit(&mut self, term: TermId, postings: impl Iterator<Item = (u16, f32)>);
}

impl MergeInput<'_> {
    /// Shows every term and its postings, by ascending term, to a visitor.
    fn visit(&self, visitor: &mut impl PostingsVisitor) {
        match (&self.postings, &self.rows) {
            (AnyPostings::Segment(segment), RowMapping::From(start)) => {
                for (term, postings) in segment.all_postings() {
                    visitor.visit(term, postings.iter().map(moved(*start)));
                }
            }
            (AnyPostings::Segment(segment), RowMapping::Map(map)) => {
                for (term, postings) in segment.all_postings() {
                    visitor.visit(term, postings.iter().filter_map(mapped(map)));
                }
            }
            (AnyPostings::Block(block), RowMapping::From(start)) => {
                for (term, rows, weights) in block.all_postings() {
                    visitor.visit(term, paired(rows, weights).map(moved(*start)));
                }
            }
            (AnyPostings::Block(block), RowMapping::Map(map)) => {
                for (term, rows, weights) in block.all_postings() {
                    visitor.visit(term, paired(rows, weights).filter_map(mapped(map)));
                }
            }
        }
    }

    fn copy_vectors(&self, matrix: &mut VectorMatrix) {
        match (&self.postings, &self.rows) {
            (AnyPostings::Segment(segment), _) => {
                if let Some(dense) = segment.dense() {
                    matrix.extend(dense.numbers());
                }
            }
            (AnyPostings::Block(block), RowMapping::From(_)) => {
                matrix.copy(&block.matrix, 0..block.row_count());
            }
            (AnyPostings::Block(block), RowMapping::Map(map)) => {
                for part in block.parts.iter() {
                    if map.get(part.start as usize).is_some_and(Option::is_some) {
                        matrix.copy(&block.matrix, part.rows());
                    }
                }
            }
        }
    }
}

/// Rows and the weights in them, as postings.
fn paired(rows: &[u16], weights: &[f32]) -> impl Iterator<Item = (u16, f32)> {
    rows.iter().copied().zip(weights.iter().copied())
}

/// These terms, ascending, each once.
pub(crate) fn distinct(terms: &[TermId]) -> Vec<TermId> {
    let mut distinct = terms.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// A posting of a source whose rows follow those before it, which are so many. The last is below [`MAX_ROWS`].
#[allow(clippy::cast_possible_truncation, reason = "rows are below 2^16")]
fn moved(start: u32) -> impl Fn((u16, f32)) -> (u16, f32) {
    let start = start as u16;
    move |(row, weight)| (start.wrapping_add(row), weight)
}

/// A posting of a row that is kept.
fn mapped(map: &[Option<u16>]) -> impl Fn((u16, f32)) -> Option<(u16, f32)> {
    move |(row, weight)| Some(((*map.get(usize::from(row))?)?, weight))
}

/// Terms are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A block in the making. Postings are counted first and then put where they belong, so that nothing is sorted but the
/// distinct terms.
#[derive(Default)]
struct BlockMerger {
    parts: Vec<BlockPart>,
    rows: u32,
    /// The number of each distinct term, in the order of its first occurrence.
    numbers: HashMap<TermId, u32, BuildHasherDefault<IdentityHasher>>,
    terms: Vec<TermId>,
    counts: Vec<u32>,
    /// The number of every term of every source, in order: looked up once.
    slots: Vec<u32>,
}

impl BlockMerger {
    fn take(&mut self, generation: GenerationId, first_ordinal: u32, rows: u32) -> Option<u32> {
        let start = self.rows;
        let end = start.checked_add(rows).filter(|end| *end <= MAX_ROWS && rows > 0)?;
        self.parts.push(BlockPart { generation, first_ordinal, start, end });
        self.rows = end;
        Some(start)
    }

    fn take_parts(&mut self, block: &PostingsBlock, live: &[bool]) -> RowMapping {
        let start = self.rows;
        let mut map = vec![None; block.row_count() as usize];
        let mut whole = true;
        for (part, live) in block.parts.iter().zip(live) {
            let start = live.then(|| self.take(part.generation, part.first_ordinal, part.len())).flatten();
            whole &= start.is_some();
            for (new, old) in (start.unwrap_or(0)..).zip(part.rows()) {
                map[old as usize] = start.and_then(|_| u16::try_from(new).ok());
            }
        }
        if whole && live.len() >= block.parts.len() { RowMapping::From(start) } else { RowMapping::Map(map) }
    }

    /// The distinct terms that are left, ascending, the bounds of their postings, and where those of each number begin.
    fn lay_out(&mut self) -> (Vec<TermId>, Vec<u32>, Vec<u32>) {
        self.numbers = HashMap::default();
        let mut order: Vec<(TermId, u32)> = self.terms.iter().copied().zip(0..).collect();
        order.retain(|(_, number)| self.counts[*number as usize] > 0);
        order.sort_unstable();
        let mut starts = Vec::with_capacity(order.len() + 1);
        let mut cursors = vec![0; self.terms.len()];
        let mut start = 0;
        starts.push(start);
        for (_, number) in &order {
            cursors[*number as usize] = start;
            start += self.counts[*number as usize];
            starts.push(start);
        }
        (order.into_iter().map(|(term, _)| term).collect(), starts, cursors)
    }
}

/// Counts the postings of each term.
impl PostingsVisitor for BlockMerger {
    fn visit(&mut self, term: TermId, postings: impl Iterator<Item = (u16, f32)>) {
        let number = *self.numbers.entry(term).or_insert_with(|| {
            self.terms.push(term);
            self.counts.push(0);
            narrow(self.terms.len() - 1)
        });
        self.slots.push(number);
        self.counts[number as usize] += narrow(postings.count());
    }
}

/// Puts postings where they belong. Rows of later sources are greater, so every list is ascending.
struct PostingsScatter<'a> {
    /// The numbers of the terms that come next.
    slots: std::slice::Iter<'a, u32>,
    /// Where the next posting of each number goes.
    cursors: &'a mut [u32],
    rows: &'a mut [u16],
    weights: &'a mut [f32],
}

impl PostingsVisitor for PostingsScatter<'_> {
    fn visit(&mut self, _: TermId, postings: impl Iterator<Item = (u16, f32)>) {
        let Some(cursor) = self.slots.next().and_then(|number| self.cursors.get_mut(*number as usize)) else {
            return;
        };
        for (row, weight) in postings {
            self.rows[*cursor as usize] = row;
            self.weights[*cursor as usize] = weight;
            *cursor += 1;
        }
    }
}

/// Counts in a block are bounded far below 2³² by its number of rows and the lengths of segments.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
