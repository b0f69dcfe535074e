//! Asking sites for pages: politely, conditionally, and without being led elsewhere.

use std::{collections::HashMap, time::Duration};

use futures::stream;
use lectern_parse::protocol::{Listing, ListingKind, MAX_URL, PageLinks};
use lectern_sandbox::{ListOrder, Sandbox};
use lectern_shared::{
    address::shown,
    disposition::file_name,
    egress::{Egress, EgressError, EgressRequest, EgressResponse, RequestLimits},
    file_name::cleaned,
    format::FileFormat,
    retry::retry_after,
};
use reqwest::header::{
    ACCEPT, CONTENT_DISPOSITION, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION,
};
use url::{Origin, Url};

use super::{
    context::SyncContext,
    failure::RunFailure,
    hosts::HostPacer,
    item::{StagedFile, StagingFailure},
    listing,
    robots::{ROBOTS_BYTES, SiteRules},
};
use crate::source::authorization_headers;

/// A server that sends nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(20);
/// How often a page is asked for that its server cannot send now, and the longest pause that it may ask for.
const TRIES: u32 = 3;
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// The pause when it does not ask for one.
const PAUSE: Duration = Duration::from_secs(5);
/// Bytes of a page beyond which its links are not read.
const LARGEST_PAGE: u64 = 8 << 20;
/// Hosts of which the rules are remembered in a run, and bytes of these rules.
const HOSTS: usize = 100;
const RULES_BYTES: usize = 16 << 20;
/// Requests in a row without an answer, after which a run is given up.
const MOST_UNANSWERED: u32 = 10;

/// What a site answers.
pub(super) enum PageAnswer {
    /// It is as it was.
    NotModified,
    /// A page, or another file.
    Page(Box<FetchedPage>),
    /// It is elsewhere.
    Moved(PageRedirect),
    /// There is nothing; the status.
    Missing(u16),
    /// It cannot be had; why.
    Failed(String),
}

/// Where a page is instead.
pub(super) struct PageRedirect {
    /// None when that cannot be read.
    pub(super) to: Option<Url>,
    /// Whether it is to stay there.
    pub(super) is_permanent: bool,
}

/// A page, or another file.
pub(super) struct FetchedPage {
    pub(super) staged: StagedFile,
    pub(super) content_type: Option<String>,
    pub(super) charset: Option<String>,
    pub(super) file_name: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// What the server asks of robots.
    robots: Vec<String>,
}

impl FetchedPage {
    /// Whether its server lets it be kept.
    pub(super) fn is_indexed(&self) -> bool {
        let mut asked = PageLinks::default();
        for directives in &self.robots {
            asked.apply_directives(directives);
        }
        asked.is_indexed
    }

    /// Where it leads; none when it is no web page.
    ///
    /// # Errors
    /// [`LinksFailure::Unreadable`] when that cannot be read of this page.
    pub(super) async fn links(
        &mut self,
        url: &Url,
        sandbox: &Sandbox,
    ) -> Result<Option<PageLinks>, LinksFailure> {
        let name = url.path_segments().and_then(|mut segments| segments.next_back());
        let (content_type, charset) = (self.content_type.as_deref(), self.charset.as_deref());
        if FileFormat::detect(&self.staged.head, name, content_type, charset) != FileFormat::Html {
            return Ok(None);
        }
        let mut links = PageLinks::default();
        if self.staged.bytes <= LARGEST_PAGE {
            let raw = self.staged.read().await.map_err(|error| LinksFailure::Run(error.into()))?;
            let order = ListOrder {
                kind: ListingKind::Links,
                url: url.clone(),
                charset: self.charset.clone(),
                texts: false,
                max_entries: 0,
            };
            match listing::read(sandbox, order, &raw).await.map_err(LinksFailure::Run)? {
                Some(Listing::Links(read)) => links = read,
                _ => return Err(LinksFailure::Unreadable),
            }
        }
        for directives in &self.robots {
            links.apply_directives(directives);
        }
        Ok(Some(links))
    }
}

/// Why it is not known where a page leads.
pub(super) enum LinksFailure {
    /// The page needs more to be read than is allowed.
    Unreadable,
    /// It is no matter of the page's.
    Run(RunFailure),
}

/// By what a page is known.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownPage<'a> {
    pub(super) etag: Option<&'a str>,
    pub(super) last_modified: Option<&'a str>,
}

/// Asks sites for pages in a run.
pub(super) struct PageClient<'a> {
    egress: &'a Egress,
    pacer: &'a HostPacer,
    limits: RequestLimits,
    /// What is sent to this origin, and to no other.
    authorization: HeaderMap,
    own: Origin,
    rules: HashMap<Origin, SiteRules>,
    unanswered: u32,
}

impl<'a> PageClient<'a> {
    /// For a source at this address.
    pub(super) fn new(context: &SyncContext<'a>, url: &Url) -> Result<Self, RunFailure> {
        let limits = &context.runtime.settings.limits;
        let authorization = context.secret.authorization.clone().map(authorization_headers).transpose()?;
        Ok(Self {
            egress: &context.runtime.egress,
            pacer: context.pacer,
            limits: RequestLimits {
                max_bytes: limits.source_bytes,
                total_timeout: limits.fetch_timeout,
                idle_timeout: SILENCE,
            },
            authorization: authorization.unwrap_or_default(),
            own: url.origin(),
            rules: HashMap::new(),
            unanswered: 0,
        })
    }

    /// The sitemaps that the site of an address names for robots.
    pub(super) async fn sitemaps(&mut self, url: &Url) -> Result<Vec<Url>, RunFailure> {
        Ok(self.rules(url).await?.sitemaps(url))
    }

    /// Whether the site of an address lets robots ask for it.
    pub(super) async fn may_ask(&mut self, url: &Url) -> Result<bool, RunFailure> {
        Ok(self.rules(url).await?.allows(url))
    }

    /// Asks for a page, unless it is as it is known. Redirects are not followed.
    pub(super) async fn get(&mut self, url: &Url, known: KnownPage<'_>) -> Result<PageAnswer, RunFailure> {
        let mut tried = 0;
        loop {
            tried += 1;
            let response = match self.send(url, known, false).await? {
                Ok(response) => response,
                Err(error) => return self.unanswered(&error),
            };
            self.unanswered = 0;
            let status = response.status;
            let pause = retry_after(&response.headers);
            let why = format!("The server answers with status {status}.");
            return Ok(match status {
                200 | 203 => match staged(response).await {
                    Ok(page) => PageAnswer::Page(Box::new(page)),
                    Err(StagingFailure::Here(failure)) => return Err(failure),
                    Err(StagingFailure::Source(error)) => PageAnswer::Failed(sentence(&error)),
                },
                304 => PageAnswer::NotModified,
                301 | 302 | 303 | 307 | 308 => PageAnswer::Moved(PageRedirect {
                    to: location(url, &response.headers),
                    is_permanent: matches!(status, 301 | 308),
                }),
                404 | 410 => PageAnswer::Missing(status),
                429 | 503 if pause.is_some_and(|pause| pause > LONGEST_PAUSE) => {
                    return Err(RunFailure::stop(
                        "The site asks to be left alone for longer than a run waits; try again later",
                    ));
                }
                429 | 503 if tried < TRIES => {
                    tokio::time::sleep(pause.unwrap_or(PAUSE)).await;
                    continue;
                }
                _ => PageAnswer::Failed(why),
            });
        }
    }

    /// Asks for something that is read into memory, at most so many bytes of it; none when there is no such thing. Redirects are followed.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) async fn small_file(
        &mut self,
        url: &Url,
        known: KnownPage<'_>,
        most: u64,
    ) -> Result<SmallFile, RunFailure> {
        let failed = |error: &EgressError| RunFailure::stop(error);
        let mut response = self.send(url, known, true).await?.map_err(|error| failed(&error))?;
        let status = response.status;
        match status {
            200 | 203 => {}
            304 => return Ok(SmallFile::NotModified),
            404 | 410 => return Ok(SmallFile::Missing),
            _ => return Err(RunFailure::stop(format!("{} answers with status {status}", shown(url)))),
        }
        let (etag, last_modified) =
            (response.etag().map(str::to_owned), response.last_modified().map(str::to_owned));
        let charset = response.charset();
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > most {
                return Err(RunFailure::stop(format!("{} has more than {most} bytes", shown(url))));
            }
        }
        Ok(SmallFile::Read { bytes, charset, etag, last_modified })
    }

    async fn send(
        &mut self,
        url: &Url,
        known: KnownPage<'_>,
        follow_redirects: bool,
    ) -> Result<Result<EgressResponse, EgressError>, RunFailure> {
        let delay = self.rules.get(&url.origin()).map_or(Duration::ZERO, SiteRules::delay);
        self.pacer.turn(url.host_str().unwrap_or_default(), delay).await;
        let mut request = EgressRequest::get(url.clone(), self.limits);
        request.follow_redirects = follow_redirects;
        // A run asks for one page after the other.
        request.takes_brotli = true;
        request.portable_headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if url.origin() == self.own {
            request.headers = self.authorization.clone();
        }
        for (name, value) in [(IF_NONE_MATCH, known.etag), (IF_MODIFIED_SINCE, known.last_modified)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                request.headers.insert(name, value);
            }
        }
        Ok(self.egress.send(request).await)
    }

    /// Notes that a server did not answer.
    fn unanswered(&mut self, error: &EgressError) -> Result<PageAnswer, RunFailure> {
        if matches!(
            error,
            EgressError::TooLarge { .. }
                | EgressError::InvalidUrl { .. }
                | EgressError::ContentNotSentOn { .. }
                | EgressError::RefusedRedirect { .. }
        ) {
            return Ok(PageAnswer::Failed(sentence(error)));
        }
        self.unanswered += 1;
        if self.unanswered >= MOST_UNANSWERED {
            return Err(RunFailure::stop(format!(
                "{MOST_UNANSWERED} requests in a row were not answered; the last time, {error}"
            )));
        }
        Ok(PageAnswer::Failed(sentence(error)))
    }

    /// What the site of an address asks of robots.
    ///
    /// # Errors
    /// When it does not say: then nothing may be asked of it.
    async fn rules(&mut self, url: &Url) -> Result<&SiteRules, RunFailure> {
        let origin = url.origin();
        if !self.rules.contains_key(&origin) {
            let rules = self.ask_rules(url).await?;
            let bytes: usize = self.rules.values().map(SiteRules::bytes).sum();
            if self.rules.len() >= HOSTS || bytes.saturating_add(rules.bytes()) > RULES_BYTES {
                self.rules.clear();
            }
            self.rules.insert(origin.clone(), rules);
        }
        self.rules.get(&origin).ok_or(RunFailure::Interrupted)
    }

    async fn ask_rules(&mut self, url: &Url) -> Result<SiteRules, RunFailure> {
        let address = url.join("/robots.txt").map_err(RunFailure::stop)?;
        let response = self.send(&address, KnownPage::default(), true).await?;
        let unread = |error: EgressError| {
            RunFailure::stop(format!("What the site asks of robots could not be read: {error}"))
        };
        let mut response = response.map_err(unread)?;
        let bytes = match response.status {
            200..=299 => {
                let mut bytes = Vec::new();
                // What comes behind does not count.
                while bytes.len() < ROBOTS_BYTES
                    && let Some(piece) = response.chunk().await.map_err(unread)?
                {
                    bytes.extend_from_slice(&piece);
                }
                bytes.truncate(ROBOTS_BYTES);
                bytes
            }
            status @ (429 | 500..=599) => {
                return Err(RunFailure::stop(format!(
                    "{} answers with status {status}, and until it says what robots may do, nothing is asked of the site",
                    shown(&address)
                )));
            }
            // There are no rules.
            _ => return Ok(SiteRules::none()),
        };
        let read = tokio::task::spawn_blocking(move || SiteRules::read(&bytes));
        // Whoever wrote rules does not want everything to be asked for.
        Ok(read.await.unwrap_or_else(|_| SiteRules::closed()))
    }
}

/// Where a redirect leads; none when that is no address.
fn location(url: &Url, headers: &HeaderMap) -> Option<Url> {
    let to = headers.get(LOCATION)?.to_str().ok()?;
    if to.len() > MAX_URL {
        return None;
    }
    let to = without_fragment(url.join(to).ok()?);
    (to.as_str().len() <= MAX_URL).then_some(to)
}

/// Something that was read into memory.
pub(super) enum SmallFile {
    /// It is as it was.
    NotModified,
    /// There is none.
    Missing,
    /// Its bytes, their encoding as far as the server says so, and by what it is known.
    Read { bytes: Vec<u8>, charset: Option<String>, etag: Option<String>, last_modified: Option<String> },
}

/// Reads an answer to its end.
async fn staged(response: EgressResponse) -> Result<FetchedPage, StagingFailure<EgressError>> {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let robots = response.headers.get_all("x-robots-tag").iter().filter_map(text).collect();
    let disposition = response.headers.get(CONTENT_DISPOSITION).and_then(text);
    let (content_type, charset) = (response.content_type(), response.charset());
    let (etag, last_modified) =
        (response.etag().map(str::to_owned), response.last_modified().map(str::to_owned));
    let pieces = stream::try_unfold(response, |mut response| async {
        let piece = response.chunk().await?;
        Ok::<_, EgressError>(piece.map(|piece| (piece, response)))
    });
    let staged = StagedFile::of(std::pin::pin!(pieces)).await?;
    Ok(FetchedPage {
        staged,
        content_type,
        charset,
        file_name: disposition.as_deref().and_then(file_name).and_then(|name| cleaned(&name)),
        etag,
        last_modified,
        robots,
    })
}

fn sentence(error: &EgressError) -> String {
    format!("It could not be fetched: {error}.")
}

/// An address without what names a part of a page.
pub(super) fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_to_a_long_address_leads_nowhere() {
        let url = Url::parse("https://a.example/b/c").unwrap();
        let to = |to: &str| {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(to).unwrap())]);
            location(&url, &headers)
        };
        assert_eq!(to("../d?e#f").map(String::from).as_deref(), Some("https://a.example/d?e"));
        let begin = "https://a.example/";
        assert!(to(&"x".repeat(MAX_URL - begin.len() - "b/".len())).is_some());
        // Written out, it is longer.
        assert_eq!(to(&"x".repeat(MAX_URL)), None);
        assert_eq!(to(&"\"".repeat(MAX_URL / 2)), None);
        assert_eq!(to(&format!("/#{}", "x".repeat(MAX_URL))), None);
        assert_eq!(location(&url, &HeaderMap::new()), None);
    }
}
