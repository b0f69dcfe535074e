//! Passages that say the same: copies of a page, versions of a contract, boilerplate. One of them is enough.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};

/// Words that are compared together, so that the same words in another order are another text.
const SHINGLE: usize = 3;
/// From this share of common shingles on, two passages say the same.
const ALIKE: f64 = 0.9;

/// What is compared of a passage, by hash.
#[derive(Clone, Debug)]
pub(super) struct ShingleSketch {
    /// Its distinct runs of words.
    shingles: Vec<u64>,
    /// Its words with digits, in their order: two texts that differ in a price or a date say different things, however long
    /// they are.
    figures: u64,
}

impl ShingleSketch {
    /// Of a text; white space, case and marks do not count.
    pub(super) fn of(text: &str) -> Self {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let hash = |words: &[&String]| {
            // Keyed by nothing: the same in every process.
            let mut hasher = DefaultHasher::new();
            words.hash(&mut hasher);
            hasher.finish()
        };
        let words: Vec<&String> = words.iter().collect();
        let mut shingles: Vec<u64> = if words.len() < SHINGLE {
            // A passage of marks only is told by what it is.
            vec![if words.is_empty() { hash(&[&text.trim().to_owned()]) } else { hash(&words) }]
        } else {
            words.windows(SHINGLE).map(hash).collect()
        };
        shingles.sort_unstable();
        shingles.dedup();
        let figures: Vec<&String> =
            words.into_iter().filter(|word| word.contains(|c: char| c.is_numeric())).collect();
        Self { shingles, figures: hash(&figures) }
    }

    /// Whether both say the same.
    #[allow(clippy::cast_precision_loss, reason = "a passage has far fewer than 2^52 words")]
    pub(super) fn is_near_duplicate(&self, other: &Self) -> bool {
        if self.figures != other.figures {
            return false;
        }
        let (mut at, mut common) = (0, 0_usize);
        for shingle in &self.shingles {
            while other.shingles.get(at).is_some_and(|found| found < shingle) {
                at += 1;
            }
            common += usize::from(other.shingles.get(at) == Some(shingle));
        }
        let all = self.shingles.len() + other.shingles.len() - common;
        common as f64 >= ALIKE * all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::ShingleSketch;

    fn alike(a: &str, b: &str) -> bool {
        ShingleSketch::of(a).is_near_duplicate(&ShingleSketch::of(b))
    }

    fn words(range: std::ops::Range<u32>) -> String {
        let letter = |n: u32| char::from(b'a' + u8::try_from(n % 26).unwrap());
        let letters = |n: u32| [letter(n / 26), letter(n), ' '];
        range.flat_map(letters).collect()
    }

    #[test]
    fn copies_are_alike_however_they_are_set() {
        assert!(alike("The quick brown fox jumps.", "the  quick\nbrown fox — jumps"));
        let long = words(0..100);
        assert!(alike(&long, &long.replace("by ", "other ").replace(' ', "\n")));
        assert!(alike("Yes", "yes."));
        assert!(alike("…", " … "));
    }

    #[test]
    fn what_says_something_else_is_not_alike() {
        assert!(!alike("The price is 10 euros.", "The price is 20 euros."));
        assert!(!alike("a b c d", "d c b a"));
        assert!(!alike("…", "!!!"));
        assert!(!alike("", "x"));
        assert!(!alike(&words(0..100), &words(85..185)), "neighbours repeat some of each other");
        let long = words(0..100);
        assert!(!alike(&format!("{long} 10 euros"), &format!("{long} 20 euros")), "another price");
    }
}
