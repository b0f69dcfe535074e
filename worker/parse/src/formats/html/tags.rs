//! The start tags of a page, found in one pass without building anything: for what must not cost more than its length.
//!
//! A tokenizer compares every attribute of a tag with all before it, so that one tag of a megabyte takes a minute.

use std::{borrow::Cow, ops::Range};

/// Attributes that a tag keeps.
const MAX_ATTRIBUTES: usize = 300;

/// A start tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartTag<'a> {
    /// Its name, as it is written.
    pub(super) name: &'a str,
    /// All of it, in bytes of the page.
    pub(super) range: Range<usize>,
    /// How many attributes it has.
    pub(super) attributes: usize,
    /// What of it is attributes beyond the most that are kept.
    excess: Option<Range<usize>>,
}

/// The page without the attributes of tags that have far too many.
pub(super) fn with_few_attributes(html: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut from = 0;
    for excess in start_tags(html).filter_map(|tag| tag.excess) {
        kept.push_str(html.get(from..excess.start).unwrap_or_default());
        from = excess.end;
    }
    if from == 0 {
        return Cow::Borrowed(html);
    }
    kept.push_str(html.get(from..).unwrap_or_default());
    Cow::Owned(kept)
}

/// The start tags of a page in its order, without those in comments and scripts.
pub(super) fn start_tags(html: &str) -> impl Iterator<Item = StartTag<'_>> {
    let mut scanner = TagScanner { html, at: 0, unclosed: [false; RAW.len()] };
    std::iter::from_fn(move || scanner.next_tag())
}

/// Elements in which there are no tags.
const RAW: [&str; 9] =
    ["script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript"];

struct TagScanner<'a> {
    html: &'a str,
    at: usize,
    /// Of which of [`RAW`] it is known that none is closed any more, so that it is not looked for again.
    unclosed: [bool; RAW.len()],
}

impl<'a> TagScanner<'a> {
    fn next_tag(&mut self) -> Option<StartTag<'a>> {
        loop {
            let start = self.at + self.rest().find('<')?;
            self.at = start + 1;
            match self.peek() {
                Some(b'!') if self.rest().starts_with("!--") => self.comment(),
                Some(b'!' | b'?') => self.skip_past(">"),
                Some(b'/') => {
                    self.at += 1;
                    match self.peek() {
                        Some(letter) if letter.is_ascii_alphabetic() => {
                            self.tag(start);
                        }
                        Some(_) => self.skip_past(">"),
                        None => return None,
                    }
                }
                Some(letter) if letter.is_ascii_alphabetic() => {
                    let tag = self.tag(start);
                    self.skip_raw(tag.name);
                    return Some(tag);
                }
                _ => {}
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.html.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.html.as_bytes().get(self.at).copied()
    }

    fn skip_past(&mut self, end: &str) {
        self.at = self.rest().find(end).map_or(self.html.len(), |at| self.at + at + end.len());
    }

    fn skip_while(&mut self, is_it: impl Fn(u8) -> bool) {
        let rest = self.html.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !is_it(*byte)).unwrap_or(rest.len());
    }

    fn comment(&mut self) {
        self.at += 3;
        if self.rest().starts_with('>') || self.rest().starts_with("->") {
            self.skip_past(">");
        } else {
            // The hyphens of its beginning may be those of its end.
            self.skip_past("-->");
        }
    }

    /// Reads a tag whose name comes next.
    fn tag(&mut self, start: usize) -> StartTag<'a> {
        let from = self.at;
        self.skip_while(|byte| !is_blank(byte) && !matches!(byte, b'/' | b'>'));
        let name = self.html.get(from..self.at).unwrap_or_default();
        let (mut attributes, mut excess) = (0, None);
        loop {
            self.skip_while(|byte| is_blank(byte) || byte == b'/');
            match self.peek() {
                None | Some(b'>') => break,
                Some(_) => {}
            }
            attributes += 1;
            if attributes > MAX_ATTRIBUTES {
                excess = excess.or(Some(self.at));
            }
            self.attribute();
        }
        let excess = excess.map(|start| start..self.at);
        self.at = (self.at + 1).min(self.html.len());
        StartTag { name, range: start..self.at, attributes, excess }
    }

    fn attribute(&mut self) {
        // An equals sign at the beginning is part of the name.
        let first = self.html.get(self.at..).and_then(|rest| rest.chars().next());
        self.at += first.map_or(0, char::len_utf8);
        self.skip_while(|byte| !is_blank(byte) && !matches!(byte, b'/' | b'>' | b'='));
        let end_of_name = self.at;
        self.skip_while(is_blank);
        if self.peek() != Some(b'=') {
            self.at = end_of_name;
            return;
        }
        self.at += 1;
        self.skip_while(is_blank);
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.skip_past("\"");
            }
            Some(b'\'') => {
                self.at += 1;
                self.skip_past("'");
            }
            _ => self.skip_while(|byte| !is_blank(byte) && byte != b'>'),
        }
    }

    /// Goes to the end tag of an element in which there are no tags.
    fn skip_raw(&mut self, name: &str) {
        if name.eq_ignore_ascii_case("plaintext") {
            self.at = self.html.len();
        }
        let Some(raw) = RAW.iter().position(|raw| raw.eq_ignore_ascii_case(name)) else { return };
        let Some(unclosed) = self.unclosed.get_mut(raw) else { return };
        if *unclosed {
            self.at = self.html.len();
            return;
        }
        let bytes = self.html.as_bytes();
        let mut from = self.at;
        while let Some(at) = self.html.get(from..).and_then(|rest| rest.find("</")).map(|at| from + at) {
            let end = at + 2 + name.len();
            let is_it = bytes.get(at + 2..end).is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()));
            if is_it && bytes.get(end).is_none_or(|byte| is_blank(*byte) || matches!(byte, b'/' | b'>')) {
                self.at = at;
                return;
            }
            from = at + 2;
        }
        *unclosed = true;
        self.at = self.html.len();
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_tags_are_found_where_a_browser_sees_them() {
        let html = "<!doctype html><p>a < b<!-- <i> --><b x='>' y=\"<u>\" z=/q>t</b><script>if (a<b) '<s>'</script ><br/>\
                    <title><em></title><?x <tt?><!--><q><a";
        let names: Vec<_> = start_tags(html).map(|tag| tag.name).collect();
        assert_eq!(names, ["p", "b", "script", "br", "title", "q", "a"]);
        let b = start_tags(html).find(|tag| tag.name == "b").unwrap();
        assert_eq!(&html[b.range], "<b x='>' y=\"<u>\" z=/q>");
    }

    #[test]
    fn a_tag_keeps_its_first_attributes() {
        let many: String = (0..1000).map(|n| ["a", &n.to_string(), "='>' "].concat()).collect();
        let html = format!("<p>before<div {many}>inside</div><i>after</i>");
        let few = with_few_attributes(&html);
        assert_eq!(few.matches("='>'").count(), MAX_ATTRIBUTES);
        assert!(few.ends_with(" >inside</div><i>after</i>"), "{few}");
        assert!(matches!(with_few_attributes("<p a=1>text"), Cow::Borrowed("<p a=1>text")));
    }
}
