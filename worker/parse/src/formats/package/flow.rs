//! Puts a document's blocks together while its markup is read, whatever vocabulary that is written in.

use super::block::{CellBlocks, TextBlock, clean, on_one_line};

/// Cells that a cell may cover, or be repeated as, when they are empty.
const MAX_SPAN: usize = 256;
/// How often a cell that says something may be repeated.
const MAX_REPEATED: usize = 16;
/// Longest text that may be repeated, in bytes.
const MAX_REPEATED_TEXT: usize = 200;
/// How many cells of a document may say what those above them say. A few letters of markup are one.
const MAX_SAID_AGAIN: usize = 100_000;

/// Text that flows into blocks. Paragraphs stand in bodies: the document's own, a cell's, a text box's, a note's; bodies nest.
pub(super) struct FlowBuilder {
    bodies: Vec<FlowBody>,
    /// Cells that may still say what those above them say.
    again: usize,
}

/// What is being put together at one level.
#[derive(Default)]
struct FlowBody {
    blocks: Vec<TextBlock>,
    paragraph: Option<FlowParagraph>,
    table: Option<FlowTable>,
}

#[derive(Default)]
struct FlowParagraph {
    text: String,
    /// What belongs after it: notes that it refers to, text boxes that are anchored in it.
    after: Vec<TextBlock>,
}

#[derive(Default)]
struct FlowTable {
    rows: Vec<Vec<CellBlocks>>,
    row: Vec<CellBlocks>,
    /// Whether the row before was left out.
    is_cut: bool,
}

impl Default for FlowBuilder {
    /// One body with nothing in it.
    fn default() -> Self {
        Self { bodies: vec![FlowBody::default()], again: MAX_SAID_AGAIN }
    }
}

impl FlowBuilder {
    /// Whether nothing is open but the document's own body, so that its blocks can be taken.
    pub(super) fn is_outermost(&self) -> bool {
        matches!(self.bodies.as_slice(), [body] if body.table.is_none() && body.paragraph.is_none())
    }

    /// The blocks that are complete in the innermost body.
    pub(super) fn take(&mut self) -> Vec<TextBlock> {
        self.bodies.last_mut().map(|body| std::mem::take(&mut body.blocks)).unwrap_or_default()
    }

    /// Begins a paragraph, or goes on with one that is not to end.
    pub(super) fn open_paragraph(&mut self) {
        if let Some(body) = self.bodies.last_mut() {
            body.paragraph.get_or_insert_default();
        }
    }

    /// Text of the innermost paragraph; outside of one it is the blanks between tags.
    pub(super) fn text(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraph() {
            paragraph.text.push_str(text);
        }
    }

    /// What the innermost paragraph says so far, as it is written.
    pub(super) fn has_text(&self) -> bool {
        let paragraph = self.bodies.last().and_then(|body| body.paragraph.as_ref());
        paragraph.is_some_and(|paragraph| !paragraph.text.trim().is_empty())
    }

    /// A reference to a note, which is written after the paragraph.
    pub(super) fn note(&mut self, label: String, text: String) {
        if let Some(paragraph) = self.paragraph()
            && !text.is_empty()
        {
            paragraph.text.push_str("[^");
            paragraph.text.push_str(&label);
            paragraph.text.push(']');
            paragraph.after.push(TextBlock::Note { label, text });
        }
    }

    /// Ends the innermost paragraph as the block that its text makes.
    pub(super) fn close_paragraph(&mut self, block: impl FnOnce(String) -> TextBlock) {
        let Some(body) = self.bodies.last_mut() else { return };
        let Some(paragraph) = body.paragraph.take() else { return };
        let text = clean(&paragraph.text);
        if !text.is_empty() {
            body.blocks.push(block(text));
        }
        body.blocks.extend(paragraph.after);
    }

    /// A block that is complete.
    pub(super) fn push(&mut self, block: TextBlock) {
        if let Some(body) = self.bodies.last_mut() {
            body.blocks.push(block);
        }
    }

    /// Begins a body within the innermost one.
    pub(super) fn open_body(&mut self) {
        self.bodies.push(FlowBody::default());
    }

    /// Ends the innermost body and hands out what was in it.
    pub(super) fn close_body(&mut self) -> Vec<TextBlock> {
        self.close_paragraph(TextBlock::Paragraph);
        match self.bodies.len() {
            0 | 1 => Vec::new(),
            _ => self.bodies.pop().map(|body| body.blocks).unwrap_or_default(),
        }
    }

    /// Ends the innermost body, a text box, which is read after the paragraph that it is anchored in.
    pub(super) fn close_box(&mut self) {
        let blocks = self.close_body();
        match self.paragraph() {
            Some(paragraph) => paragraph.after.extend(blocks),
            None => blocks.into_iter().for_each(|block| self.push(block)),
        }
    }

    /// Ends the innermost body as running text.
    pub(super) fn close_as_text(&mut self) -> String {
        on_one_line(&self.close_body())
    }

    /// Begins a table.
    pub(super) fn open_table(&mut self) {
        if let Some(body) = self.bodies.last_mut() {
            // One within another stands in a cell, which is a body.
            body.table = Some(FlowTable::default());
        }
    }

    /// Begins a cell of the innermost table.
    pub(super) fn open_cell(&mut self) {
        self.open_body();
    }

    /// Ends the innermost cell; it takes `columns` and is `repeated` as often. What would take more than a stranger may cost is
    /// there once.
    pub(super) fn close_cell(&mut self, columns: usize, repeated: usize) {
        let blocks = self.close_body();
        let Some(table) = self.table() else { return };
        let repeated = match blocks.as_slice() {
            [] => repeated.min(MAX_SPAN),
            _ if is_short(&blocks) => repeated.min(MAX_REPEATED),
            _ => 1,
        };
        for _ in 1..repeated {
            table.row.push(blocks.clone());
        }
        table.add(blocks, columns);
    }

    /// Ends the innermost cell, which is one with the cell above it. It says the same, so that its row can be understood without those above.
    pub(super) fn close_cell_below(&mut self, columns: usize) {
        let own = self.close_body();
        let Self { bodies, again } = self;
        let Some(table) = bodies.last_mut().and_then(|body| body.table.as_mut()) else { return };
        let above = table.rows.last().filter(|_| own.is_empty() && !table.is_cut && *again > 0);
        let above = above.and_then(|row| row.get(table.row.len())).filter(|above| is_short(above));
        *again -= usize::from(above.is_some());
        let said = above.cloned().unwrap_or(own);
        table.add(said, columns);
    }

    /// Leaves out columns in which the row has no cells.
    pub(super) fn skip_columns(&mut self, columns: usize) {
        if let Some(table) = self.table() {
            table.row.extend((0..columns.min(MAX_SPAN)).map(|_| CellBlocks::new()));
        }
    }

    /// Ends a row; `kept` is false for one that was deleted.
    pub(super) fn close_row(&mut self, kept: bool) {
        if let Some(table) = self.table() {
            table.is_cut = !kept;
            let row = std::mem::take(&mut table.row);
            if kept && !row.is_empty() {
                table.rows.push(row);
            }
        }
    }

    /// Ends the innermost table.
    pub(super) fn close_table(&mut self) {
        if let Some(body) = self.bodies.last_mut()
            && let Some(table) = body.table.take()
        {
            body.blocks.push(TextBlock::Table(table.rows));
        }
    }

    fn paragraph(&mut self) -> Option<&mut FlowParagraph> {
        self.bodies.last_mut()?.paragraph.as_mut()
    }

    fn table(&mut self) -> Option<&mut FlowTable> {
        self.bodies.last_mut()?.table.as_mut()
    }
}

impl FlowTable {
    /// Adds a cell that takes so many columns.
    fn add(&mut self, blocks: CellBlocks, columns: usize) {
        self.row.push(blocks);
        self.row.extend((1..columns.min(MAX_SPAN)).map(|_| CellBlocks::new()));
    }
}

/// Whether a cell says so little that it may be repeated.
fn is_short(cell: &[TextBlock]) -> bool {
    matches!(cell, [TextBlock::Paragraph(text)] if text.len() <= MAX_REPEATED_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cells_say_again_has_an_end() {
        let mut flow = FlowBuilder::default();
        flow.open_table();
        flow.open_cell();
        flow.push(TextBlock::Paragraph("Fruit".to_owned()));
        flow.close_cell(1, 1);
        flow.close_row(true);
        for _ in 0..=MAX_SAID_AGAIN {
            flow.open_cell();
            flow.close_cell_below(1);
            flow.close_row(true);
        }
        flow.close_table();
        let blocks = flow.take();
        let [TextBlock::Table(rows)] = blocks.as_slice() else { panic!("a table") };
        let said = rows.iter().flatten().filter(|cell| !cell.is_empty()).count();
        assert_eq!((rows.len(), said), (MAX_SAID_AGAIN + 2, MAX_SAID_AGAIN + 1));
    }
}
