//! One ranking out of several: what was found by words, and what was found by meaning.
//!
//! Distribution-based score fusion: what counts is by how many standard deviations of its list a passage stands above the
//! list's end. Scores of different kinds become comparable by that, and unlike ranks they keep how much better the first is
//! than the second. Source: M. Mazzeschi, "Distribution-Based Score Fusion" (2023), the form that Qdrant has. Three things differ from
//! that, all by measurement (docs/search.md):
//!
//! - Nothing is cut off at the top. Scores have long tails: the best hits by words lie four to ten deviations out, and cut to
//!   three they would all be equal.
//! - A short list of what was found by words is judged as if it were as long as the longest, with zeros at its end: a passage
//!   without any of the question's words does have a score, and it is zero. Otherwise a code that stands in one passage only
//!   would have no spread, and lose to whatever the model finds similar.
//! - What a list of vectors leaves out because it is full stands below its end, and not at it: among many passages that are alike,
//!   the model often ranks far down what was found by a word that happens to be there, too.

use std::{collections::HashMap, hash::Hash};

/// By how many deviations a passage stands below the end of a list that was full before it came to it. Measured: anything between
/// 0.5 and 1.5 is alike.
const BEYOND: f32 = 0.75;

/// A ranked list and what it says.
#[derive(Clone, Debug)]
pub(super) struct RankedList<K> {
    /// Keys with their scores, best first.
    pub(super) hits: Vec<(K, f32)>,
    /// How much it counts.
    pub(super) weight: f32,
    /// Whether what is not in it has the score zero, however short it is. That is so for words; vectors are all more or less
    /// near, and a short list of them is one of few passages.
    pub(super) zero_beyond: bool,
    /// Whether what is not in it stands below its end: it is a list of vectors, and was full.
    pub(super) is_cut: bool,
}

/// Fuses ranked lists. `could_be_in` tells whether a list could have had a key: a passage without a vector is judged by its
/// words alone, while one whose vector was not near enough gets nothing for it.
///
/// No score is below zero: where one would be, all are as much higher.
///
/// A list whose scores do not differ says nothing. Scores that are not finite and repetitions of a key in one list are passed
/// over. Best first; of equals the one that came first.
pub(super) fn fuse<K: Clone + Eq + Hash>(
    lists: &[RankedList<K>],
    could_be_in: impl Fn(&K, usize) -> bool,
) -> Vec<(K, f32)> {
    let longest = lists.iter().map(|list| list.hits.len()).max().unwrap_or(0);
    let mut places = HashMap::<&K, usize>::new();
    // The key, its sum, and the last list that it was met in.
    let mut fused = Vec::<(&K, f32, usize)>::new();
    // How far below the end of each list that stands which it leaves out.
    let mut below = Vec::with_capacity(lists.len());
    for (number, RankedList { hits, weight, zero_beyond, is_cut }) in lists.iter().enumerate() {
        let length = if *zero_beyond { longest } else { 0 };
        let scale = ScoreScale::of(hits.iter().map(|(_, score)| *score), length);
        let beyond = if *is_cut && scale.deviation > 0.0 { BEYOND } else { 0.0 };
        below.push(beyond);
        for (key, score) in hits.iter().filter(|(_, score)| score.is_finite()) {
            let scaled = weight * (scale.apply(*score) + beyond);
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
    // Of the lists that a key could be in: what they count, and what is taken off for all that are full.
    let judged_by = |key: &K| -> (f32, f32) {
        let able = lists.iter().zip(&below).enumerate().filter(|(number, _)| could_be_in(key, *number));
        able.fold((0.0, 0.0), |(weight, off), (_, (list, below))| {
            (weight + list.weight, list.weight.mul_add(*below, off))
        })
    };
    let mut fused: Vec<(K, f32)> = fused
        .into_iter()
        .map(|(key, sum, _)| {
            let (weight, off) = judged_by(key);
            (key.clone(), if weight > 0.0 { (sum - off) / weight } else { 0.0 })
        })
        .collect();
    let least = fused.iter().map(|(_, score)| *score).fold(0.0, f32::min);
    for (_, score) in &mut fused {
        *score -= least;
    }
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
    fused
}

/// How far above the end of its list a score stands, in (sample) standard deviations.
struct ScoreScale {
    end: f64,
    deviation: f64,
}

impl ScoreScale {
    /// Of a list that is as long as `length`, or made so long by zeros.
    fn of(scores: impl Iterator<Item = f32>, length: usize) -> Self {
        // Welford's method: one pass, and no cancellation when large scores differ little.
        let (mut count, mut mean, mut squares, mut end) = (0.0_f64, 0.0_f64, 0.0_f64, f64::INFINITY);
        let mut add = |score: f64| {
            count += 1.0;
            let delta = score - mean;
            mean += delta / count;
            squares += delta * (score - mean);
            end = end.min(score);
        };
        let mut left = length;
        for score in scores.filter(|score| score.is_finite()).map(f64::from) {
            add(score);
            left = left.saturating_sub(1);
        }
        (0..left).for_each(|_| add(0.0));
        let deviation = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        // Rounding in the mean must not be taken for a difference.
        Self { end, deviation: if deviation > mean.abs() * 1e-9 { deviation } else { 0.0 } }
    }

    #[allow(clippy::cast_possible_truncation, reason = "rounded to the precision of scores")]
    fn apply(&self, score: f32) -> f32 {
        if self.deviation > 0.0 { ((f64::from(score) - self.end) / self.deviation) as f32 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<'k>(hits: &[(&'k str, f32)]) -> RankedList<&'k str> {
        RankedList { hits: hits.to_vec(), weight: 0.5, zero_beyond: false, is_cut: false }
    }

    fn by_words<'k>(hits: &[(&'k str, f32)]) -> RankedList<&'k str> {
        RankedList { zero_beyond: true, ..list(hits) }
    }

    fn keys<'k>(lists: &[RankedList<&'k str>]) -> Vec<&'k str> {
        fuse(lists, |_, _| true).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn the_same_scores_on_another_scale_give_the_same_ranking() {
        let words = [("a", 9.0), ("b", 6.0), ("c", 1.0), ("d", 0.5)];
        let meaning = [("c", 0.9), ("b", 0.8), ("d", 0.2), ("a", 0.1)];
        let scaled = meaning.map(|(key, score)| (key, score * 1e6 + 3.0));
        assert_eq!(keys(&[list(&words), list(&meaning)]), keys(&[list(&words), list(&scaled)]));
        assert_eq!(keys(&[list(&words), list(&meaning)])[0], "b", "good in both before best in one");
    }

    #[test]
    fn a_code_that_one_passage_has_wins_over_what_is_merely_similar() {
        let words = [("the code", 7.0)];
        let names: Vec<String> = (0..50).map(|n| format!("similar {n}")).collect();
        let meaning = (0_u8..).zip(&names).map(|(n, name)| (name.as_str(), 0.6 - f32::from(n) * 0.005));
        let meaning: Vec<_> = meaning.collect();
        assert_eq!(keys(&[by_words(&words), list(&meaning)])[0], "the code");
        assert_eq!(keys(&[list(&words), list(&meaning)])[0], "similar 0", "a list of one has no spread");
    }

    #[test]
    fn how_much_better_the_best_is_counts_however_far_out_it_lies() {
        let mut words: Vec<(&str, f32)> = vec![("far", 30.0), ("near", 20.0)];
        let names: Vec<String> = (0..40).map(|n| format!("{n}")).collect();
        words.extend(names.iter().map(|name| (name.as_str(), 1.0)));
        let fused = fuse(&[list(&words)], |_, _| true);
        assert_eq!((fused[0].0, fused[1].0), ("far", "near"));
        assert!(fused[0].1 > fused[1].1 * 1.4, "{fused:?}");
    }

    #[test]
    fn what_a_full_list_of_vectors_leaves_out_stands_below_its_end() {
        let words = [("chance", 6.0), ("both", 5.5), ("neither", 1.0)];
        let meaning = [("near", 0.9), ("other", 0.6), ("both", 0.3)];
        let full = RankedList { is_cut: true, ..list(&meaning) };
        assert_eq!(keys(&[list(&words), list(&meaning)]), ["near", "chance", "both", "other", "neither"]);
        assert_eq!(keys(&[list(&words), full.clone()]), ["near", "both", "chance", "other", "neither"]);
        let fused = fuse(&[list(&words), full.clone()], |_, _| true);
        assert!(fused.iter().all(|(_, score)| *score >= 0.0), "{fused:?}");
        // One that has no vector is not left out of anything.
        let has_vector = |key: &&str, list: usize| list == 0 || *key != "chance";
        assert_eq!(fuse(&[list(&words), full], has_vector)[0].0, "chance");
        let flat = RankedList { is_cut: true, ..list(&[("a", 0.1), ("b", 0.1)]) };
        assert_eq!(
            keys(&[flat, list(&[("c", 2.0), ("a", 1.0)])])[0],
            "c",
            "what says nothing takes nothing off"
        );
    }

    #[test]
    fn a_passage_that_has_no_vector_is_judged_by_its_words_alone() {
        let words = [("no vector", 5.0), ("both", 4.0), ("end", 0.1)];
        let meaning = [("both", 0.5), ("other", 0.4), ("end", 0.1)];
        let has_vector = |key: &&str, list: usize| list == 0 || *key != "no vector";
        let fused = fuse(&[list(&words), list(&meaning)], has_vector);
        assert_eq!(fused[0].0, "no vector", "{fused:?}");
        assert_eq!(keys(&[list(&words), list(&meaning)])[0], "both");
    }

    #[test]
    fn a_list_without_differences_says_nothing_and_the_first_of_equals_stays_first() {
        let flat = [("b", 0.1), ("a", 0.1), ("c", 0.1)];
        assert_eq!(keys(&[list(&flat)]), ["b", "a", "c"]);
        assert_eq!(keys(&[list(&flat), list(&[("c", 2.0), ("a", 1.0), ("b", 0.5)])]), ["c", "a", "b"]);
        assert!(keys(&[]).is_empty() && keys(&[list(&[])]).is_empty());
    }

    #[test]
    fn scores_that_are_no_numbers_and_repetitions_are_passed_over() {
        let odd = [("a", f32::NAN), ("b", 2.0), ("c", 1.0), ("c", 9.0), ("d", f32::INFINITY)];
        assert_eq!(keys(&[list(&odd)]), ["b", "c"]);
    }
}
