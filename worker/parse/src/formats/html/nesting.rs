//! A bound on how deep the elements of a page nest, kept before a tree is built of them.
//!
//! A tree builder looks through all open elements at every tag, so that deep nesting costs time by its square, and what
//! works on the tree afterwards may recurse. No honest page nests as deep as this allows (browsers stop at 512 themselves).

use std::{borrow::Cow, cell::RefCell, collections::HashMap};

use html5ever::{
    LocalName,
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};

/// Elements open at a time, without those that close by themselves.
const MAX_OPEN: usize = 200;
/// Formatting elements open at a time. One that is never closed is opened anew in every later paragraph.
const MAX_FORMATTING: usize = 40;

/// The page with what nests too deep made flat; the page itself if nothing does. In `xhtml`, a tag that closes itself is
/// followed by its end tag, which HTML needs to read it so.
pub(super) fn bounded(html: &str, xhtml: bool) -> Cow<'_, str> {
    let state = NestingState { output: String::with_capacity(html.len()), xhtml, ..NestingState::default() };
    let tokenizer = Tokenizer::new(NestingLimiter(RefCell::new(state)), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    while !input.is_empty() {
        let _nothing_to_wait_for = tokenizer.feed(&input);
    }
    tokenizer.end();
    let state = tokenizer.sink.0.into_inner();
    if state.changed { Cow::Owned(state.output) } else { Cow::Borrowed(html) }
}

struct NestingLimiter(RefCell<NestingState>);

#[derive(Default)]
struct NestingState {
    output: String,
    changed: bool,
    xhtml: bool,
    open: Vec<LocalName>,
    /// Start tags left out whose end tags are still to come.
    dropped: HashMap<LocalName, usize>,
    formatting: usize,
    /// Open elements of SVG and `MathML`: nothing closes by itself within them.
    foreign: usize,
    /// Whether text is script, style or the like, in which nothing is escaped.
    raw: bool,
}

impl TokenSink for NestingLimiter {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return state.start(&tag),
            Token::TagToken(tag) => state.end(&tag),
            Token::CharacterTokens(text) => state.text(&text),
            Token::DoctypeToken(doctype) => {
                if let Some(name) = doctype.name {
                    state.output.push_str("<!DOCTYPE ");
                    state.output.push_str(&name);
                    state.output.push('>');
                }
            }
            Token::CommentToken(_) | Token::NullCharacterToken | Token::EOFToken | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

impl NestingState {
    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = tag.name.as_ref();
        let is_void = is_void(name);
        let is_foreign = self.foreign > 0 || matches!(name, "svg" | "math");
        let closes_itself = tag.self_closing && (self.xhtml || is_foreign) && !is_void;
        let counts = !is_void && !closes_itself && (is_foreign || !ends_by_itself(name));
        if counts {
            let formats = is_formatting(name);
            if self.open.len() >= MAX_OPEN || (formats && self.formatting >= MAX_FORMATTING) {
                self.changed = true;
                *self.dropped.entry(tag.name.clone()).or_default() += 1;
                self.apart(formats);
                return TokenSinkResult::Continue;
            }
            self.open.push(tag.name.clone());
            self.formatting += usize::from(formats);
            self.foreign += usize::from(matches!(name, "svg" | "math"));
        }
        self.output.push('<');
        self.output.push_str(name);
        for attribute in &tag.attrs {
            self.output.push(' ');
            self.output.push_str(&attribute.name.local);
            self.output.push_str("=\"");
            escape(&mut self.output, &attribute.value, '"', "&quot;");
            self.output.push('"');
        }
        self.output.push('>');
        if closes_itself {
            self.changed = true;
            self.close(name);
            return TokenSinkResult::Continue;
        }
        if is_foreign {
            return TokenSinkResult::Continue;
        }
        let raw = match name {
            "script" => RawKind::ScriptData,
            "style" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" => RawKind::Rawtext,
            "title" | "textarea" => RawKind::Rcdata,
            "plaintext" => return TokenSinkResult::Plaintext,
            _ => return TokenSinkResult::Continue,
        };
        self.raw = raw != RawKind::Rcdata;
        TokenSinkResult::RawData(raw)
    }

    fn end(&mut self, tag: &Tag) {
        let name = tag.name.as_ref();
        self.raw = false;
        if self.foreign == 0 && (ends_by_itself(name) || is_void(name)) {
            self.close(name);
            return;
        }
        if let Some(left) = self.dropped.get_mut(&tag.name).filter(|left| **left > 0) {
            *left -= 1;
            self.apart(is_formatting(name));
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| *open == tag.name) {
            let closed = self.open.drain(at..);
            self.foreign -= closed.filter(|name| matches!(name.as_ref(), "svg" | "math")).count();
            if is_formatting(name) {
                self.formatting = self.formatting.saturating_sub(1);
            }
            self.close(name);
        } else if ends_by_itself(name) {
            self.close(name);
        } else if is_formatting(name) {
            // Closed by the tree with a block around it, but still on the list of what is opened anew.
            self.formatting = self.formatting.saturating_sub(1);
            self.close(name);
        }
    }

    /// What stood apart by an element that is left out still stands apart.
    fn apart(&mut self, is_formatting: bool) {
        if !is_formatting && !self.output.ends_with("<br>") {
            self.output.push_str("<br>");
        }
    }

    fn close(&mut self, name: &str) {
        self.output.push_str("</");
        self.output.push_str(name);
        self.output.push('>');
    }

    fn text(&mut self, text: &str) {
        if self.raw {
            self.output.push_str(text);
        } else {
            escape(&mut self.output, text, '<', "&lt;");
        }
    }
}

fn escape(output: &mut String, text: &str, special: char, escaped: &str) {
    for c in text.chars() {
        match c {
            '&' => output.push_str("&amp;"),
            c if c == special => output.push_str(escaped),
            c => output.push(c),
        }
    }
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "image"
            | "img"
            | "input"
            | "keygen"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements whose end tags may be left out: the next one of them closes the last, so they do not nest by themselves.
fn ends_by_itself(name: &str) -> bool {
    matches!(
        name,
        "html"
            | "head"
            | "body"
            | "p"
            | "li"
            | "dt"
            | "dd"
            | "option"
            | "caption"
            | "colgroup"
            | "thead"
            | "tbody"
            | "tfoot"
            | "tr"
            | "td"
            | "th"
    )
}

fn is_formatting(name: &str) -> bool {
    matches!(
        name,
        "a" | "b"
            | "big"
            | "code"
            | "em"
            | "font"
            | "i"
            | "nobr"
            | "s"
            | "small"
            | "strike"
            | "strong"
            | "tt"
            | "u"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_page_is_left_as_it_is() {
        let html =
            "<!DOCTYPE html><title>a & b</title><p>one<p>two<ul><li>x<li>y</ul><script>if (a<b) {}</script>";
        assert!(matches!(bounded(html, false), Cow::Borrowed(same) if same == html));
    }

    #[test]
    fn many_paragraphs_that_are_never_closed_do_not_nest() {
        let html = "<p>one<li>two<tr><td>three".repeat(10_000);
        assert!(matches!(bounded(&html, false), Cow::Borrowed(_)));
    }

    #[test]
    fn what_nests_too_deep_is_made_flat_and_keeps_its_text() {
        let html =
            format!("<p>before{}deep &lt;b&gt;{}<p>after", "<div>".repeat(5000), "</div>".repeat(5000));
        let flat = bounded(&html, false);
        assert_eq!(flat.matches("<div>").count(), MAX_OPEN);
        assert_eq!(flat.matches("</div>").count(), MAX_OPEN);
        for kept in ["before", "deep &lt;b>", "after"] {
            assert!(flat.contains(kept), "{kept}");
        }
    }

    #[test]
    fn formatting_that_is_never_closed_does_not_pile_up() {
        let html: String =
            (0..5000).map(|n| ["<div><font color=", &n.to_string(), ">t</div>"].concat()).collect();
        assert_eq!(bounded(&html, false).matches("<font").count(), MAX_FORMATTING);
    }

    #[test]
    fn rows_nest_within_drawings_and_are_bounded_there() {
        let html = format!("<svg>{}", "<tr>".repeat(5000));
        assert!(bounded(&html, false).matches("<tr>").count() < MAX_OPEN);
    }

    #[test]
    fn xhtml_tags_that_close_themselves_are_closed() {
        let html = r#"<title/><p>a<a id="x"/>b<br/>c</p><script src="s.js"/><p>d</p>"#;
        assert_eq!(
            bounded(html, true),
            r#"<title></title><p>a<a id="x"></a>b<br>c</p><script src="s.js"></script><p>d</p>"#
        );
    }
}
