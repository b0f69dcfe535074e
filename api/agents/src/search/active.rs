//! What of a workspace's can be searched at one moment, as a process remembers it.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use lectern_db::{self as db, Db, DbError, documents::ChangedDocument};
use lectern_shared::{
    cache_budget::CacheBudget,
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::{document::ActiveDocument, language::Language},
};
use parking_lot::Mutex;
use uuid::Uuid;

use super::judged::JudgedFilters;
use crate::stamped_cache::StampedCache;

/// Searchable documents take one of so many parts of what all lists may take.
const PART: u64 = 2;
/// Those of one workspace take one of so many parts of that: with the default, about 150,000 documents. The passages of so many do not fit
/// into the index's cache either.
const SHARE: u64 = 2;
/// What the allocator keeps of each piece of memory, and the two counters of an [`Arc`], in bytes.
const OVERHEAD: usize = 16;

/// One workspace's searchable documents at one epoch.
pub(super) struct ActiveSet {
    epoch: i64,
    /// By their ids.
    pub(super) documents: Vec<Arc<ActiveDocument>>,
    /// The place of each generation's document.
    places: HashMap<GenerationId, usize>,
    tally: CorpusTally,
    pub(super) whole: CorpusSummary,
    pub(super) judged: JudgedFilters,
}

/// What is known of the passages of some documents together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CorpusSummary {
    /// The languages of the passages and how many there are of each, the most frequent first.
    pub(super) languages: Vec<(Language, u64)>,
    /// The embedding spaces of their vectors.
    pub(super) spaces: Vec<Uuid>,
}

/// Counts what a [`CorpusSummary`] tells.
#[derive(Clone, Debug, Default)]
struct CorpusTally {
    /// Passages of each language.
    passages: HashMap<Language, u64>,
    /// Documents of each embedding space.
    spaces: HashMap<Uuid, u64>,
}

impl CorpusTally {
    fn of<'a>(documents: impl Iterator<Item = &'a ActiveDocument>) -> Self {
        let mut tally = Self::default();
        documents.for_each(|document| tally.add(document));
        tally
    }

    fn add(&mut self, document: &ActiveDocument) {
        for (language, count) in languages(document) {
            *self.passages.entry(language).or_default() += count;
        }
        if let Some(space) = document.embedding_space {
            *self.spaces.entry(space).or_default() += 1;
        }
    }

    fn remove(&mut self, document: &ActiveDocument) {
        for (language, count) in languages(document) {
            subtract(&mut self.passages, &language, count);
        }
        if let Some(space) = document.embedding_space {
            subtract(&mut self.spaces, &space, 1);
        }
    }

    fn summary(&self) -> CorpusSummary {
        let mut languages: Vec<_> =
            self.passages.iter().map(|(language, count)| (*language, *count)).collect();
        languages.sort_unstable_by_key(|(language, count)| (Reverse(*count), *language));
        let mut spaces: Vec<_> = self.spaces.keys().copied().collect();
        spaces.sort_unstable();
        CorpusSummary { languages, spaces }
    }
}

/// How many passages of a document are in which languages.
fn languages(document: &ActiveDocument) -> impl Iterator<Item = (Language, u64)> {
    let known = |(code, count): &(u8, u64)| Some((Language::from_code(u32::from(*code))?, *count));
    document.languages.0.iter().filter_map(known)
}

/// What comes to nothing is forgotten.
fn subtract<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u64>, key: &K, count: u64) {
    if let Some(left) = counts.get_mut(key) {
        *left = left.saturating_sub(count);
        if *left == 0 {
            counts.remove(key);
        }
    }
}

impl CorpusSummary {
    pub(super) fn of<'a>(documents: impl Iterator<Item = &'a ActiveDocument>) -> Self {
        CorpusTally::of(documents).summary()
    }
}

impl ActiveSet {
    fn new(epoch: i64, documents: Vec<Arc<ActiveDocument>>) -> Self {
        let tally = CorpusTally::of(documents.iter().map(Arc::as_ref));
        Self {
            epoch,
            places: places(&documents),
            documents,
            whole: tally.summary(),
            tally,
            judged: JudgedFilters::default(),
        }
    }

    /// What it has become. Documents that are new have the latest ids, so that mostly none of the others moves.
    fn changed(&self, epoch: i64, changes: Vec<ChangedDocument>) -> Self {
        let (mut documents, mut tally) = (self.documents.clone(), self.tally.clone());
        let (mut known, mut moved) = (self.places.clone(), false);
        for ChangedDocument { id, active } in changes {
            let place = documents.binary_search_by_key(&id, |document| document.id);
            if let Some(former) = place.ok().and_then(|place| documents.get(place)) {
                tally.remove(former);
                known.remove(&former.active_generation);
            }
            if let Some(active) = &active {
                tally.add(active);
            }
            match (place, active.map(Arc::new)) {
                (Ok(place), Some(active)) => {
                    known.insert(active.active_generation, place);
                    documents[place] = active;
                }
                (Err(place), Some(active)) => {
                    moved |= place < documents.len();
                    known.insert(active.active_generation, place);
                    documents.insert(place, active);
                }
                (Ok(place), None) => {
                    moved = true;
                    documents.remove(place);
                }
                (Err(_), None) => {}
            }
        }
        let places = if moved { places(&documents) } else { known };
        Self { epoch, documents, places, whole: tally.summary(), tally, judged: JudgedFilters::default() }
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
        let judged = JudgedFilters::bytes(self.documents.len());
        (documents + self.documents.capacity() * size_of::<Arc<ActiveDocument>>() + places + judged) as u64
    }

    /// The document that a generation answers for.
    pub(super) fn document(&self, generation: GenerationId) -> Option<&ActiveDocument> {
        self.documents.get(*self.places.get(&generation)?).map(Arc::as_ref)
    }
}

/// The place of each generation's document.
fn places(documents: &[Arc<ActiveDocument>]) -> HashMap<GenerationId, usize> {
    documents.iter().enumerate().map(|(at, document)| (document.active_generation, at)).collect()
}

/// The sets of the workspaces who searched last. Cheap to clone.
#[derive(Clone)]
pub(super) struct ActiveSetCache {
    db: Db,
    sets: Arc<Mutex<StampedCache<WorkspaceId, i64, ActiveSet>>>,
}

impl ActiveSetCache {
    pub(super) fn new(db: Db, budget: &CacheBudget) -> Self {
        Self { db, sets: Arc::new(Mutex::new(StampedCache::new(budget, budget.for_lists() / PART, SHARE))) }
    }

    /// The workspace's searchable documents, as of `epoch` or later if the caller has just read it, or of now. The epoch is read first: a
    /// change that comes later raises it, so an outdated set is never kept under a current number.
    pub(super) async fn of(
        &self,
        workspace: WorkspaceId,
        epoch: Option<i64>,
    ) -> Result<Arc<ActiveSet>, DbError> {
        let epoch = match epoch {
            Some(epoch) => epoch,
            None => db::documents::search_epoch(&self.db, workspace).await?,
        };
        let former = self.sets.lock().get(&workspace);
        let set = match former {
            // A later one, which another search has read meanwhile, is as good.
            Some((at, set)) if at >= epoch => return Ok(set),
            Some((_, former)) => self.refresh(workspace, &former, epoch).await?,
            None => self.read(workspace, epoch).await?,
        };
        let set = Arc::new(set);
        self.sets.lock().put(workspace, epoch, Arc::clone(&set), set.bytes());
        Ok(set)
    }

    async fn read(&self, workspace: WorkspaceId, epoch: i64) -> Result<ActiveSet, DbError> {
        let documents = db::documents::active(&self.db, workspace).await?;
        Ok(ActiveSet::new(epoch, documents.into_iter().map(Arc::new).collect()))
    }

    /// Reads what has changed since: while documents are ingested that is one of thousands at a time.
    async fn refresh(
        &self,
        workspace: WorkspaceId,
        former: &ActiveSet,
        epoch: i64,
    ) -> Result<ActiveSet, DbError> {
        match db::documents::changed_since(&self.db, workspace, former.epoch).await? {
            Some(changes) => Ok(former.changed(epoch, changes)),
            None => self.read(workspace, epoch).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::Json;

    use super::*;

    fn document(id: DocumentId, language: Language, passages: u64, space: Option<u128>) -> ActiveDocument {
        ActiveDocument {
            id,
            active_generation: GenerationId::generate(),
            languages: Json(vec![(language.code(), passages)].into()),
            embedding_space: space.map(Uuid::from_u128),
        }
    }

    #[test]
    fn a_set_that_has_changed_is_what_is_read_anew() {
        let ids: Vec<_> = (0..6).map(|_| DocumentId::generate()).collect();
        let of = |place: usize, language, passages, space| document(ids[place], language, passages, space);
        let (english, german) = (Language::English, Language::German);
        let first = [of(0, english, 3, Some(1)), of(2, german, 5, None), of(3, english, 1, Some(2))];
        let set = ActiveSet::new(1, first.iter().cloned().map(Arc::new).collect());
        let (again, between, last) =
            (of(0, german, 2, Some(1)), of(1, german, 1, None), of(5, english, 9, None));
        let changes = [
            // Ingested again, made searchable at last, deleted, new, and deleted before anybody saw it.
            ChangedDocument { id: ids[0], active: Some(again.clone()) },
            ChangedDocument { id: ids[1], active: Some(between.clone()) },
            ChangedDocument { id: ids[3], active: None },
            ChangedDocument { id: ids[4], active: None },
            ChangedDocument { id: ids[5], active: Some(last.clone()) },
        ];
        let now = [again, between, first[1].clone(), last];
        let read = ActiveSet::new(2, now.iter().cloned().map(Arc::new).collect());
        let changed = set.changed(2, changes.to_vec());
        assert_eq!((changed.epoch, changed.len(), &changed.whole), (2, 4, &read.whole));
        assert_eq!(changed.places, read.places);
        for (document, place) in now.iter().zip(0..) {
            assert_eq!(changed.id(place), Some(document.id));
            assert_eq!(changed.document(document.active_generation).map(|found| found.id), Some(document.id));
        }
        assert!(changed.document(first[0].active_generation).is_none(), "it was replaced");
        assert_eq!(set.whole.spaces.len(), 2, "what others search in is as it was");
    }
}
