//! Markers of sources in texts that leave the run whose numbers they are.

use super::cite::marker_length;

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
        // What stands after these is a list of numbers, or an index, and no marker.
        let is_value = plain.trim_end().ends_with(['=', '[', '{']) || inside.trim_start().starts_with('0');
        match marker_length(inside, close).filter(|_| !is_value) {
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
            (
                "From [2024] to [1-100] [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].",
                "From [2024] to [1-100].",
            ),
            ("none", "none"),
        ] {
            assert_eq!(strip_markers(text), plain);
        }
    }
}
