//! What the worker does itself with strangers' bytes, as the targets in `fuzz/` call it, in this process: how texts are cut, and what
//! sites ask of robots. Each function panics when no passage could be cut, or one stands elsewhere than it says, or a run would be given
//! what it does not expect. What exercises the parsers of the child is in `lectern_parse::fuzzing`.

use std::{convert::Infallible, ops::Range};

use lectern_parse::{charset, protocol::ParseFrame};
use lectern_shared::model::document::{SplitterConfig, SplitterType};
use url::Url;

use crate::{
    extracted::ExtractedText,
    ingest::passages::{self, PassageSlice},
    source::parts,
    splitter::{self, PassageRange, TextShape, TokenCounter},
    sync::robots::{LONGEST_DELAY, SiteRules},
};

/// Where the sources are that are read here.
const ADDRESS: &str = "https://example.org/a/b?c";

/// Plain text and Markdown, cut by all kinds of splitters.
pub fn split(bytes: &[u8]) {
    let (text, _, _) = charset::decode(bytes, None);
    for shape in [TextShape::Prose, TextShape::Markdown, TextShape::Rows] {
        cut(&text, shape, None);
    }
    for r#type in [SplitterType::Token, SplitterType::Character] {
        for (chunk_size, chunk_overlap) in [(1, 0), (7, 3), (50, 49)] {
            cut(
                &text,
                TextShape::Markdown,
                Some(&SplitterConfig { r#type, chunk_size, chunk_overlap, given: None }),
            );
        }
    }
}

/// Puts together what a parser has said of a source, and cuts it into passages: each is the slice of the text that its place names.
pub fn passages(frames: Vec<ParseFrame>) {
    let mut extracted = ExtractedText::default();
    for frame in frames {
        parts::take(&mut extracted, frame);
    }
    let text = extracted.text();
    assert_eq!(extracted.length(), text.chars().count() as u64);
    let mut reached = (0, 0);
    for (section, characters) in extracted.sections() {
        let skipped = text.get(reached.0..section.start).map(|skipped| skipped.chars().count() as u64);
        assert_eq!(
            skipped.map(|skipped| reached.1 + skipped),
            Some(characters),
            "sections are slices, in order"
        );
        reached = (section.start, characters);
    }
    let Ok(()) = passages::cut(
        &extracted,
        None,
        &TokenCounter::default(),
        &|_| Ok(()),
        |PassageSlice { text: said, place, end }| {
            assert_eq!(end.checked_sub(said.len()).and_then(|start| text.get(start..end)), Some(said));
            assert_eq!(place.char_end - place.char_start, said.chars().count() as u64, "{place:?}");
            Ok::<_, Infallible>(())
        },
    );
}

/// A robots.txt, whose last line is also an address that is asked about.
pub fn robots(bytes: &[u8]) {
    let Ok(site) = Url::parse(ADDRESS) else { return };
    let rules = SiteRules::read(bytes);
    assert!(rules.delay() <= LONGEST_DELAY);
    rules.sitemaps(&site);
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    // However the word that forbids is misspelt, it begins like this.
    let forbids = text.contains("dis") || text.contains("dias");
    for address in ["/robots.txt", "/", "/a/b.html?c=d", text.lines().next_back().unwrap_or_default()] {
        let Ok(page) = site.join(address) else { continue };
        let is_allowed = rules.allows(&page);
        assert!(is_allowed || forbids, "nothing forbids {page}");
        assert!(is_allowed || address != "/robots.txt", "it can always be asked what is forbidden");
    }
}

/// Passages are slices of the text, one after the other, and their places say where.
fn cut(text: &str, shape: TextShape, splitter: Option<&SplitterConfig>) {
    let mut last = 0;
    let (mut bytes, mut characters) = (0, 0);
    let Ok(()) = splitter::split(
        text,
        shape,
        splitter,
        &TokenCounter::default(),
        &|_| Ok(()),
        |PassageRange { range, char_range }| {
            let passage = text.get(range.clone()).unwrap_or_default();
            assert!(!passage.trim().is_empty(), "{range:?} of {} bytes says nothing", text.len());
            assert!(range.end > last, "they come in the order in which they end");
            last = range.end;
            let counted = |range: Range<usize>| text.get(range).map_or(0, |text| text.chars().count() as u64);
            if range.start < bytes {
                characters -= counted(range.start..bytes);
            } else {
                characters += counted(bytes..range.start);
            }
            bytes = range.start;
            assert_eq!(char_range, characters..characters + passage.chars().count() as u64);
            Ok::<_, Infallible>(())
        },
    );
}
