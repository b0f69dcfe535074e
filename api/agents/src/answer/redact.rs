//! Keeps secrets out of what a run sees and shows: a tool's server may send back the key that it was called with.

use secrecy::{ExposeSecret, SecretString};

/// Stands where a secret was.
const MASK: &str = "•••";
/// Shorter ones would mask half of every text.
const SHORTEST: usize = 6;

/// More are not looked for: a tool may have thousands of headers.
const MOST: usize = 1_000;

/// Everything that must not be seen, the longest first.
#[derive(Clone, Default)]
pub(crate) struct SecretRedactor(Vec<SecretString>);

impl SecretRedactor {
    pub(crate) fn add(&mut self, secret: SecretString) {
        let text = secret.expose_secret().trim();
        // Headers that are no secrets are configured among those that are.
        let is_media_type = ["application/", "text/", "*/*"].iter().any(|start| text.starts_with(start));
        if text.len() >= SHORTEST && !is_media_type {
            // What is part of another one would leave the rest of that one open.
            let at = self.0.partition_point(|other| other.expose_secret().trim().len() > text.len());
            if self.0.get(at).map(ExposeSecret::expose_secret) != Some(secret.expose_secret()) {
                self.0.insert(at, secret);
                self.0.truncate(MOST);
            }
        }
    }

    pub(crate) fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            let secret = secret.expose_secret().trim();
            if text.contains(secret) { text.replace(secret, MASK) } else { text }
        })
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
        if self.redactor.0.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let text = std::mem::take(&mut self.held);
        let secrets = || self.redactor.0.iter().map(|secret| secret.expose_secret().trim());
        let mut passed = String::with_capacity(text.len());
        let mut rest = text.as_str();
        let mut begins = [false; 256];
        for byte in secrets().filter_map(|secret| secret.bytes().next()) {
            begins[usize::from(byte)] = true;
        }
        while let Some(first) = rest.chars().next() {
            if rest.bytes().next().is_some_and(|byte| !begins[usize::from(byte)]) {
                passed.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            // A longer secret may begin with a shorter one, so that what may still become one is waited for.
            if secrets().any(|secret| secret.len() > rest.len() && secret.starts_with(rest)) {
                rest.clone_into(&mut self.held);
                break;
            }
            match secrets().find(|secret| rest.starts_with(secret)) {
                Some(secret) => {
                    passed.push_str(MASK);
                    rest = &rest[secret.len()..];
                }
                None => {
                    passed.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
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
}
