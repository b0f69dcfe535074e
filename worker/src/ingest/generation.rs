//! A generation from its beginning to its publication: everything that is written of it is fenced on the claim.

use std::sync::Arc;

use lectern_db::{
    self as db, Tx,
    chunks::NewChunk,
    generations::{self, NewGeneration},
    jobs::{GenerationPublication, PublishOutcome},
};
use lectern_embed::Embedder;
use lectern_index::{IndexEntry, IndexTarget, IndexWriter};
use lectern_runtime::Runtime;
use lectern_sandbox::WorkTurns;
use lectern_shared::{
    config::EmbedderKind,
    ids::GenerationId,
    model::{
        document::{DocumentSource, SearchIndexInfo, SourceState},
        job::{IngestionStage, JobClaim},
        page::{PageInfo, PdfEngineName},
    },
};

use super::{
    publisher::GenerationPublisher,
    vectors::{self, PassageVectors},
};
use crate::{failure::IngestFailure, lease::ProgressReporter, splitter::TokenCounter};

/// All that is stored of a small document's generation.
pub(super) struct SmallGeneration<'a> {
    chunks: &'a [NewChunk],
    pages: &'a [PageInfo],
}

impl<'a> SmallGeneration<'a> {
    /// These passages and pages, if they are few enough for one transaction.
    pub(super) fn of(chunks: &'a [NewChunk], pages: &'a [PageInfo]) -> Option<Self> {
        let is_small = chunks.len() <= vectors::BATCH && pages.len() <= db::pages::BATCH;
        is_small.then_some(Self { chunks, pages })
    }

    fn stored_bytes(&self) -> u64 {
        stored_bytes(self.chunks, self.pages)
    }
}

/// The bytes that passages and pages take of their owner's storage, without vectors.
pub(super) fn stored_bytes(chunks: &[NewChunk], pages: &[PageInfo]) -> u64 {
    let texts: u64 = chunks.iter().map(|chunk| chunk.text.len() as u64).sum();
    let words: u64 = pages.iter().map(db::pages::stored_bytes).sum();
    texts + words
}

/// What a generation is made of and with.
pub(super) struct GenerationBuilder<'a> {
    pub(super) runtime: &'a Runtime,
    /// At what keeps a core busy.
    pub(super) turns: &'a WorkTurns,
    pub(super) publisher: &'a GenerationPublisher,
    pub(super) claim: &'a JobClaim,
    pub(super) source: &'a DocumentSource,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) sizing: &'a TokenCounter,
    /// Passages in all.
    pub(super) total: u64,
    /// What its owner may store, where that matters.
    pub(super) quota: Option<u64>,
    /// The generation that answers until this one does.
    pub(super) replaces: Option<GenerationId>,
    pub(super) progress: &'a ProgressReporter,
}

impl<'a> GenerationBuilder<'a> {
    /// Writes a generation that is small enough in one transaction, from its beginning on, and gives it to the index.
    pub(super) async fn write_at_once(
        self,
        batch: SmallGeneration<'_>,
        engine: Option<PdfEngineName>,
    ) -> Result<GenerationWriter<'a>, IngestFailure> {
        let made = match self.vectors() {
            Some(vectors) => {
                self.progress.stage(IngestionStage::Embed);
                Some((vectors, vectors.make(self.embeddable(batch.chunks).await?).await?))
            }
            None => None,
        };
        let Self { runtime, claim, progress, .. } = self;
        progress.stage(IngestionStage::Index);
        let mut tx = runtime.db.begin_relaxed().await?;
        let generation = self.begin_in(&mut tx, batch.stored_bytes(), engine).await?;
        if let Some((vectors, made)) = &made {
            vectors.store(&mut tx, generation, made).await?;
        }
        db::chunks::insert(&mut tx, claim.workspace_id, claim.document_id, generation, batch.chunks).await?;
        if !batch.pages.is_empty() {
            db::pages::insert(&mut tx, claim.workspace_id, generation, batch.pages).await?;
        }
        tx.commit().await?;
        progress.writes(generation);
        let vectors = made.map(|(_, made)| made.vectors);
        let mut writing = self.write(generation)?;
        writing.index(batch.chunks, vectors).await?;
        Ok(writing)
    }

    /// Begins a generation of passages whose texts have so many bytes, if its owner may store them.
    pub(super) async fn begin(
        &self,
        texts: u64,
        engine: Option<PdfEngineName>,
    ) -> Result<GenerationId, IngestFailure> {
        self.progress.stage(if self.embedder.is_some() {
            IngestionStage::Embed
        } else {
            IngestionStage::Index
        });
        let mut tx = self.runtime.db.begin_relaxed().await?;
        let generation = self.begin_in(&mut tx, texts, engine).await?;
        tx.commit().await?;
        self.progress.writes(generation);
        Ok(generation)
    }

    /// Nothing counts before it is published, so no commit of a generation waits for the disk. What a crash takes back of one that is in an
    /// index elsewhere is found there by the search for orphans.
    async fn begin_in(
        &self,
        tx: &mut Tx,
        texts: u64,
        engine: Option<PdfEngineName>,
    ) -> Result<GenerationId, IngestFailure> {
        let Self { runtime, claim, .. } = *self;
        let generation = GenerationId::generate();
        let now = runtime.clock.now();
        // In the order of locks: the workspace first.
        let (bytes, instead_of) = (self.bytes(texts), Some(claim.document_id));
        let admitted = db::storage::admit(tx, claim.workspace_id, bytes, instead_of, self.quota).await?;
        admitted.map_err(|over| IngestFailure::permanent("quota_exceeded", format!("{over}.")))?;
        let space = self.embedder.as_ref().map(|embedder| embedder.space());
        if let Some(space) = space {
            db::vectors::record_space(tx, space, now).await?;
        }
        let space = space.map(|space| space.id);
        let new = NewGeneration { id: generation, space, stored_bytes: bytes, engine };
        let begun = generations::begin(tx, claim, new, now).await?;
        begun.then_some(generation).ok_or(IngestFailure::ClaimLost)
    }

    /// What the generation takes of its owner's storage: its texts, and a vector for each of its passages.
    fn bytes(&self, texts: u64) -> u64 {
        let numbers = self.embedder.as_ref().map_or(0, |embedder| embedder.space().dimensions);
        texts + self.total * (numbers * size_of::<f32>()) as u64
    }

    /// Has the vectors of at most [`vectors::BATCH`] passages made and stored, if there is a model, after `done` others.
    pub(super) async fn embed(
        &self,
        generation: GenerationId,
        batch: &[NewChunk],
        done: u64,
    ) -> Result<u64, IngestFailure> {
        let Some(vectors) = self.vectors() else { return Ok(done) };
        vectors.make_and_store(generation, self.embeddable(batch).await?).await?;
        let done = done + batch.len() as u64;
        self.progress.at(done, Some(self.total), "chunks");
        Ok(done)
    }

    /// Begins to write the generation.
    pub(super) fn write(self, generation: GenerationId) -> Result<GenerationWriter<'a>, IngestFailure> {
        let Self { runtime, claim, progress, .. } = self;
        progress.stage(IngestionStage::Index);
        let space = self.embedder.as_ref().map(|embedder| embedder.space());
        let space = space.map(|space| (space.id, space.dimensions));
        let index = runtime.index.writer(IndexTarget { claim, generation, space })?;
        Ok(GenerationWriter { making: self, generation, index, done: 0 })
    }

    fn vectors(&self) -> Option<PassageVectors<'_>> {
        let Runtime { db, compute, metrics, settings, .. } = self.runtime;
        let Self { turns, claim, progress, .. } = *self;
        let turns = (settings.embedding.kind != EmbedderKind::OpenAiCompatible).then_some(turns);
        let embedder = self.embedder.as_ref()?;
        Some(PassageVectors { db, compute, metrics, turns, claim, embedder, progress })
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
pub(super) struct GenerationWriter<'a> {
    making: GenerationBuilder<'a>,
    generation: GenerationId,
    index: Box<dyn IndexWriter + 'a>,
    done: u64,
}

impl GenerationWriter<'_> {
    /// Adds at most [`db::chunks::BATCH`] passages.
    pub(super) async fn add(&mut self, batch: &[NewChunk]) -> Result<(), IngestFailure> {
        let generation = self.generation;
        let GenerationBuilder { runtime, claim, .. } = self.making;
        let vectors = match self.making.vectors() {
            Some(vectors) => Some(vectors.get(generation, self.making.embeddable(batch).await?).await?),
            None => None,
        };
        let mut tx = runtime.db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, claim, generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        db::chunks::insert(&mut tx, claim.workspace_id, claim.document_id, generation, batch).await?;
        tx.commit().await?;
        self.index(batch, vectors).await
    }

    /// Gives passages that are stored to the index.
    async fn index(
        &mut self,
        batch: &[NewChunk],
        vectors: Option<Vec<Vec<f32>>>,
    ) -> Result<(), IngestFailure> {
        let GenerationBuilder { source, total, progress, .. } = self.making;
        let vectors: Vec<Option<Vec<f32>>> = match vectors {
            Some(vectors) => vectors.into_iter().map(Some).collect(),
            None => vec![None; batch.len()],
        };
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
    pub(super) async fn add_pages(&mut self, batch: &[PageInfo]) -> Result<(), IngestFailure> {
        let GenerationBuilder { runtime, claim, .. } = self.making;
        let mut tx = runtime.db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, claim, self.generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        db::pages::insert(&mut tx, claim.workspace_id, self.generation, batch).await?;
        Ok(tx.commit().await?)
    }

    /// Adds the pages of the generation whose passages are taken.
    pub(super) async fn copy_pages(&mut self, from: GenerationId) -> Result<(), IngestFailure> {
        let GenerationBuilder { runtime, claim, .. } = self.making;
        let mut tx = runtime.db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, claim, self.generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        db::pages::copy(&mut tx, claim.workspace_id, from, self.generation).await?;
        Ok(tx.commit().await?)
    }

    /// Checks that nothing is missing, and makes the generation the one that answers.
    pub(super) async fn publish(
        self,
        index: SearchIndexInfo,
        learnt: Option<SourceState>,
    ) -> Result<(), IngestFailure> {
        let generation = self.generation;
        let GenerationBuilder {
            runtime,
            publisher,
            claim,
            source,
            total,
            quota,
            progress,
            replaces,
            ref embedder,
            ..
        } = self.making;
        let space = embedder.as_ref().map(|embedder| embedder.space());
        let index = SearchIndexInfo {
            embedding_model: space.map(|space| space.model.clone()),
            dimensions: space.and_then(|space| u32::try_from(space.dimensions).ok()),
            generation,
            indexed_at: runtime.clock.now().to_string(),
            ..index
        };
        let indexed = self.index.finish().await?;
        if indexed.entries != total {
            return Err(IngestFailure::Internal(format!(
                "{total} passages were to be indexed, and {} are",
                indexed.entries
            )));
        }
        // Of each language, by its number, where the index wants to know.
        let languages = indexed.languages.iter().map(|(language, count)| (language.code(), *count)).collect();
        let (chunks, pages) = (index.chunks, index.pages);
        let publication = GenerationPublication {
            claim: claim.clone(),
            generation,
            was_unlimited: quota.is_none(),
            replaces,
            index,
            languages,
            learnt,
            purge_old_at: runtime.jobs.now().plus(runtime.settings.index_grace),
        };
        // From here on what the store says of the publication decides, and nobody else's view of the claim.
        progress.publishing();
        match publisher.publish(publication).await? {
            PublishOutcome::Yes => {
                tracing::info!(chunks, pages, "document searchable");
                runtime.metrics.published(source.r#type, pages.map_or(0, u64::from), chunks);
                // There are none where nothing was ever embedded.
                if space.is_some() || replaces.is_some() {
                    vectors::prune(&runtime.db, claim, generation).await;
                }
                Ok(())
            }
            PublishOutcome::Outdated => {
                tracing::info!("the document changed while it was ingested; it is queued again");
                runtime.jobs.doorbell().ring(1);
                Ok(())
            }
            PublishOutcome::Incomplete => Err(IngestFailure::Internal(format!(
                "{total} passages were to be stored, and some of them are not there"
            ))),
            PublishOutcome::ClaimLost => Err(IngestFailure::ClaimLost),
        }
    }
}
