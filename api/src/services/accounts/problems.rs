//! What an e-mail address and a password have to be.

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
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
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
        for email in [
            "ada@example.com\u{200b}",
            "\u{202e}ada@example.com",
            "a\u{ad}da@example.com",
            "ada\u{fe0f}@example.com",
        ] {
            assert!(email_problem(email).is_some_and(|said| said.contains("invisible")), "{email:?}");
        }
        for email in [" ada@example.com ", "zoë@bücher.example", "あだ@例え.jp"] {
            assert_eq!(email_problem(email), None, "{email:?}");
        }
    }
}
