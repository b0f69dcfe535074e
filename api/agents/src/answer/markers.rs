//! Markers of sources in texts that leave the run whose numbers they are.

/// A text without its `[1]`, `[2, 3]`, `[4-6]` and 【7】, and without the blank before each. JSON stays as it is.
pub(crate) fn strip_markers(text: &str) -> String {
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(['[', '【']) {
        let (before, bracket) = rest.split_at(open);
        plain.push_str(before);
        let (open, close) = if bracket.starts_with('[') { ('[', ']') } else { ('【', '】') };
        let inside = &bracket[open.len_utf8()..];
        let may_stand =
            |c: char| c.is_ascii_digit() || matches!(c, ',' | ';' | '，' | '、' | ' ' | '-' | '–');
        let end = inside.find(|c: char| !may_stand(c)).filter(|end| inside[*end..].starts_with(close));
        // What stands after these is a list of numbers, or an index, and no marker.
        let is_value = plain.trim_end().ends_with(['=', '[', '{']) || inside.starts_with('0');
        let is_number = inside.starts_with(|c: char| c.is_ascii_digit());
        match end.filter(|end| is_number && !is_value && *end <= 40) {
            Some(end) => {
                plain.truncate(plain.trim_end_matches(' ').len());
                rest = &inside[end + close.len_utf8()..];
            }
            None => {
                plain.push(open);
                rest = inside;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_go_and_other_brackets_stay() {
        for (text, plain) in [
            ("It left in spring [1]. It came back [2, 3].", "It left in spring. It came back."),
            ("[4-6] a[i] [x](y) [", " a[i] [x](y) ["),
            ("{\"ids\": [1, 2]}", "{\"ids\": [1, 2]}"),
            ("x = [4], Paris ([1]), 東京【2】。", "x = [4], Paris (), 東京。"),
            ("none", "none"),
        ] {
            assert_eq!(strip_markers(text), plain);
        }
    }
}
