//! Markdown from a tree of HTML: paragraphs, headings, lists, quotations, tables and code, and nothing else.
//!
//! Words are left as they are, since they are searched and quoted: no emphasis, no addresses of links, and no escapes
//! except where a line would be taken for a heading or the beginning of code.

use ego_tree::{NodeRef, iter::Edge};
use scraper::{Node, node::Element};

use super::{
    element::{
        FlowRole, attribute, heading_level, line_of, next_edge, push_space, push_words, role, verbatim,
    },
    table,
};

/// Bytes up to which a heading is one: what is longer was not closed, or marks up a paragraph.
const MAX_HEADING: usize = 400;
/// Lists and quotations within each other that can be seen in the text.
const MAX_CONTAINERS: usize = 8;

/// What of a tree is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RenderScope {
    /// All of it.
    #[default]
    Everything,
    /// What is not navigation, a banner, or around the content otherwise.
    Content,
}

/// The text of a node in Markdown, without blanks around it.
pub(super) fn markdown(root: NodeRef<'_, Node>, scope: RenderScope) -> String {
    let mut renderer = MarkdownRenderer { scope, ..MarkdownRenderer::default() };
    let mut next = Some(Edge::Open(root));
    while let Some(edge) = next {
        let enters = match edge {
            Edge::Open(node) => node.id() == root.id() || renderer.open(node),
            Edge::Close(node) => {
                if node.id() != root.id() {
                    renderer.close(node);
                }
                true
            }
        };
        next = next_edge(root, edge, enters);
    }
    renderer.flush();
    renderer.output
}

#[derive(Default)]
struct MarkdownRenderer {
    scope: RenderScope,
    output: String,
    /// The paragraph that is being put together; `\n` in it is a line break of the page.
    line: String,
    heading: Option<u8>,
    containers: Vec<ContainerBlock>,
    /// The number of the next item, by list; none in lists without order.
    lists: Vec<Option<u64>>,
    /// Whether the last block belongs to the list that is open.
    in_list: bool,
}

#[derive(Debug)]
enum ContainerBlock {
    Quotation,
    Item { marker: String, said: bool },
}

impl MarkdownRenderer {
    /// Takes the beginning of a node; whether its children are to be visited, and its end.
    fn open(&mut self, node: NodeRef<'_, Node>) -> bool {
        let element = match node.value() {
            Node::Text(text) => {
                push_words(&mut self.line, text);
                return true;
            }
            Node::Element(element) => element,
            _ => return false,
        };
        match role(element) {
            FlowRole::Skipped => return false,
            _ if self.scope == RenderScope::Content && is_around(node, element) => return false,
            // A button can hold the question of a heading; elsewhere it says what to click on.
            FlowRole::Apart if element.name() == "button" && self.heading.is_none() => return false,
            FlowRole::Apart => push_space(&mut self.line),
            FlowRole::Inline => return self.inline(node, element),
            FlowRole::Block if self.heading.is_some() => push_space(&mut self.line),
            FlowRole::Block => return self.block(node, element),
        }
        true
    }

    fn inline(&mut self, node: NodeRef<'_, Node>, element: &Element) -> bool {
        match element.name() {
            "br" if self.heading.is_some() => push_space(&mut self.line),
            "br" if self.line.ends_with('\n') => self.flush(),
            "br" => {
                self.line.truncate(self.line.trim_end_matches(' ').len());
                if !self.line.is_empty() {
                    self.line.push('\n');
                }
            }
            "math" => {
                if let Some(formula) = attribute(element, "alttext") {
                    push_words(&mut self.line, formula);
                    return false;
                }
            }
            "code" | "tt" | "samp" if self.heading.is_none() && stands_alone(node) => {
                self.code(node);
                return false;
            }
            _ if heading_level(element).is_some() && self.heading.is_none() => {
                return self.block(node, element);
            }
            _ => {}
        }
        true
    }

    fn block(&mut self, node: NodeRef<'_, Node>, element: &Element) -> bool {
        self.flush();
        match element.name() {
            "pre" | "listing" | "xmp" => {
                self.code(node);
                return false;
            }
            "table" => {
                if let Some(blocks) = table::lines(node) {
                    for block in blocks {
                        self.write(&block);
                    }
                    return false;
                }
            }
            "blockquote" => self.containers.push(ContainerBlock::Quotation),
            "ul" | "menu" | "dir" => self.lists.push(None),
            "ol" => {
                let first = attribute(element, "start").and_then(|start| start.trim().parse().ok());
                self.lists.push(Some(first.unwrap_or(1)));
            }
            "li" => {
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        if let Some(value) =
                            attribute(element, "value").and_then(|value| value.trim().parse().ok())
                        {
                            *number = value;
                        }
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    Some(None) | None => "- ".to_owned(),
                };
                self.containers.push(ContainerBlock::Item { marker, said: false });
            }
            _ => {
                self.heading =
                    heading_level(element).filter(|_| line_of(node, MAX_HEADING).len() <= MAX_HEADING);
            }
        }
        true
    }

    fn close(&mut self, node: NodeRef<'_, Node>) {
        let Node::Element(element) = node.value() else { return };
        match role(element) {
            FlowRole::Apart => push_space(&mut self.line),
            FlowRole::Block if self.heading.is_some() && heading_level(element).is_none() => {
                push_space(&mut self.line);
            }
            FlowRole::Inline if heading_level(element).is_none() => {}
            _ => {
                self.flush();
                match element.name() {
                    "blockquote" | "li" => {
                        self.containers.pop();
                    }
                    "ul" | "ol" | "menu" | "dir" => {
                        self.lists.pop();
                        self.in_list &= !self.lists.is_empty();
                    }
                    _ => self.heading = None,
                }
            }
        }
    }

    /// Ends the paragraph or heading that is being put together.
    fn flush(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim();
        if text.is_empty() {
            return;
        }
        match self.heading {
            Some(level) => {
                // Signs to click on, at the end of many headings.
                let title = text.trim_end_matches(['¶', '§', '🔗']).trim_end();
                let title = title.strip_suffix(" #").unwrap_or(title).trim_start_matches("# ");
                if !title.is_empty() && title != "#" {
                    self.write(&format!("{} {title}", "#".repeat(usize::from(level))));
                }
            }
            None => {
                let lines: Vec<_> = text.lines().map(|line| guarded(line.trim())).collect();
                self.write(&lines.join("\n"));
            }
        }
    }

    /// Writes code with its lines as they are.
    fn code(&mut self, node: NodeRef<'_, Node>) {
        self.flush();
        let text = verbatim(node).replace("\r\n", "\n").replace('\r', "\n");
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        let first = lines.iter().position(|line| !line.is_empty());
        let last = lines.iter().rposition(|line| !line.is_empty());
        let Some(lines) = first.zip(last).and_then(|(first, last)| lines.get(first..=last)) else { return };
        let longest = lines.iter().map(|line| longest_run_of_backticks(line)).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let language = language(node).unwrap_or_default();
        self.write(&format!("{fence}{language}\n{}\n{fence}", lines.join("\n")));
    }

    /// Writes lines as a block of their own, within the lists and quotations that are open.
    fn write(&mut self, block: &str) {
        let is_item = self.containers.iter().any(|it| matches!(it, ContainerBlock::Item { said: false, .. }));
        if !self.output.is_empty() {
            self.output.push_str(if is_item && self.in_list { "\n" } else { "\n\n" });
        }
        let mut indent = String::new();
        let outermost = self.containers.len().saturating_sub(MAX_CONTAINERS);
        for container in self.containers.iter_mut().skip(outermost) {
            match container {
                ContainerBlock::Quotation => {
                    self.output.push_str("> ");
                    indent.push_str("> ");
                }
                ContainerBlock::Item { marker, said } => {
                    let blank = " ".repeat(marker.len());
                    self.output.push_str(if *said { &blank } else { marker });
                    *said = true;
                    indent.push_str(&blank);
                }
            }
        }
        for (number, line) in block.split('\n').enumerate() {
            if number > 0 {
                self.output.push('\n');
                self.output.push_str(if line.is_empty() { indent.trim_end() } else { &indent });
            }
            self.output.push_str(line);
        }
        self.in_list = self.containers.iter().any(|it| matches!(it, ContainerBlock::Item { .. }));
    }
}

/// Whether code is no part of a sentence: it has several lines, or nothing but blocks and code beside it.
fn stands_alone(node: NodeRef<'_, Node>) -> bool {
    let is_apart = |beside: Option<NodeRef<'_, Node>>| {
        beside.is_none_or(|beside| match beside.value() {
            Node::Element(element) => role(element) == FlowRole::Block || element.name() == "code",
            _ => false,
        })
    };
    let is_said =
        |node: &NodeRef<'_, Node>| !node.value().as_text().is_some_and(|text| text.trim().is_empty());
    let apart = is_apart(node.prev_siblings().find(is_said)) && is_apart(node.next_siblings().find(is_said));
    let parent = node.parent().and_then(|parent| parent.value().as_element().map(Element::name));
    apart
        && (matches!(parent, None | Some("html" | "body" | "main" | "article" | "section" | "div"))
            || verbatim(node).trim().contains('\n'))
}

/// The language that a highlighter was told.
fn language(node: NodeRef<'_, Node>) -> Option<String> {
    let code = node.children().find(|child| child.value().as_element().is_some_and(|it| it.name() == "code"));
    let elements =
        [Some(node), code, node.parent()].into_iter().flatten().filter_map(|it| it.value().as_element());
    let classes = elements.flat_map(Element::classes);
    let mut languages = classes.filter_map(|class| {
        ["language-", "lang-", "highlight-source-"].iter().find_map(|prefix| class.strip_prefix(prefix))
    });
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_' | '.');
    languages.find(|name| (1..=20).contains(&name.len()) && name.chars().all(is_name)).map(str::to_owned)
}

fn longest_run_of_backticks(line: &str) -> usize {
    line.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A line of words that would be read as the beginning of something else, with a backslash before it.
fn guarded(line: &str) -> String {
    let depth = line.bytes().take_while(|byte| *byte == b'#').count();
    let is_heading =
        (1..=6).contains(&depth) && line.get(depth..).is_none_or(|it| it.is_empty() || it.starts_with(' '));
    let is_underline =
        !line.is_empty() && (line.bytes().all(|it| it == b'-') || line.bytes().all(|it| it == b'='));
    let is_fence = line.starts_with("```") || line.starts_with("~~~");
    let is_html = line.strip_prefix('<').is_some_and(|tag| {
        let opens = |name: &str| tag.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        tag.starts_with(['!', '?']) || ["script", "pre", "style", "textarea"].into_iter().any(opens)
    });
    if is_heading || is_underline || is_fence || is_html { format!("\\{line}") } else { line.to_owned() }
}

/// Whether an element is around the content of a page.
fn is_around(node: NodeRef<'_, Node>, element: &Element) -> bool {
    const NAMES: [&str; 22] = [
        "navbar",
        "sidebar",
        "breadcrumb",
        "breadcrumbs",
        "menu",
        "nav",
        "navigation",
        "skip-link",
        "site-header",
        "site-footer",
        "footer",
        "cookies",
        "cc-window",
        "social-share",
        "share-buttons",
        "pagination",
        "pager",
        "advertisement",
        "ads",
        "sr-only",
        "visually-hidden",
        "screen-reader-text",
    ];
    match element.name() {
        "html" | "body" | "main" | "article" => return false,
        "nav" | "aside" | "search" => return true,
        // Those of the page, not those of an article in it.
        "header" | "footer" => {
            return !node
                .ancestors()
                .filter_map(|above| above.value().as_element())
                .any(|above| matches!(above.name(), "main" | "article" | "section" | "blockquote"));
        }
        _ => {}
    }
    let role = attribute(element, "role").unwrap_or_default();
    matches!(
        role,
        "navigation" | "banner" | "contentinfo" | "search" | "complementary" | "dialog" | "alertdialog"
    ) || element.id().into_iter().chain(element.classes()).any(|name| {
        let name = name.to_ascii_lowercase();
        NAMES.contains(&name.as_str()) || name.contains("cookie") || name.contains("consent-")
    })
}
