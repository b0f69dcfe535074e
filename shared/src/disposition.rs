//! How whoever sends a file calls it: `Content-Disposition`.

use percent_encoding::percent_decode_str;

/// The file's name: the one for all languages, where it says both.
pub fn file_name(disposition: &str) -> Option<String> {
    let plain = || {
        let mut parameters = parameters(disposition).into_iter();
        let (_, name) = parameters.find(|(name, _)| name.eq_ignore_ascii_case("filename"))?;
        Some(name).filter(|name| !name.is_empty())
    };
    extended_file_name(disposition).or_else(plain)
}

/// The file's name for all languages, `filename*=UTF-8''…`. Source: RFC 8187.
pub fn extended_file_name(disposition: &str) -> Option<String> {
    let mut parameters = parameters(disposition).into_iter();
    let extended = parameters.find(|(name, _)| name.eq_ignore_ascii_case("filename*"));
    extended.and_then(|(_, value)| decoded(&value)).filter(|name| !name.is_empty())
}

/// The parameters behind the first semicolon. Between quotation marks a semicolon parts nothing.
fn parameters(disposition: &str) -> Vec<(&str, String)> {
    let mut parameters = Vec::new();
    let mut rest = disposition.split_once(';').map_or("", |(_, rest)| rest);
    while let Some((name, behind)) = rest.split_once('=') {
        let name = name.rsplit(';').next().unwrap_or_default().trim();
        let behind = behind.trim_start();
        let (value, left) = if let Some(quoted) = behind.strip_prefix('"') {
            unquoted(quoted)
        } else {
            let (value, left) = behind.split_once(';').unwrap_or((behind, ""));
            (value.trim().to_owned(), left)
        };
        parameters.push((name, value));
        rest = left;
    }
    parameters
}

/// What stands before the closing quotation mark, and what comes behind it.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, text.get(at + 1..).unwrap_or_default()),
            // Only these are escaped: some servers send paths with single backslashes.
            '\\' if text.get(at + 1..).is_some_and(|next| next.starts_with(['"', '\\'])) => {
                value.extend(letters.next().map(|(_, escaped)| escaped));
            }
            _ => value.push(letter),
        }
    }
    (value, "")
}

/// A value as `UTF-8'en'%C3%A4`; none in another encoding.
fn decoded(value: &str) -> Option<String> {
    let (charset, value) = value.split_once('\'')?;
    let (_, value) = value.split_once('\'')?;
    let name = percent_decode_str(value).decode_utf8().ok()?;
    charset.trim().eq_ignore_ascii_case("utf-8").then(|| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_as_its_server_says() {
        for (disposition, name) in [
            ("attachment; filename=report.pdf", Some("report.pdf")),
            ("attachment; filename=\"a report; final.pdf\"; size=3", Some("a report; final.pdf")),
            ("attachment; FileName = \"a.csv\"", Some("a.csv")),
            ("attachment; filename=\"x.pdf\"; filename*=UTF-8''%E2%82%AC%20rates.pdf", Some("€ rates.pdf")),
            ("attachment; filename*=utf-8'de'%C3%BC.csv; filename=u.csv", Some("ü.csv")),
            ("attachment; filename*=ISO-8859-1''%FC.csv; filename=u.csv", Some("u.csv")),
            ("attachment; filename*=UTF-8''%FF; filename=u.csv", Some("u.csv")),
            ("attachment; filename*=UTF-8''; filename=u.csv", Some("u.csv")),
            ("inline; filename=\"C:\\files\\a\\\"b\\\".txt\"", Some("C:\\files\\a\"b\".txt")),
            ("attachment; filename=\"never closed.txt", Some("never closed.txt")),
            ("attachment; filename=\"\"", None),
            ("attachment; name=x", None),
            ("attachment", None),
            ("", None),
            (";;=;=\"", None),
        ] {
            assert_eq!(file_name(disposition).as_deref(), name, "{disposition}");
        }
    }
}
