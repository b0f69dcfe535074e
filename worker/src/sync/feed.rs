//! The entries of a feed.

use std::collections::HashSet;

use bytes::Bytes;
use futures::stream;
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
    let mut seen = HashSet::new();
    for entry in entries {
        if seen.insert(entry.key.clone()) {
            look_at(&mut client, config, recorder, entry).await?;
        }
    }
    let unseen = (config.only_current && is_complete).then_some("The feed does not have it any more.");
    Ok(Enumeration { unseen, is_complete, validators: Some(validators) })
}

async fn look_at(
    client: &mut PageClient<'_>,
    config: &FeedConfig,
    recorder: &mut RunRecorder<'_>,
    entry: FeedEntry,
) -> Result<(), RunFailure> {
    let ItemState::Open(known) = recorder.look(&entry.key).await? else { return Ok(()) };
    let FeedEntry { key, title, link, html, version } = entry;
    let version = known_version(version, config);
    if let Some(current) = recorder.current(known.as_ref())
        && (current.sha256.as_ref() == Some(&version) || !current.is_alive)
    {
        return recorder.unchanged(current).await;
    }
    let named = NamedEntry { name: document_name(title.as_deref(), &key), key, version };
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
                name: named.name,
                url: link.as_ref(),
                file_name: None,
                content_type: Some("text/html"),
                charset: Some("utf-8"),
                staged,
                validators: ItemValidators { version: Some(&named.version), ..ItemValidators::default() },
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
    name: String,
    version: String,
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
        name: entry.name,
        url: Some(&link),
        file_name,
        content_type: content_type.as_deref(),
        charset: charset.as_deref(),
        staged,
        validators: ItemValidators { version: Some(&entry.version), ..ItemValidators::default() },
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
