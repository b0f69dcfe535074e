//! Media types as senders write them, `text/html; charset="UTF-8"`, and as they are stored with a file, `text/html;charset=utf-8`.

/// What stands before the encoding in a stored media type.
const CHARSET: &str = ";charset=";
/// Longest name of an encoding that is stored.
const LONGEST_CHARSET: usize = 40;

/// A media type without its parameters, in lower case: `text/html`.
pub fn essence(media_type: &str) -> Option<String> {
    let essence = media_type.split(';').next()?.trim();
    (!essence.is_empty()).then(|| essence.to_ascii_lowercase())
}

/// The encoding that a media type names, in lower case: `utf-8`.
pub fn charset(media_type: &str) -> Option<String> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).trim();
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then(|| value.to_ascii_lowercase())
    })
}

/// The media type to store with a file: with the encoding that its sender named, which the bytes of a text need not show.
pub fn with_charset(essence: &str, charset: Option<&str>) -> String {
    let is_plain = |charset: &&str| {
        charset.len() <= LONGEST_CHARSET
            && charset.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:.+".contains(&b))
    };
    match charset.filter(is_plain).filter(|_| essence.starts_with("text/")) {
        Some(charset) => format!("{essence}{CHARSET}{charset}"),
        None => essence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_says_what_the_sender_said() {
        for (sent, stored) in [
            ("Text/Plain; Charset=\"ISO-8859-1\"", "text/plain;charset=iso-8859-1"),
            ("text/html ; boundary=x; charset=UTF-8", "text/html;charset=utf-8"),
            ("text/csv", "text/csv"),
            ("text/csv; charset=", "text/csv"),
            ("text/plain; charset=a b", "text/plain"),
            ("application/pdf; charset=utf-8", "application/pdf"),
        ] {
            let whole = with_charset(&essence(sent).unwrap(), charset(sent).as_deref());
            assert_eq!(whole, stored, "{sent}");
            assert_eq!(with_charset(&essence(&whole).unwrap(), charset(&whole).as_deref()), stored);
        }
        assert_eq!(essence("; charset=utf-8"), None);
    }
}
