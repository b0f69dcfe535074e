//! What of a user's can be searched at one moment, as a process remembers it.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    num::NonZeroUsize,
    sync::Arc,
};

use lru::LruCache;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::Filter;
use crate::{
    db::{self, Db, DbError, documents::ActiveVersion},
    ids::{DocumentId, GenerationId, UserId},
    index::lexical::Language,
    model::document::ActiveDocument,
};

/// Users whose searchable documents are remembered.
const CACHED_USERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);

/// The most changed documents that are named in a statement; when more have changed, all are read.
const READ_SINGLY: usize = 200;

type Metadata = HashMap<DocumentId, Map<String, Value>>;

/// One user's searchable documents at one epoch.
pub(super) struct ActiveSet {
    documents: Vec<Arc<ActiveDocument>>,
    /// The place of each generation's document.
    places: HashMap<GenerationId, usize>,
    whole: Summary,
    /// Read when a search first asks for it: most never do.
    metadata: OnceCell<Metadata>,
}

/// What is known of the passages of some documents together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// The languages of the passages and how many there are of each, the most frequent first.
    pub(super) languages: Vec<(Language, u64)>,
    /// The embedding spaces of their vectors.
    pub(super) spaces: Vec<Uuid>,
}

impl Summary {
    fn of<'a>(documents: impl Iterator<Item = &'a ActiveDocument>) -> Self {
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

/// Which of the documents a search is about.
pub(super) struct Selection {
    /// Their generations.
    pub(super) generations: Vec<GenerationId>,
    /// Those of the others.
    pub(super) others: Vec<GenerationId>,
    /// What they are like.
    pub(super) summary: Summary,
}

impl ActiveSet {
    fn new(documents: Vec<Arc<ActiveDocument>>) -> Self {
        let places = documents.iter().enumerate().map(|(at, d)| (d.active_generation, at)).collect();
        let whole = Summary::of(documents.iter().map(Arc::as_ref));
        Self { documents, places, whole, metadata: OnceCell::new() }
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

    /// Those of the documents that are named, all when none are, and that meet the filter.
    pub(super) async fn select(
        &self,
        db: &Db,
        user: UserId,
        named: Option<&[DocumentId]>,
        filter: &Filter,
    ) -> Result<Selection, DbError> {
        if named.is_none() && filter.is_empty() {
            let generations = self.documents.iter().map(|d| d.active_generation).collect();
            return Ok(Selection { generations, others: Vec::new(), summary: self.whole.clone() });
        }
        let named: Option<HashSet<DocumentId>> = named.map(|ids| ids.iter().copied().collect());
        let metadata = if filter.is_empty() { None } else { Some(self.metadata(db, user).await?) };
        let is_meant = |document: &ActiveDocument| {
            named.as_ref().is_none_or(|named| named.contains(&document.id))
                && metadata.is_none_or(|metadata| filter.meets(metadata.get(&document.id)))
        };
        // In the order of the documents, so that ties break alike every time.
        let (meant, others): (Vec<&ActiveDocument>, Vec<&ActiveDocument>) =
            self.documents.iter().map(Arc::as_ref).partition(|d| is_meant(d));
        Ok(Selection {
            generations: meant.iter().map(|d| d.active_generation).collect(),
            others: others.iter().map(|d| d.active_generation).collect(),
            summary: Summary::of(meant.into_iter()),
        })
    }

    /// A change that comes after the set was read raised the epoch, so that this set is not used any more.
    async fn metadata(&self, db: &Db, user: UserId) -> Result<&Metadata, DbError> {
        let read = async || {
            let rows = db::documents::active_metadata(db, user).await?;
            Ok(rows.into_iter().map(|(id, metadata)| (id, metadata.0)).collect())
        };
        self.metadata.get_or_try_init(read).await
    }
}

/// Each with the epoch at which it was read.
type Sets = LruCache<UserId, (i64, Arc<ActiveSet>)>;

/// The sets of the users who searched last. Cheap to clone.
#[derive(Clone)]
pub(super) struct ActiveSets {
    db: Db,
    sets: Arc<Mutex<Sets>>,
}

impl ActiveSets {
    pub(super) fn new(db: Db) -> Self {
        Self { db, sets: Arc::new(Mutex::new(LruCache::new(CACHED_USERS))) }
    }

    /// The user's searchable documents. The epoch is read first: a change that comes later raises it, so an outdated set
    /// is never kept under a current number.
    pub(super) async fn of(&self, user: UserId) -> Result<Arc<ActiveSet>, DbError> {
        let epoch = db::documents::search_epoch(&self.db, user).await?;
        let former = self.sets.lock().get(&user).map(|(at, set)| (*at, Arc::clone(set)));
        let documents = match former {
            Some((at, set)) if at == epoch => return Ok(set),
            Some((_, former)) => self.again(user, &former).await?,
            None => self.all(user).await?,
        };
        let set = Arc::new(ActiveSet::new(documents));
        self.sets.lock().put(user, (epoch, Arc::clone(&set)));
        Ok(set)
    }

    async fn all(&self, user: UserId) -> Result<Vec<Arc<ActiveDocument>>, DbError> {
        Ok(db::documents::active(&self.db, user).await?.into_iter().map(Arc::new).collect())
    }

    /// Reads what has changed since: while documents are ingested that is one of thousands at a time.
    async fn again(&self, user: UserId, former: &ActiveSet) -> Result<Vec<Arc<ActiveDocument>>, DbError> {
        let versions = db::documents::active_versions(&self.db, user).await?;
        let changed: Vec<DocumentId> = versions
            .iter()
            .filter(|version| former.unchanged(version).is_none())
            .map(|version| version.id)
            .collect();
        if changed.len() > READ_SINGLY {
            return self.all(user).await;
        }
        let read = db::documents::active_among(&self.db, user, &changed).await?;
        let mut read: HashMap<_, _> = read.into_iter().map(|document| (document.id, document)).collect();
        let now = |version: &ActiveVersion| {
            let unchanged = former.unchanged(version).map(Arc::clone);
            // One that is gone meanwhile has raised the epoch again.
            unchanged.or_else(|| read.remove(&version.id).map(Arc::new))
        };
        Ok(versions.iter().filter_map(now).collect())
    }
}
