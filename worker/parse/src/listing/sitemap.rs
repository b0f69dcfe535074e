//! Sitemaps: lists of a site's pages, or of other such lists, as XML or as lines of text.

use quick_xml::{Reader, escape::resolve_xml_entity, events::Event};
use url::Url;

use super::page_at;
use crate::protocol::{ListingRequest, MAX_LISTED, MAX_LISTED_BYTES, MAX_URL, SitemapListing};

/// Elements that may stand within each other: each one is kept until it ends.
const MAX_DEPTH: usize = 16;

/// Reads a sitemap; none when it is none.
pub(super) fn read(bytes: &[u8], request: &ListingRequest) -> Option<SitemapListing> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut found = FoundAddresses::new(request);
    let is_index =
        if text.starts_with('<') { read_xml(text, &mut found)? } else { read_lines(text, &mut found)? };
    Some(SitemapListing { is_index, addresses: found.addresses, is_complete: !found.is_cut })
}

/// What was found so far.
struct FoundAddresses<'a> {
    base: &'a Url,
    addresses: Vec<Url>,
    /// Whether there are more of them.
    is_cut: bool,
    most: usize,
    room: usize,
}

impl<'a> FoundAddresses<'a> {
    fn new(request: &'a ListingRequest) -> Self {
        Self {
            base: &request.url,
            addresses: Vec::new(),
            is_cut: false,
            most: request.max_entries.min(MAX_LISTED),
            room: MAX_LISTED_BYTES,
        }
    }

    fn take(&mut self, address: &str) {
        if self.is_cut {
            return;
        }
        let Some(page) = page_at(address.trim(), self.base) else { return };
        match self.room.checked_sub(page.as_str().len()) {
            Some(room) if self.addresses.len() < self.most => {
                self.room = room;
                self.addresses.push(page);
            }
            _ => self.is_cut = true,
        }
    }
}

/// Every line is an address, or it is no sitemap.
fn read_lines(text: &str, found: &mut FoundAddresses<'_>) -> Option<bool> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek()?;
    for line in lines {
        if !line.starts_with("http://") && !line.starts_with("https://") {
            return None;
        }
        found.take(line);
    }
    Some(false)
}

/// Whether it lists other sitemaps.
fn read_xml(text: &str, found: &mut FoundAddresses<'_>) -> Option<bool> {
    let mut reader = Reader::from_str(text);
    let mut is_index = None;
    // Where in an entry it is read: its depth, and the address as far as it was read.
    let (mut depth, mut address) = (0_usize, None::<String>);
    while !found.is_cut {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return None;
                }
                let name = start.local_name().into_inner();
                let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
                match depth {
                    1 if is("sitemapindex") => is_index = Some(true),
                    1 if is("urlset") => is_index = Some(false),
                    1 => return None,
                    3 if is("loc") => address = Some(String::new()),
                    _ => {}
                }
            }
            Ok(Event::Text(text)) => push(&mut address, &text.xml10_content()),
            Ok(Event::CData(text)) => push(&mut address, &text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => {
                if let Ok(Some(character)) = reference.resolve_char_ref() {
                    push(&mut address, character.encode_utf8(&mut [0; 4]));
                } else if let Some(character) = resolve_xml_entity(&reference.into_inner()) {
                    push(&mut address, character);
                }
            }
            Ok(Event::End(_)) => {
                if depth == 3
                    && let Some(address) = address.take()
                {
                    found.take(&address);
                }
                depth = depth.saturating_sub(1);
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    is_index
}

/// Goes on with an address. One that has become longer than any is stays so, and is refused as a whole.
fn push(address: &mut Option<String>, more: &str) {
    if let Some(address) = address.as_mut().filter(|address| address.len() <= 4 * MAX_URL) {
        let more = more.get(..more.floor_char_boundary(5 * MAX_URL)).unwrap_or_default();
        address.push_str(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ListingKind;

    fn request(max_entries: usize) -> ListingRequest {
        ListingRequest {
            kind: ListingKind::Sitemap,
            url: Url::parse("https://a.example/sitemap.xml").unwrap(),
            charset: None,
            texts: false,
            max_entries,
            memory_bytes: 0,
            cpu_seconds: 0,
        }
    }

    fn listed(sitemap: &str) -> Option<(bool, Vec<String>)> {
        let SitemapListing { is_index, addresses, is_complete } =
            read(sitemap.as_bytes(), &request(MAX_LISTED))?;
        assert!(is_complete);
        Some((is_index, addresses.into_iter().map(String::from).collect()))
    }

    fn pages(list: &[&str]) -> (bool, Vec<String>) {
        (false, list.iter().map(|page| (*page).to_owned()).collect())
    }

    #[test]
    fn sitemaps_are_read_in_all_their_forms() {
        let set = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:i='x'>
            <url><loc> https://a.example/?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod><i:image><i:loc>no</i:loc></i:image></url>
            <url><loc><![CDATA[https://a.example/two]]></loc></url></urlset>";
        assert_eq!(listed(set), Some(pages(&["https://a.example/?x=1&y=2", "https://a.example/two"])));
        let index = "<sitemapindex><sitemap><loc>/s.xml</loc></sitemap></sitemapindex>";
        assert_eq!(listed(index), Some((true, vec!["https://a.example/s.xml".to_owned()])));
        assert_eq!(
            listed("https://a.example/1\n\nhttps://a.example/2\n"),
            Some(pages(&["https://a.example/1", "https://a.example/2"]))
        );
        let cut_off = "<urlset><url><loc>https://a.example/1</loc></url><url><loc>https://a.exa";
        assert_eq!(listed(cut_off), Some(pages(&["https://a.example/1"])));
        for none in ["<html><body>404</body></html>", "not found", "", "<", "https://a.example/1\nno address"]
        {
            assert_eq!(listed(none), None, "{none}");
        }
    }

    #[test]
    fn a_sitemap_is_read_as_far_as_may_be() {
        let lines = "https://a.example/1\n".repeat(100);
        let items = "<url><loc>https://a.example/1</loc></url>".repeat(100);
        for sitemap in [lines, format!("<urlset>{items}</urlset>")] {
            let SitemapListing { addresses, is_complete, .. } =
                read(sitemap.as_bytes(), &request(50)).unwrap();
            assert_eq!((addresses.len(), is_complete), (50, false));
        }
        let long = format!("https://a.example/{}", "x".repeat(MAX_URL));
        let others = format!("<urlset><url><loc>{long}</loc></url><url><loc>data:,x</loc></url></urlset>");
        assert_eq!(listed(&others), Some(pages(&[])));
        assert_eq!(listed(&format!("<urlset>{}", "<a>".repeat(100_000))), None);
    }

    #[test]
    fn the_addresses_of_a_sitemap_have_so_many_bytes_at_most() {
        let request = request(MAX_LISTED);
        let mut found = FoundAddresses { room: 50, ..FoundAddresses::new(&request) };
        for _ in 0..3 {
            found.take("https://a.example/1");
        }
        assert_eq!((found.addresses.len(), found.is_cut), (2, true));
    }
}
