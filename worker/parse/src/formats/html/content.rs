//! The main content of a page: by the engine that knows most about pages, and by simpler ones when it finds little.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dom_smoothie::{Config, Readability};
use ego_tree::{NodeRef, iter::Edge};
use scraper::{Html, Node, node::Element};
use trafilatura::{HtmlDateMode, Options};

use super::{
    element::attribute,
    nesting,
    page::without_scripts,
    render::{RenderScope, markdown},
    restored::with_headings,
};

/// Letters and digits from which a text is believed without looking further.
const ENOUGH: usize = 300;
/// Letters and digits below which nothing was found.
const LITTLE: usize = 60;
/// Largest page that is given to the engines, in bytes. What is larger is a book or a list, and they would take minutes.
const MAX_JUDGED: usize = 3 << 20;
/// Most elements and texts of such a page: what the engines do grows with their square.
const MAX_NODES: usize = 40_000;
/// The most that the depths of all nodes of such a page are together: 25 for each, where articles have 10 to 20.
const MAX_DEPTHS: usize = 25 * MAX_NODES;
/// What is taken out before the engines look: signs to click on inside of content, and what is read here if there is
/// nothing else, since they take its tags for words.
const PRUNED: &str = "noscript, a.headerlink, a.anchorjs-link, a.heading-link, .mw-editsection, td.linenos, .lineno, \
                      .linenumber, .line-numbers-rows, td.gutter";

/// The main content of a page as Markdown; empty if it has none. `page` is the tree of `html`.
pub(super) fn main_content(html: &str, page: &Html) -> String {
    let by_elements = by_elements(page);
    let found = best(html, page, &by_elements);
    if found == by_elements { found } else { with_headings(found, &by_elements) }
}

/// What is found by the engine that is to be believed, or by the page's elements.
fn best(html: &str, page: &Html, by_elements: &str) -> String {
    let judged = html.len() <= MAX_JUDGED && is_modest(page);
    let first = if judged { by_trafilatura(html).unwrap_or_default() } else { String::new() };
    let first_size = size(&first);
    let by_elements_size = size(by_elements);
    // An engine that finds no content gives all words of the page in one paragraph, those of its menus among them.
    let is_all = !first.contains('\n') && by_elements.contains('\n') && by_elements_size < first_size;
    if is_all && by_elements_size * 5 >= size_outside_links(page) * 2 {
        return by_elements.to_owned();
    }
    if first_size >= ENOUGH {
        return first;
    }
    // Short pages lose their lists and tables in the engine, or keep their navigation.
    let is_alike = by_elements_size * 2 >= first_size && by_elements_size * 3 <= first_size * 4;
    if is_alike && first_size > 0 {
        return by_elements.to_owned();
    }
    let second = if judged { by_readability(html).unwrap_or_default() } else { String::new() };
    let second_size = size(&second);
    let agree = first_size >= LITTLE && second_size * 2 <= first_size * 3;
    // Little of much: an engine took a part for the whole.
    let is_most = |size: usize| size >= ENOUGH || size * 5 >= by_elements_size * 2;
    let found = if agree || (first_size >= second_size && is_most(first_size)) {
        first
    } else if is_most(second_size) {
        second
    } else {
        by_elements.to_owned()
    };
    if size(&found) >= ENOUGH {
        return found;
    }
    // Some programs write their text here for those who do not run them.
    let plain = without_scripts(page);
    let plain = Html::parse_document(&nesting::bounded(&plain, false));
    let plain = markdown(plain.tree.root(), RenderScope::Content);
    if size(&plain) > ENOUGH.max(2 * size(&found)) { plain } else { found }
}

/// How much a text says: the number of its letters and digits.
pub(super) fn size(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// How much a page says that is no link.
fn size_outside_links(page: &Html) -> usize {
    let is_other = |node: NodeRef<'_, Node>| {
        let element = node.value().as_element();
        element
            .is_some_and(|element| matches!(element.name(), "a" | "head" | "noscript" | "script" | "style"))
    };
    let (mut around, mut said) = (0_usize, 0);
    for edge in page.tree.root().traverse() {
        match edge {
            Edge::Open(node) if is_other(node) => around += 1,
            Edge::Close(node) if is_other(node) => around = around.saturating_sub(1),
            Edge::Open(node) if around == 0 => said += node.value().as_text().map_or(0, |text| size(text)),
            Edge::Open(_) | Edge::Close(_) => {}
        }
    }
    said
}

fn by_trafilatura(html: &str) -> Option<String> {
    let options = Options::default()
        .with_fallback(true)
        .with_exclude_comments(true)
        .with_html_date_mode(HtmlDateMode::Disabled)
        .with_prune_selector(PRUNED);
    rendered(|| trafilatura::extract(html, &options).ok().map(|found| found.content_html))
}

fn by_readability(html: &str) -> Option<String> {
    let config = Config { disable_json_ld: true, ..Config::default() };
    rendered(|| {
        let mut readability = Readability::new(html, None, Some(config)).ok()?;
        readability.parse().ok().map(|article| article.content.to_string())
    })
}

/// The Markdown of what an engine finds. One that panics has found nothing: the next may do better.
fn rendered(find: impl FnOnce() -> Option<String>) -> Option<String> {
    let html = catch_unwind(AssertUnwindSafe(find)).ok().flatten()?;
    let tree = Html::parse_document(&html);
    Some(markdown(tree.tree.root(), RenderScope::Everything))
}

/// What stands in the elements that are made for it, or else in the whole page without what is around.
fn by_elements(page: &Html) -> String {
    let whole = markdown(page.tree.root(), RenderScope::Content);
    let is_main = |element: &Element| element.name() == "main" || attribute(element, "role") == Some("main");
    for part in
        [single(page, is_main), single(page, |element| element.name() == "article")].into_iter().flatten()
    {
        let text = markdown(part, RenderScope::Content);
        if size(&text) * 5 >= size(&whole) * 2 {
            return text;
        }
    }
    whole
}

/// The only element of its kind.
fn single(page: &Html, is_it: impl Fn(&Element) -> bool) -> Option<NodeRef<'_, Node>> {
    let mut found =
        page.tree.root().descendants().filter(|node| node.value().as_element().is_some_and(&is_it));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Whether a tree is small enough for the engines, each of which goes through it many times.
fn is_modest(page: &Html) -> bool {
    let (mut depth, mut nodes, mut depths) = (0, 0, 0);
    for edge in page.tree.root().traverse() {
        match edge {
            Edge::Open(_) => {
                depth += 1;
                depths += depth;
                nodes += 1;
            }
            Edge::Close(_) => depth -= 1,
        }
    }
    nodes <= MAX_NODES && depths <= MAX_DEPTHS
}
