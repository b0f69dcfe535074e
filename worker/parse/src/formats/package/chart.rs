//! Charts of Office documents: what they are called, and the names of what they show.

use super::{
    archive::PackageArchive,
    block::{TextBlock, clean},
    opc::PartRelationship,
    xml::{PartXmlReader, XmlToken},
};
use crate::protocol::{MAX_TITLE, ParseError};

/// Most series, or categories, that are named.
const MAX_NAMED: usize = 200;
/// Most characters of such a name.
const MAX_NAME: usize = 200;
/// Ways in which numbers are shown as they are stored. Days and times are numbers that mean nothing to a reader.
const AS_STORED: [&str; 4] = ["", "General", "0", "@"];

/// What the charts among the parts to which a part refers say, each with how it is called there. One that cannot be read is not worth the
/// document, unless it is made to take more than a document may.
pub(super) fn paragraphs(
    archive: &mut PackageArchive,
    relations: &[PartRelationship],
) -> Result<Vec<(String, TextBlock)>, ParseError> {
    let mut paragraphs = Vec::new();
    for PartRelationship { id, part, .. } in relations.iter().filter(|relation| relation.kind == "chart") {
        let said = match archive.text(part) {
            Ok(part) => part.and_then(|part| paragraph(&part)),
            Err(error @ ParseError::UnpacksTooFar) => return Err(error),
            Err(_) => None,
        };
        paragraphs.extend(said.map(|said| (id.clone(), said)));
    }
    Ok(paragraphs)
}

/// What a chart says; none when it names nothing.
fn paragraph(part: &str) -> Option<TextBlock> {
    let ChartNames { title, series, categories } = ChartNames::read(part).ok()?;
    let title = on_one_line(&title, MAX_TITLE);
    if title.is_empty() && series.0.is_empty() && categories.0.is_empty() {
        return None;
    }
    let first = if title.is_empty() { "Chart".to_owned() } else { format!("Chart: {title}") };
    let lines = [Some(first), series.line("Series"), categories.line("Categories")];
    Some(TextBlock::Paragraph(lines.into_iter().flatten().collect::<Vec<_>>().join("\n")))
}

/// What a chart names.
#[derive(Default)]
struct ChartNames {
    title: String,
    series: NameList,
    categories: NameList,
}

/// What a piece of text in a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChartPlace {
    Title,
    Series,
    Category,
    /// The numbers, and what stands at axes and points.
    Elsewhere,
}

impl ChartPlace {
    /// By the elements around it, the outermost first.
    fn within(path: &[String]) -> Self {
        let Some(series) = path.iter().position(|name| name == "ser") else {
            let is_title = path.get(..3).is_some_and(|path| path == ["chartSpace", "chart", "title"]);
            return if is_title { Self::Title } else { Self::Elsewhere };
        };
        match path.get(series + 1).map(String::as_str) {
            Some("tx") => Self::Series,
            Some("cat") => Self::Category,
            _ => Self::Elsewhere,
        }
    }
}

impl ChartNames {
    fn read(part: &str) -> Result<Self, ParseError> {
        let (mut names, mut xml) = (Self::default(), PartXmlReader::new(part));
        let (mut path, mut text, mut is_as_stored) = (Vec::<String>::new(), String::new(), true);
        while let Some(token) = xml.next()? {
            match token {
                XmlToken::Open(element) => {
                    text.clear();
                    is_as_stored |= element.name() == "cat";
                    path.push(element.name().to_owned());
                }
                XmlToken::Text(piece) => text.push_str(&piece),
                XmlToken::Close(name) => {
                    match name.as_str() {
                        "formatCode" => is_as_stored = AS_STORED.contains(&text.trim()),
                        "t" | "v" => names.add(ChartPlace::within(&path), &text, is_as_stored),
                        "p" | "br" => names.add(ChartPlace::within(&path), " ", is_as_stored),
                        _ => {}
                    }
                    path.pop();
                    text.clear();
                }
            }
        }
        Ok(names)
    }

    fn add(&mut self, place: ChartPlace, text: &str, is_as_stored: bool) {
        match place {
            ChartPlace::Title => self.title.push_str(text),
            ChartPlace::Series => self.series.add(text),
            ChartPlace::Category if is_as_stored => self.categories.add(text),
            ChartPlace::Category | ChartPlace::Elsewhere => {}
        }
    }
}

/// Names, each once, in the order in which they come. Every series of a chart says its categories again.
#[derive(Default)]
struct NameList(Vec<String>);

impl NameList {
    fn add(&mut self, name: &str) {
        if self.0.len() >= MAX_NAMED {
            return;
        }
        let name = on_one_line(name, MAX_NAME);
        if !name.is_empty() && !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    fn line(self, what: &str) -> Option<String> {
        (!self.0.is_empty()).then(|| format!("{what}: {}", self.0.join(", ")))
    }
}

fn on_one_line(text: &str, limit: usize) -> String {
    let line: String = clean(text).replace('\n', " ").chars().take(limit).collect();
    line.trim_end().to_owned()
}
