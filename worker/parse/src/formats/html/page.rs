//! What a page says of itself.

use ego_tree::iter::Edge;
use scraper::{Html, Node, node::Element};
use url::Url;

use super::element::{attribute, line_of, push_words};
use crate::protocol::{MAX_TITLE, MAX_URL};

/// What a page says of itself.
#[derive(Debug, Default)]
pub(super) struct SelfDescription {
    /// Its title.
    pub(super) title: Option<String>,
    /// The address that it calls its own.
    pub(super) canonical_url: Option<String>,
}

/// What a page says of itself. `url` is where it came from.
pub(super) fn describe(page: &Html, url: Option<&Url>) -> SelfDescription {
    let base = base_of(page, url);
    let mut canonical = None;
    let (mut og_url, mut graph) = (None, GraphTitle::default());
    for element in elements(page) {
        match element.name() {
            "link" => {
                let relations = attribute(element, "rel").unwrap_or_default();
                if relations.split_ascii_whitespace().any(|it| it.eq_ignore_ascii_case("canonical")) {
                    canonical = canonical.or_else(|| resolve(attribute(element, "href")?, base.as_ref()));
                }
            }
            "meta" => {
                graph.read(element);
                if property_of(element) == "og:url" {
                    og_url = og_url.or_else(|| resolve(attribute(element, "content")?, base.as_ref()));
                }
            }
            _ => {}
        }
    }
    SelfDescription {
        title: graph.title().or_else(|| text_of_first(page, "title")).or_else(|| text_of_first(page, "h1")),
        canonical_url: canonical.or(og_url).map(String::from),
    }
}

/// The title that a page gives itself for those who show links to it.
#[derive(Default)]
pub(super) struct GraphTitle {
    title: Option<String>,
    site: Option<String>,
}

impl GraphTitle {
    /// Takes note of what a `<meta>` element says of it.
    pub(super) fn read(&mut self, meta: &Element) {
        let place = match property_of(meta).as_str() {
            "og:title" => &mut self.title,
            "og:site_name" => &mut self.site,
            _ => return,
        };
        if place.is_none() {
            *place = attribute(meta, "content").map(tidy).filter(|content| !content.is_empty());
        }
    }

    /// The title. Some sites say their own name on every page.
    pub(super) fn title(self) -> Option<String> {
        let Self { title, site } = self;
        title.filter(|title| site.as_ref() != Some(title))
    }
}

/// What a `<meta>` element is about.
fn property_of(meta: &Element) -> String {
    let name = attribute(meta, "property").or_else(|| attribute(meta, "name")).unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

fn elements(page: &Html) -> impl Iterator<Item = &Element> {
    page.tree.root().traverse().filter_map(|edge| match edge {
        Edge::Open(node) => node.value().as_element(),
        Edge::Close(_) => None,
    })
}

fn text_of_first(page: &Html, name: &str) -> Option<String> {
    let mut nodes = page.tree.root().descendants();
    // A drawing's title is not the page's.
    let is_it =
        |element: &Element| element.name() == name && &*element.name.ns == "http://www.w3.org/1999/xhtml";
    let found = nodes.find(|node| node.value().as_element().is_some_and(is_it))?;
    let text = tidy(&line_of(found, 4 * MAX_TITLE));
    (!text.is_empty()).then_some(text)
}

/// One line of text, not too long for a title.
pub(super) fn tidy(text: &str) -> String {
    let mut line = String::new();
    push_words(&mut line, text);
    let line: String = line.chars().take(MAX_TITLE).collect();
    line.trim_end().to_owned()
}

/// What addresses in the page are relative to.
fn base_of(page: &Html, url: Option<&Url>) -> Option<Url> {
    let base =
        elements(page).find(|element| element.name() == "base" && attribute(element, "href").is_some());
    base.and_then(|element| resolve(attribute(element, "href")?, url)).or_else(|| url.cloned())
}

/// An address in a page, if a browser would fetch it, it holds no credentials and is not too long.
pub(super) fn resolve(reference: &str, base: Option<&Url>) -> Option<Url> {
    let reference = reference.trim();
    if reference.is_empty() || reference.len() > MAX_URL {
        return None;
    }
    let mut url = Url::options().base_url(base).parse(reference).ok()?;
    url.set_fragment(None);
    let is_plain = url.username().is_empty() && url.password().is_none();
    // It grows where its characters have to be encoded, and by what it is relative to.
    let is_short = url.as_str().len() <= MAX_URL;
    (matches!(url.scheme(), "http" | "https") && is_plain && is_short).then_some(url)
}

/// Whether a page has scripts, or a place for what they make.
pub(super) fn is_scripted(page: &Html) -> bool {
    elements(page).any(|element| element.name() == "script")
}

/// What a page holds for browsers without scripts, as HTML.
pub(super) fn without_scripts(page: &Html) -> String {
    let mut html = String::new();
    for node in page.tree.root().descendants() {
        let inside = node.parent().and_then(|parent| parent.value().as_element().map(Element::name));
        if let Node::Text(text) = node.value()
            && inside == Some("noscript")
        {
            html.push_str("<div>");
            html.push_str(text);
            html.push_str("</div>");
        }
    }
    html
}

/// Whether a short text only asks for scripts to be allowed.
pub(super) fn asks_for_scripts(text: &str) -> bool {
    let text = text.to_lowercase();
    let mentions = text.contains("javascript") || text.contains("java script");
    let asks = [
        "enable",
        "disabled",
        "turn on",
        "required",
        "requires",
        "need",
        "activate",
        "allow",
        "support",
        "without",
        "aktivier",
        "deaktiviert",
        "benötigt",
        "activer",
        "activez",
        "désactivé",
        "habilit",
        "activa",
        "ativ",
        "abilita",
        "включ",
        "inschakel",
        "有効",
        "启用",
        "啟用",
        "활성",
    ];
    mentions && asks.iter().any(|word| text.contains(word))
}
