//! What an e-mail address and a password have to be.

use icu_properties::props::{BinaryProperty, DefaultIgnorableCodePoint, EnumeratedProperty, GeneralCategory};
use secrecy::{ExposeSecret, SecretString};

use crate::fields::blank_problem;

/// What is wrong with an e-mail address, if anything is.
pub(crate) fn email_problem(email: &str) -> Option<String> {
    let email = email.trim();
    if email.chars().any(is_invisible) {
        return Some("must be an e-mail address without invisible characters".to_owned());
    }
    let good = email.len() <= 254
        && !email.chars().any(|c| c.is_whitespace() || c.is_control())
        && email.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && !domain.is_empty()
                && !domain.contains('@')
                && !domain.starts_with('.')
                && !domain.ends_with('.')
        });
    (!good).then(|| "must be an e-mail address".to_owned())
}

/// Whether a character is of Unicode's category Cf, or one that is ignored by default or blank. None of them is seen, and some turn the text
/// around them, so that with them two addresses look alike.
fn is_invisible(c: char) -> bool {
    const BRAILLE_BLANK: char = '\u{2800}';
    DefaultIgnorableCodePoint::for_char(c)
        || GeneralCategory::for_char(c) == GeneralCategory::Format
        || c == BRAILLE_BLANK
}

/// What is wrong with a password, if anything is.
pub(super) fn password_problem(password: &SecretString) -> Option<String> {
    let password = password.expose_secret();
    if !(8..=256).contains(&password.chars().count()) {
        return Some("must have 8 to 256 characters".to_owned());
    }
    // Such a one would be taken for none by whoever signs in.
    blank_problem(password).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_e_mail_with_characters_that_nobody_sees_is_none() {
        for email in [
            // Ignored by default, and of the category Cf: spaces without a width, overrides, tags.
            "ada@example.com\u{200b}",
            "\u{202e}ada@example.com",
            "a\u{ad}da@example.com",
            "ada@example.com\u{e0041}",
            // Ignored alone: selectors, fillers.
            "ada\u{fe0f}@example.com",
            "ada\u{3164}@example.com",
            // Of the category alone: marks of numbers and annotations.
            "ada\u{6dd}@example.com",
            "ada@example.com\u{fff9}",
            // A letter without dots.
            "ada@example.com\u{2800}",
        ] {
            assert!(email_problem(email).is_some_and(|said| said.contains("invisible")), "{email:?}");
        }
        for email in [" ada@example.com ", "zoë@bücher.example", "あだ@例え.jp"] {
            assert_eq!(email_problem(email), None, "{email:?}");
        }
    }
}
