//! One ingestion: fetch → parse → split → index → publish, each stage bounded, nothing visible before the last step.

pub(crate) mod passages;
mod vectors;

use std::sync::Arc;

use lectern_embed::Embedder;
use lectern_index::{IndexEntry, IndexError, IndexTarget, IndexWriter};
use lectern_runtime::Runtime;
use lectern_sandbox::{
    Sandbox,
    budget::{BudgetExhausted, CpuBudget, CpuMeter},
};
use lectern_shared::{
    config::ServiceLimits,
    db::{
        self, Json,
        chunks::NewChunk,
        generations::{self, NewGeneration},
        jobs::{GenerationPublication, PublishOutcome},
    },
    ids::{ChunkId, GenerationId},
    model::{
        document::{DocumentSource, SearchIndexInfo, SourceState},
        job::{IngestionStage, JobClaim},
        page::{PageInfo, PdfEngineName},
    },
    secrets::{hex, sha256},
};

use self::{passages::PassageSlice, vectors::GenerationVectors};
use crate::{
    extracted::ExtractedText,
    failure::IngestFailure,
    lease::ProgressReporter,
    source::{FetchBudget, ReadOutcome, SourceFetcher, SourceReading, pdf::PdfEngine},
    splitter::TokenCounter,
};

/// Runs ingestions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ingester {
    runtime: Runtime,
    sandbox: Sandbox,
    pdf: PdfEngine,
}

/// What was made of a document, ready to be written.
struct PreparedDocument {
    extracted: ExtractedText,
    chunks: Vec<NewChunk>,
    content_hash: String,
}

impl Ingester {
    pub(crate) fn new(runtime: Runtime, sandbox: Sandbox, pdf: PdfEngine) -> Self {
        Self { runtime, sandbox, pdf }
    }

    /// Makes the claim's document searchable.
    pub(crate) async fn run(
        &self,
        claim: &JobClaim,
        progress: &ProgressReporter,
    ) -> Result<(), IngestFailure> {
        let runtime = &self.runtime;
        let budget = CpuBudget::new(runtime.settings.limits.processor_time);
        let source = db::documents::source(&runtime.db, claim.workspace_id, claim.document_id)
            .await?
            .ok_or(IngestFailure::ClaimLost)?;
        if runtime.index.late_write_window().is_some() {
            // An index that is away is found out before the source is asked.
            runtime.index.ping().await?;
        }
        let former = generations::active(&runtime.db, claim.workspace_id, claim.document_id).await?;
        let known = source.source_state.as_ref().filter(|_| former.is_some()).map(|Json(state)| state);
        let embedder = runtime.models.wait_until_opened().await;
        let sizing = TokenCounter::of(embedder.clone(), &runtime.settings.embedding);
        let reading = SourceReading {
            fetcher: SourceFetcher {
                blobs: &runtime.blobs,
                egress: &runtime.egress,
                keyring: &runtime.keyring,
                limits: &runtime.settings.limits,
                source: &source,
                progress,
            },
            settings: &runtime.settings,
            video_egress: &runtime.video_egress,
            sandbox: &self.sandbox.within_budget(budget.clone()),
            pdf: &self.pdf,
            source: &source,
            sizing: &sizing,
            progress,
            budget: FetchBudget::new(runtime.settings.limits.fetch_timeout),
        };
        let outcome = match &former {
            Some(_) if claim.from_stored => ReadOutcome::Unchanged,
            _ => reading.read(known).await?,
        };
        let (extracted, state) = match (outcome, former) {
            (ReadOutcome::Read(read), _) => {
                let (extracted, _) = &*read;
                let bytes = extracted.source.bytes.unwrap_or(extracted.text().len() as u64);
                runtime.metrics.read(source.r#type, bytes);
                *read
            }
            (ReadOutcome::Unchanged, Some(former)) => {
                // What was learnt of it the last time holds still, and was forgotten when it was queued.
                let learnt = known.filter(|_| !claim.from_stored);
                return self.index_again(claim, &source, former, learnt, progress).await;
            }
            (ReadOutcome::Unchanged, None) => {
                return Err(IngestFailure::Internal("a source that was never read is unchanged".to_owned()));
            }
        };
        if extracted.text().trim().is_empty() {
            return Err(IngestFailure::no_text("The source has no text. Check that it is the right file."));
        }
        let PreparedDocument { extracted, chunks, content_hash } = split(
            &source,
            extracted,
            SplitContext { sizing: &sizing, budget, limits: &runtime.settings.limits },
            progress,
        )
        .await?;
        let total = chunks.len() as u64;
        let quota = source.allowed_bytes(runtime.settings.limits.storage_bytes);
        let making = GenerationBuilder {
            runtime,
            claim,
            source: &source,
            embedder,
            sizing: &sizing,
            total,
            quota,
            progress,
        };
        let texts: u64 = chunks.iter().map(|chunk| chunk.text.len() as u64).sum();
        let words: u64 = extracted.pages_read.iter().map(db::pages::stored_bytes).sum();
        let generation = making.begin(texts + words, extracted.engine).await?;
        let mut done = 0;
        for batch in chunks.chunks(vectors::BATCH) {
            done = making.embed(generation, batch, done).await?;
        }
        let mut writing = making.write(generation)?;
        for batch in chunks.chunks(db::chunks::BATCH) {
            writing.add(batch).await?;
        }
        for batch in extracted.pages_read.chunks(db::pages::BATCH) {
            writing.add_pages(batch).await?;
        }
        let index = SearchIndexInfo {
            status: "READY".to_owned(),
            chunks: total,
            pages: extracted.pages,
            engine: extracted.engine,
            tokens: chunks.iter().map(|chunk| u64::from(chunk.tokens)).sum(),
            embedding_model: None,
            dimensions: None,
            content_hash,
            generation,
            indexed_at: String::new(),
        };
        writing.publish(index, Some(&state)).await
    }

    /// Fills the index from the passages that are stored, in a generation of its own like any other.
    async fn index_again(
        &self,
        claim: &JobClaim,
        source: &DocumentSource,
        former: SearchIndexInfo,
        learnt: Option<&SourceState>,
        progress: &ProgressReporter,
    ) -> Result<(), IngestFailure> {
        let runtime = &self.runtime;
        let embedder = runtime.models.wait_until_opened().await;
        let sizing = TokenCounter::of(embedder.clone(), &runtime.settings.embedding);
        let total = former.chunks;
        // What the operator wants of every document, and what only shows its new name, is in nobody's way.
        let quota =
            source.allowed_bytes(runtime.settings.limits.storage_bytes).filter(|_| !claim.from_stored);
        let making =
            GenerationBuilder { runtime, claim, source, embedder, sizing: &sizing, total, quota, progress };
        // Counted and not taken from the former one: it may be of another model, or have been estimated when storage was first counted.
        let texts = db::storage::text_bytes(&runtime.db, claim.workspace_id, former.generation).await?;
        let generation = making.begin(texts, former.engine).await?;
        let stored = async |next| {
            let batch = db::chunks::stored(&runtime.db, claim.workspace_id, former.generation, next).await?;
            let after = batch.last().map(|last| i64::from(last.ordinal) + 1);
            Ok::<_, IngestFailure>(after.map(|after| (batch, after)))
        };
        if making.embedder.is_some() {
            let (mut next, mut done) = (0, 0);
            while let Some((batch, after)) = stored(next).await? {
                for batch in batch.chunks(vectors::BATCH) {
                    done = making.embed(generation, batch, done).await?;
                }
                next = after;
            }
        }
        let mut writing = making.write(generation)?;
        let mut next = 0;
        while let Some((batch, after)) = stored(next).await? {
            writing.add(&batch).await?;
            next = after;
        }
        writing.copy_pages(former.generation).await?;
        writing.publish(former, learnt).await
    }

    /// Removes what was added to the index after the claim was lost: an index that cannot refuse it may have taken it after the
    /// sweeper looked for the last time. The store decides whether it may go. Nothing depends on it, so a failure is only noted.
    pub(crate) async fn discard(&self, claim: &JobClaim, generation: GenerationId) {
        if self.runtime.index.late_write_window().is_none() {
            return;
        }
        match self.remove_abandoned(claim, generation).await {
            Ok(true) => {}
            Ok(false) => tracing::info!(%generation, "the generation was published after all, and is kept"),
            Err(error) => {
                tracing::warn!(%error, %generation, "an abandoned generation could not be removed yet");
            }
        }
    }

    /// Gives a generation up and removes it from the index; false when it answers, and is left alone.
    async fn remove_abandoned(&self, claim: &JobClaim, generation: GenerationId) -> Result<bool, IndexError> {
        let Runtime { db, index, jobs, settings, .. } = &self.runtime;
        let purge_at = jobs.now().plus(settings.index_grace);
        let mut tx = db.begin_essential().await?;
        let retired = generations::retire(&mut tx, claim, generation, purge_at).await?;
        tx.commit().await?;
        let Some(retired) = retired else { return Ok(false) };
        index.remove(retired).await?;
        Ok(true)
    }
}

/// What a generation is made of and with.
struct GenerationBuilder<'a> {
    runtime: &'a Runtime,
    claim: &'a JobClaim,
    source: &'a DocumentSource,
    embedder: Option<Arc<dyn Embedder>>,
    sizing: &'a TokenCounter,
    /// Passages in all.
    total: u64,
    /// What its owner may store, where that matters.
    quota: Option<u64>,
    progress: &'a ProgressReporter,
}

impl<'a> GenerationBuilder<'a> {
    /// Begins a generation of passages whose texts have so many bytes, if its owner may store them.
    async fn begin(&self, texts: u64, engine: Option<PdfEngineName>) -> Result<GenerationId, IngestFailure> {
        let Self { runtime, claim, progress, .. } = *self;
        progress.stage(if self.embedder.is_some() { IngestionStage::Embed } else { IngestionStage::Index });
        let generation = GenerationId::generate();
        let now = runtime.clock.now();
        // Nothing counts before it is published. But what is written elsewhere can be removed only as long as this is known.
        let elsewhere = runtime.index.late_write_window().is_some();
        let mut tx = if elsewhere { runtime.db.begin().await? } else { runtime.db.begin_relaxed().await? };
        // In the order of locks: the workspace first.
        let (bytes, instead_of) = (self.bytes(texts), Some(claim.document_id));
        let admitted = db::storage::admit(&mut tx, claim.workspace_id, bytes, instead_of, self.quota).await?;
        admitted.map_err(|over| IngestFailure::permanent("quota_exceeded", format!("{over}.")))?;
        let space = self.embedder.as_ref().map(|embedder| embedder.space());
        if let Some(space) = space {
            db::vectors::record_space(&mut tx, space, now).await?;
        }
        let space = space.map(|space| space.id);
        let new = NewGeneration { id: generation, space, stored_bytes: bytes, engine };
        let begun = generations::begin(&mut tx, claim, new, now).await?;
        tx.commit().await?;
        if !begun {
            return Err(IngestFailure::ClaimLost);
        }
        progress.writes(generation);
        Ok(generation)
    }

    /// What the generation takes of its owner's storage: its texts, and a vector for each of its passages.
    fn bytes(&self, texts: u64) -> u64 {
        let numbers = self.embedder.as_ref().map_or(0, |embedder| embedder.space().dimensions);
        texts + self.total * (numbers * size_of::<f32>()) as u64
    }

    /// Has the vectors of at most [`vectors::BATCH`] passages made, if there is a model, after `done` others.
    async fn embed(
        &self,
        generation: GenerationId,
        batch: &[NewChunk],
        done: u64,
    ) -> Result<u64, IngestFailure> {
        let Some(vectors) = self.vectors(generation) else { return Ok(done) };
        vectors.make(self.embeddable(batch).await?).await?;
        let done = done + batch.len() as u64;
        self.progress.at(done, Some(self.total), "chunks");
        Ok(done)
    }

    /// Begins to write the generation.
    fn write(self, generation: GenerationId) -> Result<GenerationWriter<'a>, IngestFailure> {
        let Self { runtime, claim, progress, .. } = self;
        progress.stage(IngestionStage::Index);
        let space = self.embedder.as_ref().map(|embedder| embedder.space());
        let space = space.map(|space| (space.id, space.dimensions));
        let index = runtime.index.writer(IndexTarget { claim, generation, space })?;
        Ok(GenerationWriter { making: self, generation, index, done: 0 })
    }

    fn vectors(&self, generation: GenerationId) -> Option<GenerationVectors<'_>> {
        let Runtime { db, compute, metrics, .. } = self.runtime;
        let (claim, embedder) = (self.claim, self.embedder.as_ref()?);
        Some(GenerationVectors { db, compute, metrics, claim, generation, embedder })
    }

    /// What is embedded of passages: their text under as much of the header as there is room for.
    async fn embeddable(&self, batch: &[NewChunk]) -> Result<Vec<String>, IngestFailure> {
        let (sizing, name, batch) = (self.sizing.clone(), self.source.name.clone(), batch.to_vec());
        let texts = move || {
            let text = |chunk: &NewChunk| {
                let header = chunk.place.header(&name, &chunk.text);
                format!("{}\n{}", sizing.fit(&header), chunk.text)
            };
            batch.iter().map(text).collect()
        };
        self.runtime.compute.run(texts).await.map_err(|_| IngestFailure::Panicked)
    }
}

/// A generation that is being written: passages and index entries, batch by batch, each fenced on the claim.
struct GenerationWriter<'a> {
    making: GenerationBuilder<'a>,
    generation: GenerationId,
    index: Box<dyn IndexWriter + 'a>,
    done: u64,
}

impl GenerationWriter<'_> {
    /// Adds at most [`db::chunks::BATCH`] passages.
    async fn add(&mut self, batch: &[NewChunk]) -> Result<(), IngestFailure> {
        let generation = self.generation;
        let GenerationBuilder { runtime, claim, source, total, progress, .. } = self.making;
        let vectors = match self.making.vectors(generation) {
            Some(vectors) => {
                let made = vectors.get(self.making.embeddable(batch).await?).await?;
                made.into_iter().map(Some).collect()
            }
            None => vec![None; batch.len()],
        };
        let mut tx = runtime.db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, claim, generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        db::chunks::insert(&mut tx, claim.workspace_id, claim.document_id, generation, batch).await?;
        tx.commit().await?;
        let entry = |(chunk, vector): (&NewChunk, Option<Vec<f32>>)| IndexEntry {
            text: format!("{}\n{}", chunk.place.header(&source.name, &chunk.text), chunk.text),
            vector,
        };
        self.index.add(batch.iter().zip(vectors).map(entry).collect()).await?;
        self.done += batch.len() as u64;
        progress.at(self.done, Some(total), "chunks");
        Ok(())
    }

    /// Adds at most [`db::pages::BATCH`] pages.
    async fn add_pages(&mut self, batch: &[PageInfo]) -> Result<(), IngestFailure> {
        let GenerationBuilder { runtime, claim, .. } = self.making;
        let mut tx = runtime.db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, claim, self.generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        db::pages::insert(&mut tx, claim.workspace_id, self.generation, batch).await?;
        Ok(tx.commit().await?)
    }

    /// Adds the pages of the generation whose passages are taken.
    async fn copy_pages(&mut self, from: GenerationId) -> Result<(), IngestFailure> {
        let GenerationBuilder { runtime, claim, .. } = self.making;
        let mut tx = runtime.db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, claim, self.generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        db::pages::copy(&mut tx, claim.workspace_id, from, self.generation).await?;
        Ok(tx.commit().await?)
    }

    /// Checks that nothing is missing, and makes the generation the one that answers.
    async fn publish(
        self,
        index: SearchIndexInfo,
        learnt: Option<&SourceState>,
    ) -> Result<(), IngestFailure> {
        let generation = self.generation;
        let GenerationBuilder { runtime, claim, source, total, progress, ref embedder, .. } = self.making;
        let space = embedder.as_ref().map(|embedder| embedder.space());
        let index = SearchIndexInfo {
            embedding_model: space.map(|space| space.model.clone()),
            dimensions: space.and_then(|space| u32::try_from(space.dimensions).ok()),
            generation,
            indexed_at: runtime.clock.now().to_string(),
            ..index
        };
        let indexed = self.index.finish().await?;
        let stored = db::chunks::count(&runtime.db, generation).await?;
        if indexed.entries != total || u64::try_from(stored) != Ok(total) {
            return Err(IngestFailure::Internal(format!(
                "{total} chunks were to be written, {stored} are stored, {} indexed",
                indexed.entries
            )));
        }
        // Of each language, by its number, where the index wants to know.
        let languages: Vec<_> =
            indexed.languages.iter().map(|(language, count)| (language.code(), *count)).collect();
        let publication = GenerationPublication {
            generation,
            index: &index,
            languages: &languages,
            learnt,
            purge_old_at: runtime.jobs.now().plus(runtime.settings.index_grace),
        };
        // From here on what the store says of the publication decides, and nobody else's view of the claim.
        progress.publishing();
        match db::jobs::publish(&runtime.db, claim, &publication, runtime.jobs.now()).await? {
            PublishOutcome::Yes => {
                tracing::info!(chunks = index.chunks, pages = index.pages, "document searchable");
                runtime.metrics.published(source.r#type, index.pages.map_or(0, u64::from), index.chunks);
                vectors::prune(&runtime.db, claim, generation).await;
                Ok(())
            }
            PublishOutcome::Outdated => {
                tracing::info!("the document changed while it was ingested; it is queued again");
                runtime.jobs.doorbell().ring(1);
                Ok(())
            }
            PublishOutcome::ClaimLost => Err(IngestFailure::ClaimLost),
        }
    }
}

/// What the cutting of a text goes by.
struct SplitContext<'a> {
    sizing: &'a TokenCounter,
    budget: CpuBudget,
    limits: &'a ServiceLimits,
}

/// Cuts the text into passages, off the async threads. The work ends with the job: it notices when nobody waits for it, or when
/// the document has had its time.
async fn split(
    source: &DocumentSource,
    extracted: ExtractedText,
    SplitContext { sizing, budget, limits }: SplitContext<'_>,
    progress: &ProgressReporter,
) -> Result<PreparedDocument, IngestFailure> {
    progress.stage(IngestionStage::Split);
    let (document, sizing, progress) = (source.id, sizing.clone(), progress.clone());
    let splitter = source.splitter.as_ref().map(|Json(splitter)| splitter.clone());
    let most = limits.passages;
    let waiting = Arc::new(());
    let waiter = Arc::downgrade(&waiting);
    let work = tokio::task::spawn_blocking(move || {
        let total = extracted.text().len() as u64;
        let mut chunks = Vec::new();
        let meter = CpuMeter::start(budget.clone());
        let go_on = |bytes| {
            if waiter.strong_count() == 0 {
                return Err(IngestFailure::ClaimLost);
            }
            meter.go_on(bytes).map_err(|BudgetExhausted| IngestFailure::out_of_time(&budget))
        };
        passages::cut(
            &extracted,
            splitter.as_ref(),
            &sizing,
            &go_on,
            |PassageSlice { text, place, end }| {
                if chunks.len() >= most {
                    return Err(too_many_passages(most));
                }
                let ordinal = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
                // The place is part of what the id is made of, in the form in which it is stored.
                let place_json = serde_json::to_string(&place)
                    .map_err(|error| IngestFailure::Internal(error.to_string()))?;
                chunks.push(NewChunk {
                    ordinal,
                    chunk_id: ChunkId::derive(document, ordinal, text, &place_json),
                    text_hash: sha256(text.as_bytes()),
                    tokens: u32::try_from(sizing.count(text)).unwrap_or(u32::MAX),
                    place,
                    text: text.to_owned(),
                });
                progress.at(end as u64, Some(total), "bytes");
                Ok(())
            },
        )?;
        let content_hash = hex(&sha256(extracted.text().as_bytes()));
        Ok(PreparedDocument { extracted, chunks, content_hash })
    });
    let prepared = work.await.map_err(|_| IngestFailure::Panicked)?;
    drop(waiting);
    prepared
}

fn too_many_passages(most: usize) -> IngestFailure {
    let message = format!(
        "The document would be cut into more than {most} passages. Set a larger chunk_size or a smaller chunk_overlap, or split \
         the document."
    );
    IngestFailure::permanent("too_large", message)
}
