//! What of a workspace's can be searched at one moment, as a process remembers it.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use lectern_shared::{
    cache_budget::CacheBudget,
    db::{self, Db, DbError, documents::ActiveVersion},
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::{document::ActiveDocument, language::Language},
};
use parking_lot::Mutex;
use uuid::Uuid;

use super::remembered::WorkspaceCache;

/// Searchable documents take one of so many parts of what all lists may take.
const PART: u64 = 2;
/// Those of one workspace take one of so many parts of that: with the default, about 150,000 documents. The passages of so many do not fit
/// into the index's cache either.
const SHARE: u64 = 2;
/// What the allocator keeps of each piece of memory, and the two counters of an [`Arc`], in bytes.
const OVERHEAD: usize = 16;

/// The most changed documents that are named in a statement; when more have changed, all are read.
const READ_SINGLY: usize = 200;

/// One workspace's searchable documents at one epoch.
pub(super) struct ActiveSet {
    epoch: i64,
    /// By their ids.
    pub(super) documents: Vec<Arc<ActiveDocument>>,
    /// The place of each generation's document.
    places: HashMap<GenerationId, usize>,
    pub(super) whole: CorpusSummary,
}

/// What is known of the passages of some documents together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CorpusSummary {
    /// The languages of the passages and how many there are of each, the most frequent first.
    pub(super) languages: Vec<(Language, u64)>,
    /// The embedding spaces of their vectors.
    pub(super) spaces: Vec<Uuid>,
}

impl CorpusSummary {
    pub(super) fn of<'a>(documents: impl Iterator<Item = &'a ActiveDocument>) -> Self {
        let mut passages: HashMap<Language, u64> = HashMap::new();
        let mut spaces: Vec<Uuid> = Vec::new();
        for document in documents {
            for (code, count) in &document.languages.0 {
                if let Some(language) = Language::from_code(u32::from(*code)) {
                    *passages.entry(language).or_default() += count;
                }
            }
            if let Some(space) = document.embedding_space
                && !spaces.contains(&space)
            {
                spaces.push(space);
            }
        }
        let mut languages: Vec<_> = passages.into_iter().collect();
        languages.sort_unstable_by_key(|(language, count)| (Reverse(*count), *language));
        spaces.sort_unstable();
        Self { languages, spaces }
    }
}

impl ActiveSet {
    fn new(epoch: i64, documents: Vec<Arc<ActiveDocument>>) -> Self {
        let places = documents.iter().enumerate().map(|(at, d)| (d.active_generation, at)).collect();
        let whole = CorpusSummary::of(documents.iter().map(Arc::as_ref));
        Self { epoch, documents, places, whole }
    }

    /// The epoch at which it was read.
    pub(super) const fn epoch(&self) -> i64 {
        self.epoch
    }

    /// How many documents there are.
    pub(super) const fn len(&self) -> usize {
        self.documents.len()
    }

    /// The document at a place; they are in the order of their ids.
    pub(super) fn id(&self, place: usize) -> Option<DocumentId> {
        self.documents.get(place).map(|document| document.id)
    }

    /// The bytes that it takes.
    fn bytes(&self) -> u64 {
        let document = |document: &Arc<ActiveDocument>| {
            let languages = size_of_val::<[_]>(&document.languages.0);
            size_of::<ActiveDocument>() + 2 * OVERHEAD + languages + OVERHEAD
        };
        let documents = self.documents.iter().map(document).sum::<usize>();
        // Of the map's places seven in eight can be taken, and each has a byte of its own.
        let places = self.places.capacity() * 8 / 7 * (size_of::<(GenerationId, usize)>() + 1);
        (documents + self.documents.capacity() * size_of::<Arc<ActiveDocument>>() + places) as u64
    }

    /// The document that a generation answers for.
    pub(super) fn document(&self, generation: GenerationId) -> Option<&ActiveDocument> {
        self.at(generation).map(Arc::as_ref)
    }

    fn at(&self, generation: GenerationId) -> Option<&Arc<ActiveDocument>> {
        self.documents.get(*self.places.get(&generation)?)
    }

    /// The document, if it still is what it was when this set was read.
    fn unchanged(&self, version: &ActiveVersion) -> Option<&Arc<ActiveDocument>> {
        self.at(version.generation)
            .filter(|known| known.id == version.id && known.updated_at == version.updated_at)
    }
}

/// The sets of the workspaces who searched last. Cheap to clone.
#[derive(Clone)]
pub(super) struct ActiveSetCache {
    db: Db,
    sets: Arc<Mutex<WorkspaceCache<ActiveSet>>>,
}

impl ActiveSetCache {
    pub(super) fn new(db: Db, budget: &CacheBudget) -> Self {
        Self { db, sets: Arc::new(Mutex::new(WorkspaceCache::new(budget, budget.for_lists() / PART, SHARE))) }
    }

    /// The workspace's searchable documents. The epoch is read first: a change that comes later raises it, so an outdated set
    /// is never kept under a current number.
    pub(super) async fn of(&self, workspace: WorkspaceId) -> Result<Arc<ActiveSet>, DbError> {
        let epoch = db::documents::search_epoch(&self.db, workspace).await?;
        let former = self.sets.lock().get(workspace);
        let documents = match former {
            Some((at, set)) if at == epoch => return Ok(set),
            Some((_, former)) => self.refresh(workspace, &former).await?,
            None => self.all(workspace).await?,
        };
        let set = Arc::new(ActiveSet::new(epoch, documents));
        self.sets.lock().put(workspace, epoch, Arc::clone(&set), set.bytes());
        Ok(set)
    }

    async fn all(&self, workspace: WorkspaceId) -> Result<Vec<Arc<ActiveDocument>>, DbError> {
        Ok(db::documents::active(&self.db, workspace).await?.into_iter().map(Arc::new).collect())
    }

    /// Reads what has changed since: while documents are ingested that is one of thousands at a time.
    async fn refresh(
        &self,
        workspace: WorkspaceId,
        former: &ActiveSet,
    ) -> Result<Vec<Arc<ActiveDocument>>, DbError> {
        let versions = db::documents::active_versions(&self.db, workspace).await?;
        let changed: Vec<DocumentId> = versions
            .iter()
            .filter(|version| former.unchanged(version).is_none())
            .map(|version| version.id)
            .collect();
        if changed.len() > READ_SINGLY {
            return self.all(workspace).await;
        }
        let read = db::documents::active_among(&self.db, workspace, &changed).await?;
        let mut read: HashMap<_, _> = read.into_iter().map(|document| (document.id, document)).collect();
        let now = |version: &ActiveVersion| {
            let unchanged = former.unchanged(version).map(Arc::clone);
            // One that is gone meanwhile has raised the epoch again.
            unchanged.or_else(|| read.remove(&version.id).map(Arc::new))
        };
        Ok(versions.iter().filter_map(now).collect())
    }
}
