//! Tags. Outside of code, those that texts are made up with go, and whatever else Markdown could take for one, or for a comment, is
//! broken by a blank.

use super::{
    judge::{LinkKind, is_allowed_address},
    step::{GuardStep, REMOVED},
};
use crate::answer::filter::{known::KnownReferences, lookahead::LookaheadEnd};

/// What texts are made up with in HTML: such a tag goes. Any other may be meant as it is written, like the `<T>` of a list's type,
/// and stays, made harmless.
const ELEMENTS: [&str; 76] = [
    "a",
    "abbr",
    "applet",
    "area",
    "audio",
    "b",
    "base",
    "big",
    "blockquote",
    "body",
    "br",
    "button",
    "center",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "figcaption",
    "figure",
    "font",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "html",
    "i",
    "iframe",
    "image",
    "img",
    "input",
    "ins",
    "kbd",
    "li",
    "link",
    "mark",
    "meta",
    "object",
    "ol",
    "p",
    "picture",
    "pre",
    "script",
    "section",
    "small",
    "source",
    "span",
    "strike",
    "strong",
    "style",
    "sub",
    "summary",
    "sup",
    "svg",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
    "use",
    "var",
    "video",
];

/// A tag with more attributes is none.
const MAX_ATTRIBUTES: usize = 64;

#[derive(Debug)]
enum HtmlTag {
    Is {
        name: String,
        /// One of its attributes has a value.
        has_values: bool,
        /// After the closing sign.
        end: usize,
    },
    /// It may still end.
    Open,
    /// A blank line came first, or too much.
    None,
}

/// Whether a text that begins with `<` could be a tag, a comment or the like. None while that depends on what follows.
pub(super) fn may_begin(view: &str, end: LookaheadEnd) -> Option<bool> {
    match view[1..].chars().next() {
        None if end == LookaheadEnd::Open => None,
        next => Some(next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))),
    }
}

/// Looks at a text that begins with `<`, outside of code. An escaped sign begins nothing in Markdown, but for a browser.
pub(super) fn tag(
    view: &str,
    end: LookaheadEnd,
    last: char,
    is_escaped: bool,
    known: &KnownReferences,
) -> GuardStep {
    match view[1..].chars().next() {
        None if end == LookaheadEnd::Open => return GuardStep::More(&[]),
        Some('/') => return closing(view, end),
        Some('!' | '?') => return GuardStep::Break,
        Some(letter) if letter.is_ascii_alphabetic() => {}
        _ => return GuardStep::Keep(1),
    }
    match read(view) {
        HtmlTag::Open if end == LookaheadEnd::Open => GuardStep::More(&['>', '\n']),
        HtmlTag::Open | HtmlTag::None => GuardStep::Break,
        HtmlTag::Is { name, has_values, end } => {
            let inner = &view[1..end - 1];
            if name.contains(':') && is_autolink(inner) {
                if is_allowed_address(inner, LinkKind::Link, known) {
                    return GuardStep::Keep(1);
                }
                return GuardStep::Replace { length: end, with: REMOVED, then: String::new() };
            }
            let is_known = ELEMENTS.contains(&name.as_str());
            // `List<a>` is no link, and `x<i>y` nothing that leans; and what is escaped is to be seen.
            let is_letter = name.len() == 1 && last.is_alphanumeric();
            let is_meant = !is_escaped && !is_letter;
            if is_known && (is_meant || has_values) {
                let with = if name == "br" { " " } else { "" };
                return GuardStep::Replace { length: end, with, then: String::new() };
            }
            let is_none = is_escaped && !is_known || is_no_name(inner);
            if is_none && !has_values && !has_scheme(&name) { GuardStep::Keep(1) } else { GuardStep::Break }
        }
    }
}

/// Looks at a text that begins with `</`.
fn closing(view: &str, end: LookaheadEnd) -> GuardStep {
    match view[2..].chars().next() {
        None if end == LookaheadEnd::Open => return GuardStep::More(&[]),
        Some(letter) if letter.is_ascii_alphabetic() => {}
        Some('!' | '?' | '/') => return GuardStep::Break,
        _ => return GuardStep::Keep(1),
    }
    match read(view) {
        HtmlTag::Open if end == LookaheadEnd::Open => GuardStep::More(&['>', '\n']),
        HtmlTag::Is { has_values: false, end, .. } => {
            GuardStep::Replace { length: end, with: "", then: String::new() }
        }
        HtmlTag::Open | HtmlTag::None | HtmlTag::Is { .. } => GuardStep::Break,
    }
}

/// Whether what follows a name makes it sure that this is no tag for Markdown. These signs always pass, so that nothing which goes can
/// bring the name and the end of a tag together.
fn is_no_name(inner: &str) -> bool {
    let name = |character: char| character.is_ascii_alphanumeric() || character == '-';
    inner.trim_start_matches(name).starts_with([',', '.', ':', ';', '@', '=', '+', '*', '_', '#', '%'])
}

/// Whether this is an address between angle brackets for anybody. Other blanks and other signs of control than these are a part of
/// it for some.
fn is_autolink(inner: &str) -> bool {
    has_scheme(inner) && !inner.contains(|character: char| character <= ' ' || character == '<')
}

/// Whether a text begins with what an address begins with, before the colon.
fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() >= 2
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

/// Reads a tag as browsers do, which take almost anything for one.
fn read(view: &str) -> HtmlTag {
    if let Some(blank) = view.find("\n\n") {
        // What a browser sees ends there in any case, if the tag does not end before.
        return match read_to(&view[..blank]) {
            HtmlTag::Open => HtmlTag::None,
            tag => tag,
        };
    }
    read_to(view)
}

fn read_to(view: &str) -> HtmlTag {
    let is_blank = |character: char| character.is_ascii_whitespace();
    let ends_name = |character: char| is_blank(character) || matches!(character, '/' | '>');
    let mut at = 1 + usize::from(view[1..].starts_with('/'));
    let name = &view[at..];
    let Some(length) = name.find(ends_name) else { return HtmlTag::Open };
    let name = name[..length].to_ascii_lowercase();
    at += length;
    let mut has_values = false;
    let mut attributes = 0;
    loop {
        let rest = &view[at..];
        at += rest.len() - rest.trim_start_matches(|character| is_blank(character) || character == '/').len();
        let rest = &view[at..];
        if rest.is_empty() {
            return HtmlTag::Open;
        }
        if rest.starts_with('>') {
            return HtmlTag::Is { name, has_values, end: at + 1 };
        }
        // An equals sign may begin a name.
        let Some(length) = rest
            .char_indices()
            .find(|(place, character)| ends_name(*character) || *character == '=' && *place > 0)
            .map(|(place, _)| place)
        else {
            return HtmlTag::Open;
        };
        if attributes == MAX_ATTRIBUTES {
            return HtmlTag::None;
        }
        attributes += 1;
        at += length;
        let rest = view[at..].trim_start_matches(is_blank);
        let Some(rest) = rest.strip_prefix('=') else {
            if rest.is_empty() {
                return HtmlTag::Open;
            }
            continue;
        };
        has_values = true;
        let rest = rest.trim_start_matches(is_blank);
        at = view.len() - rest.len();
        at += match rest.chars().next() {
            None => return HtmlTag::Open,
            Some(quote @ ('"' | '\'')) => match rest[1..].find(quote) {
                None => return HtmlTag::Open,
                Some(length) => length + 2,
            },
            Some(_) => match rest.find(|character| is_blank(character) || character == '>') {
                None => return HtmlTag::Open,
                Some(length) => length,
            },
        };
    }
}
