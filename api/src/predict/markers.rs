//! Markers of sources in texts that leave the run whose numbers they are.

/// A text without its `[1]`, `[2, 3]` and `[4-6]`, and without the blank before each.
pub(super) fn without(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, bracket) = rest.split_at(open);
        plain.push_str(before);
        let inside = &bracket[1..];
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, ',' | ' ' | '-' | '–');
        let end = inside.find(|c: char| !is_number(c)).filter(|end| inside[*end..].starts_with(']'));
        match end.filter(|end| inside.starts_with(|c: char| c.is_ascii_digit()) && *end <= 40) {
            Some(end) => {
                plain.truncate(plain.trim_end_matches(' ').len());
                rest = &inside[end + 1..];
            }
            None => {
                plain.push('[');
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
            ("none", "none"),
        ] {
            assert_eq!(without(text), plain);
        }
    }
}
