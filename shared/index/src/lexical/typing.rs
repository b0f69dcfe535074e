//! Typing errors: what a word of a question, which stands in none of the passages that were found, was most likely meant to be.
//!
//! The index has no words to compare with, only hashes of terms; the passages do. What is read into a question has to be close: names
//! of different things often differ by one letter ("contact" and "contract"), and most of all by the first ("maternity" and
//! "paternity").

use std::collections::BTreeSet;

use super::fold::{fold_accents, push_lower};

/// The fewest letters of a word that is mended, and of what it may have been meant to be.
const MIN_LETTERS: usize = 5;

/// The fewest letters of a word of which one may be another: many shorter words differ by one letter ("parking" and "packing").
const MIN_REPLACED: usize = 8;

/// A word of a question that stands nowhere.
#[derive(Debug)]
pub struct TypedWord {
    /// It, in lower case.
    word: String,
    /// Its letters, without accents.
    letters: Vec<char>,
    /// The words that one slip of the fingers turns into it.
    near: BTreeSet<String>,
}

impl TypedWord {
    /// A word in lower case; none where it is too short to be mended.
    pub(super) fn new(word: &str) -> Option<Self> {
        let letters = letters(word);
        let is_long = letters.len() >= MIN_LETTERS;
        is_long.then(|| Self { word: word.to_owned(), letters, near: BTreeSet::new() })
    }

    /// The word as it was typed, in lower case.
    pub fn typed(&self) -> &str {
        &self.word
    }

    /// What it was meant to be, unless that might be several words: endings of one are not several.
    pub fn meant(&self) -> Option<&str> {
        let shortest = self.near.iter().min_by_key(|word| word.len())?;
        self.near.iter().all(|word| word.starts_with(shortest.as_str())).then_some(shortest.as_str())
    }

    /// Compares it with a word in lower case.
    pub(super) fn compare(&mut self, word: &str) {
        // Most words are told apart by this.
        if word.chars().next() != self.word.chars().next() || self.near.contains(word) {
            return;
        }
        if word.chars().all(char::is_alphabetic) && is_slip(&self.letters, &letters(word)) {
            self.near.insert(word.to_owned());
        }
    }
}

/// A question with words of it put right, told as typed and meant, in lower case.
pub fn put_right(question: &str, words: &[(String, String)]) -> String {
    let mut right = String::with_capacity(question.len());
    let mut rest = question;
    while !rest.is_empty() {
        let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(length);
        let typed = lower(word);
        let meant = words.iter().find(|(wrong, _)| *wrong == typed).map(|(_, meant)| meant.as_str());
        right.push_str(meant.unwrap_or(word));
        let next = behind.find(char::is_alphabetic).unwrap_or(behind.len());
        right.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    right
}

fn lower(word: &str) -> String {
    let mut lower = String::with_capacity(word.len());
    for c in word.chars() {
        push_lower(c, &mut lower);
    }
    lower
}

fn letters(word: &str) -> Vec<char> {
    let mut plain = String::with_capacity(word.len());
    fold_accents(word, &mut plain);
    plain.chars().collect()
}

/// Whether one slip turns `word` into `typed`: a letter too many or too few, two in each other's place, or in a long word another one.
/// The first letter is right.
fn is_slip(typed: &[char], word: &[char]) -> bool {
    if word.len() < MIN_LETTERS || typed.first() != word.first() || typed.len().abs_diff(word.len()) > 1 {
        return false;
    }
    let from_start = alike(typed.iter().zip(word));
    let from_end = alike(typed.iter().rev().zip(word.iter().rev()));
    if typed.len() != word.len() {
        return from_start + from_end >= typed.len().min(word.len());
    }
    match typed.len().saturating_sub(from_start + from_end) {
        1 => typed.len() >= MIN_REPLACED,
        2 => typed[from_start] == word[from_start + 1] && typed[from_start + 1] == word[from_start],
        _ => false,
    }
}

/// How many pairs of letters are alike before the first that is not.
fn alike<'c>(pairs: impl Iterator<Item = (&'c char, &'c char)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(typed: &str, words: &[&str]) -> Option<String> {
        let mut typed = TypedWord::new(typed)?;
        for word in words {
            typed.compare(word);
        }
        typed.meant().map(str::to_owned)
    }

    #[test]
    fn a_slip_of_the_fingers_is_told_from_another_word() {
        for (typed, word) in [
            ("bussiness", "business"),
            ("libary", "library"),
            ("decsale", "descale"),
            ("definately", "definitely"),
            ("waschkücke", "waschküche"),
        ] {
            assert_eq!(meant(typed, &["other", word, "words"]).as_deref(), Some(word), "{typed}");
        }
        for (typed, word) in [
            ("maternity", "paternity"),
            ("parking", "packing"),
            ("loan", "loans"),
            ("hypotension", "hypertension"),
            ("sick", "sock"),
            ("parental", "paternal"),
        ] {
            assert_eq!(meant(typed, &[word]), None, "{typed}");
        }
    }

    #[test]
    fn what_may_be_several_words_is_left_as_it_is() {
        assert_eq!(meant("thermostatt", &["thermostats", "thermostat"]).as_deref(), Some("thermostat"));
        assert_eq!(meant("contrct", &["contract", "contact"]).as_deref(), Some("contract"));
        assert_eq!(meant("contracct", &["contract", "contracts"]).as_deref(), Some("contract"));
        assert_eq!(meant("sttation", &["station", "statation"]), None);
    }

    #[test]
    fn only_whole_words_of_a_question_are_put_right() {
        let words = [("libary".to_owned(), "library".to_owned())];
        assert_eq!(put_right("Libary, libarys? «libary»", &words), "library, libarys? «library»");
    }
}
