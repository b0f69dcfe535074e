//! Headings that an engine left out of the content that it found.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Puts headings of the whole page back into the content that was found of it, both as Markdown: where no element says that it holds content,
/// an engine takes paragraphs alone. A heading belongs to the first block below it; where that is not in the content, or there more than
/// once, the heading stays away.
pub(super) fn with_headings(found: String, whole: &str) -> String {
    let blocks: Vec<&str> = found.split("\n\n").collect();
    let known: HashSet<&str> = blocks.iter().filter_map(|block| title_of(block)).collect();
    // Where each block stands; none for those that stand in several places.
    let mut places: HashMap<&str, Option<usize>> = HashMap::new();
    for (place, block) in blocks.iter().enumerate() {
        places.entry(block).and_modify(|place| *place = None).or_insert(Some(place));
    }
    // From the innermost outwards.
    let mut missing: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut above = Vec::new();
    for block in whole.split("\n\n") {
        if let Some(title) = title_of(block) {
            above.push((block, title));
            continue;
        }
        let place = places.get(block).copied().flatten();
        let headings = std::mem::take(&mut above);
        let Some(mut place) = place else { continue };
        for (heading, title) in headings.into_iter().rev() {
            let before = place.checked_sub(1).and_then(|before| blocks.get(before)).copied();
            match before.and_then(title_of) {
                Some(before) if before == title => place -= 1,
                // The engine has made a paragraph of it.
                None if before == Some(title) => break,
                None if !known.contains(title) => missing.entry(place).or_default().push(heading),
                _ => break,
            }
        }
    }
    if missing.is_empty() {
        return found;
    }
    let mut pieces = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        let headings = missing.remove(&place).unwrap_or_default();
        pieces.extend(headings.into_iter().rev().map(without_link));
        pieces.push(block);
    }
    pieces.join("\n\n")
}

/// What a block says that is a heading.
fn title_of(block: &str) -> Option<&str> {
    let title = block.trim_start_matches('#');
    let is_heading = title.len() < block.len() && title.starts_with(' ') && !title.contains('\n');
    is_heading.then(|| without_link(title).trim_start())
}

/// Without the sign at its end that links to it.
fn without_link(heading: &str) -> &str {
    heading.trim_end_matches([' ', '¶'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_stand_where_they_stood_and_once() {
        for (found, whole, expected) in [
            ("a\n\nb", "# One¶\n\na\n\n## Two\n\n### Three\n\nb", "# One\n\na\n\n## Two\n\n### Three\n\nb"),
            ("a\n\n### Three\n\nb", "a\n\n## Two\n\n### Three¶\n\nb", "a\n\n## Two\n\n### Three\n\nb"),
            ("# One\n\na", "## One\n\na", "# One\n\na"),
            ("# Other\n\na", "# One\n\na", "# Other\n\na"),
            ("a\n\n# One\n\nb", "# One\n\na\n\nb", "a\n\n# One\n\nb"),
            ("One\n\na", "# One\n\na", "One\n\na"),
            // What is below it was left out, or cannot be told from others.
            ("a", "# Menu\n\nHome\n\na", "a"),
            ("a\n\na", "# One\n\na", "a\n\na"),
            ("a", "a\n\n# End", "a"),
            ("", "# One\n\na", ""),
        ] {
            assert_eq!(with_headings(found.to_owned(), whole), expected, "{whole}");
        }
    }
}
