//! The numbers of items, which are not in the text: a list may go on with an earlier one, and an item may say its own.

use std::collections::BTreeMap;

use crate::{
    formats::package::xml::{ElementVisit, PartElement, PartXmlReader},
    protocol::ParseError,
};

/// How lists are numbered, and how far those have counted that have ended.
#[derive(Debug, Default)]
pub(super) struct ListNumbering {
    /// The list styles by their names, which may be long: everywhere else they are these numbers.
    styles: BTreeMap<String, usize>,
    /// Styles and levels, from 1, on which items are numbered, each with the first number.
    starts: BTreeMap<(usize, usize), u32>,
    /// The last numbers on the levels of styles.
    last: BTreeMap<(usize, usize), u32>,
    /// The last numbers of lists that have an id.
    last_of: BTreeMap<String, u32>,
}

/// A list around the place that is read.
#[derive(Debug, Default)]
pub(super) struct OpenList {
    id: Option<String>,
    style: Option<usize>,
    level: usize,
    /// The number of the last item, its own or of the list that it goes on with.
    number: Option<u32>,
    /// The number that the item says it has.
    said: Option<u32>,
    /// Whether nothing of the item has come that is counted.
    uncounted: bool,
    /// Whether the item has said something, so that what comes is not marked again.
    marked: bool,
}

impl ListNumbering {
    /// Reads the list styles of a part.
    pub(super) fn read(&mut self, part: &str) -> Result<(), ParseError> {
        let mut style = None;
        PartXmlReader::new(part).visit(|element| {
            match element.name() {
                "list-style" => style = element.attribute("name").map(|name| self.style(name)),
                "list-level-style-number" => {
                    let shown = element.attribute("num-format").is_some_and(|format| !format.is_empty());
                    let level = element.attribute("level").and_then(|level| level.parse().ok());
                    if let (true, Some(style), Some(level)) = (shown, style, level) {
                        let start = number_of(element, "start-value").unwrap_or(1);
                        self.starts.entry((style, level)).or_insert(start);
                    }
                }
                _ => {}
            }
            ElementVisit::Into
        })
    }

    fn style(&mut self, name: String) -> usize {
        let next = self.styles.len();
        *self.styles.entry(name).or_insert(next)
    }

    /// Begins a list on a level, from 1, in the style of the one that it stands in unless it has its own.
    pub(super) fn open(
        &mut self,
        element: &PartElement<'_>,
        outer: Option<&OpenList>,
        level: usize,
    ) -> OpenList {
        let own = element.attribute("style-name").map(|name| self.style(name));
        let style = own.or_else(|| outer.and_then(|outer| outer.style));
        let continued = element.attribute("continue-list").and_then(|id| self.last_of.get(&id).copied());
        let goes_on = element.attribute("continue-numbering").as_deref() == Some("true");
        let before = || style.filter(|_| goes_on).and_then(|style| self.last.get(&(style, level)).copied());
        let number = continued.or_else(before);
        OpenList { id: element.attribute("id"), style, level, number, ..OpenList::default() }
    }

    /// Counts the item of the list, whatever comes of it first.
    pub(super) fn count(&self, list: &mut OpenList) {
        if !std::mem::take(&mut list.uncounted) {
            return;
        }
        let next = match list.number {
            Some(last) => last.saturating_add(1),
            None => self.start(list).unwrap_or(1),
        };
        list.number = Some(list.said.take().unwrap_or(next));
    }

    /// What stands before the first words of the item.
    pub(super) fn marker(&self, list: &mut OpenList) -> Option<String> {
        if std::mem::replace(&mut list.marked, true) {
            return None;
        }
        let number = list.number.filter(|_| self.start(list).is_some());
        Some(number.map_or_else(|| "-".to_owned(), |number| format!("{number}.")))
    }

    /// Ends a list.
    pub(super) fn close(&mut self, list: OpenList) {
        let OpenList { id, style, level, number: Some(number), .. } = list else { return };
        self.last.extend(style.map(|style| ((style, level), number)));
        self.last_of.extend(id.map(|id| (id, number)));
    }

    /// The first number, if items are numbered.
    fn start(&self, list: &OpenList) -> Option<u32> {
        self.starts.get(&(list.style?, list.level)).copied()
    }
}

impl OpenList {
    /// Begins an item, or a header, which has no number.
    pub(super) fn open_item(&mut self, element: &PartElement<'_>) {
        self.uncounted = element.name() == "list-item";
        self.marked = !self.uncounted;
        self.said = number_of(element, "start-value");
    }

    /// Whether no item of it has been counted, nor one of a list that it goes on with.
    pub(super) fn begins(&self) -> bool {
        self.number.is_none()
    }
}

fn number_of(element: &PartElement<'_>, name: &str) -> Option<u32> {
    element.attribute(name).and_then(|number| number.parse().ok())
}
