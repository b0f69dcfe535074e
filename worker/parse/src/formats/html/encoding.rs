//! The encoding that a page names in itself.

/// Bytes from the beginning of a page that are searched. Browsers look at 1,024; long comments push it further down.
const SEARCHED: usize = 8 << 10;

/// The encoding label in a page's `<meta>` elements or its XML declaration.
pub(super) fn named_in(raw: &[u8]) -> Option<String> {
    let head = head_of(raw);
    let mut rest = head.trim_start();
    if let Some(label) = declared(rest) {
        return Some(label.to_owned());
    }
    while let Some(at) = rest.find('<') {
        rest = rest.get(at..).unwrap_or_default();
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let (tag, after) = rest.split_once('>').unwrap_or((rest, ""));
        if let Some(meta) = tag.strip_prefix("<meta")
            && let Some(label) = value_of(meta, "charset").filter(|label| is_usable(label))
        {
            return Some(label.to_owned());
        }
        rest = after;
    }
    None
}

/// The encoding label in the XML declaration with which a document begins.
pub(super) fn declared_in(raw: &[u8]) -> Option<String> {
    declared(head_of(raw).trim_start()).map(str::to_owned)
}

fn head_of(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw.get(..SEARCHED).unwrap_or(raw)).to_ascii_lowercase()
}

fn declared(head: &str) -> Option<&str> {
    let (declaration, _) = head.strip_prefix("<?xml")?.split_once("?>")?;
    value_of(declaration, "encoding").filter(|label| is_usable(label))
}

/// What follows `name=` in a tag, or within one of its attributes.
fn value_of<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.match_indices(name).find_map(|(at, _)| {
        let rest = tag.get(at + name.len()..)?.trim_start().strip_prefix('=')?;
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\''));
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '>'));
        rest.get(..end.unwrap_or(rest.len())).filter(|label| !label.is_empty())
    })
}

/// A page that could be read far enough to find the label is not in UTF-16, whatever it says.
fn is_usable(label: &str) -> bool {
    encoding_rs::Encoding::for_label(label.as_bytes()).is_some_and(encoding_rs::Encoding::is_ascii_compatible)
        || label.starts_with("iso-2022")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_in_every_way_of_writing_it() {
        for (page, label) in [
            (r#"<meta charset="windows-1251">"#, Some("windows-1251")),
            ("<META CHARSET = Shift_JIS />", Some("shift_jis")),
            (r#"<meta http-equiv=Content-Type content="text/html; charset=ISO-8859-2">"#, Some("iso-8859-2")),
            ("<?xml version='1.0' encoding='koi8-r'?><html>", Some("koi8-r")),
            (r#"<!-- <meta charset="gbk"> --><meta charset="big5">"#, Some("big5")),
            (r#"<meta charset="utf-16">"#, None),
            (r#"<meta charset="no such">"#, None),
            ("<p>charset=utf-8</p>", None),
        ] {
            assert_eq!(named_in(page.as_bytes()).as_deref(), label, "{page}");
        }
    }
}
