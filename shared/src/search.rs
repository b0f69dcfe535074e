//! Search: what a user asks, over the documents that are visible at that moment, with the passages filled in from the
//! relational store. Whoever wants passages (the search endpoint, an agent's run) comes through here.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    num::NonZeroUsize,
    sync::Arc,
};

use lru::LruCache;
use parking_lot::Mutex;

use crate::{
    db::{self, Db, DbError},
    ids::{DocumentId, GenerationId, UserId},
    index::{Candidates, IndexError, IndexQuery, SearchIndex, lexical::Language, score::fuse_dbsf},
    model::document::{ActiveDocument, Chunk, DocumentType},
};

/// Users whose searchable documents are remembered.
const CACHED_USERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);
/// Candidates fetched for each passage wanted: some turn out to be deleted since.
const DEPTH_FACTOR: usize = 3;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The relational store failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// A question.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Who asks; nobody else's passages are found.
    pub user: UserId,
    /// The question.
    pub query: String,
    /// The documents that are searched; all of the user's when none.
    pub documents: Option<Vec<DocumentId>>,
    /// The most passages.
    pub limit: usize,
}

/// A passage that was found.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Its document's name.
    pub document_name: String,
    /// The kind of its document's source.
    pub document_type: DocumentType,
    /// Where its document's source is; empty for inline content and uploads.
    pub document_url: String,
    /// The passage.
    pub chunk: Chunk,
    /// How well it matches; comparable within one answer only.
    pub score: f32,
    /// How well it matches by words.
    pub lexical: Option<f32>,
    /// How well it matches by meaning.
    pub dense: Option<f32>,
}

/// One user's searchable documents at one epoch.
type ActiveSet = Arc<Vec<ActiveDocument>>;

/// Search over whatever index is in use. Cheap to clone.
#[derive(Clone)]
pub struct Search {
    db: Db,
    index: Arc<dyn SearchIndex>,
    active: Arc<Mutex<LruCache<UserId, (i64, ActiveSet)>>>,
}

impl Search {
    /// Search over `index`.
    pub fn new(db: Db, index: Arc<dyn SearchIndex>) -> Self {
        Self { db, index, active: Arc::new(Mutex::new(LruCache::new(CACHED_USERS))) }
    }

    /// The passages that answer best, best first.
    pub async fn search(&self, request: &SearchRequest) -> Result<Vec<Passage>, SearchError> {
        let active = self.active_documents(request.user).await?;
        let wanted: Option<HashSet<DocumentId>> =
            request.documents.as_ref().map(|ids| ids.iter().copied().collect());
        let visible: HashMap<GenerationId, &ActiveDocument> = active
            .iter()
            .filter(|document| wanted.as_ref().is_none_or(|wanted| wanted.contains(&document.id)))
            .map(|document| (document.active_generation, document))
            .collect();
        if visible.is_empty() || request.limit == 0 {
            return Ok(Vec::new());
        }
        // In the order of the documents, so that ties break alike every time.
        let (generations, others) =
            active.iter().map(|d| d.active_generation).partition(|g| visible.contains_key(g));
        let candidates = self
            .index
            .search(IndexQuery {
                user: request.user,
                generations,
                others,
                languages: languages(visible.values().copied()),
                text: request.query.clone(),
                vectors: Vec::new(),
                depth: request.limit.saturating_mul(DEPTH_FACTOR),
            })
            .await?;
        self.fill_in(request, &visible, &candidates).await
    }

    /// Fuses the lists and reads the passages; one that was deleted meanwhile makes room for the next best.
    async fn fill_in(
        &self,
        request: &SearchRequest,
        visible: &HashMap<GenerationId, &ActiveDocument>,
        candidates: &Candidates,
    ) -> Result<Vec<Passage>, SearchError> {
        let list = |from: &[crate::index::Candidate]| -> Vec<((GenerationId, u32), f32)> {
            from.iter().map(|c| ((c.generation, c.ordinal), c.score)).collect()
        };
        let lexical = list(&candidates.lexical);
        let dense: Vec<_> = candidates.dense.iter().map(|candidates| list(candidates)).collect();
        let lists: Vec<_> =
            std::iter::once(&lexical).chain(&dense).filter(|list| !list.is_empty()).cloned().collect();
        let fused = match lists.as_slice() {
            [] => return Ok(Vec::new()),
            // A list alone keeps its own scores.
            [only] => only.clone(),
            several => fuse_dbsf(several, several.iter().map(Vec::len).sum()),
        };
        let lexical: HashMap<_, _> = lexical.into_iter().collect();
        let dense: HashMap<_, _> = dense.into_iter().flatten().collect();
        let mut passages = Vec::with_capacity(request.limit);
        for some in fused.chunks(request.limit) {
            let keys: Vec<_> = some.iter().map(|(key, _)| *key).collect();
            let mut chunks: HashMap<_, _> = db::chunks::fetch(&self.db, request.user, &keys)
                .await?
                .into_iter()
                .map(|(generation, chunk)| {
                    ((generation, u32::try_from(chunk.ordinal).unwrap_or(u32::MAX)), chunk)
                })
                .collect();
            for (key, score) in some {
                let (Some(document), Some(chunk)) = (visible.get(&key.0), chunks.remove(key)) else {
                    continue;
                };
                passages.push(Passage {
                    document_name: document.name.clone(),
                    document_type: document.r#type,
                    document_url: document.url.clone(),
                    chunk,
                    score: *score,
                    lexical: lexical.get(key).copied(),
                    dense: dense.get(key).copied(),
                });
                if passages.len() == request.limit {
                    return Ok(passages);
                }
            }
        }
        Ok(passages)
    }

    /// The user's searchable documents. The epoch is read first: a change that comes later raises it, so an outdated set
    /// is never kept under a current number.
    async fn active_documents(&self, user: UserId) -> Result<ActiveSet, DbError> {
        let epoch = db::documents::search_epoch(&self.db, user).await?;
        if let Some((at, set)) = self.active.lock().get(&user)
            && *at == epoch
        {
            return Ok(Arc::clone(set));
        }
        let set = Arc::new(db::documents::active(&self.db, user).await?);
        self.active.lock().put(user, (epoch, Arc::clone(&set)));
        Ok(set)
    }
}

/// The languages of these documents' passages, most frequent first.
fn languages<'a>(documents: impl Iterator<Item = &'a ActiveDocument>) -> Vec<Language> {
    let mut passages: HashMap<Language, u64> = HashMap::new();
    for (code, count) in documents.flat_map(|document| &document.languages.0) {
        if let Some(language) = Language::from_code(u32::from(*code)) {
            *passages.entry(language).or_default() += count;
        }
    }
    let mut languages: Vec<_> = passages.into_iter().collect();
    languages.sort_unstable_by_key(|(language, count)| (Reverse(*count), *language));
    languages.into_iter().map(|(language, _)| language).collect()
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
