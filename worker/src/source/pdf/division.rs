//! Words that are divided at the end of a line or of a page.

/// Joins "syntacti-\ncally" into one word at the end of the upper line. Only letters before the hyphen and a small
/// letter after it: ranges, codes and names with a hyphen of their own stay apart.
pub(super) fn join_divided_words(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.split('\n');
    joined.push_str(lines.next().unwrap_or_default());
    for line in lines {
        if !is_divided(&joined, line) {
            joined.push('\n');
            joined.push_str(line);
            continue;
        }
        joined.pop();
        let (rest_of_word, rest) = first_word(line);
        joined.push_str(rest_of_word);
        if !rest.is_empty() {
            joined.push('\n');
            joined.push_str(rest);
        }
    }
    joined
}

/// Whether a word begins at the end of one text and goes on at the beginning of the other.
pub(super) fn is_divided(upper: &str, lower: &str) -> bool {
    let stem = upper.strip_suffix(['-', '\u{2010}']);
    stem.is_some_and(|stem| stem.ends_with(char::is_alphabetic))
        && lower.trim_start().starts_with(char::is_lowercase)
}

/// The first word of a text, and what comes after the white space behind it.
pub(super) fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use lectern_parse::formats::pdf;

    use super::join_divided_words;

    /// As a page comes from the child.
    fn joined(text: &str) -> String {
        join_divided_words(&pdf::tidy(text))
    }

    #[test]
    fn a_word_divided_at_a_line_end_is_joined() {
        assert_eq!(joined("given syntacti-\ncally familiar\nnames"), "given syntactically\nfamiliar\nnames");
        assert_eq!(joined("a di-\nvided"), "a divided");
        assert_eq!(joined("über\u{ad}\nsetzt"), "übersetzt");
    }

    #[test]
    fn a_word_divided_twice_is_joined_twice() {
        assert_eq!(joined("Donau-\ndampf-\nschiff fährt"), "Donaudampfschiff\nfährt");
    }

    #[test]
    fn codes_names_and_ranges_with_a_hyphen_stay_apart() {
        for apart in ["AD 2018-\n23 was", "Jean-\nPaul", "pages 5-\nto 7", "a dash -\nand more"] {
            assert_eq!(joined(apart), apart);
        }
    }

    #[test]
    fn a_paragraph_break_ends_a_word() {
        assert_eq!(joined("so-\n\ncalled"), "so-\n\ncalled");
    }
}
