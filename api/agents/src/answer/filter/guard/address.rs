//! Addresses that stand in the text itself.

use url::{Host, Url};

use super::{judge::is_known_host, step::GuardStep};
use crate::answer::filter::{
    characters::{DecodedChar, is_invisible, unit},
    known::KnownReferences,
    lookahead::LookaheadEnd,
};

/// What an address begins with that is recognised before its host.
const HEADS: [&str; 11] = [
    "http:",
    "https:",
    "www.",
    "mailto:",
    "javascript:",
    "vbscript:",
    "data:",
    "ftp:",
    "file:",
    "ws:",
    "wss:",
];

/// A longer host, as it is written, is none.
const LONGEST_HOST: usize = 400;

/// The most signs after a foreign address that are kept for the sentence.
const MAX_TRAILING: usize = 16;

/// Looks at a text that may begin with an address; `last` is what stands before it.
pub(super) fn bare(view: &str, end: LookaheadEnd, last: char, known: &KnownReferences) -> GuardStep {
    let is_open = end == LookaheadEnd::Open;
    let first = match unit(view, is_open) {
        DecodedChar::Is(first, _) => first,
        DecodedChar::Open => return GuardStep::More(&[]),
        DecodedChar::Nothing => return GuardStep::Keep(view.len()),
    };
    if first == '/' {
        return slashes(view, end, last, known);
    }
    if first.is_ascii_alphabetic() && !last.is_ascii_alphanumeric() {
        match head(view, is_open) {
            AddressPrefix::Open => return GuardStep::More(&[]),
            AddressPrefix::Is(head, length) => return after_head(view, head, length, end, known),
            AddressPrefix::None => {}
        }
    }
    GuardStep::Keep(view.chars().next().map_or(0, char::len_utf8))
}

enum AddressPrefix {
    Open,
    None,
    Is(&'static str, usize),
}

fn head(view: &str, is_open: bool) -> AddressPrefix {
    let mut word = String::new();
    let mut at = 0;
    loop {
        match unit(&view[at..], is_open) {
            DecodedChar::Open => return AddressPrefix::Open,
            DecodedChar::Nothing => return AddressPrefix::None,
            DecodedChar::Is(character, length) => {
                at += length;
                if is_invisible(character) {
                    continue;
                }
                word.push(character.to_ascii_lowercase());
            }
        }
        if let Some(head) = HEADS.into_iter().find(|head| *head == word) {
            return AddressPrefix::Is(head, at);
        }
        if !HEADS.iter().any(|head| head.starts_with(&word)) {
            return AddressPrefix::None;
        }
    }
}

fn after_head(
    view: &str,
    head: &str,
    length: usize,
    end: LookaheadEnd,
    known: &KnownReferences,
) -> GuardStep {
    let is_open = end == LookaheadEnd::Open;
    let next = match unit(&view[length..], is_open) {
        DecodedChar::Open => return GuardStep::More(&[]),
        DecodedChar::Nothing => return GuardStep::Keep(length),
        DecodedChar::Is(next, _) => next,
    };
    let is_over =
        next.is_whitespace() || matches!(next, '"' | '\'' | '`' | ')' | '>' | ',' | '.' | ';' | '*' | '|');
    match head {
        _ if is_over => GuardStep::Keep(length),
        "http:" | "https:" => {
            let mut at = length;
            loop {
                match unit(&view[at..], is_open) {
                    DecodedChar::Open => return GuardStep::More(&[]),
                    DecodedChar::Is('/' | '\\', length) => at += length,
                    DecodedChar::Is(character, length) if is_invisible(character) => at += length,
                    DecodedChar::Is(..) | DecodedChar::Nothing => break,
                }
            }
            at_host(view, at, end, known)
        }
        "www." => at_host(view, 0, end, known),
        "mailto:" => mail(view, length, is_open),
        "data:" => match data(&view[length..], is_open) {
            None => GuardStep::More(&[]),
            Some(true) => GuardStep::Swallow(length),
            Some(false) => GuardStep::Keep(length),
        },
        "javascript:" | "vbscript:" => GuardStep::Swallow(length),
        _ if next == '/' || next == '\\' => match unit(&view[length + 1..], is_open) {
            DecodedChar::Open => GuardStep::More(&[]),
            DecodedChar::Is('/' | '\\', _) => GuardStep::Swallow(length),
            _ => GuardStep::Keep(length),
        },
        _ => GuardStep::Keep(length),
    }
}

/// Judges the host that begins at `at`.
fn at_host(view: &str, at: usize, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
    match authority(view, at, end) {
        None => GuardStep::More(&[]),
        // Slashes that no host follows are no address.
        Some(host) if host.text.is_empty() && !host.is_odd => GuardStep::Keep(host.end.max(1)),
        Some(host) if !host.is_odd && is_known_host(&host.text, known) => GuardStep::Keep(host.end),
        Some(host) => {
            GuardStep::Swallow(if host.text.starts_with('[') { host.end } else { at.min(host.end) })
        }
    }
}

/// Two slashes or more, which a host may follow.
fn slashes(view: &str, end: LookaheadEnd, last: char, known: &KnownReferences) -> GuardStep {
    let is_open = end == LookaheadEnd::Open;
    let mut at = 0;
    let mut count = 0;
    loop {
        match unit(&view[at..], is_open) {
            DecodedChar::Open => return GuardStep::More(&[]),
            DecodedChar::Is('/' | '\\', length) => {
                at += length;
                count += 1;
            }
            DecodedChar::Is(..) | DecodedChar::Nothing => break,
        }
    }
    // After a name they are part of a path.
    if count < 2 || last.is_ascii_alphanumeric() || matches!(last, '.' | '_' | '-' | '%' | '~') {
        return GuardStep::Keep(at);
    }
    let Some(host) = authority(view, at, end) else { return GuardStep::More(&[]) };
    let has_scheme = last == ':';
    if host.text.is_empty() || !(has_scheme || host.is_odd || reads_as_host(&host.text)) {
        return GuardStep::Keep(at);
    }
    // Of the schemes, those that may pass were recognised before.
    if !has_scheme && !host.is_odd && is_known_host(&host.text, known) {
        return GuardStep::Keep(host.end);
    }
    GuardStep::Swallow(if host.text.starts_with('[') { host.end } else { at })
}

/// Whether this is a host even where no scheme stands before it, and not a comment in a program.
fn reads_as_host(text: &str) -> bool {
    let Ok(url) = Url::parse(&format!("https://{text}")) else { return false };
    match url.host() {
        None => false,
        Some(Host::Ipv4(_)) => text.contains('.') || text.len() > 4,
        Some(Host::Ipv6(_)) => true,
        Some(Host::Domain(name)) => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
            let top = name.trim_end_matches('.').rsplit_once('.').map_or("", |(_, top)| top);
            top.len() >= 2 && !top.bytes().all(|byte| byte.is_ascii_digit()) && name.bytes().all(is_name)
        }
    }
}

struct UrlAuthority {
    /// As it is meant, without the sentence's signs at its end.
    text: String,
    /// Where it ends, as it is written.
    end: usize,
    /// Programs do not agree on where it ends.
    is_odd: bool,
}

/// The host with its port that begins at `start`. None while it may go on.
fn authority(view: &str, start: usize, view_ends: LookaheadEnd) -> Option<UrlAuthority> {
    let mut text = String::new();
    let mut at = start;
    let mut ended = false;
    let mut end = start;
    let mut is_odd = false;
    loop {
        if at - start > LONGEST_HOST {
            is_odd |= !ended;
            break;
        }
        let (character, length) = match unit(&view[at..], view_ends == LookaheadEnd::Open) {
            DecodedChar::Open => return None,
            DecodedChar::Nothing => {
                // What follows may belong to the host, and nobody will look at both.
                is_odd |= view_ends == LookaheadEnd::Full;
                break;
            }
            DecodedChar::Is(character, length) => (character, length),
        };
        if is_hard_end(character) {
            // Some read it as a slash, some as part of the name before an `@`.
            is_odd |= character == '\\' && !ended && !text.is_empty();
            break;
        }
        // What ends it for one program is a user's name for another.
        is_odd |= character == '@';
        ended |= if text.starts_with('[') {
            text.ends_with(']') && character != ':'
        } else {
            is_soft_end(character)
        };
        if !ended {
            text.push(character);
            end = at + length;
        }
        at += length;
    }
    let kept = text.trim_end_matches(is_trailing).len();
    // Signs at the end are written as themselves, as far as they are passed on separately.
    let trimmed = &text[kept..];
    if view[..end].ends_with(trimmed) {
        end -= trimmed.len();
    }
    text.truncate(kept);
    Some(UrlAuthority { text, end, is_odd })
}

fn is_hard_end(character: char) -> bool {
    character <= ' ' || character == '\u{7F}' || matches!(character, '<' | '/' | '\\' | '?' | '#')
}

fn is_soft_end(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(
            character,
            '>' | '"'
                | '`'
                | '\''
                | ')'
                | ']'
                | '|'
                | ','
                | ';'
                | '*'
                | '“'
                | '”'
                | '‘'
                | '’'
                | '«'
                | '»'
                | '）'
                | '】'
                | '」'
                | '』'
                | '》'
                | '，'
                | '、'
                | '；'
                | '：'
                | '！'
                | '？'
        )
}

const fn is_trailing(character: char) -> bool {
    matches!(character, '.' | ':' | '!' | '_' | '~' | '}' | '。')
}

/// Whether something of a kind of data follows. None while it may.
fn data(rest: &str, is_open: bool) -> Option<bool> {
    for character in rest.chars().take(40) {
        match character {
            ';' | ',' | '/' => return Some(true),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '+' | '.' => {}
            _ => return Some(false),
        }
    }
    if is_open && rest.chars().count() < 40 { None } else { Some(false) }
}

/// An address for mail, which passes if it holds nothing but that.
fn mail(view: &str, start: usize, is_open: bool) -> GuardStep {
    let mut at = start;
    while at - start < LONGEST_HOST {
        match unit(&view[at..], is_open) {
            DecodedChar::Open => return GuardStep::More(&[]),
            DecodedChar::Is('?' | '&', _) => return GuardStep::Swallow(start),
            DecodedChar::Is(character, length) if !is_hard_end(character) && !is_soft_end(character) => {
                at += length;
            }
            // The rest is looked at by itself.
            DecodedChar::Is(..) | DecodedChar::Nothing => return GuardStep::Keep(start),
        }
    }
    GuardStep::Swallow(start)
}

/// A foreign address that is going.
#[derive(Debug)]
pub(super) struct RemovedAddress {
    depth: usize,
    /// The signs that end it so far: the sentence's, if it ends here.
    trailing: String,
}

impl RemovedAddress {
    pub(super) const fn new() -> Self {
        Self { depth: 0, trailing: String::new() }
    }

    /// Takes the next character; what is not part of the address, once it has ended.
    pub(super) fn feed(&mut self, character: char) -> Option<String> {
        let is_end = match character {
            '(' => {
                self.depth += 1;
                false
            }
            ')' if self.depth > 0 => {
                self.depth -= 1;
                false
            }
            '\'' | ',' | ';' | '*' | '！' | '？' => false,
            _ => is_soft_end(character) || character <= ' ' || matches!(character, '<' | '。'),
        };
        if is_end {
            self.trailing.push(character);
            return Some(std::mem::take(&mut self.trailing));
        }
        if matches!(character, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' | '~' | '}' | '！' | '？')
            && self.trailing.len() < MAX_TRAILING
        {
            self.trailing.push(character);
        } else {
            self.trailing.clear();
        }
        None
    }

    /// What is left if nothing follows.
    pub(super) fn finish(self) -> String {
        self.trailing
    }
}
