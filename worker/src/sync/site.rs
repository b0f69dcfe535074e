//! The pages of a web site, found by its sitemap or by its links.

mod listed;
mod moves;

use lectern_db::sync::items;
use lectern_parse::protocol::PageLinks;
use lectern_sandbox::Sandbox;
use lectern_shared::{
    address::shown,
    model::{
        Json,
        sync::{PageDiscovery, SiteConfig, SyncCounts, SyncItem},
    },
};
use url::Url;

use self::moves::{ReadPage, SiteMoves};
use super::{
    address::{ends_as, is_same_site, last_segment, path_of, plain_path_of},
    context::{Enumeration, SyncContext},
    failure::RunFailure,
    frontier::Frontier,
    item::{FoundItem, ItemValidators, is_unreadable},
    pages::{FetchedPage, KnownPage, LinksFailure, PageAnswer, PageClient, PageRedirect, without_fragment},
    record::{ItemState, RunRecorder, document_name},
    spellings::{PageSpellings, is_other_spelling},
};

/// Bytes of a page's links that are remembered, so that they are known when the page has not changed. Of more, none are.
const REMEMBERED_LINKS: usize = 16 << 10;
/// Pages that are looked up at a time at the end.
const LOOKED_UP: u32 = 500;

/// Why a page is not asked for.
const NOT_FOR_ROBOTS: &str = "The site's robots.txt does not let robots read it.";
/// The same, where so many other pages were asked for.
const ASKED_ENOUGH: &str = "The site was asked for as many pages as a run asks for.";
/// Why no document is made of a page.
const NOT_TO_BE_KEPT: &str = "It asks not to be kept.";

/// Ends of addresses of what is only part of a page, or another way to it.
const PARTS_OF_PAGES: [&str; 4] = ["css", "map", "rss", "svg"];
/// Ends of addresses of scripts, and of pages that are called like one: `/wiki/Node.js`.
const SCRIPTS: [&str; 2] = ["js", "mjs"];

/// Reads a site.
pub(super) async fn read(
    context: &SyncContext<'_>,
    config: &SiteConfig,
    recorder: &mut RunRecorder<'_>,
) -> Result<Enumeration, RunFailure> {
    let start = Url::parse(&config.url).map_err(RunFailure::stop)?;
    let start = without_fragment(start);
    let client = PageClient::new(context, &start)?;
    let most = recorder.most() as usize;
    let formers = items::unseen(&context.runtime.db, recorder.run, "", 1).await?;
    let mut reader = SiteReader {
        client,
        sandbox: context.sandbox,
        config,
        recorder,
        start,
        frontier: Frontier::for_documents(most),
        spellings: PageSpellings::new(),
        moves: SiteMoves::of(!formers.is_empty()),
        most,
        requests: 0,
        follows: false,
        is_complete: true,
        is_restricted: false,
    };
    let listed = match config.discover {
        PageDiscovery::Crawl => None,
        PageDiscovery::Auto | PageDiscovery::Sitemap => reader.listed().await?,
    };
    match listed {
        Some(pages) => {
            for page in pages {
                reader.queue(page, 0);
            }
        }
        None if config.discover == PageDiscovery::Sitemap => {
            return Err(RunFailure::stop("The site has no sitemap; have its pages found by its links"));
        }
        None => {
            reader.follows = true;
            let start = reader.start.clone();
            reader.queue(start, 0);
        }
    }
    Box::pin(reader.go()).await
}

/// Goes through a site.
struct SiteReader<'r, 'c, 'a> {
    client: PageClient<'c>,
    sandbox: &'c Sandbox,
    config: &'r SiteConfig,
    recorder: &'r mut RunRecorder<'a>,
    start: Url,
    frontier: Frontier,
    spellings: PageSpellings,
    moves: SiteMoves,
    /// Documents, at most.
    most: usize,
    requests: usize,
    /// Whether links are followed.
    follows: bool,
    /// Whether everything was looked at.
    is_complete: bool,
    /// Whether there are pages that robots may not read.
    is_restricted: bool,
}

impl SiteReader<'_, '_, '_> {
    async fn go(mut self) -> Result<Enumeration, RunFailure> {
        self.visit_frontier().await?;
        if self.follows && self.is_complete {
            // Nothing may lead to a page that is still there, or that says where it is now: what somebody deleted stays away there, too.
            self.queue_unseen().await?;
            self.visit_frontier().await?;
        }
        if !self.follows && self.is_complete {
            Box::pin(self.ask_unlisted()).await?;
        }
        Box::pin(self.settle_names()).await?;
        Box::pin(self.take_up_waiting()).await?;
        let reason = if self.follows {
            "It is not part of the source any more."
        } else {
            "The site does not list it any more."
        };
        let is_complete = self.is_complete;
        Ok(Enumeration { unseen: is_complete.then_some(reason), is_complete, validators: None })
    }

    /// Queues a page of the site, unless it was seen before.
    fn queue(&mut self, page: Url, depth: u32) {
        let page = without_fragment(page);
        let is_new = is_same_site(&page, &self.start) && !self.frontier.has_seen(&page);
        if is_new && self.is_in_scope(&page) {
            self.is_complete &= self.frontier.push(page, depth);
        }
    }

    /// Whether a page is to be looked at: it may become a document, or everything begins with it.
    fn is_in_scope(&self, page: &Url) -> bool {
        let is_start = self.follows && *page == self.start;
        let is_page = !ends_as(page, &PARTS_OF_PAGES) && !is_unreadable(page.path());
        is_page && (self.is_admitted(page) || is_start && !self.is_excluded(page))
    }

    fn is_admitted(&self, page: &Url) -> bool {
        self.config.filter.admits_any(&[path_of(page), &plain_path_of(page)])
    }

    fn is_excluded(&self, page: &Url) -> bool {
        self.config.filter.excludes_any(&[path_of(page), &plain_path_of(page)])
    }

    async fn queue_unseen(&mut self) -> Result<(), RunFailure> {
        let mut after = String::new();
        loop {
            let (db, run) = (&self.recorder.runtime.db, self.recorder.run);
            let unseen = items::unseen(db, run, &after, LOOKED_UP).await?;
            let Some(last) = unseen.last() else { return Ok(()) };
            after.clone_from(last);
            for page in unseen.iter().filter_map(|key| Url::parse(key).ok()) {
                self.queue(page, self.config.max_depth);
            }
        }
    }

    /// Goes back to the pages that say that they are other ones: now it is known what is at the addresses that they name.
    async fn settle_names(&mut self) -> Result<(), RunFailure> {
        for named in self.spellings.take_named() {
            if self.has_asked_enough() {
                // What is at those addresses may be unknown.
                self.is_complete = false;
                break;
            }
            if self.spellings.is_alone(&named) {
                self.look_at(&named.page, named.depth).await?;
            } else {
                let (db, source) = (&self.recorder.runtime.db, self.recorder.run.source_id);
                let is_known = items::find(db, source, named.page.as_str()).await?.is_some();
                self.moves.lead(&named.page, &named.canonical, is_known);
                let reason = format!("It says that it is {}.", named.canonical);
                self.recorder.skip(named.page.as_str(), &reason).await?;
            }
        }
        self.visit_frontier().await
    }

    fn has_asked_enough(&self) -> bool {
        self.requests > 4 * self.most + 100
    }

    async fn visit_frontier(&mut self) -> Result<(), RunFailure> {
        while let Some((page, depth)) = self.frontier.pages.pop_front() {
            if self.has_asked_enough() {
                self.leave(&page, depth).await?;
            } else if self.client.may_ask(&page).await? {
                self.look_at(&page, depth).await?;
            } else {
                self.is_restricted = true;
                self.spellings.leads(&page, None);
                self.recorder.skip(page.as_str(), NOT_FOR_ROBOTS).await?;
            }
        }
        if self.is_restricted && self.requests == 0 && self.recorder.counts == SyncCounts::default() {
            return Err(RunFailure::stop(NOT_FOR_ROBOTS));
        }
        Ok(())
    }

    /// Leaves a page that is not asked for any more. A document that is there now, as the site says, stays as it was.
    async fn leave(&mut self, page: &Url, depth: u32) -> Result<(), RunFailure> {
        self.is_complete = false;
        if self.moves.waits() {
            self.moves.wait(page, depth, None);
        } else if self.recorder.vanished.is_told(page.as_str()) {
            self.recorder.failed(page.as_str(), ASKED_ENOUGH, None).await?;
        }
        Ok(())
    }

    async fn look_at(&mut self, page: &Url, depth: u32) -> Result<(), RunFailure> {
        let is_first = self.follows && *page == self.start;
        let state = if is_first || self.moves.waits() {
            // Everything else is found by it, or it is not known yet whether there is to be room.
            self.recorder.look_anyhow(page.as_str()).await?
        } else {
            self.recorder.look(page.as_str(), None).await?
        };
        let known = match state {
            ItemState::Settled(known) => return self.go_on_from(page, depth, known.as_ref()).await,
            ItemState::Open(known) => known,
            ItemState::LeftOut => {
                self.spellings.leads(page, None);
                self.recorder.may_leave_out_more |= self.follows;
                return Ok(());
            }
        };
        if known.is_none()
            && !is_first
            && self.moves.waits()
            && !self.recorder.has_room_for(self.moves.asked())
        {
            self.spellings.leads(page, None);
            self.moves.wait(page, depth, None);
            return Ok(());
        }
        let current = self.recorder.current(known.as_ref());
        // Of a page that has not changed, nobody would say where it leads.
        let current = current.filter(|known| !self.follows || known.links.is_some());
        let validators = KnownPage {
            etag: current.and_then(|known| known.etag.as_deref()),
            last_modified: current.and_then(|known| known.last_modified.as_deref()),
        };
        self.requests += 1;
        let answer = self.client.get(page, validators).await?;
        self.note_where_it_leads(page, &answer, known.as_ref());
        match (answer, known) {
            (PageAnswer::NotModified, Some(known)) => {
                self.queue_known_links(Some(&known), depth);
                self.recorder.unchanged(&known).await
            }
            (PageAnswer::NotModified, None) => {
                self.fail(page, "The server says that it has not changed, which nobody asked.", None).await
            }
            (PageAnswer::Page(found), known) => self.found(page, depth, *found, known).await,
            (PageAnswer::Moved(redirect), known) => self.moved(page, depth, redirect, known).await,
            (PageAnswer::Missing(status), Some(known)) => {
                self.vanish(page).await?;
                self.recorder.gone(&known, &format!("The server answers with status {status}.")).await
            }
            (PageAnswer::Missing(status), None) => {
                let reason = format!("The server answers with status {status}.");
                // Links that lead nowhere are the site's own affair.
                if self.follows && *page != self.start {
                    return Ok(());
                }
                self.fail(page, &reason, None).await
            }
            (PageAnswer::Failed(reason), known) => self.fail(page, &reason, known.as_ref()).await,
        }
    }

    fn note_where_it_leads(&mut self, page: &Url, answer: &PageAnswer, known: Option<&SyncItem>) {
        match answer {
            PageAnswer::Moved(redirect) => {
                let to = redirect.to.as_ref().filter(|to| is_same_site(to, &self.start));
                self.spellings.leads(page, to);
            }
            PageAnswer::Missing(_) => self.spellings.leads(page, None),
            // Its document stays, if there is one.
            PageAnswer::Failed(_) if known.is_none() => self.spellings.leads(page, None),
            PageAnswer::NotModified | PageAnswer::Page(_) | PageAnswer::Failed(_) => {}
        }
    }

    async fn moved(
        &mut self,
        page: &Url,
        depth: u32,
        redirect: PageRedirect,
        known: Option<SyncItem>,
    ) -> Result<(), RunFailure> {
        let PageRedirect { to, is_permanent } = redirect;
        let words = to.as_ref().map_or_else(|| "elsewhere".to_owned(), shown);
        let reason = format!("It redirects to {words}.");
        if let Some(to) = to.as_ref().filter(|_| is_permanent) {
            self.moves.lead(page, to, known.is_some());
            // Where there is no room, pages that known ones lead to are asked for at the end.
            self.recorder.vanished.tell_on(page.as_str(), to.as_str());
        }
        match known {
            Some(known) if is_permanent => self.recorder.gone(&known, &reason).await?,
            // A site that is being worked on leads from everywhere to one page.
            Some(known) => self.recorder.failed(page.as_str(), &reason, Some(&known)).await?,
            None => self.recorder.skip(page.as_str(), &reason).await?,
        }
        if let Some(to) = to {
            if *page == self.start && is_same_site(&to, &self.start) {
                self.start = to.clone();
            }
            self.queue(to, depth);
        }
        Ok(())
    }

    /// Follows the links of a page that the run is through with; it is asked for them where they were too many to remember.
    async fn go_on_from(
        &mut self,
        page: &Url,
        depth: u32,
        known: Option<&SyncItem>,
    ) -> Result<(), RunFailure> {
        if known.is_none_or(|known| known.seen_run != Some(self.recorder.run.id)) {
            // It could not be had, or is gone.
            self.spellings.leads(page, None);
        }
        if known.is_none_or(|known| !self.follows || known.links.is_some()) {
            self.queue_known_links(known, depth);
            return Ok(());
        }
        self.requests += 1;
        let PageAnswer::Page(mut found) = self.client.get(page, KnownPage::default()).await? else {
            return Ok(());
        };
        match found.links(page, self.sandbox).await {
            Ok(links) => {
                self.follow(links.as_ref(), depth);
                Ok(())
            }
            Err(LinksFailure::Unreadable) => Ok(()),
            Err(LinksFailure::Run(failure)) => Err(failure),
        }
    }

    async fn fail(&mut self, page: &Url, reason: &str, known: Option<&SyncItem>) -> Result<(), RunFailure> {
        if self.follows && *page == self.start {
            return Err(RunFailure::stop(format!("The first page cannot be read. {reason}")));
        }
        if known.is_none() && self.moves.waits() {
            self.moves.fail(page, reason);
            return Ok(());
        }
        self.recorder.failed(page.as_str(), reason, known).await
    }

    async fn found(
        &mut self,
        page: &Url,
        depth: u32,
        mut found: FetchedPage,
        known: Option<SyncItem>,
    ) -> Result<(), RunFailure> {
        let links = match found.links(page, self.sandbox).await {
            Ok(links) => links,
            Err(LinksFailure::Unreadable) => {
                return self.fail(page, "The page takes too much to be read.", known.as_ref()).await;
            }
            Err(LinksFailure::Run(failure)) => return Err(failure),
        };
        let remembered = self.follow(links.as_ref(), depth);
        let is_indexed = links.as_ref().map_or_else(|| found.is_indexed(), |links| links.is_indexed);
        if !is_indexed {
            return match known {
                Some(known) => self.recorder.gone(&known, NOT_TO_BE_KEPT).await,
                None => self.recorder.skip(page.as_str(), NOT_TO_BE_KEPT).await,
            };
        }
        let canonical = links.as_ref().and_then(|links| links.canonical.as_ref());
        if let Some(canonical) = canonical.filter(|it| is_other_spelling(it, page))
            && self.spellings.put_off(page, canonical, depth)
        {
            self.queue(canonical.clone(), depth);
            if !self.frontier.has_seen(canonical) {
                // It is not looked at: patterns leave it out, or there is no room.
                self.spellings.leads(canonical, None);
            }
            return Ok(());
        }
        let is_script = links.is_none() && ends_as(page, &SCRIPTS);
        if is_script || !self.is_admitted(page) {
            return Ok(());
        }
        let read = ReadPage { file: found, title: links.and_then(|links| links.title), links: remembered };
        if known.is_none() && self.moves.waits() {
            self.moves.wait(page, depth, Some(read));
            return Ok(());
        }
        Box::pin(self.keep(page, read, known)).await
    }

    /// Makes a document of a page, or gives its document the new content.
    async fn keep(&mut self, page: &Url, read: ReadPage, known: Option<SyncItem>) -> Result<(), RunFailure> {
        let ReadPage { file, title, links } = read;
        let file_name = file.file_name.or_else(|| last_segment(page));
        let said = title.as_deref().or(file_name.as_deref());
        let item = FoundItem {
            key: page.as_str(),
            name: document_name(said, page.as_str()),
            url: Some(page),
            file_name,
            content_type: file.content_type.as_deref(),
            charset: file.charset.as_deref(),
            moves: self.moves.rule(&file.staged.sha256),
            staged: file.staged,
            validators: ItemValidators {
                etag: file.etag.as_deref(),
                last_modified: file.last_modified.as_deref(),
                version: None,
                links: links.as_deref(),
                entry_id: None,
            },
        };
        self.recorder.found(known, item).await
    }

    /// Queues where a page leads. Returns what is remembered of that: all of it, nothing when it is too much, or nobody asks.
    fn follow(&mut self, links: Option<&PageLinks>, depth: u32) -> Option<Vec<String>> {
        if !self.follows {
            return None;
        }
        let links = links.filter(|links| links.is_followed);
        let links = links.map(|links| links.links.as_slice()).unwrap_or_default();
        for link in links {
            self.queue_link(link.clone(), depth);
        }
        let on_site = links.iter().filter(|link| is_same_site(link, &self.start));
        let on_site: Vec<String> = on_site.map(Url::to_string).collect();
        let bytes: usize = on_site.iter().map(String::len).sum();
        (bytes < REMEMBERED_LINKS).then_some(on_site)
    }

    fn queue_known_links(&mut self, known: Option<&SyncItem>, depth: u32) {
        let links = known.and_then(|known| known.links.as_ref()).filter(|_| self.follows);
        for link in links.into_iter().flat_map(|Json(links)| links) {
            if let Ok(link) = Url::parse(link) {
                self.queue_link(link, depth);
            }
        }
    }

    fn queue_link(&mut self, link: Url, depth: u32) {
        if depth < self.config.max_depth {
            self.queue(link, depth + 1);
        }
    }
}
