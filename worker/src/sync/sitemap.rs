//! Sitemaps: lists of a site's pages, or of other such lists, as XML or as lines of text.

use async_compression::tokio::bufread::GzipDecoder;
use quick_xml::{Reader, escape::resolve_xml_entity, events::Event};
use tokio::io::AsyncReadExt;

/// The most bytes of a sitemap, unpacked: as many as the protocol allows.
pub(super) const SITEMAP_BYTES: u64 = 50 << 20;
/// The most entries of one, likewise.
const ENTRIES: usize = 50_000;
/// Bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;
/// How gzip begins.
const GZIP: &[u8] = b"\x1f\x8b";

/// What a sitemap lists.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SitemapEntries {
    /// Other sitemaps.
    Sitemaps(Vec<String>),
    /// Pages.
    Pages(Vec<String>),
}

/// Unpacks a sitemap, if it is packed; none when it is too large or damaged.
pub(super) async fn unpacked(bytes: Vec<u8>) -> Option<Vec<u8>> {
    if !bytes.starts_with(GZIP) {
        return Some(bytes);
    }
    let (mut plain, mut piece) = (Vec::new(), vec![0; PIECE]);
    let mut decoder = GzipDecoder::new(bytes.as_slice());
    loop {
        let read = decoder.read(&mut piece).await.ok()?;
        if read == 0 {
            return Some(plain);
        }
        plain.extend_from_slice(&piece[..read]);
        if plain.len() as u64 > SITEMAP_BYTES {
            return None;
        }
        // What is in memory is always ready: nothing else would have its turn meanwhile.
        tokio::task::consume_budget().await;
    }
}

/// Reads a sitemap; none when it is none.
pub(super) fn read(bytes: &[u8]) -> Option<SitemapEntries> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        let is_address = |line: &&str| line.starts_with("http://") || line.starts_with("https://");
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_list = !lines.is_empty() && lines.iter().all(is_address);
        let pages = lines.into_iter().take(ENTRIES).map(str::to_owned);
        return is_list.then(|| SitemapEntries::Pages(pages.collect()));
    }
    let mut reader = Reader::from_str(text);
    let mut is_index = None;
    let mut entries = Vec::new();
    // Where in an entry it is read: its depth, and the address as far as it was read.
    let (mut depth, mut address) = (0_usize, None::<String>);
    while entries.len() < ENTRIES {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                let name = start.local_name().into_inner().to_ascii_lowercase();
                match (depth, name.as_str()) {
                    (1, "sitemapindex") => is_index = Some(true),
                    (1, "urlset") => is_index = Some(false),
                    (1, _) => return None,
                    (3, "loc") => address = Some(String::new()),
                    _ => {}
                }
            }
            Ok(Event::Text(text)) => {
                if let Some(address) = &mut address {
                    address.push_str(&text.xml10_content());
                }
            }
            Ok(Event::CData(text)) => {
                if let Some(address) = &mut address {
                    address.push_str(&text.xml10_content());
                }
            }
            Ok(Event::GeneralRef(reference)) => {
                if let Some(address) = &mut address {
                    if let Ok(Some(character)) = reference.resolve_char_ref() {
                        address.push(character);
                    } else if let Some(character) = resolve_xml_entity(&reference.into_inner()) {
                        address.push_str(character);
                    }
                }
            }
            Ok(Event::End(_)) => {
                if depth == 3 {
                    entries.extend(address.take().map(|address| address.trim().to_owned()));
                }
                depth = depth.saturating_sub(1);
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Some(if is_index? { SitemapEntries::Sitemaps(entries) } else { SitemapEntries::Pages(entries) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sitemaps_are_read_in_all_their_forms() {
        let pages =
            |list: &[&str]| Some(SitemapEntries::Pages(list.iter().map(|page| (*page).to_owned()).collect()));
        let set = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:i='x'>
            <url><loc> https://a.example/?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod><i:image><i:loc>no</i:loc></i:image></url>
            <url><loc><![CDATA[https://a.example/two]]></loc></url></urlset>";
        assert_eq!(read(set.as_bytes()), pages(&["https://a.example/?x=1&y=2", "https://a.example/two"]));
        let index = "<sitemapindex><sitemap><loc>https://a.example/s.xml</loc></sitemap></sitemapindex>";
        assert_eq!(
            read(index.as_bytes()),
            Some(SitemapEntries::Sitemaps(vec!["https://a.example/s.xml".to_owned()]))
        );
        assert_eq!(
            read(b"https://a.example/1\n\nhttps://a.example/2\n"),
            pages(&["https://a.example/1", "https://a.example/2"])
        );
        let cut_off = "<urlset><url><loc>https://a.example/1</loc></url><url><loc>https://a.exa";
        assert_eq!(read(cut_off.as_bytes()), pages(&["https://a.example/1"]));
        for none in ["<html><body>404</body></html>", "not found", "", "<"] {
            assert_eq!(read(none.as_bytes()), None, "{none}");
        }
    }

    #[tokio::test]
    async fn a_packed_sitemap_is_unpacked_within_bounds() {
        use async_compression::tokio::bufread::GzipEncoder;

        let packed = async |plain: &[u8]| {
            let mut packed = Vec::new();
            GzipEncoder::new(plain).read_to_end(&mut packed).await.unwrap();
            packed
        };
        assert_eq!(unpacked(packed(b"<urlset/>").await).await.as_deref(), Some(&b"<urlset/>"[..]));
        assert_eq!(unpacked(b"<urlset/>".to_vec()).await.as_deref(), Some(&b"<urlset/>"[..]));
        let bomb = packed(&vec![b' '; usize::try_from(SITEMAP_BYTES).unwrap() + 1]).await;
        assert_eq!(unpacked(bomb).await, None);
    }
}
