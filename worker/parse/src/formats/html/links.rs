//! Where a page leads.

use std::collections::BTreeSet;

use scraper::{Html, node::Element};
use url::Url;

use super::{
    element::attribute,
    page::{GraphTitle, resolve, tidy},
    tags::{StartTag, start_tags},
};
use crate::protocol::{MAX_LINKS, PageLinks};

/// Tags that are read of one page: each one by itself takes far longer than to go past it.
const MAX_TAGS: usize = 10_000;
/// Longest tag that is read, in bytes.
const MAX_TAG: usize = 4_096;
/// Attributes of a tag that is read, each of which is compared with all before it.
const MAX_ATTRIBUTES: usize = 50;
/// Longest title that is read, in bytes.
const MAX_TITLE: usize = 2_048;

/// The links of a page.
pub(super) fn find(html: &str, base: Option<&Url>) -> PageLinks {
    let mut page = PageLinks::default();
    let (mut own_base, mut graph) = (None, GraphTitle::default());
    let mut known = BTreeSet::new();
    let mut tags_left = MAX_TAGS;
    for tag in start_tags(html) {
        if tag.range.len() > MAX_TAG || tag.attributes > MAX_ATTRIBUTES {
            continue;
        }
        if tag.name.eq_ignore_ascii_case("title") {
            if page.title.is_none() && take_one(&mut tags_left) {
                page.title = title(html.get(tag.range.end..).unwrap_or_default());
            }
            continue;
        }
        let text = html.get(tag.range.clone()).unwrap_or_default();
        if !may_matter(&tag, text, &page) || !take_one(&mut tags_left) {
            continue;
        }
        let name = tag.name.to_ascii_lowercase();
        // A tag by itself is read as it would be in its place.
        let read = Html::parse_document(text);
        let mut elements = read.tree.values().filter_map(|node| node.as_element());
        let Some(element) = elements.find(|element| element.name() == name) else { continue };
        let base = own_base.as_ref().or(base);
        match name.as_str() {
            "base" if own_base.is_none() => {
                let said = attribute(element, "href").and_then(|href| resolve(href, base));
                own_base = said;
            }
            "meta" => {
                page.apply_meta(element);
                graph.read(element);
            }
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
    page.title = graph.title().or(page.title);
    page
}

/// Whether a tag has what it would be read for. What stands in it is looked at as it is written, where other things may look like it.
fn may_matter(tag: &StartTag<'_>, text: &str, page: &PageLinks) -> bool {
    let is = |names: &[&str]| names.iter().any(|name| tag.name.eq_ignore_ascii_case(name));
    if is(&["a", "area"]) {
        page.links.len() < MAX_LINKS && has_word(text, b"href")
    } else if is(&["link"]) {
        page.canonical.is_none() && has_word(text, b"href") && has_word(text, b"canonical")
    } else if is(&["meta"]) {
        has_word(text, b"content")
    } else {
        is(&["base"]) && has_word(text, b"href")
    }
}

/// Whether a word stands in a text, in letters of either case.
fn has_word(text: &str, word: &[u8]) -> bool {
    text.as_bytes().windows(word.len()).any(|it| it.eq_ignore_ascii_case(word))
}

/// Takes one of those that are left.
fn take_one(left: &mut usize) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}

impl PageLinks {
    /// Heeds what a `<meta>` element asks of robots.
    fn apply_meta(&mut self, element: &Element) {
        let name = attribute(element, "name").unwrap_or_default().trim().to_ascii_lowercase();
        if matches!(name.as_str(), "robots" | "lectern") {
            self.apply_directives(attribute(element, "content").unwrap_or_default());
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
    fn a_page_is_called_as_it_is_when_it_is_read() {
        let named = "<meta property='og:title' content='Prices'><title>Prices | The shop</title>";
        assert_eq!(links(named).title.as_deref(), Some("Prices"));
        let site = "<meta property='og:site_name' content='Shop'><meta property='og:title' content='Shop'><title>Prices</title>";
        assert_eq!(links(site).title.as_deref(), Some("Prices"));
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

    #[test]
    fn a_tag_that_leads_nowhere_is_gone_past() {
        let attributes = (0..1_000).map(|n| format!("a{n} ")).collect::<Vec<_>>().concat();
        let crowd = format!("<a {attributes}href=one>").repeat(200);
        let page = links(&format!("{}{crowd}<a href=two>", "<a>".repeat(100_000)));
        assert_eq!(page.links.iter().map(Url::as_str).collect::<Vec<_>>(), ["https://a.example/docs/two"]);
    }

    #[test]
    fn so_many_links_are_read_of_a_page_and_no_more() {
        let many = (0..MAX_LINKS + 10).map(|n| format!("<a href={n}>")).collect::<Vec<_>>().concat();
        let page =
            links(&format!("{many}{}<meta name=robots content=noindex>", "<a href=x>".repeat(100_000)));
        assert_eq!((page.links.len(), page.is_indexed), (MAX_LINKS, false));
    }
}
