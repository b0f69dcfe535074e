//! Feeds of XML: whether the library can read one in bounds, and what of it is not read at all.

use std::{borrow::Cow, ops::Range};

use quick_xml::{
    Error, NsReader,
    events::{BytesStart, Event},
    name::{Namespace, ResolveResult},
};

use crate::protocol::{MAX_LISTED, MAX_URL};

/// Elements that may stand within each other: what reads them may recurse.
const MAX_DEPTH: usize = 64;
/// Attributes of one element, each of which is compared with all before it.
const MAX_ATTRIBUTES: usize = 200;
/// Places where it is no good XML, and is read on.
const MAX_FAULTS: usize = 100_000;
/// Extensions of which nothing becomes a document. What reads them recurses, copies and computes.
const EXTENSIONS: [&str; 2] = ["http://search.yahoo.com/mrss/", "http://www.itunes.com/dtds/podcast-1.0.dtd"];

/// The feed without extensions that do not matter; none when it has more of something than may be. What is no XML is not judged here.
pub(super) fn reduced(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    // In nearly every encoding its markup is ASCII; of another, the limits of the child are what is left.
    let text = String::from_utf8_lossy(bytes);
    let extensions = extensions(&text)?;
    if extensions.is_empty() || std::str::from_utf8(bytes).is_err() {
        return Some(Cow::Borrowed(bytes));
    }
    let (mut kept, mut from) = (Vec::with_capacity(bytes.len()), 0);
    for extension in extensions {
        kept.extend_from_slice(bytes.get(from..extension.start).unwrap_or_default());
        from = extension.end;
    }
    kept.extend_from_slice(bytes.get(from..).unwrap_or_default());
    Some(Cow::Owned(kept))
}

/// Where extensions stand, one after the other; none when the feed has more of something than may be.
fn extensions(text: &str) -> Option<Vec<Range<usize>>> {
    let mut reader = NsReader::from_str(text);
    // As the library reads it, so that both count the same elements.
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.trim_markup_names_in_closing_tags = true;
    let (mut depth, mut entries, mut faults) = (0_usize, 0, 0);
    let mut found = Vec::new();
    // Where the extension begins that is being read, and at which depth.
    let mut within: Option<(usize, usize)> = None;
    loop {
        let before = usize::try_from(reader.buffer_position()).ok()?;
        let event = reader.read_resolved_event().map(|(namespace, event)| (is_extension(&namespace), event));
        match event {
            Ok((is_extension, Event::Start(start))) => {
                depth += 1;
                if depth > MAX_DEPTH || !is_small(&start) {
                    return None;
                }
                entries += usize::from(matches!(start.local_name().into_inner(), "item" | "entry"));
                if entries > MAX_LISTED {
                    return None;
                }
                if is_extension && within.is_none() {
                    within = tag_at(text, before).map(|at| (at, depth));
                }
            }
            Ok((_, Event::End(_))) => {
                if let Some((start, _)) = within.take_if(|(_, begun)| *begun == depth) {
                    found.push(start..usize::try_from(reader.buffer_position()).ok()?);
                }
                depth = depth.saturating_sub(1);
            }
            Err(Error::IllFormed(_)) if faults < MAX_FAULTS => faults += 1,
            // Namespaces without end among them: the library looks through all of them for every name.
            Err(Error::Namespace(_) | Error::IllFormed(_)) => return None,
            Ok((_, Event::Eof)) | Err(_) => return Some(found),
            Ok(_) => {}
        }
    }
}

fn is_extension(namespace: &ResolveResult<'_>) -> bool {
    matches!(namespace, ResolveResult::Bound(Namespace(name)) if EXTENSIONS.contains(name))
}

/// Where a tag begins of which the reader says that it begins here, or just before.
fn tag_at(text: &str, at: usize) -> Option<usize> {
    [Some(at), at.checked_sub(1)].into_iter().flatten().find(|at| text.as_bytes().get(*at) == Some(&b'<'))
}

/// Whether an element has no more attributes than may be, and is no base, which is kept for each element in it, of such a length.
fn is_small(start: &BytesStart<'_>) -> bool {
    let mut attributes = start.attributes();
    let mut count = 0_usize;
    attributes.with_checks(false).all(|attribute| {
        count += 1;
        // What is no attribute is left out by the library.
        let is_short =
            attribute.map_or(true, |it| it.key.into_inner() != "xml:base" || it.value.len() <= MAX_URL);
        count <= MAX_ATTRIBUTES && is_short
    })
}
