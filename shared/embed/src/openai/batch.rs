//! Texts as they are sent: none longer than the model reads, so many in a request as servers take.

use crate::approximate_tokens;

/// Texts in one request, at most.
pub(super) const MAX_TEXTS: usize = 64;
/// Tokens of all texts of one request, at most, unless one text alone has more.
const MAX_TOKENS: usize = 32_768;

/// Cuts texts at the most tokens that one may have, and puts them into requests.
pub(super) fn batches(texts: Vec<String>, max_tokens: usize) -> Vec<Vec<String>> {
    let mut batches: Vec<Vec<String>> = Vec::new();
    let mut tokens = 0;
    for mut text in texts {
        cut(&mut text, max_tokens);
        let more = approximate_tokens(&text);
        match batches.last_mut() {
            Some(batch) if batch.len() < MAX_TEXTS && tokens + more <= MAX_TOKENS => {
                tokens += more;
                batch.push(text);
            }
            _ => {
                tokens = more;
                batches.push(vec![text]);
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
        let many = batches(vec!["word".to_owned(); 130], 100);
        assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 2]);
        let long = "word ".repeat(8_000);
        let few = batches(vec![long.clone(), long.clone(), long.clone(), long.clone(), long], 8_000);
        assert_eq!(few.iter().map(Vec::len).collect::<Vec<_>>(), [4, 1]);
        let huge = batches(vec!["word ".repeat(40_000), "x".to_owned()], 100_000);
        assert_eq!(huge.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    }
}
