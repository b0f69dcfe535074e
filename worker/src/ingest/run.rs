//! What becomes of a document in one ingestion: its source is read, cut into passages, and written.

use std::sync::Arc;

use lectern_db::{self as db, chunks::NewChunk};
use lectern_embed::Embedder;
use lectern_runtime::Runtime;
use lectern_sandbox::budget::{BudgetExhausted, CpuBudget, CpuMeter};
use lectern_shared::{
    ids::{ChunkId, DocumentId, GenerationId},
    model::{
        Json,
        document::{DocumentSource, SearchIndexInfo, SourceState},
        job::{IngestionStage, JobClaim},
        place::SourceSpan,
    },
    secrets::{hex, sha256},
};

use super::{
    Ingester,
    generation::{GenerationBuilder, GenerationWriter, SmallGeneration, stored_bytes},
    passages::{self, PassageSlice},
    vectors,
};
use crate::{
    extracted::ExtractedText,
    failure::IngestFailure,
    lease::ProgressReporter,
    source::{FetchBudget, ReadOutcome, SourceFetcher, SourceReading, parts::SHORT},
    splitter::TokenCounter,
};

/// One ingestion: of which document, and what it is done with.
pub(super) struct IngestionRun<'a> {
    pub(super) ingester: &'a Ingester,
    /// On behalf of the document's workspace.
    pub(super) runtime: &'a Runtime,
    pub(super) claim: &'a JobClaim,
    pub(super) source: &'a DocumentSource,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) sizing: &'a TokenCounter,
    /// What the document may take of the processors.
    pub(super) budget: CpuBudget,
    pub(super) progress: &'a ProgressReporter,
}

/// What was made of a document, ready to be written.
struct PreparedDocument {
    extracted: ExtractedText,
    chunks: Vec<NewChunk>,
    content_hash: String,
}

impl<'a> IngestionRun<'a> {
    /// Reads the source, unless it is as it is known.
    pub(super) async fn read(&self, known: Option<&SourceState>) -> Result<ReadOutcome, IngestFailure> {
        let Self { ingester, runtime, claim, source, sizing, progress, .. } = *self;
        let limits = &runtime.settings.limits;
        let reading = SourceReading {
            fetcher: SourceFetcher {
                blobs: &runtime.blobs,
                egress: &runtime.egress,
                keyring: &runtime.keyring,
                limits,
                source,
                progress,
            },
            settings: &runtime.settings,
            video_egress: &runtime.video_egress,
            sandbox: &ingester.sandbox.for_document(claim.workspace_id, self.budget.clone()),
            pdf: &ingester.pdf,
            source,
            sizing,
            progress,
            budget: FetchBudget::new(limits.fetch_timeout),
        };
        reading.read(known).await
    }

    /// Makes what was read searchable, in the place of what was so before.
    pub(super) async fn publish(
        &self,
        extracted: ExtractedText,
        state: SourceState,
        replaces: Option<GenerationId>,
    ) -> Result<(), IngestFailure> {
        let Self { runtime, source, .. } = *self;
        let bytes = extracted.source.bytes.unwrap_or(extracted.text().len() as u64);
        runtime.metrics.read(source.r#type, bytes);
        if extracted.text().trim().is_empty() {
            return Err(IngestFailure::no_text("The source has no text. Check that it is the right file."));
        }
        let PreparedDocument { extracted, chunks, content_hash } = self.cut(extracted).await?;
        let total = chunks.len() as u64;
        let making =
            self.builder(total, source.allowed_bytes(runtime.settings.limits.storage_bytes), replaces);
        let writing = match SmallGeneration::of(&chunks, &extracted.pages_read) {
            Some(small) => making.write_at_once(small, extracted.engine).await?,
            None => write_in_batches(making, &chunks, &extracted).await?,
        };
        let index = SearchIndexInfo {
            status: "READY".to_owned(),
            chunks: total,
            pages: extracted.pages,
            engine: extracted.engine,
            tokens: chunks.iter().map(|chunk| u64::from(chunk.tokens)).sum(),
            embedding_model: None,
            dimensions: None,
            content_hash,
            // The writer knows.
            generation: GenerationId::from(uuid::Uuid::nil()),
            indexed_at: String::new(),
        };
        writing.publish(index, Some(state)).await
    }

    /// Fills the index from the passages that are stored, in a generation of its own like any other.
    pub(super) async fn index_again(
        &self,
        former: SearchIndexInfo,
        learnt: Option<SourceState>,
    ) -> Result<(), IngestFailure> {
        let Self { runtime, claim, source, .. } = *self;
        // What the operator wants of every document, and what only shows its new name, is in nobody's way.
        let allowed = source.allowed_bytes(runtime.settings.limits.storage_bytes);
        let quota = allowed.map(|allowed| if claim.from_stored { u64::MAX } else { allowed });
        let making = self.builder(former.chunks, quota, Some(former.generation));
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

    /// What a generation of so many passages is made of and with.
    fn builder(
        &self,
        total: u64,
        quota: Option<u64>,
        replaces: Option<GenerationId>,
    ) -> GenerationBuilder<'a> {
        let Self { ingester, runtime, claim, source, sizing, progress, .. } = *self;
        GenerationBuilder {
            runtime,
            turns: ingester.sandbox.turns(),
            publisher: &ingester.publisher,
            claim,
            source,
            embedder: self.embedder.clone(),
            sizing,
            total,
            quota,
            replaces,
            progress,
        }
    }

    /// Cuts the text into passages, in a turn unless that is over before others notice.
    async fn cut(&self, extracted: ExtractedText) -> Result<PreparedDocument, IngestFailure> {
        let turns = self.ingester.sandbox.turns();
        let _turn = match extracted.text().len() {
            ..=SHORT => None,
            _ => Some(self.progress.waiting_for(turns.take(Some(self.claim.workspace_id))).await),
        };
        self.progress.stage(IngestionStage::Split);
        self.split(extracted).await
    }

    /// Cuts the text into passages, off the async threads. The work ends with the job: it notices when nobody waits for it, or when
    /// the document has had its time.
    async fn split(&self, extracted: ExtractedText) -> Result<PreparedDocument, IngestFailure> {
        let (document, sizing, progress) = (self.source.id, self.sizing.clone(), self.progress.clone());
        let splitter = self.source.splitter.as_ref().map(|Json(splitter)| splitter.clone());
        let (most, budget) = (self.runtime.settings.limits.passages, self.budget.clone());
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
            let take = |PassageSlice { text, place, end }: PassageSlice<'_>| {
                if chunks.len() >= most {
                    return Err(too_many_passages(most));
                }
                let ordinal = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
                chunks.push(chunk(document, ordinal, place, text, &sizing)?);
                progress.at(end as u64, Some(total), "bytes");
                Ok(())
            };
            passages::cut(&extracted, splitter.as_ref(), &sizing, &go_on, take)?;
            let content_hash = hex(&sha256(extracted.text().as_bytes()));
            Ok(PreparedDocument { extracted, chunks, content_hash })
        });
        let prepared = work.await.map_err(|_| IngestFailure::Panicked)?;
        drop(waiting);
        prepared
    }
}

/// A passage as it is stored.
fn chunk(
    document: DocumentId,
    ordinal: u32,
    place: SourceSpan,
    text: &str,
    sizing: &TokenCounter,
) -> Result<NewChunk, IngestFailure> {
    // The place is part of what the id is made of, as JSON.
    let place_json = serde_json::to_string(&place.identity())
        .map_err(|error| IngestFailure::Internal(error.to_string()))?;
    Ok(NewChunk {
        ordinal,
        chunk_id: ChunkId::derive(document, ordinal, text, &place_json),
        text_hash: sha256(text.as_bytes()),
        tokens: u32::try_from(sizing.count(text)).unwrap_or(u32::MAX),
        place,
        text: text.to_owned(),
    })
}

/// Writes a generation batch by batch, so that other writers get their turn, and what is embedded is kept at once.
async fn write_in_batches<'a>(
    making: GenerationBuilder<'a>,
    chunks: &[NewChunk],
    extracted: &ExtractedText,
) -> Result<GenerationWriter<'a>, IngestFailure> {
    let pages = &extracted.pages_read;
    let generation = making.begin(stored_bytes(chunks, pages), extracted.engine).await?;
    let mut done = 0;
    for batch in chunks.chunks(vectors::BATCH) {
        done = making.embed(generation, batch, done).await?;
    }
    let mut writing = making.write(generation)?;
    for batch in chunks.chunks(db::chunks::BATCH) {
        writing.add(batch).await?;
    }
    for batch in pages.chunks(db::pages::BATCH) {
        writing.add_pages(batch).await?;
    }
    Ok(writing)
}

fn too_many_passages(most: usize) -> IngestFailure {
    let message = format!(
        "The document would be cut into more than {most} passages. Set a larger chunk_size or a smaller chunk_overlap, or split \
         the document."
    );
    IngestFailure::permanent("too_large", message)
}
