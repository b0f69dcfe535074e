//! Pages of a site that are elsewhere than they were. A new page waits until all that are known were asked for: only then is it known which
//! of these are gone, and where they say that they are now.

use std::collections::{HashMap, HashSet};

use lectern_db::sync::items;
use url::Url;

use super::SiteReader;
use crate::sync::{
    address::is_same_site,
    failure::RunFailure,
    pages::{FetchedPage, KnownPage, LinksFailure, PageAnswer, PageRedirect},
    record::ItemState,
    vanished::MoveRule,
};

/// New pages that are kept as they were read while they wait, and bytes of these, at most. Others are read anew.
const HELD: usize = 64;
const HELD_BYTES: u64 = 64 << 20;
/// Bytes of the addresses of which it is remembered where they lead.
const ROOM: usize = 16 << 20;
/// Addresses that are gone through from a page to where it is now.
const STEPS: usize = 5;

/// A page as it was read.
pub(super) struct ReadPage {
    pub(super) file: FetchedPage,
    pub(super) title: Option<String>,
    /// What is remembered of where it leads.
    pub(super) links: Option<Vec<String>>,
}

/// A new page that waits.
struct WaitingPage {
    page: Url,
    /// Links that led there.
    depth: u32,
    /// The hash of its bytes; none when it was not asked for, since there may be no room for it.
    sha256: Option<[u8; 32]>,
    /// As it was read, if that was kept.
    held: Option<Box<ReadPage>>,
}

/// What a run learns of pages that are elsewhere.
pub(super) struct SiteMoves {
    waits: bool,
    waiting: Vec<WaitingPage>,
    /// How many of these are kept as they were read, and their bytes.
    held: (usize, u64),
    /// New pages that could not be had, and why.
    failed: Vec<(Url, String)>,
    /// How many new pages were asked for, and how many of those that wait have the same bytes.
    asked: usize,
    hashes: HashMap<[u8; 32], usize>,
    /// Known pages that lead to others for good.
    led: Vec<Url>,
    /// Where addresses lead for good.
    hops: HashMap<Url, Url>,
    /// Bytes that more of these may take.
    room: usize,
    /// Known pages that are not where they were, and say nothing of where they are.
    vanished: HashSet<Url>,
}

impl SiteMoves {
    /// Of a site of which there are pages that a run has not seen yet, or none.
    pub(super) fn of(has_formers: bool) -> Self {
        Self {
            waits: has_formers,
            waiting: Vec::new(),
            failed: Vec::new(),
            held: (0, 0),
            asked: 0,
            hashes: HashMap::new(),
            led: Vec::new(),
            hops: HashMap::new(),
            room: ROOM,
            vanished: HashSet::new(),
        }
    }

    /// Whether new pages wait.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// How many new pages were asked for.
    pub(super) fn asked(&self) -> usize {
        self.asked
    }

    /// Has a new page wait, which was read, or not asked for.
    pub(super) fn wait(&mut self, page: &Url, depth: u32, read: Option<ReadPage>) {
        let sha256 = read.as_ref().map(|read| read.file.staged.sha256);
        if let Some(sha256) = sha256 {
            self.asked += 1;
            *self.hashes.entry(sha256).or_default() += 1;
        }
        let (count, bytes) = self.held;
        let held = read.filter(|read| count < HELD && bytes + read.file.staged.bytes <= HELD_BYTES);
        if let Some(read) = &held {
            self.held = (count + 1, bytes + read.file.staged.bytes);
        }
        self.waiting.push(WaitingPage { page: page.clone(), depth, sha256, held: held.map(Box::new) });
    }

    /// Notes why a new page could not be had, which is told when it is known whether it was elsewhere.
    pub(super) fn fail(&mut self, page: &Url, reason: &str) {
        self.asked += 1;
        self.failed.push((page.clone(), reason.to_owned()));
    }

    /// Notes that an address leads to another for good, and whether it is that of a known page; not if no new page waits any more, or there is
    /// no room for it.
    pub(super) fn lead(&mut self, from: &Url, to: &Url, is_known: bool) {
        if !self.waits || self.hops.contains_key(from) {
            return;
        }
        let bytes = 2 * from.as_str().len() + to.as_str().len();
        let Some(left) = self.room.checked_sub(bytes) else { return };
        self.room = left;
        self.hops.insert(from.clone(), to.clone());
        if is_known {
            self.led.push(from.clone());
        }
    }

    /// Notes that a known page is not where it was; false when that was noted, it leads elsewhere, or no new page waits any more.
    fn vanish(&mut self, page: &Url) -> bool {
        self.waits && !self.hops.contains_key(page) && self.vanished.insert(page.clone())
    }

    /// What a page may be that was elsewhere: of several with the same bytes it is not clear which one that is.
    pub(super) fn rule(&self, sha256: &[u8; 32]) -> MoveRule {
        let is_alone = self.hashes.get(sha256).is_none_or(|pages| *pages < 2);
        if is_alone { MoveRule::OnlyOne } else { MoveRule::Never }
    }

    /// Where known pages are now to which no other one leads, with where they were.
    fn told(&self) -> HashMap<&Url, &Url> {
        let mut told: HashMap<&Url, Option<&Url>> = HashMap::new();
        for page in &self.led {
            if let Some(end) = self.end_of(page) {
                told.entry(end).and_modify(|former| *former = None).or_insert(Some(page));
            }
        }
        told.into_iter().filter_map(|(end, former)| Some((end, former?))).collect()
    }

    /// Where an address leads in the end.
    fn end_of(&self, page: &Url) -> Option<&Url> {
        let mut end = self.hops.get(page)?;
        for _ in 0..STEPS {
            match self.hops.get(end) {
                Some(next) => end = next,
                None => return Some(end),
            }
        }
        None
    }

    /// The pages that have waited: first those that known ones lead to, then those that were asked for. None waits from then on.
    fn take_waiting(&mut self, told: &HashSet<Url>) -> [Vec<WaitingPage>; 2] {
        self.waits = false;
        let (mut first, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| told.contains(&waiting.page));
        let (asked, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|waiting| waiting.sha256.is_some());
        first.extend(asked);
        [first, others]
    }
}

impl SiteReader<'_, '_, '_> {
    /// Has a known page be looked for by its bytes, since it is not where it was.
    pub(super) async fn vanish(&mut self, page: &Url) -> Result<(), RunFailure> {
        if self.moves.vanish(page) {
            self.recorder.vanish(vec![page.to_string()]).await?;
        }
        Ok(())
    }

    /// Asks where the known pages are that the site does not list any more, if there are new ones that they may be.
    pub(super) async fn ask_unlisted(&mut self) -> Result<(), RunFailure> {
        if self.moves.waiting.is_empty() && self.moves.failed.is_empty() {
            return Ok(());
        }
        let mut keys = items::keys(&self.recorder.runtime.db, self.recorder.run.source_id).await?;
        keys.sort_unstable();
        for page in keys.iter().filter_map(|key| Url::parse(key).ok()) {
            let is_meant = !self.frontier.has_seen(&page) && is_same_site(&page, &self.start);
            if is_meant && self.is_in_scope(&page) && self.may_ask_further(&page).await? {
                Box::pin(self.ask_where(&page)).await?;
            }
        }
        Ok(())
    }

    async fn may_ask_further(&mut self, page: &Url) -> Result<bool, RunFailure> {
        Ok(!self.has_asked_enough() && self.client.may_ask(page).await?)
    }

    /// Asks where a known page is that the site does not list any more.
    async fn ask_where(&mut self, page: &Url) -> Result<(), RunFailure> {
        self.requests += 1;
        match self.client.get(page, KnownPage::default()).await? {
            PageAnswer::Moved(PageRedirect { to: Some(to), is_permanent: true }) => {
                self.moves.lead(page, &to, true);
                self.go_after(to).await
            }
            PageAnswer::Page(mut found) => {
                let links = match found.links(page, self.sandbox).await {
                    Ok(links) => links,
                    Err(LinksFailure::Unreadable) => None,
                    Err(LinksFailure::Run(failure)) => return Err(failure),
                };
                match links.and_then(|links| links.canonical).filter(|canonical| canonical != page) {
                    Some(canonical) => self.moves.lead(page, &canonical, true),
                    None => self.vanish(page).await?,
                }
                Ok(())
            }
            PageAnswer::Missing(_) => self.vanish(page).await,
            PageAnswer::Moved(_) | PageAnswer::NotModified | PageAnswer::Failed(_) => Ok(()),
        }
    }

    /// Goes from where a known page leads to further, until that is a page that the site lists.
    async fn go_after(&mut self, mut at: Url) -> Result<(), RunFailure> {
        for _ in 1..STEPS {
            let ends = self.frontier.has_seen(&at) || !is_same_site(&at, &self.start);
            if ends || !self.may_ask_further(&at).await? {
                break;
            }
            self.requests += 1;
            let answer = self.client.get(&at, KnownPage::default()).await?;
            let PageAnswer::Moved(PageRedirect { to: Some(to), is_permanent: true }) = answer else { break };
            self.moves.lead(&at, &to, false);
            at = to;
        }
        Ok(())
    }

    /// Takes up the new pages that have waited, now that it is known which of the others are gone.
    pub(super) async fn take_up_waiting(&mut self) -> Result<(), RunFailure> {
        let told = self.moves.told();
        let told: Vec<_> = told.into_iter().map(|(end, former)| (end.clone(), former.to_string())).collect();
        for (end, former) in &told {
            self.recorder.expect_at(end.as_str(), former).await?;
        }
        for (page, reason) in std::mem::take(&mut self.moves.failed) {
            self.recorder.failed(page.as_str(), &reason, None).await?;
        }
        let told: HashSet<Url> = told.into_iter().map(|(end, _)| end).collect();
        let [first, others] = self.moves.take_waiting(&told);
        for waiting in first {
            self.take_up(waiting).await?;
        }
        // Others are not asked for where there is no room for them: a site may have any number of them.
        self.recorder.vanished.forget_alike();
        for waiting in others {
            self.take_up(waiting).await?;
        }
        self.visit_frontier().await
    }

    async fn take_up(&mut self, waiting: WaitingPage) -> Result<(), RunFailure> {
        let WaitingPage { page, depth, held, .. } = waiting;
        let Some(read) = held else {
            if self.has_asked_enough() {
                return self.leave(&page, depth).await;
            }
            return Box::pin(self.look_at(&page, depth)).await;
        };
        match self.recorder.look(page.as_str(), None).await? {
            ItemState::Open(known) => Box::pin(self.keep(&page, *read, known)).await,
            ItemState::LeftOut => {
                self.recorder.may_leave_out_more |= self.follows;
                Ok(())
            }
            ItemState::Settled(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse("https://a.example").unwrap().join(path).unwrap()
    }

    /// Where known pages are by what leads where, and whether it is known.
    fn told(leads: &[(&str, &str, bool)]) -> Vec<(String, String)> {
        let mut moves = SiteMoves::of(true);
        for (from, to, is_known) in leads {
            moves.lead(&url(from), &url(to), *is_known);
        }
        let path = |url: &Url| url.path().to_owned();
        let mut told: Vec<_> =
            moves.told().into_iter().map(|(end, former)| (path(former), path(end))).collect();
        told.sort();
        told
    }

    #[test]
    fn a_page_is_where_it_alone_leads_in_the_end() {
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(
            told(&[("/a", "/b", true), ("/c", "/d", true), ("/e", "/f", false)]),
            [pair("/a", "/b"), pair("/c", "/d")]
        );
        assert_eq!(told(&[("/a", "/b", true), ("/b", "/c", false)]), [pair("/a", "/c")]);
        assert_eq!(told(&[("/a", "/b", true), ("/a", "/b", true)]), [pair("/a", "/b")], "it is told twice");
        assert!(told(&[("/a", "/home", true), ("/b", "/home", true)]).is_empty(), "two lead there");
        assert!(told(&[("/a", "/c", true), ("/b", "/x", true), ("/x", "/c", false)]).is_empty());
        assert!(told(&[("/a", "/b", true), ("/b", "/a", false)]).is_empty(), "it leads in a circle");
    }

    #[test]
    fn where_pages_lead_is_remembered_within_bounds_and_only_while_new_ones_wait() {
        let mut moves = SiteMoves::of(true);
        let long = url(&format!("/{}", "x".repeat(ROOM)));
        moves.lead(&url("/a"), &long, true);
        assert!(moves.hops.is_empty() && moves.led.is_empty());
        moves.lead(&url("/a"), &url("/b"), true);
        assert_eq!((moves.hops.len(), moves.led.len()), (1, 1), "there is room for others");
        let mut first = SiteMoves::of(false);
        first.lead(&url("/a"), &url("/b"), true);
        assert!(first.hops.is_empty() && first.led.is_empty());
    }

    #[test]
    fn a_page_that_says_where_it_is_is_not_looked_for_and_any_other_once() {
        let mut moves = SiteMoves::of(true);
        moves.lead(&url("/a"), &url("/b"), true);
        assert!(!moves.vanish(&url("/a")));
        assert!(moves.vanish(&url("/c")) && !moves.vanish(&url("/c")));
    }
}
