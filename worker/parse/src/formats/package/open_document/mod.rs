//! Text documents and presentations in the open document format: ODT and ODP.

mod numbering;

use self::numbering::{ListNumbering, OpenList};
use super::{
    archive::PackageArchive,
    block::{TextBlock, on_one_line},
    flow::FlowBuilder,
    presentation,
    writer::BlockWriter,
    xml::{ElementVisit, PartElement, PartXmlReader, XmlToken, title_of},
};
use crate::{
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, SourceMetadata, TextMarkup},
};

/// Where the text is.
const CONTENT: &str = "content.xml";
/// Most blanks that one element stands for; more are never meant to be read.
const MAX_BLANKS: usize = 100;
/// The most cells beside each other that others cover.
const MAX_COVERED: usize = 256;
/// The level of slides' titles: above them is the presentation.
const TITLE_LEVEL: u8 = 2;
/// Shapes have paragraphs of their own, and may stand within one.
const SHAPES: [&str; 13] = [
    "caption",
    "circle",
    "connector",
    "custom-shape",
    "ellipse",
    "image",
    "line",
    "measure",
    "path",
    "polygon",
    "polyline",
    "rect",
    "regular-polygon",
];

/// Reads the document or presentation.
pub(super) fn parse(archive: &mut PackageArchive, output: &mut ParserOutput<'_>) -> Result<(), ParseAbort> {
    if is_encrypted(archive)? {
        return Err(ParseError::PasswordRequired.into());
    }
    let content = archive.text(CONTENT)?.ok_or(ParseError::Damaged)?;
    let title = match archive.text("meta.xml")? {
        // A title is not worth the document.
        Some(meta) => title_of(&meta, "title").unwrap_or_default(),
        None => None,
    };
    let mut numbering = ListNumbering::default();
    numbering.read(&content)?;
    if let Some(styles) = archive.text("styles.xml")? {
        // Numbers are not worth the document.
        numbering.read(&styles).unwrap_or_default();
    }
    let mut slides = 0_u32;
    PartXmlReader::new(&content).visit(|element| {
        slides += u32::from(element.name() == "page");
        ElementVisit::Into
    })?;
    let pages = (slides > 0).then_some(slides);
    output.about(SourceMetadata {
        title,
        structure: TextMarkup::Markdown,
        pages,
        ..SourceMetadata::default()
    })?;
    let mut writer = BlockWriter::new(output);
    let mut reader = OpenDocumentReader { numbering, ..OpenDocumentReader::default() };
    reader.read(&content, &mut writer)?;
    writer.finish()
}

/// Whether the content can be read with a password only: the list of files then says how it was encrypted.
fn is_encrypted(archive: &mut PackageArchive) -> Result<bool, ParseError> {
    let Some(manifest) = archive.text("META-INF/manifest.xml")? else { return Ok(false) };
    let (mut file, mut encrypted) = (String::new(), false);
    let read = PartXmlReader::new(&manifest).visit(|element| {
        match element.name() {
            "file-entry" => file = element.attribute("full-path").unwrap_or_default(),
            "encryption-data" => encrypted |= file == CONTENT || file == "encrypted-package",
            _ => {}
        }
        ElementVisit::Into
    });
    Ok(read.is_ok() && encrypted)
}

/// What is read of a document so far.
#[derive(Default)]
struct OpenDocumentReader {
    numbering: ListNumbering,
    flow: FlowBuilder,
    /// The lists around this place.
    lists: Vec<OpenList>,
    /// How many lists are outside of each cell, text box, shape and note around this place.
    outside: Vec<usize>,
    /// Whether each element around this place that is called like a shape is one.
    shapes: Vec<bool>,
    /// What is known of the cells around this place.
    cells: Vec<TableCell>,
    /// How many of the next cells the last one of the row covers.
    covered: usize,
    /// Levels of the headings, and none for paragraphs, around this place.
    paragraphs: Vec<Option<u8>>,
    /// Whether each frame around this place holds a slide's title.
    frames: Vec<bool>,
    /// Whether the last character of the paragraph is a blank between words.
    after_blank: bool,
    slides: u32,
    notes: usize,
    title: Option<String>,
}

/// What a cell says of itself.
struct TableCell {
    /// How many columns it is seen in.
    columns: usize,
    repeated: usize,
}

impl OpenDocumentReader {
    fn read(&mut self, content: &str, writer: &mut BlockWriter<'_, '_>) -> Result<(), ParseAbort> {
        let mut xml = PartXmlReader::new(content);
        let mut slide: Option<Vec<TextBlock>> = None;
        while let Some(token) = xml.next()? {
            match token {
                XmlToken::Open(element) => {
                    if element.name() == "page" {
                        self.slides += 1;
                        writer.page(self.slides);
                        slide = Some(Vec::new());
                    }
                    self.open(&element, &mut xml)?;
                }
                XmlToken::Text(text) => self.text(&text),
                XmlToken::Close(name) => {
                    self.close(&name);
                    if !self.flow.is_outermost() {
                        continue;
                    }
                    let blocks = self.flow.take();
                    match &mut slide {
                        Some(slide) => slide.extend(blocks),
                        None => writer.blocks(&blocks)?,
                    }
                    if name == "page" {
                        let title =
                            self.title.take().map(|text| TextBlock::Heading { level: TITLE_LEVEL, text });
                        writer.blocks(&title.into_iter().collect::<Vec<_>>())?;
                        writer.blocks(&slide.take().unwrap_or_default())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Blanks and line ends between words are one blank.
    fn text(&mut self, text: &str) {
        if self.paragraphs.is_empty() {
            return;
        }
        for word in text.split_inclusive([' ', '\t', '\n', '\r']) {
            let bare = word.trim_end_matches([' ', '\t', '\n', '\r']);
            if !bare.is_empty() {
                self.flow.text(bare);
                self.after_blank = false;
            }
            if bare.len() < word.len() && !self.after_blank {
                self.flow.text(" ");
                self.after_blank = true;
            }
        }
    }

    fn open(&mut self, element: &PartElement<'_>, xml: &mut PartXmlReader<'_>) -> Result<(), ParseError> {
        let number =
            |name| element.attribute(name).and_then(|number| number.parse::<usize>().ok()).unwrap_or(1);
        match element.name() {
            // Deleted text, remarks, tables of contents, readings above characters, how things look, what programs keep here.
            "tracked-changes" | "annotation" | "table-of-content" | "ruby-text" | "automatic-styles"
            | "font-face-decls" | "scripts" | "settings" | "note-citation" | "binary-data" | "title"
            | "desc" => xml.skip()?,
            "h" => self.open_paragraph(u8::try_from(number("outline-level")).ok()),
            "p" => self.open_paragraph(None),
            "s" => self.flow.text(&" ".repeat(number("c").min(MAX_BLANKS))),
            "tab" => self.flow.text(" "),
            "line-break" => self.flow.text("\n"),
            "list" => self.open_list(element),
            "list-item" | "list-header" => {
                if let Some(list) = self.lists.last_mut() {
                    list.open_item(element);
                }
            }
            "table" => self.flow.open_table(),
            "table-cell" | "covered-table-cell" => {
                self.cells.push(TableCell {
                    columns: number("number-columns-spanned"),
                    repeated: number("number-columns-repeated"),
                });
                self.flow.open_cell();
                self.outside.push(self.lists.len());
            }
            "text-box" | "notes" | "note" => self.open_body(),
            "frame" => self.frames.push(element.attribute("class").as_deref() == Some("title")),
            name if SHAPES.contains(&name) => {
                // A field in a shape that measures is called like it.
                let is_shape = name != "measure" || element.attribute("kind").is_none();
                self.shapes.push(is_shape);
                if is_shape {
                    self.open_body();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) {
        match name {
            "h" | "p" => self.close_paragraph(),
            "list" => {
                if let Some(list) = self.lists.pop() {
                    self.numbering.close(list);
                }
            }
            "table-cell" | "covered-table-cell" => {
                self.outside.pop();
                let cell = self.cells.pop().unwrap_or(TableCell { columns: 1, repeated: 1 });
                self.close_cell(&cell, name == "covered-table-cell");
            }
            "table-row" => {
                self.covered = 0;
                self.flow.close_row(true);
            }
            "table" => self.flow.close_table(),
            "text-box" => {
                self.outside.pop();
                if self.frames.last() == Some(&true) && self.title.is_none() {
                    let title = on_one_line(&self.flow.close_body());
                    self.title = (!title.is_empty()).then_some(title);
                } else {
                    self.flow.close_box();
                }
                self.after_blank = false;
            }
            "notes" => {
                self.outside.pop();
                let notes = presentation::notes(self.flow.close_body());
                for block in notes {
                    self.flow.push(block);
                }
            }
            "note" => {
                self.outside.pop();
                let text = self.flow.close_as_text();
                self.notes += 1;
                self.flow.note(self.notes.to_string(), text);
                self.after_blank = false;
            }
            "frame" => {
                self.frames.pop();
            }
            name if SHAPES.contains(&name) && self.shapes.pop() == Some(true) => {
                self.outside.pop();
                self.flow.close_box();
                self.after_blank = false;
            }
            _ => {}
        }
    }

    /// Ends a cell. One that no other of its row covers is one with the cell above it.
    fn close_cell(&mut self, cell: &TableCell, is_covered: bool) {
        if !is_covered {
            // The cells that it covers are there, empty.
            self.covered = cell.columns.saturating_sub(1);
            self.flow.close_cell(1, cell.repeated);
            return;
        }
        for number in 0..cell.repeated.clamp(1, MAX_COVERED) {
            if number > 0 {
                self.flow.open_cell();
            }
            if self.covered > 0 {
                self.covered -= 1;
                self.flow.close_cell(1, 1);
            } else {
                self.flow.close_cell_below(1);
            }
        }
    }

    fn open_body(&mut self) {
        self.flow.open_body();
        self.outside.push(self.lists.len());
    }

    /// How many lists are around this place in its body.
    fn depth(&self) -> usize {
        self.lists.len().saturating_sub(self.outside.last().copied().unwrap_or(0))
    }

    fn open_list(&mut self, element: &PartElement<'_>) {
        let level = self.depth() + 1;
        // An item that has nothing but a list is counted where no other one came before it.
        if level > 1
            && let Some(outer) = self.lists.last_mut().filter(|outer| outer.begins())
        {
            self.numbering.count(outer);
        }
        let list = self.numbering.open(element, self.lists.last(), level);
        self.lists.push(list);
    }

    fn open_paragraph(&mut self, heading: Option<u8>) {
        self.paragraphs.push(heading);
        self.flow.open_paragraph();
        self.after_blank = true;
    }

    fn close_paragraph(&mut self) {
        self.after_blank = false;
        let heading = self.paragraphs.pop().flatten();
        let says_something = self.flow.has_text();
        let depth = self.depth();
        let mut marker = None;
        if depth > 0
            && let Some(list) = self.lists.last_mut()
        {
            self.numbering.count(list);
            if says_something {
                marker = self.numbering.marker(list);
            }
        }
        self.flow.close_paragraph(|text| match (heading, marker) {
            (Some(level), _) => TextBlock::Heading { level, text },
            (None, Some(marker)) => TextBlock::Item { depth: depth.saturating_sub(1), marker, text },
            (None, None) => TextBlock::Paragraph(text),
        });
    }
}
