//! Markdown that is nested without end, made flat beyond a depth that nobody writes.

use std::borrow::Cow;

/// Quotes, lists and notes that one line opens or goes on with, at most.
const DEEPEST: usize = 64;
/// Columns of indentation and of such marks, at most: lists go deeper by it from line to line.
const WIDEST: usize = 256;
/// The longest name of a note.
const LONGEST_NAME: usize = 1_000;

/// The same text, as long in every place, in which nothing is nested deeper than it ever is on purpose: a mark that would open
/// one level more is a letter. A parser goes through all open levels for every line.
pub fn flattened(text: &str) -> Cow<'_, str> {
    let mut flat: Option<Vec<u8>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(too_deep) = too_deep(line.as_bytes())
            && let Some(byte) = flat.get_or_insert_with(|| text.as_bytes().to_vec()).get_mut(at + too_deep)
        {
            *byte = b'x';
        }
        at += line.len();
    }
    // A mark is ASCII, and so is the letter.
    flat.and_then(|flat| String::from_utf8(flat).ok()).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The first mark at the beginning of a line that opens too much.
fn too_deep(line: &[u8]) -> Option<usize> {
    let (mut at, mut columns, mut depth) = (0, 0, 0);
    loop {
        let rest = line.get(at..)?;
        let length = match rest.first()? {
            b' ' => {
                (at, columns) = (at + 1, columns + 1);
                continue;
            }
            b'\t' => {
                (at, columns) = (at + 1, columns + 4);
                continue;
            }
            _ => mark(rest)?,
        };
        depth += 1;
        if depth > DEEPEST || columns > WIDEST {
            return Some(at);
        }
        (at, columns) = (at + length, columns + length);
    }
}

/// How long the mark is that a text begins with, if it opens a quote, an item, a definition or a note.
fn mark(text: &[u8]) -> Option<usize> {
    let is_alone = |length: usize| matches!(text.get(length), None | Some(b' ' | b'\t' | b'\n' | b'\r'));
    match text.first()? {
        b'>' => Some(1),
        b'-' | b'*' | b'+' | b':' | b'~' => is_alone(1).then_some(1),
        b'0'..=b'9' => {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (matches!(text.get(digits), Some(b'.' | b')')) && is_alone(digits + 1)).then_some(digits + 1)
        }
        b'[' if text.get(1) == Some(&b'^') => {
            let end = text.iter().take(LONGEST_NAME).position(|byte| *byte == b']')?;
            (text.get(end + 1) == Some(&b':')).then_some(end + 2)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser};

    use super::*;

    /// How many elements are open at once at most.
    fn depth(text: &str) -> usize {
        let (mut depth, mut deepest) = (0_usize, 0);
        for event in Parser::new_ext(text, Options::all()) {
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        deepest
    }

    #[test]
    fn what_is_nested_without_end_is_flat_and_stands_where_it_stood() {
        let deepening =
            |mark: &str| (1..600).map(|n| format!("{}ä\n", mark.repeat(n))).collect::<Vec<_>>().concat();
        let lists: String = (0..600).map(|n| format!("{}- ä\n", "  ".repeat(n))).collect::<Vec<_>>().concat();
        for text in
            [deepening("> "), deepening(">"), deepening("- "), deepening("1. > "), lists, deepening("[^a]: ")]
        {
            let flat = flattened(&text);
            assert_eq!(flat.len(), text.len());
            assert!(text.char_indices().all(|(at, _)| flat.is_char_boundary(at)));
            assert!(depth(&flat) < 2 * (DEEPEST + WIDEST), "{} of {}", depth(&flat), depth(&text));
        }
    }

    #[test]
    fn what_people_write_is_left_as_it_is() {
        for text in [
            "> > > A quote of a quote.\n> > back\n",
            "- a\n  - b\n    - c\n      1. d\n         > e\n",
            "```\n                                        - deep in code\n```\n",
            "-----------------------------------------------------------------\n* * *\n",
            "[^1]: A note.\n: a definition\n",
        ] {
            assert!(matches!(flattened(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
