//! Texts that are too much for one go, in stretches that are cut into passages by themselves.

use std::ops::Range;

use lectern_parse::formats::markdown::blocks;

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

#[cfg(test)]
mod tests {
    use super::*;

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
