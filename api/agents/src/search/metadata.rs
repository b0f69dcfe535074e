//! The metadata of a workspace's documents, as filters need it. What is small is remembered as the JSON text that it is stored as, which takes
//! a tenth of what its values would; what is not is read for each search, some documents at a time.

use std::{collections::HashMap, sync::Arc};

use lectern_db::{self as db, Db, DbError};
use lectern_shared::{
    cache_budget::CacheBudget,
    compute::{ComputePool, ComputeStopped},
    ids::{DocumentId, WorkspaceId},
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{MetadataFilter, SearchError, active::ActiveSet, filter::PreparedFilter};
use crate::stamped_cache::StampedCache;

/// Metadata takes one of so many parts of what all lists may take; the rest is for the lists that every search needs.
const PART: u64 = 2;
/// One workspace's metadata takes one of so many parts of that.
const SHARE: u64 = 4;
/// Documents that are judged at a time. When it is not remembered, so much metadata is read: 4 MiB at most, as each has at most 16 KiB.
const PAGE: usize = if cfg!(test) { 2 } else { 256 };
/// So many searches read metadata at once, each a page, or what is to be remembered of a workspace.
const READ_AT_ONCE: usize = 2;

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
}

impl MetadataTexts {
    /// The bytes that so many texts take.
    const fn bytes(count: u64, text: u64) -> u64 {
        count * (size_of::<DocumentId>() + size_of::<usize>()) as u64 + text
    }

    /// A document's, if it has some.
    fn of(&self, document: DocumentId) -> Option<&str> {
        let place = self.ids.binary_search(&document).ok()?;
        let before = place.checked_sub(1).and_then(|before| self.ends.get(before));
        self.text.get(before.copied().unwrap_or(0)..*self.ends.get(place)?)
    }
}

/// Which of some documents meet a filter, by the metadata of each.
fn judge<'a>(
    filter: &PreparedFilter,
    documents: &[DocumentId],
    metadata: impl Fn(DocumentId) -> Option<&'a str>,
) -> Result<Vec<bool>, DbError> {
    let meets = |document: &DocumentId| filter.meets(metadata(*document));
    let met: serde_json::Result<Vec<bool>> = documents.iter().map(meets).collect();
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
        let mut met = vec![false; set.len()];
        for page in places.chunks(PAGE) {
            let ids: Vec<DocumentId> = page.iter().filter_map(|place| set.id(*place)).collect();
            let judged = match &*known {
                CachedMetadata::Text(texts) => {
                    let (filter, texts) = (Arc::clone(&filter), Arc::clone(texts));
                    self.compute.run(move || judge(&filter, &ids, |id| texts.of(id))).await??
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
            judge(&filter, &ids, |id| texts.get(&id).copied())
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
        let (known, bytes) = match self.read(workspace).await? {
            Some(texts) => {
                let bytes = MetadataTexts::bytes(texts.ids.len() as u64, texts.text.len() as u64);
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

    /// None when it is more than is remembered of one workspace.
    async fn read(&self, workspace: WorkspaceId) -> Result<Option<MetadataTexts>, DbError> {
        let most = self.workspaces.lock().largest().saturating_sub(size_of::<MetadataTexts>() as u64);
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
        Ok(fits.then(|| MetadataTexts { ids: ids.into(), ends: ends.into(), text: text.into() }))
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, ComputeStopped> {
        self.turns.acquire().await.map_err(|_| ComputeStopped)
    }
}
