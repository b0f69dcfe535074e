//! Texts as they are sent: none longer than the model reads, so many in a request as servers take.

use crate::approximate_tokens;

/// Texts in one request, at most.
pub(super) const MAX_TEXTS: usize = 64;
/// Tokens of all texts of one request, at most, unless one text alone has more.
const MAX_TOKENS: usize = 32_768;

/// A text that a server does not take is not cut below so many tokens: it is not its length then.
const LEAST_TOKENS: usize = 32;

/// Texts of one request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextBatch {
    pub(super) texts: Vec<String>,
    /// The tokens of the longest; 0 when they were not counted.
    pub(super) longest: usize,
    /// It is one text, which was cut because the server did not take it.
    pub(super) is_cut: bool,
}

impl TextBatch {
    /// Texts whose tokens were not counted.
    pub(super) const fn new(texts: Vec<String>) -> Self {
        Self { texts, longest: 0, is_cut: false }
    }

    /// Takes all texts out of it but the first so many, if there are more.
    pub(super) fn split_off(&mut self, most: usize) -> Option<Self> {
        if self.texts.len() <= most {
            return None;
        }
        // Which of them was the longest is not known.
        self.longest = 0;
        Some(Self::new(self.texts.split_off(most)))
    }

    /// One text that the server did not take, shorter: as long as it takes texts, where that is `known` to be less, or half as long.
    /// None when it is short already. Computes.
    pub(super) fn shortened(mut self, known: usize) -> Option<Self> {
        let tokens = self.texts.iter().map(|text| approximate_tokens(text)).max()?;
        if tokens <= LEAST_TOKENS {
            return None;
        }
        let limit = if known < tokens { known } else { tokens.div_ceil(2) }.max(LEAST_TOKENS);
        for text in &mut self.texts {
            cut(text, limit);
        }
        Some(Self { texts: self.texts, longest: limit, is_cut: true })
    }
}

/// Cuts texts at the most tokens that one may have, and puts them into requests.
pub(super) fn batches(texts: Vec<String>, max_tokens: usize) -> Vec<TextBatch> {
    let mut batches: Vec<TextBatch> = Vec::new();
    let mut tokens = 0;
    for mut text in texts {
        cut(&mut text, max_tokens);
        let more = approximate_tokens(&text);
        match batches.last_mut() {
            Some(batch) if batch.texts.len() < MAX_TEXTS && tokens + more <= MAX_TOKENS => {
                tokens += more;
                batch.longest = batch.longest.max(more);
                batch.texts.push(text);
            }
            _ => {
                tokens = more;
                batches.push(TextBatch { texts: vec![text], longest: more, is_cut: false });
            }
        }
    }
    batches
}

/// Shortens a text to at most so many tokens, as they are estimated.
pub(super) fn cut(text: &mut String, max_tokens: usize) {
    // No token has less than a byte.
    if text.len() <= max_tokens || approximate_tokens(text) <= max_tokens {
        return;
    }
    // A longer beginning never has fewer tokens.
    let (mut fits, mut too_long) = (0, text.len());
    while too_long - fits > 1 {
        let middle = text.floor_char_boundary(fits.midpoint(too_long));
        if middle <= fits {
            break;
        }
        if text.get(..middle).is_some_and(|start| approximate_tokens(start) <= max_tokens) {
            fits = middle;
        } else {
            too_long = middle;
        }
    }
    text.truncate(fits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_where_the_limit_is() {
        for (text, limit, expected) in [
            ("one two three", 2, "one two "),
            ("one two three", 9, "one two three"),
            ("東京都庁舎", 3, "東京都"),
            ("日", 0, ""),
            ("a日b本", 2, "a日"),
        ] {
            let mut cut_text = text.to_owned();
            cut(&mut cut_text, limit);
            assert_eq!(cut_text, expected, "{text} at {limit}");
            assert!(approximate_tokens(&cut_text) <= limit);
        }
    }

    #[test]
    fn a_request_has_a_bounded_number_of_texts_and_of_tokens() {
        let sizes = |batches: &[TextBatch]| batches.iter().map(|batch| batch.texts.len()).collect::<Vec<_>>();
        let many = batches(vec!["word".to_owned(); 130], 100);
        assert_eq!(sizes(&many), [64, 64, 2]);
        let long = "word ".repeat(8_000);
        let few = batches(vec![long.clone(), long.clone(), long.clone(), long.clone(), long], 8_000);
        assert_eq!(sizes(&few), [4, 1]);
        let huge = batches(vec!["word ".repeat(40_000), "x".to_owned()], 100_000);
        assert_eq!(sizes(&huge), [1, 1]);
        assert_eq!(huge.iter().map(|batch| batch.longest).collect::<Vec<_>>(), [40_000, 1]);
    }

    #[test]
    fn a_text_is_shortened_until_it_is_short() {
        let batch = TextBatch::new(vec!["word ".repeat(200)]);
        let half = batch.shortened(1_000).unwrap();
        assert_eq!((half.longest, half.texts[0].len(), half.is_cut), (100, 500, true));
        let known = half.shortened(40).unwrap();
        assert_eq!((known.longest, known.texts[0].len()), (40, 200));
        let least = known.shortened(40).unwrap();
        assert_eq!((least.longest, least.texts[0].len()), (LEAST_TOKENS, 160));
        assert_eq!(least.shortened(40), None);
    }
}
