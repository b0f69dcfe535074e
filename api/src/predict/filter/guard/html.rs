//! Tags, as a browser reads them.

use super::{
    End, Guard, Kind, REMOVED, Step,
    judge::{decode, may_pass},
};
use crate::predict::filter::known::Known;

/// Elements that act by themselves, or change what the others mean.
const ACTIVE: [&str; 12] = [
    "script", "style", "base", "meta", "link", "iframe", "frame", "frameset", "object", "embed", "form",
    "applet",
];

/// Attributes whose value is fetched.
const ADDRESSES: [&str; 19] = [
    "src",
    "href",
    "xlink:href",
    "data",
    "poster",
    "background",
    "action",
    "formaction",
    "longdesc",
    "manifest",
    "codebase",
    "classid",
    "profile",
    "usemap",
    "lowsrc",
    "dynsrc",
    "icon",
    "ping",
    "code",
];

/// Attributes that hold several addresses.
const ADDRESS_LISTS: [&str; 2] = ["srcset", "imagesrcset"];

/// A tag with more attributes is none.
const MAX_ATTRIBUTES: usize = 64;

#[derive(Debug)]
enum Tag {
    Is {
        name: String,
        /// Names in small letters; values as they are written.
        attributes: Vec<(String, String)>,
        /// After the closing sign.
        end: usize,
    },
    /// It may still end.
    Open,
    /// A blank line came first, or too much.
    None,
}

/// Looks at a text that begins with `<`.
pub(super) fn tag(view: &str, end: End, known: &Known, is_fenced: bool) -> Step {
    match view[1..].chars().next() {
        None if end == End::Open => return Step::More(&[]),
        Some(letter) if letter.is_ascii_alphabetic() => {}
        _ => return Step::Keep(1),
    }
    match read(view) {
        Tag::Open if end == End::Open => Step::More(&['>', '\n']),
        // Nothing that a browser could take for more than a sign.
        Tag::Open if end == End::Last && !view.contains(['=', ':', '/', '&', '\\']) => Step::Keep(1),
        Tag::Open | Tag::None => Step::Break,
        Tag::Is { name, attributes, end } => {
            if name.contains(':') && is_autolink(&view[1..end - 1]) {
                if may_pass(&view[1..end - 1], Kind::Link, known) {
                    return Step::Keep(1);
                }
                return Step::Replace { length: end, with: REMOVED, then: String::new() };
            }
            if is_harmless(&name, &attributes, known, is_fenced) {
                return Step::Keep(1);
            }
            Step::Replace { length: end, with: "", then: String::new() }
        }
    }
}

fn is_autolink(inner: &str) -> bool {
    inner.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() >= 2
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

fn is_harmless(name: &str, attributes: &[(String, String)], known: &Known, is_fenced: bool) -> bool {
    if ACTIVE.contains(&name) && !is_fenced {
        return false;
    }
    attributes.iter().all(|(attribute, value)| {
        let attribute = attribute.as_str();
        let is_clicked = attribute == "href" && matches!(name, "a" | "area") || attribute == "cite";
        if is_clicked {
            return may_pass(value, Kind::Link, known);
        }
        if ADDRESSES.contains(&attribute) {
            return may_pass(value, Kind::Image, known);
        }
        if ADDRESS_LISTS.contains(&attribute) {
            let mut parts = value.split(|character: char| character.is_whitespace() || character == ',');
            return parts.all(|part| may_pass(part, Kind::Image, known));
        }
        let read = decode(value);
        if Guard::finds_in(value, known) || Guard::finds_in(&read, known) {
            return false;
        }
        if attribute == "style" {
            let style = read.to_ascii_lowercase();
            return !["url", "image", "import", "src", "\\", "//"].iter().any(|part| style.contains(part))
                && !value.contains('\\');
        }
        is_fenced || !(attribute.starts_with("on") || matches!(attribute, "srcdoc" | "http-equiv"))
    })
}

/// Reads a tag as browsers do, which take almost anything for one.
fn read(view: &str) -> Tag {
    if let Some(blank) = view.find("\n\n") {
        // What a browser sees ends there in any case, if the tag does not end before.
        return match read_to(&view[..blank]) {
            Tag::Open => Tag::None,
            tag => tag,
        };
    }
    read_to(view)
}

fn read_to(view: &str) -> Tag {
    let is_blank = |character: char| character.is_ascii_whitespace();
    let ends_name = |character: char| is_blank(character) || matches!(character, '/' | '>');
    let mut at = 1;
    let name = &view[at..];
    let Some(length) = name.find(ends_name) else { return Tag::Open };
    let name = name[..length].to_ascii_lowercase();
    at += length;
    let mut attributes = Vec::new();
    loop {
        let rest = &view[at..];
        at += rest.len() - rest.trim_start_matches(|character| is_blank(character) || character == '/').len();
        let rest = &view[at..];
        if rest.is_empty() {
            return Tag::Open;
        }
        if rest.starts_with('>') {
            return Tag::Is { name, attributes, end: at + 1 };
        }
        // An equals sign may begin a name.
        let Some(length) = rest
            .char_indices()
            .find(|(place, character)| ends_name(*character) || *character == '=' && *place > 0)
            .map(|(place, _)| place)
        else {
            return Tag::Open;
        };
        if attributes.len() == MAX_ATTRIBUTES {
            return Tag::None;
        }
        let attribute = rest[..length].to_ascii_lowercase();
        at += length;
        let rest = view[at..].trim_start_matches(is_blank);
        let Some(rest) = rest.strip_prefix('=') else {
            if rest.is_empty() {
                return Tag::Open;
            }
            attributes.push((attribute, String::new()));
            continue;
        };
        let rest = rest.trim_start_matches(is_blank);
        at = view.len() - rest.len();
        let (value, length) = match rest.chars().next() {
            None => return Tag::Open,
            Some(quote @ ('"' | '\'')) => match rest[1..].find(quote) {
                None => return Tag::Open,
                Some(length) => (&rest[1..=length], length + 2),
            },
            Some(_) => match rest.find(|character| is_blank(character) || character == '>') {
                None => return Tag::Open,
                Some(length) => (&rest[..length], length),
            },
        };
        attributes.push((attribute, value.to_owned()));
        at += length;
    }
}
