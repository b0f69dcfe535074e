//! The captions of a page's videos.

use scraper::{Html, node::Element};
use url::Url;

use super::{
    element::attribute,
    page::{resolve, tidy},
    tags::start_tags,
};

/// Most `<track>` elements of one page.
const MAX_TRACKS: usize = 200;
/// Longest tag that is read, in bytes.
const MAX_TAG: usize = 4096;

/// Captions, subtitles or another text that belongs to a video of a page: a `<track>` element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackElement {
    /// Where it is, http or https.
    pub url: Url,
    /// What it is for.
    pub kind: TrackKind,
    /// Its language as a BCP 47 tag, as far as the page says so.
    pub language: Option<String>,
    /// What players call it.
    pub label: Option<String>,
    /// Whether players show it without being asked.
    pub is_default: bool,
}

/// What a [`TrackElement`] is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackKind {
    /// Speech, for those who do not understand the language.
    Subtitles,
    /// Speech and sounds, for those who do not hear them.
    Captions,
    /// What is seen, for those who do not see it.
    Descriptions,
    /// Titles of chapters.
    Chapters,
    /// Something for scripts, or a kind that is not known.
    Metadata,
}

/// The tracks of a page.
pub(super) fn find(html: &str, base: Option<&Url>) -> Vec<TrackElement> {
    let mut tracks = Vec::new();
    let mut own_base = None;
    for tag in start_tags(html) {
        let is_base = tag.name.eq_ignore_ascii_case("base") && own_base.is_none();
        if !(is_base || tag.name.eq_ignore_ascii_case("track")) || tag.range.len() > MAX_TAG {
            continue;
        }
        // A tag by itself is read as it would be in its place.
        let read = Html::parse_document(html.get(tag.range).unwrap_or_default());
        let mut elements = read.tree.values().filter_map(|node| node.as_element());
        let Some(element) = elements.find(|element| matches!(element.name(), "base" | "track")) else {
            continue;
        };
        if is_base {
            own_base = attribute(element, "href").and_then(|href| resolve(href, base));
        } else {
            tracks.extend(track(element, own_base.as_ref().or(base)));
            if tracks.len() == MAX_TRACKS {
                break;
            }
        }
    }
    tracks
}

fn track(element: &Element, base: Option<&Url>) -> Option<TrackElement> {
    let text = |name| attribute(element, name).map(tidy).filter(|text| !text.is_empty());
    let kind = attribute(element, "kind").unwrap_or("subtitles").trim().to_ascii_lowercase();
    Some(TrackElement {
        url: resolve(attribute(element, "src")?, base)?,
        kind: match kind.as_str() {
            "subtitles" => TrackKind::Subtitles,
            "captions" => TrackKind::Captions,
            "descriptions" => TrackKind::Descriptions,
            "chapters" => TrackKind::Chapters,
            _ => TrackKind::Metadata,
        },
        language: text("srclang"),
        label: text("label"),
        is_default: attribute(element, "default").is_some(),
    })
}
