//! One ingestion: fetch → parse → split → index → publish, each stage bounded, nothing visible before the last step.

mod generation;
pub(crate) mod passages;
mod publisher;
mod vectors;

use std::{sync::Arc, time::Duration};

use lectern_db::{self as db, chunks::NewChunk, generations};
use lectern_index::IndexError;
use lectern_runtime::Runtime;
use lectern_sandbox::{
    Sandbox,
    budget::{BudgetExhausted, CpuBudget, CpuMeter},
};
use lectern_shared::{
    config::ServiceLimits,
    ids::{ChunkId, GenerationId},
    model::{
        Json,
        document::{DocumentSource, SearchIndexInfo, SourceState},
        job::{IngestionStage, JobClaim},
    },
    secrets::{hex, sha256},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::{
    generation::{GenerationBuilder, GenerationWriter, SmallGeneration, stored_bytes},
    passages::PassageSlice,
    publisher::GenerationPublisher,
};
use crate::{
    extracted::ExtractedText,
    failure::IngestFailure,
    lease::ProgressReporter,
    source::{FetchBudget, ReadOutcome, SourceFetcher, SourceReading, parts::SHORT, pdf::PdfEngine},
    splitter::TokenCounter,
};

/// For how long an index that has answered is not asked again whether it is there.
const REACHED_FOR: Duration = Duration::from_secs(1);

/// Runs ingestions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ingester {
    runtime: Runtime,
    sandbox: Sandbox,
    pdf: PdfEngine,
    publisher: GenerationPublisher,
    /// When the index last answered.
    reached: Arc<Mutex<Option<Instant>>>,
}

/// What was made of a document, ready to be written.
struct PreparedDocument {
    extracted: ExtractedText,
    chunks: Vec<NewChunk>,
    content_hash: String,
}

impl Ingester {
    pub(crate) fn new(runtime: Runtime, sandbox: Sandbox, pdf: PdfEngine) -> Self {
        let publisher = GenerationPublisher::new(&runtime.db, &runtime.jobs);
        Self { runtime, sandbox, pdf, publisher, reached: Arc::default() }
    }

    /// Finds out that an index elsewhere is away before the source is asked. Of small documents there are hundreds a second, so one that
    /// has just answered is taken to be there.
    async fn ensure_reachable_index(&self) -> Result<(), IngestFailure> {
        let is_known = self.reached.lock().is_some_and(|reached| reached.elapsed() < REACHED_FOR);
        if is_known || self.runtime.index.late_write_window().is_none() {
            return Ok(());
        }
        self.runtime.index.ping().await?;
        *self.reached.lock() = Some(Instant::now());
        Ok(())
    }

    /// Makes the claim's document searchable.
    pub(crate) async fn run(
        &self,
        claim: &JobClaim,
        progress: &ProgressReporter,
    ) -> Result<(), IngestFailure> {
        let runtime = &self.runtime.on_behalf_of(claim.workspace_id);
        let budget = CpuBudget::new(runtime.settings.limits.processor_time);
        let turns = self.sandbox.turns();
        let source = db::documents::source(&runtime.db, claim.workspace_id, claim.document_id)
            .await?
            .ok_or(IngestFailure::ClaimLost)?;
        self.ensure_reachable_index().await?;
        let former = source.active_index.clone().map(|Json(index)| index);
        let replaces = former.as_ref().map(|former| former.generation);
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
            sandbox: &self.sandbox.for_document(claim.workspace_id, budget.clone()),
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
                return self.index_again(claim, &source, former, learnt.cloned(), progress).await;
            }
            (ReadOutcome::Unchanged, None) => {
                return Err(IngestFailure::Internal("a source that was never read is unchanged".to_owned()));
            }
        };
        if extracted.text().trim().is_empty() {
            return Err(IngestFailure::no_text("The source has no text. Check that it is the right file."));
        }
        let turn = match extracted.text().len() {
            // Over before others notice.
            ..=SHORT => None,
            _ => Some(progress.waiting_for(turns.take(Some(claim.workspace_id))).await),
        };
        let PreparedDocument { extracted, chunks, content_hash } = split(
            &source,
            extracted,
            SplitContext { sizing: &sizing, budget, limits: &runtime.settings.limits },
            progress,
        )
        .await?;
        drop(turn);
        let total = chunks.len() as u64;
        let quota = source.allowed_bytes(runtime.settings.limits.storage_bytes);
        let making = GenerationBuilder {
            runtime,
            turns,
            publisher: &self.publisher,
            claim,
            source: &source,
            embedder,
            sizing: &sizing,
            total,
            quota,
            replaces,
            progress,
        };
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
    async fn index_again(
        &self,
        claim: &JobClaim,
        source: &DocumentSource,
        former: SearchIndexInfo,
        learnt: Option<SourceState>,
        progress: &ProgressReporter,
    ) -> Result<(), IngestFailure> {
        let runtime = &self.runtime.on_behalf_of(claim.workspace_id);
        let embedder = runtime.models.wait_until_opened().await;
        let sizing = TokenCounter::of(embedder.clone(), &runtime.settings.embedding);
        let total = former.chunks;
        // What the operator wants of every document, and what only shows its new name, is in nobody's way.
        let allowed = source.allowed_bytes(runtime.settings.limits.storage_bytes);
        let quota = allowed.map(|allowed| if claim.from_stored { u64::MAX } else { allowed });
        let making = GenerationBuilder {
            runtime,
            turns: self.sandbox.turns(),
            publisher: &self.publisher,
            claim,
            source,
            embedder,
            sizing: &sizing,
            total,
            quota,
            replaces: Some(former.generation),
            progress,
        };
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
                // The place is part of what the id is made of, as JSON.
                let place_json = serde_json::to_string(&place.identity())
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
