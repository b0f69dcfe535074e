//! The entries of a feed.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures::stream;
use lectern_db::sync::items;
use lectern_parse::protocol::{FeedEntry, FeedListing, Listing, ListingKind, MAX_LISTED};
use lectern_sandbox::ListOrder;
use lectern_shared::model::sync::{FeedConfig, SyncItem};
use url::Url;

use super::{
    context::{Enumeration, SyncContext},
    failure::RunFailure,
    item::{FoundItem, ItemValidators, StagedFile, StagingFailure},
    listing,
    pages::{FetchedPage, KnownPage, PageAnswer, PageClient, SmallFile},
    record::{ItemState, RunRecorder, document_name},
    vanished::MoveRule,
};

/// The most bytes of a feed.
const FEED_BYTES: u64 = 32 << 20;
/// Redirects that are followed to the page of an entry.
const REDIRECTS: usize = 5;

/// Reads a feed.
pub(super) async fn read(
    context: &SyncContext<'_>,
    config: &FeedConfig,
    recorder: &mut RunRecorder<'_>,
) -> Result<Enumeration, RunFailure> {
    let url = Url::parse(&config.url).map_err(RunFailure::stop)?;
    let mut client = PageClient::new(context, &url)?;
    let source = context.source;
    // What is to be deleted is looked for again, in what the feed has by now.
    let known = if recorder.run.is_full || recorder.run.confirmed_by.is_some() {
        KnownPage::default()
    } else {
        KnownPage { etag: source.etag.as_deref(), last_modified: source.last_modified.as_deref() }
    };
    let (bytes, charset, validators) = match client.small_file(&url, known, FEED_BYTES).await? {
        SmallFile::NotModified => {
            recorder.all_unchanged().await?;
            return Ok(Enumeration { unseen: None, is_complete: true, validators: None });
        }
        SmallFile::Missing => return Err(RunFailure::stop("There is no feed at this address")),
        SmallFile::Read { bytes, charset, etag, last_modified } => (bytes, charset, (etag, last_modified)),
    };
    let order = ListOrder {
        kind: ListingKind::Feed,
        url,
        charset,
        texts: !config.full_pages,
        max_entries: MAX_LISTED,
    };
    let Some(Listing::Feed(FeedListing { entries, is_complete })) =
        listing::read(context.sandbox, order, &bytes).await?
    else {
        return Err(RunFailure::stop(
            "What is at this address is no feed that can be read: RSS, Atom or JSON Feed",
        ));
    };
    drop(bytes);
    let moved = if is_complete {
        moved_entries(&items::entries(&context.runtime.db, source.id).await?, &entries)
    } else {
        HashMap::new()
    };
    let mut seen = HashSet::new();
    for entry in entries {
        if seen.insert(entry.key.clone()) {
            if let Some(former) = moved.get(&entry.key) {
                recorder.expect_at(&entry.key, former).await?;
            }
            look_at(&mut client, config, recorder, entry).await?;
        }
    }
    let unseen = (config.only_current && is_complete).then_some("The feed does not have it any more.");
    Ok(Enumeration { unseen, is_complete, validators: Some(validators) })
}

/// The entries that link to other pages than before, by their keys, with those that they had: the feed calls them as it did. Where it calls
/// several the same, now or before, none of them is told from the others. Where it calls a page otherwise than before, no entry is: its ids
/// are made anew, or number what it lists.
fn moved_entries(known: &[(String, String)], entries: &[FeedEntry]) -> HashMap<String, String> {
    let listed: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    let former = clear_names(known.iter().map(|(key, id)| (id.as_str(), key.as_str())));
    let now: Vec<_> =
        entries.iter().filter_map(|entry| Some((entry.id.as_deref()?, entry.key.as_str()))).collect();
    let mut names: HashMap<&str, &str> = HashMap::new();
    for &(id, key) in &now {
        // Of a page that is listed twice the first name is noted.
        names.entry(key).or_insert(id);
    }
    if known.iter().any(|(key, id)| names.get(key.as_str()).is_some_and(|name| name != id)) {
        return HashMap::new();
    }
    let moved = clear_names(now.into_iter()).into_iter().filter_map(|(id, key)| {
        let former = *former.get(id)?;
        (!listed.contains(former)).then(|| (key.to_owned(), former.to_owned()))
    });
    moved.collect()
}

/// What is called so, by its name, where nothing else is.
fn clear_names<'e>(named: impl Iterator<Item = (&'e str, &'e str)>) -> HashMap<&'e str, &'e str> {
    let mut keys: HashMap<&str, Option<&str>> = HashMap::new();
    for (id, key) in named {
        let known = keys.entry(id).or_insert(Some(key));
        *known = known.filter(|known| *known == key);
    }
    keys.into_iter().filter_map(|(id, key)| Some((id, key?))).collect()
}

async fn look_at(
    client: &mut PageClient<'_>,
    config: &FeedConfig,
    recorder: &mut RunRecorder<'_>,
    entry: FeedEntry,
) -> Result<(), RunFailure> {
    let ItemState::Open(known) = recorder.look(&entry.key, None).await? else { return Ok(()) };
    let FeedEntry { key, id, title, link, html, version } = entry;
    let version = known_version(version, config);
    if let Some(current) = recorder.current(known.as_ref())
        && (current.sha256.as_ref() == Some(&version) || !current.is_alive)
    {
        return recorder.unchanged_entry(current, id.as_deref()).await;
    }
    let named = NamedEntry { name: document_name(title.as_deref(), &key), key, id, version };
    match (link, html) {
        (Some(link), _) if config.full_pages => found_page(client, recorder, named, link, known).await,
        (link, html) => {
            let html = html.unwrap_or_default();
            let pieces = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from(html))]);
            let staged = StagedFile::of(std::pin::pin!(pieces)).await.map_err(|failure| match failure {
                StagingFailure::Here(failure) => failure,
                StagingFailure::Source(never) => match never {},
            })?;
            let item = FoundItem {
                key: &named.key,
                name: named.name.clone(),
                url: link.as_ref(),
                file_name: None,
                content_type: Some("text/html"),
                charset: Some("utf-8"),
                staged,
                validators: named.validators(),
                moves: MoveRule::Never,
            };
            recorder.found(known, item).await
        }
    }
}

/// By what it is known of an entry whether it is to be looked at anew: also when its page, or no longer its page, is to be its document.
fn known_version(version: String, config: &FeedConfig) -> String {
    if config.full_pages { version } else { format!("text {version}") }
}

/// An entry, and what its document is called.
struct NamedEntry {
    key: String,
    /// What the feed calls it.
    id: Option<String>,
    name: String,
    version: String,
}

impl NamedEntry {
    fn validators(&self) -> ItemValidators<'_> {
        let (version, entry_id) = (Some(self.version.as_str()), self.id.as_deref());
        ItemValidators { version, entry_id, ..ItemValidators::default() }
    }
}

/// Makes a document of the page that an entry links to.
async fn found_page(
    client: &mut PageClient<'_>,
    recorder: &mut RunRecorder<'_>,
    entry: NamedEntry,
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
        name: entry.name.clone(),
        url: Some(&link),
        file_name,
        content_type: content_type.as_deref(),
        charset: charset.as_deref(),
        staged,
        validators: entry.validators(),
        moves: MoveRule::Never,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_moved_that_alone_is_called_as_one_was_that_is_not_listed() {
        let moved = |known: &[(&str, &str)], listed: &[(&str, Option<&str>)]| {
            let known: Vec<_> = known.iter().map(|(key, id)| ((*key).to_owned(), (*id).to_owned())).collect();
            let entry = |(key, id): &(&str, Option<&str>)| FeedEntry {
                key: (*key).to_owned(),
                id: id.map(str::to_owned),
                title: None,
                link: None,
                html: None,
                version: String::new(),
            };
            let entries: Vec<_> = listed.iter().map(entry).collect();
            let mut moved: Vec<_> = moved_entries(&known, &entries).into_iter().collect();
            moved.sort();
            moved
        };
        let known = [("/a", "1"), ("/b", "2"), ("/c", "3"), ("/d", "3")];
        let told = moved(&known, &[("/new", Some("1")), ("/b", Some("2")), ("/other", None)]);
        assert_eq!(told, [("/new".to_owned(), "/a".to_owned())]);
        let twice = [("/new", Some("1")), ("/new", Some("1"))];
        assert_eq!(moved(&known, &twice).len(), 1, "it is listed twice");
        for (listed, why) in [
            ([("/new", Some("1")), ("/a", None)], "the former one is listed"),
            ([("/new", Some("1")), ("/newer", Some("1"))], "two are called so"),
            ([("/new", Some("3")), ("/newer", Some("4"))], "two were called so, and none"),
        ] {
            assert!(moved(&known, &listed).is_empty(), "{why}");
        }
        let numbered = [("/newest", Some("1")), ("/new", Some("2")), ("/a", Some("3"))];
        assert!(moved(&known, &numbered).is_empty(), "the first one has another id by now");
        let with_two = [("/new", Some("1")), ("/b", Some("2")), ("/b", Some("7"))];
        assert_eq!(moved(&known, &with_two).len(), 1, "the second one has an id more");
    }
}
