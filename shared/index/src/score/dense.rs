//! The search by meaning.

use std::ops::Range;

use pulp::Arch;
use uuid::Uuid;

use super::{BlockSelection, ScoredHit, TopHits, dot};

/// Rows whose products are computed before they are looked at.
const BATCH: u32 = 128;

/// The search of the passages nearest to a question's vector by the dot product, which is the cosine of unit vectors. Rows
/// are visited once, in any order and by as many searches as one likes, which are then put together.
#[derive(Debug, Clone)]
pub struct DenseSearch {
    space: Uuid,
    vector: Vec<f32>,
    best: TopHits,
    arch: Arch,
}

impl DenseSearch {
    /// Begins a search in one embedding space.
    pub fn new(space: Uuid, vector: Vec<f32>, limit: usize) -> Self {
        Self { space, vector, best: TopHits::new(limit), arch: Arch::new() }
    }

    /// Whether a block's vectors are of the space.
    pub fn concerns(&self, selection: &BlockSelection) -> bool {
        selection.block().kind().space() == Some((self.space, self.vector.len()))
    }

    /// Scores what is searched of these rows of a block. One without vectors of the space is passed over.
    pub fn add(&mut self, selection: &BlockSelection, rows: Range<u32>) {
        if !self.concerns(selection) {
            return;
        }
        let mut scores = [0.0; BATCH as usize];
        for run in selection.runs_in(rows) {
            for start in run.clone().step_by(BATCH as usize) {
                let end = run.end.min(start.saturating_add(BATCH));
                let scores = &mut scores[..(end - start) as usize];
                dot::products(self.arch, selection.block().vectors(start..end), &self.vector, scores);
                for (row, score) in (start..end).zip(scores) {
                    if self.best.admits(*score)
                        && let Some((place, ordinal)) = selection.name(row)
                    {
                        self.best.push(ScoredHit { place, ordinal, score: *score });
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
