//! The search by meaning.

use std::{convert::Infallible, io, ops::Range};

use uuid::Uuid;

use super::{
    BlockSelection, ScoredHit, SpilledSelection, TopHits,
    bounds::{BATCH, ProductBounds},
    dot::DotProduct,
};
use crate::quantize::{CodeRows, code_bytes};

/// The bytes of codes that are read of a file at a time.
const PIECE: usize = 1 << 20;

/// The search of the passages nearest to a question's vector by the dot product, which is the cosine of unit vectors. Rows
/// are visited once, in any order and by as many searches as one likes, which are then put together.
///
/// Of each row it reads the codes in eight bits, and of those that may be among the best the vector: the hits and their scores
/// are those of the vectors.
#[derive(Debug, Clone)]
pub struct DenseSearch {
    space: Uuid,
    product: DotProduct,
    bounds: ProductBounds,
    best: TopHits,
}

impl DenseSearch {
    /// Begins a search in one embedding space.
    pub fn new(space: Uuid, vector: Vec<f32>, limit: usize) -> Self {
        let bounds = ProductBounds::new(&vector);
        Self { space, product: DotProduct::new(vector), bounds, best: TopHits::new(limit) }
    }

    /// Whether a block's vectors are of the space.
    pub fn concerns(&self, selection: &BlockSelection) -> bool {
        selection.block().kind().space() == Some((self.space, self.product.dimension()))
    }

    /// Scores what is searched of these rows of a block. One without vectors of the space is passed over.
    pub fn add(&mut self, selection: &BlockSelection, rows: Range<u32>) {
        if !self.concerns(selection) {
            return;
        }
        let block = selection.block();
        for batch in selection.runs_in(rows).flat_map(|run| pieces(run, BATCH)) {
            let vector = |row| Ok::<_, Infallible>(block.vectors(row..row + 1));
            let Ok(()) = self.add_batch(selection, batch.clone(), block.codes(batch), vector);
        }
    }

    /// Scores what is searched of a block in a file.
    pub(crate) fn add_spilled(&mut self, selection: &SpilledSelection) -> io::Result<()> {
        let outline = selection.outline();
        if !self.concerns(outline) {
            return Ok(());
        }
        let (block, dimension) = (selection.block(), self.product.dimension());
        let step = u32::try_from(PIECE / code_bytes(dimension).max(1)).unwrap_or(BATCH).max(1);
        for piece in outline.runs_in(0..outline.block().row_count()).flat_map(|run| pieces(run, step)) {
            let codes = block.codes(piece.clone())?;
            for batch in pieces(piece.clone(), BATCH) {
                let [start, end] = [batch.start, batch.end].map(|row| (row - piece.start) as usize);
                let codes = codes.rows(start..end, dimension);
                self.add_batch(outline, batch, codes, |row| block.vector(row))?;
            }
        }
        Ok(())
    }

    /// Scores [`BATCH`] rows at most, which are all searched: by their codes, and by the vectors of those that may be among the best.
    fn add_batch<V: AsRef<[f32]>, E>(
        &mut self,
        selection: &BlockSelection,
        batch: Range<u32>,
        codes: CodeRows<'_>,
        mut vector: impl FnMut(u32) -> Result<V, E>,
    ) -> Result<(), E> {
        for (row, bound) in batch.zip(self.bounds.of(codes)) {
            if self.best.rejects(bound) {
                continue;
            }
            let score = self.product.with(vector(row)?.as_ref());
            if self.best.admits(score)
                && let Some((place, ordinal)) = selection.name(row)
            {
                self.best.push(ScoredHit { place, ordinal, score });
            }
        }
        Ok(())
    }

    /// Takes over what another part of the same search has found.
    pub fn join(&mut self, other: Self) {
        self.best.join(other.best);
    }

    /// The hits, best first.
    pub fn finish(self) -> Vec<ScoredHit> {
        self.best.finish()
    }
}

/// Rows, so many at a time.
fn pieces(rows: Range<u32>, step: u32) -> impl Iterator<Item = Range<u32>> {
    let end = rows.end;
    rows.step_by(step as usize).map(move |start| start..end.min(start.saturating_add(step)))
}
