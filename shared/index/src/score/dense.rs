//! The search by meaning.

use std::ops::Range;

use uuid::Uuid;

use super::{
    BlockSelection, ScoredHit, TopHits,
    bounds::{BATCH, ProductBounds},
    dot::DotProduct,
};

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
        for run in selection.runs_in(rows) {
            for start in run.clone().step_by(BATCH as usize) {
                let batch = start..run.end.min(start.saturating_add(BATCH));
                for (row, bound) in batch.clone().zip(self.bounds.of(block.codes(batch))) {
                    if self.best.rejects(bound) {
                        continue;
                    }
                    let score = self.product.with(block.vectors(row..row + 1));
                    if self.best.admits(score)
                        && let Some((place, ordinal)) = selection.name(row)
                    {
                        self.best.push(ScoredHit { place, ordinal, score });
                    }
                }
            }
        }
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
