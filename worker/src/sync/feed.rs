//! The entries of a feed.

use std::collections::HashSet;

use bytes::Bytes;
use feed_rs::model::{Entry, Text};
use futures::stream;
use lectern_shared::{
    model::sync::{FeedConfig, SyncItem},
    secrets::{hex, sha256},
};
use quick_xml::{Reader, escape::escape, events::Event};
use serde_json::json;
use url::Url;

use super::{
    item::{FoundItem, ItemValidators, StagedFile, StagingFailure},
    pages::{FetchedPage, KnownPage, PageAnswer, PageClient, SmallFile, without_fragment},
    record::{ItemState, RunRecorder, document_name},
    run::{Enumeration, RunFailure, SyncContext},
};

/// The most bytes of a feed.
const FEED_BYTES: u64 = 32 << 20;
/// Elements that may stand within each other in one: what reads it may recurse.
const MAX_DEPTH: usize = 64;
/// Redirects that are followed to the page of an entry.
const REDIRECTS: usize = 5;

/// An entry, as far as it matters.
struct FeedEntry {
    key: String,
    title: Option<String>,
    link: Option<Url>,
    html: String,
    /// It changes with what the feed says of the entry.
    version: String,
}

/// Reads a feed.
pub(super) async fn read(
    context: &SyncContext<'_>,
    config: &FeedConfig,
    recorder: &mut RunRecorder<'_>,
) -> Result<Enumeration, RunFailure> {
    let url = Url::parse(&config.url).map_err(RunFailure::stop)?;
    let mut client = PageClient::new(context, &url)?;
    let source = context.source;
    let known = if recorder.run.is_full {
        KnownPage::default()
    } else {
        KnownPage { etag: source.etag.as_deref(), last_modified: source.last_modified.as_deref() }
    };
    let (bytes, validators) = match client.small_file(&url, known, FEED_BYTES).await? {
        SmallFile::NotModified => {
            recorder.all_unchanged().await?;
            return Ok(Enumeration { unseen: None, validators: None });
        }
        SmallFile::Missing => return Err(RunFailure::stop("There is no feed at this address")),
        SmallFile::Read { bytes, etag, last_modified } => (bytes, (etag, last_modified)),
    };
    let entries = tokio::task::spawn_blocking(move || entries(&bytes, &url)).await;
    let entries = entries.ok().flatten().ok_or_else(|| {
        RunFailure::stop("What is at this address is no feed that can be read: RSS, Atom or JSON Feed")
    })?;
    let (mut is_complete, mut seen) = (true, HashSet::new());
    for entry in entries {
        if !recorder.has_room() {
            is_complete = false;
            break;
        }
        if seen.insert(entry.key.clone()) {
            look_at(&mut client, config, recorder, entry).await?;
        }
    }
    let unseen = (config.only_current && is_complete).then_some("The feed does not have it any more.");
    Ok(Enumeration { unseen, validators: Some(validators) })
}

async fn look_at(
    client: &mut PageClient<'_>,
    config: &FeedConfig,
    recorder: &mut RunRecorder<'_>,
    entry: FeedEntry,
) -> Result<(), RunFailure> {
    let ItemState::Open(known) = recorder.look(&entry.key).await? else { return Ok(()) };
    if let Some(current) = recorder.current(known.as_ref())
        && (current.sha256.as_ref() == Some(&entry.version) || !current.is_alive)
    {
        return recorder.unchanged(current).await;
    }
    match entry.link.clone().filter(|_| config.full_pages) {
        Some(link) => found_page(client, recorder, &entry, link, known).await,
        None => {
            let pieces = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from(entry.html.clone()))]);
            let staged = StagedFile::of(std::pin::pin!(pieces)).await.map_err(|failure| match failure {
                StagingFailure::Here(failure) => failure,
                StagingFailure::Source(never) => match never {},
            })?;
            let item = FoundItem {
                key: &entry.key,
                name: document_name(entry.title.as_deref(), &entry.key),
                url: entry.link.as_ref(),
                file_name: None,
                content_type: Some("text/html"),
                charset: Some("utf-8"),
                staged,
                validators: ItemValidators { version: Some(&entry.version), ..ItemValidators::default() },
            };
            recorder.found(known, item).await
        }
    }
}

/// Makes a document of the page that an entry links to.
async fn found_page(
    client: &mut PageClient<'_>,
    recorder: &mut RunRecorder<'_>,
    entry: &FeedEntry,
    link: Url,
    known: Option<SyncItem>,
) -> Result<(), RunFailure> {
    let (link, page) = match fetched(client, link).await? {
        Ok(found) => found,
        Err(reason) => return recorder.failed(&entry.key, &reason, known.as_ref()).await,
    };
    let FetchedPage { staged, content_type, charset, file_name, .. } = *page;
    let item = FoundItem {
        key: &entry.key,
        name: document_name(entry.title.as_deref(), &entry.key),
        url: Some(&link),
        file_name,
        content_type: content_type.as_deref(),
        charset: charset.as_deref(),
        staged,
        validators: ItemValidators { version: Some(&entry.version), ..ItemValidators::default() },
    };
    recorder.found(known, item).await
}

/// A page, and where it was found; or why it cannot be had.
async fn fetched(
    client: &mut PageClient<'_>,
    mut link: Url,
) -> Result<Result<(Url, Box<FetchedPage>), String>, RunFailure> {
    for _ in 0..=REDIRECTS {
        match client.may_ask(&link).await {
            Ok(true) => {}
            Ok(false) => return Ok(Err("The site's robots.txt does not let robots read it.".to_owned())),
            // Many of a feed's links lead to other sites, which do not end the run.
            Err(RunFailure::Stopped(why)) => return Ok(Err(why)),
            Err(failure) => return Err(failure),
        }
        let redirect = match client.get(&link, KnownPage::default()).await? {
            PageAnswer::Page(page) => return Ok(Ok((link, page))),
            PageAnswer::Moved(redirect) => redirect,
            PageAnswer::Missing(status) => {
                return Ok(Err(format!("The server answers with status {status}.")));
            }
            PageAnswer::Failed(why) => return Ok(Err(why)),
            PageAnswer::NotModified => {
                return Ok(Err("The server says that it has not changed, which nobody asked.".to_owned()));
            }
        };
        match redirect.to {
            Some(to) => link = to,
            None => return Ok(Err("It redirects to what is no address.".to_owned())),
        }
    }
    Ok(Err(format!("It redirects more than {REDIRECTS} times.")))
}

/// The entries of a feed; none when it is none.
fn entries(bytes: &[u8], url: &Url) -> Option<Vec<FeedEntry>> {
    if !is_shallow(bytes) {
        return None;
    }
    let parser = feed_rs::parser::Builder::new().base_uri(Some(url)).build();
    let feed = parser.parse(bytes).ok()?;
    Some(feed.entries.into_iter().map(|entry| read_entry(entry, url)).collect())
}

fn read_entry(entry: Entry, url: &Url) -> FeedEntry {
    let of = |text: Option<Text>| text.map(|text| text.content);
    let link = entry.links.iter().find(|link| link.rel.as_deref().is_none_or(|rel| rel == "alternate"));
    let link = link.or(entry.links.first()).and_then(|link| url.join(&link.href).ok());
    let link = link.filter(|link| matches!(link.scheme(), "http" | "https")).map(without_fragment);
    let title = of(entry.title);
    let content = entry.content.and_then(|content| {
        let is_text = content.content_type.essence().to_string() == "text/plain";
        content.body.map(|body| if is_text { escape(body).into_owned() } else { body })
    });
    let body = content.or_else(|| of(entry.summary)).unwrap_or_default();
    let name = escape(title.as_deref().unwrap_or_default()).into_owned();
    let html = format!(
        "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>{name}</title></head>\n<body><article><h1>{name}</h1>\n{body}\n\
         </article></body></html>"
    );
    let version = json!([link, html, entry.updated.map(|at| at.timestamp())]).to_string();
    FeedEntry {
        key: link.as_ref().map_or(entry.id, Url::to_string),
        title,
        link,
        html,
        version: hex(&sha256(version.as_bytes())),
    }
}

/// Whether no more elements stand within each other than may. What is no XML is not judged here.
fn is_shallow(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = false;
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::Eof) | Err(_) => return true,
            Ok(_) => {}
        }
        if depth > MAX_DEPTH {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(feed: &str) -> Option<Vec<FeedEntry>> {
        entries(feed.as_bytes(), &Url::parse("https://a.example/feed.xml").unwrap())
    }

    #[test]
    fn feeds_of_all_kinds_are_read() {
        let rss = "<rss version='2.0'><channel><title>News</title><item><title>One &amp; two</title><link>/one#top</link>
            <description>&lt;p&gt;The first.&lt;/p&gt;</description><guid>1</guid></item></channel></rss>";
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><id>f</id><title>News</title><updated>2026-01-01T00:00:00Z</updated>
            <entry><id>1</id><title>One &amp; two</title><updated>2026-01-01T00:00:00Z</updated><link href='https://a.example/one'/>
            <content type='html'>&lt;p&gt;The first.&lt;/p&gt;</content></entry></feed>";
        let json = r#"{"version": "https://jsonfeed.org/version/1", "title": "News", "items": [
            {"id": "1", "title": "One & two", "url": "https://a.example/one", "content_html": "<p>The first.</p>"}]}"#;
        for feed in [rss, atom, json] {
            let entries = read(feed).expect(feed);
            let [entry] = entries.as_slice() else { panic!("{feed}") };
            assert_eq!(entry.key, "https://a.example/one", "{feed}");
            assert_eq!(entry.title.as_deref(), Some("One & two"), "{feed}");
            assert!(entry.html.contains("<h1>One &amp; two</h1>\n<p>The first.</p>"), "{}", entry.html);
        }
    }

    #[test]
    fn an_entry_has_another_version_when_it_says_something_else() {
        let feed = |text: &str| {
            format!(
                "<rss version='2.0'><channel><item><link>https://a.example/1</link><description>{text}</description></item></channel></rss>"
            )
        };
        let version = |text| read(&feed(text)).unwrap().remove(0).version;
        assert_eq!(version("a"), version("a"));
        assert_ne!(version("a"), version("b"));
    }

    #[test]
    fn what_is_no_feed_is_none() {
        let deep = format!("<rss><channel>{}", "<media:group>".repeat(100_000));
        for feed in ["", "<html></html>", "{}", "not a feed", "<rss", &deep] {
            assert!(read(feed).is_none_or(|entries| entries.is_empty()), "{feed:.40}");
        }
    }
}
