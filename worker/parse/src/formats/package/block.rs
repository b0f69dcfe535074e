//! What documents consist of, and how it is written in Markdown.

use unicode_normalization::UnicodeNormalization;

use crate::formats::markdown_table;

/// Columns that a table is written with; further ones are put into the last.
const MAX_COLUMNS: usize = 256;
/// How deep a list is indented at most.
const MAX_INDENT: usize = 8;
/// Blanks for each depth: they put an item under one with a bullet as well as under one with a number.
const INDENT: usize = 4;
/// Deepest heading of Markdown.
const MAX_LEVEL: u8 = 6;

/// The content of a cell, in order.
pub(super) type CellBlocks = Vec<TextBlock>;

/// A piece of a document that stands on lines of its own. Texts are as [`clean`] writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextBlock {
    /// A heading, from level 1.
    Heading {
        /// Its depth.
        level: u8,
        /// What it says.
        text: String,
    },
    /// A paragraph; its lines end where the author ended them.
    Paragraph(String),
    /// An item of a list.
    Item {
        /// Lists around its own.
        depth: usize,
        /// What stands before it: `-`, `1.`, `(a)`.
        marker: String,
        /// What it says.
        text: String,
    },
    /// A table's rows.
    Table(Vec<Vec<CellBlocks>>),
    /// A footnote or endnote that a text before it refers to.
    Note {
        /// What it is referred to by.
        label: String,
        /// What it says.
        text: String,
    },
}

impl TextBlock {
    fn is_item(&self) -> bool {
        matches!(self, Self::Item { .. })
    }
}

/// A text as it is shown: composed characters, ordinary blanks, nothing invisible, single line ends without blanks around them.
pub(super) fn clean(text: &str) -> String {
    let visible = text.chars().filter_map(|c| match c {
        '\u{ad}' | '\u{200b}' | '\u{feff}' => None,
        '\u{2028}' | '\u{2029}' | '\u{b}' | '\u{c}' | '\r' => Some('\n'),
        '\u{a0}' => Some(' '),
        c if c.is_control() && c != '\n' => Some(' '),
        c => Some(c),
    });
    let text: String = visible.nfc().collect();
    let mut cleaned = String::with_capacity(text.len());
    for line in text.split('\n') {
        let mut words = line.split(' ').filter(|word| !word.is_empty()).peekable();
        if words.peek().is_some() && !cleaned.is_empty() {
            cleaned.push('\n');
        }
        for (number, word) in words.enumerate() {
            if number > 0 {
                cleaned.push(' ');
            }
            cleaned.push_str(word);
        }
    }
    cleaned
}

/// Appends blocks to a Markdown text, with blank lines between them and before them where `last` says that something else comes before.
pub(super) fn write(blocks: &[TextBlock], last: &mut TextEnding, text: &mut String) {
    for block in blocks {
        match block {
            TextBlock::Table(rows) if laid_out(rows) => {
                rows.iter().flatten().for_each(|cell| write(cell, last, text));
            }
            TextBlock::Table(rows) => write_table(rows, last, text),
            TextBlock::Heading { level, text: title } if !title.is_empty() => {
                last.part(block, text);
                let level = (*level).clamp(1, MAX_LEVEL);
                text.extend(std::iter::repeat_n('#', usize::from(level)));
                text.push(' ');
                text.push_str(&title.replace('\n', " "));
            }
            TextBlock::Paragraph(words) if !words.is_empty() => {
                last.part(block, text);
                write_lines(words, "", text);
            }
            TextBlock::Item { depth, marker, text: words } if !words.is_empty() => {
                last.part(block, text);
                let depth = last.descend(*depth);
                let indent = " ".repeat(depth * INDENT);
                text.push_str(&indent);
                if !is_list_marker(marker) {
                    text.push_str("- ");
                }
                text.push_str(marker);
                text.push(' ');
                write_lines(words, &format!("{indent}  "), text);
            }
            TextBlock::Note { label, text: words } if !words.is_empty() => {
                last.part(block, text);
                text.extend(["[^", label, "]: ", &words.replace('\n', " ")]);
            }
            TextBlock::Heading { .. }
            | TextBlock::Paragraph(_)
            | TextBlock::Item { .. }
            | TextBlock::Note { .. } => {}
        }
    }
}

/// What a text ends with.
#[derive(Debug, Default)]
pub(super) struct TextEnding {
    /// Whether there is anything yet.
    any: bool,
    /// The depths of the items that the next one may stand under, if it ends with a list. Depths that the source skips are not
    /// shown: what is indented further than one step below the item before it, Markdown takes for code.
    items: Vec<usize>,
}

impl TextEnding {
    /// Parts a text from what is there.
    pub(super) fn part_from_text(&mut self, text: &mut String) {
        self.part(&TextBlock::Paragraph(String::new()), text);
    }

    /// Parts the next block from what is there.
    fn part(&mut self, next: &TextBlock, text: &mut String) {
        let in_list = !self.items.is_empty() && next.is_item();
        if self.any {
            text.push_str(if in_list { "\n" } else { "\n\n" });
        }
        self.any = true;
        if !next.is_item() {
            self.items.clear();
        }
    }

    /// How far an item is indented that its source puts at this depth.
    fn descend(&mut self, depth: usize) -> usize {
        while self.items.last().is_some_and(|above| *above > depth) {
            self.items.pop();
        }
        if self.items.last() != Some(&depth) {
            self.items.push(depth);
        }
        (self.items.len() - 1).min(MAX_INDENT)
    }
}

/// Whether Markdown takes it for the beginning of an item.
fn is_list_marker(marker: &str) -> bool {
    let number = marker.strip_suffix(['.', ')']);
    marker == "-"
        || number.is_some_and(|number| {
            (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Lines of running text, none of which may be taken for a heading or the beginning of something else.
fn write_lines(words: &str, indent: &str, text: &mut String) {
    for (number, line) in words.lines().enumerate() {
        if number > 0 {
            text.push('\n');
            text.push_str(indent);
        }
        if is_markup(line) {
            text.push('\\');
        }
        text.push_str(line);
    }
}

fn is_markup(line: &str) -> bool {
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    let after = line.get(hashes..).unwrap_or_default();
    let heading = (1..=6).contains(&hashes) && (after.is_empty() || after.starts_with(' '));
    let underline = ['=', '-'].iter().any(|sign| !line.is_empty() && line.chars().all(|c| c == *sign));
    let fence = line.starts_with("```") || line.starts_with("~~~");
    let tag = line
        .strip_prefix('<')
        .is_some_and(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic() || "!?/".contains(c)));
    heading || underline || fence || tag
}

/// Whether a table only arranges what it holds: it has one column, or sections of the text in it.
fn laid_out(rows: &[Vec<CellBlocks>]) -> bool {
    let one_column = rows.iter().all(|row| row.len() <= 1);
    let has_sections =
        |cell: &CellBlocks| cell.iter().any(|block| matches!(block, TextBlock::Heading { .. }));
    one_column || rows.iter().flatten().any(has_sections)
}

fn write_table(rows: &[Vec<CellBlocks>], last: &mut TextEnding, text: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).min(MAX_COLUMNS);
    let mut filled =
        rows.iter().map(|row| cells(row, columns)).filter(|row| !row.is_empty()).collect::<Vec<_>>();
    // Columns at the end that no row uses only arrange the page.
    let columns = filled.iter().map(Vec::len).max().unwrap_or(0);
    for row in &mut filled {
        row.resize(columns, String::new());
    }
    if let [header, body @ ..] = filled.as_slice() {
        last.part(&TextBlock::Table(Vec::new()), text);
        text.push_str(&markdown_table::write(header, body.iter().map(Vec::as_slice), columns));
    }
    let mut notes = Vec::new();
    rows.iter().flatten().for_each(|cell| notes_of(cell, &mut notes));
    write(&notes, last, text);
}

/// A row's cells up to the last that says something, each on one line; those beyond the last of `columns` are put into it.
fn cells(row: &[CellBlocks], columns: usize) -> Vec<String> {
    let mut cells = vec![String::new(); columns];
    for (number, cell) in row.iter().enumerate() {
        let Some(written) = cells.get_mut(number.min(columns.saturating_sub(1))) else { continue };
        let words = on_one_line(cell);
        if !written.is_empty() && !words.is_empty() {
            written.push(' ');
        }
        written.push_str(&words);
    }
    let used = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
    cells.truncate(used);
    cells
}

/// Blocks as running text: what a cell can hold. A table in it becomes its rows, parted by semicolons.
pub(super) fn on_one_line(blocks: &[TextBlock]) -> String {
    let pieces = blocks.iter().filter_map(|block| match block {
        TextBlock::Heading { text, .. } | TextBlock::Paragraph(text) => Some(text.replace('\n', " ")),
        TextBlock::Item { marker, text, .. } if marker == "-" => Some(text.replace('\n', " ")),
        TextBlock::Item { marker, text, .. } => Some(format!("{marker} {}", text.replace('\n', " "))),
        TextBlock::Table(rows) => {
            let rows = rows.iter().map(|row| joined(row.iter().map(|cell| on_one_line(cell)), ", "));
            Some(joined(rows, "; "))
        }
        TextBlock::Note { .. } => None,
    });
    joined(pieces, " ")
}

fn joined(pieces: impl Iterator<Item = String>, between: &str) -> String {
    pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join(between)
}

/// The notes within blocks, which do not fit into the cells of a table.
fn notes_of(blocks: &[TextBlock], notes: &mut Vec<TextBlock>) {
    for block in blocks {
        match block {
            TextBlock::Note { .. } => notes.push(block.clone()),
            TextBlock::Table(rows) => rows.iter().flatten().for_each(|cell| notes_of(cell, notes)),
            TextBlock::Heading { .. } | TextBlock::Paragraph(_) | TextBlock::Item { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paragraph(text: &str) -> TextBlock {
        TextBlock::Paragraph(text.to_owned())
    }

    fn item(depth: usize, marker: &str, text: &str) -> TextBlock {
        TextBlock::Item { depth, marker: marker.to_owned(), text: text.to_owned() }
    }

    fn written(blocks: &[TextBlock]) -> String {
        let mut text = String::new();
        write(blocks, &mut TextEnding::default(), &mut text);
        text
    }

    #[test]
    fn invisible_characters_and_superfluous_blanks_are_left_out() {
        assert_eq!(
            clean(" Tren\u{ad}nung\u{a0} a \t b \r\n\n  c\u{200b}d \u{feff}e\u{301} "),
            "Trennung a b\ncd \u{e9}"
        );
        assert_eq!(clean(" \n "), "");
    }

    #[test]
    fn lists_are_nested_and_numbered_as_markdown_wants_them() {
        let list = [
            paragraph("Intro"),
            item(1, "-", "one"),
            item(5, "1.", "deeper\nsecond line"),
            item(5, "2.", "beside it"),
            item(0, "(a)", "two"),
            paragraph("Outro"),
            item(3, "-", "alone"),
        ];
        assert_eq!(
            written(&list),
            "Intro\n\n- one\n    1. deeper\n      second line\n    2. beside it\n- (a) two\n\nOutro\n\n- alone"
        );
    }

    #[test]
    fn a_line_that_only_looks_like_markup_is_not_taken_for_it() {
        let text = "# 5 is the best\n#5 is too\n---\n<!-- no comment\n1 < 2";
        assert_eq!(
            written(&[paragraph(text)]),
            "\\# 5 is the best\n#5 is too\n\\---\n\\<!-- no comment\n1 < 2"
        );
    }

    #[test]
    fn tables_keep_their_shape_and_what_is_within_their_cells() {
        let inner = TextBlock::Table(vec![
            vec![vec![paragraph("x")], vec![paragraph("y")]],
            vec![vec![paragraph("z")]],
        ]);
        let note = TextBlock::Note { label: "1".to_owned(), text: "Why.".to_owned() };
        let table = TextBlock::Table(vec![
            vec![vec![paragraph("a|b")], vec![paragraph("c\nd"), item(0, "-", "e")]],
            vec![vec![], vec![]],
            vec![vec![paragraph("f"), note], vec![], vec![inner]],
        ]);
        assert_eq!(
            written(&[table]),
            "| a\\|b | c d e | |\n| --- | --- | --- |\n| f | | x, y; z |\n\n[^1]: Why."
        );
    }

    #[test]
    fn a_table_that_only_arranges_a_page_is_read_as_text() {
        let heading = TextBlock::Heading { level: 2, text: "Part".to_owned() };
        let page = TextBlock::Table(vec![vec![vec![heading, paragraph("one")], vec![paragraph("two")]]]);
        assert_eq!(written(&[page]), "## Part\n\none\n\ntwo");
        assert_eq!(written(&[TextBlock::Table(vec![vec![vec![paragraph("box")]]])]), "box");
    }
}
