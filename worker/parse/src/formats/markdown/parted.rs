//! Texts that are too much for one go, in blocks: the parser of Markdown, and whoever cuts a text, take one after the other.

use std::ops::Range;

/// Places at which something may begin or end in Markdown, of one stretch at most: what its outline and its parser need grows
/// with them. Usual texts have one in every twenty bytes or fewer, so that only those of more than ten megabytes are parted.
const MARKS: usize = 512 << 10;
/// Lines of one stretch at most, where nothing but lines is looked for.
const LINES: usize = 2 << 20;

/// The text in blocks, none of which has more marks than one outline takes.
pub fn blocks(text: &str, markdown: bool) -> Vec<Range<usize>> {
    let most = if markdown { MARKS } else { LINES };
    let is_mark = |byte: u8| byte == b'\n' || (markdown && byte.is_ascii_punctuation());
    let mut blocks = Vec::new();
    let (mut begun, mut marks) = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        marks += usize::from(is_mark(byte));
        if marks > most {
            let end = border(text, begun, at, markdown);
            blocks.push(begun..end);
            marks = text
                .as_bytes()
                .get(end..=at)
                .unwrap_or_default()
                .iter()
                .filter(|byte| is_mark(**byte))
                .count();
            begun = end;
        }
    }
    if begun < text.len() {
        blocks.push(begun..text.len());
    }
    blocks
}

/// Where a block that begins at `begun` best ends at `end` or before: never in its first half.
fn border(text: &str, begun: usize, end: usize, markdown: bool) -> usize {
    // A mark is ASCII, and so begins where it stands.
    let half = text.ceil_char_boundary(begun + (end - begun) / 2);
    let later = text.get(half..end).unwrap_or_default();
    let heading = || later.rfind("\n\n#").filter(|_| markdown).map(|at| at + 2);
    let paragraph = || later.rfind("\n\n").map(|at| at + 2);
    let line = || later.rfind('\n').map(|at| at + 1);
    heading().or_else(paragraph).or_else(line).map_or(end, |at| half + at).max(begun + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_nothing_but_marks_is_parted_and_nothing_of_it_is_lost() {
        for (text, markdown) in
            [("*a*\n".repeat(MARKS), true), ("ä\n\n".repeat(LINES), false), ("|".repeat(MARKS * 3), true)]
        {
            let blocks = blocks(&text, markdown);
            assert!(blocks.len() > 1);
            assert!(blocks.iter().all(|block| text.is_char_boundary(block.start)));
            assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((blocks[0].start, blocks.last().unwrap().end), (0, text.len()));
        }
    }
}
