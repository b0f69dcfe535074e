//! The entries of a feed.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
};

use feed_rs::{
    model::{Entry, Feed, Text},
    parser::{Builder, generate_id},
};
use lectern_shared::secrets::{hex, sha256};
use quick_xml::escape::escape;
use url::Url;

use super::{json_feed, page_at, xml_feed};
use crate::protocol::{
    FeedEntry, FeedListing, ListingRequest, MAX_ENTRY_TEXT, MAX_LISTED, MAX_LISTED_BYTES, MAX_TITLE, MAX_URL,
};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a feed; none when it is none.
pub(super) fn read(bytes: &[u8], request: &ListingRequest) -> Option<FeedListing> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let reduced: Cow<'_, [u8]> = if bytes.trim_ascii_start().starts_with(b"{") {
        json_feed::reduced(bytes)?.into()
    } else {
        xml_feed::reduced(bytes)?
    };
    let feed = parsed(&reduced, &request.url)?;
    drop(reduced);
    let mut listing = FeedListing { entries: Vec::new(), is_complete: true };
    let mut room = MAX_LISTED_BYTES;
    for entry in feed.entries {
        let entry = read_entry(entry, request);
        let left = room.checked_sub(entry.size());
        let Some(left) = left.filter(|_| listing.entries.len() < request.max_entries.min(MAX_LISTED)) else {
            listing.is_complete = false;
            break;
        };
        room = left;
        listing.entries.push(entry);
    }
    Some(listing)
}

/// The library panics at some of what it cannot compute.
fn parsed(bytes: &[u8], url: &Url) -> Option<Feed> {
    let parser = Builder::new().base_uri(Some(url)).id_generator(|links, title, uri| {
        // Its own names for entries that have none otherwise are random.
        if links.is_empty() && title.is_none() { String::new() } else { generate_id(links, title, uri) }
    });
    let parser = parser.build();
    catch_unwind(AssertUnwindSafe(|| parser.parse(bytes))).ok()?.ok()
}

fn read_entry(entry: Entry, request: &ListingRequest) -> FeedEntry {
    let link = entry.links.iter().find(|link| link.rel.as_deref().is_none_or(|rel| rel == "alternate"));
    let link = link.or(entry.links.first()).and_then(|link| page_at(&link.href, &request.url));
    let title = content_of(entry.title).map(|mut title| {
        let end = title.char_indices().nth(MAX_TITLE).map_or(title.len(), |(end, _)| end);
        title.truncate(end);
        title
    });
    let content = entry.content.and_then(|content| {
        let is_text = content.content_type.essence().to_string() == "text/plain";
        content.body.map(|body| if is_text { escape(body).into_owned() } else { body })
    });
    let body = cleaned(content.or_else(|| content_of(entry.summary)).unwrap_or_default());
    let name = escape(title.as_deref().unwrap_or_default()).into_owned();
    let mut html = format!(
        "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>{name}</title></head>\n<body><article><h1>{name}</h1>\n{body}\n\
         </article></body></html>"
    );
    let version = version_of(link.as_ref(), &html, entry.updated.map(|at| at.timestamp()));
    html.truncate(html.floor_char_boundary(MAX_ENTRY_TEXT));
    FeedEntry {
        key: link.as_ref().map_or_else(|| key_of(cleaned(entry.id), &version), Url::to_string),
        html: (request.texts || link.is_none()).then_some(html),
        title,
        link,
        version,
    }
}

/// What tells an entry from others that links to no page.
fn key_of(id: String, version: &str) -> String {
    match id.len() {
        0 => version.to_owned(),
        1..=MAX_URL => id,
        _ => hex(&sha256(id.as_bytes())),
    }
}

/// It is of all that the feed says, also of what is left out since it is too long.
fn version_of(link: Option<&Url>, html: &str, updated: Option<i64>) -> String {
    let said = serde_json::to_vec(&(link, html, updated)).unwrap_or_default();
    hex(&sha256(&said))
}

fn content_of(text: Option<Text>) -> Option<String> {
    text.map(|text| cleaned(text.content))
}

/// Without the one character that no store takes.
fn cleaned(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ListingKind;

    fn listing(feed: &str) -> Option<FeedListing> {
        let request = ListingRequest {
            kind: ListingKind::Feed,
            url: Url::parse("https://a.example/feed.xml").unwrap(),
            charset: None,
            texts: true,
            max_entries: MAX_LISTED,
            memory_bytes: 0,
            cpu_seconds: 0,
        };
        super::read(feed.as_bytes(), &request)
    }

    fn entries(feed: &str) -> Vec<FeedEntry> {
        listing(feed).expect(feed).entries
    }

    fn json(items: &str) -> String {
        format!(
            "{{\"version\": \"https://jsonfeed.org/version/1\", \"title\": \"News\", \"items\": [{items}]}}"
        )
    }

    #[test]
    fn feeds_of_all_kinds_are_read() {
        let rss = "<rss version='2.0'><channel><title>News</title><item><title>One &amp; two</title><link>/one#top</link>
            <description>&lt;p&gt;The first.&lt;/p&gt;</description><guid>1</guid></item></channel></rss>";
        let atom = "\u{feff}<feed xmlns='http://www.w3.org/2005/Atom'><id>f</id><title>News</title><updated>2026-01-01T00:00:00Z</updated>
            <entry><id>1</id><title>One &amp; two</title><updated>2026-01-01T00:00:00Z</updated><link href='https://a.example/one'/>
            <content type='html'>&lt;p&gt;The first.&lt;/p&gt;</content></entry></feed>";
        let json = json(
            r#"{"id": "1", "title": "One & two", "url": "https://a.example/one", "content_html": "<p>The first.</p>"}"#,
        );
        for feed in [rss, atom, &json] {
            let entries = entries(feed);
            let [entry] = entries.as_slice() else { panic!("{feed}") };
            assert_eq!(entry.key, "https://a.example/one", "{feed}");
            assert_eq!(entry.title.as_deref(), Some("One & two"), "{feed}");
            let html = entry.html.as_deref().unwrap();
            assert!(html.contains("<h1>One &amp; two</h1>\n<p>The first.</p>"), "{html}");
        }
    }

    #[test]
    fn an_entry_has_another_version_when_it_says_something_else() {
        let version = |text: &str| {
            let item =
                format!("<item><link>https://a.example/1</link><description>{text}</description></item>");
            entries(&format!("<rss version='2.0'><channel>{item}</channel></rss>")).remove(0).version
        };
        assert_eq!(version("a"), version("a"));
        assert_ne!(version("a"), version("b"));
    }

    #[test]
    fn what_is_no_feed_is_none() {
        let deep = format!("<rss version='2.0'><channel>{}", "<media:group>".repeat(100_000));
        for feed in ["", "<html></html>", "{}", "not a feed", "<rss", &deep] {
            assert_eq!(listing(feed), None, "{feed:.40}");
        }
    }

    #[test]
    fn a_feed_that_is_too_deep_is_none_although_something_is_wrong_before() {
        let deep = "<media:content>".repeat(100_000);
        for wrong in ["a & b", "a</b>", "&x", "&&&"] {
            let feed = format!(
                "<rss version=\"2.0\" xmlns:media=\"http://search.yahoo.com/mrss/\"><channel><title>{wrong}</title><item>{deep}"
            );
            assert_eq!(listing(&feed), None, "{wrong}");
        }
    }

    #[test]
    fn a_feed_has_so_many_entries_at_most() {
        let items = "<item/>".repeat(MAX_LISTED + 1);
        assert_eq!(listing(&format!("<rss version='2.0'><channel>{items}</channel></rss>")), None);
        assert_eq!(listing(&json(&vec!["{}"; MAX_LISTED + 1].join(","))), None);
    }

    #[test]
    fn what_is_said_once_is_not_kept_for_every_entry() {
        let name = "n".repeat(1 << 20);
        let items = vec!["{\"id\": \"1\"}"; 5_000].join(",");
        let feed = json(&items).replacen('{', &format!("{{\"authors\": [{{\"name\": \"{name}\"}}],"), 1);
        assert_eq!(entries(&feed).len(), 5_000);
        let base = format!("https://a.example/{name}");
        let items = "<item><link>b</link></item>".repeat(5_000);
        assert_eq!(
            listing(&format!("<rss version='2.0' xml:base='{base}'><channel>{items}</channel></rss>")),
            None
        );
    }

    #[test]
    fn a_silly_duration_costs_nothing_but_itself() {
        let feed = "<rss version='2.0' xmlns:i='http://www.itunes.com/dtds/podcast-1.0.dtd' xmlns:m='http://search.yahoo.com/mrss/'>
            <channel><item><i:duration>99999999999999999999</i:duration><m:group><m:thumbnail time='99999999999999999999' url='x'/>
            </m:group><link>https://a.example/1</link></item></channel></rss>";
        assert_eq!(entries(feed)[0].key, "https://a.example/1");
    }

    #[test]
    fn a_json_feed_may_have_as_many_tags_as_it_likes() {
        let breaks = "<br>".repeat(1_000);
        let entries = entries(&json(&format!("{{\"id\": \"1\", \"content_html\": \"{breaks}\"}}")));
        assert!(entries[0].html.as_ref().is_some_and(|html| html.contains(&breaks)));
    }

    #[test]
    fn what_no_store_takes_is_left_out() {
        let item = r#"{"id": "a\u0000", "title": "b\u0000", "content_html": "c\u0000"}"#;
        let entries = entries(&json(item));
        assert_eq!((entries[0].key.as_str(), entries[0].title.as_deref()), ("a", Some("b")));
        assert!(!entries[0].html.as_ref().unwrap().contains('\0'));
        let nothing = self::entries(&json(r#"{"id": "\u0000"}"#));
        assert_eq!(nothing[0].key, nothing[0].version);
    }

    #[test]
    fn an_entry_without_a_name_has_the_same_key_at_every_reading() {
        let rss = "<rss version='2.0'><channel><item><description>one</description></item>
            <item><description>two</description></item></channel></rss>";
        for feed in [rss, &json(r#"{"content_text": "one"}, {"content_text": "two"}"#)] {
            let [first, second] = [entries(feed), entries(feed)];
            assert_eq!(first, second);
            assert_ne!(first[0].key, first[1].key);
        }
    }

    #[test]
    fn a_name_that_is_too_long_stays_one() {
        let key = |end: &str| {
            let id = format!("{}{end}", "x".repeat(10_000));
            entries(&json(&format!("{{\"id\": \"{id}\"}}"))).remove(0).key
        };
        assert!(key("a").len() <= MAX_URL && key("a") == key("a") && key("a") != key("b"));
    }
}
