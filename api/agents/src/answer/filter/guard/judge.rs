//! Which addresses may stand in an answer.

use url::Url;

use super::LinkGuard;
use crate::answer::filter::{
    characters::{DecodedChar, decode, is_invisible, unit},
    known::KnownReferences,
    lookahead::LookaheadEnd,
};

/// A longer name of a scheme is none.
const LONGEST_SCHEME: usize = 32;

/// So many characters at the end of an address that goes on may get another meaning by what follows, as the beginning of an entity
/// does.
const UNSETTLED: usize = 32;

/// How often a destination is decoded: a program may do so for each format that a text passes through.
const MAX_ROUNDS: usize = 3;

/// What relative addresses are relative to, when they are looked at.
const OWN_HOST: &str = "own.invalid";

/// How strict an address is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// It is fetched on a click: the host must be known.
    Link,
    /// It is fetched at once: the whole address must be known, and a person must have named its host.
    Image,
}

/// Whether a destination, as it is written in a link or a tag, may stand in the answer: however it is decoded, it leads
/// nowhere else than to what is known.
pub(super) fn is_allowed_address(written: &str, kind: LinkKind, known: &KnownReferences) -> bool {
    let mut text = written.to_owned();
    // Markdown decodes escapes, a tag does not: there, what is escaped may be a delimiter.
    if written.contains('\\') && !is_fine(written, kind, known) {
        return false;
    }
    for _ in 0..MAX_ROUNDS {
        let decoded = decode(&text);
        let is_stable = decoded == text;
        if !is_fine(&decoded, kind, known) {
            return false;
        }
        if is_stable {
            return true;
        }
        text = decoded;
    }
    false
}

fn is_fine(text: &str, kind: LinkKind, known: &KnownReferences) -> bool {
    let spaced: String = text.chars().filter(|character| !matches!(character, '\t' | '\n' | '\r')).collect();
    let seen: String = spaced.chars().filter(|character| !is_invisible(*character)).collect();
    is_fine_as_read(&seen, kind, known) && (seen == spaced || is_fine_as_read(&spaced, kind, known))
}

fn is_fine_as_read(text: &str, kind: LinkKind, known: &KnownReferences) -> bool {
    let text = text.trim_matches(|character: char| character <= ' ');
    if text.is_empty() {
        return true;
    }
    if text.contains(|character: char| character.is_control() || "[]<>`".contains(character)) {
        return false;
    }
    let leads_on = |url: &Url| {
        known.has_host(url)
            && url.username().is_empty()
            && url.password().is_none()
            && (kind == LinkKind::Link || known.may_show(url))
            && !LinkGuard::would_remove(url.as_str(), known)
    };
    match scheme(text) {
        Some(scheme) if matches!(scheme.as_str(), "http" | "https") => {
            Url::parse(text).is_ok_and(|url| leads_on(&url))
        }
        Some(scheme) => scheme == "mailto" && kind == LinkKind::Link && !text.contains(['?', '&']),
        None => ["https", "http"].iter().any(|scheme| {
            let base = Url::parse(&format!("{scheme}://{OWN_HOST}/"));
            let Ok(url) = base.and_then(|base| base.join(text)) else { return false };
            let is_own = url.host_str() == Some(OWN_HOST) && !text.contains(OWN_HOST);
            if is_own { is_relative(text) && !LinkGuard::would_remove(text, known) } else { leads_on(&url) }
        }),
    }
}

/// What stands before the colon, where this reads as a scheme, or as anything but a path.
fn scheme(text: &str) -> Option<String> {
    let (before, _) = text.split_once(':')?;
    (!before.contains(['/', '?', '#'])).then(|| before.to_ascii_lowercase())
}

/// A path must not become an address when its own encoding is taken off.
fn is_relative(text: &str) -> bool {
    let start: String = text.chars().take(12).collect::<String>().to_ascii_lowercase();
    !["%2f%2f", "/%2f", "%5c", "/%5c", "%2f/"].iter().any(|prefix| start.starts_with(prefix))
        && !text.split(['/', '?', '#']).next().is_some_and(|part| part.to_ascii_lowercase().contains("%3a"))
}

/// Whether an address that may pass, and of which only the beginning is known, leads to the same host whatever follows.
pub(super) fn is_settled(written: &str) -> bool {
    let mut text = written.to_owned();
    for _ in 0..MAX_ROUNDS {
        text = decode(&text);
    }
    text.retain(|character| character > ' ' && !is_invisible(character));
    let settled = text.chars().count().saturating_sub(UNSETTLED);
    let known: String = text.chars().take(settled).collect();
    let scheme = scheme(&known);
    let rest = scheme.as_ref().map_or(&*known, |scheme| &known[scheme.len() + 1..]);
    let after = rest.trim_start_matches(['/', '\\']);
    let slashes = rest.len() - after.len();
    match scheme.as_deref() {
        Some("http" | "https") => after.contains(['/', '\\', '?', '#']),
        Some(_) => false,
        None if slashes > 1 => after.contains(['/', '\\', '?', '#']),
        None if slashes == 1 => !after.is_empty(),
        None => rest.contains(['/', '?', '#']),
    }
}

/// What the beginning of a text is, if it is an address as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressStart {
    /// The beginning of a path.
    Own,
    /// It depends on what follows.
    Open,
    /// Of an address that may lead elsewhere, and would not if it ended after so many bytes.
    Elsewhere(usize),
}

/// Looks how a text begins.
pub(super) fn start(text: &str, end: LookaheadEnd) -> AddressStart {
    let (mut at, mut letters, mut slashes) = (0, 0, 0);
    while let Some(first) = text[at..].chars().next() {
        // An entity may stand for any sign; backslashes stand for themselves, or for slashes.
        let (character, length) = match first {
            '&' => match unit(&text[at..], end == LookaheadEnd::Open) {
                DecodedChar::Is(character, length) => (character, length),
                DecodedChar::Open => return AddressStart::Open,
                DecodedChar::Nothing => return AddressStart::Own,
            },
            _ => (first, first.len_utf8()),
        };
        let has_begun = letters + slashes > 0;
        let is_dropped = is_invisible(character) || matches!(character, '\t' | '\n' | '\r');
        match character {
            _ if has_begun && is_dropped => {}
            // A blank as it is passes before the rest is looked at; this one is to be seen as more than its first sign.
            _ if !has_begun && first == '&' && (is_dropped || character <= ' ') => {}
            '/' | '\\' if letters == 0 && slashes == 0 => slashes = 1,
            '/' | '\\' if letters == 0 => return AddressStart::Elsewhere(at),
            ':' if letters > 0 => return AddressStart::Elsewhere(at),
            'a'..='z' | 'A'..='Z' if slashes == 0 && letters < LONGEST_SCHEME => letters += 1,
            '0'..='9' | '+' | '-' | '.' if letters > 0 && letters < LONGEST_SCHEME => letters += 1,
            _ => return AddressStart::Own,
        }
        at += length;
    }
    match end {
        LookaheadEnd::Open => AddressStart::Open,
        LookaheadEnd::Full | LookaheadEnd::Last => AddressStart::Own,
    }
}

/// Whether an address on this host, written with its port, may stand in the answer.
pub(super) fn is_known_host(authority: &str, known: &KnownReferences) -> bool {
    if authority.contains(['@', '\\']) {
        return false;
    }
    Url::parse(&format!("https://{authority}")).is_ok_and(|url| known.has_host(&url))
}
