//! Search: what a workspace asks, over the documents that are visible at that moment, by words and by meaning, with the passages
//! filled in from the relational store. Whoever wants passages (the search endpoint, an agent's run) comes through here.

mod active;
mod alike;
mod candidates;
mod excerpt;
mod filter;
mod fuse;
mod judged;
mod members;
mod metadata;
mod rerank;
mod selection;

use std::{
    collections::{HashMap, HashSet},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use self::excerpt::{Excerpt, ExcerptPart};
use self::{
    active::{ActiveSet, ActiveSetCache, CorpusSummary},
    alike::ShingleSketch,
    candidates::{CandidateLists, DenseCandidates, EmbeddedQuestion},
    metadata::MetadataCache,
    rerank::RerankStage,
    selection::DocumentSelection,
};
pub use self::{
    filter::{MetadataCondition, MetadataFilter, MetadataTest},
    rerank::{RerankPatience, RerankReport},
};
use lectern_db::{self as db, Db, DbError, chunks::FetchedChunk};
use lectern_embed::{EmbedError, Embedder, EmbeddingModels, ModelState, RerankModel};
use lectern_index::{
    IndexError, IndexQuery, SearchCandidate, SearchIndex, SpaceVector, lexical::question_language,
};
use lectern_shared::{
    cache_budget::CacheBudget,
    compute::{ComputePool, ComputeStopped},
    ids::{ChunkId, DocumentId, GenerationId, WorkspaceId},
    metrics::{EmbeddingPurpose, Metrics},
    model::{
        document::{ActiveDocument, Chunk, DocumentType},
        language::Language,
        search::SearchMode,
    },
    secrets::sha256,
};

/// Candidates of each kind that are fused, at least. Measured: anything between 50 and 200 is within the noise.
const DEPTH: usize = 200;
/// Candidates fetched for each passage wanted: some turn out to be deleted since, or to say what another says.
const DEPTH_FACTOR: usize = 3;
/// How long a hybrid search waits for the vector of a question.
const EMBEDDED_WITHIN: Duration = Duration::from_secs(3);
/// How long such searches do without a model that is away, or did not answer in time.
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
    /// Search by meaning was asked for, and no model is wanted.
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
    pub documents: Option<Arc<[DocumentId]>>,
    /// What the documents' metadata must say.
    pub filter: MetadataFilter,
    /// By what passages are found.
    pub mode: SearchMode,
    /// The most passages.
    pub limit: usize,
    /// How long the best may take to be put into a better order, if there is a model for it; they are not when none.
    pub rerank: Option<RerankPatience>,
    /// The workspace's [search epoch](db::documents::search_epoch), if the caller has read it since the search was asked for.
    pub epoch: Option<i64>,
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

/// Stored passages by their places.
type PassageTexts = HashMap<PassageKey, FetchedChunk>;

/// What is read of the relational store besides what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextScope {
    Passages,
    /// What stands before and behind each, too: one question more would take longer than these rows.
    WithNeighbours,
}

impl TextScope {
    /// What is read for passages at these places.
    fn keys(self, found: impl Iterator<Item = PassageKey>) -> Vec<PassageKey> {
        match self {
            Self::Passages => found.collect(),
            Self::WithNeighbours => {
                let all: HashSet<PassageKey> =
                    found.flat_map(|key| excerpt::neighbours(key).chain([key])).collect();
                all.into_iter().collect()
            }
        }
    }
}

/// What a search found, and all that was read for it.
#[derive(Default)]
struct FoundPassages {
    answer: SearchAnswer,
    texts: PassageTexts,
}

impl FoundPassages {
    fn new(passages: Vec<(PassageHit, ShingleSketch)>, texts: PassageTexts) -> Self {
        let passages = passages.into_iter().map(|(passage, _)| passage).collect();
        Self { answer: SearchAnswer { passages, rerank: None }, texts }
    }
}

/// The vectors of questions, by embedding space and the SHA-256 of the question, which may be long.
type QuestionCache = LruCache<(Uuid, [u8; 32]), Vec<f32>>;

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
    /// When the models that failed are asked again, by their spaces.
    silent_until: Arc<Mutex<HashMap<Uuid, Instant>>>,
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
        Ok(self.find_passages(request, TextScope::Passages).await?.answer)
    }

    /// What a reader is given of the passages that answer best, best first, within a budget of tokens: the best of them, and as far
    /// as there is room, what stands beside these in the same section. The best one comes even when it is larger than that. And what
    /// became of the better order, if one was asked for.
    ///
    /// # Errors
    /// Those of [`SearchEngine::search`].
    pub(crate) async fn excerpts(
        &self,
        request: &SearchRequest,
        budget: i64,
    ) -> Result<(Vec<Excerpt>, Option<RerankReport>), SearchError> {
        let found = self.find_passages(request, TextScope::WithNeighbours).await?;
        let SearchAnswer { passages, rerank } = found.answer;
        Ok((excerpt::read(passages, found.texts, budget), rerank))
    }

    async fn find_passages(
        &self,
        request: &SearchRequest,
        scope: TextScope,
    ) -> Result<FoundPassages, SearchError> {
        let active = self.active.of(request.workspace, request.epoch).await?;
        let documents = request.documents.as_deref();
        let selection = active.select(&self.metadata, request.workspace, documents, &request.filter).await?;
        if request.mode == SearchMode::Dense && self.models.current().is_none() {
            // One that is on its way may be there the next time.
            let away = || EmbedError::Away("it is not there yet".to_owned());
            let is_off = matches!(self.models.state(), ModelState::Off);
            return Err(if is_off { SearchError::NoModel } else { away().into() });
        }
        if selection.generations.is_empty() || request.limit == 0 {
            return Ok(FoundPassages::default());
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
            return Ok(self.load_passages(request, &active, &found, request.limit, scope).await?);
        };
        let wanted = request.limit.max(self.reranking.candidates());
        let mut loaded = self.load_passages(request, &active, &found, wanted, scope).await?;
        let passages = &mut loaded.answer.passages;
        let language = self.language(request, &selection.summary).await?;
        let of_passage =
            |passage: &PassageHit| active.document(passage.generation).and_then(ActiveDocument::language);
        let report = self.reranking.apply((&request.query, language), patience, passages, of_passage).await;
        passages.truncate(request.limit);
        loaded.answer.rerank = Some(report);
        Ok(loaded)
    }

    /// Puts the question to the model of every embedding space that is searched. With `known_only` those are left out that do
    /// not know its language: they rank at random, which would drag down what the words find. A search by meaning alone has to have an
    /// answer of one of them; others may be away.
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
        let question = sha256(request.query.as_bytes());
        let mut failure = None;
        for space in &summary.spaces {
            let Some(embedder) = self.models.of_space(&self.db, *space).await else { continue };
            if language.is_some_and(|language| !embedder.knows(language)) {
                continue;
            }
            let key = (*space, question);
            let known = self.questions.lock().get(&key).cloned();
            let vector = match known {
                Some(vector) => vector,
                None => match self.embed(&embedder, request).await {
                    Ok(vector) => {
                        self.questions.lock().put(key, vector.clone());
                        vector
                    }
                    Err(error) => {
                        tracing::warn!(%error, "documents of an embedding model are not searched by meaning");
                        failure = failure.or(Some(error));
                        continue;
                    }
                },
            };
            all.push(EmbeddedQuestion { embedder, vector, known_only });
        }
        if request.mode == SearchMode::Dense && all.is_empty() {
            // It is being opened, or cannot be had; an empty list would say that nothing was found.
            let missing = || EmbedError::Away("the model of the documents' vectors is not there".to_owned());
            return Err(failure.unwrap_or_else(missing).into());
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
        let space = embedder.space().id;
        if self.silent_until.lock().get(&space).is_some_and(|until| Instant::now() < *until) {
            return Err(EmbedError::Away("it failed a moment ago".to_owned()));
        }
        let silent = |_| Err(EmbedError::Away("it does not answer in time".to_owned()));
        let embedded = tokio::time::timeout(EMBEDDED_WITHIN, embedding).await.unwrap_or_else(silent);
        // What it refuses may be this question alone.
        if matches!(embedded, Err(EmbedError::Away(_))) {
            let now = Instant::now();
            let mut silent_until = self.silent_until.lock();
            silent_until.retain(|_, until| now < *until);
            silent_until.insert(space, now + SILENT_FOR);
        }
        embedded
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
        scope: TextScope,
    ) -> Result<FoundPassages, DbError> {
        let fused = found.rank(active);
        let lexical: HashMap<_, _> = found.lexical.iter().copied().collect();
        let dense: HashMap<_, _> = found.dense.iter().flat_map(|found| found.hits.iter().copied()).collect();
        let mut passages: Vec<(PassageHit, ShingleSketch)> = Vec::with_capacity(wanted);
        let mut texts = HashMap::new();
        for some in fused.chunks(wanted) {
            let keys = scope.keys(some.iter().map(|(key, _)| *key));
            texts.extend(self.chunks(request.workspace, &keys).await?);
            for (key, score) in some {
                let Some(FetchedChunk { name, r#type, url, chunk, .. }) = texts.get(key).cloned() else {
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
                    return Ok(FoundPassages::new(passages, texts));
                }
            }
        }
        Ok(FoundPassages::new(passages, texts))
    }

    /// The stored passages of a workspace at these places.
    async fn chunks(&self, workspace: WorkspaceId, keys: &[PassageKey]) -> Result<PassageTexts, DbError> {
        let place = |ordinal| u32::try_from(ordinal).unwrap_or(u32::MAX);
        let found = db::chunks::fetch(&self.db, workspace, keys).await?;
        let at_place = |found: FetchedChunk| ((found.generation_id, place(found.chunk.ordinal)), found);
        Ok(found.into_iter().map(at_place).collect())
    }
}

#[cfg(test)]
mod tests;
