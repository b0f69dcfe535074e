//! Where a page leads.

use std::collections::BTreeSet;

use scraper::{Html, node::Element};
use url::Url;

use super::{
    element::attribute,
    page::{resolve, tidy},
    tags::start_tags,
};

/// Most links of one page.
const MAX_LINKS: usize = 2_000;
/// Longest tag that is read, in bytes.
const MAX_TAG: usize = 4_096;
/// Longest title that is read, in bytes.
const MAX_TITLE: usize = 2_048;

/// Where a page leads, and what it asks of those who follow its links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLinks {
    /// Its title.
    pub title: Option<String>,
    /// The address that it calls its own.
    pub canonical: Option<Url>,
    /// Whether it may be kept.
    pub is_indexed: bool,
    /// Whether its links may be followed.
    pub is_followed: bool,
    /// The addresses that it links to, each once, in its order, without fragments.
    pub links: Vec<Url>,
}

/// The links of a page.
pub(super) fn find(html: &str, base: Option<&Url>) -> PageLinks {
    let mut page =
        PageLinks { title: None, canonical: None, is_indexed: true, is_followed: true, links: Vec::new() };
    let mut own_base = None;
    let mut known = BTreeSet::new();
    for tag in start_tags(html) {
        let name = tag.name.to_ascii_lowercase();
        if tag.range.len() > MAX_TAG
            || !matches!(name.as_str(), "a" | "area" | "base" | "link" | "meta" | "title")
        {
            continue;
        }
        if name == "title" {
            page.title = page.title.or_else(|| title(html.get(tag.range.end..).unwrap_or_default()));
            continue;
        }
        // A tag by itself is read as it would be in its place.
        let read = Html::parse_document(html.get(tag.range).unwrap_or_default());
        let mut elements = read.tree.values().filter_map(|node| node.as_element());
        let Some(element) = elements.find(|element| element.name() == name) else { continue };
        let base = own_base.as_ref().or(base);
        match name.as_str() {
            "base" if own_base.is_none() => {
                let said = attribute(element, "href").and_then(|href| resolve(href, base));
                own_base = said;
            }
            "meta" => page.apply_meta(element),
            "link" if has_relation(element, "canonical") => {
                page.canonical = page.canonical.or_else(|| resolve(attribute(element, "href")?, base));
            }
            "a" | "area" if page.links.len() < MAX_LINKS && !has_relation(element, "nofollow") => {
                let link = attribute(element, "href").and_then(|href| resolve(href, base));
                page.links.extend(link.filter(|link| known.insert(link.to_string())));
            }
            _ => {}
        }
    }
    page
}

impl PageLinks {
    /// Heeds what a `<meta>` element asks of robots.
    fn apply_meta(&mut self, element: &Element) {
        let name = attribute(element, "name").unwrap_or_default().trim().to_ascii_lowercase();
        if matches!(name.as_str(), "robots" | "lectern") {
            self.apply_directives(attribute(element, "content").unwrap_or_default());
        }
    }

    /// Heeds directives for robots, which are parted by commas: those of a page, or of an `X-Robots-Tag`.
    pub fn apply_directives(&mut self, directives: &str) {
        for directive in directives.split(',') {
            match directive.trim().to_ascii_lowercase().as_str() {
                "noindex" => self.is_indexed = false,
                "nofollow" => self.is_followed = false,
                "none" => (self.is_indexed, self.is_followed) = (false, false),
                _ => {}
            }
        }
    }
}

fn has_relation(element: &Element, relation: &str) -> bool {
    let relations = attribute(element, "rel").unwrap_or_default();
    relations.split_ascii_whitespace().any(|it| it.eq_ignore_ascii_case(relation))
}

/// The title that begins here.
fn title(html: &str) -> Option<String> {
    let text = html.split('<').next().unwrap_or_default();
    let text = text.get(..text.floor_char_boundary(MAX_TITLE)).unwrap_or(text);
    let read = Html::parse_document(&format!("<title>{text}</title>"));
    let title: String = read.tree.values().filter_map(|node| node.as_text()).map(|text| &**text).collect();
    Some(tidy(&title)).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(html: &str) -> PageLinks {
        find(html, Some(&Url::parse("https://a.example/docs/index.html").unwrap()))
    }

    #[test]
    fn links_are_read_as_a_browser_follows_them() {
        let page = links(
            "<title>Docs &amp; <b>more</title><a href='one'>1</a><A HREF=\"/two#part\">2</A><a href='one#again'>3</a>
             <a href='mailto:x@y'>4</a><a rel='noopener nofollow' href=no>5</a><!-- <a href=hidden> --><a>6</a>
             <a href='https://b.example/x?y=1&amp;z=2'>7</a><link rel=canonical href='/docs/'>",
        );
        let found: Vec<_> = page.links.iter().map(Url::as_str).collect();
        let expected = ["https://a.example/docs/one", "https://a.example/two", "https://b.example/x?y=1&z=2"];
        assert_eq!(found, expected);
        assert_eq!(page.title.as_deref(), Some("Docs &"));
        assert_eq!(page.canonical.as_ref().map(Url::as_str), Some("https://a.example/docs/"));
        assert!(page.is_indexed && page.is_followed);
    }

    #[test]
    fn a_page_says_what_may_be_done_with_it() {
        for (html, is_indexed, is_followed) in [
            ("<meta name=robots content='noindex, follow'>", false, true),
            ("<META NAME=Robots CONTENT=NoFollow>", true, false),
            ("<meta name=robots content=none>", false, false),
            ("<meta name=googlebot content=noindex>", true, true),
        ] {
            let page = links(html);
            assert_eq!((page.is_indexed, page.is_followed), (is_indexed, is_followed), "{html}");
        }
    }

    #[test]
    fn a_page_says_what_its_links_are_relative_to() {
        let page = links("<base href='/else/'><base href='/no/'><a href=here>x</a>");
        assert_eq!(page.links[0].as_str(), "https://a.example/else/here");
    }
}
