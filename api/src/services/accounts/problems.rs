//! What an e-mail address and a password have to be.

use secrecy::{ExposeSecret, SecretString};

use crate::fields::blank_problem;

/// What is wrong with an e-mail address, if anything is.
pub(crate) fn email_problem(email: &str) -> Option<String> {
    let email = email.trim();
    if email.chars().any(is_format_character) {
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

/// Whether a character is of Unicode's category Cf. None of them is seen, and some turn the text around them, so that with them two
/// addresses look alike.
const fn is_format_character(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}'
    )
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
        for email in ["ada@example.com\u{200b}", "\u{202e}ada@example.com", "a\u{ad}da@example.com"] {
            assert!(email_problem(email).is_some_and(|said| said.contains("invisible")), "{email:?}");
        }
        for email in [" ada@example.com ", "zoë@bücher.example", "あだ@例え.jp"] {
            assert_eq!(email_problem(email), None, "{email:?}");
        }
    }
}
