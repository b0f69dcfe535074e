//! Answers of models as HTML. What a model writes is Markdown, and nothing of it is HTML: tags are shown as the text that they are,
//! pictures as their words, and links lead to the web alone.

use std::{collections::VecDeque, iter};

use lectern_agents::answer::markdown_steps;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream, html};

/// The most that a parser is given to do for one answer, in bytes that it goes past: it takes a twentieth of a second at the worst, and
/// is more than an answer takes that somebody reads. The thread has others to serve.
const MOST_STEPS: usize = 128 << 10;
/// So many markers of an answer are looked at; those after them stay text. Each becomes many times what it is.
const MOST_MARKERS: usize = 1_000;
/// The digits of a marker.
const MOST_DIGITS: usize = 9;

/// Writes a text as HTML. Where it cites a source as `[n]`, `cite` is given the number and all that is said before it, and gives the mark
/// that stands there, as HTML; nothing for a number that is no source's. A text that would keep a parser busy is shown as it was
/// written, in paragraphs.
pub(super) fn to_html(text: &str, cite: impl FnMut(usize, &str) -> Option<String>) -> String {
    let mut written = String::with_capacity(text.len() * 2);
    if markdown_steps(text).is_some_and(|steps| steps <= MOST_STEPS) {
        let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
        html::push_html(&mut written, ShownEvents::new(TextMergeStream::new(parser), cite));
    } else {
        html::push_html(&mut written, ShownEvents::new(paragraphs(text), cite));
    }
    written
}

/// A text as it was written: a paragraph up to each blank line, with its lines below each other.
fn paragraphs(text: &str) -> impl Iterator<Item = Event<'_>> {
    let written = text.split("\n\n").map(|paragraph| paragraph.trim_matches('\n'));
    written.filter(|paragraph| !paragraph.is_empty()).flat_map(|paragraph| {
        let lines = paragraph.lines().flat_map(|line| [Event::Text(line.into()), Event::HardBreak]);
        let begin = iter::once(Event::Start(Tag::Paragraph));
        begin.chain(lines).chain(iter::once(Event::End(TagEnd::Paragraph)))
    })
}

/// What is read of an answer, as it is shown. It is made piece by piece: a megabyte can be a million pieces.
struct ShownEvents<'a, E, C> {
    events: E,
    cite: C,
    /// All that was said so far, without the markers that became marks.
    said: String,
    /// How many markers were looked at.
    markers: usize,
    is_code: bool,
    /// What comes before anything else is read.
    next: VecDeque<Event<'a>>,
}

impl<'a, E, C> Iterator for ShownEvents<'a, E, C>
where
    E: Iterator<Item = Event<'a>>,
    C: FnMut(usize, &str) -> Option<String>,
{
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            if let Some(event) = self.next.pop_front() {
                return Some(event);
            }
            let event = self.events.next()?;
            self.show(event);
        }
    }
}

impl<'a, E, C> ShownEvents<'a, E, C>
where
    C: FnMut(usize, &str) -> Option<String>,
{
    fn new(events: E, cite: C) -> Self {
        Self { events, cite, said: String::new(), markers: 0, is_code: false, next: VecDeque::new() }
    }

    fn show(&mut self, event: Event<'a>) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => self.next.push_back(Event::Text(text)),
            Event::Text(text) if !self.is_code => self.show_cited(text),
            Event::Start(Tag::CodeBlock(_)) => {
                self.is_code = true;
                // The language is the model's own word, and would stand in an attribute.
                self.next.push_back(Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)));
            }
            Event::End(TagEnd::CodeBlock) => {
                self.is_code = false;
                self.next.push_back(Event::End(TagEnd::CodeBlock));
            }
            // What is in them is shown as words.
            Event::Start(Tag::Image { .. } | Tag::HtmlBlock)
            | Event::End(TagEnd::Image | TagEnd::HtmlBlock) => {}
            Event::Start(Tag::Link { dest_url, .. }) => {
                self.next.push_back(Event::InlineHtml(link(&dest_url).into()));
            }
            Event::End(TagEnd::Link) => self.next.push_back(Event::InlineHtml("</a>".into())),
            // The page has headings of its own above it.
            Event::Start(Tag::Heading { .. }) => {
                self.next.extend([Event::Start(Tag::Paragraph), Event::Start(Tag::Strong)]);
            }
            Event::End(TagEnd::Heading(_)) => {
                self.next.extend([Event::End(TagEnd::Strong), Event::End(TagEnd::Paragraph)]);
            }
            event => {
                match &event {
                    Event::Code(text) => self.said.push_str(text),
                    Event::SoftBreak | Event::HardBreak => self.said.push('\n'),
                    _ => {}
                }
                self.next.push_back(event);
            }
        }
    }

    /// A text, with the marks of its sources.
    fn show_cited(&mut self, text: CowStr<'a>) {
        if !text.contains('[') {
            self.said.push_str(&text);
            self.next.push_back(Event::Text(text));
            return;
        }
        // What stands behind the last mark.
        let mut plain = String::new();
        let mut rest: &str = &text;
        while let Some(at) = rest.find('[') {
            let (before, from) = rest.split_at(at);
            self.said.push_str(before);
            plain.push_str(before);
            if let Some((mark, length)) = self.mark(from) {
                if !plain.is_empty() {
                    self.next.push_back(Event::Text(std::mem::take(&mut plain).into()));
                }
                self.next.push_back(Event::InlineHtml(mark.into()));
                rest = &from[length..];
            } else {
                self.said.push('[');
                plain.push('[');
                rest = &from[1..];
            }
        }
        self.said.push_str(rest);
        plain.push_str(rest);
        if !plain.is_empty() {
            self.next.push_back(Event::Text(plain.into()));
        }
    }

    /// The mark of the source that a text cites at its beginning, and the length of the marker.
    fn mark(&mut self, text: &str) -> Option<(String, usize)> {
        let (number, length) = marker(text)?;
        self.markers += 1;
        if self.markers > MOST_MARKERS {
            return None;
        }
        Some(((self.cite)(number, &self.said)?, length))
    }
}

/// The number of the marker that a text begins with, and how long it is.
fn marker(text: &str) -> Option<(usize, usize)> {
    let inner = text.strip_prefix('[')?;
    // No further is looked: the text may have a bracket in every place.
    let digits = inner.bytes().take(MOST_DIGITS).take_while(u8::is_ascii_digit).count();
    let (number, rest) = inner.split_at(digits);
    if !rest.starts_with(']') {
        return None;
    }
    Some((number.parse().ok()?, digits + 2))
}

/// The beginning of a link: to the web, or to nowhere. It opens a tab of its own, as a conversation is not left for it.
fn link(url: &str) -> String {
    let is_web = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    if is_web {
        format!("<a href=\"{}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">", escaped(url))
    } else {
        "<a>".to_owned()
    }
}

/// A text for an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        to_html(text, |n, _| (n == 1).then(|| "<a class=\"cite\">1</a>".to_owned()))
    }

    #[test]
    fn a_marker_is_told_what_was_said_before_it() {
        let mut heard = Vec::new();
        to_html("The **gate** opens\nat `six` [1], says [x] [1].", |_, said| {
            heard.push(said.to_owned());
            Some("<b></b>".to_owned())
        });
        assert_eq!(heard, ["The gate opens\nat six ", "The gate opens\nat six , says [x] "]);
    }

    #[test]
    fn markdown_is_shown_and_cites() {
        assert_eq!(
            shown("**Solveig Aas** [1]."),
            "<p><strong>Solveig Aas</strong> <a class=\"cite\">1</a>.</p>\n"
        );
        assert_eq!(shown("[2] and [1]"), "<p>[2] and <a class=\"cite\">1</a></p>\n");
        assert_eq!(shown("[1][1]"), "<p><a class=\"cite\">1</a><a class=\"cite\">1</a></p>\n");
        assert!(shown("- a\n- b [1]").contains("<li>b <a class=\"cite\">1</a></li>"));
        assert!(shown("```\n[1]\n```").contains("[1]"));
    }

    #[test]
    fn a_link_does_not_leave_the_conversation() {
        assert_eq!(
            shown("[x](https://a.example/?b&c)"),
            "<p><a href=\"https://a.example/?b&amp;c\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">x</a></p>\n"
        );
    }

    #[test]
    fn nothing_that_a_model_writes_is_html() {
        for hostile in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "![x](javascript:alert(1))",
            "[x](javascript:alert(1))",
            "[x](data:text/html,1)",
            "<a href=\"javascript:alert(1)\">x</a>",
            "```\"><script>\nx\n```",
            "[x](https://a.example/\"onmouseover=alert(1)//)",
            "# <b onclick=x>",
            "| <script> | b |\n|---|---|\n| <svg/onload=x> | [1] |",
            "&lt;script&gt; <iframe src=x>",
        ] {
            let html = shown(hostile);
            // Angle brackets come from the writer alone.
            for tag in html.split('<').skip(1) {
                let name: String =
                    tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
                let known =
                    ["p", "a", "strong", "em", "pre", "code", "table", "thead", "tbody", "tr", "th", "td"];
                assert!(known.contains(&name.as_str()), "{hostile}: {html}");
                let inside = tag.split('>').next().unwrap();
                assert!(!inside.contains("javascript:") && !inside.contains("data:"), "{hostile}: {html}");
                assert!(!inside.contains("\"onmouseover"), "{hostile}: {html}");
            }
        }
    }

    /// Each of them kept a thread for seconds to minutes, as one answer that was stored.
    #[test]
    fn a_text_that_keeps_a_parser_busy_is_shown_as_it_was_written() {
        const LENGTH: usize = 1 << 20;
        let fill = |text: &str| text.repeat(LENGTH / text.len());
        let nested = |mark: &str, line: &str| {
            let half = LENGTH / 2;
            format!("{}a\n{}", mark.repeat(half / mark.len()), line.repeat(half / line.len()))
        };
        let columns = |cell: &str| cell.repeat(2_000);
        let texts = [
            fill("["),
            fill("[1"),
            fill("[999999]"),
            fill("]["),
            format!("[a](b \"{}", fill("\"a\n")),
            format!("[a](b \"{}", fill("\"a\r")),
            nested("- ", "b\n"),
            nested("> ", "b\n"),
            format!("{}\n{}\n{}", columns("|a"), columns("|-"), fill("|a\n")),
        ];
        for text in texts {
            let html = shown(&text);
            assert!(html.starts_with("<p>"), "{:?}", &text[..12]);
            assert!(
                ["<ul>", "<blockquote>", "<table>"].iter().all(|tag| !html.contains(tag)),
                "{:?}",
                &text[..12]
            );
        }
        // A long one that is nothing but words is read as Markdown.
        assert!(shown(&fill("**Words** of it.\n\n")[..100 << 10]).contains("<strong>Words</strong>"));
    }

    #[test]
    fn a_text_that_is_shown_as_it_was_written_is_text_and_cites() {
        let deep = "> ".repeat(100);
        assert_eq!(
            shown(&format!("**a** <b> [1],\n[2].\n\n\n{deep}[1]\n")),
            format!(
                "<p>**a** &lt;b&gt; <a class=\"cite\">1</a>,<br />\n[2].<br />\n</p>\n\
                 <p>{}<a class=\"cite\">1</a><br />\n</p>\n",
                "&gt; ".repeat(100)
            )
        );
    }

    #[test]
    fn what_only_looks_like_a_marker_is_text() {
        assert_eq!(
            shown("[ [] [+1] [1x] [1 [0000000001] [9999999999999999999999]"),
            "<p>[ [] [+1] [1x] [1 [0000000001] [9999999999999999999999]</p>\n"
        );
        let many = shown(&"[1]".repeat(MOST_MARKERS + 5));
        assert_eq!(many.matches("<a").count(), MOST_MARKERS);
        assert!(many.ends_with("[1][1][1][1][1]</p>\n"));
    }
}
