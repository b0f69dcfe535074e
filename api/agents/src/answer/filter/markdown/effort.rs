//! How much a Markdown parser has to do for a text. It is more than to go past it once: each line is held against all blocks that
//! are open, the rows of a table are filled up to its columns, and a link's title that goes over lines is gone through again for
//! each of them.

use pulldown_cmark::Options;

/// What one cell of a table takes, in bytes that are gone past.
const CELL: usize = 8;

/// So many bytes are gone through again in the time that one takes that is gone past.
const AGAIN: usize = 8;

/// What has been seen of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParseCost {
    /// What the paragraphs before this one take.
    before: usize,
    paragraph: ParagraphCost,
    /// How deep it is nested.
    depth: usize,
    /// The extensions of which it has a sign.
    signs: Options,
    line_is_blank: bool,
    last: char,
}

impl ParseCost {
    pub(super) const fn new() -> Self {
        Self {
            before: 0,
            paragraph: ParagraphCost::new(),
            depth: 0,
            signs: Options::empty(),
            line_is_blank: true,
            last: '\n',
        }
    }

    /// Goes past the next character.
    pub(super) fn feed(&mut self, character: char) {
        self.paragraph.feed(self.last, character);
        self.signs |= extension(self.last, character);
        if character != '\n' {
            self.line_is_blank &= matches!(character, ' ' | '\t');
        } else if !std::mem::replace(&mut self.line_is_blank, true) {
            self.paragraph.end_line();
        } else {
            self.before += self.paragraph.steps();
            self.paragraph = ParagraphCost::new();
        }
        self.last = character;
    }

    /// A line stands in so many blocks.
    pub(super) fn deepen(&mut self, depth: usize) {
        self.depth = self.depth.max(depth);
    }

    /// The extensions of which the text has a sign.
    pub(super) const fn signs(&self) -> Options {
        self.signs
    }

    /// Whether the paragraph has what may be a link by the name of a definition.
    pub(super) const fn has_reference(&self) -> bool {
        self.paragraph.has_reference
    }

    /// What the text takes, in bytes that are gone past.
    pub(super) fn steps(&self) -> usize {
        (self.before + self.paragraph.steps()).saturating_mul(self.depth.max(1))
    }
}

/// Lines without a blank one between them.
#[derive(Debug, Clone, Copy)]
struct ParagraphCost {
    bytes: usize,
    lines: usize,
    /// The bars of the last line, and of the line that has the most.
    bars: usize,
    most_bars: usize,
    has_link: bool,
    has_reference: bool,
}

impl ParagraphCost {
    const fn new() -> Self {
        Self { bytes: 0, lines: 0, bars: 0, most_bars: 0, has_link: false, has_reference: false }
    }

    fn feed(&mut self, last: char, character: char) {
        self.bytes += character.len_utf8();
        match (last, character) {
            (_, '|') => {
                self.bars += 1;
                self.most_bars = self.most_bars.max(self.bars);
            }
            (']', '(') => self.has_link = true,
            (']', '[') => self.has_reference = true,
            _ => {}
        }
    }

    fn end_line(&mut self) {
        self.lines += 1;
        self.bars = 0;
    }

    fn steps(&self) -> usize {
        let cells = self.lines * self.most_bars;
        let again = if self.has_link { self.lines * self.bytes / AGAIN } else { 0 };
        self.bytes + cells * CELL + again
    }
}

/// The extension of which these two characters, one after the other, may be a sign. Those that never decide on what is code are left
/// out.
const fn extension(last: char, character: char) -> Options {
    match (last, character) {
        (_, '|') => Options::ENABLE_TABLES,
        (_, '$') => Options::ENABLE_MATH,
        (_, '{') => Options::ENABLE_HEADING_ATTRIBUTES,
        (_, ':') => Options::ENABLE_DEFINITION_LIST,
        ('[', '^') => Options::ENABLE_OLD_FOOTNOTES,
        ('[', '[') => Options::ENABLE_WIKILINKS,
        ('[', '!') => Options::ENABLE_GFM,
        _ => Options::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(text: &str) -> ParseCost {
        let mut effort = ParseCost::new();
        text.chars().for_each(|character| effort.feed(character));
        effort
    }

    #[test]
    fn usual_texts_take_what_their_bytes_take() {
        let text = "Words of it.\nMore of them.\n\n".repeat(100);
        assert_eq!(effort(&text).steps(), text.len());
        let linked = "See [this](that) and go on.\n\n".repeat(100);
        assert!(effort(&linked).steps() < 2 * linked.len());
    }

    #[test]
    fn what_is_gone_through_again_and_again_counts_each_time() {
        let lines = "a\n".repeat(10_000);
        assert_eq!(effort(&lines).steps(), lines.len());
        assert!(effort(&format!("[a](b \"{lines}")).steps() > 1_000 * lines.len());
        let columns = "|a".repeat(1_000);
        assert!(effort(&format!("{columns}\n{}", "|a\n".repeat(1_000))).steps() > 1_000_000);
        let mut deep = effort(&lines);
        deep.deepen(10);
        assert_eq!(deep.steps(), 10 * lines.len());
    }
}
