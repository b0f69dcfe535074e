//! XML as tolerantly as captions need it: by local names, until it breaks off.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::markup;

/// Deepest nesting that is followed. Captions have five levels.
const MAX_DEPTH: usize = 256;

/// What comes next.
pub(super) enum XmlPiece<'a> {
    /// An element begins; an empty one ends at once.
    Start(CaptionElement<'a>),
    /// The last element that began ends.
    End,
    /// Text, with its entities replaced.
    Text(Cow<'a, str>),
}

/// The start tag of an element.
pub(super) struct CaptionElement<'a>(BytesStart<'a>);

impl CaptionElement<'_> {
    /// The name without its prefix.
    pub(super) fn is(&self, name: &str) -> bool {
        self.0.local_name().as_ref() == name
    }

    /// An attribute by its name without the prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        attributes.with_checks(false);
        let found = attributes.flatten().find(|attribute| attribute.key.local_name().as_ref() == name)?;
        Some(markup::decode(&found.value).trim().to_owned())
    }
}

/// Walks through a text, piece by piece; tells whether it was whole. Elements that `each` sees begin end as often, also those that the
/// text leaves open.
pub(super) fn walk<'a>(text: &'a str, mut each: impl FnMut(XmlPiece<'a>)) -> bool {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let mut depth = 0_usize;
    let is_whole = loop {
        match reader.read_event() {
            Ok(Event::Start(_)) if depth == MAX_DEPTH => break false,
            Ok(Event::Start(tag)) => {
                depth += 1;
                each(XmlPiece::Start(CaptionElement(tag)));
            }
            Ok(Event::Empty(tag)) => {
                each(XmlPiece::Start(CaptionElement(tag)));
                each(XmlPiece::End);
            }
            Ok(Event::End(_)) if depth > 0 => {
                depth -= 1;
                each(XmlPiece::End);
            }
            Ok(Event::Text(said)) => each(XmlPiece::Text(said.into_inner())),
            Ok(Event::CData(said)) => each(XmlPiece::Text(said.into_inner())),
            Ok(Event::GeneralRef(name)) => {
                let said = markup::resolve(&name).unwrap_or_else(|| format!("&{};", &*name).into());
                each(XmlPiece::Text(said));
            }
            Ok(Event::Eof) => break depth == 0,
            Ok(Event::End(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => {}
            Err(_) => break false,
        }
    };
    for _ in 0..depth {
        each(XmlPiece::End);
    }
    is_whole
}

/// The local names of the first two elements.
pub(super) fn first_elements(head: &str) -> (Option<&str>, Option<&str>) {
    let mut names = [None, None];
    let mut rest = head;
    for name in &mut names {
        *name = loop {
            let Some((_, tag)) = rest.split_once('<') else { break None };
            let end = match tag {
                _ if tag.starts_with("!--") => "-->",
                _ if tag.starts_with('?') => "?>",
                _ if tag.starts_with('!') => ">",
                _ if tag.starts_with('/') => break None,
                _ => {
                    let length = tag.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/' | '<'));
                    let (name, after) = tag.split_at(length.unwrap_or(tag.len()));
                    rest = after;
                    break Some(name.rsplit(':').next().unwrap_or(name));
                }
            };
            let Some((_, after)) = tag.split_once(end) else { break None };
            rest = after;
        };
    }
    let [first, second] = names;
    (first, second)
}
