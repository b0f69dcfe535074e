//! Lists of what a source has: what the child is asked, before it gets the bytes of a feed, a sitemap or a page, and what its parent takes
//! of the answer.

use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    frame::MAX_URL,
    order::{is_clean, is_title},
};

/// The hidden subcommand under which the binary is a child that reads a list.
pub const LIST_COMMAND: &str = "__list";

/// The most entries of a list: as many as a sitemap may have.
pub const MAX_LISTED: usize = 50_000;
/// Bytes of text and of addresses that a list has in all. What comes behind is left out.
pub const MAX_LISTED_BYTES: usize = 16 << 20;
/// Bytes of what a feed says of one entry. What comes behind is left out.
pub(crate) const MAX_ENTRY_TEXT: usize = 2 << 20;
/// The most links of one page.
pub(crate) const MAX_LINKS: usize = 2_000;
/// Addresses of one message.
const ADDRESSES: usize = 1_000;
/// Letters of a version: a SHA-256 in hexadecimal digits.
const VERSION: usize = 64;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListingKind {
    /// The entries of a feed: RSS, Atom or JSON Feed.
    Feed,
    /// The addresses of a sitemap.
    Sitemap,
    /// The links of a web page.
    Links,
}

/// What is to be read, and within which limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListingRequest {
    /// What the bytes are that follow.
    pub kind: ListingKind,
    /// Where they came from, for what addresses in them are relative to.
    pub url: Url,
    /// The encoding that the server named.
    pub charset: Option<String>,
    /// Whether what a feed says of its entries is wanted also of those that link to a page.
    pub texts: bool,
    /// The most entries that are wanted, at most [`MAX_LISTED`].
    pub max_entries: usize,
    /// Address space the child allows itself, in bytes.
    pub memory_bytes: u64,
    /// Processor time the child allows itself, in seconds.
    pub cpu_seconds: u64,
}

/// An entry of a feed, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedEntry {
    /// What tells it from others, the same at every reading.
    pub key: String,
    /// What the feed calls it, whatever page it links to; none where it does not say.
    pub id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The page that it is about, without a fragment.
    pub link: Option<Url>,
    /// What the feed says of it, as a web page; none where that is not wanted.
    pub html: Option<String>,
    /// Hexadecimal digits that change with what the feed says of it.
    pub version: String,
}

impl FeedEntry {
    /// Bytes that it takes of [`MAX_LISTED_BYTES`].
    pub(crate) fn size(&self) -> usize {
        let link = self.link.as_ref().map_or(0, |link| link.as_str().len());
        let texts = [self.id.as_ref(), self.title.as_ref(), self.html.as_ref()].into_iter().flatten();
        self.key.len() + link + self.version.len() + texts.map(String::len).sum::<usize>()
    }

    /// Whether it may be an entry of the answer to a request.
    fn answers(&self, request: &ListingRequest) -> bool {
        let is_text = |html: &String| html.len() <= MAX_ENTRY_TEXT && is_clean(html);
        let is_left_out = self.html.is_none() && !request.texts && self.link.is_some();
        let is_name = |name: &String| (1..=MAX_URL).contains(&name.len()) && is_clean(name);
        is_name(&self.key)
            && self.id.as_ref().is_none_or(is_name)
            && self.title.as_deref().is_none_or(is_title)
            && self.link.as_ref().is_none_or(is_page)
            && (is_left_out || self.html.as_ref().is_some_and(is_text))
            && self.version.len() == VERSION
            && self.version.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// The entries of a feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedListing {
    /// In its order.
    pub entries: Vec<FeedEntry>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// What a sitemap lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SitemapListing {
    /// Whether the addresses are those of other sitemaps, and not of pages.
    pub is_index: bool,
    /// In its order.
    pub addresses: Vec<Url>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// Where a page leads, and what it asks of those who follow its links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLinks {
    /// Its title.
    pub title: Option<String>,
    /// The address that it calls its own.
    pub canonical: Option<Url>,
    /// Whether it may be kept.
    pub is_indexed: bool,
    /// Whether its links may be followed.
    pub is_followed: bool,
    /// The addresses that it links to, each once, in its order, without fragments.
    pub links: Vec<Url>,
}

impl Default for PageLinks {
    fn default() -> Self {
        Self { title: None, canonical: None, is_indexed: true, is_followed: true, links: Vec::new() }
    }
}

impl PageLinks {
    /// Heeds directives for robots, which are parted by commas: those of a page, or of an `X-Robots-Tag`.
    pub fn apply_directives(&mut self, directives: &str) {
        for directive in directives.split(',') {
            match directive.trim().to_ascii_lowercase().as_str() {
                "noindex" => self.is_indexed = false,
                "nofollow" => self.is_followed = false,
                "none" => (self.is_indexed, self.is_followed) = (false, false),
                _ => {}
            }
        }
    }
}

/// A list as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// The entries of a feed.
    Feed(FeedListing),
    /// The addresses of a sitemap.
    Sitemap(SitemapListing),
    /// The links of a page.
    Links(PageLinks),
}

impl Listing {
    /// What the child says of it, one message after the other.
    pub(crate) fn into_messages(self) -> Vec<ListingMessage> {
        let done = |is_complete, is_index| ListingMessage::Done { is_complete, is_index };
        match self {
            Self::Feed(FeedListing { entries, is_complete }) => {
                let entries = entries.into_iter().map(ListingMessage::Entry);
                entries.chain([done(is_complete, false)]).collect()
            }
            Self::Sitemap(SitemapListing { is_index, addresses, is_complete }) => {
                let some = |some: &[Url]| ListingMessage::Addresses(some.to_vec());
                addresses.chunks(ADDRESSES).map(some).chain([done(is_complete, is_index)]).collect()
            }
            Self::Links(links) => vec![ListingMessage::Links(links), done(true, false)],
        }
    }
}

/// Why there is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ListingError {
    /// The bytes are something else.
    #[error("it is not what it was taken for")]
    Unreadable,
    /// What read them says what it must not say.
    #[error("what was read of it is not usable")]
    BadOutput,
}

/// What the child answers: pieces of the list, then exactly one `Failed` or `Done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListingMessage {
    /// The next entry of a feed.
    Entry(FeedEntry),
    /// The next addresses of a sitemap.
    Addresses(Vec<Url>),
    /// The links of a page.
    Links(PageLinks),
    /// Why there is no list.
    Failed(ListingError),
    /// Everything has been sent.
    Done {
        /// Whether this was all that there is.
        is_complete: bool,
        /// Whether the addresses are those of other sitemaps.
        is_index: bool,
    },
}

/// Puts a list together from what a child says, which may have been taken over: lengths, numbers and addresses are looked at here.
#[derive(Debug)]
pub struct ListingCollector {
    request: ListingRequest,
    entries: Vec<FeedEntry>,
    addresses: Vec<Url>,
    links: Option<PageLinks>,
    bytes: usize,
}

impl ListingCollector {
    /// Before the first message of the answer to a request.
    pub fn new(request: ListingRequest) -> Self {
        Self { request, entries: Vec::new(), addresses: Vec::new(), links: None, bytes: 0 }
    }

    /// Takes the next message in; the list when it is the last one.
    ///
    /// # Errors
    /// When there is no list, or the child says what it must not say.
    pub fn admit(&mut self, message: ListingMessage) -> Result<Option<Listing>, ListingError> {
        match (message, self.request.kind) {
            (ListingMessage::Failed(error), _) => return Err(error),
            (ListingMessage::Entry(entry), ListingKind::Feed) if entry.answers(&self.request) => {
                self.count(entry.size(), 1)?;
                self.entries.push(entry);
            }
            (ListingMessage::Addresses(addresses), ListingKind::Sitemap) if addresses.iter().all(is_page) => {
                self.count(addresses.iter().map(|url| url.as_str().len()).sum(), addresses.len())?;
                self.addresses.extend(addresses);
            }
            (ListingMessage::Links(links), ListingKind::Links)
                if self.links.is_none() && are_sane(&links) =>
            {
                self.links = Some(links);
            }
            (ListingMessage::Done { is_complete, is_index }, kind) => {
                let list = match kind {
                    ListingKind::Feed => {
                        Listing::Feed(FeedListing { entries: std::mem::take(&mut self.entries), is_complete })
                    }
                    ListingKind::Sitemap => {
                        let addresses = std::mem::take(&mut self.addresses);
                        Listing::Sitemap(SitemapListing { is_index, addresses, is_complete })
                    }
                    ListingKind::Links => Listing::Links(self.links.take().ok_or(ListingError::BadOutput)?),
                };
                return Ok(Some(list));
            }
            (ListingMessage::Entry(_) | ListingMessage::Addresses(_) | ListingMessage::Links(_), _) => {
                return Err(ListingError::BadOutput);
            }
        }
        Ok(None)
    }

    /// Counts what has come, with so many bytes and entries more.
    fn count(&mut self, bytes: usize, entries: usize) -> Result<(), ListingError> {
        self.bytes = self.bytes.saturating_add(bytes);
        let entries = entries.saturating_add(self.entries.len()).saturating_add(self.addresses.len());
        let fits = self.bytes <= MAX_LISTED_BYTES && entries <= self.request.max_entries.min(MAX_LISTED);
        if fits { Ok(()) } else { Err(ListingError::BadOutput) }
    }
}

/// Whether this is the address of a page that may be asked for: it holds no credentials, and no fragment, under which the same page would
/// be asked for again.
pub(crate) fn is_page(url: &Url) -> bool {
    let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    matches!(url.scheme(), "http" | "https") && is_plain && url.as_str().len() <= MAX_URL
}

/// Whether these can be the links of a page.
fn are_sane(page: &PageLinks) -> bool {
    page.title.as_deref().is_none_or(is_title)
        && page.canonical.as_ref().is_none_or(is_page)
        && page.links.len() <= MAX_LINKS
        && page.links.iter().all(is_page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: ListingKind) -> ListingRequest {
        ListingRequest {
            kind,
            url: Url::parse("https://a.example/").unwrap(),
            charset: None,
            texts: true,
            max_entries: 2,
            memory_bytes: 0,
            cpu_seconds: 0,
        }
    }

    fn entry() -> FeedEntry {
        FeedEntry {
            key: "1".to_owned(),
            id: Some("one".to_owned()),
            title: Some("One".to_owned()),
            link: Url::parse("https://a.example/1").ok(),
            html: Some("<p>One".to_owned()),
            version: "a".repeat(VERSION),
        }
    }

    const DONE: ListingMessage = ListingMessage::Done { is_complete: true, is_index: false };

    #[test]
    fn a_list_is_put_together_as_it_was_taken_apart() {
        let url = |path: &str| Url::parse(&format!("https://a.example/{path}")).unwrap();
        for (kind, list) in [
            (ListingKind::Feed, Listing::Feed(FeedListing { entries: vec![entry(); 2], is_complete: false })),
            (
                ListingKind::Sitemap,
                Listing::Sitemap(SitemapListing {
                    is_index: true,
                    addresses: vec![url("a"), url("b")],
                    is_complete: true,
                }),
            ),
            (ListingKind::Links, Listing::Links(PageLinks { links: vec![url("c")], ..PageLinks::default() })),
        ] {
            let mut collector = ListingCollector::new(request(kind));
            let ends: Vec<_> =
                list.clone().into_messages().into_iter().map(|message| collector.admit(message)).collect();
            assert_eq!(ends.last(), Some(&Ok(Some(list))));
        }
    }

    #[test]
    fn what_no_child_says_of_its_own_is_refused() {
        let url = |text: &str| Url::parse(text).ok();
        let long = format!("https://a.example/{}", "x".repeat(MAX_URL));
        let entries = [
            FeedEntry { key: String::new(), ..entry() },
            FeedEntry { key: "a\0".to_owned(), ..entry() },
            FeedEntry { key: "x".repeat(MAX_URL + 1), ..entry() },
            FeedEntry { id: Some(String::new()), ..entry() },
            FeedEntry { id: Some("a\0".to_owned()), ..entry() },
            FeedEntry { id: Some("x".repeat(MAX_URL + 1)), ..entry() },
            FeedEntry { title: Some("x".repeat(5_000)), ..entry() },
            FeedEntry { title: Some("\0".to_owned()), ..entry() },
            FeedEntry { link: url("file:///etc/passwd"), ..entry() },
            FeedEntry { link: url("https://me:pw@a.example/"), ..entry() },
            FeedEntry { link: url("https://a.example/#part"), ..entry() },
            FeedEntry { link: url(&long), ..entry() },
            FeedEntry { html: None, ..entry() },
            FeedEntry { html: Some("\0".to_owned()), ..entry() },
            FeedEntry { html: Some("x".repeat(MAX_ENTRY_TEXT + 1)), ..entry() },
            FeedEntry { version: "x".repeat(VERSION), ..entry() },
            FeedEntry { version: "a".to_owned(), ..entry() },
        ];
        for (number, entry) in entries.into_iter().enumerate() {
            let mut collector = ListingCollector::new(request(ListingKind::Feed));
            assert_eq!(
                collector.admit(ListingMessage::Entry(entry)),
                Err(ListingError::BadOutput),
                "{number}"
            );
        }
        let mut collector = ListingCollector::new(request(ListingKind::Feed));
        let ends = [0; 3].map(|_| collector.admit(ListingMessage::Entry(entry())));
        assert_eq!(ends, [Ok(None), Ok(None), Err(ListingError::BadOutput)], "more than were asked for");
        let address = vec![url("https://a.example/").unwrap()];
        for (kind, message) in [
            (ListingKind::Feed, ListingMessage::Addresses(address.clone())),
            (ListingKind::Sitemap, ListingMessage::Addresses(vec![url("data:,x").unwrap()])),
            (
                ListingKind::Sitemap,
                ListingMessage::Addresses([address.clone(), address.clone(), address].concat()),
            ),
            (ListingKind::Sitemap, ListingMessage::Entry(entry())),
            (ListingKind::Links, DONE),
        ] {
            assert_eq!(ListingCollector::new(request(kind)).admit(message), Err(ListingError::BadOutput));
        }
    }
}
