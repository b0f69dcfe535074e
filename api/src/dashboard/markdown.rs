//! Answers of models as HTML. What a model writes is Markdown, and nothing of it is HTML: tags are shown as the text that they are,
//! pictures as their words, and links lead to the web alone.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream, html};

/// Writes a text as HTML. Where it cites a source as `[n]`, `cite` gives the mark that stands there, as HTML; nothing for a number that
/// is no source's.
pub(super) fn to_html(text: &str, cite: impl Fn(usize) -> Option<String>) -> String {
    let parser =
        TextMergeStream::new(Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH));
    let mut is_code = false;
    let mut events = Vec::new();
    for event in parser {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => events.push(Event::Text(text)),
            Event::Text(text) if !is_code => push_cited(&mut events, &text, &cite),
            Event::Start(Tag::CodeBlock(_)) => {
                is_code = true;
                // The language is the model's own word, and would stand in an attribute.
                events.push(Event::Start(Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Indented)));
            }
            Event::End(TagEnd::CodeBlock) => {
                is_code = false;
                events.push(Event::End(TagEnd::CodeBlock));
            }
            // What is in them is shown as words.
            Event::Start(Tag::Image { .. } | Tag::HtmlBlock)
            | Event::End(TagEnd::Image | TagEnd::HtmlBlock) => {}
            Event::Start(Tag::Link { dest_url, .. }) => {
                events.push(Event::InlineHtml(link(&dest_url).into()));
            }
            Event::End(TagEnd::Link) => events.push(Event::InlineHtml("</a>".into())),
            // The page has headings of its own above it.
            Event::Start(Tag::Heading { .. }) => {
                events.push(Event::Start(Tag::Paragraph));
                events.push(Event::Start(Tag::Strong));
            }
            Event::End(TagEnd::Heading(_)) => {
                events.push(Event::End(TagEnd::Strong));
                events.push(Event::End(TagEnd::Paragraph));
            }
            event => events.push(event),
        }
    }
    let mut written = String::with_capacity(text.len() * 2);
    html::push_html(&mut written, events.into_iter());
    written
}

/// The beginning of a link: to the web, or to nowhere.
fn link(url: &str) -> String {
    let is_web = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    if is_web {
        format!("<a href=\"{}\" rel=\"noopener noreferrer nofollow\">", escaped(url))
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

/// A text, with the marks of its sources.
fn push_cited<'a>(events: &mut Vec<Event<'a>>, text: &CowStr<'a>, cite: impl Fn(usize) -> Option<String>) {
    let mut rest: &str = text;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        let number = from.get(1..).and_then(|inner| inner.split_once(']')).map(|(number, _)| number);
        let mark = number.and_then(|number| number.parse().ok()).and_then(&cite);
        // The whole marker, or the bracket alone.
        let length = if mark.is_some() { number.map_or(1, |number| number.len() + 2) } else { 1 };
        let (marker, after) = from.split_at(length);
        let before = if mark.is_some() { before.to_owned() } else { format!("{before}{marker}") };
        if !before.is_empty() {
            events.push(Event::Text(before.into()));
        }
        events.extend(mark.map(|mark| Event::InlineHtml(mark.into())));
        rest = after;
    }
    if !rest.is_empty() {
        events.push(Event::Text(rest.to_owned().into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        to_html(text, |n| (n == 1).then(|| "<a class=\"cite\">1</a>".to_owned()))
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
}
