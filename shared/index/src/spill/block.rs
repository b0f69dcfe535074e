//! A block in a file.
//!
//! Layout, little-endian, every section right after the one before:
//!
//! | section | content |
//! |---|---|
//! | postings | of each term, `u16` × its rows, then `f32` × its weights |
//! | directory | of each term, ascending, itself (`u64`) and how many postings there are up to its last one (`u32`) |
//! | codes | of each row, the scale, length and error of its codes (`f32` × 3), then the codes |
//! | vectors | `f32` × dimension × rows, row by row |
//!
//! The last two are empty where passages have no vectors. The first term of each page of the directory is in memory, so that looking
//! up a term takes two reads: its page, and its postings.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    ops::Range,
    os::unix::fs::FileExt,
    sync::Arc,
};

use super::SpillRoom;
use crate::{
    lexical::TermId,
    quantize::{CodeMatrix, Quantized, code_bytes},
    segment::{PostingsBlock, distinct},
};

/// Terms in a page of the directory.
const PAGE: usize = 256;
/// The bytes of a term in the directory.
const ENTRY: usize = 12;
/// The bytes of a posting.
const POSTING: usize = 6;
/// The bytes that are known of a row's codes.
const KNOWN: usize = 12;
/// The bytes that are written at a time.
const BUFFER: usize = 256 << 10;

/// A block whose postings and vectors are in a file, which goes with it. Immutable.
#[derive(Debug)]
pub(crate) struct SpilledBlock {
    /// All but what is in the file.
    outline: Arc<PostingsBlock>,
    file: File,
    /// The first term of each page of the directory, and how many postings come before it.
    pages: Vec<(TermId, u32)>,
    terms: usize,
    postings: usize,
    room: SpillRoom,
}

impl SpilledBlock {
    /// The bytes of the file of a block.
    pub(crate) fn file_len(block: &PostingsBlock) -> u64 {
        let (terms, postings) = block.counts();
        let row = dimension(block).map_or(0, |dimension| record(dimension) + dimension * size_of::<f32>());
        (postings * POSTING + terms * ENTRY + block.row_count() as usize * row) as u64
    }

    /// Writes a block to an empty file.
    pub(super) fn write(block: &PostingsBlock, file: File, room: SpillRoom) -> io::Result<Self> {
        let mut to = BufWriter::with_capacity(BUFFER, file);
        for (_, rows, weights) in block.all_postings() {
            for row in rows {
                to.write_all(&row.to_le_bytes())?;
            }
            write_numbers(&mut to, weights)?;
        }
        let (mut pages, mut end) = (Vec::new(), 0_u32);
        for (number, (term, rows, _)) in block.all_postings().enumerate() {
            if number % PAGE == 0 {
                pages.push((term, end));
            }
            // A block has fewer postings than 2³².
            end = end.saturating_add(u32::try_from(rows.len()).unwrap_or(u32::MAX));
            to.write_all(&term.0.to_le_bytes())?;
            to.write_all(&end.to_le_bytes())?;
        }
        if dimension(block).is_some() {
            for row in 0..block.row_count() {
                let codes = block.codes(row..row + 1);
                for known in [codes.scales, codes.lengths, codes.errors] {
                    write_numbers(&mut to, known)?;
                }
                for line in codes.codes {
                    to.write_all(&line.0)?;
                }
            }
            for row in 0..block.row_count() {
                write_numbers(&mut to, block.vectors(row..row + 1))?;
            }
        }
        let file = to.into_inner().map_err(io::IntoInnerError::into_error)?;
        let (terms, postings) = block.counts();
        Ok(Self { outline: Arc::new(block.outline()), file, pages, terms, postings, room })
    }

    /// The block without postings and vectors.
    pub(crate) fn outline(&self) -> &Arc<PostingsBlock> {
        &self.outline
    }

    /// The room that its file takes, in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.room.bytes
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        size_of::<Self>() + self.outline.byte_len() + self.pages.capacity() * size_of::<(TermId, u32)>()
    }

    /// The block with the postings of these terms only, and without vectors.
    pub(crate) fn only(&self, wanted: &[TermId]) -> io::Result<PostingsBlock> {
        let mut only = self.outline.outline();
        let mut bytes = Vec::new();
        for term in distinct(wanted) {
            let Some(bounds) = self.bounds(term)? else { continue };
            bytes.resize(bounds.len() * POSTING, 0);
            self.file.read_exact_at(&mut bytes, (bounds.start * POSTING) as u64)?;
            let (rows, weights) = bytes.split_at(bounds.len() * size_of::<u16>());
            let rows = rows.as_chunks().0.iter().map(|row| u16::from_le_bytes(*row));
            only.push_postings(term, rows, numbers(weights));
        }
        Ok(only)
    }

    /// The codes of these rows.
    pub(crate) fn codes(&self, rows: Range<u32>) -> io::Result<CodeMatrix> {
        let Some(dimension) = dimension(&self.outline) else { return Ok(CodeMatrix::default()) };
        let record = record(dimension);
        let mut bytes = vec![0; rows.len() * record];
        self.file.read_exact_at(&mut bytes, (self.codes_start() + rows.start as usize * record) as u64)?;
        let mut matrix = CodeMatrix::with_capacity(rows.len(), dimension);
        for row in bytes.chunks_exact(record) {
            let (known, codes) = row.split_at(KNOWN);
            let mut known = numbers(known);
            let [scale, length, error] = std::array::from_fn(|_| known.next().unwrap_or(f32::NAN));
            matrix.push(Quantized { scale, length, error }, codes);
        }
        Ok(matrix)
    }

    /// The vector of a row.
    pub(crate) fn vector(&self, row: u32) -> io::Result<Vec<f32>> {
        let Some(dimension) = dimension(&self.outline) else { return Ok(Vec::new()) };
        let mut bytes = vec![0; dimension * size_of::<f32>()];
        let vectors = self.codes_start() + self.outline.row_count() as usize * record(dimension);
        self.file
            .read_exact_at(&mut bytes, (vectors + row as usize * dimension * size_of::<f32>()) as u64)?;
        Ok(numbers(&bytes).collect())
    }

    /// Where the codes begin in the file.
    fn codes_start(&self) -> usize {
        self.postings * POSTING + self.terms * ENTRY
    }

    /// Which of the postings are a term's; none when it has none.
    fn bounds(&self, term: TermId) -> io::Result<Option<Range<usize>>> {
        let Some(page) = self.pages.partition_point(|(first, _)| *first <= term).checked_sub(1) else {
            return Ok(None);
        };
        let first = page * PAGE;
        let mut bytes = [0; PAGE * ENTRY];
        let bytes = &mut bytes[..PAGE.min(self.terms - first) * ENTRY];
        self.file.read_exact_at(bytes, (self.postings * POSTING + first * ENTRY) as u64)?;
        let entries: &[[u8; ENTRY]] = bytes.as_chunks().0;
        let Ok(at) = entries.binary_search_by_key(&Some(term), term_of) else { return Ok(None) };
        let start = match at.checked_sub(1) {
            Some(before) => end_of(&entries[before]),
            None => self.pages[page].1,
        };
        Ok(Some(start as usize..end_of(&entries[at]) as usize))
    }
}

/// The term of an entry of the directory.
fn term_of(entry: &[u8; ENTRY]) -> Option<TermId> {
    entry.first_chunk().map(|term| TermId(u64::from_le_bytes(*term)))
}

/// How many postings there are up to the last one of an entry's term.
fn end_of(entry: &[u8; ENTRY]) -> u32 {
    entry.last_chunk().map_or(0, |end| u32::from_le_bytes(*end))
}

/// The dimension of a block's vectors, if it has any.
fn dimension(block: &PostingsBlock) -> Option<usize> {
    block.kind().space().map(|(_, dimension)| dimension)
}

/// The bytes of a row in the section of codes.
const fn record(dimension: usize) -> usize {
    KNOWN + code_bytes(dimension)
}

fn write_numbers(to: &mut impl Write, numbers: &[f32]) -> io::Result<()> {
    numbers.iter().try_for_each(|number| to.write_all(&number.to_le_bytes()))
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use lectern_shared::ids::GenerationId;
    use uuid::Uuid;

    use super::*;
    use crate::{
        segment::{BlockKind, MergeSource, Segment, SegmentBuilder},
        spill::SpillSpace,
    };

    const PASSAGES: u16 = 600;
    /// More than a line of codes, and no whole number of them.
    const DIMENSION: u16 = 70;

    /// A block of a word for each passage, and one that is in all.
    fn block() -> PostingsBlock {
        let mut builder = SegmentBuilder::with_space(0, Uuid::from_u128(1), usize::from(DIMENSION)).unwrap();
        for passage in 0..PASSAGES {
            let vector: Vec<f32> =
                (0..DIMENSION).map(|at| f32::from(passage) - 3.5 * f32::from(at)).collect();
            builder.push(&format!("everywhere word{passage}"), Some(&vector)).unwrap();
        }
        let segment = Segment::from_bytes(builder.finish()).unwrap();
        let source = MergeSource::Segment(GenerationId::generate(), &segment);
        PostingsBlock::merge(BlockKind::of(&segment), &[source])
    }

    #[test]
    fn what_is_read_of_a_file_is_what_was_in_memory() {
        let block = block();
        let folder = tempfile::tempdir().unwrap();
        let space = SpillSpace::of_blocks_from(folder.path().to_owned(), 1 << 30, 1, u64::MAX);
        let spilled = space.write(&block).unwrap();
        assert_eq!(spilled.file.metadata().unwrap().len(), SpilledBlock::file_len(&block));
        assert!(block.counts().0 > 2 * PAGE, "the directory has several pages");
        for (term, rows, weights) in block.all_postings() {
            assert_eq!(spilled.only(&[term]).unwrap().postings(term), (rows, weights));
        }
        for absent in [TermId(0), TermId::of("nowhere"), TermId(u64::MAX)] {
            assert_eq!(spilled.only(&[absent]).unwrap().counts(), (0, 0));
        }
        let some = [TermId(u64::MAX), TermId::of("word7"), TermId::of("everywhere"), TermId::of("word7")];
        let (read, kept) = (spilled.only(&some).unwrap(), block.only(&some));
        assert!(read.all_postings().eq(kept.all_postings()));
        for rows in [0..1, 100..170, 599..600] {
            let codes = spilled.codes(rows.clone()).unwrap();
            let read = codes.rows(0..rows.len(), usize::from(DIMENSION));
            let kept = block.codes(rows.clone());
            assert_eq!(
                (read.codes, read.scales, read.lengths, read.errors),
                (kept.codes, kept.scales, kept.lengths, kept.errors)
            );
            let vectors: Vec<f32> = rows.clone().flat_map(|row| spilled.vector(row).unwrap()).collect();
            assert_eq!(vectors, block.vectors(rows));
        }
        drop(spilled);
        assert_eq!(space.taken(), 0);
    }
}
