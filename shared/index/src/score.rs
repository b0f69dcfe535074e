//! Ranking: exact lexical and dense search over blocks of passages.
//!
//! Everything here is exact and deterministic: the same passages give the same hits, equals included, however they are spread
//! over blocks and in whatever order the blocks come.

mod bm25;
mod bounds;
mod dense;
mod dot;
mod selection;

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

pub(crate) use self::selection::SpilledSelection;
pub use self::{
    bm25::{LexicalScorer, LexicalSearch},
    dense::DenseSearch,
    selection::{BlockSelection, NOT_SEARCHED},
};

/// A passage that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredHit {
    /// The place of its generation in the list of those searched.
    pub place: u32,
    /// Its ordinal in the generation.
    pub ordinal: u32,
    /// BM25, or the cosine: comparable within one search only.
    pub score: f32,
}

impl Eq for ScoredHit {}

impl Ord for ScoredHit {
    /// The better is the greater; of equals the earlier.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| (other.place, other.ordinal).cmp(&(self.place, self.ordinal)))
    }
}

impl PartialOrd for ScoredHit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best hits so far.
#[derive(Debug, Clone)]
struct TopHits {
    limit: usize,
    heap: BinaryHeap<Reverse<ScoredHit>>,
    /// The least score that can still get in.
    threshold: f32,
}

impl TopHits {
    const fn new(limit: usize) -> Self {
        let threshold = if limit == 0 { f32::NAN } else { f32::NEG_INFINITY };
        Self { limit, heap: BinaryHeap::new(), threshold }
    }

    /// Whether a hit with this score may get in. Never for a score that is no number.
    fn admits(&self, score: f32) -> bool {
        score >= self.threshold
    }

    /// Whether no score up to this one may get in. Never for a bound that is no number.
    fn rejects(&self, bound: f32) -> bool {
        bound < self.threshold
    }

    fn push(&mut self, hit: ScoredHit) {
        if self.heap.len() < self.limit {
            self.heap.push(Reverse(hit));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit > worst.0
        {
            worst.0 = hit;
        }
        if self.heap.len() == self.limit
            && let Some(worst) = self.heap.peek()
        {
            self.threshold = worst.0.score;
        }
    }

    fn join(&mut self, other: Self) {
        for Reverse(hit) in other.heap {
            self.push(hit);
        }
    }

    /// The hits, best first.
    fn finish(self) -> Vec<ScoredHit> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(hit)| hit).collect()
    }
}

#[cfg(test)]
mod tests;
