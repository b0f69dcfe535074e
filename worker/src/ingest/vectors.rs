//! The vectors of a document's passages: those that are stored are used again, the others are made by the model and kept at
//! once, so that a run that is cut short costs nothing the next time.

use std::{collections::HashSet, sync::Arc};

use lectern_db::{
    Db, DbError, Tx, generations,
    vectors::{self, TextHash},
};
use lectern_embed::{EmbedError, Embedder};
use lectern_sandbox::WorkTurns;
use lectern_shared::{
    compute::ComputePool,
    ids::GenerationId,
    metrics::{EmbeddingPurpose, Metrics},
    model::job::JobClaim,
    secrets::sha256,
};
use tokio::time::Instant;

use crate::{failure::IngestFailure, lease::ProgressReporter};

/// Texts that are embedded between two reports of progress: enough for every core, and a few seconds at most.
pub(super) const BATCH: usize = 64;

/// Makes vectors of a document's passages.
#[derive(Clone, Copy)]
pub(super) struct PassageVectors<'a> {
    pub(super) db: &'a Db,
    pub(super) compute: &'a ComputePool,
    pub(super) metrics: &'a Metrics,
    /// At embedding; none where another server does it.
    pub(super) turns: Option<&'a WorkTurns>,
    pub(super) claim: &'a JobClaim,
    pub(super) embedder: &'a Arc<dyn Embedder>,
    pub(super) progress: &'a ProgressReporter,
}

/// The vectors of some texts.
pub(super) struct MadeVectors {
    /// In the order of the texts.
    pub(super) vectors: Vec<Vec<f32>>,
    /// The texts whose vectors were stored already.
    reused: Vec<TextHash>,
    /// Those that were made just now.
    made: Vec<(TextHash, Vec<f32>)>,
}

impl PassageVectors<'_> {
    /// The vectors of these texts, at most [`lectern_db::chunks::BATCH`]. Nothing is stored.
    pub(super) async fn make(&self, texts: Vec<String>) -> Result<MadeVectors, IngestFailure> {
        let Self { db, claim, embedder, .. } = *self;
        let (texts, hashes) = self.hash(texts).await?;
        let space = embedder.space();
        let mut known = vectors::fetch(db, claim.workspace_id, claim.document_id, space, &hashes).await?;
        let reused = known.keys().copied().collect();
        let made = self.embed(texts, &hashes, |hash| known.contains_key(hash)).await?;
        known.extend(made.iter().cloned());
        let vector = |hash| {
            let vector = known.get(hash).cloned();
            vector.ok_or_else(|| IngestFailure::Internal("a passage has no vector".to_owned()))
        };
        Ok(MadeVectors { vectors: hashes.iter().map(vector).collect::<Result<_, _>>()?, reused, made })
    }

    /// Stores what was made, and that a generation uses what was there.
    pub(super) async fn store(
        &self,
        tx: &mut Tx,
        generation: GenerationId,
        MadeVectors { reused, made, .. }: &MadeVectors,
    ) -> Result<(), DbError> {
        let (document, space) = (self.claim.document_id, self.embedder.space());
        vectors::used(tx, document, generation, space, reused).await?;
        vectors::insert(tx, document, generation, space, made).await
    }

    /// Makes the vectors of these texts for a generation that has begun, and stores them at once, so that a run which is cut short costs
    /// nothing the next time.
    pub(super) async fn make_and_store(
        &self,
        generation: GenerationId,
        texts: Vec<String>,
    ) -> Result<(), IngestFailure> {
        let made = self.make(texts).await?;
        self.store_for(generation, &made).await
    }

    /// The vectors of texts that were made before. What was there a moment ago may have been removed by a run that this one has taken over: that
    /// is made again.
    pub(super) async fn get(
        &self,
        generation: GenerationId,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, IngestFailure> {
        let made = self.make(texts).await?;
        if !made.made.is_empty() {
            self.store_for(generation, &made).await?;
        }
        Ok(made.vectors)
    }

    async fn store_for(&self, generation: GenerationId, made: &MadeVectors) -> Result<(), IngestFailure> {
        let mut tx = self.db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, self.claim, generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        self.store(&mut tx, generation, made).await?;
        Ok(tx.commit().await?)
    }

    async fn hash(&self, texts: Vec<String>) -> Result<(Vec<String>, Vec<TextHash>), IngestFailure> {
        let hash = move || {
            let hashes = texts.iter().map(|text| sha256(text.as_bytes())).collect();
            (texts, hashes)
        };
        self.compute.run(hash).await.map_err(|_| IngestFailure::Panicked)
    }

    /// Embeds those of the texts whose vectors are not known.
    async fn embed(
        &self,
        texts: Vec<String>,
        hashes: &[TextHash],
        is_known: impl Fn(&TextHash) -> bool,
    ) -> Result<Vec<(TextHash, Vec<f32>)>, IngestFailure> {
        let Self { metrics, turns, claim, embedder, progress, .. } = *self;
        let mut seen = HashSet::new();
        let (missing, texts): (Vec<TextHash>, Vec<String>) = hashes
            .iter()
            .copied()
            .zip(texts)
            .filter(|(hash, _)| !is_known(hash) && seen.insert(*hash))
            .unzip();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let turn = match turns {
            Some(turns) => Some(progress.waiting_for(turns.take(Some(claim.workspace_id))).await),
            None => None,
        };
        let (began, count) = (Instant::now(), texts.len());
        let made = embedder.embed_passages(texts).await;
        drop(turn);
        metrics.embedded(EmbeddingPurpose::Passages, count, made.is_ok(), began.elapsed());
        let made = made?;
        let is_usable = |vector: &Vec<f32>| {
            vector.len() == embedder.space().dimensions && vector.iter().all(|number| number.is_finite())
        };
        if made.len() != missing.len() || !made.iter().all(is_usable) {
            return Err(IngestFailure::Internal(
                "the embedding model gave other vectors than it should".to_owned(),
            ));
        }
        Ok(missing.into_iter().zip(made).collect())
    }
}

/// Removes what the document's earlier generations were embedded to. Nothing depends on it, so a failure is only noted.
pub(super) async fn prune(db: &Db, claim: &JobClaim, generation: GenerationId) {
    if let Err(error) = vectors::remove(db, claim.document_id, Some(generation)).await {
        tracing::warn!(%error, "old vectors of a document could not be removed yet");
    }
}

impl From<EmbedError> for IngestFailure {
    fn from(error: EmbedError) -> Self {
        match error {
            // No document is to blame.
            EmbedError::Away(cause) => Self::Outage(cause),
            EmbedError::Refused(cause) => {
                tracing::error!(cause, "a document could not be embedded");
                Self::passing(
                    "embedder_failed",
                    "The embedding model does not take the document; whoever runs the service can tell why.",
                )
            }
            EmbedError::Stopped(_) => Self::Panicked,
        }
    }
}
