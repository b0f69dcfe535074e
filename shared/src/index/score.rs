//! Ranking: exact lexical and dense search over segments, and the fusion of ranked lists.
//!
//! Everything here is exact and deterministic: the same segments in the same order give the same hits,
//! equals included, on every machine.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
    hash::Hash,
};

use uuid::Uuid;

use super::{
    lexical::{Language, Query, TermId, idf},
    segment::{Postings, Segment},
};

/// A passage that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The index of its segment among those searched.
    pub segment: usize,
    /// Its ordinal in the generation that the segment belongs to.
    pub ordinal: u32,
    /// BM25, or the cosine: comparable within one search only.
    pub score: f32,
}

impl Eq for Hit {}

impl Ord for Hit {
    /// The better is the greater; of equals the earlier.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| (other.segment, other.ordinal).cmp(&(self.segment, self.ordinal)))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best hits so far.
#[derive(Debug)]
struct Best {
    limit: usize,
    heap: BinaryHeap<Reverse<Hit>>,
}

impl Best {
    const fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::new() }
    }

    fn push(&mut self, hit: Hit) {
        if self.heap.len() < self.limit {
            self.heap.push(Reverse(hit));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit > worst.0
        {
            worst.0 = hit;
        }
    }

    /// The hits, best first.
    fn finish(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(hit)| hit).collect()
    }
}

/// The BM25 search of a question over segments that are visited twice: first every one is counted, then
/// every one is scored. Both may come in batches, so that not all need be in memory at once.
#[derive(Debug)]
pub struct LexicalSearch {
    query: Query,
    /// The question's terms in each language met, by the language's number.
    terms: [Option<Vec<TermId>>; Language::ALL.len()],
    /// How many passages are in each language.
    passages: [u64; Language::ALL.len()],
    frequencies: Vec<u64>,
}

impl LexicalSearch {
    /// Analyses a question.
    pub fn new(query: &str) -> Self {
        let query = Query::new(query);
        let frequencies = vec![0; query.len()];
        Self { query, terms: Default::default(), passages: [0; Language::ALL.len()], frequencies }
    }

    /// Counts a segment towards the IDF.
    pub fn count(&mut self, segment: &Segment) {
        let language = segment.language();
        self.passages[usize::from(language.code())] += u64::from(segment.chunk_count());
        let terms =
            self.terms[usize::from(language.code())].get_or_insert_with(|| self.query.terms(language));
        for (frequency, term) in self.frequencies.iter_mut().zip(terms) {
            *frequency += u64::from(segment.document_frequency(*term));
        }
    }

    /// Fixes the IDF to what was counted, to score the same segments for the best `limit` hits.
    pub fn score(self, limit: usize) -> LexicalScorer {
        let passages = self.passages.iter().sum();
        let mut languages = Language::ALL;
        languages.sort_by_key(|language| Reverse(self.passages[usize::from(language.code())]));
        let factors: Vec<f32> = self
            .query
            .weights(&languages)
            .into_iter()
            .zip(&self.frequencies)
            .map(|(weight, frequency)| if *frequency == 0 { 0.0 } else { weight * idf(passages, *frequency) })
            .collect();
        let terms = self.terms.map(|terms| {
            terms
                .into_iter()
                .flatten()
                .zip(&factors)
                .filter(|(_, factor)| **factor > 0.0)
                .map(|(term, factor)| (term, *factor))
                .collect()
        });
        LexicalScorer { terms, sums: Vec::new(), touched: Vec::new(), best: Best::new(limit) }
    }
}

/// The second visit of a [`LexicalSearch`].
#[derive(Debug)]
pub struct LexicalScorer {
    /// The terms that count in each language, with the question's weight times the IDF.
    terms: [Vec<(TermId, f32)>; Language::ALL.len()],
    /// The score of each passage of the segment at hand; all zero between segments.
    sums: Vec<f32>,
    /// The passages whose sum is not zero.
    touched: Vec<u16>,
    best: Best,
}

impl LexicalScorer {
    /// Scores a segment, which hits will name by `index`.
    pub fn add(&mut self, index: usize, segment: &Segment) {
        let chunks = segment.chunk_count() as usize;
        if self.sums.len() < chunks {
            self.sums.resize(chunks, 0.0);
        }
        for (term, factor) in &self.terms[usize::from(segment.language().code())] {
            for (ordinal, weight) in segment.postings(*term).into_iter().flat_map(Postings::iter) {
                let sum = &mut self.sums[usize::from(ordinal)];
                if *sum == 0.0 {
                    self.touched.push(ordinal);
                }
                *sum += factor * weight;
            }
        }
        for ordinal in self.touched.drain(..) {
            let score = std::mem::take(&mut self.sums[usize::from(ordinal)]);
            // A weight of zero would be met again by the next term.
            if score > 0.0 {
                let ordinal = segment.first_ordinal() + u32::from(ordinal);
                self.best.push(Hit { segment: index, ordinal, score });
            }
        }
    }

    /// The hits, best first.
    pub fn finish(self) -> Vec<Hit> {
        self.best.finish()
    }
}

/// The best `limit` passages for a question by BM25, best first, with the IDF of exactly these segments.
#[cfg(test)]
pub(crate) fn search_lexical(query: &str, segments: &[&Segment], limit: usize) -> Vec<Hit> {
    let mut search = LexicalSearch::new(query);
    for segment in segments {
        search.count(segment);
    }
    let mut scorer = search.score(limit);
    for (index, segment) in segments.iter().enumerate() {
        scorer.add(index, segment);
    }
    scorer.finish()
}

/// The search of the passages nearest to a question's vector by the dot product, which is the cosine of unit vectors, over
/// segments that are visited once.
#[derive(Debug)]
pub struct DenseSearch {
    space: Uuid,
    vector: Vec<f32>,
    best: Best,
}

impl DenseSearch {
    /// Begins a search in one embedding space.
    pub fn new(space: Uuid, vector: Vec<f32>, limit: usize) -> Self {
        Self { space, vector, best: Best::new(limit) }
    }

    /// Scores a segment, which hits will name by `index`. One without vectors of the space is passed over.
    pub fn add(&mut self, index: usize, segment: &Segment) {
        let Some(dense) =
            segment.dense().filter(|d| d.space() == self.space && d.dimension() == self.vector.len())
        else {
            return;
        };
        for (ordinal, row) in (segment.first_ordinal()..).zip(dense.rows()) {
            self.best.push(Hit { segment: index, ordinal, score: row.dot(&self.vector) });
        }
    }

    /// The hits, best first.
    pub fn finish(self) -> Vec<Hit> {
        self.best.finish()
    }
}

/// The best `limit` passages for a question's vector, best first.
#[cfg(test)]
pub(crate) fn search_dense(space: Uuid, vector: &[f32], segments: &[&Segment], limit: usize) -> Vec<Hit> {
    let mut search = DenseSearch::new(space, vector.to_vec(), limit);
    for (index, segment) in segments.iter().enumerate() {
        search.add(index, segment);
    }
    search.finish()
}

/// Fuses ranked lists by the distribution of their scores: each list is scaled so that its mean minus and plus
/// three standard deviations become 0 and 1, cut to that range, and a key's scaled scores are added up.
///
/// A list whose scores do not differ says nothing about their order: each counts 0.5, the middle. Scores that
/// are not finite and repetitions of a key in one list are passed over. Best first; of equals the one
/// that came first.
pub fn fuse_dbsf<K: Clone + Eq + Hash>(lists: &[Vec<(K, f32)>], limit: usize) -> Vec<(K, f32)> {
    let mut places = HashMap::<&K, usize>::new();
    // The key, its sum, and the last list that it was met in.
    let mut fused = Vec::<(&K, f32, usize)>::new();
    for (number, list) in lists.iter().enumerate() {
        let scale = Scale::of(list.iter().map(|(_, score)| *score));
        for (key, score) in list.iter().filter(|(_, score)| score.is_finite()) {
            let scaled = scale.apply(*score);
            let place = *places.entry(key).or_insert(fused.len());
            match fused.get_mut(place) {
                None => fused.push((key, scaled, number)),
                Some((_, sum, last)) if *last != number => {
                    *sum += scaled;
                    *last = number;
                }
                Some(_) => {}
            }
        }
    }
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
    fused.into_iter().take(limit).map(|(key, sum, _)| (key.clone(), sum)).collect()
}

/// The range of three (sample) standard deviations about the mean of a list's scores.
struct Scale {
    low: f64,
    width: f64,
}

impl Scale {
    fn of(scores: impl Iterator<Item = f32>) -> Self {
        // Welford's method: one pass, and no cancellation when large scores differ little.
        let (mut count, mut mean, mut squares) = (0.0_f64, 0.0_f64, 0.0_f64);
        for score in scores.filter(|score| score.is_finite()).map(f64::from) {
            count += 1.0;
            let delta = score - mean;
            mean += delta / count;
            squares += delta * (score - mean);
        }
        let deviation = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        // Rounding in the mean must not be taken for a difference.
        let width = if deviation > mean.abs() * 1e-9 { 6.0 * deviation } else { 0.0 };
        Self { low: mean - width / 2.0, width }
    }

    #[allow(clippy::cast_possible_truncation, reason = "between 0 and 1")]
    fn apply(&self, score: f32) -> f32 {
        if self.width > 0.0 {
            ((f64::from(score) - self.low) / self.width).clamp(0.0, 1.0) as f32
        } else {
            0.5
        }
    }
}

#[cfg(test)]
mod tests;
