//! Presentations: PPTX and its relatives. Every slide is a page.

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

/// The level of slides' titles: above them is the presentation.
const TITLE_LEVEL: u8 = 2;

/// Deepest level of a paragraph, from 0.
const MAX_LEVEL: usize = 8;

/// Reads the presentation whose main part is named.
pub(super) fn parse(
    archive: &mut PackageArchive,
    main: &str,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    let title = opc::title(archive)?;
    let presentation = archive.text(main)?.ok_or(ParseError::Damaged)?;
    let relations = opc::relations(archive, main)?;
    let slides = slides(&presentation, &relations)?;
    let pages = u32::try_from(slides.len()).unwrap_or(u32::MAX);
    output.about(SourceMetadata {
        title,
        structure: TextMarkup::Markdown,
        pages: Some(pages),
        ..SourceMetadata::default()
    })?;
    let mut writer = BlockWriter::new(output);
    for (number, slide) in (1..).zip(&slides) {
        let Some(part) = archive.text(slide)? else { continue };
        let related = opc::relations(archive, slide)?;
        let mut shapes = shapes(&part, BulletStyle::Sign)?;
        let titles = shapes.iter().position(|shape| shape.place == ShapePlace::Title);
        // It is read first, wherever it stands.
        let title =
            titles.map(|number| shapes.remove(number)).map(|title| super::block::on_one_line(&title.blocks));
        writer.page(number);
        writer.blocks(
            &title
                .map(|text| TextBlock::Heading { level: TITLE_LEVEL, text })
                .into_iter()
                .collect::<Vec<_>>(),
        )?;
        for shape in &shapes {
            writer.blocks(&shape.blocks)?;
        }
        for diagram in related.iter().filter(|relation| relation.kind == "diagramData") {
            if let Some(part) = archive.text(&diagram.part)? {
                let texts = self::shapes(&part, BulletStyle::Sign)?;
                writer.blocks(&texts.into_iter().flat_map(|text| text.blocks).collect::<Vec<_>>())?;
            }
        }
        for (_, said) in chart::paragraphs(archive, &related)? {
            writer.blocks(&[said])?;
        }
        if let Some(part) = opc::related(archive, &related, "notesSlide")? {
            let spoken = self::shapes(&part, BulletStyle::None)?
                .into_iter()
                .filter(|shape| shape.place == ShapePlace::Body);
            writer.blocks(&notes(spoken.flat_map(|shape| shape.blocks).collect()))?;
        }
    }
    writer.finish()
}

/// Speaker notes, told from what is on the slide.
pub(super) fn notes(mut blocks: Vec<TextBlock>) -> Vec<TextBlock> {
    if !blocks.is_empty() {
        blocks.insert(0, TextBlock::Paragraph("Speaker notes:".to_owned()));
    }
    blocks
}

/// The parts of the slides in the order in which they are shown.
fn slides(presentation: &str, relations: &[PartRelationship]) -> Result<Vec<String>, ParseError> {
    let mut slides = Vec::new();
    PartXmlReader::new(presentation).visit(|element| {
        if element.name() == "sldId"
            && let Some(id) = element.prefixed("id")
        {
            let slide = relations.iter().find(|relation| relation.id == id && relation.kind == "slide");
            slides.extend(slide.map(|slide| slide.part.clone()));
        }
        ElementVisit::Into
    })?;
    Ok(slides)
}

/// Where on a slide a shape belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ShapePlace {
    Title,
    Body,
    /// The number, the date and what else is the same on every slide.
    Margin,
    #[default]
    Anywhere,
}

/// What a shape says.
struct SlideShape {
    place: ShapePlace,
    blocks: Vec<TextBlock>,
}

#[derive(Default)]
struct SlideReader {
    flow: FlowBuilder,
    place: ShapePlace,
    paragraph: SlideParagraph,
    choices: Vec<bool>,
    in_text: bool,
    /// Whether the cell around this place is one with the cell above it. Tables of slides do not nest.
    goes_on: bool,
    /// What paragraphs in the body have by themselves.
    bulleted: BulletStyle,
    /// The numbered lists around this place, by their levels.
    numbered: Vec<Option<NumberedList>>,
}

/// A list that counts its paragraphs.
#[derive(Clone, Copy)]
struct NumberedList {
    first: u32,
    last: u32,
}

/// What a paragraph says of itself.
#[derive(Default)]
struct SlideParagraph {
    level: usize,
    bullet: BulletStyle,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum BulletStyle {
    /// As the shape's place has it.
    #[default]
    Inherited,
    None,
    Sign,
    /// A number of a list that begins with this one.
    Number(u32),
}

/// The shapes of a slide that say something, in its order; `bulleted` is what paragraphs in its body have before them by themselves.
fn shapes(part: &str, bulleted: BulletStyle) -> Result<Vec<SlideShape>, ParseError> {
    let (mut xml, mut reader, mut shapes) =
        (PartXmlReader::new(part), SlideReader { bulleted, ..SlideReader::default() }, Vec::new());
    while let Some(token) = xml.next()? {
        match token {
            XmlToken::Open(element) => reader.open(&element, &mut xml)?,
            XmlToken::Text(text) if reader.in_text => reader.flow.text(&text),
            XmlToken::Text(_) => {}
            XmlToken::Close(name) => {
                reader.close(&name);
                let is_shape =
                    matches!(name.as_str(), "sp" | "pic" | "cxnSp" | "graphicFrame" | "contentPart" | "pt");
                if is_shape && reader.flow.is_outermost() {
                    let (place, blocks) = (reader.place, reader.flow.take());
                    if place != ShapePlace::Margin && !blocks.is_empty() {
                        shapes.push(SlideShape { place, blocks });
                    }
                    reader.numbered.clear();
                    reader.place = ShapePlace::default();
                }
            }
        }
    }
    Ok(shapes)
}

impl SlideReader {
    fn open(&mut self, element: &PartElement<'_>, xml: &mut PartXmlReader<'_>) -> Result<(), ParseError> {
        match element.name() {
            "ph" => {
                self.place = match element.attribute("type").as_deref() {
                    Some("title" | "ctrTitle") => ShapePlace::Title,
                    None | Some("body" | "obj") => ShapePlace::Body,
                    Some("sldNum" | "dt" | "ftr" | "hdr" | "sldImg") => ShapePlace::Margin,
                    Some(_) => ShapePlace::Anywhere,
                }
            }
            "p" => {
                self.paragraph = SlideParagraph::default();
                self.flow.open_paragraph();
            }
            "pPr" => {
                let level = element.attribute("lvl").and_then(|level| level.parse::<usize>().ok());
                let mut bullet = BulletStyle::Inherited;
                xml.visit(|element| {
                    match element.name() {
                        "buNone" => bullet = BulletStyle::None,
                        "buChar" | "buBlip" => bullet = BulletStyle::Sign,
                        "buAutoNum" => {
                            let first = element.attribute("startAt").and_then(|first| first.parse().ok());
                            bullet = BulletStyle::Number(first.unwrap_or(1));
                        }
                        _ => {}
                    }
                    ElementVisit::Into
                })?;
                self.paragraph = SlideParagraph { level: level.unwrap_or(0).min(MAX_LEVEL), bullet };
            }
            "t" => self.in_text = true,
            "br" => self.flow.text("\n"),
            "tab" => self.flow.text(" "),
            "tbl" => self.flow.open_table(),
            "tc" => {
                self.goes_on = matches!(element.attribute("vMerge").as_deref(), Some("1" | "true"));
                self.flow.open_cell();
            }
            "AlternateContent" => self.choices.push(false),
            "Choice" | "Fallback" => match self.choices.last_mut() {
                Some(chosen) if !*chosen => *chosen = true,
                Some(_) => xml.skip()?,
                None => {}
            },
            "extLst" => xml.skip()?,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "p" => self.close_paragraph(),
            // The cells that a wide one covers are there, empty.
            "tc" if self.goes_on => self.flow.close_cell_below(1),
            "tc" => self.flow.close_cell(1, 1),
            "tr" => self.flow.close_row(true),
            "tbl" => self.flow.close_table(),
            "AlternateContent" => {
                self.choices.pop();
            }
            _ => {}
        }
    }

    fn close_paragraph(&mut self) {
        let SlideParagraph { level, bullet } = std::mem::take(&mut self.paragraph);
        let says_something = self.flow.has_text();
        let bullet = match bullet {
            BulletStyle::Inherited if self.place == ShapePlace::Body => self.bulleted,
            bullet => bullet,
        };
        let marker = match bullet {
            BulletStyle::Number(first) if says_something => Some(format!("{}.", self.count(level, first))),
            BulletStyle::Sign => Some("-".to_owned()),
            BulletStyle::Inherited | BulletStyle::None | BulletStyle::Number(_) => None,
        };
        if says_something && !matches!(bullet, BulletStyle::Number(_)) {
            // What comes after it on its level is another list.
            self.numbered.truncate(level);
        }
        self.flow.close_paragraph(|text| match marker {
            Some(marker) => TextBlock::Item { depth: level, marker, text },
            None => TextBlock::Paragraph(text),
        });
    }

    /// The number of a paragraph. Paragraphs that name another first number are of another list.
    fn count(&mut self, level: usize, first: u32) -> u32 {
        self.numbered.resize(level + 1, None);
        let Some(place) = self.numbered.last_mut() else { return first };
        let last = match place {
            Some(list) if list.first == first => list.last.saturating_add(1),
            _ => first,
        };
        *place = Some(NumberedList { first, last });
        last
    }
}
