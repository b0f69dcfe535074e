//! The vectors of a document's passages: those that are stored are used again, the others are made by the model and kept at
//! once, so that a run that is cut short costs nothing the next time.

use std::{collections::HashSet, sync::Arc};

use lectern_embed::{EmbedError, Embedder};
use lectern_shared::{
    compute::ComputePool,
    db::{
        Db, generations,
        vectors::{self, TextHash},
    },
    ids::GenerationId,
    metrics::{EmbeddingPurpose, Metrics},
    model::job::JobClaim,
    secrets::sha256,
};
use tokio::time::Instant;

use crate::failure::IngestFailure;

/// Texts that are embedded between two reports of progress: enough for every core, and a few seconds at most.
pub(super) const BATCH: usize = 64;

/// Makes vectors for one generation.
#[derive(Clone, Copy)]
pub(super) struct GenerationVectors<'a> {
    pub(super) db: &'a Db,
    pub(super) compute: &'a ComputePool,
    pub(super) metrics: &'a Metrics,
    pub(super) claim: &'a JobClaim,
    pub(super) generation: GenerationId,
    pub(super) embedder: &'a Arc<dyn Embedder>,
}

impl GenerationVectors<'_> {
    /// Makes sure that these texts' vectors are stored; at most [`BATCH`].
    pub(super) async fn make(&self, texts: Vec<String>) -> Result<(), IngestFailure> {
        let (texts, hashes) = self.hash(texts).await?;
        let known = self.stored(&hashes).await?;
        let reused: Vec<TextHash> = known.keys().copied().collect();
        if !reused.is_empty() {
            let Self { db, claim, generation, embedder, .. } = *self;
            let mut tx = db.begin_relaxed().await?;
            if !generations::may_write(&mut tx, claim, generation).await? {
                return Err(IngestFailure::ClaimLost);
            }
            vectors::used(&mut tx, claim.document_id, generation, embedder.space(), &reused).await?;
            tx.commit().await?;
        }
        self.embed(texts, &hashes, |hash| known.contains_key(hash)).await?;
        Ok(())
    }

    /// These texts' vectors, in their order; at most [`lectern_shared::db::chunks::BATCH`].
    pub(super) async fn get(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, IngestFailure> {
        let (texts, hashes) = self.hash(texts).await?;
        let mut known = self.stored(&hashes).await?;
        // What was there a moment ago may have been removed by a run that this one has taken over.
        let made = self.embed(texts, &hashes, |hash| known.contains_key(hash)).await?;
        known.extend(made);
        let vector = |hash| {
            let vector = known.get(hash).cloned();
            vector.ok_or_else(|| IngestFailure::Internal("a passage has no vector".to_owned()))
        };
        hashes.iter().map(vector).collect()
    }

    async fn hash(&self, texts: Vec<String>) -> Result<(Vec<String>, Vec<TextHash>), IngestFailure> {
        let hash = move || {
            let hashes = texts.iter().map(|text| sha256(text.as_bytes())).collect();
            (texts, hashes)
        };
        self.compute.run(hash).await.map_err(|_| IngestFailure::Panicked)
    }

    async fn stored(
        &self,
        hashes: &[TextHash],
    ) -> Result<std::collections::HashMap<TextHash, Vec<f32>>, IngestFailure> {
        let Self { db, claim, embedder, .. } = *self;
        Ok(vectors::fetch(db, claim.workspace_id, claim.document_id, embedder.space(), hashes).await?)
    }

    /// Embeds and stores those of the texts whose vectors are not known.
    async fn embed(
        &self,
        texts: Vec<String>,
        hashes: &[TextHash],
        is_known: impl Fn(&TextHash) -> bool,
    ) -> Result<Vec<(TextHash, Vec<f32>)>, IngestFailure> {
        let Self { db, metrics, claim, generation, embedder, .. } = *self;
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
        let (began, count) = (Instant::now(), texts.len());
        let made = embedder.embed_passages(texts).await;
        metrics.embedded(EmbeddingPurpose::Passages, count, made.is_ok(), began.elapsed());
        let made = made?;
        if made.len() != missing.len() || made.iter().any(|v| v.len() != embedder.space().dimensions) {
            return Err(IngestFailure::Internal(
                "the embedding model gave other vectors than it should".to_owned(),
            ));
        }
        let made: Vec<_> = missing.into_iter().zip(made).collect();
        let mut tx = db.begin_relaxed().await?;
        if !generations::may_write(&mut tx, claim, generation).await? {
            return Err(IngestFailure::ClaimLost);
        }
        vectors::insert(&mut tx, claim.document_id, generation, embedder.space(), &made).await?;
        tx.commit().await?;
        Ok(made)
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
