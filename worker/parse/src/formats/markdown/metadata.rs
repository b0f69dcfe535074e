//! What programs keep before a text in Markdown: its title, its date and the like, in YAML or TOML.

/// Where that ends, in bytes; 0 where a text begins with its own words.
///
/// It begins with the text and stands between two lines of dashes, or of plus signs. Dashes are rules, too, so that every line between
/// them has to look like it.
pub fn front_matter(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let opening = lines.next().unwrap_or_default();
    let border = opening.trim_end();
    let names_end_with = match border {
        "---" => ':',
        "+++" => '=',
        _ => return 0,
    };
    let mut end = opening.len();
    for (number, line) in lines.enumerate() {
        end += line.len();
        let line = line.trim_end();
        let has_name = line.contains(names_end_with);
        if number == 0 && (line.starts_with('#') || !has_name) {
            return 0;
        }
        if line == border || (line == "..." && border == "---") {
            return end;
        }
        if !has_name && !goes_on(line) {
            return 0;
        }
    }
    0
}

/// Whether a line without a name may belong to the one before it, or says nothing.
fn goes_on(line: &str) -> bool {
    line.is_empty() || line.starts_with([' ', '\t', '#', '-', '[', ']', '{', '}', '"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_from_a_text_that_begins_with_a_rule() {
        for (metadata, text) in [
            ("---\ntitle: A\n---\n", "# A\n"),
            ("---\r\ntitle: A\r\n# said by nobody\r\n\r\ntags:\r\n  - a\r\n- b\r\n...\r\n", "Words"),
            ("--- \ntitle: |\n  Grün\nlist: [\n]\n---", ""),
            ("+++\ntitle = \"A\"\n[menu]\n+++\n", "+++\n"),
            ("", "---\nWords: and more\nof them\n---\n"),
            ("", "---\n# Title: and more\n---\n"),
            ("", "---\n\ntitle: A\n---\n"),
            ("", "---\n---\n"),
            ("", "---\ntitle: A\n"),
            ("", "\n---\ntitle: A\n---\n"),
            ("", "----\ntitle: A\n----\n"),
            ("", "+++\nWords\n+++\n"),
            ("", ""),
        ] {
            assert_eq!(front_matter(&format!("{metadata}{text}")), metadata.len(), "{metadata:?} {text:?}");
        }
    }
}
