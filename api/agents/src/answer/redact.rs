//! Keeps secrets out of what a run sees and shows: a tool's server may send back the key that it was called with.

use std::{cmp::Reverse, collections::BTreeSet, iter};

use secrecy::{ExposeSecret, SecretString};

/// Stands where a secret was.
const MASK: &str = "•••";
/// Shorter ones would mask half of every text.
const SHORTEST: usize = 6;

/// More are not looked for: a tool may have thousands of headers.
const MOST: usize = 1_000;

/// Everything that must not be seen.
#[derive(Clone)]
pub(crate) struct SecretRedactor {
    /// In the order of their bytes, so that what a text goes on with is looked up: a text can be long, and they can be many.
    secrets: Vec<SecretString>,
    /// The bytes with which one of them begins.
    begins: [bool; 256],
    /// The bytes of the longest.
    longest: usize,
}

impl Default for SecretRedactor {
    fn default() -> Self {
        Self { secrets: Vec::new(), begins: [false; 256], longest: 0 }
    }
}

impl SecretRedactor {
    pub(crate) fn add(&mut self, secret: SecretString) {
        let text = secret.expose_secret().trim();
        // Headers that are no secrets are configured among those that are.
        let is_media_type = ["application/", "text/", "*/*"].iter().any(|start| text.starts_with(start));
        let Some(first) = text.bytes().next().filter(|_| text.len() >= SHORTEST && !is_media_type) else {
            return;
        };
        let at = self.at_or_behind(text.as_bytes());
        if self.secrets.get(at).is_some_and(|known| known.expose_secret() == text) {
            return;
        }
        self.begins[usize::from(first)] = true;
        self.longest = self.longest.max(text.len());
        let trimmed = (text.len() < secret.expose_secret().len()).then(|| SecretString::from(text));
        self.secrets.insert(at, trimmed.unwrap_or(secret));
        if self.secrets.len() > MOST {
            let lengths = self.secrets.iter().map(|known| known.expose_secret().len());
            if let Some((shortest, _)) = lengths.enumerate().min_by_key(|(_, length)| *length) {
                self.secrets.remove(shortest);
            }
        }
    }

    /// The place of the first secret that is this text, or comes behind it.
    fn at_or_behind(&self, text: &[u8]) -> usize {
        self.secrets.partition_point(|secret| secret.expose_secret().as_bytes() < text)
    }

    /// Where the next secret may begin in a text.
    fn next_beginning(&self, text: &str) -> Option<usize> {
        text.bytes().position(|byte| self.begins[usize::from(byte)])
    }

    /// The secrets with which a text begins, the longest first.
    fn beginning(&self, text: &str) -> impl Iterator<Item = &str> {
        let mut text = text.as_bytes();
        iter::from_fn(move || {
            loop {
                // Those with which it begins stand before it, and all that stands between it and the longest begins with that.
                let is_before = |secret: &SecretString| secret.expose_secret().as_bytes() <= text;
                let at = self.secrets.partition_point(is_before).checked_sub(1)?;
                let secret = self.secrets[at].expose_secret();
                if text.starts_with(secret.as_bytes()) {
                    text = &text[..secret.len() - 1];
                    return Some(secret);
                }
                let common = secret.bytes().zip(text).take_while(|(one, other)| one == *other).count();
                text = &text[..common];
            }
        })
    }

    /// Whether a secret goes on where a text ends.
    fn is_unfinished(&self, text: &str) -> bool {
        // The text itself may be one, and a longer one stands behind it.
        let behind = &self.secrets[self.at_or_behind(text.as_bytes())..];
        let begins = |secret: &SecretString| {
            let secret = secret.expose_secret();
            secret.len() > text.len() && secret.starts_with(text)
        };
        text.len() < self.longest && behind.iter().take(2).any(begins)
    }

    pub(crate) fn text(&self, text: String) -> String {
        // What is part of another one would leave the rest of that one open: the longest go first.
        let (mut found, mut at) = (BTreeSet::new(), 0);
        while let Some(next) = self.next_beginning(&text[at..]) {
            // A secret begins with a whole character.
            at += next;
            for secret in self.beginning(&text[at..]) {
                // What this one begins with is known with it.
                if !found.insert((Reverse(secret.len()), secret)) {
                    break;
                }
            }
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        found.iter().fold(text, |text, (_, secret)| text.replace(secret, MASK))
    }

    /// For a text that comes in pieces.
    pub(crate) fn stream(&self) -> RedactedStream<'_> {
        RedactedStream { redactor: self, held: String::new() }
    }
}

/// A text that comes in pieces, without its secrets.
pub(crate) struct RedactedStream<'a> {
    redactor: &'a SecretRedactor,
    /// What may be the beginning of a secret.
    held: String,
}

impl RedactedStream<'_> {
    /// The next piece. What may be the beginning of a secret comes with a later one.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let redactor = self.redactor;
        if redactor.secrets.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let text = std::mem::take(&mut self.held);
        let mut passed = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = redactor.next_beginning(rest) {
            let (before, from) = rest.split_at(at);
            passed.push_str(before);
            // A longer secret may begin with a shorter one, so that what may still become one is waited for.
            if redactor.is_unfinished(from) {
                from.clone_into(&mut self.held);
                return passed;
            }
            let length = if let Some(secret) = redactor.beginning(from).next() {
                passed.push_str(MASK);
                secret.len()
            } else {
                let first = from.chars().next().map_or(from.len(), char::len_utf8);
                passed.push_str(&from[..first]);
                first
            };
            rest = &from[length..];
        }
        passed.push_str(rest);
        passed
    }

    /// The rest, when nothing follows.
    pub(crate) fn finish(&mut self) -> String {
        self.redactor.text(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> SecretRedactor {
        let mut redactor = SecretRedactor::default();
        for secret in ["sk-1234", "sk-1234567890", "abc"] {
            redactor.add(SecretString::from(secret));
        }
        redactor
    }

    #[test]
    fn a_secret_is_masked_wherever_it_stands_and_short_texts_are_none() {
        let text = "a sk-1234: Bearer sk-1234567890, abc".to_owned();
        assert_eq!(redactor().text(text), "a •••: Bearer •••, abc");
    }

    #[test]
    fn a_secret_is_masked_however_the_text_is_cut() {
        let (redactor, text) = (redactor(), "ask-1 sk-1234567890 sk-12ä sk-");
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut stream = redactor.stream();
            let mut seen = stream.push(&text[..cut]);
            seen.push_str(&stream.push(&text[cut..]));
            seen.push_str(&stream.finish());
            assert_eq!(seen, "ask-1 ••• sk-12ä sk-", "cut at {cut}");
        }
    }

    /// As it says what is masked: the longest secret at the first place, and so on behind it.
    fn masked(secrets: &[&str], text: &str) -> String {
        let (mut masked, mut rest) = (String::new(), text);
        while let Some(first) = rest.chars().next() {
            let here = secrets.iter().filter(|secret| rest.starts_with(**secret));
            if let Some(secret) = here.max_by_key(|secret| secret.len()) {
                masked.push_str(MASK);
                rest = &rest[secret.len()..];
            } else {
                masked.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        masked
    }

    #[test]
    fn the_longest_secret_is_masked_where_secrets_begin_alike() {
        let secrets = [
            "aaaaaa",
            "aaaaaab",
            "aaaaaabaaaaaac",
            "aaaaabc",
            "abcdef",
            "abcdefgh",
            "abcdefghä",
            "cdefghij",
            "äaaaaa",
        ];
        let mut redactor = SecretRedactor::default();
        secrets.iter().rev().for_each(|secret| redactor.add(SecretString::from(format!(" {secret} "))));
        redactor.add(SecretString::from("aaaaaa"));
        assert_eq!(redactor.secrets.len(), secrets.len());
        for text in [
            "aaaaaaaaaaaaab",
            "aaaaaabaaaaaabc",
            "xaaaaaabaaaaaac",
            "aaaaabcdefghij",
            "abcdefghäaaaaa",
            "abcdefg abcdefgh",
            "ääaaaaaä",
        ] {
            let expected = masked(&secrets, text);
            for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                let mut stream = redactor.stream();
                let mut seen = stream.push(&text[..cut]);
                seen.push_str(&stream.push(&text[cut..]));
                // What is held may become one, and is none.
                seen.push_str(&stream.push("\n"));
                assert_eq!(seen, format!("{expected}\n"), "{text} cut at {cut}");
            }
        }
        assert_eq!(redactor.text("xaaaaaabaaaaaac abcdefghij".to_owned()), "x••• •••ij");
    }

    /// Each of them was looked for at each place, which took minutes.
    #[test]
    fn many_secrets_are_looked_up_and_not_gone_through() {
        let mut redactor = SecretRedactor::default();
        for number in 0..2 * MOST {
            redactor.add(SecretString::from(format!("a{number:05}{}", "x".repeat(number / MOST))));
        }
        assert_eq!(redactor.secrets.len(), MOST, "the longest stay");
        let text = "a".repeat(512 << 10) + "a01999x!";
        let masked = redactor.stream().push(&text);
        assert_eq!(redactor.text(text), masked);
        assert!(masked.ends_with("aa•••!"));
    }
}
