//! Texts that are too much for one go, in stretches that are cut into passages by themselves.

use std::ops::Range;

use lectern_parse::formats::markdown::blocks;

use super::units::last_grapheme_end;

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
                let length = length_of_piece(rest, longest);
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

/// How long the first piece is of a line that is longer than `longest` bytes. It ends with a sentence, or else with a word, in the
/// second half of what it may be, so that it leaves something.
fn length_of_piece(line: &str, longest: usize) -> usize {
    let most = line.floor_char_boundary(longest);
    let half = line.ceil_char_boundary(longest / 2);
    let later = line.get(half..most).unwrap_or_default();
    let sentence = later.rfind(". ").map(|dot| dot + 2);
    let word = || later.char_indices().rfind(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
    match sentence.or_else(word) {
        Some(length) => half + length,
        None => last_grapheme_end(line, most).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a line, which are all of it.
    fn pieces(line: &str, longest: usize) -> Vec<&str> {
        let stretches = stretches(line, longest, false);
        let pieces: Vec<_> = stretches.into_iter().map(|stretch| &line[stretch]).collect();
        assert_eq!(pieces.concat(), line);
        assert!(pieces.iter().all(|piece| piece.len() <= longest));
        pieces
    }

    #[test]
    fn a_long_line_is_cut_between_words_though_its_sentences_end_early() {
        for (blank, longest) in [(" ", 100), ("\u{3000}", 101), ("\u{2003}", 102)] {
            let words = format!("größer{blank}und{blank}").repeat(200);
            let line = format!("It begins. {words}");
            let pieces = pieces(&line, longest);
            assert!(pieces.iter().all(|piece| piece.ends_with(blank)), "{blank:?}: {pieces:?}");
            assert!(pieces.len() < line.len() / 50, "{blank:?}: {pieces:?}");
        }
        let line = "Nothing but short sentences. ".repeat(100);
        assert!(pieces(&line, 100).iter().all(|piece| piece.ends_with(". ")));
    }

    #[test]
    fn a_long_line_without_blanks_is_cut_between_what_people_see_as_characters() {
        for (character, longest) in [("e\u{301}", 100), ("🇩🇪", 101), ("👩\u{200d}👩\u{200d}👧", 103)]
        {
            let line = character.repeat(500);
            for piece in pieces(&line, longest) {
                assert_eq!(piece.len() % character.len(), 0, "{character}: {piece}");
            }
        }
        // One that never ends is cut all the same.
        let line = format!("a{}", "\u{301}".repeat(5_000));
        assert!(pieces(&line, 1_000).len() < 15);
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
