//! Where on a page the sections begin that the document's outline names: an outline leads to pages, and mostly to a line of them, of
//! which it says the title.

use lectern_parse::protocol::{MarkKind, OutlineEntry, TextMark};

/// The most lines of a page that a title is looked for in.
const MAX_LINES: usize = 2_000;

/// Where sections begin in the text of their page: at the line that begins with their title, whatever its case and its spaces, but never
/// before the section that comes before; at the beginning of the page when no line does.
pub(super) fn place(text: &str, sections: impl Iterator<Item = OutlineEntry>) -> Vec<TextMark> {
    // Read once somebody looks for a title in them.
    let mut lines: Option<Vec<(u64, String)>> = None;
    let mut last = 0;
    sections
        .map(|OutlineEntry { level, title }| {
            let lines = lines.get_or_insert_with(|| lines_of(text));
            let wanted = plain(&title);
            let found = lines
                .iter()
                .find(|(at, line)| *at >= last && !wanted.is_empty() && line.starts_with(&wanted));
            last = found.map_or(last, |(at, _)| *at);
            TextMark { at: last, what: MarkKind::Heading { level, title } }
        })
        .collect()
}

/// The lines of a text as they are compared, and where they begin in code points.
fn lines_of(text: &str) -> Vec<(u64, String)> {
    let mut at = 0;
    text.split('\n')
        .take(MAX_LINES)
        .map(|line| {
            let begins = at;
            at += line.chars().count() as u64 + 1;
            (begins, plain(line))
        })
        .collect()
}

/// Letters and digits alone, in lower case.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
