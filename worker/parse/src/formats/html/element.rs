//! What the elements of a page are, and their text in one line.

use ego_tree::{NodeRef, iter::Edge};
use scraper::{Node, node::Element};

/// How an element takes part in the flow of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowRole {
    /// Nothing of it is text.
    Skipped,
    /// It stands on lines of its own.
    Block,
    /// It stands among words, and apart from them.
    Apart,
    /// It is part of the line.
    Inline,
}

/// The role of an element.
pub(super) fn role(element: &Element) -> FlowRole {
    match element.name() {
        "script" | "style" | "noscript" | "template" | "head" | "title" | "svg" | "iframe" | "object"
        | "embed" | "applet" | "canvas" | "audio" | "video" | "picture" | "img" | "map" | "select"
        | "option" | "datalist" | "textarea" | "input" | "progress" | "meter" | "frameset" | "noframes"
        | "noembed" | "dialog" | "rp" | "annotation" | "annotation-xml" | "link" | "meta" => {
            FlowRole::Skipped
        }
        _ if is_hidden(element) => FlowRole::Skipped,
        "address" | "article" | "aside" | "blockquote" | "body" | "caption" | "center" | "dd" | "details"
        | "dir" | "div" | "dl" | "dt" | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "h1"
        | "h2" | "h3" | "h4" | "h5" | "h6" | "header" | "hgroup" | "hr" | "html" | "legend" | "li"
        | "listing" | "main" | "menu" | "nav" | "ol" | "optgroup" | "p" | "pre" | "search" | "section"
        | "summary" | "table" | "tbody" | "td" | "tfoot" | "th" | "thead" | "tr" | "ul" | "xmp" => {
            FlowRole::Block
        }
        "button" | "label" => FlowRole::Apart,
        // Components of a page's own are mostly blocks, but may as well be a date among words.
        name if name.contains('-') => FlowRole::Apart,
        _ => FlowRole::Inline,
    }
}

/// An attribute's value. The element's own look-up makes an interned name of every name that is asked for.
pub(super) fn attribute<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    element.attrs().find(|(it, _)| *it == name).map(|(_, value)| value)
}

/// Whether readers do not see an element, or see a sign to click on where it is.
fn is_hidden(element: &Element) -> bool {
    let aside = matches!(element.name(), "a" | "span" | "i" | "b" | "button" | "sup" | "sub");
    element.attrs().any(|(name, value)| match name {
        "hidden" => !value.eq_ignore_ascii_case("until-found"),
        "aria-hidden" => aside && value.trim() == "true",
        "style" => hides(value),
        "class" => value.split_ascii_whitespace().any(is_sign),
        _ => false,
    })
}

/// Whether a class is one of signs that are clicked on, or of line numbers.
fn is_sign(class: &str) -> bool {
    matches!(
        class,
        "headerlink"
            | "anchorjs-link"
            | "heading-link"
            | "mw-editsection"
            | "linenos"
            | "lineno"
            | "linenumber"
            | "line-number"
            | "line-numbers-rows"
            | "gutter"
            | "noprint"
    )
}

fn hides(style: &str) -> bool {
    style.split(';').any(|rule| {
        rule.split_once(':').is_some_and(|(name, value)| {
            let is = |word: &str, other: &str| word.trim().eq_ignore_ascii_case(other);
            (is(name, "display") && is(value, "none")) || (is(name, "visibility") && is(value, "hidden"))
        })
    })
}

/// The level of a heading.
pub(super) fn heading_level(element: &Element) -> Option<u8> {
    match element.name() {
        "h1" => Some(1),
        "h2" => Some(2),
        "h3" => Some(3),
        "h4" => Some(4),
        "h5" => Some(5),
        "h6" => Some(6),
        _ if attribute(element, "role") == Some("heading") => attribute(element, "aria-level")
            .and_then(|level| level.trim().parse().ok())
            .filter(|level| (1..=6).contains(level)),
        _ => None,
    }
}

/// Adds text to a line, with every run of blanks as one, and none at its beginning.
pub(super) fn push_words(line: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            // Where a word may be broken, and marks of byte order: not part of any word.
            '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => {}
            c if c.is_whitespace() || c.is_control() => push_space(line),
            c => line.push(c),
        }
    }
}

/// Adds a blank unless there is one, or nothing yet.
pub(super) fn push_space(line: &mut String) {
    if !line.is_empty() && !line.ends_with([' ', '\n']) {
        line.push(' ');
    }
}

/// Whether a nested element is to be gone past.
pub(super) fn is_skipped(node: NodeRef<'_, Node>) -> bool {
    match node.value() {
        Node::Element(element) => role(element) == FlowRole::Skipped,
        Node::Text(_) | Node::Document | Node::Fragment => false,
        Node::Doctype(_) | Node::Comment(_) | Node::ProcessingInstruction(_) => true,
    }
}

/// The next step of a walk through a tree, beginning at `root`, which never enters what `enters` refuses. Refused nodes are
/// neither opened nor closed.
pub(super) fn next_edge<'a>(
    root: NodeRef<'a, Node>,
    edge: Edge<'a, Node>,
    enters: bool,
) -> Option<Edge<'a, Node>> {
    match edge {
        Edge::Open(node) => match node.first_child().filter(|_| enters) {
            Some(child) => Some(Edge::Open(child)),
            None if enters => Some(Edge::Close(node)),
            None => after(root, node),
        },
        Edge::Close(node) => after(root, node),
    }
}

fn after<'a>(root: NodeRef<'a, Node>, node: NodeRef<'a, Node>) -> Option<Edge<'a, Node>> {
    if node.id() == root.id() {
        return None;
    }
    node.next_sibling().map(Edge::Open).or_else(|| node.parent().map(Edge::Close))
}

/// The text of a node in one line, up to about `limit` bytes.
pub(super) fn line_of(root: NodeRef<'_, Node>, limit: usize) -> String {
    let mut line = String::new();
    let mut next = Some(Edge::Open(root));
    while let Some(edge) = next
        && line.len() <= limit
    {
        let node = match edge {
            Edge::Open(node) | Edge::Close(node) => node,
        };
        let enters = node.id() == root.id() || !is_skipped(node);
        match node.value() {
            Node::Text(text) if matches!(edge, Edge::Open(_)) => push_words(&mut line, text),
            Node::Element(element)
                if node.id() != root.id()
                    && (role(element) != FlowRole::Inline || element.name() == "br")
                    && enters =>
            {
                push_space(&mut line);
            }
            _ => {}
        }
        next = next_edge(root, edge, enters);
    }
    line.truncate(line.trim_end().len());
    line
}

/// The text of a node with its lines as they are.
pub(super) fn verbatim(root: NodeRef<'_, Node>) -> String {
    let mut text = String::new();
    let mut next = Some(Edge::Open(root));
    while let Some(edge) = next {
        let mut enters = true;
        if let Edge::Open(node) = edge {
            enters = node.id() == root.id() || !is_skipped(node);
            match node.value() {
                Node::Text(words) => text.push_str(words),
                Node::Element(element) if element.name() == "br" => text.push('\n'),
                // Some highlighters put every line into a block of its own.
                Node::Element(element)
                    if node.id() != root.id()
                        && enters
                        && role(element) == FlowRole::Block
                        && !text.is_empty()
                        && !text.ends_with('\n') =>
                {
                    text.push('\n');
                }
                _ => {}
            }
        }
        next = next_edge(root, edge, enters);
    }
    text
}
