//! How well passages match, as OpenAI's clients know it.

/// A score between 0 and 1, in the same order: these clients know no other.
pub(super) fn bounded_score(score: f64) -> f64 {
    let score = score.max(0.0);
    if score.is_finite() { score / (1.0 + score) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_keep_their_order_between_zero_and_one() {
        let scores = [-1.0, 0.0, 0.4, 1.25, 9.0, 1e9].map(bounded_score);
        assert!(scores.is_sorted() && scores.iter().all(|score| (0.0..1.0).contains(score)), "{scores:?}");
        assert!(bounded_score(f64::NAN) < f64::EPSILON);
    }
}
