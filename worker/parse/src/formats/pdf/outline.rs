//! What a PDF's outline (the bookmarks that viewers show beside the pages) says of its sections: long reports, manuals and laws have one,
//! and their pages say little of what they stand under. Source: ISO 32000-2, 12.3.2 and 12.3.3.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use ::hayro::hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, String as PdfString},
};

use super::{decoded_string, tidy_title};
use crate::protocol::{MAX_SECTIONS, OutlineEntry};

/// The deepest sections that are told apart.
const MAX_DEPTH: u8 = 8;
/// The longest title of a section, in characters.
const MAX_CHARS: usize = 200;
/// Named places that are read, at most, and how deep their tree may be.
const MAX_NAMES: usize = 50_000;
const MAX_NAMES_DEPTH: usize = 32;

/// The sections that begin on each page, by the page's number from 1, in the order of the outline.
pub(super) type DocumentOutline = BTreeMap<u32, Vec<OutlineEntry>>;

/// The outline of a file. Empty when it has none that can be read.
pub(super) fn of(pdf: &Pdf) -> DocumentOutline {
    catch_unwind(AssertUnwindSafe(|| OutlineReader::new(pdf)?.read())).ok().flatten().unwrap_or_default()
}

/// What is known of a file while its outline is gone through.
struct OutlineReader<'a> {
    catalog: Dict<'a>,
    pages: HashMap<ObjectIdentifier, u32>,
    /// The places that have names, once one is asked for.
    names: Option<HashMap<Vec<u8>, Object<'a>>>,
    found: DocumentOutline,
    count: usize,
    seen: HashSet<ObjectIdentifier>,
}

impl<'a> OutlineReader<'a> {
    fn new(pdf: &'a Pdf) -> Option<Self> {
        let catalog: Dict<'a> = pdf.xref().get(pdf.xref().root_id())?;
        let pages =
            pdf.pages().iter().zip(1..).filter_map(|(page, number)| Some((page.raw().obj_id()?, number)));
        Some(Self {
            pages: pages.collect(),
            catalog,
            names: None,
            found: DocumentOutline::new(),
            count: 0,
            seen: HashSet::new(),
        })
    }

    fn read(mut self) -> Option<DocumentOutline> {
        let root: Dict<'a> = self.catalog.get("Outlines")?;
        // The entries that come next, the nearest last, each with its depth.
        let mut open: Vec<(Dict<'a>, u8)> = root.get("First").map(|first| (first, 1)).into_iter().collect();
        while let Some((entry, level)) = open.pop() {
            // A list that leads back into itself ends.
            if self.count >= MAX_SECTIONS || !entry.obj_id().is_none_or(|id| self.seen.insert(id)) {
                continue;
            }
            self.count += 1;
            if let Some(next) = entry.get("Next") {
                open.push((next, level));
            }
            if let Some(first) = entry.get("First") {
                open.push((first, level.saturating_add(1).min(MAX_DEPTH)));
            }
            let title = entry.get::<PdfString<'a>>("Title");
            let title = title.and_then(|title| tidy_title(&decoded_string(title.as_bytes())));
            if let (Some(title), Some(page)) = (title, self.page_of(&entry)) {
                let title = title.chars().take(MAX_CHARS).collect();
                self.found.entry(page).or_default().push(OutlineEntry { level, title });
            }
        }
        Some(self.found)
    }

    /// The page that an entry leads to.
    fn page_of(&mut self, entry: &Dict<'a>) -> Option<u32> {
        let place: Object<'a> = match entry.get("Dest") {
            Some(place) => place,
            None => {
                let action: Dict<'a> = entry.get("A")?;
                let kind: Name<'a> = action.get("S")?;
                if kind.as_ref() != b"GoTo" {
                    return None;
                }
                action.get("D")?
            }
        };
        self.page_at(place)
    }

    /// The page of a place: a list that begins with the page, or the name of one.
    fn page_at(&mut self, place: Object<'a>) -> Option<u32> {
        let named = match place {
            Object::Name(name) => self.named(name.as_ref()),
            Object::String(name) => self.named(name.as_bytes()),
            place => Some(place),
        }?;
        let list: Array<'a> = match named {
            Object::Array(list) => list,
            Object::Dict(with_list) => with_list.get("D")?,
            _ => return None,
        };
        match list.raw_iter().next()? {
            MaybeRef::Ref(page) => self.pages.get(&page.into()).copied(),
            // Not as it should be, but some programs write the number, from 0.
            MaybeRef::NotRef(number) => {
                let number = u32::try_from(number.into_i32()?).ok()?.checked_add(1)?;
                (usize::try_from(number).ok()? <= self.pages.len()).then_some(number)
            }
        }
    }

    /// The place of a name.
    fn named(&mut self, name: &[u8]) -> Option<Object<'a>> {
        let catalog = &self.catalog;
        let names = self.names.get_or_insert_with(|| named_places(catalog));
        names.get(name).cloned()
    }
}

/// All places that have names: in the dictionary of old files, and in the tree of newer ones.
fn named_places<'a>(catalog: &Dict<'a>) -> HashMap<Vec<u8>, Object<'a>> {
    let mut places = HashMap::new();
    if let Some(old) = catalog.get::<Dict<'a>>("Dests") {
        for key in old.keys().take(MAX_NAMES) {
            if let Some(place) = old.get::<Object<'a>>(&*key) {
                places.insert(key.as_ref().to_vec(), place);
            }
        }
    }
    let tree = catalog.get::<Dict<'a>>("Names").and_then(|names| names.get::<Dict<'a>>("Dests"));
    let mut open: Vec<(Dict<'a>, usize)> = tree.map(|root| (root, 0)).into_iter().collect();
    let mut nodes = 0;
    while let Some((node, depth)) = open.pop() {
        nodes += 1;
        if nodes > MAX_NAMES || places.len() > MAX_NAMES || depth > MAX_NAMES_DEPTH {
            break;
        }
        if let Some(kids) = node.get::<Array<'a>>("Kids") {
            open.extend(kids.iter::<Dict<'a>>().map(|kid| (kid, depth + 1)));
        }
        if let Some(pairs) = node.get::<Array<'a>>("Names") {
            let mut pairs = pairs.iter::<Object<'a>>();
            while let (Some(name), Some(place)) = (pairs.next(), pairs.next()) {
                if let Object::String(name) = name {
                    places.insert(name.as_bytes().to_vec(), place);
                }
            }
        }
    }
    places
}
