//! The entries of a feed.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
};

use encoding_rs::Encoding;
use feed_rs::{
    model::{Entry, Feed, Text},
    parser::{Builder, generate_id},
};
use lectern_shared::secrets::{hex, sha256};
use quick_xml::escape::escape;
use url::Url;

use super::{json_feed, page_at, xml_feed};
use crate::{
    charset,
    formats::html,
    protocol::{
        FeedEntry, FeedListing, ListingRequest, MAX_ENTRY_TEXT, MAX_LISTED, MAX_LISTED_BYTES, MAX_TITLE,
        MAX_URL,
    },
};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes of a title that is a piece of a page, of which the rest is not read.
const LONGEST_TITLE: usize = 16 << 10;
/// With what ids begin that a feed does not give. Nothing that is kept has it.
const MADE_UP: char = '\0';

/// Reads a feed; none when it is none.
pub(super) fn read(bytes: &[u8], request: &ListingRequest) -> Option<FeedListing> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = in_utf8(bytes, request.charset.as_deref());
    let bytes: &[u8] = &text;
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

/// A feed that does not name its encoding, or names UTF-8 by mistake, in UTF-8: by what its server says, else by what fits best. The library
/// knows those that feeds name.
fn in_utf8<'a>(bytes: &'a [u8], charset: Option<&str>) -> Cow<'a, [u8]> {
    let names_other = || {
        html::declared_encoding(bytes)
            .is_some_and(|label| Encoding::for_label(label.as_bytes()) != Some(encoding_rs::UTF_8))
    };
    let is_xml = bytes.trim_ascii_start().starts_with(b"<");
    if !is_xml || std::str::from_utf8(bytes).is_ok() || names_other() {
        return Cow::Borrowed(bytes);
    }
    let (text, ..) = charset::decode(bytes, charset);
    Cow::Owned(text.into_owned().into_bytes())
}

/// The library panics at some of what it cannot compute.
fn parsed(bytes: &[u8], url: &Url) -> Option<Feed> {
    let parser = Builder::new().base_uri(Some(url)).id_generator(|links, title, uri| {
        // Its own names for entries that have none otherwise are random.
        if links.is_empty() && title.is_none() {
            String::new()
        } else {
            format!("{MADE_UP}{}", generate_id(links, title, uri))
        }
    });
    let parser = parser.build();
    catch_unwind(AssertUnwindSafe(|| parser.parse(bytes))).ok()?.ok()
}

fn read_entry(entry: Entry, request: &ListingRequest) -> FeedEntry {
    let link = entry.links.iter().find(|link| link.rel.as_deref().is_none_or(|rel| rel == "alternate"));
    let link = link.or(entry.links.first()).and_then(|link| page_at(&link.href, &request.url));
    let title = entry.title.map(line_of_title).map(|mut title| {
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
    let is_given = !entry.id.starts_with(MADE_UP);
    let id = name_of(cleaned(entry.id));
    let key = link.as_ref().map(Url::to_string).or_else(|| id.clone());
    FeedEntry {
        key: key.unwrap_or_else(|| version.clone()),
        id: id.filter(|_| is_given),
        html: (request.texts || link.is_none()).then_some(html),
        title,
        link,
        version,
    }
}

/// What an entry with this id is called; none when it has none.
fn name_of(id: String) -> Option<String> {
    match id.len() {
        0 => None,
        1..=MAX_URL => Some(id),
        _ => Some(hex(&sha256(id.as_bytes()))),
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

/// A title as it is read: some are pieces of a page.
fn line_of_title(title: Text) -> String {
    let is_html = title.content_type.essence().to_string() == "text/html";
    let text = cleaned(title.content);
    if is_html {
        let end = text.floor_char_boundary(LONGEST_TITLE);
        html::line_of(text.get(..end).unwrap_or_default(), LONGEST_TITLE)
    } else {
        text
    }
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
        listing_of(feed.as_bytes(), None)
    }

    fn listing_of(feed: &[u8], charset: Option<&str>) -> Option<FeedListing> {
        let request = ListingRequest {
            kind: ListingKind::Feed,
            url: Url::parse("https://a.example/feed.xml").unwrap(),
            charset: charset.map(str::to_owned),
            texts: true,
            max_entries: MAX_LISTED,
            memory_bytes: 0,
            cpu_seconds: 0,
        };
        super::read(feed, &request)
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
    fn a_feed_is_read_in_the_encoding_that_it_or_its_server_names() {
        let feed = |declaration: &str, encoding: &'static Encoding| {
            let item = "<item><title>Žluté café</title><link>https://a.example/1</link></item>";
            let feed =
                format!("{declaration}<rss version='2.0'><channel><title>News</title>{item}</channel></rss>");
            encoding.encode(&feed).0.into_owned()
        };
        let central = encoding_rs::WINDOWS_1250;
        for (declaration, encoding, charset) in [
            ("", encoding_rs::UTF_8, None),
            ("<?xml version='1.0' encoding='windows-1250'?>", central, None),
            ("<?xml version='1.0'?>", central, Some("windows-1250")),
            ("<?xml version='1.0' encoding='utf-8'?>", central, Some("windows-1250")),
        ] {
            let listing = listing_of(&feed(declaration, encoding), charset).expect(declaration);
            assert_eq!(listing.entries[0].title.as_deref(), Some("Žluté café"), "{declaration}");
        }
        // One letter that is wrong is no reason to read nothing.
        let mut damaged = feed("<?xml version='1.0' encoding='utf-8'?>", encoding_rs::UTF_8);
        let at = damaged.windows(3).position(|it| it == b"caf").expect("a title");
        damaged[at] = 0xff;
        let listing = listing_of(&damaged, Some("utf-8")).expect("a feed");
        assert_eq!(listing.entries[0].title.as_deref(), Some("Žluté \u{fffd}afé"));
    }

    #[test]
    fn a_title_is_read_as_a_person_sees_it() {
        let title = |title: &str| {
            let about = "<id>1</id><updated>2026-01-01T00:00:00Z</updated>";
            let entry = format!("<entry>{about}{title}<link href='https://a.example/1'/></entry>");
            let feed = format!("{about}<title>News</title>{entry}");
            entries(&format!("<feed xmlns='http://www.w3.org/2005/Atom'>{feed}</feed>")).remove(0).title
        };
        let html = "<title type='html'><![CDATA[Fish &#038; <em>chips</em>]]></title>";
        assert_eq!(title(html).as_deref(), Some("Fish & chips"));
        assert_eq!(title("<title type='html'>1 &amp;lt; 2</title>").as_deref(), Some("1 < 2"));
        assert_eq!(title("<title>AT&amp;T &lt;b></title>").as_deref(), Some("AT&T <b>"));
    }

    #[test]
    fn the_id_of_an_entry_may_be_a_number() {
        let entries = entries(&json(r#"{"id": 17, "title": "One"}, {"id": "b", "title": "Two"}"#));
        let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["17", "b"]);
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
    fn what_a_feed_calls_an_entry_is_told_apart_from_what_is_made_up() {
        let rss = |item: &str| {
            let feed = format!("<rss version='2.0'><channel><item>{item}</item></channel></rss>");
            entries(&feed).remove(0)
        };
        let link = "<link>https://a.example/1</link>";
        let named = rss(&format!("<guid isPermaLink='false'>17</guid>{link}"));
        assert_eq!((named.key.as_str(), named.id.as_deref()), ("https://a.example/1", Some("17")));
        assert_eq!(rss(&format!("<title>One</title>{link}")).id, None);
        let untold = rss("<title>One</title>");
        assert!(untold.id.is_none() && !untold.key.is_empty() && untold.key != untold.version);
        let item = format!("{{\"id\": \"{}\", \"url\": \"https://a.example/1\"}}", "x".repeat(10_000));
        let id = entries(&json(&item)).remove(0).id;
        assert!(id.is_some_and(|id| id.len() <= MAX_URL));
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
