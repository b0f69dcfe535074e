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
/// Most tags of one page that are looked at for them.
const MAX_TAGS: usize = 2_000;
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
    let mut tags = 0;
    for tag in start_tags(html) {
        let is_base = tag.name.eq_ignore_ascii_case("base") && own_base.is_none();
        if !(is_base || tag.name.eq_ignore_ascii_case("track")) || tag.range.len() > MAX_TAG {
            continue;
        }
        tags += 1;
        if tags > MAX_TAGS {
            break;
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

#[cfg(test)]
mod tests {
    use super::{MAX_TAGS, find};

    #[test]
    fn tags_that_are_no_tracks_count() {
        let found = |tag: &str, others: usize| {
            find(&format!("{}<track src=https://example.org/a.vtt>", tag.repeat(others)), None).len()
        };
        assert_eq!(found("<track>", 10), 1);
        assert_eq!(found("<track>", MAX_TAGS), 0);
        assert_eq!(found("<base>", MAX_TAGS), 0);
        // These are not looked at.
        assert_eq!(found("<p>", MAX_TAGS), 1);
    }
}
