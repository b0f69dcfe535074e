//! Text documents of Word: DOCX and its relatives.

mod numbering;
mod styles;

use std::collections::BTreeMap;

use self::{
    numbering::ListNumbering,
    styles::{ListPlace, ParagraphStyles},
};
use super::{
    archive::PackageArchive,
    block::TextBlock,
    chart,
    flow::FlowBuilder,
    opc::{self, PartRelationship},
    writer::BlockWriter,
    xml::{ElementVisit, PartElement, PartXmlReader, XmlToken},
};
use crate::{
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, SourceMetadata, TextMarkup},
};

/// Notes by kind and id.
type NoteTexts = BTreeMap<(&'static str, String), String>;

/// Reads the document whose main part is named.
pub(super) fn parse(
    archive: &mut PackageArchive,
    main: &str,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    let title = opc::title(archive)?;
    output.about(SourceMetadata { title, structure: TextMarkup::Markdown, ..SourceMetadata::default() })?;
    let relations = opc::relations(archive, main)?;
    let styles = opc::related(archive, &relations, "styles")?;
    let numbering = opc::related(archive, &relations, "numbering")?;
    let mut reader = WordReader {
        // Without these the text is still all there.
        styles: styles.and_then(|part| ParagraphStyles::read(&part).ok()).unwrap_or_default(),
        numbering: numbering.and_then(|part| ListNumbering::read(&part).ok()).unwrap_or_default(),
        charts: chart::paragraphs(archive, &relations)?.into_iter().collect(),
        ..WordReader::default()
    };
    let mut unreadable = 0;
    for kind in ["footnotes", "endnotes"] {
        match notes(archive, &relations, kind, &reader) {
            Ok(notes) => reader.notes.extend(notes),
            Err(_) => unreadable += 1,
        }
    }
    let document = archive.text(main)?.ok_or(ParseError::Damaged)?;
    let mut writer = BlockWriter::new(output);
    reader.read(&document, &mut |blocks| writer.blocks(&blocks))?;
    writer.finish()?;
    if unreadable > 0 {
        let message = "The footnotes or endnotes could not be read and were left out.";
        output.warn("unreadable_notes", message, unreadable)?;
    }
    Ok(())
}

/// The notes of a kind. They are read by themselves, in the styles of the document: what is wrong with them is not worth it.
fn notes(
    archive: &mut PackageArchive,
    relations: &[PartRelationship],
    kind: &str,
    document: &WordReader,
) -> Result<NoteTexts, ParseAbort> {
    let Some(part) = opc::related(archive, relations, kind)? else { return Ok(NoteTexts::new()) };
    let mut reader = WordReader {
        styles: document.styles.clone(),
        numbering: document.numbering.clone(),
        ..WordReader::default()
    };
    reader.read(&part, &mut |_| Ok(()))?;
    Ok(reader.notes)
}

/// What is read of a document so far.
#[derive(Default)]
struct WordReader {
    styles: ParagraphStyles,
    numbering: ListNumbering,
    notes: NoteTexts,
    /// What the charts say that were not referred to yet, by how they are called.
    charts: BTreeMap<String, TextBlock>,
    /// Notes that were referred to.
    referred: usize,
    flow: FlowBuilder,
    paragraphs: Vec<ParagraphProperties>,
    /// Whether each run around this place is hidden.
    runs: Vec<bool>,
    /// Whether each choice between alternatives around this place has been made.
    choices: Vec<bool>,
    /// What is known of each cell and row around this place.
    cells: Vec<TableCell>,
    rows_deleted: Vec<bool>,
    /// The notes around this place.
    open_notes: Vec<Option<(&'static str, String)>>,
    in_text: bool,
}

/// What a cell says of itself.
#[derive(Default)]
struct TableCell {
    columns: usize,
    /// Whether it is one with the cell above it.
    goes_on: bool,
}

/// What a paragraph says of itself.
#[derive(Default)]
struct ParagraphProperties {
    style: Option<String>,
    outline: Option<u8>,
    list: ListPlace,
    /// Whether its end was deleted, so that the next one goes on with it.
    goes_on: bool,
}

impl WordReader {
    /// Reads a part with text and hands out its blocks as they are complete.
    fn read(
        &mut self,
        part: &str,
        sink: &mut dyn FnMut(Vec<TextBlock>) -> Result<(), ParseAbort>,
    ) -> Result<(), ParseAbort> {
        let mut xml = PartXmlReader::new(part);
        while let Some(token) = xml.next()? {
            match token {
                XmlToken::Open(element) => self.open(&element, &mut xml)?,
                XmlToken::Text(text) => {
                    if self.in_text && !self.runs.last().is_some_and(|hidden| *hidden) {
                        self.flow.text(&text);
                    }
                }
                XmlToken::Close(name) => {
                    self.close(&name);
                    if matches!(name.as_str(), "p" | "tbl") && self.flow.is_outermost() {
                        sink(self.flow.take())?;
                    }
                }
            }
        }
        self.flow.close_paragraph(TextBlock::Paragraph);
        sink(self.flow.take())
    }

    fn open(&mut self, element: &PartElement<'_>, xml: &mut PartXmlReader<'_>) -> Result<(), ParseError> {
        match element.name() {
            // What was deleted or moved elsewhere, what fields are computed from, readings above characters, and settings.
            "del" | "moveFrom" | "delText" | "instrText" | "delInstrText" | "rt" | "sectPr" | "sdtPr"
            | "tblPr" | "tcPrChange" => xml.skip()?,
            "p" => {
                self.paragraphs.push(ParagraphProperties::default());
                self.flow.open_paragraph();
            }
            "pPr" => self.read_paragraph_properties(xml)?,
            "r" => self.runs.push(false),
            "rPr" => self.read_run_properties(xml)?,
            "t" => self.in_text = true,
            "tab" | "ptab" => self.flow.text(" "),
            "br" | "cr" => self.flow.text("\n"),
            "noBreakHyphen" => self.flow.text("-"),
            "footnoteReference" => self.refer("footnote", element),
            "endnoteReference" => self.refer("endnote", element),
            "footnote" => self.open_note("footnote", element),
            "endnote" => self.open_note("endnote", element),
            "txbxContent" => self.flow.open_body(),
            "chart" => self.show_chart(element),
            "AlternateContent" => self.choices.push(false),
            "Choice" | "Fallback" => match self.choices.last_mut() {
                Some(chosen) if !*chosen => *chosen = true,
                Some(_) => xml.skip()?,
                None => {}
            },
            _ => self.open_in_table(element, xml)?,
        }
        Ok(())
    }

    /// Opens what tables consist of, and reads what rows and cells say of themselves.
    fn open_in_table(
        &mut self,
        element: &PartElement<'_>,
        xml: &mut PartXmlReader<'_>,
    ) -> Result<(), ParseError> {
        match element.name() {
            "tbl" => self.flow.open_table(),
            "tr" => self.rows_deleted.push(false),
            "trPr" => self.read_row_properties(xml)?,
            "tc" => {
                self.cells.push(TableCell::default());
                self.flow.open_cell();
            }
            "gridSpan" => {
                if let Some(cell) = self.cells.last_mut() {
                    cell.columns = element.number("val").unwrap_or(1);
                }
            }
            "vMerge" => {
                if let Some(cell) = self.cells.last_mut() {
                    cell.goes_on = element.attribute("val").as_deref() != Some("restart");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_paragraph_properties(&mut self, xml: &mut PartXmlReader<'_>) -> Result<(), ParseError> {
        let properties = ParagraphProperties::read(xml)?;
        if let Some(paragraph) = self.paragraphs.last_mut() {
            *paragraph = properties;
        }
        Ok(())
    }

    fn read_run_properties(&mut self, xml: &mut PartXmlReader<'_>) -> Result<(), ParseError> {
        let mut hidden = false;
        xml.visit(|element| match element.name() {
            "rPrChange" => ElementVisit::Skip,
            name => {
                hidden |= name == "vanish" && element.is_on();
                ElementVisit::Into
            }
        })?;
        if let Some(run) = self.runs.last_mut() {
            *run |= hidden;
        }
        Ok(())
    }

    fn read_row_properties(&mut self, xml: &mut PartXmlReader<'_>) -> Result<(), ParseError> {
        let (mut deleted, mut before) = (false, 0);
        xml.visit(|element| {
            match element.name() {
                "del" => deleted = true,
                "gridBefore" => before = element.number("val").unwrap_or(0),
                "trPrChange" => return ElementVisit::Skip,
                _ => {}
            }
            ElementVisit::Into
        })?;
        self.flow.skip_columns(before);
        if let Some(row) = self.rows_deleted.last_mut() {
            *row = deleted;
        }
        Ok(())
    }

    /// Puts what a chart says where it is shown for the first time.
    fn show_chart(&mut self, element: &PartElement<'_>) {
        if let Some(said) = element.prefixed("id").and_then(|id| self.charts.remove(&id)) {
            self.flow.open_body();
            self.flow.push(said);
            self.flow.close_box();
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "p" => self.close_paragraph(),
            "r" => {
                self.runs.pop();
            }
            "t" => self.in_text = false,
            "tc" => match self.cells.pop().unwrap_or_default() {
                TableCell { columns, goes_on: true } => self.flow.close_cell_below(columns),
                TableCell { columns, goes_on: false } => self.flow.close_cell(columns, 1),
            },
            "tr" => self.flow.close_row(!self.rows_deleted.pop().unwrap_or(false)),
            "tbl" => self.flow.close_table(),
            "txbxContent" => self.flow.close_box(),
            "AlternateContent" => {
                self.choices.pop();
            }
            "footnote" | "endnote" => {
                if let Some(note) = self.open_notes.pop() {
                    let text = self.flow.close_as_text();
                    self.notes.extend(note.map(|note| (note, text)));
                }
            }
            _ => {}
        }
    }

    fn close_paragraph(&mut self) {
        let properties = self.paragraphs.pop().unwrap_or_default();
        if properties.goes_on {
            return;
        }
        let style = self.styles.resolve(properties.style.as_deref());
        let own = properties.list;
        let list =
            ListPlace { number: own.number.or(style.list.number), level: own.level.or(style.list.level) };
        let item = self.numbering.count(&list, &style.ids);
        let heading =
            if properties.outline.is_some() { styles::heading(properties.outline) } else { style.heading };
        self.flow.close_paragraph(|text| match (heading, item) {
            // The lines of a table of contents repeat the headings.
            _ if style.is_contents => TextBlock::Paragraph(String::new()),
            (Some(level), Some((_, marker))) if !marker.is_empty() && marker != "-" => {
                TextBlock::Heading { level, text: format!("{marker} {text}") }
            }
            (Some(level), _) => TextBlock::Heading { level, text },
            (None, Some((depth, marker))) if !marker.is_empty() => TextBlock::Item { depth, marker, text },
            (None, _) => TextBlock::Paragraph(text),
        });
    }

    fn open_note(&mut self, kind: &'static str, element: &PartElement<'_>) {
        self.flow.open_body();
        // Those with a type are the lines between text and notes.
        let id =
            element.attribute("id").filter(|_| element.attribute("type").is_none_or(|kind| kind == "normal"));
        self.open_notes.push(id.map(|id| (kind, id)));
    }

    fn refer(&mut self, kind: &'static str, element: &PartElement<'_>) {
        let Some(id) = element.attribute("id") else { return };
        if let Some(text) = self.notes.remove(&(kind, id)) {
            self.referred += 1;
            self.flow.note(self.referred.to_string(), text);
        }
    }
}

impl ParagraphProperties {
    /// Reads them up to their end.
    fn read(xml: &mut PartXmlReader<'_>) -> Result<Self, ParseError> {
        let mut properties = Self::default();
        xml.visit(|element| {
            let value = || element.attribute("val");
            match element.name() {
                "pStyle" => properties.style = value(),
                "outlineLvl" => properties.outline = value().and_then(|level| level.parse().ok()),
                "numId" => properties.list.number = value(),
                "ilvl" => properties.list.level = value().and_then(|level| level.parse().ok()),
                "del" => properties.goes_on = true,
                "pPrChange" | "rPrChange" | "sectPr" | "tabs" => return ElementVisit::Skip,
                _ => {}
            }
            ElementVisit::Into
        })?;
        Ok(properties)
    }
}
