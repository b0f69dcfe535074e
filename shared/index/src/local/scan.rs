//! Searching what is in memory and in files.

use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{StreamExt, stream::FuturesUnordered};
use lectern_shared::compute::ComputePool;

use super::arena::ResolvedBlocks;
use crate::{
    IndexError, SpaceVector,
    quantize::code_bytes,
    score::{BlockSelection, DenseSearch, LexicalSearch, ScoredHit, SpilledSelection},
};

/// The bytes of codes that are one piece of work: some tenths of a millisecond.
const PIECE: usize = 4 << 20;
/// Scans of fewer bytes are done at once: another thread would come too late to help.
const SMALL: usize = 2 * PIECE;

/// A question, ready to be put to blocks.
#[derive(Debug, Clone)]
pub(super) struct ScanQuery {
    /// Its words.
    pub(super) text: String,
    /// Its vectors.
    pub(super) vectors: Vec<SpaceVector>,
    /// The most hits of each kind.
    pub(super) depth: usize,
}

impl ScanQuery {
    /// A search for each of its vectors.
    pub(super) fn dense(&self) -> Vec<DenseSearch> {
        let search = |v: &SpaceVector| DenseSearch::new(v.space, v.vector.clone(), self.depth);
        self.vectors.iter().map(search).collect()
    }
}

/// What was found, best first: by words, and for each vector.
#[derive(Debug)]
pub(super) struct RankedHits {
    pub(super) lexical: Vec<ScoredHit>,
    pub(super) dense: Vec<Vec<ScoredHit>>,
}

/// Everything that is to be done for one search.
struct BlockScan {
    question: ScanQuery,
    selections: Arc<[BlockSelection]>,
    spilled: Arc<[SpilledSelection]>,
    pieces: Vec<ScanTask>,
    next: AtomicUsize,
}

enum ScanTask {
    /// All of the lexical search: it takes much less than the dense one.
    Lexical,
    /// For one vector, the rows of one of the blocks.
    Dense { vector: usize, selection: usize, rows: Range<u32> },
    /// For one vector, one of the blocks in files.
    Spilled { vector: usize, selection: usize },
}

/// What one thread has done of a scan.
struct ThreadScan {
    pieces: usize,
    lexical: Vec<ScoredHit>,
    dense: Vec<DenseSearch>,
}

/// Whether the scan is so small that it is done at once, by [`scan_here`].
pub(super) fn is_small(question: &ScanQuery, blocks: &ResolvedBlocks) -> bool {
    let bytes: usize =
        blocks.selections.iter().map(|selection| row_bytes(selection) * selection.row_count() as usize).sum();
    blocks.spilled.is_empty() && bytes * question.vectors.len() <= SMALL
}

/// Searches these blocks on this thread.
pub(super) fn scan_here(question: ScanQuery, blocks: ResolvedBlocks) -> io::Result<RankedHits> {
    let scan = BlockScan::new(question, blocks);
    let share = scan.work()?;
    Ok(RankedHits {
        lexical: share.lexical,
        dense: share.dense.into_iter().map(DenseSearch::finish).collect(),
    })
}

/// Searches these blocks on as many threads as are free, `threads` at most. Every thread waits for its slot like any other
/// work, and who gets one takes what is left to do; the answer waits for nobody who has not begun.
pub(super) async fn scan(
    compute: &ComputePool,
    threads: usize,
    question: ScanQuery,
    blocks: ResolvedBlocks,
) -> Result<RankedHits, IndexError> {
    let mut lexical = Vec::new();
    let mut dense = question.dense();
    let scan = Arc::new(BlockScan::new(question, blocks));
    let mut left = scan.pieces.len();
    let mut threads: FuturesUnordered<_> = (0..threads.clamp(1, left.max(1)))
        .map(|_| {
            let scan = Arc::clone(&scan);
            compute.run(move || scan.work())
        })
        .collect();
    while left > 0
        && let Some(share) = threads.next().await
    {
        let share = share??;
        left -= share.pieces.min(left);
        lexical.extend(share.lexical);
        for (dense, found) in dense.iter_mut().zip(share.dense) {
            dense.join(found);
        }
    }
    Ok(RankedHits { lexical, dense: dense.into_iter().map(DenseSearch::finish).collect() })
}

impl BlockScan {
    fn new(question: ScanQuery, blocks: ResolvedBlocks) -> Self {
        let ResolvedBlocks { selections, spilled, .. } = blocks;
        let mut pieces = vec![ScanTask::Lexical];
        for (vector, search) in question.dense().iter().enumerate() {
            for (number, selection) in selections.iter().enumerate().filter(|(_, s)| search.concerns(s)) {
                let rows = selection.block().row_count();
                // As many searched rows in each piece, on average.
                let bytes = row_bytes(selection) * selection.row_count() as usize;
                let step = rows.div_ceil(u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(rows).max(1)).max(1);
                pieces.extend((0..rows).step_by(step as usize).map(|start| ScanTask::Dense {
                    vector,
                    selection: number,
                    rows: start..rows.min(start.saturating_add(step)),
                }));
            }
            let in_files = spilled.iter().enumerate().filter(|(_, s)| search.concerns(s.outline()));
            pieces.extend(in_files.map(|(selection, _)| ScanTask::Spilled { vector, selection }));
        }
        Self { question, selections, spilled, pieces, next: AtomicUsize::new(0) }
    }

    /// Does pieces until none is left.
    fn work(&self) -> io::Result<ThreadScan> {
        let mut share = ThreadScan { pieces: 0, lexical: Vec::new(), dense: self.question.dense() };
        while let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            match piece {
                ScanTask::Lexical => share.lexical = self.lexical()?,
                ScanTask::Dense { vector, selection, rows } => {
                    if let (Some(search), Some(selection)) =
                        (share.dense.get_mut(*vector), self.selections.get(*selection))
                    {
                        search.add(selection, rows.clone());
                    }
                }
                ScanTask::Spilled { vector, selection } => {
                    if let (Some(search), Some(selection)) =
                        (share.dense.get_mut(*vector), self.spilled.get(*selection))
                    {
                        search.add_spilled(selection)?;
                    }
                }
            }
            share.pieces += 1;
        }
        Ok(share)
    }

    fn lexical(&self) -> io::Result<Vec<ScoredHit>> {
        let mut search = LexicalSearch::new(&self.question.text);
        for selection in self.selections.iter() {
            search.count(selection);
        }
        for selection in self.spilled.iter() {
            search.count_spilled(selection)?;
        }
        let mut scorer = search.score(self.question.depth);
        for selection in self.selections.iter() {
            scorer.add(selection);
        }
        for selection in self.spilled.iter() {
            scorer.add_spilled(selection)?;
        }
        Ok(scorer.finish())
    }
}

/// The bytes of a row that are scanned: its codes. Few rows are looked at otherwise.
fn row_bytes(selection: &BlockSelection) -> usize {
    selection.block().kind().space().map_or(0, |(_, dimension)| code_bytes(dimension))
}
