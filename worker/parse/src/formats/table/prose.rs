//! Tells tables from what else is called one.

use serde::de::IgnoredAny;

use super::dialect::{DetectedDialect, head, quoted};

/// Bytes from the beginning that are looked at.
const JUDGED: usize = 64 << 10;
/// Bytes of JSON that are read to see whether it is some.
const MAX_JSON: usize = 16 << 20;

/// Whether a text has rows and columns. In doubt it has: prose cut into fields can still be read.
pub(super) fn is_table(text: &str, detected: DetectedDialect) -> bool {
    !is_json(text) && !is_prose(head(text, JUDGED), detected)
}

/// One JSON value, or several with a line each.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    if !text.starts_with(['{', '[']) {
        return false;
    }
    let part = text.get(..text.floor_char_boundary(MAX_JSON)).unwrap_or(text);
    let mut values = serde_json::Deserializer::from_str(part).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => {
            let rest = part.get(values.byte_offset()..).unwrap_or_default();
            rest.trim_start_matches([' ', '\t']).chars().next().is_none_or(|next| "\r\n".contains(next))
        }
        // It goes on beyond what was read.
        Some(Err(error)) => error.is_eof() && part.len() < text.len(),
        None => false,
    }
}

/// Sentences: many words a line, and delimiters that are punctuation, with a blank after them.
fn is_prose(head: &str, detected: DetectedDialect) -> bool {
    let lines: Vec<&str> = head.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let words = lines.iter().map(|line| line.split_whitespace().count()).sum::<usize>();
    let delimiter = char::from(detected.dialect.delimiter);
    if lines.iter().any(|line| line.starts_with('"') && line.ends_with('"')) {
        return false;
    }
    let ended = lines.iter().filter(|line| line.ends_with(['.', '!', '?', ':', ','])).count();
    if detected.fit.fields < 2 {
        let wordy = words >= lines.len() * 8 || (words >= lines.len() * 4 && ended * 3 >= lines.len());
        return lines.len() < 2 || wordy;
    }
    let delimiters = head.matches(delimiter).count();
    let punctuation =
        head.matches(&format!("{delimiter} ")).count() + head.matches(&format!("{delimiter}\n")).count();
    let is_punctuation = punctuation * 10 >= delimiters * 9 && ",;".contains(delimiter);
    let has_quoted = detected.dialect.quote.is_some_and(|quote| {
        let (opened, closed) = quoted(head, detected.dialect.delimiter, quote);
        opened > 0 && closed > 0
    });
    let is_uneven = detected.fit.even < 80 || ended * 2 > lines.len();
    is_uneven && is_punctuation && words >= lines.len() * 5 && !has_quoted
}
