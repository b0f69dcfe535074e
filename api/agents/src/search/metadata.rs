//! The metadata of a workspace's documents, as filters need it. What is small is remembered as the JSON text that it is stored as, which takes
//! a tenth of what its values would, and once it is asked again, with the places of its values; of what has changed since then that alone is
//! read. What is not remembered is read for each search, some documents at a time.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use lectern_db::{self as db, Db, DbError};
use lectern_shared::{
    cache_budget::CacheBudget,
    compute::{ComputePool, ComputeStopped},
    ids::{DocumentId, WorkspaceId},
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    MetadataFilter, SearchError, active::ActiveSet, filter::PreparedFilter, members::MemberDirectory,
};
use crate::stamped_cache::StampedCache;

/// Metadata takes one of so many parts of what all lists may take; the rest is for the lists that every search needs.
const PART: u64 = 2;
/// One workspace's metadata takes one of so many parts of that.
const SHARE: u64 = 4;
/// Documents that are judged at a time. When it is not remembered, so much metadata is read: 4 MiB at most, as each has at most 16 KiB.
const PAGE: usize = if cfg!(test) { 2 } else { 256 };
/// Documents that have changed since their metadata was read, at most; of more all are read anew.
const CHANGED: u32 = if cfg!(test) { 2 } else { 256 };
/// So many searches read metadata at once, each a page, or what is to be remembered of a workspace.
const READ_AT_ONCE: usize = 2;
/// Less text than this is read faster than anybody notices.
const LARGE_TEXT: usize = if cfg!(test) { 1 } else { 64 << 10 };

/// The metadata of the workspaces who searched with filters last. Cheap to clone.
#[derive(Clone)]
pub(super) struct MetadataCache {
    db: Db,
    /// Its own: what a filter is worth is not computed in the place of other searches.
    pub(super) compute: ComputePool,
    workspaces: Arc<Mutex<StampedCache<WorkspaceId, i64, CachedMetadata>>>,
    /// Taken anew for every page, in the order of asking: nobody waits for more than a page of each other search.
    turns: Arc<Semaphore>,
}

/// What is known of a workspace's metadata.
enum CachedMetadata {
    Text(Arc<MetadataTexts>),
    /// More than is remembered of one workspace.
    TooMuch,
}

/// The metadata of some documents.
#[derive(Default)]
struct MetadataTexts {
    /// Those that have some, ascending.
    ids: Box<[DocumentId]>,
    /// Where the text of each ends.
    ends: Box<[usize]>,
    text: Box<str>,
    /// Whether there is room for the places of the values.
    may_index: bool,
    /// Whether a search has used this: it takes longer to look for the places of all values once than to read them once.
    is_used: AtomicBool,
    /// None when the text cannot be read, which whoever reads it is told.
    members: OnceLock<Option<Box<MemberDirectory>>>,
}

impl MetadataTexts {
    /// The bytes that so many texts take.
    const fn bytes(count: u64, text: u64) -> u64 {
        count * (size_of::<DocumentId>() + size_of::<usize>()) as u64 + text
    }

    /// The texts of documents in the order of their ids, and where each ends. `most` bytes may be remembered of them.
    fn new(ids: Vec<DocumentId>, ends: Vec<usize>, text: String, most: u64) -> Self {
        let mut texts = Self { ids: ids.into(), ends: ends.into(), text: text.into(), ..Self::default() };
        let is_large = texts.text.len() >= LARGE_TEXT;
        texts.may_index = is_large && texts.taken() + texts.directory_bytes() <= most;
        texts
    }

    /// What these have become, by the documents that have changed since, in the order of their ids: without a text those that have none any
    /// more.
    fn changed(&self, changes: &[(DocumentId, Option<String>)], most: u64) -> Self {
        let count = self.ids.len() + changes.len();
        let added: usize = changes.iter().filter_map(|(_, text)| text.as_ref()).map(String::len).sum();
        let (mut ids, mut ends) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut text = String::with_capacity(self.text.len() + added);
        let mut add = |id: DocumentId, metadata: &str| {
            text.push_str(metadata);
            ids.push(id);
            ends.push(text.len());
        };
        let mut known = self.ids.iter().copied().enumerate().peekable();
        for (id, metadata) in changes {
            while let Some((place, before)) = known.next_if(|(_, known)| known < id) {
                add(before, self.at(place).unwrap_or_default());
            }
            let _ = known.next_if(|(_, known)| known == id);
            if let Some(metadata) = metadata {
                add(*id, metadata);
            }
        }
        for (place, behind) in known {
            add(behind, self.at(place).unwrap_or_default());
        }
        Self::new(ids, ends, text, most)
    }

    /// The bytes that these take, with the places of their values if they are to be known.
    fn taken(&self) -> u64 {
        let members = if self.may_index { self.directory_bytes() } else { 0 };
        Self::bytes(self.ids.len() as u64, self.text.len() as u64) + members
    }

    fn directory_bytes(&self) -> u64 {
        (0..self.ids.len()).filter_map(|place| self.at(place)).map(MemberDirectory::bytes).sum()
    }

    /// The text at a place.
    fn at(&self, place: usize) -> Option<&str> {
        let before = place.checked_sub(1).and_then(|before| self.ends.get(before));
        self.text.get(before.copied().unwrap_or(0)..*self.ends.get(place)?)
    }

    /// A search begins to use this. Whether the places of the values are to be known for it: from the second one on.
    fn begin_use(&self) -> bool {
        self.may_index && self.is_used.swap(true, Ordering::Relaxed)
    }

    fn members(&self) -> Option<&MemberDirectory> {
        let texts = (0..self.ids.len()).filter_map(|place| self.at(place));
        self.members.get_or_init(|| MemberDirectory::of(texts).ok().map(Box::new)).as_deref()
    }

    /// Which of some documents meet a filter.
    fn judge(
        &self,
        filter: &PreparedFilter,
        documents: &[DocumentId],
        by_place: bool,
    ) -> Result<Vec<bool>, DbError> {
        let members = if by_place { self.members() } else { None };
        judge(documents, |document| {
            let Ok(place) = self.ids.binary_search(&document) else { return filter.meets(None) };
            match (members, self.at(place)) {
                (Some(members), Some(text)) => filter.meets_known(members, place, text),
                (_, text) => filter.meets(text),
            }
        })
    }
}

/// Which of some documents meet a filter.
fn judge(
    documents: &[DocumentId],
    meets: impl Fn(DocumentId) -> serde_json::Result<bool>,
) -> Result<Vec<bool>, DbError> {
    let met: serde_json::Result<Vec<bool>> = documents.iter().map(|document| meets(*document)).collect();
    met.map_err(|error| DbError::Unreadable(error.to_string()))
}

impl MetadataCache {
    pub(super) fn new(db: Db, budget: &CacheBudget) -> Self {
        let workspaces = StampedCache::new(budget, budget.for_lists() / PART, SHARE);
        Self {
            db,
            compute: ComputePool::per_core(),
            workspaces: Arc::new(Mutex::new(workspaces)),
            turns: Arc::new(Semaphore::new(READ_AT_ONCE)),
        }
    }

    /// For each document of the set whether it is at one of these places, which ascend, and meets the filter. Other searches have their
    /// turns between the pages, and a caller that goes away is not worked for any longer than one.
    pub(super) async fn met(
        &self,
        workspace: WorkspaceId,
        set: &ActiveSet,
        places: &[usize],
        filter: &MetadataFilter,
    ) -> Result<Vec<bool>, SearchError> {
        let known = self.known(workspace, set.epoch()).await?;
        let filter = Arc::new(PreparedFilter::of(filter));
        let by_place = match &*known {
            CachedMetadata::Text(texts) => texts.begin_use(),
            CachedMetadata::TooMuch => false,
        };
        let mut met = vec![false; set.len()];
        for page in places.chunks(PAGE) {
            let ids: Vec<DocumentId> = page.iter().filter_map(|place| set.id(*place)).collect();
            let judged = match &*known {
                CachedMetadata::Text(texts) => {
                    let (filter, texts) = (Arc::clone(&filter), Arc::clone(texts));
                    self.compute.run(move || texts.judge(&filter, &ids, by_place)).await??
                }
                CachedMetadata::TooMuch => self.judge_read(workspace, ids, Arc::clone(&filter)).await?,
            };
            for (place, judged) in page.iter().zip(judged) {
                if let Some(met) = met.get_mut(*place) {
                    *met = judged;
                }
            }
        }
        Ok(met)
    }

    /// Which of these documents meet a filter, by what is read for it.
    async fn judge_read(
        &self,
        workspace: WorkspaceId,
        ids: Vec<DocumentId>,
        filter: Arc<PreparedFilter>,
    ) -> Result<Vec<bool>, SearchError> {
        let _turn = self.turn().await?;
        let rows = db::documents::metadata::of(&self.db, workspace, &ids).await?;
        let judged = move || {
            let texts: HashMap<_, _> = rows.iter().map(|(id, text)| (*id, text.as_str())).collect();
            judge(&ids, |id| filter.meets(texts.get(&id).copied()))
        };
        Ok(self.compute.run(judged).await??)
    }

    /// The workspace's metadata. A change that comes after the epoch was read raised it, so that this is not used any more.
    async fn known(&self, workspace: WorkspaceId, epoch: i64) -> Result<Arc<CachedMetadata>, SearchError> {
        if let Some(known) = self.remembered(workspace, epoch) {
            return Ok(known);
        }
        let _turn = self.turn().await?;
        // Another search may have read it meanwhile.
        if let Some(known) = self.remembered(workspace, epoch) {
            return Ok(known);
        }
        let texts = match self.refresh(workspace).await? {
            Some(texts) => Some(texts),
            None => self.read(workspace).await?,
        };
        let (known, bytes) = match texts {
            Some(texts) => {
                let bytes = texts.taken();
                (CachedMetadata::Text(Arc::new(texts)), bytes)
            }
            None => (CachedMetadata::TooMuch, 0),
        };
        let known = Arc::new(known);
        self.workspaces.lock().put(
            workspace,
            epoch,
            Arc::clone(&known),
            bytes + size_of::<MetadataTexts>() as u64,
        );
        Ok(known)
    }

    fn remembered(&self, workspace: WorkspaceId, epoch: i64) -> Option<Arc<CachedMetadata>> {
        self.workspaces.lock().get(&workspace).filter(|(at, _)| *at == epoch).map(|(_, known)| known)
    }

    /// The most bytes of one workspace's texts.
    fn most(&self) -> u64 {
        self.workspaces.lock().largest().saturating_sub(size_of::<MetadataTexts>() as u64)
    }

    /// What is remembered, with what has changed since. None where all has to be read.
    async fn refresh(&self, workspace: WorkspaceId) -> Result<Option<MetadataTexts>, SearchError> {
        let Some((epoch, former)) = self.workspaces.lock().get(&workspace) else { return Ok(None) };
        if matches!(*former, CachedMetadata::TooMuch) {
            return Ok(None);
        }
        let changes = db::documents::metadata::changed_since(&self.db, workspace, epoch, CHANGED).await?;
        let Some(changes) = changes else { return Ok(None) };
        let most = self.most();
        let change = move || match &*former {
            CachedMetadata::Text(texts) => Some(texts.changed(&changes, most)),
            CachedMetadata::TooMuch => None,
        };
        let texts = self.compute.run(change).await?;
        Ok(texts
            .filter(|texts| MetadataTexts::bytes(texts.ids.len() as u64, texts.text.len() as u64) <= most))
    }

    /// None when it is more than is remembered of one workspace.
    async fn read(&self, workspace: WorkspaceId) -> Result<Option<MetadataTexts>, DbError> {
        let most = self.most();
        let (count, bytes) = db::documents::metadata::size(&self.db, workspace).await?;
        if MetadataTexts::bytes(count, bytes) > most {
            return Ok(None);
        }
        let room = |number: u64| usize::try_from(number).unwrap_or(0);
        let (mut ids, mut ends) = (Vec::with_capacity(room(count)), Vec::with_capacity(room(count)));
        let mut text = String::with_capacity(room(bytes));
        let mut fits = true;
        db::documents::metadata::each(&self.db, workspace, |id, metadata| {
            // It may have grown since.
            fits = MetadataTexts::bytes(ids.len() as u64 + 1, (text.len() + metadata.len()) as u64) <= most;
            if fits {
                text.push_str(metadata);
                ids.push(id);
                ends.push(text.len());
            }
            fits
        })
        .await?;
        Ok(fits.then(|| MetadataTexts::new(ids, ends, text, most)))
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, ComputeStopped> {
        self.turns.acquire().await.map_err(|_| ComputeStopped)
    }
}
