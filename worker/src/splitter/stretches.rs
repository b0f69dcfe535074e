//! Texts that are too much for one go, in stretches that are cut into passages by themselves.

use std::ops::Range;

/// Places at which something may begin or end in Markdown, of one stretch at most: what its outline and its parser need grows
/// with them. Usual texts have one in every twenty bytes or fewer, so that only those of more than ten megabytes are parted.
const MARKS: usize = 512 << 10;
/// Lines of one stretch at most, where nothing but lines is looked for.
const LINES: usize = 2 << 20;

/// The text in stretches that are cut by themselves: what lies between lines longer than `longest` bytes, and pieces of these
/// lines. Where the next boundary is could otherwise be asked anew for each passage of a megabyte of minified JSON. What is made
/// of more marks than fit one outline is parted, too.
pub(super) fn stretches(text: &str, longest: usize, markdown: bool) -> Vec<Range<usize>> {
    let mut parted = Vec::new();
    for stretch in between_long_lines(text, longest) {
        let base = stretch.start;
        let blocks = blocks(text.get(stretch).unwrap_or_default(), markdown);
        parted.extend(blocks.into_iter().map(|block| base + block.start..base + block.end));
    }
    parted
}

fn between_long_lines(text: &str, longest: usize) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let (mut begun, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if line.len() > longest {
            if begun < at {
                stretches.push(begun..at);
            }
            while end - at > longest {
                let rest = text.get(at..end).unwrap_or_default();
                let fits = rest.get(..rest.floor_char_boundary(longest)).unwrap_or(rest);
                // Where a sentence ends, or else a word, as long as that leaves something.
                let sentence = fits.rfind(". ").map(|dot| dot + 2);
                let word = || fits.rfind(char::is_whitespace).map(|blank| blank + 1);
                let length = sentence.or_else(word).filter(|length| text.is_char_boundary(at + length));
                let length = length.filter(|length| *length > longest / 2).unwrap_or(fits.len()).max(1);
                stretches.push(at..at + length);
                at += length;
            }
            begun = at;
        }
        at = end;
    }
    if begun < text.len() {
        stretches.push(begun..text.len());
    }
    stretches
}

/// The text in blocks, none of which has more marks than one outline takes.
pub(crate) fn blocks(text: &str, markdown: bool) -> Vec<Range<usize>> {
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

    #[test]
    fn a_usual_text_of_megabytes_is_one_stretch() {
        let section =
            format!("## Section\n\n{}\n\n- one\n- two\n\n", "Words, and *more* of them. ".repeat(20));
        let text = section.repeat(5_000);
        assert!(text.len() > 2_500_000);
        let whole = 0..text.len();
        assert_eq!(stretches(&text, 16 << 10, true), vec![whole]);
    }
}
