//! XML parts, token by token. No entity but the five of XML and character references is ever replaced by anything, so nothing can
//! lead outside or grow.

use std::borrow::Cow;

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_xml_entity,
    events::{BytesStart, Event},
};

use crate::protocol::{MAX_TITLE, ParseError};

/// Elements that may stand within each other; a table within a table takes three.
const MAX_DEPTH: usize = 256;

/// The next thing in a part.
pub(super) enum XmlToken<'a> {
    /// An element begins. An empty one ends at once.
    Open(PartElement<'a>),
    /// The last element that began and has not ended, ends; its name without prefix.
    Close(String),
    /// Characters between the tags, entities replaced.
    Text(Cow<'a, str>),
}

/// Reads a part from its beginning.
pub(super) struct PartXmlReader<'a> {
    reader: Reader<&'a [u8]>,
    depth: usize,
}

impl<'a> PartXmlReader<'a> {
    /// Begins with a part's text.
    pub(super) fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, depth: 0 }
    }

    /// The next token; `None` at the end. A part that ends within an element is damaged.
    pub(super) fn next(&mut self) -> Result<Option<XmlToken<'a>>, ParseError> {
        loop {
            return Ok(Some(match self.reader.read_event().map_err(|_| ParseError::Damaged)? {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > MAX_DEPTH {
                        return Err(ParseError::Damaged);
                    }
                    XmlToken::Open(PartElement(start))
                }
                Event::End(end) => {
                    self.depth = self.depth.saturating_sub(1);
                    XmlToken::Close(end.local_name().into_inner().to_owned())
                }
                Event::Text(text) => XmlToken::Text(text.xml10_content()),
                Event::CData(text) => XmlToken::Text(text.xml10_content()),
                Event::GeneralRef(reference) => {
                    if let Ok(Some(character)) = reference.resolve_char_ref() {
                        XmlToken::Text(Cow::Owned(character.to_string()))
                    } else if let Some(character) = resolve_xml_entity(&reference.into_inner()) {
                        XmlToken::Text(Cow::Borrowed(character))
                    } else {
                        continue;
                    }
                }
                Event::Eof if self.depth > 0 => return Err(ParseError::Damaged),
                Event::Eof => return Ok(None),
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                    continue;
                }
            }));
        }
    }

    /// Goes past the rest of the element that has just begun, its end included.
    pub(super) fn skip(&mut self) -> Result<(), ParseError> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside && self.next()?.is_some() {}
        Ok(())
    }

    /// Shows `visit` every element in the rest of the one that has just begun, or of the whole part before any has; those within
    /// an element only if it says so.
    pub(super) fn visit(
        &mut self,
        mut visit: impl FnMut(&PartElement<'a>) -> ElementVisit,
    ) -> Result<(), ParseError> {
        let outside = self.depth.saturating_sub(1);
        let whole = self.depth == 0;
        while whole || self.depth > outside {
            match self.next()? {
                Some(XmlToken::Open(element)) => {
                    if visit(&element) == ElementVisit::Skip {
                        self.skip()?;
                    }
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }

    /// All characters in the rest of the element that has just begun.
    pub(super) fn inner_text(&mut self) -> Result<String, ParseError> {
        let outside = self.depth.saturating_sub(1);
        let mut text = String::new();
        while self.depth > outside {
            match self.next()? {
                Some(XmlToken::Text(piece)) => text.push_str(&piece),
                Some(_) => {}
                None => break,
            }
        }
        Ok(text)
    }
}

/// Whether what is within an element is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementVisit {
    /// It is.
    Into,
    /// It is gone past.
    Skip,
}

/// The beginning of an element. Names are without prefixes: those that are read mean the same in every vocabulary that has them.
pub(super) struct PartElement<'a>(BytesStart<'a>);

impl PartElement<'_> {
    /// Its name without prefix.
    pub(super) fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// The first attribute of this name, whatever its prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        self.find(|attribute, _| attribute == name)
    }

    /// The number that the first attribute of this name is, if it is one.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.attribute(name)?.parse().ok()
    }

    /// The first attribute of this name that has a prefix: `r:id` rather than `id`.
    pub(super) fn prefixed(&self, name: &str) -> Option<String> {
        self.find(|attribute, prefixed| attribute == name && prefixed)
    }

    /// Whether a switch such as `<w:vanish/>` is on: it is without a value, too.
    pub(super) fn is_on(&self) -> bool {
        !matches!(self.attribute("val").as_deref(), Some("0" | "false" | "off"))
    }

    fn find(&self, wanted: impl Fn(&str, bool) -> bool) -> Option<String> {
        self.0.attributes().with_checks(false).flatten().find_map(|attribute| {
            let name = attribute.key;
            wanted(name.local_name().into_inner(), name.prefix().is_some())
                .then(|| attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(Cow::into_owned))
                .flatten()
        })
    }
}

/// The title in the part's first element of this name, on one line and not too long; `None` when it is missing or blank.
pub(super) fn title_of(part: &str, name: &str) -> Result<Option<String>, ParseError> {
    let mut xml = PartXmlReader::new(part);
    while let Some(token) = xml.next()? {
        if let XmlToken::Open(element) = token
            && element.name() == name
        {
            let text = xml.inner_text()?;
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let title: String = line.chars().filter(|c| *c != '\0').take(MAX_TITLE).collect();
            let title = title.trim();
            return Ok((!title.is_empty()).then(|| title.to_owned()));
        }
    }
    Ok(None)
}
