//! What an answer may cite and link to.

use std::collections::HashSet;

use url::{Host, Url};

use super::characters::decode;
use crate::answer::cite::written_markers;

/// The most that is remembered, whatever the texts hold: hosts, addresses, and the latter's bytes.
const MAX_HOSTS: usize = 50_000;
const MAX_ADDRESSES: usize = 50_000;
const MAX_ADDRESS_BYTES: usize = 8 << 20;
const MAX_MARKERS: usize = 4_096;

/// A longer address is not remembered.
const LONGEST_ADDRESS: usize = 4_096;
/// The longest name of a host, with a port.
const LONGEST_HOST: usize = 260;

/// How many signs after an address may be the sentence's.
const MAX_TRIMMED: usize = 6;

/// The sources, hosts and addresses that are known.
#[derive(Debug, Default)]
pub(super) struct KnownReferences {
    sources: HashSet<usize>,
    hosts: HashSet<String>,
    /// Those of them that a person named: who asks, who wrote the agent's prompt, or the operator.
    asked: HashSet<String>,
    addresses: HashSet<String>,
    address_bytes: usize,
    markers: HashSet<String>,
}

impl KnownReferences {
    pub(super) fn add_source(&mut self, n: usize) {
        self.sources.insert(n);
    }

    pub(super) fn has_source(&self, n: usize) -> bool {
        self.sources.contains(&n)
    }

    /// Whether a text holds these very characters, which look like a marker.
    pub(super) fn has_marker(&self, written: &str) -> bool {
        self.markers.contains(written)
    }

    /// Whether a text names the host of this address.
    pub(super) fn has_host(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| self.hosts.contains(host.trim_end_matches('.')))
    }

    /// Whether the image at this address may be shown: a text holds the address, and a person has named its host. Of a list of
    /// addresses in a document, which of them are fetched could tell anything.
    pub(super) fn may_show(&self, url: &Url) -> bool {
        self.addresses.contains(url.as_str())
            && url.host_str().is_some_and(|host| self.asked.contains(host.trim_end_matches('.')))
    }

    /// A host that a person named, whose images may be shown.
    pub(super) fn add_image_host(&mut self, host: &str) {
        if self.asked.len() < MAX_HOSTS {
            self.asked.insert(host.to_owned());
        }
    }

    /// What a person wrote.
    pub(super) fn add_asked(&mut self, text: &str) {
        let mut theirs = Self::default();
        theirs.add_text(text);
        theirs.hosts.iter().for_each(|host| self.add_image_host(host));
        self.add(theirs);
    }

    /// Forgets what these know too.
    pub(super) fn remove(&mut self, others: &Self) {
        self.hosts.retain(|host| !others.hosts.contains(host));
        self.addresses.retain(|address| !others.addresses.contains(address));
        self.markers.retain(|marker| !others.markers.contains(marker));
    }

    /// Adds what these know, as far as there is room.
    pub(super) fn add(&mut self, others: Self) {
        let room = |most: usize, has: usize| most.saturating_sub(has);
        self.sources.extend(others.sources);
        self.hosts.extend(others.hosts.into_iter().take(room(MAX_HOSTS, self.hosts.len())));
        self.markers.extend(others.markers.into_iter().take(room(MAX_MARKERS, self.markers.len())));
        for address in others.addresses {
            let bytes = address.len();
            if self.addresses.len() < MAX_ADDRESSES
                && self.address_bytes + bytes <= MAX_ADDRESS_BYTES
                && self.addresses.insert(address)
            {
                self.address_bytes += bytes;
            }
        }
    }

    pub(super) fn add_text(&mut self, text: &str) {
        for written in written_markers(text) {
            if self.markers.len() < MAX_MARKERS {
                self.markers.insert(written.to_owned());
            }
        }
        self.add_addresses(text);
        self.add_names(text);
    }

    fn add_addresses(&mut self, text: &str) {
        let mut whole_until = 0;
        for (at, _) in text.match_indices(':') {
            let before = &text.as_bytes()[..at];
            let is_scheme = |scheme: &str| {
                before.len() >= scheme.len()
                    && before[before.len() - scheme.len()..].eq_ignore_ascii_case(scheme.as_bytes())
            };
            let Some(scheme) = ["https", "http"].into_iter().find(|scheme| is_scheme(scheme)) else {
                continue;
            };
            let slashes = &text[at + 1..];
            if !slashes.starts_with("//") && !slashes.starts_with("\\/\\/") {
                continue;
            }
            let start = at - scheme.len();
            let limit = if start < whole_until { LONGEST_HOST } else { LONGEST_ADDRESS };
            let run = address_run(&text[start..], limit);
            if start >= whole_until {
                whole_until = start + run.len();
                self.add_run(run);
            } else if let Ok(url) = Url::parse(run) {
                self.add_host(&url);
            }
        }
    }

    /// Remembers an address with what may belong to it of the signs that follow.
    fn add_run(&mut self, run: &str) {
        let unescaped = run.replace("\\/", "/").replace("\\u0026", "&");
        let mut rest = unescaped.as_str();
        for round in 0..=MAX_TRIMMED {
            self.add_address(rest);
            let Some(last) = rest.chars().next_back().filter(|last| is_closing(*last)) else { break };
            if round < MAX_TRIMMED {
                rest = &rest[..rest.len() - last.len_utf8()];
            }
        }
        let ends =
            [unbalanced_end(&unescaped), unescaped.find('\\'), unescaped.find(']'), unescaped.find('|')];
        for end in ends.into_iter().flatten() {
            self.add_address(&unescaped[..end]);
        }
    }

    fn add_address(&mut self, address: &str) {
        for address in [address.to_owned(), decode(address)] {
            let Ok(url) = Url::parse(&address) else { continue };
            self.add_host(&url);
            let bytes = url.as_str().len();
            if url.as_str().len() <= LONGEST_ADDRESS
                && self.addresses.len() < MAX_ADDRESSES
                && self.address_bytes + bytes <= MAX_ADDRESS_BYTES
                && self.addresses.insert(url.into())
            {
                self.address_bytes += bytes;
            }
        }
    }

    fn add_host(&mut self, url: &Url) {
        if let Some(host) = url.host_str()
            && self.hosts.len() < MAX_HOSTS
        {
            self.hosts.insert(host.trim_end_matches('.').to_owned());
        }
    }

    /// Names of hosts that stand alone, as in "see example.org".
    fn add_names(&mut self, text: &str) {
        let is_part = |character: char| character.is_alphanumeric() || matches!(character, '.' | '-');
        for word in text.split(|character| !is_part(character)) {
            let name = word.trim_matches(['.', '-']);
            if name.len() > LONGEST_HOST || self.hosts.len() >= MAX_HOSTS {
                continue;
            }
            let Some((_, top)) = name.rsplit_once('.') else { continue };
            if top.chars().count() >= 2
                && top.chars().all(char::is_alphabetic)
                && let Ok(Host::Domain(name)) = Host::parse(name)
            {
                self.hosts.insert(name);
            }
        }
    }
}

/// The address at the beginning of this text, with what follows it without a blank.
fn address_run(text: &str, limit: usize) -> &str {
    let text = &text[..text.floor_char_boundary(limit)];
    let ends = |character: char| {
        character.is_whitespace() || character.is_control() || matches!(character, '<' | '>' | '"' | '`')
    };
    &text[..text.find(ends).unwrap_or(text.len())]
}

const fn is_closing(character: char) -> bool {
    matches!(
        character,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '\''
            | '*'
            | '_'
            | '~'
            | ')'
            | ']'
            | '}'
            | '”'
            | '’'
            | '»'
            | '。'
            | '，'
            | '、'
            | '）'
    )
}

/// Where a parenthesis closes that was opened before the address.
fn unbalanced_end(address: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in address.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}
