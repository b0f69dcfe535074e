//! Answers of models as HTML. What a model writes is Markdown, and nothing of it is HTML: tags are shown as the text that they are,
//! pictures as their words, and links lead to the web alone.

use std::{collections::VecDeque, fmt::Write, iter, ops::Range, vec};

use lectern_agents::answer::{AnswerMarker, markdown_steps};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The most that a parser is given to do for one answer, in bytes that it goes past: it takes a twentieth of a second at the worst, and
/// is more than an answer takes that somebody reads. The thread has others to serve.
const MOST_STEPS: usize = 128 << 10;

/// Writes a text as HTML. Where it cites sources, as `[1]`, `[1, 2]` or in whichever form the citations were read from, `cite` is given each
/// number and all that is said before it, and gives the mark that stands there, as HTML; nothing for a number that is no source's. A text
/// that would keep a parser busy is shown as it was written, in paragraphs.
pub(super) fn to_html(text: &str, cite: impl FnMut(usize, &str) -> Option<String>) -> String {
    let mut written = String::with_capacity(text.len() * 2);
    if markdown_steps(text).is_some_and(|steps| steps <= MOST_STEPS) {
        let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
        html::push_html(&mut written, ShownEvents::new(text, parser.into_offset_iter(), cite));
    } else {
        html::push_html(&mut written, ShownEvents::new(text, paragraphs(text), cite));
    }
    written
}

/// A text as it was written: a paragraph up to each blank line, with its lines below each other. Each event with its bytes of the text.
fn paragraphs(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    let (mut at, mut is_open) = (0, false);
    // What ends the last paragraph.
    let lines = text.split_inclusive('\n').chain(iter::once(""));
    lines.flat_map(move |line| {
        let begin = at;
        at += line.len();
        let words = line.strip_suffix('\n').unwrap_or(line);
        if words.is_empty() {
            let end = std::mem::take(&mut is_open).then_some(Event::End(TagEnd::Paragraph));
            return end.map(|end| (end, begin..begin)).into_iter().collect::<Vec<_>>();
        }
        let start = (!std::mem::replace(&mut is_open, true)).then_some(Event::Start(Tag::Paragraph));
        let words = words.strip_suffix('\r').unwrap_or(words);
        let (said, end) = (begin..begin + words.len(), begin + words.len());
        let written = [(Event::Text(words.into()), said), (Event::HardBreak, end..end)];
        start.map(|start| (start, begin..begin)).into_iter().chain(written).collect()
    })
}

/// What is read of an answer, as it is shown. It is made piece by piece: a megabyte can be a million pieces.
struct ShownEvents<'a, E, C> {
    /// The answer as it was written.
    answer: &'a str,
    events: E,
    cite: C,
    /// Its markers that are still to come.
    markers: iter::Peekable<vec::IntoIter<AnswerMarker>>,
    /// Where the last marker ends that became marks, in bytes of the answer: what is read of it is not shown besides.
    marked_to: usize,
    /// All that was said so far, without the markers that became marks.
    said: String,
    is_code: bool,
    is_link: bool,
    /// What comes before anything else is read.
    next: VecDeque<Event<'a>>,
}

impl<'a, E, C> Iterator for ShownEvents<'a, E, C>
where
    E: Iterator<Item = (Event<'a>, Range<usize>)>,
    C: FnMut(usize, &str) -> Option<String>,
{
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            if let Some(event) = self.next.pop_front() {
                return Some(event);
            }
            let (event, bytes) = self.events.next()?;
            self.show(event, bytes);
        }
    }
}

impl<'a, E, C> ShownEvents<'a, E, C>
where
    C: FnMut(usize, &str) -> Option<String>,
{
    fn new(answer: &'a str, events: E, cite: C) -> Self {
        Self {
            answer,
            events,
            cite,
            markers: AnswerMarker::all(answer).into_iter().peekable(),
            marked_to: 0,
            said: String::new(),
            is_code: false,
            is_link: false,
            next: VecDeque::new(),
        }
    }

    fn show(&mut self, event: Event<'a>, bytes: Range<usize>) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => self.show_cited(text, bytes),
            Event::Text(text) if !self.is_code => self.show_cited(text, bytes),
            // A marker may be broken over two lines.
            Event::SoftBreak | Event::HardBreak if bytes.start < self.marked_to => {}
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
                self.is_link = true;
                self.next.push_back(Event::InlineHtml(link(&dest_url).into()));
            }
            Event::End(TagEnd::Link) => {
                self.is_link = false;
                self.next.push_back(Event::InlineHtml("</a>".into()));
            }
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

    fn say(&mut self, text: CowStr<'a>) {
        if !text.is_empty() {
            self.said.push_str(&text);
            self.next.push_back(Event::Text(text));
        }
    }

    /// A text that was read from these bytes, with the marks of its sources.
    fn show_cited(&mut self, text: CowStr<'a>, bytes: Range<usize>) {
        let answer = self.answer;
        // A character that is written by its name is no part of a marker, and a link has no other one in it.
        if self.is_link || answer.get(bytes.clone()) != Some(&*text) {
            self.say(text);
            return;
        }
        let mut at = bytes.start.max(self.marked_to).min(bytes.end);
        while let Some(marker) = self.markers.next_if(|marker| marker.bytes.start < bytes.end) {
            // Those before it were read as something else, such as the text of a link.
            if marker.bytes.start < at {
                continue;
            }
            self.say(answer.get(at..marker.bytes.start).unwrap_or_default().into());
            at = marker.bytes.start;
            if let Some(marks) = self.marks(&marker.numbers) {
                self.next.push_back(Event::InlineHtml(marks.into()));
                self.marked_to = marker.bytes.end;
                at = marker.bytes.end.min(bytes.end);
            }
        }
        self.say(answer.get(at..bytes.end).unwrap_or_default().into());
    }

    /// The marks of what a marker cites, beside those of its numbers that are no source's; none when all of them are that.
    fn marks(&mut self, numbers: &[usize]) -> Option<String> {
        let (mut marks, mut has_source) = (String::new(), false);
        for n in numbers {
            match (self.cite)(*n, &self.said) {
                Some(mark) => {
                    has_source = true;
                    marks.push_str(&mark);
                }
                None => {
                    // Writing to a string cannot fail.
                    let _ = write!(marks, "[{n}]");
                }
            }
        }
        has_source.then_some(marks)
    }
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
    fn each_number_is_a_link_in_whichever_form_it_is_cited() {
        let all = |text: &str| {
            let html = to_html(text, |n, _| (n < 5).then(|| format!("<a>{n}</a>")));
            html.trim_end().trim_start_matches("<p>").trim_end_matches("</p>").to_owned()
        };
        for (text, html) in [
            ("One [1, 2].", "One <a>1</a><a>2</a>."),
            ("One [1-3].", "One <a>1</a><a>2</a><a>3</a>."),
            ("One【1】 & 【2、4】", "One<a>1</a> &amp; <a>2</a><a>4</a>"),
            ("One [1,\n2] so", "One <a>1</a><a>2</a> so"),
            ("*One [1;2]*", "<em>One <a>1</a><a>2</a></em>"),
            ("A <b>tag</b> [1, 2]", "A &lt;b&gt;tag&lt;/b&gt; <a>1</a><a>2</a>"),
            // A number that is no source's stays what it is, and so does all that is no marker to the reader of citations.
            ("One [1, 9].", "One <a>1</a>[9]."),
            ("None [8, 9] of [2024].", "None [8, 9] of [2024]."),
            ("As \\[1] and `[1, 2]` and &#91;1]", "As [1] and <code>[1, 2]</code> and [1]"),
        ] {
            assert_eq!(all(text), html, "{text}");
        }
        assert!(all("see [1](https://a.example)").ends_with("nofollow\">1</a>"));
        let deep = format!("{}[1, 2]", "> ".repeat(100));
        assert!(all(&deep).contains("<a>1</a><a>2</a>"), "a text that is shown as it was written");
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
        let many = shown(&"[1]".repeat(AnswerMarker::MOST_NUMBERS + 5));
        assert_eq!(many.matches("<a").count(), AnswerMarker::MOST_NUMBERS);
        assert!(many.ends_with("[1][1][1][1][1]</p>\n"));
    }
}
