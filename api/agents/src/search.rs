//! Search: what a workspace asks, over the documents that are visible at that moment, by words and by meaning, with the passages
//! filled in from the relational store. Whoever wants passages (the search endpoint, an agent's run) comes through here.

mod active;
mod alike;
mod excerpt;
mod filter;
mod fuse;
mod metadata;
mod remembered;
mod rerank;
mod selection;

use std::{collections::HashMap, num::NonZeroUsize, sync::Arc, time::Duration};

use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use self::excerpt::{Excerpt, ExcerptPart};
use self::{
    active::{ActiveSet, ActiveSetCache, CorpusSummary},
    alike::ShingleSketch,
    fuse::{RankedList, fuse},
    metadata::MetadataCache,
    rerank::RerankStage,
    selection::DocumentSelection,
};
pub use self::{
    filter::{MetadataCondition, MetadataFilter, MetadataTest},
    rerank::{RerankPatience, RerankReport},
};
use lectern_embed::{EmbedError, Embedder, EmbeddingModels, RerankModel};
use lectern_index::{
    IndexError, IndexQuery, SearchCandidate, SearchIndex, SpaceVector, lexical::question_language,
};
use lectern_shared::{
    cache_budget::CacheBudget,
    compute::{ComputePool, ComputeStopped},
    db::{self, Db, DbError, chunks::FetchedChunk},
    ids::{ChunkId, DocumentId, GenerationId, WorkspaceId},
    metrics::{EmbeddingPurpose, Metrics},
    model::{
        document::{ActiveDocument, Chunk, DocumentType},
        language::Language,
        search::SearchMode,
    },
};

/// Candidates of each kind that are fused, at least. Measured: anything between 50 and 200 is within the noise.
const DEPTH: usize = 200;
/// What words and meaning count. Measured: anything between 0.4 and 0.6 is within the noise.
const WEIGHT: f32 = 0.5;
/// Candidates fetched for each passage wanted: some turn out to be deleted since, or to say what another says.
const DEPTH_FACTOR: usize = 3;
/// How long a hybrid search waits for the vector of a question.
const EMBEDDED_WITHIN: Duration = Duration::from_secs(3);
/// How long such searches do without a model that did not answer in time.
const SILENT_FOR: Duration = Duration::from_secs(5);
/// Vectors of questions that are remembered.
const CACHED_QUESTIONS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The relational store failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Search by meaning was asked for, and there is no model.
    #[error("there is no embedding model")]
    NoModel,
    /// Search by meaning was asked for, and the model failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A computation panicked, or the process is ending.
    #[error(transparent)]
    Stopped(#[from] ComputeStopped),
}

/// A question.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Who asks; nobody else's passages are found.
    pub workspace: WorkspaceId,
    /// The question.
    pub query: String,
    /// The documents that are searched; all of the workspace's when none.
    pub documents: Option<Vec<DocumentId>>,
    /// What the documents' metadata must say.
    pub filter: MetadataFilter,
    /// By what passages are found.
    pub mode: SearchMode,
    /// The most passages.
    pub limit: usize,
    /// How long the best may take to be put into a better order, if there is a model for it; they are not when none.
    pub rerank: Option<RerankPatience>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct SearchAnswer {
    /// The passages, best first.
    pub passages: Vec<PassageHit>,
    /// What became of the better order; none when none was asked for.
    pub rerank: Option<RerankReport>,
}

/// A passage that was found.
#[derive(Clone, Debug)]
pub struct PassageHit {
    /// Its document's name.
    pub document_name: String,
    /// The kind of its document's source.
    pub document_type: DocumentType,
    /// Where its document's source is; empty for inline content and uploads.
    pub document_url: String,
    /// The passage.
    pub chunk: Chunk,
    /// The generation that it is of.
    pub(crate) generation: GenerationId,
    /// How well it matches; comparable within one answer only.
    pub score: f32,
    /// How well it matches by words.
    pub lexical: Option<f32>,
    /// How well it matches by meaning.
    pub dense: Option<f32>,
    /// How well it answers, by the model that put it into its place; none when it kept the place at which it was found.
    pub rerank: Option<f32>,
    /// Other passages that say the same and would have been found too.
    pub also_in: Vec<(DocumentId, ChunkId)>,
}

/// A passage's generation and its number in it.
type PassageKey = (GenerationId, u32);

/// The vectors of questions, by embedding space.
type QuestionCache = LruCache<(Uuid, String), Vec<f32>>;

/// Search over whatever index and models are in use. Cheap to clone.
#[derive(Clone)]
pub struct SearchEngine {
    db: Db,
    index: Arc<dyn SearchIndex>,
    models: EmbeddingModels,
    reranking: RerankStage,
    active: ActiveSetCache,
    metadata: MetadataCache,
    questions: Arc<Mutex<QuestionCache>>,
    metrics: Arc<Metrics>,
    compute: ComputePool,
    /// When a model that did not answer in time is asked again.
    silent_until: Arc<Mutex<Option<Instant>>>,
}

/// A question as a model sees it.
struct EmbeddedQuestion {
    embedder: Arc<dyn Embedder>,
    vector: Vec<f32>,
    /// Only passages in languages that the model knows count.
    known_only: bool,
}

impl EmbeddedQuestion {
    /// Whether what the model says of a document counts.
    fn is_about(&self, document: &ActiveDocument) -> bool {
        document.embedding_space == Some(self.embedder.space().id)
            && (!self.known_only || document.language().is_none_or(|language| self.embedder.knows(language)))
    }
}

/// The lists that were found, and what they were found with.
struct CandidateLists {
    lexical: Vec<(PassageKey, f32)>,
    dense: Vec<DenseCandidates>,
}

/// What is near a question in one embedding space.
struct DenseCandidates {
    asked: EmbeddedQuestion,
    hits: Vec<(PassageKey, f32)>,
    /// Whether there was no room for more.
    is_full: bool,
}

impl CandidateLists {
    /// Whether no list has anything: a model may have been asked, and know none of the documents' languages.
    fn is_empty(&self) -> bool {
        self.lexical.is_empty() && self.dense.iter().all(|found| found.hits.is_empty())
    }
}

impl SearchEngine {
    /// Search over `index`, by meaning with `models`, in a better order by `reranker`; what it remembers counts against `budget`.
    pub fn new(
        db: Db,
        index: Arc<dyn SearchIndex>,
        models: EmbeddingModels,
        reranker: RerankModel,
        metrics: Arc<Metrics>,
        budget: &CacheBudget,
    ) -> Self {
        Self {
            active: ActiveSetCache::new(db.clone(), budget),
            metadata: MetadataCache::new(db.clone(), budget),
            db,
            index,
            models,
            reranking: RerankStage::new(reranker, Arc::clone(&metrics)),
            metrics,
            questions: Arc::new(Mutex::new(LruCache::new(CACHED_QUESTIONS))),
            compute: ComputePool::per_core(),
            silent_until: Arc::default(),
        }
    }

    /// Whether what is found can be put into a better order.
    pub fn has_reranker(&self) -> bool {
        self.reranking.is_ready()
    }

    /// The passages that answer best, best first.
    ///
    /// # Errors
    /// [`SearchError::NoModel`] and [`SearchError::Embed`] only when the mode is [`SearchMode::Dense`]: a hybrid search goes on by
    /// words. Never for the better order: what cannot be put into it stays as it was found.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, SearchError> {
        let active = self.active.of(request.workspace).await?;
        let documents = request.documents.as_deref();
        let selection = active.select(&self.metadata, request.workspace, documents, &request.filter).await?;
        if request.mode == SearchMode::Dense && self.models.current().is_none() {
            return Err(SearchError::NoModel);
        }
        if selection.generations.is_empty() || request.limit == 0 {
            return Ok(SearchAnswer::default());
        }
        let (by_words, by_meaning) = match request.mode {
            SearchMode::Lexical => (true, Vec::new()),
            SearchMode::Dense => (false, self.ask(request, &selection.summary, false).await?),
            SearchMode::Hybrid => (true, self.ask(request, &selection.summary, true).await?),
        };
        let mut found = self.find(request, &active, &selection, by_words, by_meaning).await?;
        if request.mode == SearchMode::Hybrid && found.is_empty() {
            // A model that hardly knows the language is still better than nothing at all.
            let by_meaning = self.ask(request, &selection.summary, false).await?;
            if !by_meaning.is_empty() {
                found = self.find(request, &active, &selection, false, by_meaning).await?;
            }
        }
        let Some(patience) = request.rerank else {
            let passages = self.load_passages(request, &active, &found, request.limit).await?;
            return Ok(SearchAnswer { passages, rerank: None });
        };
        let wanted = request.limit.max(self.reranking.candidates());
        let mut passages = self.load_passages(request, &active, &found, wanted).await?;
        let language = self.language(request, &selection.summary).await?;
        let of_passage =
            |passage: &PassageHit| active.document(passage.generation).and_then(ActiveDocument::language);
        let report =
            self.reranking.apply((&request.query, language), patience, &mut passages, of_passage).await;
        passages.truncate(request.limit);
        Ok(SearchAnswer { passages, rerank: Some(report) })
    }

    /// What a reader is given of passages that were found, best first, within a budget of tokens: the best of them, and as far
    /// as there is room, what stands beside these in the same section. The best one comes even when it is larger than that.
    pub(crate) async fn excerpts(
        &self,
        workspace: WorkspaceId,
        passages: Vec<PassageHit>,
        budget: i64,
    ) -> Result<Vec<Excerpt>, SearchError> {
        let mut left = budget;
        let mut taken: Vec<(PassageHit, bool)> = Vec::new();
        for passage in passages {
            if !taken.is_empty() && passage.chunk.tokens > left {
                break;
            }
            left -= passage.chunk.tokens;
            taken.push((passage, true));
        }
        let beside: Vec<(usize, PassageKey)> = taken
            .iter()
            .enumerate()
            .flat_map(|(at, (passage, _))| {
                let ordinal = u32::try_from(passage.chunk.ordinal).ok();
                let places = ordinal.map(|o| [o.checked_add(1), o.checked_sub(1)]).unwrap_or_default();
                places.into_iter().flatten().map(move |place| (at, (passage.generation, place)))
            })
            .collect();
        let keys: Vec<PassageKey> = beside.iter().map(|(_, key)| *key).collect();
        let mut chunks: HashMap<PassageKey, FetchedChunk> =
            if left > 0 { self.chunks(workspace, &keys).await? } else { HashMap::new() };
        for (passage, _) in &taken {
            chunks.remove(&(passage.generation, u32::try_from(passage.chunk.ordinal).unwrap_or(u32::MAX)));
        }
        for (at, key) in beside {
            let Some((passage, _)) = taken.get(at) else { continue };
            let fits = |chunk: &Chunk| {
                chunk.tokens <= left && chunk.place.0.heading == passage.chunk.place.0.heading
            };
            if !chunks.get(&key).is_some_and(|found| fits(&found.chunk)) {
                continue;
            }
            let Some(FetchedChunk { chunk, .. }) = chunks.remove(&key) else { continue };
            left -= chunk.tokens;
            let neighbour = PassageHit {
                chunk,
                score: 0.0,
                lexical: None,
                dense: None,
                rerank: None,
                also_in: Vec::new(),
                ..passage.clone()
            };
            taken.push((neighbour, false));
        }
        Ok(excerpt::excerpts(taken))
    }

    /// Puts the question to the model of every embedding space that is searched. With `known_only` those are left out that do
    /// not know its language: they rank at random, which would drag down what the words find.
    async fn ask(
        &self,
        request: &SearchRequest,
        summary: &CorpusSummary,
        known_only: bool,
    ) -> Result<Vec<EmbeddedQuestion>, SearchError> {
        let mut all = Vec::with_capacity(summary.spaces.len());
        if summary.spaces.is_empty() {
            return Ok(all);
        }
        let language = if known_only { Some(self.language(request, summary).await?) } else { None };
        for space in &summary.spaces {
            let Some(embedder) = self.models.of_space(&self.db, *space).await else { continue };
            if language.is_some_and(|language| !embedder.knows(language)) {
                continue;
            }
            let key = (*space, request.query.clone());
            let known = self.questions.lock().get(&key).cloned();
            let vector = match known {
                Some(vector) => vector,
                None => match self.embed(&embedder, request).await {
                    Ok(vector) => {
                        self.questions.lock().put(key, vector.clone());
                        vector
                    }
                    Err(error) if request.mode == SearchMode::Dense => return Err(error.into()),
                    Err(error) => {
                        tracing::warn!(%error, "a question is searched by words only");
                        continue;
                    }
                },
            };
            all.push(EmbeddedQuestion { embedder, vector, known_only });
        }
        Ok(all)
    }

    /// The question's vector. A hybrid search, which can do without it, does not wait long, and not again for a while.
    async fn embed(
        &self,
        embedder: &Arc<dyn Embedder>,
        request: &SearchRequest,
    ) -> Result<Vec<f32>, EmbedError> {
        let embedding = async {
            let began = Instant::now();
            let embedded = embedder.embed_question(&request.query).await;
            self.metrics.embedded(EmbeddingPurpose::Question, 1, embedded.is_ok(), began.elapsed());
            embedded
        };
        if request.mode == SearchMode::Dense {
            return embedding.await;
        }
        let silent = || EmbedError::Away("it does not answer in time".to_owned());
        if self.silent_until.lock().is_some_and(|until| Instant::now() < until) {
            return Err(silent());
        }
        tokio::time::timeout(EMBEDDED_WITHIN, embedding).await.unwrap_or_else(|_| {
            *self.silent_until.lock() = Some(Instant::now() + SILENT_FOR);
            Err(silent())
        })
    }

    /// The language of the question.
    async fn language(
        &self,
        request: &SearchRequest,
        summary: &CorpusSummary,
    ) -> Result<Language, ComputeStopped> {
        let searched: Vec<Language> = summary.languages.iter().map(|(language, _)| *language).collect();
        let question = request.query.clone();
        self.compute.run(move || question_language(&question, &searched)).await
    }

    async fn find(
        &self,
        request: &SearchRequest,
        active: &ActiveSet,
        selection: &DocumentSelection,
        by_words: bool,
        by_meaning: Vec<EmbeddedQuestion>,
    ) -> Result<CandidateLists, SearchError> {
        let DocumentSelection { generations, others, summary } = selection;
        let vector = |asked: &EmbeddedQuestion| SpaceVector {
            space: asked.embedder.space().id,
            vector: asked.vector.clone(),
        };
        let depth = request.limit.saturating_mul(DEPTH_FACTOR).max(DEPTH);
        let candidates = self
            .index
            .search(IndexQuery {
                workspace: request.workspace,
                generations: generations.clone(),
                others: others.clone(),
                languages: summary.languages.iter().map(|(language, _)| *language).collect(),
                // Without words nothing is looked up by them.
                text: if by_words { request.query.clone() } else { String::new() },
                vectors: by_meaning.iter().map(vector).collect(),
                depth,
            })
            .await?;
        let list =
            |from: &[SearchCandidate], counts: &dyn Fn(&ActiveDocument) -> bool| -> Vec<(PassageKey, f32)> {
                let counts = |c: &&SearchCandidate| active.document(c.generation).is_some_and(counts);
                from.iter().filter(counts).map(|c| ((c.generation, c.ordinal), c.score)).collect()
            };
        let lexical = list(&candidates.lexical, &|_| true);
        let dense = by_meaning
            .into_iter()
            .zip(&candidates.dense)
            .map(|(asked, found)| {
                let hits = list(found, &|document| asked.is_about(document));
                DenseCandidates { asked, hits, is_full: found.len() >= depth }
            })
            .collect();
        Ok(CandidateLists { lexical, dense })
    }

    /// Fuses the lists and reads the best `wanted` passages; one that was deleted meanwhile, or that says what a better one says, makes room
    /// for the next best.
    async fn load_passages(
        &self,
        request: &SearchRequest,
        active: &ActiveSet,
        found: &CandidateLists,
        wanted: usize,
    ) -> Result<Vec<PassageHit>, SearchError> {
        let fused = rank(found, active);
        let lexical: HashMap<_, _> = found.lexical.iter().copied().collect();
        let dense: HashMap<_, _> = found.dense.iter().flat_map(|found| found.hits.iter().copied()).collect();
        let mut passages: Vec<(PassageHit, ShingleSketch)> = Vec::with_capacity(wanted);
        for some in fused.chunks(wanted) {
            let keys: Vec<_> = some.iter().map(|(key, _)| *key).collect();
            let mut chunks = self.chunks(request.workspace, &keys).await?;
            for (key, score) in some {
                let Some(FetchedChunk { name, r#type, url, chunk, .. }) = chunks.remove(key) else {
                    continue;
                };
                let sketch = ShingleSketch::of(&chunk.text);
                if let Some((same, _)) =
                    passages.iter_mut().find(|(_, known)| known.is_near_duplicate(&sketch))
                {
                    same.also_in.push((chunk.document_id, chunk.chunk_id));
                    continue;
                }
                let passage = PassageHit {
                    document_name: name,
                    document_type: r#type,
                    document_url: url,
                    chunk,
                    generation: key.0,
                    score: *score,
                    lexical: lexical.get(key).copied(),
                    dense: dense.get(key).copied(),
                    rerank: None,
                    also_in: Vec::new(),
                };
                passages.push((passage, sketch));
                if passages.len() == wanted {
                    return Ok(passages.into_iter().map(|(passage, _)| passage).collect());
                }
            }
        }
        Ok(passages.into_iter().map(|(passage, _)| passage).collect())
    }

    /// The stored passages of a workspace at these places.
    async fn chunks(
        &self,
        workspace: WorkspaceId,
        keys: &[PassageKey],
    ) -> Result<HashMap<PassageKey, FetchedChunk>, DbError> {
        let place = |ordinal| u32::try_from(ordinal).unwrap_or(u32::MAX);
        let found = db::chunks::fetch(&self.db, workspace, keys).await?;
        let at_place = |found: FetchedChunk| ((found.generation_id, place(found.chunk.ordinal)), found);
        Ok(found.into_iter().map(at_place).collect())
    }
}

/// One ranking of what was found.
fn rank(found: &CandidateLists, active: &ActiveSet) -> Vec<(PassageKey, f32)> {
    let lexical =
        (None, RankedList { hits: found.lexical.clone(), weight: WEIGHT, zero_beyond: true, is_cut: false });
    let dense = found.dense.iter().map(|DenseCandidates { asked, hits, is_full }| {
        let list = RankedList { hits: hits.clone(), weight: WEIGHT, zero_beyond: false, is_cut: *is_full };
        (Some(asked), list)
    });
    let found = std::iter::once(lexical).chain(dense).filter(|(_, list)| !list.hits.is_empty());
    let (asked, mut lists): (Vec<_>, Vec<_>) = found.unzip();
    // A list alone keeps its own scores.
    if lists.len() < 2 {
        return lists.pop().map(|list| list.hits).unwrap_or_default();
    }
    fuse(&lists, |(generation, _), number| match asked.get(number) {
        Some(Some(asked)) => active.document(*generation).is_some_and(|document| asked.is_about(document)),
        Some(None) | None => true,
    })
}

#[cfg(test)]
mod tests;
