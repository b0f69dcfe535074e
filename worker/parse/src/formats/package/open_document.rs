//! Text documents and presentations in the open document format: ODT and ODP.

use std::collections::BTreeSet;

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
/// The level of slides' titles: above them is the presentation.
const TITLE_LEVEL: u8 = 2;

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
    let mut numbered = numbered_lists(&content)?;
    if let Some(styles) = archive.text("styles.xml")? {
        numbered.extend(numbered_lists(&styles).unwrap_or_default());
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
    let mut reader = OpenDocumentReader { numbered, ..OpenDocumentReader::default() };
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

/// The levels, from 1, of the list styles on which items are numbered.
fn numbered_lists(part: &str) -> Result<BTreeSet<(String, usize)>, ParseError> {
    let (mut style, mut numbered) = (None, BTreeSet::new());
    PartXmlReader::new(part).visit(|element| {
        match element.name() {
            "list-style" => style = element.attribute("name"),
            "list-level-style-number" => {
                let shown = element.attribute("num-format").is_some_and(|format| !format.is_empty());
                let level = element.attribute("level").and_then(|level| level.parse().ok());
                if let (true, Some(style), Some(level)) = (shown, &style, level) {
                    numbered.insert((style.clone(), level));
                }
            }
            _ => {}
        }
        ElementVisit::Into
    })?;
    Ok(numbered)
}

/// What is read of a document so far.
#[derive(Default)]
struct OpenDocumentReader {
    numbered: BTreeSet<(String, usize)>,
    flow: FlowBuilder,
    /// The lists around this place.
    lists: Vec<OpenList>,
    /// How many lists are outside of each cell, text box and note around this place.
    outside: Vec<usize>,
    /// What is known of the cells around this place.
    cells: Vec<(usize, usize)>,
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

#[derive(Default)]
struct OpenList {
    style: Option<String>,
    count: u32,
    /// Whether the item has said something, so that what comes is not marked again.
    marked: bool,
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
            "list" => {
                let style = element.attribute("style-name");
                let style = style.or_else(|| self.lists.last().and_then(|list| list.style.clone()));
                self.lists.push(OpenList { style, ..OpenList::default() });
            }
            "list-item" | "list-header" => {
                let counts = element.name() == "list-item";
                if let Some(list) = self.lists.last_mut() {
                    list.count += u32::from(counts);
                    list.marked = !counts;
                }
            }
            "table" => self.flow.open_table(),
            "table-cell" | "covered-table-cell" => {
                self.cells.push((1, number("number-columns-repeated")));
                self.flow.open_cell();
                self.outside.push(self.lists.len());
            }
            "text-box" | "notes" | "note" => {
                self.flow.open_body();
                self.outside.push(self.lists.len());
            }
            "frame" => self.frames.push(element.attribute("class").as_deref() == Some("title")),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) {
        match name {
            "h" | "p" => self.close_paragraph(),
            "list" => {
                self.lists.pop();
            }
            "table-cell" | "covered-table-cell" => {
                self.outside.pop();
                let (columns, repeated) = self.cells.pop().unwrap_or((1, 1));
                self.flow.close_cell(columns, repeated);
            }
            "table-row" => self.flow.close_row(true),
            "table" => self.flow.close_table(),
            "text-box" => {
                self.outside.pop();
                if self.frames.last() == Some(&true) && self.title.is_none() {
                    let title = on_one_line(&self.flow.close_body());
                    self.title = (!title.is_empty()).then_some(title);
                } else {
                    self.flow.close_box();
                }
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
            _ => {}
        }
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
        let outside = self.outside.last().copied().unwrap_or(0);
        let depth = self.lists.len().saturating_sub(outside);
        let list = if depth > 0 { self.lists.last_mut() } else { None };
        let marker = match list {
            Some(list) if !list.marked && says_something => {
                list.marked = true;
                let is_numbered =
                    list.style.clone().is_some_and(|style| self.numbered.contains(&(style, depth)));
                Some(if is_numbered { format!("{}.", list.count) } else { "-".to_owned() })
            }
            _ => None,
        };
        self.flow.close_paragraph(|text| match (heading, marker) {
            (Some(level), _) => TextBlock::Heading { level, text },
            (None, Some(marker)) => TextBlock::Item { depth: depth.saturating_sub(1), marker, text },
            (None, None) => TextBlock::Paragraph(text),
        });
    }
}
